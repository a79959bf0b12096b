"""MOEA/D over any encoder.

Q. Zhang, H. Li, "MOEA/D: A Multiobjective Evolutionary Algorithm Based on Decomposition", IEEE TEVC
11(6), 2007, with the bounded replacement of H. Li, Q. Zhang, IEEE TEVC 13(2), 2009. Weights are
Tchebycheff weights. The run starts from the problem's seeds. The children of a block of subproblems
are made and evaluated together, and an archive keeps every non-dominated vector. Independent parts
of its vectors are recombined from time to time (`placeopt.evolve.recombination`).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated

import numpy as np
from pydantic import Field

from placeopt.core.fronts.front import Front
from placeopt.core.goals import lattice
from placeopt.core.kernels.common import below
from placeopt.core.kernels.compile import allocating_kernel, kernel
from placeopt.core.problem import Problem
from placeopt.core.task import Task
from placeopt.evolve.search import Encoding, Operators, Seeded, Variant, VectorSearch

#: Share of the budget -> fineness of the lattice from then on; 1 is about 200 subproblems. A coarse
#: lattice converges first, a fine one spreads.
STAGES = ((0.0, 1.0), (0.3, 1.5), (0.6, 2.5))
#: Share of the budget at which parts of the archive are recombined, and the share that this takes.
RECOMBINATIONS = ((0.2, 0.02), (0.45, 0.02), (0.7, 0.02), (0.95, 0.05))
#: Penalty of a plan above the limit of a goal, for each distance from the ideal point to the limit.
#: Plans slightly outside keep the population diverse: a search that refuses them finds half the
#: hypervolume inside (tests/test_limits.py). The archive keeps plans inside alone.
BEYOND = 1.0


@allocating_kernel
def _choose(block, neighbours, F, state):
    """Choose for each subproblem of a block its parents and the subproblems its child may improve.

    Advances `state`, (1,).

    Parameters
    ----------
    block : (block,) subproblems
    neighbours : (subproblems, width)
    F : (subproblems, objectives)

    Returns
    -------
    parents : (2, block)
    candidates : (block, width) the neighbours in random order
    """
    width = neighbours.shape[1]
    parents, candidates = np.empty((2, len(block)), dtype=np.int64), neighbours[block]
    for k in range(len(block)):
        parents[0, k] = candidates[k, below(state, width)]
        parents[1, k] = candidates[k, below(state, width)]
        for _ in range(10):  # many subproblems share a vector
            if (F[parents[0, k]] != F[parents[1, k]]).any():
                break
            parents[1, k] = candidates[k, below(state, width)]
        for j in range(width - 1, 0, -1):
            other = below(state, j + 1)
            candidates[k, j], candidates[k, other] = candidates[k, other], candidates[k, j]
    return parents, candidates


@allocating_kernel
def _fittest(weights, columns, excess):
    """Return for each weight the vector of the lowest Tchebycheff value plus excess, (weights,).

    Parameters
    ----------
    weights : (weights, objectives)
    columns : (objectives, vectors) distances from the ideal point
    excess : (vectors,) weighted violations
    """
    chosen = np.zeros(len(weights), dtype=np.int64)
    value = np.empty(columns.shape[1])
    for j in range(len(weights)):
        value[:] = 0.0
        for m in range(len(columns)):
            weight, column = weights[j, m], columns[m]
            for k in range(len(value)):
                value[k] = max(value[k], weight * column[k])
        lowest = np.inf
        for k in range(len(value)):
            if value[k] + excess[k] < lowest:
                lowest, chosen[j] = value[k] + excess[k], k
    return chosen


@kernel
def _replace(
    children, child_F, child_excess, candidates, weights, ideal, most, price, X, F, excess, limit
):
    """Let each child replace the vectors of at most `limit` of its candidates that it improves.

    Changes in place `ideal` (objectives,), and of the subproblems `X` (n, num_genes), `F`
    (n, objectives) and `excess` (n,).

    Parameters
    ----------
    children, child_F, child_excess : (block, num_genes), (block, objectives), (block,)
    candidates : (block, width) subproblems
    weights : (n, objectives)
    most, price : (objectives,) limits of goals, and what a unit above them adds to a value
    """
    num = len(ideal)
    for k in range(len(children)):
        for m in range(num):
            ideal[m] = min(ideal[m], child_F[k, m])
        replaced = 0
        for c in range(candidates.shape[1]):
            j = candidates[k, c]
            own = theirs = 0.0
            for m in range(num):  # Tchebycheff
                own = max(own, weights[j, m] * (child_F[k, m] - ideal[m]))
                theirs = max(theirs, weights[j, m] * (F[j, m] - ideal[m]))
            for m in range(num):
                own += price[m] * max(0.0, child_F[k, m] - most[m])
                theirs += price[m] * max(0.0, F[j, m] - most[m])
            if child_excess[k] < excess[j] or (child_excess[k] == excess[j] and own < theirs):
                excess[j] = child_excess[k]
                for gene in range(X.shape[1]):
                    X[j, gene] = children[k, gene]
                for m in range(num):
                    F[j, m] = child_F[k, m]
                replaced += 1
                if replaced >= limit:
                    break


@lru_cache(maxsize=16)
def _subproblems(
    dimensions: int, neighbours: int, fineness: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return weights, shape (k, dimensions), and the nearest others of each, (k, neighbours)."""
    weights = np.maximum(lattice(dimensions, fineness), 1e-3)
    if len(weights) < 20:  # one objective: many copies of the one weight
        weights = np.repeat(weights, 50, axis=0)
    # Whole numbers: no rounding.
    steps = np.rint(weights / weights[weights > 1e-3].min()).astype(np.float32)
    squares = (steps**2).sum(axis=1)
    distance = squares[:, None] + squares[None] - 2 * steps @ steps.T
    width = min(neighbours, len(distance)) - 1
    return weights, np.argpartition(distance, width, axis=1)[:, : width + 1].copy()


