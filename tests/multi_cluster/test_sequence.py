"""The multi-cluster simulator: equal to plain Python, its contract, and the sequence."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from multi_cluster_plain import Plain

from placeopt.core.errors import UsageError
from placeopt.core.interfaces import build_sequence
from placeopt.multi_cluster.episodes.stream import UNIT, EpisodeBatch, MultiClusterBatch
from placeopt.multi_cluster.generator import DEPLOYMENTS, TYPES
from placeopt.multi_cluster.problem import MultiCluster
from placeopt.rollout import rollout


def seeds(count: int, first: int = 0) -> np.ndarray:
    return np.arange(first, first + count, dtype=np.uint64)


def any_legal(batch: EpisodeBatch, rng: np.random.Generator) -> np.ndarray:
    return np.where(batch.masks, rng.random(batch.masks.shape), -1).argmax(axis=1)


# -- step by step as plain Python ------------------------------------------------------------------


@given(
    seed=st.integers(0, 10**6),
    clusters=st.integers(2, 9),
    rate=st.sampled_from((5.0, 20.0, 100.0)),
    most=st.sampled_from((7, 16, 32)),
)
def test_simulator_equals_plain_python(seed: int, clusters: int, rate: float, most: int) -> None:
    """Masks, observations, splits, rewards and latencies of every step.

    Illegal actions now and then.
    """
    batch = MultiClusterBatch(3, clusters=clusters, rate=rate, replicas=(1, most), steps=40)
    batch.reset(seeds(3, seed))
    plain, rng = [Plain(batch, k) for k in range(3)], np.random.default_rng(seed)
    for _ in range(40):
        for k, one in enumerate(plain):
            assert one.mask() == batch.masks[k].tolist()
            assert np.allclose(one.rows(), batch.observations[k], rtol=1e-5, atol=1e-6)
            assert [one.latency(c) for c in range(clusters)] == pytest.approx(
                batch.state.latency[k].tolist(), rel=1e-12
            )
            for s in range(3):
                if batch.outcomes.accepts[k, clusters + s]:
                    assert one.spread(s)[0] == batch.outcomes.split[k, s].tolist()
        actions = any_legal(batch, rng)
        if rng.random() < 0.1:
            actions[:] = rng.integers(batch.num_actions)
        rewards, _ = batch.step(actions)
        for k, one in enumerate(plain):
            assert one.step(int(actions[k])) == pytest.approx(
                rewards[k].tolist(), rel=1e-12, abs=1e-12
            )


# -- spreads by hand -------------------------------------------------------------------------------


def spreads(
    free: list[tuple[float, float]], replicas: int, capacity: float = 4.0
) -> list[list[int] | None]:
    """Return what FFD, FFI and BF1B1 place of replicas of 1 core and 1 GiB, None where masked.

    Clusters alike but for what is free.
    """
    names = [f"c{k}" for k in range(len(free))]
    document = {
        "problem": "multi-cluster",
        "name": "x",
        "clusters": [
            {
                "name": n,
                "cpu_cores": capacity,
                "memory_gib": capacity,
                "cost": 1.0,
                "allocated_cpu_cores": capacity - cpu,
                "allocated_memory_gib": capacity - gib,
            }
            for n, (cpu, gib) in zip(names, free, strict=True)
        ],
        "latency_ms": {a: dict.fromkeys(names, 10) for a in names},
        "requests": [
            {
                "deployment": "x",
                "replicas": replicas,
                "cpu_cores": 1.0,
                "memory_gib": 1.0,
                "arrival": 0.0,
                "duration": 1.0,
            }
        ],
    }
    stream = EpisodeBatch.of(MultiCluster.from_document(document))
    stream.reset()
    legal = stream.masks[0, len(free) :]
    return [stream.outcomes.split[0, s].tolist() if legal[s] else None for s in range(3)]


def test_first_fit_by_hand() -> None:
    """The fullest cluster takes 1, so 1 at a time, round and round: the emptiest first, or last."""
    ffd, ffi, _ = spreads([(1, 1), (4, 4), (3, 3)], 4)
    assert ffd == [1, 2, 1] and ffi == [1, 1, 2]


def test_first_fit_takes_the_threshold_where_it_fits() -> None:
    """All hold 4, so the threshold is 3 of 4: the first of equals takes 3, the second the rest."""
    assert spreads([(4, 4), (4, 4), (4, 4)], 4)[:2] == [[3, 1, 0], [3, 1, 0]]
    assert spreads([(2, 2), (4, 4), (3, 3)], 6)[:2] == [[2, 2, 2], [2, 2, 2]], (
        "2 at a time: the rest is as large as the threshold"
    )
    assert spreads([(0, 0), (4, 4), (3, 3)], 4)[0] == [0, 2, 2], (
        "a full cluster stops nothing: single replicas"
    )


def test_best_fit_by_hand() -> None:
    """Each replica where the least cpu remains.

    Memory breaks ties; all on one cluster is no spread.
    """
    assert spreads([(1, 1), (4, 4), (2, 2)], 4)[2] == [1, 1, 2]
    assert spreads([(4, 4), (4, 3)], 5)[2] == [2, 3]
    assert spreads([(4, 4), (3, 3)], 3)[2] is None


def test_spreads_are_all_or_nothing() -> None:
    """8 of 7 places; one replica; one cluster with room only."""
    assert (
        spreads([(4, 4), (3, 3)], 8)
        == spreads([(4, 4), (3, 3)], 1)
        == spreads([(4, 4), (0, 0)], 3)
        == [None, None, None]
    )
    assert spreads([(4, 4), (3, 3)], 7)[0] == [4, 3]


# -- the contract ----------------------------------------------------------------------------------


def test_results_do_not_depend_on_the_number_of_environments() -> None:
    """Environment k of many and a single one with its seed: the same observations."""
    many, one = (
        MultiClusterBatch(5, steps=30),
        MultiClusterBatch(1, steps=30),
    )
    many.reset(seeds(5, 7))
    one.reset(seeds(1, 10))
    rng = np.random.default_rng(1)
    for t in range(70):
        assert (many.observations[3] == one.observations[0]).all() and (
            many.masks[3] == one.masks[0]
        ).all()
        actions = any_legal(many, rng)
        rewards, ended = many.step(actions)
        alone, over = one.step(actions[3:4])
        assert (rewards[3] == alone[0]).all() and ended[3] == over[0] == (t % 30 == 29)
        if ended.any():
            many.reset(which=ended)
            one.reset(which=over)


def test_same_seed_same_episode() -> None:
    """And another with another seed."""
    first, again = (
        MultiClusterBatch(2),
        MultiClusterBatch(2),
    )
    first.reset(seeds(2))
    again.reset(seeds(2))
    assert (first.observations == again.observations).all()
    again.reset(seeds(2, 5))
    assert (first.observations != again.observations).any()


def test_rows_tell_actions_apart() -> None:
    """Every legal action has a row of its own, scaled; illegal ones have zeros."""
    batch, rng = (
        MultiClusterBatch(20, clusters=6, rate=20.0),
        np.random.default_rng(0),
    )
    batch.reset(seeds(20))
    for _ in range(100):
        seen = batch.observations
        assert (
            np.abs(seen).max() <= 1 and (seen[~batch.masks] == 0).all() and np.isfinite(seen).all()
        )
        for k in range(20):
            legal = seen[k][batch.masks[k]]
            assert len(np.unique(legal, axis=0)) == len(legal)
        batch.step(any_legal(batch, rng))
    assert (batch.observations == 0).all() and (batch.masks.sum(axis=1) == 1).all(), "the end"


def test_refusals_earn_what_the_rules_say() -> None:
    """-1 where anything else was legal, else 0."""
    batch, found = MultiClusterBatch(50, replicas=(1, 40), rate=100.0), set()
    batch.reset(seeds(50))
    rng = np.random.default_rng(0)
    for _ in range(60):
        actions = any_legal(batch, rng)
        actions[rng.random(50) < 0.3] = batch.num_actions - 1
        could = batch.masks[:, :-1].any(axis=1)
        rewards, _ = batch.step(actions)
        refused = actions == batch.num_actions - 1
        assert (rewards[refused] == np.where(could[refused], -1.0, 0.0)[:, None]).all()
        found |= set(rewards[refused, 0].tolist())
    assert found == {-1.0, 0.0}


def test_drawn_episodes_have_the_papers_distributions() -> None:
    """Latencies, types, allocations, replicas, deployments, rate, duration, and increase."""
    batch = MultiClusterBatch(400, rate=20.0)
    batch.reset(seeds(400))
    w = batch.traces
    ways = batch.state.matrix[:, ~np.eye(4, dtype=bool)]
    assert ways.min() == 1 and ways.max() == 999 and ways.mean() == pytest.approx(500, rel=0.02)
    kinds = {(round(t.cpu_cores / UNIT), round(t.memory_gib / UNIT), t.cost) for t in TYPES}
    assert {
        (*c, p)
        for c, p in zip(w.capacity.reshape(-1, 2).tolist(), w.price.ravel().tolist(), strict=True)
    } == {(*k[:2], k[2]) for k in kinds}
    asks = {(round(d.cpu_cores / UNIT), round(d.memory_gib / UNIT)) for d in DEPLOYMENTS}
    assert set(map(tuple, w.demand.reshape(-1, 2).tolist())) == asks
    assert np.bincount(w.replicas.ravel(), minlength=8)[1:].min() > 0.13 * w.replicas.size
    assert np.diff(w.arrival).mean() == pytest.approx(1 / 20, rel=0.02)
    assert (w.departure - w.arrival).mean() == pytest.approx(1, rel=0.02)
    assert 0 <= w.increase.min() and 0.149 < w.increase.max() < 0.15


def test_forks_go_their_own_way() -> None:
    """The original stands still."""
    batch, rng = MultiClusterBatch(3), np.random.default_rng(0)
    batch.reset(seeds(3))
    for _ in range(10):
        batch.step(any_legal(batch, rng))
    before = batch.observations.copy()
    twin = batch.fork([1, 1, 2])
    assert (twin.observations == before[[1, 1, 2]]).all()
    twin.step(np.full(3, twin.num_actions - 1))
    assert (batch.observations == before).all() and batch.state.now.tolist() == [10] * 3


@pytest.mark.parametrize(
    "options",
    [
        {"clusters": 1},
        {"rate": 0.0},
        {"replicas": (3, 2)},
        {"steps": 0},
        {"num_envs": 0},
    ],
)
def test_options_are_checked(options: dict) -> None:
    """With what is legal."""
    with pytest.raises(UsageError):
        MultiClusterBatch(**options)


def test_actions_are_checked() -> None:
    """Right number, right range."""
    batch = MultiClusterBatch(2)
    batch.reset(seeds(2))
    for actions in ([0], [0, 8], [-1, 0]):
        with pytest.raises(UsageError):
            batch.step(np.array(actions))


# -- the sequence over a trace ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("beta", "gamma", "horizon"), [(1.0, 1.0, 0), (1.0, 1.0, 3), (0.5, 0.9, 2), (1.0, 1.0, 99)]
)
def test_rollout_of_all_actions_at_once_is_the_generic_one(
    beta: float, gamma: float, horizon: int
) -> None:
    """The same plan, decision by decision; so is greedy."""
    problem = MultiCluster.generate(7, requests=15, rate=30.0)
    sequence, weights = build_sequence(problem), np.array([0.01, 0.2, 3.0, 5.0])
    quick, slow = sequence.reset(), sequence.reset()
    assert (
        sequence.play_rollout(quick, weights, beta, gamma, horizon, 4) == 4
        and sequence.play_rollout(quick, weights, beta, gamma, horizon, 99) == 11
    )
    while sequence.remaining(slow):
        sequence.step(slow, rollout.choose(sequence, slow, weights, beta, gamma, horizon))
    assert sequence.plan(quick) == sequence.plan(slow)
    greedy = sequence.reset()
    assert sequence.play_greedy(greedy, weights, 99) == 15
    slow = sequence.reset()
    while sequence.remaining(slow):
        sequence.step(slow, rollout.greedy(sequence, slow, weights))
    assert sequence.plan(greedy) == sequence.plan(slow)
