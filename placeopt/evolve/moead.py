"""MOEA/D over any encoder.

Q. Zhang, H. Li, "MOEA/D: A Multiobjective Evolutionary Algorithm Based on Decomposition", IEEE TEVC 11(6), 2007, with the
bounded replacement of H. Li, Q. Zhang, IEEE TEVC 13(2), 2009. Supports every problem with an encoder. Tchebycheff weights,
seeds from heuristics/, children of a block of subproblems made and evaluated at once, an archive of everything met.
"""

from __future__ import annotations

import numpy as np

from placeopt.budget import Budget
from placeopt.compiled import kernel
from placeopt.evolve.search import Search
from placeopt.front import Front, Objective
from placeopt.heuristics.weights import lattice
from placeopt.problems.base import Problem


@kernel
def _tchebycheff(f, ideal, weight):
    worst = 0.0
    for m in range(len(f)):
        worst = max(worst, weight[m] * (f[m] - ideal[m]))
    return worst


@kernel
def _replace(children, child_F, child_excess, candidates, weights, ideal, X, F, excess, most):
    """Let each child replace at most `most` of the subproblems named in its row of `candidates` (-1 ends it) that it betters."""
    for k in range(len(children)):
        for m in range(len(ideal)):
            ideal[m] = min(ideal[m], child_F[k, m])
        replaced = 0
        for j in candidates[k]:
            if j < 0 or replaced >= most:
                break
            if child_excess[k] != excess[j]:
                better = child_excess[k] < excess[j]
            else:
                better = _tchebycheff(child_F[k], ideal, weights[j]) < _tchebycheff(F[j], ideal, weights[j])
            if better:
                X[j], F[j], excess[j] = children[k], child_F[k], child_excess[k]
                replaced += 1


class _Population:
    """One vector for each weight."""

    def __init__(self, search: Search, neighbours: int, fineness: float):
        lattice_weights = np.maximum(lattice(len(search.objectives), fineness), 1e-3)
        if len(lattice_weights) < 20:  # one objective: many copies of the one weight
            lattice_weights = np.repeat(lattice_weights, 50, axis=0)
        distance = ((lattice_weights[:, None] - lattice_weights[None]) ** 2).sum(axis=2)
        self.neighbours = np.argsort(distance, axis=1, kind="stable")[:, :neighbours]
        X, F, G = search.evaluate(search.first(len(lattice_weights)))
        excess = G.sum(axis=1)
        search.archive.settle()
        good = F[excess == excess.min()]
        self.ideal = good.min(axis=0)
        self.weights = lattice_weights / np.maximum(good.max(axis=0) - self.ideal, 1e-9)
        distance_to = (self.weights[:, None, :] * (F[None] - self.ideal)).max(axis=2) + 1e9 * excess
        chosen = distance_to.argmin(axis=1)
        self.X, self.F, self.excess = X[chosen].copy(), F[chosen].copy(), excess[chosen].copy()


def run(
    problem: Problem,
    objectives: tuple[Objective, ...],
    budget: Budget,
    seed: int,
    start: Front | None = None,
    *,
    neighbours: int = 20,
    block: int = 32,
    locality: float = 0.9,
    replacements: int = 8,
    fineness: float | None = None,
) -> Front:
    """Run MOEA/D.

    Parameters
    ----------
    neighbours : int
        Size of a subproblem's neighbourhood.
    block : int
        Subproblems whose children are made and evaluated together.
    locality : float
        Probability that parents and replacements come from the neighbourhood, not from all.
    replacements : int
        How many vectors one child may replace.
    fineness : float, optional
        Of the lattice of weights; 1 gives about 200 subproblems. Longer runs make use of more: 1.5 from 200,000 evaluations or
        10 seconds on.
    """
    if fineness is None:
        fineness = 1.5 if min(budget.evaluations_left / 200_000, budget.seconds_left / 10) >= 1 else 1.0
    search = Search(problem, objectives, budget, seed, start)
    population = _Population(search, neighbours, fineness)
    order = np.empty(0, dtype=np.int64)
    while not search.finished:
        if len(order) == 0:
            order = search.rng.permutation(len(population.X))
        _generation(search, population, order[:block], locality, replacements)
        order = order[block:]
    parameters = {"neighbours": neighbours, "block": block, "locality": locality, "replacements": replacements, "fineness": fineness}
    return search.conclude("moead", parameters)


def _generation(search: Search, population: _Population, block: np.ndarray, locality: float, replacements: int) -> None:
    rng, size, width = search.rng, len(population.X), population.neighbours.shape[1]
    near = population.neighbours[block]
    local = (rng.random(len(block)) < locality)[:, None]
    rows = np.arange(len(block))[:, None]
    parents = np.where(local, near[rows, rng.integers(0, width, (len(block), 2))], rng.integers(0, size, (len(block), 2)))
    children = search.encoder.vary(rng, population.X[parents[:, 0]], population.X[parents[:, 1]])
    children, F, G = search.evaluate(children)
    shuffled = near[rows, rng.random((len(block), width)).argsort(axis=1)]
    candidates = np.where(local, shuffled, rng.integers(0, size, (len(block), width)))
    _replace(
        children, F, G.sum(axis=1), candidates, population.weights, population.ideal, population.X, population.F, population.excess, replacements
    )  # fmt: skip
