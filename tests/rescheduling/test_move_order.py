"""Orders of moves: each move has room, the target is reached, and the shortest are shortest."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from placeopt.core.errors import DocumentError
from placeopt.rescheduling.arrays import call_order
from placeopt.rescheduling.encoder import MAX_HOPS, arrange, arranged, misplaced, shortest
from placeopt.rescheduling.problem import Rescheduling


def swap(num_nodes: int, services: int = 2) -> Rescheduling:
    """Service k fills node k; the nodes after those are empty."""
    size = {"cpu_cores": 1.0, "memory_gib": 1.0}
    names = [f"n{k}" for k in range(num_nodes)]
    return Rescheduling.from_document(
        {
            "problem": "rescheduling",
            "name": "swap",
            "nodes": [{"name": n, "kind": "x", **size, "user_latency_ms": 1.0} for n in names],
            "latency_ms": {a: {b: 1.0 for b in names if b > a} for a in names},
            "services": [
                {"name": f"s{k}", **size, "execution_ms": {"x": 1.0}, "replicas": [names[k]]}
                for k in range(services)
            ],
            "gateway": "s0",
        }
    )


@given(st.integers(0, 10**6), st.integers(1, 3))
def test_orders_are_what_the_referee_says(seed: int, replicas: int) -> None:
    """`left` is 0 exactly if the plan is feasible; the target is reached either way."""
    problem = Rescheduling.generate(seed, replicas=replicas, cloud_a=1, edge_a=1, edge_b=2)
    instance, rng = problem.arrays, np.random.default_rng(seed)
    target = rng.multinomial(replicas, np.full(4, 1 / 4), size=len(instance.replicas))
    moves = np.zeros((misplaced(instance.home, target) + MAX_HOPS, 3), dtype=np.int32)
    count, left = arrange(instance, target, moves)
    plan = problem.plan(moves[:count].tolist())
    assert problem.evaluate(plan).feasible == (left == 0)
    assert (problem.final_counts(plan) == target).all()


def test_a_swap_needs_a_hop() -> None:
    """By way of the third node; without it there is no order, and both searches say so."""
    target = np.eye(2, 3, dtype=np.int64)[::-1].copy()
    instance = swap(3).arrays
    found = arranged(instance, target, 3)
    assert found is not None and len(found) == 3
    assert arranged(instance, target, 2) is None
    full = swap(2).arrays
    assert arranged(full, target[:, :2].copy(), 9) is None
    assert shortest(full, target[:, :2]) == (None, True)


def test_a_search_that_gives_up_proves_nothing() -> None:
    instance = swap(6, services=5).arrays
    target = np.roll(instance.home, 1, axis=0)
    assert shortest(instance, target, max_states=3) == (None, False)
    moves, proven = shortest(instance, target)
    assert proven and len(moves or ()) == 6


def test_call_order_puts_callees_first_and_names_circles() -> None:
    groups = [[[1, 2], [3]], [[3]], [], [], [[0]]]
    order = call_order("abcde", groups, 0)
    assert sorted(order) == [0, 1, 2, 3] and order[-1] == 0 and order.index(3) < order.index(1)
    with pytest.raises(DocumentError, match="in a circle: b -> c -> d -> b") as found:
        call_order("abcd", [[[1]], [[2]], [[3]], [[1]]], 0)
    assert found.value.path == "services[3].calls"
