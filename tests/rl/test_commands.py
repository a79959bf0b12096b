"""The commands of training and of trained policies, as a person meets them."""

from __future__ import annotations

import importlib.util
import json

import numpy as np
import pytest

from placeopt import cli
from placeopt.edge_cloud.problem import EdgeCloud
from placeopt.rl import policy_file

SETTINGS = ("num_envs=4", "n_steps=6", "batch_size=24", "hidden=4")
SHORT = (
    *(part for setting in SETTINGS for part in ("--param", setting)),
    "--steps",
    "48",
    "--env",
    "applications=2",
)


@pytest.fixture
def run(capsys):
    """Return a function that runs placeopt and returns stdout and stderr."""

    def call(*arguments, code=0):
        with pytest.raises(SystemExit) as end:
            cli.main([str(a) for a in arguments])
        out, err = capsys.readouterr()
        assert (end.value.code or 0) == code, err
        return out, err

    return call


def test_training_needs_the_extra(run, tmp_path, monkeypatch):
    """Without torch one message says how to get it; nothing else needs it."""
    known = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util,
        "find_spec",
        lambda name, *rest: None if name == "torch" else known(name, *rest),
    )
    _, err = run("train", "edge-cloud", "-o", tmp_path / "p.npz", code=2)
    assert "placeopt[rl]" in err and "Traceback" not in err and not list(tmp_path.iterdir())


def test_train_and_use(run, tmp_path):
    """A policy for any problem with a decision sequence; checkpoints; wrong use is one message."""
    for module in ("torch", "stable_baselines3", "sb3_contrib"):
        pytest.importorskip(module, reason=f"{module} is not installed")
    policy, again, kept, instance = (
        tmp_path / name for name in ("p.npz", "q.npz", "c.npz", "i.json")
    )
    _, err = run("train", "edge-cloud", "-o", policy, "--checkpoint", kept, *SHORT)
    assert "48 steps in " in err and "reward" in err and f"wrote {policy}" in err
    found = policy_file.read(policy, "edge-cloud")
    assert (
        found.weights is None
        and found.environment == {"applications": 2}
        and found.card["settings"]["seed"] == 1
    )
    run("train", "edge-cloud", "-o", again, "--resume", kept, *SHORT)
    other = policy_file.read(again)
    assert all(np.array_equal(found.arrays[key], other.arrays[key]) for key in found.arrays)
    out, _ = run("evaluate-policy", policy, "--episodes", 3)
    assert "cost, greedy" in out and "reward" in out
    out, _ = run("evaluate-policy", policy, "--episodes", 3, "--weights", "1,3", "--json")
    assert set(json.loads(out)) == {"0.25,0.75", "0.25,0.75, greedy"}
    EdgeCloud.generate(3, applications=2).write(instance)
    run("solve", instance, "--method", "policy", "--policy", policy, "-o", tmp_path / "f.json")
    _, err = run(
        "train", "edge-cloud", "-o", again, "--weights", "1,1", "--conditioned", *SHORT, code=2
    )
    assert "not both" in err
    _, err = run(
        "train", "edge-cloud", "-o", again, "--resume", kept, *SHORT, "--seed", "5", code=2
    )
    assert "trained with seed 1, not 5" in err
    _, err = run("train", "edge-clod", "-o", again, code=2)
    assert "error: edge-clod" in err


def test_policies_are_listed(run):
    """By name; with their cards as JSON."""
    out, _ = run("policies", "--json")
    assert json.loads(out).keys() == policy_file.bundled().keys()
    out, _ = run("policies")
    assert all(name in out for name in policy_file.bundled())
    _, err = run("evaluate-policy", "nobody", code=2)
    assert "no such file or policy" in err and "Traceback" not in err


def test_presets_of_the_papers(run, tmp_path):
    """Settings, episodes and weights come with the name; options change them; others are told."""
    for module in ("torch", "stable_baselines3", "sb3_contrib"):
        pytest.importorskip(module, reason=f"{module} is not installed")
    policy = tmp_path / "p.npz"
    short = ("--steps", 96, "--param", "n_steps=6", "--param", "hidden=4", "-o", policy)
    run("train", "rescheduling", "--preset", "reach-ppo", *short)
    found = policy_file.read(policy)
    assert found.weights == (1,) and found.environment == {}
    assert found.card["settings"]["learning_rate"] == 3e-4
    _, err = run("train", "multi-cluster", "--preset", "reach-ppo", *short, code=2)
    assert "unknown preset of multi-cluster 'reach-ppo'" in err
    _, err = run("train", "edge-cloud", "--preset", "reach-ppo", *short, code=2)
    assert "unknown preset of edge-cloud" in err
