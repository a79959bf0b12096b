"""Policies over batches of multi-cluster episodes: the baselines of the HephaestusForge paper, one-step look-ahead, rollout.

A policy is a function of a batch and a random generator that returns an action per environment.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from placeopt.multi_cluster.simulator.stream import Stream

Policy = Callable[[Stream, np.random.Generator], np.ndarray]


def _of_clusters(batch: Stream, liked: np.ndarray) -> np.ndarray:
    """Return the feasible cluster of the highest score, of equals the first; the refusal where there is none."""
    feasible = batch.world.accepts[:, : batch.clusters]
    best = np.where(feasible, liked, -np.inf).argmax(axis=1)
    return np.where(feasible.any(axis=1), best, batch.num_actions - 1)


def _cpu_share(batch: Stream) -> np.ndarray:
    return batch.world.used[:, :, 0] / batch.world.capacity[:, :, 0]


def cpu_greedy(batch: Stream, rng: np.random.Generator) -> np.ndarray:
    """All replicas on the feasible cluster with the least share of cpu in use."""
    return _of_clusters(batch, -_cpu_share(batch))


def binpack(batch: Stream, rng: np.random.Generator) -> np.ndarray:
    """All replicas on the feasible cluster with the greatest share of cpu in use."""
    return _of_clusters(batch, _cpu_share(batch))


def latency_greedy(batch: Stream, rng: np.random.Generator) -> np.ndarray:
    """All replicas on a random feasible cluster within the latency threshold of the request, else refuse."""
    drawn = rng.random(batch.world.latency.shape)
    within = batch.world.latency <= batch.world.threshold[_rows(batch), _now(batch)][:, None]
    feasible = batch.world.accepts[:, : batch.clusters] & within
    return np.where(
        feasible.any(axis=1), np.where(feasible, drawn, -1.0).argmax(axis=1), batch.num_actions - 1
    )


def karmada_greedy(batch: Stream, rng: np.random.Generator) -> np.ndarray:
    """All replicas on the feasible cluster that could hold the most, as the mean of what its cpu and its memory could."""
    w = batch.world
    demand = w.demand[_rows(batch), _now(batch)][:, None, :]
    return _of_clusters(batch, ((w.capacity - w.used) / demand).mean(axis=2))


def _rows(batch: Stream) -> np.ndarray:
    return np.arange(batch.num_envs)


def _now(batch: Stream) -> np.ndarray:
    return np.minimum(batch.world.now, batch.steps - 1)


#: The baselines by name.
BASELINES: dict[str, Policy] = {
    "cpu-greedy": cpu_greedy,
    "binpack": binpack,
    "latency-greedy": latency_greedy,
    "karmada-greedy": karmada_greedy,
}


def myopic(
    batch: Stream,
    rng: np.random.Generator,
    weights: np.ndarray,
    least: np.ndarray | float = -np.inf,
) -> np.ndarray:
    """Take the action of the highest reward now.

    Parameters
    ----------
    weights : ndarray
        Of latency, cost and inequality, shape (3,) or (N, 3).
    least : float or ndarray
        Refuse requests whose best reward is below this.
    """
    worth = (batch.parts * np.atleast_2d(weights)[:, None, :]).sum(axis=2)
    worth = np.where(batch.masks, worth, -np.inf)
    best = worth.argmax(axis=1)
    return np.where(worth[_rows(batch), best] >= least, best, batch.num_actions - 1)


def rollout(
    batch: Stream,
    rng: np.random.Generator,
    weights: np.ndarray,
    horizon: int = 40,
    samples: int = 2,
) -> np.ndarray:
    """Take the action after which `myopic` earns most in the next `horizon` steps, over `samples` drawn futures; knows no request to come.

    The same futures are drawn for all actions of an environment.
    """
    envs, actions = np.nonzero(batch.masks)
    futures = rng.integers(0, 2**63, size=(batch.num_envs, samples)).astype(np.uint64)
    twins = batch.silent(np.repeat(envs, samples))
    twins.redraw(futures[envs].ravel())
    earned = twins.step(np.repeat(actions, samples))[0] @ weights
    for _ in range(horizon):
        earned += twins.step(myopic(twins, rng, weights))[0] @ weights
    worth = np.full(batch.masks.shape, -np.inf)
    worth[envs, actions] = earned.reshape(-1, samples).mean(axis=1)
    return worth.argmax(axis=1)


def of(name: str, weights: Sequence[float] | np.ndarray) -> Policy:
    """Return a policy by its name: a baseline, ``myopic`` or ``rollout``."""
    if name in BASELINES:
        return BASELINES[name]
    wanted = np.asarray(weights, dtype=float)
    return (
        partial(rollout, weights=wanted) if name == "rollout" else partial(myopic, weights=wanted)
    )


def play(batch: Stream, policy: Policy, rng: np.random.Generator) -> np.ndarray:
    """Play the running episodes to their ends; return what they earned, shape (N, 3), by parts."""
    earned = np.zeros((batch.num_envs, 3))
    ended = batch.world.now >= batch.steps
    while not ended.all():
        rewards, ended = batch.step(policy(batch, rng))
        earned += rewards
    return earned
