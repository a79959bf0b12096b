"""Bin plans and bounds against brute force: all starts, all partitions, judged by the referee."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from effort import tries
from hypothesis import given
from hypothesis import strategies as st
from temporal_instances import tiny

from placeopt.core.budget import Budget
from placeopt.core.errors import InfeasibleInstanceError, UnsupportedError
from placeopt.core.fronts.dominance import minimal
from placeopt.core.interfaces import build_encoder as encoder_of
from placeopt.core.task import Task
from placeopt.exact.epsilon_constraint import run as epsilon_constraint
from placeopt.registry import certifier
from placeopt.temporal.exact import bin_plans, bound
from placeopt.temporal.exact.front import local_upper_bounds
from placeopt.temporal.exact.schedule import common_starts
from placeopt.temporal.exact.tables import (
    build_patterns,
    least_cost,
    makespans,
    numbers,
    staircase,
    strides,
)
from placeopt.temporal.problem import Temporal
from placeopt.temporal.search.prices import Knapsack

certify = certifier("temporal")


def partitions(items: list[Any]) -> Any:
    """Yield all partitions of a list."""
    if not items:
        yield []
        return
    for rest in partitions(items[1:]):
        yield [[items[0]], *rest]
        for k in range(len(rest)):
            yield [*rest[:k], [items[0], *rest[k]], *rest[k + 1 :]]


def all_values(problem: Temporal) -> np.ndarray:
    """Return the referee's values of every plan that there is."""
    leases = [
        (o.location, o.size, p)
        for o in problem.offers
        for p in ("on-demand", "reserved", "spot")
        if o.price(p) is not None
    ]
    items = [(r.name, q) for r in problem.requests for q in range(r.replicas)]
    starts = [range(problem.horizon_slots - r.duration_slots + 1) for r in problem.requests]
    seen, found = set(), []
    for groups in partitions(items):
        key = tuple(sorted(tuple(sorted(name for name, _ in group)) for group in groups))
        if key in seen:  # replicas of one request are alike
            continue
        seen.add(key)
        for chosen in itertools.product(leases, repeat=len(groups)):
            machines = [
                {"location": a, "size": b, "pricing": p, "replicas": g}
                for (a, b, p), g in zip(chosen, groups, strict=True)
            ]
            for begin in itertools.product(*starts):
                verdict = problem.evaluate(
                    {
                        "starts": {r.name: a for r, a in zip(problem.requests, begin, strict=True)},
                        "instances": machines,
                    }
                )
                if verdict.feasible:
                    found.append(verdict.values)
    return np.array(found)


@pytest.mark.parametrize("seed", range(8))
def test_front_is_that_of_all_plans(seed: int) -> None:
    """The exact front is that of all plans, every point is proven, the bounds are the points."""
    problem = tiny(seed, offers=2)
    expected = minimal(all_values(problem))
    front = bin_plans(Task(problem, problem.objectives, Budget(), 1))
    assert np.array_equal(front.values, expected)
    assert {p.status for p in front.points} == {"optimal"}
    assert np.array_equal(np.array(front.bounds), expected)


@pytest.mark.parametrize(("seed", "requests"), [(1, 2), (4, 3), (2, 2), (5, 2)])
def test_front_is_that_of_the_papers_model(seed: int, requests: int) -> None:
    """The full front of the time-indexed model with enough copies."""
    problem = tiny(seed, requests=requests, replicas=4 - requests, horizon=4, offers=2)
    theirs = epsilon_constraint(Task(problem, problem.objectives, Budget(seconds=60), 1))
    assert theirs.runs[0].completed
    assert np.array_equal(
        bin_plans(Task(problem, problem.objectives, Budget(), 1)).values, theirs.values
    )


def by_starts(problem: Temporal) -> np.ndarray:
    """Return the front from all starts and all ways to part the replicas, slot by slot."""
    replicas = tuple(r.replicas for r in problem.requests)
    sets = [s for s in itertools.product(*(range(r + 1) for r in replicas)) if any(s)]
    starts = [range(problem.horizon_slots - r.duration_slots + 1) for r in problem.requests]
    found = {
        vector
        for begin in itertools.product(*starts)
        for vector in _parted(problem, begin, sets, replicas)
    }
    return minimal(np.array(sorted(found)))


