"""MOEA/D over any encoder.

Q. Zhang, H. Li, "MOEA/D: A Multiobjective Evolutionary Algorithm Based on Decomposition", IEEE TEVC 11(6), 2007, with the
bounded replacement of H. Li, Q. Zhang, IEEE TEVC 13(2), 2009. Supports every problem with an encoder. Tchebycheff weights,
seeds from heuristics/, children of a block of subproblems made and evaluated at once, an archive of everything met, and from
time to time new vectors from its independent parts (`placeopt.evolve.recombination`).
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from placeopt.core.front import Front
from placeopt.core.kernels.compile import kernel
from placeopt.core.problem import Problem
from placeopt.core.task import Task
from placeopt.core.weights import lattice
from placeopt.evolve.search import Search

#: Part of the budget from which on a lattice of a fineness is used, 1 being about 200 subproblems: first converge, then spread.
STAGES = ((0.0, 1.0), (0.3, 1.5), (0.6, 2.5))
#: From which part of the budget on independent parts of the archive are recombined, and how large a part that may take.
RECOMBINATIONS = ((0.2, 0.02), (0.45, 0.02), (0.7, 0.02), (0.95, 0.05))


@kernel
def _below(state, bound):
    """Return a random integer in [0, bound): splitmix64 (Steele, Lea, Flood, OOPSLA 2014)."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    z = state[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.int64(((z ^ (z >> np.uint64(31))) >> np.uint64(11)) % np.uint64(bound))


@kernel
def _choose(block, neighbours, F, state, parents, candidates):
    """Write for each subproblem of a block two parents, and in random order the subproblems whose vectors its child may replace."""
    width = neighbours.shape[1]
    for k in range(len(block)):
        candidates[k] = neighbours[block[k]]
        parents[0, k], parents[1, k] = (
            candidates[k, _below(state, width)],
            candidates[k, _below(state, width)],
        )
        for _ in range(10):  # many subproblems share a vector
            if (F[parents[0, k]] != F[parents[1, k]]).any():
                break
            parents[1, k] = candidates[k, _below(state, width)]
        for j in range(width - 1, 0, -1):
            other = _below(state, j + 1)
            candidates[k, j], candidates[k, other] = candidates[k, other], candidates[k, j]


@kernel
def _fittest(weights, columns, excess):
    """Return for each weight the number of the least Tchebycheff value, of those that violate least; `columns` are goals, (m, k)."""
    chosen = np.zeros(len(weights), dtype=np.int64)
    value = np.empty(columns.shape[1])
    for j in range(len(weights)):
        value[:] = 0.0
        for m in range(len(columns)):
            weight, column = weights[j, m], columns[m]
            for k in range(len(value)):
                value[k] = max(value[k], weight * column[k])
        least = np.inf
        for k in range(len(value)):
            if value[k] + excess[k] < least:
                least, chosen[j] = value[k] + excess[k], k
    return chosen


@kernel
def _replace(children, child_F, child_excess, candidates, weights, ideal, X, F, excess, most):
    """Let each child replace at most `most` of the subproblems named in its row of `candidates` that it betters."""
    num = len(ideal)
    for k in range(len(children)):
        for m in range(num):
            ideal[m] = min(ideal[m], child_F[k, m])
        replaced = 0
        for c in range(candidates.shape[1]):
            j = candidates[k, c]
            mine = theirs = 0.0
            for m in range(num):  # Tchebycheff
                mine = max(mine, weights[j, m] * (child_F[k, m] - ideal[m]))
                theirs = max(theirs, weights[j, m] * (F[j, m] - ideal[m]))
            if child_excess[k] < excess[j] or (child_excess[k] == excess[j] and mine < theirs):
                X[j], F[j], excess[j] = children[k], child_F[k], child_excess[k]
                replaced += 1
                if replaced >= most:
                    break


