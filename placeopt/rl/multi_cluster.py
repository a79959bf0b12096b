"""Multi-cluster episodes to learn from: generated ones, single or many at once, and those of an instance."""

from __future__ import annotations

from typing import Any

from placeopt.problems.base import Problem
from placeopt.problems.multi_cluster_data import STRATEGIES
from placeopt.rl.vector import BatchEnv, BatchVectorEnv, Weights
from placeopt.sequential.batch import Batch
from placeopt.sequential.multi_cluster_batch import MultiCluster

#: Columns with the parts of an action's one-step reward, and with the reward of an action that does not place the request.
SCORE = (5, 6, 7, 8)

#: The reward strategies of the paper, by name.
PREFERENCES = STRATEGIES


class _Scored(MultiCluster):
    """Says where the one-step rewards stand."""

    score = SCORE


def batch(
    problem: Problem | None = None,
    num_envs: int = 1,
    seed: int = 0,
    *,
    clusters: int = 4,
    semantics: str = "fixed",
    rate: float | None = None,
    duration: float = 1.0,
    replicas: Any = (1, 7),
    steps: int = 100,
) -> Batch:
    """Return generated episodes; options as of `placeopt.sequential.multi_cluster_batch.MultiCluster`.

    Their seeds are those of `reset`; `seed` is not used.
    """
    return _Scored(num_envs, clusters=clusters, semantics=semantics, rate=rate, duration=duration, replicas=tuple(replicas), steps=steps)


def make_env(weights: Weights = None, **options: Any) -> BatchEnv:
    """Return the single environment of id ``placeopt/MultiCluster-v0``; options as of `batch`."""
    return BatchEnv(batch(None, 1, **options), weights)


def make_vec_env(num_envs: int = 1, weights: Weights = None, **options: Any) -> BatchVectorEnv:
    """Return `num_envs` environments that step together; options as of `batch`."""
    return BatchVectorEnv(batch(None, num_envs, **options), weights)
