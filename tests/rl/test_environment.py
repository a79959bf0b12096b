"""Environments: both libraries' checkers agree, and returns are what the referee says.

One environment alone plays what it plays among many.
"""

from __future__ import annotations

import subprocess
import sys

import gymnasium
import numpy as np
import pytest
from env_checkers import passes_the_checkers
from gymnasium.vector import AutoresetMode
from tiny_batch import Cards

import placeopt.environments
from placeopt.core.errors import UsageError
from placeopt.edge_cloud.problem import EdgeCloud
from placeopt.multi_cluster.problem import MultiCluster
from placeopt.registry import problem_class, specs
from placeopt.rescheduling.problem import Rescheduling
from placeopt.rl.batches import SequentialBatch, make_batch
from placeopt.rl.environment import BatchEnv, BatchVectorEnv
from placeopt.rl.episodes import Preferences, draw, normalised

SEQUENTIAL = [
    kind for kind in placeopt.environments.ENVIRONMENTS if not specs()[kind].has("episodes")
]


def legal(masks, rng):
    """Return a legal action for every row of masks."""
    return np.where(masks, rng.random(masks.shape), -1).argmax(axis=1)


@pytest.mark.parametrize("weights", [None, [1, 0], "drawn"])
def test_a_batch_passes_the_checkers(weights):
    passes_the_checkers(BatchEnv(Cards(1), weights))


@pytest.mark.parametrize("name", placeopt.environments.ENVIRONMENTS.values())
def test_every_id_passes_the_checkers(name):
    passes_the_checkers(gymnasium.make(name).unwrapped)


@pytest.mark.parametrize("name", placeopt.environments.ENVIRONMENTS.values())
def test_every_id_makes_many(name):
    many = gymnasium.make_vec(name, num_envs=2)
    seen, info = many.reset(seed=1)
    assert seen in many.observation_space and info["action_mask"].any(axis=1).all()
    many.step(info["action_mask"].argmax(axis=1))


def test_ids_of_the_problems():
    """The ids are those of the problems' classes."""
    assert placeopt.environments.ENVIRONMENTS["temporal"] == "placeopt/Temporal-v0"
    assert placeopt.environments.ENVIRONMENTS["edge-cloud"] == "placeopt/EdgeCloud-v0"


@pytest.mark.parametrize("kind", SEQUENTIAL)
def test_return_is_minus_the_weighted_values(kind):
    """A complete episode returns minus the weighted values of its plan."""
    problem = problem_class(kind).generate(1)
    env = placeopt.environments.make_env(problem, scaled=False)
    rng = np.random.default_rng(0)
    for _ in range(3):
        _, info = env.reset(seed=1)
        total, ended = 0.0, False
        while not ended:
            assert "plan" not in info
            action = int(rng.choice(np.flatnonzero(env.action_masks())))
            observation, reward, ended, truncated, info = env.step(action)
            total += reward
            assert observation in env.observation_space and not truncated
        verdict = problem.evaluate(info["plan"])
        assert verdict.values == info["values"] and verdict.feasible == info["feasible"]
        if info["decided"] == 1:
            assert info["feasible"] and total == pytest.approx(-np.dot(env.weights, info["values"]))


@pytest.mark.parametrize(
    "problem", [MultiCluster.generate(1, requests=5), Rescheduling.generate(1, replicas=2)]
)
def test_an_instance_of_compiled_episodes_has_its_plan_judged(problem):
    """Generated episodes have no plan to judge."""
    for target in (problem, problem.spec.kind):
        env = placeopt.environments.make_env(target)
        _, info = env.reset(seed=1)
        ended = False
        while not ended:
            _, _, ended, _, info = env.step(int(info["action_mask"].argmax()))
        if target is problem:
            assert problem.evaluate(info["plan"]).values == info["values"] and info["feasible"]
        else:
            assert "plan" not in info


def test_an_illegal_action_ends_the_episode():
    """It costs the penalty for all that is left undecided."""
    problem = EdgeCloud.generate(seed=1, applications=3, near=3, far=1, cloud=1, load=4.0)
    env = placeopt.environments.make_env(problem, penalty=7.0)
    _, info = env.reset()
    while info["action_mask"].all():
        _, _, _, _, info = env.step(int(info["action_mask"].nonzero()[0][-1]))
    left = 1 - info["decided"]
    _, reward, terminated, _, info = env.step(int(np.flatnonzero(~info["action_mask"])[0]))
    assert terminated and reward == pytest.approx(-7.0 * left) and not info["feasible"]


