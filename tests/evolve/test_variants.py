"""The papers' algorithms as they are: encoding, operators, no seeds, jMetalPy's own."""

from __future__ import annotations

import random
import subprocess
import sys

import numpy as np
import pytest

import placeopt
from placeopt import registry
from placeopt.core.errors import UnsupportedError
from placeopt.core.interfaces import build_encoder
from placeopt.core.task import Task
from placeopt.evolve.operators import SimulatedBinary
from placeopt.evolve.search import Variant, VectorSearch
from placeopt.temporal.problem import Temporal

JMETAL = ("jmetal-nsga2", "jmetal-nsga3", "jmetal-smpso")
needs_jmetal = pytest.mark.skipif(
    not registry.method("jmetal-nsga2").installed, reason="jMetalPy is not installed"
)


@pytest.fixture(scope="module")
def problem() -> Temporal:
    return Temporal.generate(3, requests=6, horizon=30)


def test_sbx_children_lie_around_their_parents_and_within_bounds(problem: Temporal) -> None:
    encoder = SimulatedBinary(build_encoder(problem), mutation=(0.0, 30.0))
    rng = np.random.default_rng(1)
    mothers, fathers = (encoder.sample(rng, 4000) for _ in range(2))
    children = encoder.vary(np.random.default_rng(2), mothers, fathers)
    assert ((children >= encoder.lower) & (children <= encoder.upper)).all()
    same = mothers == fathers
    assert (children[same] == mothers[same]).all()
    changed = (children != mothers).any(axis=1).mean()
    assert 0.4 < changed <= 0.6  # a pair is crossed with probability .6
    wide = encoder.upper > 10
    off = np.minimum(abs(children - mothers), abs(children - fathers))[:, wide]
    assert off.mean() < 0.2 * abs(mothers - fathers)[:, wide].mean()


def test_polynomial_mutation_moves_little_and_both_ways(problem: Temporal) -> None:
    encoder = SimulatedBinary(build_encoder(problem))
    X = encoder.sample(np.random.default_rng(1), 4000)
    X[:] = (encoder.lower + encoder.upper) // 2
    moved = encoder.mutate(np.random.default_rng(2), X) - X
    wide = encoder.upper - encoder.lower >= 10
    span = (encoder.upper - encoder.lower)[wide]
    assert 0.2 < (moved[:, wide] != 0).mean() < 0.6  # of .6, some steps round to none
    assert abs((moved[:, wide] / span).mean()) < 0.01
    assert (abs(moved[:, wide]) / span).mean() < 0.05


def test_without_seeds_the_first_vectors_are_random(problem: Temporal) -> None:
    seeded, bare = (VectorSearch(Task(problem), Variant(seeded=yes)).first(50) for yes in (1, 0))
    best = [build_encoder(problem).evaluate(X)[0][:, 1].min() for X in (seeded, bare)]
    assert best[0] < best[1]
    assert len(bare) == 50


def test_an_encoding_that_a_problem_has_not_is_refused() -> None:
    with pytest.raises(
        UnsupportedError, match="edge-cloud has no encoding 'published'; it has own"
    ):
        placeopt.solve("basic-50", "nsga2", evaluations=10, encoding="published")


@needs_jmetal
@pytest.mark.parametrize("method", JMETAL)
def test_jmetal_runs_repeat_count_and_leave_the_global_generators(
    problem: Temporal, method: str
) -> None:
    random.seed(5)
    before = random.getstate(), np.random.get_state()[1].tolist()  # noqa: NPY002
    fronts = [placeopt.solve(problem, method, evaluations=701, seed=4) for _ in range(2)]
    after = random.getstate(), np.random.get_state()[1].tolist()  # noqa: NPY002
    assert before == after
    np.testing.assert_array_equal(fronts[0].values, fronts[1].values)
    assert fronts[0].runs[0].evaluations == 701 and fronts[0].points


@needs_jmetal
@pytest.mark.parametrize("method", JMETAL)
@pytest.mark.parametrize("given", [{"evaluations": 3}, {"seconds": 0.05}])
def test_jmetal_runs_end_with_the_budget(
    problem: Temporal, method: str, given: dict[str, float]
) -> None:
    assert placeopt.solve(problem, method, **given).points


def test_jmetal_runs_end_within_a_minute_where_nothing_is_asked(problem: Temporal) -> None:
    for method in JMETAL:
        budget = registry.budget_for(method, problem)
        assert (budget.evaluations_limit, budget.seconds_limit) == (50_000, 50.0)
        budget = registry.budget_for(method, problem, evaluations=10**6)
        assert (budget.evaluations_limit, budget.seconds_limit) == (10**6, None)


@needs_jmetal
def test_jmetal_runs_serve_single_goals(problem: Temporal) -> None:
    for method in JMETAL:
        front = placeopt.solve(problem, method, objectives=["cost_usd"], evaluations=400)
        assert len(front) == 1


@needs_jmetal
def test_jmetal_runs_leave_the_root_logger() -> None:
    """In a fresh interpreter: importing jMetalPy configures it."""
    code = (
        "import logging, placeopt\nroot = logging.getLogger()\n"
        "before = root.level, len(root.handlers)\n"
        "placeopt.solve('toy', 'jmetal-nsga2', evaluations=200)\n"
        "assert before == (root.level, len(root.handlers)), root.handlers"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (ran.returncode, "DEBUG" in ran.stderr) == (0, False), ran.stderr
