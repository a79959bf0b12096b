"""NSGA-II and NSGA-III, by pymoo, over any encoder.

K. Deb et al., "A fast and elitist multiobjective genetic algorithm: NSGA-II", IEEE TEVC 6(2), 2002;
K. Deb, H. Jain, "An evolutionary many-objective optimization algorithm using reference-point-based
nondominated sorting approach", IEEE TEVC 18(4), 2014; as implemented by J. Blank, K. Deb, "pymoo",
IEEE Access 8, 2020. The variation is the encoder's own, the run starts from the problem's seeds,
an archive keeps every non-dominated vector, and ties are broken repeatably.
"""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
from pydantic import Field

from placeopt.core.front import Front
from placeopt.core.problem import Problem
from placeopt.core.task import Task
from placeopt.core.weights import lattice
from placeopt.evolve.search import VectorSearch

Offspring = Annotated[int, Field(ge=1, le=100_000, description="Children of a generation.")]
MaxPoints = Annotated[
    int | None, Field(ge=1, le=10**6, description="Largest size of the front; none for all.")
]


def nsga2(
    task: Task[Problem],
    *,
    population: Annotated[
        int, Field(ge=2, le=10_000, description="Survivors of a generation.")
    ] = 200,
    offspring: Offspring = 2000,
    points: MaxPoints = 500,
) -> Front:
    """Run NSGA-II."""
    from pymoo.algorithms.moo.nsga2 import NSGA2

    from placeopt.evolve.pymoo_adapter import ScreenedVariation

    algorithm = NSGA2(
        pop_size=population,
        n_offsprings=offspring,
        mating=ScreenedVariation(),
        eliminate_duplicates=False,
    )
    return _run("nsga2", algorithm, VectorSearch(task), population, offspring, points)


def nsga3(task: Task[Problem], *, offspring: Offspring = 2000, points: MaxPoints = 500) -> Front:
    """Run NSGA-III with about 200 reference directions, which is also the population's size."""
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
    return _run("nsga3", algorithm, VectorSearch(task), population, offspring, points)


def _run(
    name: str,
    algorithm: Any,
    search: VectorSearch,
    population: int,
    offspring: int,
    points: int | None,
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
