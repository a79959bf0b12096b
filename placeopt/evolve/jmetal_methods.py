"""jMetalPy's own NSGA-II, NSGA-III and SMPSO over any encoder, as the CNSM 2024 paper ran them.

A. Benítez-Hidalgo et al., "jMetalPy: a Python framework for multi-objective optimization with
metaheuristics", Swarm and Evolutionary Computation 51, 2019; A. J. Nebro et al., "SMPSO: a new
PSO-based metaheuristic for multi-objective optimization", MCDM 2009. The defaults are the paper's.
The front is what the algorithm ends with: no archive keeps what it loses. Only the evaluation is
compiled; the rest of a run is jMetalPy's Python.
"""

from __future__ import annotations

import importlib
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from types import SimpleNamespace
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from placeopt.core.fronts.front import Front
from placeopt.core.problem import Problem
from placeopt.core.task import Task
from placeopt.evolve.operators import CROSSOVER, MUTATION
from placeopt.evolve.search import Encoding, Seeded, Variant, VectorSearch

Population = Annotated[int, Field(ge=2, le=10_000, description="Survivors of a generation.")]
Leaders = Annotated[int, Field(ge=2, le=10_000, description="Size of the archive of leaders.")]
#: jMetalPy's own mutation of its SMPSO.
_SWARM_INDEX = 20.0
_LIBRARIES = ("jmetalpy", "numpy", "numba")


def nsga2(
    task: Task[Problem],
    *,
    population: Population = 150,
    offspring: Annotated[
        int, Field(ge=1, le=10_000, description="Children of a generation, an even number.")
    ] = 80,
    encoding: Encoding = "own",
    seeded: Seeded = False,
) -> Front:
    """Run jMetalPy's NSGA-II with the paper's operators."""
    _quieten()
    from jmetal.algorithm.multiobjective.nsgaii import NSGAII

    build = partial(NSGAII, offspring_population_size=offspring + offspring % 2)
    settings = {"population": population, "offspring": offspring}
    return _run("jmetal-nsga2", build, task, Variant(encoding, seeded=seeded), settings)


def nsga3(
    task: Task[Problem],
    *,
    population: Population = 150,
    directions: Annotated[
        int, Field(ge=2, le=1000, description="Reference directions, at most; the paper: 30.")
    ] = 30,
    encoding: Encoding = "own",
    seeded: Seeded = False,
) -> Front:
    """Run jMetalPy's NSGA-III with the paper's operators."""
    _quieten()
    from jmetal.algorithm.multiobjective.nsgaiii import (
        NSGAIII,
        UniformReferenceDirectionFactory,
    )

    goals = len(task.objectives)

    points = UniformReferenceDirectionFactory(n_dim=goals, n_points=max(goals, directions))
    build = partial(NSGAIII, reference_directions=points)
    settings = {"population": population, "directions": directions}
    return _run("jmetal-nsga3", build, task, Variant(encoding, seeded=seeded), settings)


def smpso(
    task: Task[Problem],
    *,
    particles: Population = 100,
    leaders: Leaders = 100,
    encoding: Encoding = "own",
    seeded: Seeded = False,
) -> Front:
    """Run jMetalPy's SMPSO; its particles move among real numbers, which are rounded."""
    _quieten()
    from jmetal.algorithm.multiobjective.smpso import SMPSO
    from jmetal.operator.mutation import PolynomialMutation
    from jmetal.util.archive import CrowdingDistanceArchive

    from placeopt.evolve.jmetal_adapter import EncodedFloatProblem

    def build(problem: Any, **common: Any) -> Any:
        mutation = PolynomialMutation(1 / max(1, problem.encoder.num_genes), _SWARM_INDEX)
        return SMPSO(
            problem=EncodedFloatProblem(
                problem.encoder, constraints=problem.number_of_constraints()
            ),
            swarm_size=particles,
            mutation=mutation,
            leaders=CrowdingDistanceArchive(leaders),
            termination_criterion=common["termination_criterion"],
            swarm_generator=common["population_generator"],
            swarm_evaluator=common["population_evaluator"],
        )

    settings = {"population": particles, "leaders": leaders}
    return _run("jmetal-smpso", build, task, Variant(encoding, seeded=seeded), settings)


