"""Multi-cluster environments, and trained policies on generated episodes and on instances."""

from __future__ import annotations

import subprocess
import sys

import gymnasium
import numpy as np
import pytest
from env_checkers import passes_the_checkers

import placeopt.environments
from placeopt.core.budget import Budget
from placeopt.core.errors import UnsupportedError, UsageError
from placeopt.core.task import Task
from placeopt.multi_cluster import episodes as multi_cluster
from placeopt.multi_cluster.problem import MultiCluster
from placeopt.rl import play, policy_file
from placeopt.rl.batches import make_batch
from placeopt.rl.evaluation import evaluate, greedy, table
from placeopt.rl.policy import Shape, TrainedPolicy

NAME = placeopt.environments.ENVIRONMENTS["multi-cluster"]


def myopic(parts=3, features=31, weights=None):
    """Return a policy of zeros: it goes by the one-step reward alone."""
    shape = Shape(features, parts, (4,), "tanh", multi_cluster.SCORE)
    arrays = {key: np.zeros(size, dtype=np.float32) for key, size in shape.arrays().items()} | {
        "factor": np.ones(parts, dtype=np.float32)
    }
    return TrainedPolicy(
        "multi-cluster",
        ("latency", "cost", "inequality")[:parts],
        shape,
        arrays,
        {"rate": 5.0},
        weights,
    )


@pytest.mark.parametrize(
    "options",
    [{}, {"rate": 60.0, "weights": [1, 0, 0]}, {"clusters": 6, "weights": "drawn"}],
)
def test_passes_the_checkers(options):
    """Both libraries' checkers agree."""
    env = gymnasium.make(NAME, steps=12, **options).unwrapped
    passes_the_checkers(env)


def test_vector_is_single_step_by_step():
    """At two rates; more than one episode."""
    for rate in (5.0, 60.0):
        many = gymnasium.make_vec(NAME, num_envs=3, steps=7, rate=rate, weights="drawn").unwrapped
        one = gymnasium.make(NAME, steps=7, rate=rate, weights="drawn").unwrapped
        seen, info = many.reset(seed=4)
        alone, facts = one.reset(seed=6)
        rng = np.random.default_rng(0)
        for _ in range(20):
            assert (alone == seen[2]).all() and (one.action_masks() == info["action_mask"][2]).all()
            actions = np.where(
                info["action_mask"], rng.random(info["action_mask"].shape), -1
            ).argmax(axis=1)
            seen, rewards, ended, _, info = many.step(actions)
            alone, reward, over, _, facts = one.step(int(actions[2]))
            assert reward == rewards[2] and over == ended[2]
            if over:
                assert info["final_info"]["acceptance"][2] == facts["acceptance"]
                alone, facts = one.reset()


def test_evaluation_does_not_depend_on_the_number_of_environments():
    """Nor on which of them ends first; the myopic policy is the greedy choice."""
    policy = myopic()
    one = evaluate(
        play.episodes_for(policy, MultiCluster, num_envs=1, steps=20),
        policy.act,
        6,
        [0.5, 0.5, 0],
        3,
    )
    many = evaluate(
        play.episodes_for(policy, MultiCluster, num_envs=4, steps=20),
        greedy(multi_cluster.SCORE),
        6,
        [0.5, 0.5, 0],
        3,
    )
    assert (
        one["reward"] == pytest.approx(many["reward"])
        and (one["acceptance"] == many["acceptance"]).all()
    )
    wide = play.episodes_for(policy, MultiCluster, num_envs=4, steps=20, clusters=9)
    assert 0 < table(evaluate(wide, policy.act, 4, None, 3))["acceptance"] <= 1


def test_method_on_a_trace(tmp_path):
    """A front over weights, judged by the referee.

    The same without torch, by the same seed; samples are drawn by the seed.
    """
    problem = MultiCluster.generate(seed=1, requests=15)
    path = tmp_path / "p.npz"
    policy_file.write(myopic(), path)
    front = placeopt.solve(problem, "policy", policy=str(path), evaluations=30, seed=1)
    assert front.points and all(problem.evaluate(p.plan).values == p.values for p in front.points)
    assert front.runs[0].evaluations == 30 and len({p.values for p in front.points}) > 1
    alone = placeopt.solve(problem, "policy", policy=str(path), weights="0,1,0")
    sampled = placeopt.solve(
        problem, "policy", policy=str(path), weights="0,1,0", samples=5, seed=3
    )
    assert alone.runs[0].evaluations == 1 and sampled.runs[0].evaluations == 6
    assert (
        sampled.points
        == placeopt.solve(
            problem, "policy", policy=myopic(), weights="0,1,0", samples=5, seed=3
        ).points
    )
    fixed = play.run(
        Task(problem, problem.objectives, Budget(evaluations=9)),
        policy=myopic(weights=(0.0, 1.0, 0.0)),
    )
    assert [p.values for p in fixed.points] == [p.values for p in alone.points]


def test_wrong_use():
    """Each says what to do."""
    problem = MultiCluster.generate(seed=1, requests=3)
    with pytest.raises(UsageError, match="needs a policy: --policy FILE"):
        placeopt.solve(problem, "policy")
    with pytest.raises(UnsupportedError, match="reads 30 features"):
        placeopt.solve(problem, "policy", policy=myopic(features=30))
    with pytest.raises(UsageError, match="parts of policy is 0"):
        placeopt.solve(problem, "policy", policy=myopic(), parts=0)
    with pytest.raises(UsageError, match="rate is an option of generated episodes"):
        multi_cluster.batch(problem, 1, rate=3.0)
    with pytest.raises(
        UsageError,
        match="unknown option 'cluster' of multi-cluster episodes; did you mean 'clusters'",
    ):
        make_batch(MultiCluster, 1, cluster=3)
    with pytest.raises(UsageError, match="generated episodes have no plan"):
        multi_cluster.batch(None, 1).plan(0)


def test_policies_that_come_with_placeopt():
    """Each says what it was trained on, and beats the greedy choice there, without torch."""
    names = policy_file.bundled()
    for name in names:
        policy = policy_file.read(name)
        assert {"summary", "algorithm", "settings", "data", "limits"} <= policy.card.keys(), name
        if policy.problem != "multi-cluster" or policy.weights is not None:
            continue
        batch = play.episodes_for(policy, MultiCluster, num_envs=25)
        for strategy in ("lat-ineq", "cost-ineq"):
            weights = multi_cluster.PREFERENCES[strategy]
            ours, theirs = (
                table(evaluate(batch, who, 25, weights, 7))["reward"]
                for who in (policy.act, greedy(policy.shape.score))
            )
            assert ours > theirs, (name, strategy)
    code = (
        "import sys, placeopt\n"
        "from placeopt.multi_cluster.problem import MultiCluster\n"
        "from placeopt.rl import policy_file\n"
        "problem = MultiCluster.generate(seed=1, requests=3)\n"
        "for n in policy_file.bundled():\n"
        "    if policy_file.read(n).problem == 'multi-cluster':\n"
        "        placeopt.solve(problem, 'policy', policy=n, parts=1)\n"
        "print(sorted({'torch', 'stable_baselines3', 'sb3_contrib'} & set(sys.modules)))"
    )
    assert (
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout.strip()
        == "[]"
    )