def test_arguments():
    """Sizes, objectives and the order are passed on; what is wrong is refused."""
    name = "placeopt/EdgeCloud-v0"
    env = gymnasium.make(name, objectives=["latency_ms"], applications=2, order="given").unwrapped
    assert env.batch.rewards == ("latency_ms",)
    assert len(env.batch.problem.applications) == 2
    with pytest.raises(UsageError, match="2 numbers"):
        gymnasium.make(name, weights=[1.0])
    with pytest.raises(UsageError, match=r"unknown option 'aplications' .*'applications'"):
        gymnasium.make(name, aplications=2)
    with pytest.raises(UsageError, match="unknown option 'order' of the decisions of temporal"):
        placeopt.environments.make_env("temporal", order="given")
    with pytest.raises(UsageError, match="unknown option 'applications' of edge-cloud episodes"):
        make_batch(EdgeCloud.generate(1, applications=2), applications=3)
    with pytest.raises(UsageError, match="penalty of edge-cloud episodes is 'abc'"):
        placeopt.environments.make_env("edge-cloud", penalty="abc")
    with pytest.raises(UsageError, match="clusters of multi-cluster episodes is 'abc'"):
        placeopt.environments.make_env("multi-cluster", clusters="abc")
    with pytest.raises(UsageError, match="unknown problem 'edge-clod'"):
        placeopt.environments.make_env("edge-clod")
    with pytest.raises(gymnasium.error.ResetNeeded):
        placeopt.environments.make_env("edge-cloud").step(0)


LOADED = (
    "print(sorted({'torch', 'stable_baselines3', 'pymoo', 'pyomo', 'gymnasium'} & {*sys.modules}))"
)
SOLVE = """
import placeopt
from placeopt.rescheduling.problem import Rescheduling
placeopt.solve(Rescheduling.generate(1, replicas=2), "policy", policy="rescheduling-testbed")
"""


@pytest.mark.parametrize("code", ["import placeopt.rl.play", SOLVE])
def test_policies_are_played_without_gymnasium_or_torch(code):
    command = [sys.executable, "-c", f"import sys\n{code}\n{LOADED}"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert shown.strip() == "[]"


@pytest.mark.parametrize(
    "first",
    [
        "import gymnasium, placeopt.environments",
        "import placeopt.environments, gymnasium",
    ],
)
def test_gymnasium_knows_the_ids_whatever_is_imported_first(first):
    code = f"{first}; print(gymnasium.make('placeopt/Rescheduling-v0').action_space)"
    command = [sys.executable, "-c", code]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert shown.startswith("Discrete(")


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
            assert reward == rewards[i] and over == ended[i]
            assert (facts["reward_vector"] == info["reward_vector"][i]).all()
            if over:
                final = info["final_info"]
                assert (info["final_obs"][i] == one).all()
                assert final["episode_return"][i] == pytest.approx(facts["episode_return"])
                assert final["time"][i] == facts["time"] == 5
                assert final["episode_length"][i] == facts["episode_length"] == 5
                one, facts = env.reset()
            alone[i] = one, facts


def test_vector_contract():
    """Autoreset is declared, spaces fit, rewards are the weighted vectors, a step needs a reset."""
    env = BatchVectorEnv(Cards(4), "drawn", append=("weights", "legal"))
    assert env.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(np.zeros(4))
    seen, info = env.reset(seed=1)
    assert seen in env.observation_space and seen.shape == (4, 4, 3 + 2 + 1)
    assert (seen[:, :, -1] == info["action_mask"]).all()
    assert np.allclose(seen[:, 0, 3:5], env.weights)
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
    assert normalised("1,3", 2) == pytest.approx([0.25, 0.75])
    assert normalised(None, 4) == pytest.approx([0.25] * 4)
    for wrong in ([1], [0, 0], [-1, 2], "1,x", [np.nan, 1]):
        with pytest.raises(UsageError, match="give 2 numbers"):
            normalised(wrong, 2)
    rng = np.random.default_rng(0)
    rows = np.array([draw(rng, 3) for _ in range(300)])
    assert np.allclose(rows.sum(axis=1), 1) and {1, 2, 3} == set((rows > 0).sum(axis=1))
    with pytest.raises(UsageError, match="one row for each"):
        Preferences(2, 3, np.ones((2, 2)))


@pytest.mark.parametrize("kind", ["temporal", "edge-cloud", "rescheduling"])
def test_any_decision_sequence_is_a_batch(kind):
    """The return of a complete episode is minus the weighted, scaled values of its plan."""
    problem = problem_class(kind).generate(1)
    batch = SequentialBatch(problem, 2)
    env = BatchVectorEnv(batch)
    _, info = env.reset(seed=0)
    rng, total, before = np.random.default_rng(0), 0.0, None
    for _ in range(batch.sequences[0].decisions):
        before = batch.states[0]
        _, rewards, ended, _, info = env.step(legal(info["action_mask"], rng))
        total += rewards[0]
        if ended[0]:
            break
    values = np.array(problem.evaluate(batch.sequences[0].plan(before)).values) / batch._scales[0]
    if info["final_info"]["decided"][0] == 1:
        assert total == pytest.approx(-(values * env.weights[0]).sum())
    else:
        assert total < -batch.penalty * (1 - info["final_info"]["decided"][0]) * 0.99


def test_generated_instances_differ_and_illegal_actions_end_episodes():
    """Environment i has the instance of seed + i; actions that it does not have are illegal."""
    batch = make_batch(EdgeCloud, 2, seed=3, applications=3)
    first, second = (one.problem for one in batch.sequences)
    assert first == EdgeCloud.generate(3, applications=3) != second and batch.problem is None
    batch.reset(np.arange(2, dtype=np.uint64))
    batch.masks[1] = False
    rewards, ended = batch.step(np.array([int(batch.masks[0].argmax()), 0]))
    assert ended[1] and (rewards[1] == -batch.penalty).all() and batch.info()["decided"][1] == 0
