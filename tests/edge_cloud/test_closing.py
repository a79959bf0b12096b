"""Charges of patterns, lists of placements and the closing of gaps, against slow code and HiGHS."""

from __future__ import annotations

import time

import numpy as np
import pytest
from edge_cloud_instances import optimum, tiny
from effort import tries
from hands import within

from placeopt.core.budget import Budget
from placeopt.core.runs.compiling import Clock
from placeopt.core.task import Task
from placeopt.edge_cloud import search as heuristics
from placeopt.edge_cloud.problem import EdgeCloud
from placeopt.edge_cloud.search import closing, lists
from placeopt.edge_cloud.search import lists as charging
from placeopt.edge_cloud.search import lists as patterns
from placeopt.edge_cloud.search.lists import new_listing
from placeopt.edge_cloud.search.lns import PlanBuilder
from placeopt.edge_cloud.search.placement import MOST_LOADS, MOST_SERVICES, Shapes, shapes
from placeopt.edge_cloud.search.prices import Relaxation

WEIGHT = 0.1


def known_of(problem: EdgeCloud) -> Shapes:
    """Return the shapes of an instance, which has some."""
    known = shapes(problem.arrays)
    assert known is not None
    return known


def random_charges(known: Shapes, rng: np.random.Generator) -> np.ndarray:
    """Return charges of some shapes, (nodes, shapes)."""
    size = len(known.capacity), len(known.demand)
    return rng.random(size) * rng.integers(2, size=size) * rng.choice([0.1, 1.0, 10.0])


@pytest.mark.parametrize("seed", range(9))
def test_charges_never_prove_more_than_the_optimum(seed: int) -> None:
    """Whatever they are; those that have ascended prove most of it."""
    problem, rng = tiny(seed), np.random.default_rng(seed)
    arrays, known, least = problem.arrays, known_of(problem), optimum(problem, WEIGHT)
    listing, fill = new_listing(arrays, 10), patterns.new_fill(known)
    for trial in range(20):
        price = rng.random(known.capacity.shape) * rng.integers(2)
        begin = charging.new_charging(arrays, known, random_charges(known, rng), price)
        steps = np.zeros(1) if trial else 0.5 * 0.01 ** (np.arange(400) / 400)
        nothing = lists.no_lists(listing)
        charging.climb(arrays, known, WEIGHT, nothing, listing, fill, begin, steps)
        assert begin.best[0] <= least + 1e-7
        assert trial or begin.best[0] > 0.85 * least


@pytest.mark.parametrize("seed", range(9))
def test_gaps_of_tiny_instances_are_closed(seed: int) -> None:
    """From a poor plan the optimum of HiGHS is found and proven; no clock is asked."""
    problem = tiny(seed)
    relaxation, least = Relaxation(problem), optimum(problem, WEIGHT)
    prices = relaxation.ascend(WEIGHT, Budget(evaluations=10**6), 30)
    builder = PlanBuilder(relaxation, np.random.default_rng(0))
    hosts = builder.build(prices)
    answers = []
    for _ in range(2):
        budget = Budget(evaluations=10**6)
        value = builder.value(WEIGHT, hosts)
        answers.append(closing.close(relaxation, prices, hosts, value, budget))
    one, other = answers
    assert one.value == pytest.approx(least) and one.bound == pytest.approx(least, rel=1e-5)
    assert one.bound <= least + 1e-6
    assert builder.value(WEIGHT, one.hosts) == pytest.approx(one.value)
    assert problem.evaluate(problem.plan(one.hosts)).feasible
    assert other.bound == one.bound and np.array_equal(other.hosts, one.hosts)


