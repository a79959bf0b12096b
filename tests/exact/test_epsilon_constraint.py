"""Exact fronts: equal to brute force, valid bounds whenever the search ends, errors of the solver never read as answers."""

from __future__ import annotations

import itertools
import threading
import time
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from placeopt.budget import Budget
from placeopt.errors import SolverError, UsageError
from placeopt.exact import engines, solvers
from placeopt.exact.engines import Reply
from placeopt.exact.enumeration import Answer, Found, enumerate_front
from placeopt.exact.epsilon_constraint import run
from placeopt.exact.fronts import in_values
from placeopt.front import Objective, minimal
from placeopt.problems.temporal import Temporal

NAMES = ("latency_ms", "cost_usd", "interruption")


# -- tiny instances, and a slow oracle that shares nothing with placeopt but the document --------------------------


def tiny(seed: int) -> Temporal:
    """A random instance that can be enumerated: 3 requests every fourth time, else 2; at most 4 replicas, 2 offers, 4 or 5 slots."""
    rng = np.random.default_rng(seed)
    count = 3 if seed % 4 == 0 else 2
    requests = [
        {
            "name": f"r{k}",
            "cpu_cores": int(rng.integers(1, 4)),
            "memory_gib": float(rng.integers(1, 9) / 2),
            "duration_slots": int(rng.integers(1, 4)),
            "replicas": 1,
            "origin": "ab"[rng.integers(2)],
        }
        for k in range(count)
    ]
    for request in requests[: 1 if seed % 8 == 0 else int(rng.integers(0, 3)) if count == 2 else 0]:
        request["replicas"] = 2
    offers = []
    for location in "ab":
        offer = {"location": location, "size": "m", "cpu_cores": int(rng.integers(3, 7)), "memory_gib": 5.0, "max_instances": None}
        prices = {"on_demand_usd_per_hour": rng.integers(30, 50), "reserved_usd_per_hour": rng.integers(15, 30), "spot_usd_per_hour": rng.integers(5, 25)}
        absent = rng.choice([*prices, "none"], p=[0.2, 0.2, 0.2, 0.4])
        offer |= {key: int(price) / 100 for key, price in prices.items() if key != absent}
        if absent != "spot_usd_per_hour":
            offer["spot_interruption"] = int(rng.integers(1, 5)) * 5 / 100
        if rng.random() < 0.4:
            offer["max_instances"] = int(rng.integers(1, 3))
        offers.append(offer)
    near, far = (sorted(rng.integers(1, 400, 2).tolist()) for _ in range(2))
    latency = {"a": {"a": near[0] / 10, "b": near[1] / 10}, "b": {"a": far[1] / 10, "b": far[0] / 10}}
    document = {"problem": "temporal", "name": f"tiny{seed}", "horizon_slots": 4 if count == 3 else int(rng.integers(4, 6)), "latency_ms": latency}
    return Temporal.from_document(document | {"slot_hours": 0.5, "offers": offers, "requests": requests})


def partitions(items):
    """All ways to share items out among machines that are not told apart."""
    if not items:
        yield []
        return
    first, rest = items[0], items[1:]
    for smaller in partitions(rest):
        yield [[first], *smaller]
        for k, block in enumerate(smaller):
            yield [*smaller[:k], [first, *block], *smaller[k + 1 :]]


def brute_force(problem: Temporal) -> set[tuple[Fraction, ...]]:
    """All vectors of all plans, by trying them: starts, partitions of the replicas, offer and pricing of every part."""
    requests, offers, horizon = problem.requests, problem.offers, problem.horizon_slots
    exact = {id(o): {p: None if o.price(p) is None else Fraction(str(o.price(p))) for p in ("on-demand", "reserved", "spot")} for o in offers}
    shares = [list(p) for p in partitions([k for k, r in enumerate(requests) for _ in range(r.replicas)])]
    parts = {tuple(block) for share in shares for block in share}
    vectors = set()
    for starts in itertools.product(*(range(horizon - r.duration_slots + 1) for r in requests)):
        running = [set(range(s, s + r.duration_slots)) for s, r in zip(starts, requests, strict=True)]
        choices = {part: hosts(part, requests, offers, running, horizon, exact, problem) for part in parts}
        for share in shares:
            for chosen in itertools.product(*(choices[tuple(block)] for block in share)):
                counts = [sum(choice[0] == j for choice in chosen) for j in range(len(offers))]
                if all(o.max_instances is None or n <= o.max_instances for o, n in zip(offers, counts, strict=True)):
                    vectors.add(vector(share, chosen, requests, offers, problem))
    return vectors


