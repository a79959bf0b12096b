"""Episodes of rescheduling: the referee agrees, environments are independent, starts have room."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from placeopt.core.errors import UsageError
from placeopt.rescheduling.episodes.batch import FEATURES, ReschedulingBatch
from placeopt.rescheduling.generator import APPLICATIONS
from placeopt.rescheduling.problem import Rescheduling

ALL = tuple(Rescheduling.generate(1, application=a, replicas=5) for a in APPLICATIONS)


def drawn(batch: ReschedulingBatch, rng: np.random.Generator) -> np.ndarray:
    """A legal action for each environment, idle the last resort."""
    liked = np.where(batch.masks, rng.random(batch.masks.shape), -1)
    liked[:, -1] = 0
    return liked.argmax(axis=1)


def started(batch: ReschedulingBatch, env: int) -> Rescheduling:
    """The running deployment of an environment as an instance of its own."""
    problem = batch.problems[batch.state.application[env]]
    document = problem.to_document()
    for i, service in enumerate(document["services"]):
        service["replicas"] = [
            problem.nodes[u].name
            for u in np.repeat(np.arange(batch.nodes), batch.state.counts[env, i])
        ]
    return Rescheduling.from_document(document)


@given(
    st.integers(0, 10**6),
    st.integers(1, 4),
    st.sampled_from([*APPLICATIONS, "random"]),
    st.booleans(),
)
def test_episodes_are_what_the_referee_says(
    seed: int, replicas: int, application: str, varied: bool
) -> None:
    """Latency, moves and rewards of replayed episodes, masks, and the rewards in the features."""
    problem = Rescheduling.generate(
        seed, application=application, replicas=replicas, services=5, jitter=0.3, edge_b=3
    )
    batch = ReschedulingBatch(
        problem,
        2,
        replicas=(1, replicas) if varied else None,
        start="random" if varied else "given",
    )
    batch.reset(np.array([seed, seed + 1], dtype=np.uint64))
    cases = [started(batch, env) for env in range(2)]
    if not varied:
        assert all(case.initial_latency == problem.initial_latency for case in cases)
    rng, total, running = np.random.default_rng(seed), np.zeros(2), np.ones(2, dtype=bool)
    while running.any():
        actions, before, seen = (
            drawn(batch, rng),
            batch.info()["latency_ms"],
            batch.observations.copy(),
        )
        for env in np.flatnonzero(running):
            check_masks(batch, cases[env], env, rng)
        rewards, ended = batch.step(actions)
        moved = running & (actions < batch.num_actions - 1)
        np.testing.assert_allclose(
            rewards[moved, 0], (before - batch.info()["latency_ms"])[moved] - 2
        )
        np.testing.assert_allclose(
            seen[np.arange(2), actions, batch.score[0]][running],
            np.clip(rewards[running, 0] / 100, -1, 1),
            atol=1e-6,
        )
        total += rewards[:, 0]
        running = ~ended
    facts = batch.info()
    for env, case in enumerate(cases):
        verdict = case.evaluate(case.plan(batch.moves(env)))
        assert verdict.feasible and verdict.values == pytest.approx(
            (facts["latency_ms"][env], facts["moves"][env])
        )
        assert total[env] == pytest.approx(
            case.initial_latency - verdict.values[0] - 2 * verdict.values[1]
        )
        assert batch.plan(env) == case.plan(batch.moves(env))


def check_masks(
    batch: ReschedulingBatch, case: Rescheduling, env: int, rng: np.random.Generator
) -> None:
    """A few actions, against the referee with one more move."""
    per_service = batch.slots // len(case.services)
    for action in rng.integers(batch.num_actions - 1, size=6).tolist():
        slot, v = divmod(action, batch.nodes)
        u = int(batch.state.node_of[env, slot])
        moves = [*batch.moves(env), (slot // per_service, u, v)]
        legal = u >= 0 and u != v and case.evaluate(case.plan(moves)).feasible
        assert batch.masks[env, action] == legal
        assert legal == batch.observations[env, action].any()


@pytest.mark.parametrize("background", [0.0, 0.3])
def test_environments_do_not_depend_on_their_number(background: float) -> None:
    """Nine together or one by one, with restarts: the same observations, masks, rewards, facts."""
    together = ReschedulingBatch(ALL, 9, replicas=(1, 5), background=background)
    alone = [ReschedulingBatch(ALL, 1, replicas=(1, 5), background=background) for _ in range(9)]
    seeds = np.arange(100, 109, dtype=np.uint64)
    together.reset(seeds)
    for one, seed in zip(alone, seeds, strict=True):
        one.reset(np.array([seed]))
    rng = np.random.default_rng(0)
    for _ in range(40):
        actions = np.where(rng.random(9) < 0.1, together.num_actions - 1, drawn(together, rng))
        rewards, ended = together.step(actions)
        each = [one.step(actions[e : e + 1]) for e, one in enumerate(alone)]
        assert np.array_equal(rewards, np.concatenate([r for r, _ in each])) and np.array_equal(
            ended, np.concatenate([d for _, d in each])
        )
        together.reset(which=ended)
        for e, one in enumerate(alone):
            if ended[e]:
                one.reset()
        assert np.array_equal(
            together.observations, np.concatenate([one.observations for one in alone])
        )
        assert np.array_equal(together.masks, np.concatenate([one.masks for one in alone]))
        for name, values in together.info().items():
            assert np.array_equal(values, np.concatenate([one.info()[name] for one in alone])), name
    assert set(together.info()["application"]) == {0, 1, 2}


def test_starts_are_random_and_have_room() -> None:
    """4 to 20 pods, the same seed the same start, no overload; observations stay scaled."""
    batch = ReschedulingBatch(ALL, 300, replicas=(1, 5), background=0.4)
    seeds = np.arange(300, dtype=np.uint64)
    batch.reset(seeds)
    pods = (batch.state.node_of >= 0).sum(axis=1)
    assert pods.min() >= 4 and pods.max() <= 20 and len(set(pods)) > 8
    assert (batch.state.free >= 0).all() and len(
        {row.tobytes() for row in batch.state.counts}
    ) > 250
    assert np.abs(batch.observations).max() <= 1 and batch.observations.dtype == np.float32
    first = batch.observations.copy()
    batch.reset(seeds)
    assert np.array_equal(first, batch.observations)
    batch.reset()
    assert not np.array_equal(first, batch.observations)


def test_a_larger_continuum() -> None:
    """36 pods on 18 nodes: 36 x 18 + 1 actions."""
    problem = Rescheduling.generate(
        2, application="aggregator-sequential", replicas=9, cloud_a=6, edge_a=6, edge_b=6
    )
    batch = ReschedulingBatch(problem, 3)
    batch.reset()
    assert batch.num_actions == 36 * 18 + 1 and batch.observations.shape == (3, 649, len(FEATURES))
    rewards, ended = batch.step(drawn(batch, np.random.default_rng(1)))
    assert rewards.shape == (3, 1) and not ended.any()


def test_how_episodes_end() -> None:
    """Idle costs nothing, an illegal action 100; the last step ends; then there is no reward."""
    batch = ReschedulingBatch(ALL[0], 3, steps=2)
    batch.reset()
    illegal = int(np.flatnonzero(~batch.masks[1])[0])
    legal = int(batch.masks[2].argmax())
    rewards, ended = batch.step(np.array([batch.num_actions - 1, illegal, legal]))
    assert (
        rewards[:2, 0].tolist() == [0, -100]
        and ended.tolist() == [True, True, False]
        and batch.info()["moves"].tolist() == [0, 0, 1]
    )
    rewards, ended = batch.step(np.array([0, 0, int(batch.masks[2].argmax())]))
    assert (
        rewards[:2, 0].tolist() == [0, 0]
        and ended.all()
        and batch.info()["moves"].tolist() == [0, 0, 2]
    )
    batch.reset()
    for wrong in (-1, batch.num_actions, 10**9):
        with pytest.raises(UsageError, match=f"the action of environment 0 is {wrong}; legal:"):
            batch.step(np.full(3, wrong))


def test_options_are_checked() -> None:
    """Each with what is legal."""
    other = Rescheduling.generate(1, edge_b=5)
    for arguments, options, words in (
        (((), 1), {}, "at least one instance"),
        (((ALL[0], other), 1), {}, "same number of nodes"),
        ((ALL, 0), {}, "at least 1"),
        ((ALL, 1), {"start": "home"}, "legal: random, given"),
        ((ALL, 1), {"replicas": (3, 1)}, "least and the largest"),
        ((ALL, 1), {"background": 2.0}, "from 0 to 1"),
    ):
        with pytest.raises(UsageError, match=words):
            ReschedulingBatch(*arguments, **options)
