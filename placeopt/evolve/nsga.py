"""NSGA-II and NSGA-III, by pymoo, over any encoder.

K. Deb et al., "A fast and elitist multiobjective genetic algorithm: NSGA-II", IEEE TEVC 6(2), 2002; K. Deb, H. Jain, "An
evolutionary many-objective optimization algorithm using reference-point-based nondominated sorting approach", IEEE TEVC
18(4), 2014, as implemented by J. Blank, K. Deb, "pymoo", IEEE Access 8, 2020. Supports every problem with an encoder. What is
ours: the encoder's compiled variation, seeds from heuristics/, an archive of everything met, repeatable tie-breaks.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from placeopt.core.front import Front
from placeopt.core.problem import Problem
from placeopt.core.task import Task
from placeopt.core.weights import lattice
from placeopt.evolve.search import Search


def nsga2(
    task: Task[Problem],
    *,
    population: int = 200,
    offspring: int = 2000,
    points: int | None = 500,
) -> Front:
    """Run NSGA-II.

    Parameters
    ----------
    population, offspring : int
        Survivors, and children made in each generation.
    points : int or None
        Largest size of the front; None keeps everything met.
    """
    from pymoo.algorithms.moo.nsga2 import NSGA2

    from placeopt.evolve.pymoo_adapter import ScreenedVariation

    algorithm = NSGA2(
        pop_size=population,
        n_offsprings=offspring,
        mating=ScreenedVariation(),
        eliminate_duplicates=False,
    )
    return _run(
        "nsga2",
        algorithm,
        Search(task),
        population,
        offspring,
        points,
    )


def nsga3(
    task: Task[Problem],
    *,
    offspring: int = 2000,
    points: int | None = 500,
) -> Front:
    """Run NSGA-III with a lattice of about 200 reference directions, which is also the size of the population.

    Parameters
    ----------
    offspring : int
        Children made in each generation.
    points : int or None
        Largest size of the front; None keeps everything met.
    """
    from pymoo.algorithms.moo.nsga3 import NSGA3

    from placeopt.evolve.pymoo_adapter import ScreenedVariation

    directions = lattice(len(task.objectives))
    population = max(100, len(directions))
    algorithm = NSGA3(
        directions,
        pop_size=population,
        n_offsprings=offspring,
        mating=ScreenedVariation(),
        eliminate_duplicates=False,
    )
    return _run(
        "nsga3",
        algorithm,
        Search(task),
        population,
        offspring,
        points,
    )


def _run(
    name: str, algorithm: Any, search: Search, population: int, offspring: int, points: int | None
) -> Front:
    """Let a pymoo algorithm make generation after generation until the budget ends."""
    from pymoo.core.termination import NoTermination

    from placeopt.evolve.pymoo_adapter import EncodedProblem

    def evaluate(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        _, F, G = search.evaluate(X)
        return F, G

    first = search.first(population)
    algorithm._set_optimum = lambda: None  # the archive knows it; pymoo need not look for it
    algorithm.initialization.sampling = first[: search.budget.allow(len(first))]
    algorithm.setup(
        EncodedProblem(search.encoder, evaluate), termination=NoTermination(), seed=search.task.seed
    )
    algorithm.next()
    while not search.finished:
        algorithm.n_offsprings = search.budget.allow(offspring)
        algorithm.next()
    return search.conclude(
        name,
        {"population": population, "offspring": offspring, "points": points},
        ("pymoo", "numpy", "numba", "moocore"),
        points,
    )