def _parted(
    problem: Temporal,
    begin: tuple[int, ...],
    sets: list[tuple[int, ...]],
    replicas: tuple[int, ...],
) -> set[tuple[float, ...]]:
    hosts = {s: options for s in sets if (options := _hosts(problem, begin, s))}
    states: dict[tuple[int, ...], set[tuple[Any, ...]]] = {
        replicas: {((0.0,) * len(replicas), 0.0, 0.0)}
    }
    for left in sorted(itertools.product(*(range(r + 1) for r in replicas)), key=sum, reverse=True):
        first = next((i for i, n in enumerate(left) if n), None)
        labels = states.get(left, set())
        if first is None or not labels:
            continue
        values = np.array([(*worst, cost, share) for worst, cost, share in labels])
        kept = {tuple(v) for v in minimal(values)}
        for s, options in hosts.items():
            if s[first] == 0 or any(n > m for n, m in zip(s, left, strict=True)):
                continue
            rest = tuple(m - n for n, m in zip(s, left, strict=True))
            for *worst, cost, share in kept:
                for latency, price, spot in options:
                    farther = tuple(max(w, x) for w, x in zip(worst, latency, strict=True))
                    states.setdefault(rest, set()).add(
                        (farther, round(cost + price, 6), round(share + spot, 9))
                    )
    count = len(replicas)
    return {
        (round(sum(worst) / count, 6), cost, round(share / count, 9))
        for worst, cost, share in states.get((0,) * count, set())
    }


def _hosts(
    problem: Temporal, begin: tuple[int, ...], counts: tuple[int, ...]
) -> list[tuple[tuple[float, ...], float, float]]:
    """Return what every lease that can host a set at these starts adds.

    That is (latency of each request, cost, interruption).
    """
    load, busy = np.zeros((problem.horizon_slots, 2)), np.zeros(problem.horizon_slots, dtype=bool)
    for n, a, r in zip(counts, begin, problem.requests, strict=True):
        if n:
            load[a : a + r.duration_slots] += (n * r.cpu_cores, n * r.memory_gib)
            busy[a : a + r.duration_slots] = True
    options = []
    for offer in problem.offers:
        reach = [
            problem.latency_ms[r.origin].get(offer.location) if n else 0.0
            for n, r in zip(counts, problem.requests, strict=True)
        ]
        if (load > (offer.cpu_cores, offer.memory_gib)).any() or None in reach:
            continue
        for pricing in ("on-demand", "reserved", "spot"):
            price = offer.price(pricing)
            if price is not None:
                slots = problem.horizon_slots if pricing == "reserved" else int(busy.sum())
                rate = (offer.spot_interruption or 0.0) if pricing == "spot" else 0.0
                options.append(
                    (
                        tuple(reach),
                        price * slots,
                        sum(
                            n * rate / r.replicas
                            for n, r in zip(counts, problem.requests, strict=True)
                        ),
                    )
                )
    return options


@pytest.mark.parametrize(("seed", "replicas"), [(16, 2), (80, 2), (105, 3), (131, 3), (3, 2)])
def test_front_is_exact_where_machines_must_agree_on_starts(seed: int, replicas: int) -> None:
    """Against an oracle over all starts; in the first four a relaxed point has no schedule."""
    problem = tiny(seed, requests=3, replicas=replicas, horizon=5)
    front = bin_plans(Task(problem, problem.objectives, Budget(), 1))
    facts = front.runs[0].parameters
    assert seed < 10 or facts["certified_relaxed_points"] < facts["relaxed_points"]
    assert np.allclose(front.values, by_starts(problem), atol=1e-6)
    assert {p.status for p in front.points} == {"optimal"}
    assert all(problem.evaluate(p.plan).feasible for p in front.points)


@pytest.mark.parametrize(
    "names",
    [
        ["cost_usd"],
        ["cost_usd", "latency_ms"],
        ["interruption", "cost_usd"],
        ["interruption", "latency_ms"],
    ],
)
def test_any_objectives(names: list[str]) -> None:
    """Leaving goals out gives the front of the others, in the order asked for."""
    for seed in (16, 1)[: tries(1, 2)]:
        problem = tiny(seed, requests=3, horizon=4, offers=2)
        columns = problem.columns(problem.select(names))
        expected = minimal(by_starts(problem)[:, columns])
        front = bin_plans(Task(problem, problem.select(names), Budget(), 1))
        assert np.allclose(front.values, expected, atol=1e-6)
        proven = np.array(bound(Task(problem, problem.select(names), Budget(), 1), cells=9).bounds)
        assert all((proven <= values + 1e-12).all(axis=1).any() for values in front.values)


