"""Training improves a policy, repeats, and resumes from a checkpoint without a difference."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tiny_batch import Cards

from placeopt.core.errors import DocumentError, UsageError
from placeopt.rl.evaluation import evaluate, greedy, table
from placeopt.rl.settings import TrainingSettings

for module in ("torch", "stable_baselines3", "sb3_contrib"):
    pytest.importorskip(module, reason=f"{module} is not installed")

SMALL = {
    "steps": 1280,
    "num_envs": 8,
    "n_steps": 20,
    "batch_size": 80,
    "epochs": 2,
    "hidden": "8",
    "factor": 1,
    "gamma": 0.5,
}


HUGE = {"num_envs": 10_000, "n_steps": 10_000}


class Scored(Cards):
    """Cards that say where the one-step rewards stand."""

    score = (0, 1)


def small(known=None, **options):
    """Return settings of a short run in rounds of a third of it."""
    known = known or TrainingSettings()
    return replace(known.with_options(SMALL | options), weights="drawn")


def dqn(**options):
    """Return short settings of the papers' distribution."""
    from placeopt_papers.dqn import DqnSettings

    return small(DqnSettings(), **options)


#: What both learners are tried with.
LEARNERS = {"ppo": small, "dqn": dqn}


@pytest.fixture(autouse=True)
def short_rounds(monkeypatch):
    """A round is 480 steps."""
    monkeypatch.setattr(TrainingSettings, "round_steps", 480)


@pytest.mark.parametrize("algorithm", ["ppo", "dqn"])
def test_resumed_is_uninterrupted(tmp_path, algorithm):
    """The arrays are those of a whole run; other settings, problems and files are refused."""
    from placeopt.rl.training import train

    more = {"buffer_size": 400, "learning_starts": 100} if algorithm == "dqn" else {}
    settings = LEARNERS[algorithm](**more)
    rounds = []
    whole = train(Scored(8), "multi-cluster", settings, on_round=rounds.append)
    assert [news.steps for news in rounds] == [480, 960, 1280] and rounds[-1].share == 1
    assert (
        rounds[-1].facts.keys() >= {"reward", "time"}
        and whole.card["steps"] == 1280
        and whole.weights is None
    )
    kept = tmp_path / "c.npz"
    train(Scored(8), "multi-cluster", settings, keep=kept, on_round=lambda news: True)
    again = train(Scored(8), "multi-cluster", settings, resume=kept)
    assert whole.arrays.keys() == again.arrays.keys() and all(
        (whole.arrays[key] == again.arrays[key]).all() for key in whole.arrays
    )
    with pytest.raises(UsageError, match=r"gamma 0\.5, not 0\.9"):
        train(Scored(8), "multi-cluster", replace(settings, gamma=0.9), resume=kept)
    with pytest.raises(UsageError, match="problem 'multi-cluster', not 'temporal'"):
        train(Scored(8), "temporal", settings, resume=kept)
    with pytest.raises(DocumentError, match="not those of this network"):
        train(
            Scored(8, 5) if algorithm == "dqn" else Cards(8), "multi-cluster", settings, resume=kept
        )
    kept.write_bytes(kept.read_bytes()[:-50])
    with pytest.raises(DocumentError, match="not a checkpoint"):
        train(Scored(8), "multi-cluster", settings, resume=kept)


@pytest.mark.parametrize("algorithm", ["ppo", "dqn"])
def test_learns_without_knowing_the_reward(algorithm):
    """Nearly the best card is picked, for every preference; illegal ones never."""
    from placeopt.rl.training import train

    more = {
        "factor": 0,
        "steps": 4_800,
        "gamma": 0,
        "learning_rate": 1e-2,
        "hidden": "16",
        "epochs": 3,
    }
    more |= {"learning_starts": 400} if algorithm == "dqn" else {}
    policy = train(Cards(8), "multi-cluster", LEARNERS[algorithm](**more))
    batch = Cards(50)
    best = table(evaluate(batch, greedy((0, 1)), 50, "drawn", 9))["reward"]
    first = table(
        evaluate(batch, lambda seen, weights, masks: masks.argmax(axis=1), 50, "drawn", 9)
    )["reward"]
    found = evaluate(batch, policy.act, 50, "drawn", 9)
    assert found["reward"].min() > 0 and found["reward"].mean() > first + 0.6 * (best - first)
    other = evaluate(Cards(50, 9), policy.act, 50, "drawn", 9)
    assert other["reward"].mean() > found["reward"].mean()


def test_begins_myopic():
    """With the rewards among the features an untrained policy is nearly the greedy one."""
    from placeopt.rl.training import train

    policy = train(Scored(8), "multi-cluster", small(steps=160, learning_rate=1e-9, factor=10))
    batch = Cards(50)
    best = table(evaluate(batch, greedy((0, 1)), 50, "drawn", 9))["reward"]
    assert table(evaluate(batch, policy.act, 50, "drawn", 9))["reward"] > 0.95 * best


def test_vec_env_passes_what_masked_ppo_asks():
    """Masks come by env_method; ended episodes say so; seeds repeat."""
    from sb3_contrib.common.maskable.utils import get_action_masks, is_masking_supported

    from placeopt.rl.sb3 import BatchVecEnv

    env = BatchVecEnv(Cards(3), "drawn")
    env.seed(5)
    seen = env.reset()
    assert is_masking_supported(env) and (get_action_masks(env) == (seen[:, :, -1] > 0)).all()
    assert (
        env.env_method("action_masks", indices=[1])[0].shape == (4,)
        and env.env_is_wrapped(type) == [False] * 3
    )
    for _ in range(5):
        last = seen
        seen, rewards, ended, infos = env.step(get_action_masks(env).argmax(axis=1))
    assert ended.all() and rewards.dtype == np.float32 and (last != seen).any()
    assert infos[0]["episode"]["l"] == 5 and infos[0]["terminal_observation"].shape == seen[0].shape
    env.seed(5)
    assert (env.reset() == env.reset()).all() is np.False_
    env.seed(5)
    first = env.reset()
    env.seed(5)
    assert (first == env.reset()).all()


def test_a_buffer_that_does_not_fit_is_refused():
    """Before anything is allocated."""
    from placeopt.rl.training import train

    with pytest.raises(UsageError, match="give fewer of them"):
        train(Cards(10_000), "multi-cluster", TrainingSettings().with_options(HUGE))


def test_settings():
    """Texts become what fields hold; wrong ones are refused."""
    settings = TrainingSettings().with_options({"hidden": "64,32", "gamma": 1, "steps": 10})
    assert (
        settings.hidden == (64, 32)
        and settings.gamma == 1.0
        and settings.to_document()["hidden"] == [64, 32]
    )
    wrong = {
        "no parameter 'gama'; did you mean 'gamma'": {"gama": 1},
        "hidden of training is 'a'": {"hidden": "a"},
        "steps of training is 0 .*legal: at least 1": {"steps": 0},
        "gamma of training is 2 .*legal: at least 0, at most 1": {"gamma": 2},
        "learning_rate of training is 'nan'": {"learning_rate": "nan"},
        "weights of training": {"weights": 3},
    }
    for says, options in wrong.items():
        with pytest.raises(UsageError, match=says):
            TrainingSettings().with_options(options)
