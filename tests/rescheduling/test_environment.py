"""Rescheduling episodes as environments: checkers, options, the bundled policy."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest
from env_checkers import passes_the_checkers

import placeopt.environments
from placeopt.core.budget import Budget
from placeopt.core.errors import UsageError
from placeopt.core.task import Task
from placeopt.edge_cloud.problem import EdgeCloud
from placeopt.rescheduling import episodes
from placeopt.rescheduling.generator import APPLICATIONS
from placeopt.rescheduling.problem import Rescheduling
from placeopt.rescheduling.search import block_search
from placeopt.rl import policy_file
from placeopt.rl.batches import make_batch
from placeopt.rl.play import run

NAME = "rescheduling-testbed"


def test_the_environment_passes_both_checkers() -> None:
    """Gymnasium's and that of stable-baselines3."""
    env = gymnasium.make(placeopt.environments.ENVIRONMENTS["rescheduling"])
    passes_the_checkers(env.unwrapped)


def test_single_is_one_of_many() -> None:
    """Environment i of many, seeded with s + i, is a single one; a move costs 2 ms."""
    many = gymnasium.make_vec(
        "placeopt/Rescheduling-v0", num_envs=3, application="chain", replicas=(2, 3)
    )
    many.reset(seed=7)
    rng = np.random.default_rng(0)
    singles = [
        gymnasium.make("placeopt/Rescheduling-v0", application="chain", replicas=(2, 3)).unwrapped
        for _ in range(3)
    ]
    infos = [env.reset(seed=7 + i)[1] for i, env in enumerate(singles)]
    for _ in range(5):
        actions = np.array(
            [int(rng.choice(np.flatnonzero(info["action_mask"][:-1]))) for info in infos]
        )
        _, rewards, *_ = many.step(actions)
        for i, env in enumerate(singles):
            before = infos[i]["latency_ms"]
            _, reward, _, _, infos[i] = env.step(int(actions[i]))
            assert reward == rewards[i] == pytest.approx(before - infos[i]["latency_ms"] - 2)


def test_episodes_of_options_and_of_instances() -> None:
    """Machines and applications as asked; an instance as it stands; what is wrong is said."""
    batch = make_batch(Rescheduling, 40, application="all", replicas="1,2", cloud_a=3)
    batch.reset(np.arange(40, dtype=np.uint64))
    assert batch.num_actions == 4 * 2 * 7 + 1 and set(batch.info()["application"]) == {0, 1, 2}
    problem = Rescheduling.generate(3, replicas=2)
    own = make_batch(problem, 2)
    own.reset()
    assert (own.info()["start_ms"] == problem.initial_latency).all()
    with pytest.raises(UsageError, match="did you mean 'chain'"):
        episodes.batch(application="chian")
    with pytest.raises(UsageError, match="of rescheduling, not of edge-cloud"):
        episodes.batch(EdgeCloud.generate(1, applications=2))
    with pytest.raises(UsageError, match="the least and the largest"):
        episodes.batch(replicas="many")


def test_training_with_the_settings_of_table_v() -> None:
    """A few steps make a policy that answers an instance."""
    pytest.importorskip("sb3_contrib", reason="needs torch, stable-baselines3 and sb3-contrib")
    from placeopt.rl.training import train

    settings = episodes.TABLE_V.with_options({"steps": 512, "num_envs": 8})
    assert (
        settings.learning_rate == 3e-4
        and settings.gamma == 0.99
        and settings.clip_range == 0.2
        and settings.batch_size == 64
    )
    policy = train(episodes.batch(None, 8, replicas=(1, 2)), "rescheduling", settings)
    problem = Rescheduling.generate(1, replicas=2)
    front = run(Task(problem, problem.objectives, Budget(evaluations=2), 0), policy=policy)
    assert front.rejected is None and front.values[:, 1].min() == 0


def test_the_bundled_policy_is_near_the_best_known() -> None:
    """One episode of the most probable actions on starts that were not trained on."""
    policy = policy_file.read(NAME, "rescheduling")
    assert {"summary", "data", "limits", "seeds", "rewards"} <= policy.card.keys() and policy.card[
        "cpu_seconds"
    ] <= 60
    ratios = []
    for application in APPLICATIONS:
        for seed in range(500, 520):
            problem = Rescheduling.generate(seed, application=application, replicas=5)
            front = run(Task(problem, problem.objectives, Budget(evaluations=1), 0), policy=policy)
            assert front.rejected is None and front.values[:, 1].min() == 0 and len(front) > 1
            best = (
                block_search(Task(problem, problem.objectives, Budget(seconds=30), 0))
                .values[:, 0]
                .min()
            )
            ratios.append(best / front.values[:, 0].min())
    assert np.mean(ratios) >= 0.95