def hosts(part, requests, offers, running, horizon, exact, problem):
    """Where a part fits: offer, pricing and what that costs."""
    found = []
    busy = set().union(*(running[k] for k in part))
    for j, offer in enumerate(offers):
        for resource in ("cpu_cores", "memory_gib"):
            if any(sum(getattr(requests[k], resource) for k in part if t in running[k]) > getattr(offer, resource) for t in busy):
                break
        else:
            for pricing, price in exact[id(offer)].items():
                if price is not None:
                    slots = horizon if pricing == "reserved" else len(busy)
                    found.append((j, pricing, price * slots * Fraction(str(problem.slot_hours))))
    return found


def vector(share, chosen, requests, offers, problem):
    latency, cost, interruption = [Fraction(0)] * len(requests), Fraction(0), Fraction(0)
    for block, (j, pricing, price) in zip(share, chosen, strict=True):
        cost += price
        for k in block:
            latency[k] = max(latency[k], Fraction(str(problem.latency_ms[requests[k].origin][offers[j].location])))
            if pricing == "spot":
                interruption += Fraction(str(offers[j].spot_interruption)) / requests[k].replicas
    return sum(latency) / len(requests), cost, interruption / len(requests)


def nondominated(vectors, columns=(0, 1, 2)):
    """The vectors that no other one beats, compared exactly, one by one."""
    cut = {tuple(v[c] for c in columns) for v in vectors}
    return sorted(v for v in cut if not any(w != v and all(a <= b for a, b in zip(w, v, strict=True)) for w in cut))


def same(front, truth):
    return len(front) == len(truth) and np.allclose(front.values, np.array(truth, dtype=float), rtol=1e-12, atol=1e-12)


TRUTH: dict[int, list] = {}


def truth_of(seed):
    if seed not in TRUTH:
        TRUTH[seed] = brute_force(tiny(seed))
    return TRUTH[seed]


def answer(problem, names=NAMES, *, seconds=None, **options):
    return run(problem, problem.select(names), Budget(seconds=seconds), 0, **options)


# -- the front is the true one --------------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", ["highs", "scip"])
@pytest.mark.parametrize("seed", range(20))
def test_equals_brute_force(seed, solver):
    problem, truth = tiny(seed), nondominated(truth_of(seed))
    front = answer(problem, solver=solver)
    assert same(front, truth)
    assert {p.status for p in front.points} == {"optimal"}
    assert [p.gap for p in front.points] == [None] * len(front)
    assert front.bounds == tuple(p.values for p in front.points)
    assert front.runs[0].completed
    assert all(problem.evaluate(p.plan).values == p.values for p in front.points)
    assert front.runs[0].solver_calls <= 2.5 * len(front) + 9


@pytest.mark.parametrize("names", [*itertools.permutations(NAMES, 2), *((name,) for name in NAMES)])
def test_subsets_of_objectives(names):
    front = answer(tiny(3), names)
    truth = nondominated(truth_of(3), [NAMES.index(name) for name in names])
    assert same(front, truth)
    assert {p.status for p in front.points} == {"optimal"}
    assert front.bounds == tuple(p.values for p in front.points)


def test_any_objective_may_be_the_main_one():
    for name in NAMES:
        front = answer(tiny(3), main=name)
        assert same(front, nondominated(truth_of(3)))
        assert front.runs[0].parameters["main"] == name


def test_same_twice():
    first, second = (answer(tiny(2)) for _ in range(2))
    assert first.points == second.points
    assert first.bounds == second.bounds
    assert first.runs[0].solver_calls == second.runs[0].solver_calls


def test_a_start_front_changes_nothing_but_effort():
    whole = answer(tiny(2))
    again = answer(tiny(2), start=whole)
    assert again.values.tolist() == whole.values.tolist()
    assert again.runs[0].solver_calls <= whole.runs[0].solver_calls