def _quieten() -> None:
    """Import the adapter before jMetalPy: it keeps it from configuring the root logger."""
    importlib.import_module("placeopt.evolve.jmetal_adapter")


class _StopError(Exception):
    """The budget ended within a generation; what the algorithm has is its answer."""


def _run(
    name: str,
    build: Callable[..., Any],
    task: Task[Problem],
    variant: Variant,
    settings: dict[str, Any],
) -> Front:
    """Let an algorithm of jMetalPy run until the budget ends; return what it holds then."""
    from placeopt.evolve.jmetal_adapter import EncodedIntegerProblem

    search = VectorSearch(task, variant)
    integers = EncodedIntegerProblem(search.encoder, task.seed, search.num_constraints)
    size = settings["population"] + settings["population"] % 2
    with _seeded_globals(task.seed):
        algorithm = build(problem=integers, **_common(search, size))
        with suppress(_StopError):
            algorithm.run()
        held = [s for s in algorithm.result() if s.objectives and s.objectives[0] is not None]
    if algorithm.evaluations and held:  # else even the first population was cut short
        genes = np.rint(np.array([s.variables for s in held])).astype(np.int64)
        search.keep_only(genes)
    return search.conclude(name, settings, _LIBRARIES)


def _common(search: VectorSearch, size: int) -> dict[str, Any]:
    """Return what all algorithms of jMetalPy are told."""
    _quieten()
    from jmetal.operator.crossover import IntegerSBXCrossover
    from jmetal.operator.mutation import IntegerPolynomialMutation
    from jmetal.util.comparator import DominanceWithConstraintsComparator
    from jmetal.util.evaluator import Evaluator
    from jmetal.util.generator import Generator
    from jmetal.util.termination_criterion import TerminationCriterion

    class Watched(IntegerSBXCrossover):
        """Asks the clock before each pair: a generation of a large instance takes long."""

        def execute(self, parents: list[Any]) -> list[Any]:
            if search.finished:
                raise _StopError
            return list(super().execute(parents))

    class Counted(Evaluator):
        """Evaluates through the search, which counts."""

        def evaluate(self, solution_list: list[Any], problem: Any) -> list[Any]:
            X = np.rint(np.array([s.variables for s in solution_list])).astype(np.int64)
            done, F, G = search.evaluate(X.reshape(-1, search.encoder.num_genes))
            for solution, f, g in zip(solution_list, F.tolist(), (-G).tolist(), strict=False):
                solution.objectives, solution.constraints = f, g
            if len(done) < len(X):
                raise _StopError
            return solution_list

    class Finished(TerminationCriterion):
        """The budget's."""

        def update(self, *args: Any, **kwargs: Any) -> None:
            pass

        @property
        def is_met(self) -> bool:
            return search.finished

    class First(Generator):
        """The first vectors, one after another."""

        def __init__(self) -> None:
            result = search.first(size)
            rows = np.linspace(0, len(result) - 1, size).astype(int)
            self.rows = iter(result[rows].tolist())

        def new(self, problem: Any) -> Any:
            solution = problem.create_solution()
            solution.variables = next(self.rows)
            return solution

    return {
        "population_size": size,
        "mutation": IntegerPolynomialMutation(*MUTATION),
        "crossover": Watched(*CROSSOVER),
        "termination_criterion": Finished(),
        "population_generator": First(),
        "population_evaluator": Counted(),
        "dominance_comparator": DominanceWithConstraintsComparator(),
    }


@contextmanager
def _seeded_globals(seed: int) -> Iterator[None]:
    """Seed what jMetalPy draws from, and leave it as it was.

    That is Python's generator and, in its NSGA-III, numpy's global one, in whose place it gets one
    of its own.
    """
    _quieten()
    from jmetal.algorithm.multiobjective import nsgaiii

    before, library = random.getstate(), nsgaiii.np
    random.seed(seed)
    nsgaiii.np = SimpleNamespace(**{**vars(np), "random": np.random.default_rng(seed)})
    try:
        yield
    finally:
        random.setstate(before)
        nsgaiii.np = library
