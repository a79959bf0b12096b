"""Schedules of partitions against all starts and all leases."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from temporal_instances import tiny

from placeopt.temporal.exact import schedule as certificate
from placeopt.temporal.exact.schedule import UNKNOWN, Scheduler
from placeopt.temporal.exact.tables import Patterns, build_patterns, numbers
from placeopt.temporal.problem import Temporal


def random_partition(
    patterns: Patterns, rng: np.random.Generator, *, mixed: bool = False
) -> tuple[int, ...]:
    """Return patterns that place every replica once, or nothing where the draws lead nowhere.

    `mixed` prefers patterns of several requests.
    """
    left, used = patterns.numbers.replicas.copy(), []
    while left.any():
        fits = np.flatnonzero((patterns.counts <= left).all(axis=1))
        if len(fits) == 0:
            return ()
        odds = 10.0 ** (patterns.counts[fits] > 0).sum(axis=1) if mixed else np.ones(len(fits))
        used.append(int(rng.choice(fits, p=odds / odds.sum())))
        left = left - patterns.counts[used[-1]]
    return tuple(used)


def brute_force(patterns: Patterns, partition: tuple[int, ...]) -> tuple[float, float]:
    """Return the least cost over all starts and leases; machines paid while busy, or throughout.

    Throughout is from the first start to the last end on a machine.
    """
    data = patterns.numbers
    busy_best = span_best = np.inf
    for starts in itertools.product(*(range(data.horizon - d + 1) for d in data.durations)):
        runs = np.zeros((len(starts), data.horizon), dtype=np.int64)
        for i, start in enumerate(starts):
            runs[i, start : start + data.durations[i]] = 1
        busy_cost = span_cost = 0.0
        for w in partition:
            load = np.einsum("i,it,ir->tr", patterns.counts[w], runs, data.demands)
            slots = np.flatnonzero(patterns.counts[w] @ runs)
            span = slots[-1] - slots[0] + 1
            able = [
                lease
                for lease in patterns.machines[patterns.classes[w]].leases
                if (load <= data.sizes[lease.size]).all()
            ]
            for cost, paid in (("busy", len(slots)), ("span", span)):
                least = min(
                    (x.price * (data.horizon if x.reserved else paid) for x in able),
                    default=np.inf,
                )
                if cost == "busy":
                    busy_cost += least
                else:
                    span_cost += least
        busy_best, span_best = min(busy_best, busy_cost), min(span_best, span_cost)
    return busy_best, span_best


@pytest.mark.parametrize("seed", range(20))
def test_least_cost(seed: int) -> None:
    """Schedules are feasible plans of the cost that is said; what is proven is the least cost."""
    problem = tiny(seed, requests=3, horizon=5)
    data = numbers(problem, problem.objectives)
    patterns = build_patterns(data, everything=True)
    scheduler, rng = Scheduler(patterns), np.random.default_rng(seed)
    checked = 0
    for _ in range(6):
        if not (partition := random_partition(patterns, rng)):
            continue
        checked += 1
        low, high = brute_force(patterns, partition)
        schedule, proven = scheduler.least_cost(partition, 2**60)
        assert proven
        if schedule is None:
            assert high == np.inf
            continue
        assert low <= schedule.cost <= high
        plan = schedule.plan(data)
        assert problem.evaluate(plan).feasible
        assert tuple(data.whole(plan)) == scheduler.vector(partition, schedule)
        assert scheduler.least_cost(partition, schedule.cost)[0] is None
        certified = scheduler.certify(partition)
        claimed = int(patterns.cost[list(partition)].sum())
        assert (certified is not None) == (schedule.cost == claimed)
    assert checked


def test_patterns_that_share_a_request_are_searched_together() -> None:
    """Two replicas of a long request on two machines, each with another request: starts are common.

    Each machine alone is busy for 4 slots. Request `a` must start before `b` on one machine and
    after it on the other, unless a machine waits.
    """
    base = tiny(0, horizon=4).to_document()
    request = {"cpu_cores": 2, "memory_gib": 2, "origin": "north", "duration_slots": 2}
    offer = {"location": "north", "size": "s", "cpu_cores": 2, "memory_gib": 2}
    document = base | {
        "offers": [offer | {"on_demand_usd_per_hour": 1.0}],
        "requests": [request | {"name": name, "replicas": 2} for name in "ab"],
    }
    problem = type(tiny(0)).from_document(document)
    data = numbers(problem, problem.objectives)
    patterns = build_patterns(data, everything=True)
    both = int(np.flatnonzero((patterns.counts == 1).all(axis=1))[0])
    schedule = Scheduler(patterns).certify((both, both))
    assert schedule is not None
    assert sorted(schedule.starts.tolist()) == [0, 2] and schedule.cost == 8 * data.leases[0].price


def entangled(seed: int) -> tuple[Patterns, list[tuple[int, ...]]]:
    """Return an instance and partitions whose machines share requests, and may be of many leases.

    One place, four requests of up to three replicas, three sizes of machine at near prices.
    """
    rng = np.random.default_rng(seed)
    offers = [
        {
            "location": "north",
            "size": f"s{k}",
            "cpu_cores": int(rng.integers(4, 6)),
            "memory_gib": int(rng.integers(4, 6)),
            "on_demand_usd_per_hour": round(0.1 * int(rng.integers(6, 10)), 1),
            "reserved_usd_per_hour": round(0.1 * int(rng.integers(3, 7)), 1),
        }
        for k in range(3)
    ]
    requests = [
        {
            "name": f"r{k}",
            "cpu_cores": int(rng.integers(1, 4)),
            "memory_gib": int(rng.integers(1, 4)),
            "origin": "north",
            "duration_slots": int(rng.integers(1, 4)),
            "replicas": int(rng.integers(2, 4)),
        }
        for k in range(4)
    ]
    problem = tiny(seed, horizon=5).to_document()
    problem = Temporal.from_document(problem | {"offers": offers, "requests": requests})
    patterns = build_patterns(numbers(problem, problem.objectives), everything=True)
    drawn = [random_partition(patterns, rng, mixed=True) for _ in range(10)]
    return patterns, sorted({partition for partition in drawn if partition})


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("scarce", ["nodes", "choices", "starts", "nothing"])
def test_what_is_proven_within_limits_is_true(
    seed: int, scarce: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where nodes, choices of leases or starts run out, an answer is true or is not proven.

    One scheduler is asked again and again, with limits of cost that rise and fall: what it
    remembers of one question must not spoil the next.
    """
    patterns, partitions = entangled(seed)
    truth = {}
    with monkeypatch.context() as plenty:
        plenty.setattr(certificate, "_MAX_NODES", 10**6)
        plenty.setattr(certificate, "_MAX_CHOICES", 10**6)
        for partition in partitions:
            schedule, proven = Scheduler(patterns).least_cost(partition, 2**60)
            assert proven
            truth[partition] = np.inf if schedule is None else schedule.cost

    rng = np.random.default_rng(seed)
    if scarce == "nodes":
        monkeypatch.setattr(certificate, "_MAX_NODES", 2)
    elif scarce == "choices":
        monkeypatch.setattr(certificate, "_MAX_CHOICES", 1)
    elif scarce == "starts":
        search = certificate.common_starts

        def gives_up(*given: Any) -> tuple[int, np.ndarray]:
            status, starts = search(*given)
            return (UNKNOWN if rng.random() < 0.5 else status), starts

        monkeypatch.setattr(certificate, "common_starts", gives_up)
    scheduler = Scheduler(patterns)
    for partition in partitions:
        least = truth[partition]
        claimed = int(patterns.cost[list(partition)].sum())
        near = claimed + 3 if least == np.inf else int(least)
        best = np.inf
        for limit in (near + 1, near, claimed + 1, 2**60, near + 1, near + 50, near - 1):
            schedule, proven = scheduler.least_cost(partition, limit)
            if schedule is None:
                assert not proven or least >= limit
                assert best >= limit
            else:
                assert least <= schedule.cost < limit
                assert not proven or schedule.cost == least
                assert schedule.cost <= best
                best = schedule.cost


@pytest.mark.parametrize("seed", [142, 568])
def test_least_cost_where_machines_trade_length(seed: int) -> None:
    """The cheapest schedule keeps one machine busy for longer, so that another ends sooner."""
    patterns, partitions = entangled(seed)
    for partition in partitions:
        low, high = brute_force(patterns, partition)
        schedule, proven = Scheduler(patterns).least_cost(partition, 2**60)
        assert proven
        assert high == np.inf if schedule is None else low <= schedule.cost <= high
