"""Environments over batches of episodes: one alone plays what it plays among many, and the libraries' checkers agree."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest
from env_checkers import passes_the_checkers
from gymnasium.vector import AutoresetMode
from tiny_batch import Cards

from placeopt.core.errors import UsageError
from placeopt.registry import problem_class
from placeopt.rl.preferences import Preferences, draw, read_weights
from placeopt.rl.sequential_batch import SequentialBatch
from placeopt.rl.vector import BatchEnv, BatchVectorEnv


def legal(masks, rng):
    """Return a legal action for every row of masks."""
    return np.where(masks, rng.random(masks.shape), -1).argmax(axis=1)


@pytest.mark.parametrize("weights", [None, [1, 0], "drawn"])
def test_passes_the_checkers(weights):
    """Gymnasium's checker has nothing to say; stable-baselines3's nothing but that rows of features are unusual."""
    env = BatchEnv(Cards(1), weights)
    passes_the_checkers(env)


@pytest.mark.parametrize("weights", [[0.25, 0.75], "drawn"])
def test_single_is_vector_step_by_step(weights):
    """Environment i of many plays what one alone plays from seed + i, over several episodes."""
    vector = BatchVectorEnv(Cards(3), weights)
    singles = [BatchEnv(Cards(1), weights) for _ in range(3)]
    seen, info = vector.reset(seed=7)
    alone = [env.reset(seed=7 + i) for i, env in enumerate(singles)]
    rng = np.random.default_rng(0)
    for _ in range(12):
        for i, (one, facts) in enumerate(alone):
            assert (one == seen[i]).all() and (facts["action_mask"] == info["action_mask"][i]).all()
        actions = legal(info["action_mask"], rng)
        seen, rewards, ended, truncated, info = vector.step(actions)
        assert not truncated.any()
        for i, env in enumerate(singles):
            one, reward, over, _, facts = env.step(actions[i])
            assert (
                reward == rewards[i]
                and over == ended[i]
                and (facts["reward_vector"] == info["reward_vector"][i]).all()
            )
            if over:
                assert (info["final_obs"][i] == one).all()
                assert (
                    info["final_info"]["episode_return"][i]
                    == pytest.approx(facts["episode_return"])
                    and facts["time"] == 5
                )
                assert (
                    info["final_info"]["time"][i] == 5
                    and info["final_info"]["episode_length"][i] == facts["episode_length"] == 5
                )
                one, facts = env.reset()
            alone[i] = one, facts


def test_vector_contract():
    """The autoreset mode is declared, spaces fit, the scalar reward is the weighted vector, a step needs a reset."""
    env = BatchVectorEnv(Cards(4), "drawn", append=("weights", "legal"))
    assert env.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(np.zeros(4))
    seen, info = env.reset(seed=1)
    assert seen in env.observation_space and seen.shape == (4, 4, 3 + 2 + 1)
    assert (seen[:, :, -1] == info["action_mask"]).all() and np.allclose(
        seen[:, 0, 3:5], env.weights
    )
    _, rewards, *_, after = env.step(legal(info["action_mask"], np.random.default_rng(0)))
    assert rewards == pytest.approx((after["reward_vector"] * env.weights).sum(axis=1))
    again, _ = env.reset(seed=1)
    assert (again == seen).all()
    other, _ = env.reset()
    assert (other != seen).any()
    with pytest.raises(UsageError, match="legal: weights, legal"):
        BatchVectorEnv(Cards(1), append=("mask",))
    with pytest.raises(UsageError, match="one of 1"):
        BatchEnv(Cards(2))


def test_weights():
    """Weights sum to 1; wrong ones are refused; drawn ones reach corners, edges and the inside."""
    assert read_weights("1,3", 2) == pytest.approx([0.25, 0.75]) and read_weights(
        None, 4
    ) == pytest.approx([0.25] * 4)
    for wrong in ([1], [0, 0], [-1, 2], "1,x", [np.nan, 1]):
        with pytest.raises(UsageError, match="give 2 numbers"):
            read_weights(wrong, 2)
    rng = np.random.default_rng(0)
    rows = np.array([draw(rng, 3) for _ in range(300)])
    assert np.allclose(rows.sum(axis=1), 1) and {1, 2, 3} == set((rows > 0).sum(axis=1))
    with pytest.raises(UsageError, match="one row for each"):
        Preferences(2, 3, np.ones((2, 2)))


@pytest.mark.parametrize("kind", ["temporal", "edge-cloud", "rescheduling"])
def test_any_sequential_face_is_a_batch(kind):
    """The return of a complete episode is minus the weighted values of its plan over their scales."""
    problem = problem_class(kind).generate(1)
    batch = SequentialBatch(problem, 2)
    env = BatchVectorEnv(batch)
    _, info = env.reset(seed=0)
    rng, total, before = np.random.default_rng(0), 0.0, None
    for _ in range(batch.faces[0].decisions):
        before = batch.states[0]
        _, rewards, ended, _, info = env.step(legal(info["action_mask"], rng))
        total += rewards[0]
        if ended[0]:
            break
    values = np.array(problem.evaluate(batch.faces[0].plan(before)).values) / batch._scales[0]
    if info["final_info"]["decided"][0] == 1:
        assert total == pytest.approx(-(values * env.weights[0]).sum())
    else:
        assert total < -batch.penalty * (1 - info["final_info"]["decided"][0]) * 0.99


def test_generated_instances_differ_and_illegal_actions_end_episodes():
    """Environment i has the instance of seed + i; actions that it does not have are illegal."""
    batch = SequentialBatch("edge-cloud", 2, seed=3, sizes={"applications": 3})
    assert (
        batch.faces[0].problem
        == problem_class("edge-cloud").generate(3, applications=3)
        != batch.faces[1].problem
    )
    batch.reset(np.arange(2, dtype=np.uint64))
    batch.masks[1] = False
    rewards, ended = batch.step(np.array([int(batch.masks[0].argmax()), 0]))
    assert ended[1] and (rewards[1] == -batch.penalty).all() and batch.info()["decided"][1] == 0
