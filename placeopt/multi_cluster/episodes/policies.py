"""Policies over batches of multi-cluster episodes.

The baselines of the HephaestusForge paper, and one-step look-ahead. A policy is a function of a
batch and a random generator that returns an action per environment, shape (N,).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from placeopt.core.budget import Budget
from placeopt.multi_cluster.episodes.stream import EpisodeBatch

Policy = Callable[[EpisodeBatch, np.random.Generator], np.ndarray]


def _best_cluster(
    batch: EpisodeBatch, score: np.ndarray, feasible: np.ndarray | bool = True
) -> np.ndarray:
    """Return the feasible cluster of the highest score (N, C), of equals the first; else refuse."""
    feasible = batch.outcomes.accepts[:, : batch.clusters] & feasible
    best = np.where(feasible, score, -np.inf).argmax(axis=1)
    return np.where(feasible.any(axis=1), best, batch.num_actions - 1)


def _cpu_share(batch: EpisodeBatch) -> np.ndarray:
    return batch.state.used[:, :, 0] / batch.traces.capacity[:, :, 0]


def _at_hand(batch: EpisodeBatch, values: np.ndarray) -> np.ndarray:
    """Return what `values` (N, T, ...) say of the request at hand, shape (N, 1, ...)."""
    now = np.minimum(batch.state.now, batch.steps - 1)
    return values[np.arange(batch.num_envs), now][:, None]


def cpu_greedy(batch: EpisodeBatch, rng: np.random.Generator) -> np.ndarray:
    """All replicas on the feasible cluster with the least share of cpu in use."""
    return _best_cluster(batch, -_cpu_share(batch))


def binpack(batch: EpisodeBatch, rng: np.random.Generator) -> np.ndarray:
    """All replicas on the feasible cluster with the greatest share of cpu in use."""
    return _best_cluster(batch, _cpu_share(batch))


def latency_greedy(batch: EpisodeBatch, rng: np.random.Generator) -> np.ndarray:
    """All replicas on a random feasible cluster within the request's latency threshold."""
    latency = batch.state.latency
    within = latency <= _at_hand(batch, batch.traces.threshold)
    return _best_cluster(batch, rng.random(latency.shape), within)


def karmada_greedy(batch: EpisodeBatch, rng: np.random.Generator) -> np.ndarray:
    """All replicas on the feasible cluster where most fit: the mean of what cpu and memory hold."""
    free = batch.traces.capacity - batch.state.used
    return _best_cluster(batch, (free / _at_hand(batch, batch.traces.demand)).mean(axis=2))


#: The baselines of the paper by name.
BASELINES: dict[str, Policy] = {
    "cpu-greedy": cpu_greedy,
    "binpack": binpack,
    "latency-greedy": latency_greedy,
    "karmada-greedy": karmada_greedy,
}


def karmada_divided(batch: EpisodeBatch, rng: np.random.Generator) -> np.ndarray:
    """Divide the replicas by what clusters can still take: Karmada's dynamic weights.

    The division is no action of the episodes: it takes the place of FFD; see `EpisodeBatch.divide`.
    """
    return batch.divide()


def myopic(
    batch: EpisodeBatch,
    rng: np.random.Generator,
    weights: np.ndarray,
    min_reward: np.ndarray | float = -np.inf,
) -> np.ndarray:
    """Take the action of the highest reward now.

    Parameters
    ----------
    weights : ndarray
        Of the parts of the reward, shape (K,) or (N, K).
    min_reward : float or ndarray
        Refuse requests whose best reward is below this.
    """
    reward = (batch.parts * np.atleast_2d(weights)[:, None, :]).sum(axis=2)
    reward = np.where(batch.masks, reward, -np.inf)
    return np.where(reward.max(axis=1) >= min_reward, reward.argmax(axis=1), batch.num_actions - 1)


def of(name: str, weights: Sequence[float] | np.ndarray) -> Policy:
    """Return a policy by its name: a baseline, ``karmada-divided`` or ``myopic``."""
    if name in BASELINES:
        return BASELINES[name]
    if name == "karmada-divided":
        return karmada_divided
    return partial(myopic, weights=np.asarray(weights, dtype=float))


def play(
    batch: EpisodeBatch, policy: Policy, rng: np.random.Generator, budget: Budget | None = None
) -> np.ndarray:
    """Play the running episodes to their ends, or until the budget is out of time.

    Returns
    -------
    ndarray, shape (N, K)
        What the episodes earned, by reward parts.
    """
    earned = np.zeros((batch.num_envs, len(batch.rewards)))
    while not batch.ended.all() and not (budget and budget.out_of_time):
        earned += batch.step(policy(batch, rng))[0]
    return earned
