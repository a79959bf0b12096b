"""The best node for a hop: by the tree, as by a look at each node."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from placeopt.core.kernels.first_above import fill, next_above, power_above, put
from placeopt.rolling_update import roomiest


def best_by_hand(moves: Any, state: Any, new: np.ndarray) -> tuple[int, float]:
    best_n, best = -1, -np.inf
    for n, capacity in enumerate(moves.capacity.tolist()):
        gone = moves.leaves[n] and state.claims[n] == 0
        if moves.usable[n] and not gone and (state.load[n] + new <= capacity).all():
            score = 1.0
            for r, room in enumerate(capacity):
                short = int(state.waiting[n, r] + state.load[n, r] + new[r]) - room
                score -= short / max(1, room) * (10 if short > 0 else 0.01)
            if score > best:
                best_n, best = n, score
    return best_n, best


@pytest.fixture(autouse=True)
def without_compiling(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_may_host", "_bound", "_score", "fits", "following"):
        monkeypatch.setattr(roomiest, name, getattr(roomiest, name).py_func)


def best_by_search(tree: np.ndarray, moves: Any, state: Any) -> tuple[int, float]:
    best_n, best = -1, -np.inf
    n, score = roomiest.next_better.py_func(tree, moves, state, 0, 1, -1, best)
    while n >= 0:
        best_n, best = n, score
        n, score = roomiest.next_better.py_func(tree, moves, state, 0, 1, n, best)
    return best_n, best


def test_the_tree_leads_to_the_first_of_the_best_nodes() -> None:
    rng, none = np.random.default_rng(3), 0
    for _ in range(300):
        nodes = int(rng.integers(1, 20))
        size = (nodes, 2)
        arrays: dict[str, Any] = {
            "capacity": rng.integers(0, 12, size),
            "usable": rng.random(nodes) < 0.8,
            "leaves": rng.random(nodes) < 0.3,
            "new": rng.integers(0, 6, (1, 2)),
        }
        moves: Any = SimpleNamespace(**arrays)
        state: Any = SimpleNamespace(
            load=rng.integers(0, 8, size),
            waiting=rng.integers(0, 6, size),
            claims=rng.integers(0, 2, nodes),
        )
        tree = np.empty((2 * power_above(nodes), 2, 4), np.int64)
        roomiest.fill_rooms.py_func(tree, moves, state)
        for n in rng.integers(0, nodes, 3).tolist():
            state.load[n] = rng.integers(0, 8, 2)
            roomiest.put_room.py_func(tree, moves, state, n)
        by_hand = best_by_hand(moves, state, moves.new[0])
        assert best_by_search(tree, moves, state) == by_hand
        assert best_by_search(tree[:0], moves, state) == by_hand
        none += by_hand[0] < 0
    assert 20 < none < 250


def test_the_next_value_of_a_level_is_the_first_one() -> None:
    rng = np.random.default_rng(4)
    tree, values = np.full(32, -1.0), np.full(16, -1.0)
    values[:11] = tree[16:27] = rng.integers(0, 5, 11)
    fill(tree, 16)
    for _ in range(200):
        place, value = int(rng.integers(11)), float(rng.integers(0, 5))
        values[place] = value
        put(tree, 16, place, value)
        start, level = int(rng.integers(17)), float(rng.integers(0, 6))
        later = [k for k in range(start, 16) if values[k] >= level]
        assert next_above(tree, 16, start, level) == (later[0] if later else -1)
        assert tree[1] == values.max()