class _Population:
    """One vector for each weight."""

    def __init__(self, search: VectorSearch, neighbours: int, fineness: float):
        self.lattice, self.neighbours = _subproblems(len(search.objectives), neighbours, fineness)
        self.most, self._rules = search.task.most, search.encoder.num_constraints
        X, F, G = search.evaluate(search.first(len(self.lattice)))
        search.archive.settle()
        self._fill(X, F, self.broken(G))
        self.state = search.rng.integers(0, 2**64, size=1, dtype=np.uint64)

    def refine(self, search: VectorSearch, neighbours: int, fineness: float) -> None:
        """Change to a finer lattice if the archive has a vector for each of its weights."""
        search.archive.settle()
        if len(search.archive) >= len(lattice(len(search.objectives), fineness)):
            self.lattice, self.neighbours = _subproblems(
                len(search.objectives), neighbours, fineness
            )
            self._fill(search.archive.result(), search.archive.F, np.zeros(len(search.archive)))

    def offer(self, X: np.ndarray, F: np.ndarray, G: np.ndarray) -> None:
        """Let vectors replace those of all weights that they improve."""
        self._fill(
            np.concatenate((self.X, X)),
            np.concatenate((self.F, F)),
            np.concatenate((self.excess, self.broken(G))),
        )

    def broken(self, G: np.ndarray) -> np.ndarray:
        """Return the violations of the instance's rules; limits of goals are prices here, (k,)."""
        return np.asarray(G[:, : self._rules].sum(axis=1))

    def _fill(self, X: np.ndarray, F: np.ndarray, excess: np.ndarray) -> None:
        """Choose the best of some vectors for every weight."""
        best = F[excess == excess.min()]
        self.ideal = best.min(axis=0)
        reach = np.maximum(np.minimum(best.max(axis=0), self.most) - self.ideal, 1e-9)
        self.weights, self.price = self.lattice / reach, BEYOND / reach
        above = np.maximum(F - self.most, 0.0) @ self.price
        chosen = _fittest(
            self.weights, np.ascontiguousarray((F - self.ideal).T), 1e9 * excess + above
        )
        self.X, self.F, self.excess = X[chosen], F[chosen], excess[chosen]


def run(
    task: Task[Problem],
    *,
    neighbours: Annotated[
        int, Field(ge=2, le=10_000, description="Size of a subproblem's neighbourhood.")
    ] = 20,
    block: Annotated[
        int, Field(ge=1, le=100_000, description="Subproblems whose children are made together.")
    ] = 128,
    replacements: Annotated[
        int, Field(ge=1, le=10_000, description="Vectors that one child may replace.")
    ] = 4,
    fineness: Annotated[
        float | None,
        Field(gt=0, le=4, description="Of the lattice of weights; 1 is 200; none grows."),
    ] = None,
    encoding: Encoding = "own",
    operators: Operators = "own",
    seeded: Seeded = True,
) -> Front:
    """Run MOEA/D. Without `fineness` the lattice becomes finer during the run: see `STAGES`."""
    search = VectorSearch(task, Variant(encoding, operators, seeded))
    stages = [(0.0, fineness)] if fineness else list(STAGES)
    recombinations = list(RECOMBINATIONS)
    population = _Population(search, neighbours, stages.pop(0)[1])
    order = np.empty(0, dtype=np.int64)
    while not search.finished:
        if recombinations and search.progress >= recombinations[0][0]:
            X, F, G = search.recombine(recombinations.pop(0)[1])
            if len(X) and not search.finished:
                population.offer(X, F, G)
            continue
        if stages and search.progress >= stages[0][0]:
            population.refine(search, neighbours, stages.pop(0)[1])
            order = order[:0]
        if len(order) == 0:
            order = search.rng.permutation(len(population.X))
        _generation(search, population, order[:block], replacements)
        order = order[block:]
    return search.conclude(
        "moead",
        {
            "neighbours": neighbours,
            "block": block,
            "replacements": replacements,
            "fineness": fineness or "staged",
        },
    )


def _generation(
    search: VectorSearch, population: _Population, block: np.ndarray, replacements: int
) -> None:
    """Make, evaluate and place one child for each subproblem of a block."""
    p = population
    parents, candidates = _choose(block, p.neighbours, p.F, p.state)
    varied = search.encoder.vary(search.rng, p.X[parents[0]], p.X[parents[1]])
    children, F, G = search.evaluate(varied)
    _replace(
        children,
        F,
        p.broken(G),
        candidates,
        p.weights,
        p.ideal,
        p.most,
        p.price,
        p.X,
        p.F,
        p.excess,
        replacements,
    )
