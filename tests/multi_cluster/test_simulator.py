"""The kernels of outcomes and transition against plain Python, one environment at a time."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from multi_cluster_twins import FixedEpisode, best_fit, first_fit

from placeopt.multi_cluster.episodes import outcomes as fixed
from placeopt.multi_cluster.episodes import transition
from placeopt.multi_cluster.episodes.state import (
    ACCEPTED,
    CPU,
    LAST_GINI,
    LATENCY,
    SPREADS,
    SUMS,
    allocate,
)

ROOM = st.integers(0, 30)
SIZE = st.integers(1, 6)


@given(
    free=st.lists(st.tuples(ROOM, ROOM), min_size=2, max_size=6),
    demand=st.tuples(SIZE, SIZE),
    asked=st.integers(2, 12),
    more=st.integers(0, 9),
)
def test_spreads_are_those_of_the_paper(free, demand, asked, more) -> None:
    """FFD, FFI and BF1B1: the same replicas, and refused for the same reasons."""
    clusters = len(free)
    capacity = [(cpu + 1 + more * c, memory + 1 + more) for c, (cpu, memory) in enumerate(free)]
    order, remaining = np.zeros(clusters, np.int64), np.zeros(clusters)
    split, accepts = np.zeros((3, clusters), np.int64), np.zeros(clusters + 4, dtype=np.bool_)
    arrays = (np.array(free), np.array(capacity), np.array(demand))
    fixed._spread(*arrays, asked, order, remaining, split, accepts)
    wanted = [
        first_fit(free, demand, asked, True),
        first_fit(free, demand, asked, False),
        best_fit(free, capacity, demand, asked),
    ]
    for s, found in enumerate(wanted):
        assert accepts[clusters + s] == (found is not None)
        assert found is None or split[s].tolist() == found


def episodes(seed: int, clusters: int, steps: int, rate: float, max_replicas: int):
    """Two environments with small whole resources, before their first request."""
    rng = np.random.default_rng(seed)
    traces, state, outcomes = allocate(2, clusters, steps)
    traces.scale[:] = 1, 16
    traces.capacity[:] = rng.integers(10, 60, traces.capacity.shape)
    state.used[:] = rng.integers(0, 5, state.used.shape)
    traces.price[:] = rng.integers(1, 17, traces.price.shape)
    traces.base[:] = rng.integers(1, 1000, traces.base.shape)
    traces.demand[:] = rng.integers(1, 6, traces.demand.shape)
    traces.replicas[:] = rng.integers(1, max_replicas + 1, traces.replicas.shape)
    traces.arrival[:] = np.cumsum(rng.integers(0, 3, traces.arrival.shape), axis=1)
    traces.departure[:] = traces.arrival + rng.integers(0, int(rate), traces.arrival.shape)
    traces.increase[:] = rng.random(traces.increase.shape) * 0.15
    return traces, state, outcomes, rng


@given(
    seed=st.integers(0, 10**6),
    clusters=st.integers(2, 5),
    rate=st.sampled_from((2, 8, 25)),
    max_replicas=st.sampled_from((1, 4, 12)),
)
def test_fixed_episodes_are_those_of_plain_python(seed, clusters, rate, max_replicas) -> None:
    """Every action of every step: whether it places, what it leads to, and what a step changes."""
    steps, everyone = 15, np.arange(2)
    traces, state, outcomes, rng = episodes(seed, clusters, steps, rate, max_replicas)
    plain = [FixedEpisode(traces, state.used[k].tolist(), k) for k in range(2)]
    transition.begin_all(traces, state, everyone)
    rewards, seen = np.zeros((2, 3)), [[], []]
    for t in range(steps):
        fixed.refresh_all(traces, state, outcomes, everyone)
        actions = rng.integers(0, clusters + 4, 2)
        wanted = []
        for k, one in enumerate(plain):
            assert state.free[k].tolist() == [list(row) for row in one.free()]
            running = one.running()
            assert state.active[k] == len(running)
            assert state.latency[k] == pytest.approx(
                [one.latency(c, running) for c in range(clusters)]
            )
            placements = [one.placement(a) for a in range(clusters + 4)]
            places = [p is not None for p in placements]
            assert outcomes.accepts[k].tolist() == places
            assert outcomes.masks[k].tolist() == [*places[:-1], True]
            assert outcomes.refusal[k] == (-1 if any(places) else 0)
            for a, placed in enumerate(placements):
                if placed is not None:
                    assert outcomes.outcome[k, a] == pytest.approx(one.outcome(placed))
                    parts = one.parts(one.outcome(placed))
                    assert outcomes.parts[k, a] == pytest.approx(parts, abs=1e-12)
                else:
                    assert outcomes.parts[k, a].tolist() == [outcomes.refusal[k]] * 3
            placed = placements[actions[k]]
            wanted.append(outcomes.parts[k, actions[k]].tolist())
            if placed is not None:
                left = [
                    f[0] - n * one.request["demand"][0]
                    for f, n in zip(one.free(), placed, strict=True)
                ]
                use = [100 * (1 - f / c[0]) for f, c in zip(left, one.capacity, strict=True)]
                mean = sum(u * n for u, n in zip(use, placed, strict=True)) / sum(placed)
                seen[k].append((*one.outcome(placed), mean, actions[k] >= clusters))
            one.history.append(placed or [0] * clusters)
        transition.step_all(traces, state, outcomes, actions, rewards)
        assert rewards.tolist() == wanted and state.now.tolist() == [t + 1] * 2
    for k, one in enumerate(plain):
        assert state.placed[k].tolist() == one.history
        assert (state.action[k] >= 0).tolist() == [any(placed) for placed in one.history]
        sums = np.zeros(SUMS)
        for latency, cost, gini, usage, spread in seen[k]:
            sums[ACCEPTED] += 1
            sums[LATENCY : LATENCY + 3] += latency, cost, gini
            sums[CPU] += usage
            sums[LAST_GINI] = gini
            sums[SPREADS] += spread
        assert state.sums[k] == pytest.approx(sums)
    before = state.placed.copy()
    transition.step_all(traces, state, outcomes, actions, rewards)
    assert (rewards == 0).all() and (state.placed == before).all(), "after the end"
