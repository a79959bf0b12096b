"""Edge-cloud heuristics: feasible, repeatable, above the bounds, optimal on tiny instances."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from edge_cloud_instances import random_instance
from hands import within
from hypothesis import given
from hypothesis import strategies as st

import placeopt
from placeopt.core.budget import Budget
from placeopt.core.errors import UsageError
from placeopt.core.parameters import parameters
from placeopt.core.task import Task
from placeopt.edge_cloud import bounds
from placeopt.edge_cloud import search as heuristics
from placeopt.edge_cloud.generator import PAPER_DEMAND
from placeopt.edge_cloud.problem import EdgeCloud
from placeopt.edge_cloud.search.placement import weighted_sum
from placeopt.edge_cloud.search.prices import Prices, Relaxation, lower_bounds
from placeopt.registry import certifier

METHODS = {
    "greedy": heuristics.greedy,
    "lns": heuristics.lns,
    "bound": bounds.bound,
}


def tiny_instance(seed: int) -> EdgeCloud:
    """An instance small enough to try all plans."""
    document = EdgeCloud.generate(
        seed, applications=2, near=2, far=1, cloud=1, load=(1.0, 2.0)[seed % 2]
    ).to_document()
    for application in document["applications"]:
        application["microservices"] = application["microservices"][:3]
        names = {m["name"] for m in application["microservices"]}
        application["flows"] = [f for f in application["flows"] if {f["from"], f["to"]} <= names]
    return EdgeCloud.from_document(document)


def every_value(problem: EdgeCloud) -> np.ndarray:
    """The values of all feasible plans, shape (plans, 2)."""
    nodes, count = len(problem.nodes), len(problem.arrays.demand)
    verdicts = (
        problem.evaluate(problem.plan(np.array(h)))
        for h in itertools.product(range(nodes), repeat=count)
    )
    return np.array([v.values for v in verdicts if v.feasible]).reshape(-1, 2)


@given(st.integers(0, 10**6), st.sampled_from(list(METHODS)))
def test_no_plan_lies_below_the_bounds(seed, name):
    """A bound vector dominates every plan of every method weakly; every gap is a share."""
    problem = random_instance(seed, 8)
    front = METHODS[name](Task(problem, problem.objectives, Budget(evaluations=1500), seed))
    proof = bounds.bound(Task(problem, problem.objectives, Budget(evaluations=1500), seed), parts=5)
    for point in (*front.points, *proof.points):
        assert problem.evaluate(point.plan).values == point.values
        for proven in (front.bounds, proof.bounds):
            assert not proven or (np.array(proven) <= point.values).all(axis=1).any()
        assert point.gap is None or 0 <= point.gap < 1
    assert front.points or (front.rejected is not None and front.reasons)


@pytest.mark.parametrize("seed", range(6))
def test_tiny_instances_against_all_plans(seed):
    """Bounds hold for all plans; the search finds the least weighted sum."""
    problem = tiny_instance(seed)
    values = every_value(problem)
    for weight in (0.0, 0.01, 0.3, 0.9, 1.0):
        least = (values @ [weight, 1 - weight]).min()
        front = heuristics.lns(
            Task(problem, problem.objectives, Budget(evaluations=3000), seed), weight=weight
        )
        found = (front.values @ [weight, 1 - weight]).min()
        assert found == pytest.approx(least, abs=1e-9)
        assert Relaxation(problem).ascend(weight, Budget(evaluations=200)).bound <= least + 1e-9
    proven = np.array(
        bounds.bound(Task(problem, problem.objectives, Budget(evaluations=2000), 0)).bounds
    )
    assert all((proven <= v).all(axis=1).any() for v in values)


@given(st.integers(0, 10**6))
def test_one_application_is_placed_exactly(seed):
    """Under any prices the best placement of an application, and its bound, is the best of all."""
    problem = tiny_instance(seed)
    document = problem.to_document()
    document["applications"] = document["applications"][:1]
    problem = EdgeCloud.from_document(document)
    rng, relaxation, table = np.random.default_rng(seed), Relaxation(problem), problem.arrays
    price, weight = (
        rng.uniform(0, 0.2, table.capacity.shape) * rng.integers(0, 2, table.capacity.shape),
        float(rng.choice([0, 0.01, 0.5, 1])),
    )
    proven = relaxation.bound(weight, price) + (price * table.capacity).sum()
    least = np.inf
    for hosts in itertools.product(range(len(problem.nodes)), repeat=len(table.demand)):
        verdict = problem.evaluate(problem.plan(np.array(hosts)))
        if verdict.feasible:
            paid = sum(price[v] @ table.demand[i] for i, v in enumerate(hosts))
            least = min(least, weight * verdict.values[0] + (1 - weight) * verdict.values[1] + paid)
    assert proven == pytest.approx(least, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("name", METHODS)
def test_repeatable(name):
    """The same seed gives the same front; another order of objectives swaps the values."""
    problem = EdgeCloud.generate(1, applications=12, load=1.0)
    one, two = (
        METHODS[name](Task(problem, problem.objectives, Budget(evaluations=4000), 3))
        for _ in range(2)
    )
    assert one.points == two.points and one.bounds == two.bounds
    swapped = METHODS[name](Task(problem, problem.objectives[::-1], Budget(evaluations=4000), 3))
    assert sorted(p.values[::-1] for p in swapped.points) == sorted(p.values for p in one.points)
    alone = METHODS[name](Task(problem, problem.objectives[1:], Budget(evaluations=2000), 3))
    assert len(alone) == 1 and alone.values[0, 0] <= one.values[:, 1].min() * 1.1
    assert all(b[0] <= alone.values[0, 0] for b in alone.bounds)


def test_the_search_improves_and_keeps_count():
    """More evaluations give a smaller weighted sum; the budget is kept; a start is improved."""
    problem = EdgeCloud.generate(2, applications=60)
    weights = np.array([0.01, 0.99])
    sums = []
    for evaluations in (300, 20_000):
        front = heuristics.lns(
            Task(problem, problem.objectives, Budget(evaluations=evaluations), 1), weight=0.01
        )
        sums.append((front.values @ weights).min())
        assert evaluations <= front.runs[0].evaluations <= evaluations + 1
    assert sums[1] < 0.99 * sums[0]
    assert (
        heuristics.greedy(Task(problem, problem.objectives, Budget(), 1), weight=0.01).values
        @ weights
    ).min() > 1.1 * sums[1]
    again = heuristics.lns(
        Task(problem, problem.objectives, Budget(evaluations=2000), 1, front), weight=0.01
    )
    assert (again.values @ weights).min() <= sums[1] + 1e-9


def test_small_first_is_what_counts():
    """On a contended instance small applications first beat the given order by far."""
    problem = EdgeCloud.generate(1, applications=100)
    small, given = (
        heuristics.greedy(Task(problem, problem.objectives, Budget(), 1), weight=0.01, order=order)
        for order in ("small-first", "given")
    )
    assert (small.values @ [0.01, 0.99]).min() < 0.85 * (given.values @ [0.01, 0.99]).min()


def test_a_time_limit_is_kept():
    """A limit in seconds stops every method soon after, with a feasible front.

    In seconds of this process: others may be at work on the machine.
    """
    problem = EdgeCloud.generate(3, applications=300, load=1.0)
    for name, method in METHODS.items():
        small = EdgeCloud.generate(3, applications=2)
        method(Task(small, budget=Budget(evaluations=500)))  # compiles
        with within(0.5, 2.5):
            assert method(Task(problem, budget=Budget(seconds=0.5))).points, name


def test_instances_without_a_plan():
    """Without enough room the front has no points, and says what is left out and why."""
    document = EdgeCloud.generate(1, applications=12, load=1.0).to_document()
    document["nodes"] = [n for n in document["nodes"] if n["layer"] == "near-edge"]
    problem = EdgeCloud.from_document(document)
    for method in METHODS.values():
        front = method(Task(problem, budget=Budget(evaluations=600)))
        if not front.points:
            assert front.rejected is not None and {v.kind for v in front.rejected.violations} == {
                "not-placed"
            }
    document["applications"][0]["microservices"][0]["cpu_cores"] = 99.0
    impossible = EdgeCloud.from_document(document)
    for method in METHODS.values():
        front = method(Task(impossible, budget=Budget(evaluations=600)))
        assert not front.points and "99 cores" in front.reasons[0]


def test_certify_adds_bounds():
    """Any front gets a bound set that lies below its points, and a gap."""
    problem = EdgeCloud.generate(4, applications=40)
    front = heuristics.greedy(Task(problem, problem.objectives, Budget(), 1))
    proven = certifier("edge-cloud")(problem, front, Budget(evaluations=3000))
    assert proven.points == front.points and 0 < proven.gap() < 1
    assert certifier("edge-cloud")(problem, proven, Budget(evaluations=3000)).points == front.points


def test_lower_bounds_of_a_known_line():
    """Corners lie below the lines that they stand for, and approach them."""
    problem = EdgeCloud.generate(1, applications=5)
    none = np.zeros(problem.arrays.capacity.shape)
    corners = np.array(
        lower_bounds([Prices(0.5, none, 1000.0)], problem, problem.objectives, cells=1000)
    )
    assert (corners.sum(axis=1) <= 2000 + 1e-9).all() and corners.sum(axis=1).max() > 1990
    table = problem.arrays
    dearest = (table.operating + np.outer(table.data, table.network)).max(axis=1).sum()
    assert corners[:, 1].min() == pytest.approx(2000 - dearest)
    assert np.all(np.diff(corners[:, 0]) > 0)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("weight", [1.5, -0.1, "a", math.nan, math.inf]),
        ("parts", [0, -1, 10**9, 1.5, "abc", math.nan]),
        ("max_removed", [0, -1, 17, 10**9, 1.5, "abc"]),
        ("strength", [-1.0, 11.0, 1e9, "abc", math.nan]),
    ],
)
def test_parameters_out_of_range(name, values):
    """Wrong parameters are refused and the message says what is legal."""
    problem = EdgeCloud.generate(1, applications=2)
    for value in values:
        with pytest.raises(UsageError, match=f"{name} of lns.*legal"):
            placeopt.solve(problem, "lns", evaluations=10, **{name: value})


@pytest.mark.parametrize("name", METHODS)
def test_parameters_at_their_limits(name):
    """Both ends of every range work."""
    problem = EdgeCloud.generate(1, applications=2)
    ends = {"weight": (0, 1), "parts": (1, 1000), "max_removed": (1, 16), "strength": (0, 10)}
    declared = {parameter.name for parameter in parameters(METHODS[name])}
    assert declared <= {*ends, "order"}
    for parameter in declared & set(ends):
        for value in ends[parameter]:
            front = placeopt.solve(problem, name, evaluations=20, **{parameter: value})
            assert front.points, (parameter, value)


def test_kernel_values_are_the_referees():
    """The value that the search adds up is equation (1)."""
    problem = EdgeCloud.generate(6, applications=20)
    front = heuristics.greedy(Task(problem, problem.objectives, Budget(), 1), weight=0.3)
    hosts = problem.hosts(front.points[0].plan)
    total = sum(weighted_sum(problem.arrays, 0.3, hosts, a) for a in range(20))
    assert total == pytest.approx(0.3 * front.values[0, 0] + 0.7 * front.values[0, 1])


def test_auto_runs_methods_in_turn() -> None:
    """`auto` starts each method from the points before, and says which method found which point."""
    problem = EdgeCloud.generate(7, applications=12)
    front = placeopt.solve(problem, evaluations=4000, seed=1)
    names = [method for method, _ in problem.spec.auto]
    assert front.runs[0].method == "auto" and front.runs[0].parameters == {"methods": names}
    assert sorted(run.method for run in front.runs[1:]) == sorted(names)
    assert {point.method for point in front.points} <= set(names)
    assert front.runs[0].evaluations <= 4000
    assert front.bounds, "the bounds of lns are kept"
    alone = placeopt.solve(problem, "lns", evaluations=4000, seed=1)
    reference = np.maximum(front.values.max(axis=0), alone.values.max(axis=0)) * 1.1
    assert front.hypervolume(reference) > alone.hypervolume(reference)


def test_auto_of_one_goal_is_the_search_that_proves() -> None:
    """It ends where nothing cheaper can be; MOEA/D would go on to the limit."""
    problem = EdgeCloud.generate(7, applications=12)
    front = placeopt.solve(problem, objectives=["cost"], seconds=120.0)
    assert [run.method for run in front.runs] == ["lns"]
    assert front.gap() < 1e-6 and front.runs[0].seconds < 100


def test_the_paper_regime_holds_the_demand():
    """As many cores in all, about, whatever the number of applications."""
    cores = []
    for applications in (50, 300):
        problem = EdgeCloud.generate(3, applications=applications, demand=PAPER_DEMAND)
        cores.append(sum(s.cpu_cores for a in problem.applications for s in a.microservices))
    assert 0.7 < cores[0] / cores[1] < 1.4
    with pytest.raises(UsageError, match="demand is -1"):
        EdgeCloud.generate(1, demand=-1.0)


def test_the_papers_profile_has_data_from_access_points():
    """Sources cannot compute; every method finds a plan, and latency falls, but not to nothing."""
    sizes = {"applications": 12, "near": 6, "far": 2, "cloud": 1, "demand": 0.3}
    problem = EdgeCloud.generate(2, profile="paper", **sizes)
    nodes = {node.name: node for node in problem.nodes}
    sources = {application.source for application in problem.applications}
    assert all(nodes[name].layer == "access" and nodes[name].cpu_cores == 0 for name in sources)
    assert {node.name for node in problem.nodes if node.layer == "access"} == sources
    for weight, least in ((0.001, 9.0), (0.999, 30.0)):
        task = Task(problem, problem.objectives, Budget(evaluations=20), 1)
        front = bounds.bound(task, weight=weight)
        best = min(front.points, key=lambda p: p.values[0] * weight + p.values[1] * (1 - weight))
        placed = {n for a in best.plan["placement"].values() for n in a.values()}
        assert not placed & sources
        assert best.values[1] >= least * len(problem.applications)
    for method in ("greedy", "lns", "rollout", "nsga2"):
        points = placeopt.solve(problem, method, evaluations=200).points
        assert points and all(problem.evaluate(p.plan).feasible for p in points)
    with pytest.raises(UsageError, match="profile"):
        EdgeCloud.generate(1, profile="papers")
