"""Hindsight: the highest reward of a trace, against all sequences of actions; bounds that hold."""

from __future__ import annotations

import importlib
import itertools
import sys
from pathlib import Path

import numpy as np
import pytest

from placeopt.multi_cluster.episodes.stream import EpisodeBatch
from placeopt.multi_cluster.generator import STRATEGIES
from placeopt.multi_cluster.problem import MultiCluster

sys.path.append(str(Path(__file__).resolve().parents[2] / "benchmarks"))
benchmark = importlib.import_module("hindsight")


def brute(problem: MultiCluster, weights: np.ndarray) -> float:
    """The highest reward of all legal sequences of actions."""
    actions = len(problem.clusters) + 4
    X = np.array(list(itertools.product(range(actions), repeat=len(problem.requests))))
    stream = EpisodeBatch.of(problem, len(X))
    stream.reset()
    total, legal = np.zeros(len(X)), np.ones(len(X), dtype=bool)
    for genes in X.T:
        legal &= stream.masks[np.arange(len(X)), genes]
        total += stream.step(genes)[0] @ weights
    return float(total[legal].max())


@pytest.mark.parametrize("seed", range(2))
def test_optimum_against_all_sequences(seed: int) -> None:
    """Every strategy; with few histories kept, the bound still holds; the plan is the reward's."""
    problem = MultiCluster.generate(seed, clusters=3, requests=4, most_replicas=14)
    for row in STRATEGIES.values():
        weights = np.array(row)
        best = brute(problem, weights)
        answer, hasty = (
            benchmark.optimum(problem, weights, 10**5),
            benchmark.optimum(problem, weights, 2),
        )
        assert answer.proven and answer.reward == pytest.approx(best)
        assert hasty.reward <= best + 1e-9 and hasty.bound >= best - 1e-9
        assert problem.evaluate(answer.plan).feasible


def test_no_reward_exceeds_the_optimistic_one() -> None:
    """Whatever is done, step by step."""
    problem, rng = (
        MultiCluster.generate(3, requests=40, most_replicas=20),
        np.random.default_rng(0),
    )
    stream = EpisodeBatch.of(problem, 50)
    stream.reset()
    for t in range(40):
        for row in STRATEGIES.values():
            assert (stream.parts @ np.array(row))[stream.masks].max() <= benchmark.optimistic(
                problem, np.array(row)
            )[t] + 1e-12
        stream.step(np.where(stream.masks, rng.random(stream.masks.shape), -1).argmax(axis=1))
