"""Kernels that several problems share."""

from __future__ import annotations

import networkx as nx
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from placeopt.core.kernels.common import below, join, mix, most_worse, next_bits, root, uniform


def test_bits_are_those_of_the_reference_implementation() -> None:
    """The first numbers of splitmix64 from seed 1234567, as its authors' C code prints them."""
    state = np.array([1234567], dtype=np.uint64)
    assert [int(next_bits(state)) for _ in range(5)] == [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ]
    assert int(mix(np.uint64(0))) == 0


def test_generators_of_one_state_do_not_touch_each_other() -> None:
    alone, together = np.array([7], dtype=np.uint64), np.array([3, 7], dtype=np.uint64)
    drawn = []
    for _ in range(20):
        below(together, 10, 0)
        drawn.append(uniform(together, 1))
    assert drawn == [uniform(alone) for _ in range(20)]


def test_numbers_are_spread_evenly() -> None:
    state = np.array([5], dtype=np.uint64)
    counts = np.bincount([below(state, 8) for _ in range(16_000)], minlength=8)
    assert len(counts) == 8 and abs(counts - 2000).max() < 200
    shares = np.array([uniform(state) for _ in range(10_000)])
    assert 0 <= shares.min() and shares.max() < 1 and abs(shares.mean() - 0.5) < 0.02


def test_annealing_takes_what_is_worse_with_the_odds_of_metropolis() -> None:
    state = np.array([9], dtype=np.uint64)
    drawn = np.array([most_worse(2.0, state) for _ in range(20_000)])
    assert (drawn >= 0).all() and most_worse(0.0, state) == 0
    for worse in (0.5, 2.0, 6.0):
        assert abs((drawn >= worse).mean() - np.exp(-worse / 2.0)) < 0.01


@given(st.integers(1, 12), st.lists(st.tuples(st.integers(0, 11), st.integers(0, 11))))
def test_sets_are_the_components_of_a_graph(count: int, pairs: list[tuple[int, int]]) -> None:
    graph = nx.empty_graph(count)
    parent = np.arange(count)
    for one, other in ((a % count, b % count) for a, b in pairs):
        assert join(parent, one, other) == (not nx.has_path(graph, one, other))
        graph.add_edge(one, other)
    for component in nx.connected_components(graph):
        assert len({int(root(parent, member)) for member in component}) == 1
    assert len({int(root(parent, m)) for m in range(count)}) == nx.number_connected_components(
        graph
    )