@pytest.mark.parametrize("steps", [200, 1])
def test_what_short_lists_prove_is_true(monkeypatch: pytest.MonkeyPatch, steps: int) -> None:
    """Where HiGHS chooses among the best placements alone, the others bound the optimum too.

    Also where charges prove less than prices.
    """
    monkeypatch.setattr(closing, "_LIST_STEPS", (steps, 0.02, 0.0005))
    monkeypatch.setattr(closing, "_ALL_STEPS", (steps, 0.008, 0.0005))
    monkeypatch.setattr(closing, "_TRIAL_STEPS", min(steps, 10))
    monkeypatch.setattr(closing, "_WHOLE", 0)
    monkeypatch.setattr(closing, "_SEARCHES", ((30, 0.5), (45, 1.0)))
    gains = 0
    for seed in range(3):
        problem = EdgeCloud.generate(seed, applications=11, near=4, far=2, cloud=1, load=1.0)
        relaxation, least = Relaxation(problem), optimum(problem, WEIGHT)
        prices = relaxation.ascend(WEIGHT, Budget(evaluations=10**6), 30)
        hosts = PlanBuilder(relaxation, np.random.default_rng(0)).build(prices)
        value = PlanBuilder(relaxation, np.random.default_rng(0)).value(WEIGHT, hosts)
        found = closing.close(relaxation, prices, hosts, value, Budget(seconds=10))
        assert prices.bound - 1e-9 <= found.bound <= least + 1e-6 <= found.value + 2e-6
        gains += found.bound > prices.bound
        gains += found.value < value
    assert gains >= (3 if steps > 1 else 1)


def test_a_crowded_edge_is_closed_within_seconds() -> None:
    """Prices leave some of it open; the search with a clock proves its plan optimal."""
    problem = EdgeCloud.generate(1, applications=12, near=8, far=2, cloud=1, load=0.4)
    budget = Budget(seconds=30, clock=Clock(time.process_time))
    front = heuristics.lns(Task(problem, budget=budget), weight=0.01)
    value = float((front.values @ [0.01, 0.99]).min())
    assert value == pytest.approx(optimum(problem, 0.01), rel=1e-6)
    proven = front.runs[0].parameters["weighted_bounds"][0]
    assert proven == pytest.approx(value, rel=1e-5)
    plain = Relaxation(problem).ascend(0.01, Budget(evaluations=10**6), 300)
    assert plain.bound < 0.99 * proven


@pytest.mark.parametrize("seconds", [0.3, 2.0][: tries(1, 2)])
def test_a_time_limit_is_kept(seconds: float) -> None:
    """Whatever of charges and lists it ends in; in seconds of this process."""
    problem = EdgeCloud.generate(1, applications=50, load=1.0)
    heuristics.lns(Task(tiny(1), budget=Budget(seconds=20.0)), weight=0.01)  # compiles
    with within(seconds, 2.5):
        heuristics.lns(Task(problem, budget=Budget(seconds=seconds)), weight=0.01)


def test_large_applications_are_left_alone() -> None:
    """Sets of many microservices are too many; no clock, nothing to close."""
    document = EdgeCloud.generate(1, applications=2).to_document()
    services = document["applications"][0]["microservices"]
    names = [f"more-{k}" for k in range(MOST_SERVICES + 1 - len(services))]
    services += [{**services[0], "name": name} for name in names]
    problem = EdgeCloud.from_document(document)
    assert shapes(problem.arrays) is None
    relaxation = Relaxation(problem)
    assert not closing.is_applicable(relaxation, Budget(seconds=1))
    assert not closing.is_applicable(Relaxation(tiny(1)), Budget(evaluations=1000))
    assert closing.is_applicable(Relaxation(tiny(1)), Budget(seconds=1))
    prices = relaxation.ascend(WEIGHT, Budget(evaluations=100), 10)
    hosts = PlanBuilder(relaxation, np.random.default_rng(0)).build(prices)
    found = closing.close(relaxation, prices, hosts, 1e9, Budget(seconds=10))
    assert found.bound == prices.bound and found.hosts is hosts


def test_loads_beyond_whole_numbers_are_not_small() -> None:
    """Cores x memory in units of a billionth is more than 2**63: such a node is no small one."""
    document = EdgeCloud.generate(1, applications=6).to_document()
    rng = np.random.default_rng(1)
    for application in document["applications"]:
        for service in application["microservices"]:
            for resource in ("cpu_cores", "memory_gib"):
                service[resource] = round(service[resource] * rng.uniform(0.9, 1.1), 9)
    known = shapes(EdgeCloud.from_document(document).arrays)
    assert known is not None
    loads = [float(cpu + 1) * float(memory + 1) for cpu, memory in known.capacity.tolist()]
    assert max(loads) > 2**63
    assert known.small.tolist() == [k for k, load in enumerate(loads) if load <= MOST_LOADS]
