"""The order of moves: against exhaustive search, and replayed step by step."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from placeopt.rolling_update import order as kernels
from placeopt.rolling_update.order import Reach, plan_moves
from placeopt.rolling_update.problem import RollingUpdate
from placeopt.rolling_update.rules import tables

MANY = 2**40
#: The tables of no rules for 48 microservices on 8 nodes.
RULES = tables(
    (),
    groups=[()] * 48,
    allowed=[None] * 48,
    node_sets={},
    domains={},
    home=np.zeros(48, int),
    residents={},
    num_nodes=8,
).packed()
NOTHING = np.zeros(1, int)


def draw(rng: np.random.Generator, most: int = 8) -> tuple[Any, np.ndarray] | None:
    """Return random moves whose target fits, and the loads they start from."""
    nodes, count = int(rng.integers(2, 5)), int(rng.integers(1, most + 1))
    capacity = rng.integers(6, 14, size=(nodes, 2))
    home, target = rng.integers(0, nodes, count), rng.integers(0, nodes, count)
    old = rng.integers(0, 5, size=(count, 2))
    new = (
        rng.integers(0, 5, size=(count, 2))
        if rng.random() < 0.5
        else old // rng.choice([1, 2], size=(count, 1))
    )
    load = rng.integers(0, 3, size=(nodes, 2))
    end = load.copy()
    np.add.at(load, home, old)
    np.add.at(end, target, new)
    if (end > capacity).any() or ((load > capacity).any() and rng.random() < 0.9):
        return None
    usable = rng.random(nodes) < 0.9
    return (
        kernels.grouped(
            np.arange(count),
            np.ones(count, bool),
            RULES,
            -1,
            capacity,
            usable,
            home,
            old,
            new,
            target,
            rng.random(count) < 0.1,
            np.bincount(home, minlength=nodes),
        ),
        load,
    )


def exhaustive(work: Any, load: np.ndarray) -> bool:
    """Whether any order makes every move once: all subsets of moves that can be reached."""
    full, seen, waiting = (1 << len(work.target)) - 1, {0}, [(0, load)]
    while waiting:
        made, now = waiting.pop()
        if made == full:
            return True
        for p, n in enumerate(work.target):
            if (
                not made >> p & 1
                and made | 1 << p not in seen
                and (now[n] + work.new[p] <= work.capacity[n]).all()
            ):
                after = now.copy()
                after[n] += work.new[p]
                after[work.home[p]] -= work.old[p]
                seen.add(made | 1 << p)
                waiting.append((made | 1 << p, after))
    return False


def replay(work: Any, load: np.ndarray, state: Any) -> None:
    load, where, size = load.copy(), work.home.copy(), work.old.copy()
    for p, n in state.steps[: state.tally[0], :2].tolist():
        if n >= 0:
            load[n] += work.new[p]
            assert (load[n] <= work.capacity[n]).all()
            assert work.usable[n] or n == work.target[p]
            assert not work.pinned[p] or n == work.target[p]
        if where[p] >= 0:
            load[where[p]] -= size[p]
        where[p] = n
        size[p] = work.new[p] if n >= 0 else 0
    assert (where == work.target).all()


def test_a_direct_order_is_found_exactly_where_one_exists() -> None:
    rng = np.random.default_rng(4)
    without = 0
    for work, load in filter(None, (draw(rng) for _ in range(2500))):
        state, direct, complete = kernels.order(
            work, load, NOTHING, 5000, 0, 0, 0.0, 0, work.pinned
        )
        exists = exhaustive(work, load)
        assert direct == (kernels.FOUND if exists else kernels.NONE)
        assert complete == exists
        without += not exists
        if exists:
            replay(work, load, state)
    assert without > 30


@pytest.mark.parametrize("noise", [0.0, 0.5])
def test_hops_and_stops_finish_what_has_no_direct_order(noise: float) -> None:
    rng = np.random.default_rng(5)
    stops = hops = 0
    for work, load in filter(None, (draw(rng, 12) for _ in range(1500))):
        ahead = rng.random(len(work.target)) < noise / 2
        state, direct, complete = kernels.order(work, load, NOTHING, 0, MANY, MANY, noise, 3, ahead)
        assert complete
        replay(work, load, state)
        assert (direct == kernels.FOUND) == (state.tally[2] + state.tally[3] == 0)
        hops, stops = hops + int(state.tally[2]), stops + int(state.tally[3])
    assert hops > 20
    assert stops > 20


def two_full_nodes(spare: bool) -> RollingUpdate:
    nodes = [
        {"name": n, "cluster": "c0", "cpu_millicores": 10, "memory_mib": 10, "price": 1.0}
        for n in ("n1", "n2", "n3")[: 2 + spare]
    ]
    size = {"cpu_millicores": 8, "memory_mib": 1}
    apps = [
        {"name": a, "microservices": [{"name": "m", "node": n, **size}], "flows": []}
        for a, n in (("a", "n1"), ("b", "n2"))
    ]
    return RollingUpdate.from_document(
        {"problem": "rolling-update", "name": "swap", "nodes": nodes, "applications": apps}
    )


@pytest.mark.parametrize(
    ("spare", "limits", "expected"),
    [
        (True, {}, (1, 0, True)),
        (True, {"max_hops": 0}, (0, 1, True)),
        (False, {}, (0, 1, True)),
        (False, {"max_stops": 0}, (0, 0, False)),
    ],
)
def test_two_full_nodes_swap_by_a_hop_or_a_stop(
    spare: bool, limits: dict[str, int], expected: tuple[int, int, bool]
) -> None:
    problem = two_full_nodes(spare)
    found = plan_moves(problem, np.array([1, 0]), **limits)  # type: ignore[arg-type]
    assert found.direct is False
    assert (found.hops, found.stops, found.complete) == expected
    if found.complete:
        verdict = problem.evaluate(problem.plan(found.steps))
        assert verdict.feasible
        assert verdict.values[1:] == (2.0 + found.hops, float(found.stops))


@pytest.mark.parametrize("seed", range(6))
def test_generated_targets_are_reached(seed: int) -> None:
    problem = RollingUpdate.generate(seed, clusters=2 + seed % 3)
    target = problem.arrays.home.copy()
    found: Reach = plan_moves(problem, target, tries=4)
    assert problem.arrays.starts_of(target).sum() == 10
    verdict = problem.evaluate(problem.plan(found.steps))
    assert verdict.feasible
    assert verdict.values == (12.0, 10.0 + found.hops, found.stops)
    assert found == plan_moves(problem, target, tries=4)


def test_what_rules_let_in_last_goes_round_them_first() -> None:
    """A zone is as full as its spread allows: a copy moves within it by way of the other zone.

    Later there is no room for it there.
    """
    size = {"cpu_millicores": 4, "memory_mib": 1}
    rooms = {"a": 4, "b": 4, "d": 4, "e": 8, "c": 10, "c0": 4}
    nodes = [
        {"name": n, "cluster": "z" if n[0] == "c" else "y", "price": 1.0}
        | {"cpu_millicores": cpu, "memory_mib": 10}
        for n, cpu in rooms.items()
    ]
    copies = [
        {"name": f"m{k}", "node": n, "groups": ["web"], **size}
        for k, n in enumerate(("a", "d", "c0"))
    ]
    other = {"name": "x", "node": "e", "cpu_millicores": 8, "memory_mib": 1}
    problem = RollingUpdate.from_document(
        {
            "problem": "rolling-update",
            "name": "round",
            "nodes": nodes,
            "applications": [{"name": "all", "microservices": [*copies, other], "flows": []}],
            "rules": [{"kind": "spread", "group": "web", "per": "cluster", "max_skew": 1}],
        }
    )
    target = np.array([1, 2, 5, 4])
    assert not plan_moves(problem, target, max_stops=0, states=0, tries=1).complete
    result = plan_moves(problem, target, max_stops=0, states=0, tries=2)
    assert result.complete
    assert result.hops == 1
    verdict = problem.evaluate(problem.plan(result.steps))
    assert verdict.feasible
    assert verdict.values[2] == 0