@given(seed=st.integers(0, 10**6))
def test_least_busy_time_is_the_makespan(seed: int) -> None:
    """The theorem: over all starts, the least number of busy slots is the table's makespan."""
    rng = np.random.default_rng(seed)
    durations, demands = rng.integers(1, 4, size=3), rng.integers(1, 4, size=(3, 2))
    capacity, horizon = rng.integers(3, 6, size=2), 7
    low, high = makespans(np.ones(3, dtype=np.int64), demands, durations, capacity, horizon)
    for code, chosen in enumerate(itertools.product((0, 1), repeat=3)):
        members = np.flatnonzero(chosen[::-1])
        least = horizon + 1 if len(members) else 0
        for begin in itertools.product(*(range(horizon - durations[i] + 1) for i in members)):
            load = np.zeros((horizon, 3))
            for i, a in zip(members, begin, strict=True):
                load[a : a + durations[i]] += (*demands[i], 1)
            if (load[:, :2] <= capacity).all():
                least = min(least, int((load[:, 2] > 0).sum()))
        assert low[code] == high[code] == least


@given(seed=st.integers(0, 10**6))
def test_common_starts_are_found_where_there_are_any(seed: int) -> None:
    """The search over difference constraints against all starts."""
    rng = np.random.default_rng(seed)
    durations, demands = rng.integers(1, 4, size=4), rng.integers(1, 3, size=(4, 2))
    counts, capacity = rng.integers(0, 2, size=(3, 4)), rng.integers(2, 5, size=(3, 2))
    window, horizon = rng.integers(3, 6, size=3), 5  # no window is shorter than a request

    def good(begin: tuple[int, ...]) -> bool:
        for row, room, most in zip(counts, capacity, window, strict=True):
            members = np.flatnonzero(row)
            if (
                len(members) > 1
                and max(begin[i] + durations[i] for i in members) - min(begin[i] for i in members)
                > most
            ):
                return False
            for t in range(horizon):
                if (
                    sum(
                        (
                            row[i] * demands[i]
                            for i in members
                            if begin[i] <= t < begin[i] + durations[i]
                        ),
                        np.zeros(2),
                    )
                    > room
                ).any():
                    return False
        return True

    status, starts = common_starts(counts, demands, durations, capacity, window, horizon)
    exists = any(
        good(begin) for begin in itertools.product(*(range(horizon - d + 1) for d in durations))
    )
    assert status == int(exists)
    assert not exists or good(tuple(starts.tolist()))


@given(seed=st.integers(0, 10**6))
def test_knapsack(seed: int) -> None:
    """Against all counts; the counts returned are worth what is said, and fit."""
    rng = np.random.default_rng(seed)
    demands, most, capacity = (
        rng.integers(0, 4, size=(4, 2)),
        rng.integers(1, 3, size=4),
        rng.integers(2, 8, size=2),
    )
    value, setup = rng.random(4) * 3 - 0.5, rng.random(4)
    packing = Knapsack(demands, most, capacity)
    best, counts = packing.best(value, setup)

    def worth(n: Any) -> float:
        return float(sum(q * v - f for q, v, f in zip(n, value, setup, strict=True) if q))

    legal = [
        n
        for n in itertools.product(*(range(m + 1) for m in most))
        if (np.array(n) @ demands <= capacity).all()
    ]
    assert packing.exact
    assert best == pytest.approx(max(map(worth, legal)))
    assert worth(counts) == pytest.approx(best)
    assert (counts @ demands <= capacity).all()


@given(seed=st.integers(0, 10**6))
def test_zones_are_what_no_point_beats(seed: int) -> None:
    """A vector lies in a zone exactly if no point weakly dominates it."""
    rng = np.random.default_rng(seed)
    points, most = rng.integers(0, 5, size=(6, 3)), np.array([6, 6, 6])
    upper = local_upper_bounds(points, most)
    for vector in itertools.product(range(6), repeat=3):
        in_zone = (np.array(vector) < upper).all(axis=1).any()
        assert in_zone == (not (points <= np.array(vector)).all(axis=1).any())