@lru_cache(maxsize=16)
def _subproblems(
    dimensions: int, neighbours: int, fineness: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return weights, shape (k, dimensions), and the numbers of each one's nearest, shape (k, neighbours)."""
    weights = np.maximum(lattice(dimensions, fineness), 1e-3)
    if len(weights) < 20:  # one objective: many copies of the one weight
        weights = np.repeat(weights, 50, axis=0)
    steps = np.rint(weights / weights[weights > 1e-3].min()).astype(
        np.float32
    )  # whole numbers: nothing is rounded
    squares = (steps**2).sum(axis=1)
    distance = squares[:, None] + squares[None] - 2 * steps @ steps.T
    width = min(neighbours, len(distance)) - 1
    return weights, np.argpartition(distance, width, axis=1)[:, : width + 1].copy()


class _Population:
    """One vector for each weight."""

    def __init__(self, search: Search, neighbours: int, fineness: float):
        self.lattice, self.neighbours = _subproblems(len(search.objectives), neighbours, fineness)
        X, F, G = search.evaluate(search.first(len(self.lattice)))
        search.archive.settle()
        self._fill(X, F, G.sum(axis=1))
        self.state = search.rng.integers(0, 2**64, size=1, dtype=np.uint64)

    def refine(self, search: Search, neighbours: int, fineness: float) -> None:
        """Change to a finer lattice, filled from the archive, where that has a vector for each weight."""
        search.archive.settle()
        if len(search.archive) >= len(lattice(len(search.objectives), fineness)):
            self.lattice, self.neighbours = _subproblems(
                len(search.objectives), neighbours, fineness
            )
            self._fill(search.archive.result(), search.archive.F, np.zeros(len(search.archive)))

    def offer(self, X: np.ndarray, F: np.ndarray, G: np.ndarray) -> None:
        """Let vectors replace those of all weights that they better."""
        self._fill(
            np.concatenate((self.X, X)),
            np.concatenate((self.F, F)),
            np.concatenate((self.excess, G.sum(axis=1))),
        )

    def _fill(self, X: np.ndarray, F: np.ndarray, excess: np.ndarray) -> None:
        """Choose for every weight the best of some vectors."""
        good = F[excess == excess.min()]
        self.ideal = good.min(axis=0)
        self.weights = self.lattice / np.maximum(good.max(axis=0) - self.ideal, 1e-9)
        chosen = _fittest(self.weights, np.ascontiguousarray((F - self.ideal).T), 1e9 * excess)
        self.X, self.F, self.excess = X[chosen], F[chosen], excess[chosen]


def run(
    task: Task[Problem],
    *,
    neighbours: int = 20,
    block: int = 128,
    replacements: int = 4,
    fineness: float | None = None,
) -> Front:
    """Run MOEA/D.

    Parameters
    ----------
    neighbours : int
        Size of a subproblem's neighbourhood.
    block : int
        Subproblems whose children are made and evaluated together; parents and what a child may replace come from the neighbourhood.
    replacements : int
        How many vectors one child may replace.
    fineness : float, optional
        Of the lattice of weights; 1 gives about 200 subproblems. By default it grows during the run: see `STAGES`.
    """
    search = Search(task)
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
    parameters = {
        "neighbours": neighbours,
        "block": block,
        "replacements": replacements,
        "fineness": fineness or "staged",
    }
    return search.conclude("moead", parameters)


def _generation(
    search: Search, population: _Population, block: np.ndarray, replacements: int
) -> None:
    """Make, evaluate and place one child for each subproblem of a block."""
    p = population
    parents = np.empty((2, len(block)), dtype=np.int64)
    candidates = np.empty((len(block), p.neighbours.shape[1]), dtype=np.int64)
    _choose(block, p.neighbours, p.F, p.state, parents, candidates)
    children, F, G = search.evaluate(
        search.encoder.vary(search.rng, p.X[parents[0]], p.X[parents[1]])
    )
    _replace(
        children, F, G.sum(axis=1), candidates, p.weights, p.ideal, p.X, p.F, p.excess, replacements
    )
