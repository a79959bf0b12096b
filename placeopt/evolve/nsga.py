"""NSGA-II and NSGA-III, by pymoo, over any encoder.

K. Deb et al., "A fast and elitist multiobjective genetic algorithm: NSGA-II", IEEE TEVC 6(2), 2002;
K. Deb, H. Jain, "An evolutionary many-objective optimization algorithm using reference-point-based
nondominated sorting approach", IEEE TEVC 18(4), 2014; as implemented by J. Blank, K. Deb, "pymoo",
IEEE Access 8, 2020. The variation is the encoder's own, the run starts from the problem's seeds,
an archive keeps every non-dominated vector, and ties are broken repeatably.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from placeopt.core.fronts.front import Front
from placeopt.core.goals import lattice, simplex
from placeopt.core.problem import Problem
from placeopt.core.task import Task
from placeopt.evolve.search import Encoding, Operators, Seeded, Variant, VectorSearch

#: Generations that a run has at least, if the children of one need not be fewer than the least;
#: and the most: pymoo sorts a generation in a time that hardly depends on its size.
GENERATIONS, LEAST_CHILDREN, MOST_CHILDREN = 20, 20, 2000
Offspring = Annotated[
    int | None,
    Field(
        ge=1,
        le=100_000,
        description="Children of a generation; none for a twentieth of the run, at most 2000.",
    ),
]
MaxPoints = Annotated[
    int | None, Field(ge=1, le=10**6, description="Largest size of the front; none for all.")
]


def nsga2(
    task: Task[Problem],
    *,
    population: Annotated[
        int, Field(ge=2, le=10_000, description="Survivors of a generation.")
    ] = 200,
    offspring: Offspring = None,
    points: MaxPoints = 500,
    encoding: Encoding = "own",
    operators: Operators = "own",
    seeded: Seeded = True,
) -> Front:
    """Run NSGA-II."""
    from pymoo.algorithms.moo.nsga2 import NSGA2

    variant = Variant(encoding, operators, seeded)
    return _run("nsga2", NSGA2, task, variant, population, offspring, points)


def nsga3(
    task: Task[Problem],
    *,
    divisions: Annotated[
        int | None,
        Field(ge=1, le=30, description="Of an axis, by reference directions; none for about 200."),
    ] = None,
    population: Annotated[
        int | None,
        Field(
            ge=2,
            le=10_000,
            description="Survivors of a generation; none for one a direction, at least 100.",
        ),
    ] = None,
    offspring: Offspring = None,
    points: MaxPoints = 500,
    encoding: Encoding = "own",
    operators: Operators = "own",
    seeded: Seeded = True,
) -> Front:
    """Run NSGA-III."""
    from pymoo.algorithms.moo.nsga3 import NSGA3

    dimensions = len(task.objectives)
    directions = simplex(divisions, dimensions) if divisions else lattice(dimensions)
    algorithm = partial(NSGA3, directions)
    variant = Variant(encoding, operators, seeded)
    survivors = population or max(100, len(directions))
    return _run("nsga3", algorithm, task, variant, survivors, offspring, points)


class _BudgetEndedError(Exception):
    """The budget ended within a generation. The archive has what was evaluated."""


def _run(
    name: str,
    algorithm: Callable[..., Any],
    task: Task[Problem],
    variant: Variant,
    population: int,
    offspring: int | None,
    points: int | None,
) -> Front:
    """Let a pymoo algorithm make generation after generation until the budget ends."""
    from pymoo.core.termination import NoTermination

    from placeopt.evolve.pymoo_adapter import EncodedProblem, ScreenedVariation

    search = VectorSearch(task, variant, points)

    def evaluate(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        _, F, G = search.evaluate(X)
        if len(F) < len(X) or search.finished:  # survivors would have no children
            raise _BudgetEndedError
        return F, G

    first = search.first(population)
    run = algorithm(
        pop_size=population,
        n_offsprings=population,
        sampling=first[: search.budget.allow(len(first))],
        mating=ScreenedVariation(),
        eliminate_duplicates=False,
    )
    run._set_optimum = lambda: None  # the archive knows it; pymoo need not look for it
    encoded = EncodedProblem(search.encoder, evaluate, search.num_constraints)
    run.setup(encoded, termination=NoTermination(), seed=task.seed)
    with suppress(_BudgetEndedError):
        run.next()
        while not search.finished:
            run.n_offsprings = search.budget.allow(offspring or _children(search))
            run.next()
    return search.conclude(
        name,
        {"population": population, "offspring": offspring or "by budget", "points": points},
        ("pymoo", "numpy", "numba", "moocore"),
    )


def _children(search: VectorSearch) -> int:
    """Return how many children the next generation has: so that a short run has generations, too.

    A time limit is measured in evaluations by the pace so far.
    """
    planned = search.budget.evaluations / max(search.progress, 1e-9)
    return min(MOST_CHILDREN, max(LEAST_CHILDREN, round(planned / GENERATIONS)))