@given(seed=st.integers(0, 10**6), lines=st.integers(2, 9))
def test_staircase_holds_whatever_satisfies_the_cuts(seed: int, lines: int) -> None:
    """The bound set weakly dominates every whole vector above the cuts, beyond the ranges too."""
    rng = np.random.default_rng(seed)
    cuts = rng.random((4, 3)) * (300, 9, 9)
    low = rng.integers(0, 5, size=2)
    bounds = staircase(cuts, low, low + rng.integers(0, 30, size=2), lines)
    for latency, interruption in low + rng.integers(0, 60, size=(40, 2)):
        cost = np.ceil(least_cost(cuts, latency, interruption))
        assert (bounds <= (latency, cost, interruption)).all(axis=1).any()


def dominated(bounds: np.ndarray, values: np.ndarray) -> bool:
    return all((bounds <= v).all(axis=1).any() for v in values)


@pytest.mark.parametrize("seed", [1])
def test_bounds_hold_for_whatever_is_feasible(seed: int) -> None:
    """No decoded vector, random or greedy, beats the configuration program.

    A bound with few cells is valid as well.
    """
    problem = Temporal.generate(seed=seed, requests=12)
    encoder = encoder_of(problem, problem.objectives)
    rng = np.random.default_rng(seed)
    X = encoder.sample(rng, 200)
    for _ in range(5):
        X = np.concatenate((X, encoder.vary(rng, X[-200:], X[-200:][::-1])))
    F, G = encoder.evaluate(X)
    for cells in (4, 30)[: tries(1, 2)]:
        front = bound(Task(problem, problem.objectives, Budget(), 1), cells=cells)
        assert len(front) >= 3 and all(
            p.values == problem.evaluate(p.plan).values and p.status in ("optimal", "bounded")
            for p in front.points
        )
        assert dominated(np.array(front.bounds), F[G.sum(axis=1) == 0])


def test_bounds_hold_for_exact_fronts_and_limits() -> None:
    """The configuration program lies below the exact front, and below plans within limits."""
    for seed in range(tries(1, 2)):
        problem = Temporal.generate(seed=seed, requests=4, max_replicas=2)
        exact = bin_plans(Task(problem, problem.objectives, Budget(), 1))
        free = np.array(bound(Task(problem, problem.objectives, Budget(), 1), cells=20).bounds)
        assert dominated(free, exact.values)
        offers = [offer | {"max_instances": 30} for offer in problem.to_document()["offers"]]
        limited = Temporal.from_document(problem.to_document() | {"offers": offers})
        plenty = np.array(bound(Task(limited, limited.objectives, Budget(), 1), cells=20).bounds)
        assert dominated(plenty, exact.values)
        with pytest.raises(UnsupportedError, match="max_instances"):
            bin_plans(Task(limited, limited.objectives, Budget(), 1))


def test_limits_on_machines_raise_the_bound() -> None:
    """Two requests, one cheap machine: the second must lease the dear one."""
    offers = [
        {
            "location": "north",
            "size": "cheap",
            "cpu_cores": 2,
            "memory_gib": 2,
            "on_demand_usd_per_hour": 0.1,
            "max_instances": 1,
        },
        {
            "location": "north",
            "size": "dear",
            "cpu_cores": 2,
            "memory_gib": 2,
            "on_demand_usd_per_hour": 1.0,
        },
    ]
    request = {
        "cpu_cores": 2,
        "memory_gib": 2,
        "duration_slots": 4,
        "replicas": 1,
        "origin": "north",
    }
    document = tiny(0, horizon=4).to_document() | {
        "offers": offers,
        "requests": [request | {"name": "a"}, request | {"name": "b"}],
    }
    problem = Temporal.from_document(document)
    front = bound(Task(problem, problem.select(["cost_usd"]), Budget(), 1))
    assert front.bounds[0][0] == pytest.approx(4.4, abs=1e-5)


