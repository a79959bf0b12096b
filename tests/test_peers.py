"""The CP-SAT models that benchmarks/peers.py holds placeopt against: right on small instances."""

import sys
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from multi_cluster_instances import attainable, instance
from temporal_instances import tiny

import placeopt
from placeopt import registry

pytest.importorskip("ortools")

SMALL = {
    "edge-cloud": ({"applications": 4}, None),
    "rolling-update": ({"applications": 4}, ["node_cost", "starts"]),
    "rescheduling": ({"services": 3}, None),
}


@pytest.fixture(autouse=True)
def _benchmarks(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "benchmarks"))
    yield
    for name in [name for name in sys.modules if name.split(".")[0] == "peers"]:
        del sys.modules[name]


def compare(problem, kind, goals=None):
    front = placeopt.solve(problem, "auto", objectives=goals, evaluations=3000)
    weights = 1 / np.maximum(np.ptp(front.values, axis=0), 1.0)
    best = import_module("peers." + kind.replace("-", "_")).best
    [plan] = best(problem, weights, None, [20.0], 1)
    verdict = problem.evaluate(plan)
    assert verdict.feasible
    values = np.array(verdict.values)[problem.columns(front.objectives)]
    assert values @ weights <= (front.values @ weights).min() * (1 + 1e-6)
    return front, weights, values


@pytest.mark.parametrize("kind", SMALL)
def test_a_model_is_as_good_as_the_front(kind):
    sizes, goals = SMALL[kind]
    compare(registry.problem_class(kind).generate(1, **sizes), kind, goals)


def test_sizes_of_the_table_differ(monkeypatch):
    monkeypatch.setitem(sys.modules, "cpu_clock", ModuleType("cpu_clock"))
    path = Path(__file__).parents[1] / "benchmarks" / "peers.py"
    spec = spec_from_file_location("table_of_peers", path)
    script = module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, script)
    spec.loader.exec_module(script)
    for kind, sizes in script.SIZES.items():
        documents = [script.instance(kind, k, 1).to_document() for k in range(len(sizes))]
        assert len(set(map(repr, documents))) == len(sizes), kind


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_temporal_model_agrees_with_the_proven_front(seed):
    front, weights, values = compare(tiny(seed), "temporal")
    assert {point.status for point in front.points} == {"optimal"}
    assert values @ weights == pytest.approx((front.values @ weights).min(), rel=1e-6)


@pytest.mark.parametrize("cap", [0.0, 0.25])
@pytest.mark.parametrize("seed", [0, 2])
def test_the_multi_cluster_model_is_the_best_of_all_plans(seed, cap):
    problem, weights = instance(seed), np.array([0.3, 0.7]) / [16, 1]
    values = attainable(problem)
    values = values[values[:, 3] <= cap]
    [plan] = import_module("peers.multi_cluster").best(problem, weights, cap, [20.0], 1)
    verdict = problem.evaluate(plan)
    assert verdict.feasible and verdict.values[3] <= cap
    least = (values[:, 1:3] @ weights).min()
    assert verdict.values[1:3] @ weights == pytest.approx(least, abs=1e-4 if cap else 1e-9)
