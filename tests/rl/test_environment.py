"""Every sequential face is a Gymnasium environment whose return is what the referee says."""

from __future__ import annotations

import subprocess
import sys
import warnings

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import placeopt.rl
from placeopt.core.errors import UsageError
from placeopt.edge_cloud.instance import EdgeCloud
from placeopt.registry import specs


@pytest.mark.parametrize("name", placeopt.rl.ENVIRONMENTS.values())
def test_passes_the_checker(name):
    """Gymnasium's own checker has nothing to say."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(gymnasium.make(name).unwrapped, skip_render_check=True)


@pytest.mark.parametrize(
    "name",
    [name for kind, name in placeopt.rl.ENVIRONMENTS.items() if not specs()[kind].has("episodes")],
)
def test_return_is_minus_the_weighted_values(name):
    """A complete episode returns minus the weighted values of its plan."""
    env = gymnasium.make(name, scaled=False).unwrapped
    rng = np.random.default_rng(0)
    for _ in range(3):
        _, info = env.reset(seed=1)
        total, ended = 0.0, False
        while not ended:
            observation, reward, ended, truncated, info = env.step(
                int(rng.choice(np.flatnonzero(env.action_masks())))
            )
            total += reward
            assert observation in env.observation_space and not truncated
        if info["remaining"] == 0:
            assert info["feasible"] and total == pytest.approx(-np.dot(env.weights, info["values"]))
        assert env.problem.evaluate(info["plan"]).values == info["values"]


def test_ids_of_the_problems():
    """The ids are those of the problems' classes."""
    assert (
        placeopt.rl.ENVIRONMENTS["temporal"] == "placeopt/Temporal-v0"
        and placeopt.rl.ENVIRONMENTS["edge-cloud"] == "placeopt/EdgeCloud-v0"
    )


def test_an_illegal_action_ends_the_episode():
    """It costs the penalty for all that is left undecided."""
    problem = EdgeCloud.generate(seed=1, applications=3, near=3, far=1, cloud=1, load=4.0)
    env = placeopt.rl.SequentialEnv(problem, penalty=7.0)
    _, info = env.reset()
    while info["action_mask"].all():
        _, _, _, _, info = env.step(int(info["action_mask"].nonzero()[0][-1]))
    left = info["remaining"]
    _, reward, terminated, _, info = env.step(int(np.flatnonzero(~info["action_mask"])[0]))
    assert (
        terminated
        and reward == pytest.approx(-7.0 * left / env.face.decisions)
        and not info["feasible"]
    )


def test_arguments():
    """Objectives, weights and the face's options are passed on; wrong weights are refused; steps need a reset."""
    env = gymnasium.make(
        "placeopt/EdgeCloud-v0", objectives=["latency_ms"], sizes={"applications": 2}, order="given"
    ).unwrapped
    assert [o.name for o in env.face.objectives] == ["latency_ms"] and len(
        env.problem.applications
    ) == 2
    with pytest.raises(UsageError, match="2 numbers"):
        gymnasium.make("placeopt/EdgeCloud-v0", weights=[1.0])
    with pytest.raises(gymnasium.error.ResetNeeded):
        placeopt.rl.SequentialEnv("edge-cloud").step(0)


def test_needs_no_torch():
    """Importing the environments loads no learning library."""
    code = "import sys, placeopt.rl; print(sorted({'torch', 'stable_baselines3', 'sb3_contrib', 'pymoo', 'pyomo'} & set(sys.modules)))"
    assert (
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout.strip()
        == "[]"
    )