def test_unreachable_places_and_absent_prices_are_left_out() -> None:
    """A place without a latency hosts nobody; a price that is absent is never paid."""
    problem = tiny(5, offers=2)
    document = problem.to_document()
    document["latency_ms"] = {"north": {"north": 1.0}, "south": {"north": 9.0, "south": 1.0}}
    document["offers"][0]["on_demand_usd_per_hour"] = 0.4
    document["requests"][0]["origin"] = "north"
    problem = Temporal.from_document(document)
    front = bin_plans(Task(problem, problem.objectives, Budget(), 1))
    assert np.array_equal(front.values, minimal(all_values(problem)))


def test_an_early_end_keeps_valid_bounds_and_a_plan() -> None:
    """With no time at all there is still a feasible plan, and a bound set below the true front."""
    problem = Temporal.generate(seed=3, requests=5, max_replicas=2)
    exact = bin_plans(Task(problem, problem.objectives, Budget(), 1))
    hurried = bin_plans(Task(problem, problem.objectives, Budget(seconds=1e-6), 1))
    assert hurried.points and not hurried.runs[0].completed
    assert dominated(np.array(hurried.bounds), exact.values)
    assert dominated(
        np.array(bound(Task(problem, problem.objectives, Budget(seconds=1e-6), 1)).bounds),
        exact.values,
    )


def test_same_call_same_front_and_a_start_changes_nothing() -> None:
    """Determinism; plans to start from only save work."""
    problem = Temporal.generate(seed=4, requests=5, max_replicas=2)
    front = bin_plans(Task(problem, problem.objectives, Budget(), 1))
    again = bin_plans(Task(problem, problem.objectives, Budget(), 2, start=front))
    assert np.array_equal(front.values, again.values) and front.bounds == again.bounds


def test_certify_grades_points() -> None:
    """Exact points are recognised; a point that is beaten gets the share by which it may be.

    The gap is reported.
    """
    problem = Temporal.generate(seed=6, requests=5, max_replicas=2)
    exact = bin_plans(Task(problem, problem.objectives, Budget(), 1))
    plain = replace(
        exact, points=tuple(replace(p, status="heuristic") for p in exact.points[::2]), bounds=()
    )
    graded = certify(problem, plain, Budget())
    assert {p.status for p in graded.points} <= {"optimal", "bounded"}
    assert 2 * sum(p.status == "optimal" for p in graded.points) > len(graded.points)
    assert graded.runs[-1].parameters["bounds"] == "bin-plans" and graded.gap() != 0.0
    large = Temporal.generate(seed=6, requests=12)
    genes = encoder_of(large, large.objectives)
    plan = genes.decode(genes.sample(np.random.default_rng(1), 1)[0])
    point = replace(
        exact.points[0], values=large.evaluate(plan).values, plan=plan, status="heuristic"
    )
    graded = certify(
        large,
        replace(exact, instance=large.instance_name, points=(point,), bounds=()),
        Budget(seconds=2),
    )
    assert graded.points[0].status == "bounded" and 0 < (graded.points[0].gap or 0) < 1


def test_too_many_sets_are_refused_by_name() -> None:
    """The paper's size is for `bound`."""
    problem = Temporal.generate(seed=1, requests=50)
    with pytest.raises(UnsupportedError, match="bound"):
        bin_plans(Task(problem, problem.objectives, Budget(), 1))
    assert len(strides(numbers(problem, problem.objectives).replicas)) == 51
    with pytest.raises(InfeasibleInstanceError):
        bin_plans(
            Task(
                tiny(0, horizon=4, requests=1, latency_ms={"north": {}, "south": {}}),
                problem.objectives,
                Budget(),
                1,
            )
        )


def test_patterns_that_parts_replace_are_dropped() -> None:
    """Every pattern costs less than any way to cut its set in two within its class."""
    patterns = build_patterns(
        numbers(
            problem := Temporal.generate(seed=2, requests=4, max_replicas=2), problem.objectives
        )
    )
    assert patterns.proven
    step = strides(patterns.numbers.replicas)
    for w in range(len(patterns)):
        n = patterns.counts[w]
        for part in itertools.product(*(range(q + 1) for q in n)):
            code = sum(int(q) * int(s) for q, s in zip(part, step[:-1], strict=True))
            if 0 < code < patterns.codes[w]:
                assert (
                    patterns.best[patterns.classes[w], code]
                    + patterns.best[patterns.classes[w], patterns.codes[w] - code]
                    > patterns.cost[w]
                )
