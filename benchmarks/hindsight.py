"""The reward that a trace allows to one who knows it, to state a policy's regret.

Dynamic programming over the actions of the environment, request after request. Requests that have
departed leave no mark: of two histories with the same running placements only the better one can be
part of an optimum. A history is dropped, too, when an optimistic reward for all that is still to
come cannot lift it above a plan that is known. If too many histories remain, the best are kept: the
plan is then a heuristic one, and the largest optimistic reward of the dropped ones is the proven
bound.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from placeopt.core.budget import Budget
from placeopt.core.fronts.values import Plan
from placeopt.multi_cluster.arrays import MultiClusterArrays
from placeopt.multi_cluster.episodes import policies
from placeopt.multi_cluster.episodes.state import MAX_MS
from placeopt.multi_cluster.episodes.stream import EpisodeBatch
from placeopt.multi_cluster.problem import MultiCluster

#: Histories that a first, quick search keeps.
QUICK_STATES = 100
#: Requests that `_bounds_ahead` looks at, given what runs now.
LOOK_AHEAD = 12
#: Continuations that are kept until their bounds are known, per history.
CONTINUATIONS = 4
#: Rewards closer than this are the same.
TOLERANCE = 1e-9


@dataclass(frozen=True)
class Hindsight:
    """The best plan that was found for a trace.

    Attributes
    ----------
    reward : float
        What the plan earns.
    bound : float
        What no sequence of actions can exceed.
    plan : dict
    """

    reward: float
    bound: float
    plan: Plan

    @property
    def proven(self) -> bool:
        """Whether no sequence of actions earns more."""
        return self.bound <= self.reward + TOLERANCE


def _earned(
    arrays: MultiClusterArrays, weights: np.ndarray, latency: np.ndarray, more: np.ndarray
) -> np.ndarray:
    """Return the rewards of latency and cost on clusters of some latencies, shape (..., C).

    `more` (..., 1) is the share by which a single replica raises the latency.
    """
    cheapest, dearest = arrays.scale
    latency = np.minimum(MAX_MS, latency * (1 + more))
    return weights[0] * (1 - (latency - 1) / 999) + weights[1] * (
        1 - (arrays.price - cheapest) / (dearest - cheapest)
    )


def optimistic(problem: MultiCluster, weights: np.ndarray) -> np.ndarray:
    """Return for every request a reward that no decision exceeds, shape (T,).

    It is that of the best cluster as if it were empty, with the increase of a single replica, and
    Gini coefficient 0.
    """
    arrays = problem.arrays
    share = (arrays.increase / arrays.replicas)[:, None]
    reward = _earned(arrays, weights, arrays.base, share) + weights[2]
    hosts = (arrays.used + arrays.demand[:, None] <= arrays.capacity).all(axis=2)
    return np.maximum(0.0, np.where(hosts, reward, -np.inf).max(axis=1))


def optimum(
    problem: MultiCluster, weights: np.ndarray, states: int, budget: Budget | None = None
) -> Hindsight:
    """Return the plan of highest reward that a search with `states` histories per request finds.

    A quick search comes first: the better the plan that is known, the more histories cannot beat
    it. When the budget is out of time, one history is followed to the end.
    """
    stream = EpisodeBatch.of(problem)
    if states > QUICK_STATES:
        known = optimum(problem, weights, QUICK_STATES, budget)
        if known.proven:
            return known
    else:
        twin = stream.fork([0])
        earned = policies.play(twin, policies.of("myopic", weights), np.random.default_rng(0))
        reward = float((earned @ weights)[0])
        known = Hindsight(reward, reward, twin.plan(0))
    rest = np.concatenate((optimistic(problem, weights)[::-1].cumsum()[::-1], [0.0]))
    value, bound = np.zeros(1), known.reward
    for t in range(stream.steps):
        limit = 1 if budget is not None and budget.out_of_time else states
        envs, actions = np.nonzero(stream.masks)
        earned = value[envs] + stream.parts[envs, actions] @ weights
        keep = np.flatnonzero(earned + rest[t + 1] > known.reward + TOLERANCE)
        keep = keep[_best_of_equals(problem, stream, envs[keep], actions[keep], earned[keep], t)]
        keep, bound = _best(earned[keep], rest[t + 1], keep, CONTINUATIONS * limit, bound)
        if len(keep):
            stream, value = stream.silent(envs[keep]), earned[keep]
            stream.step(actions[keep])
            ahead = _bounds_ahead(problem, stream, weights, rest, t + 1)
            keep = np.flatnonzero(value + ahead > known.reward + TOLERANCE)
            keep, bound = _best(value[keep], ahead[keep], keep, limit, bound)
        if len(keep) == 0:  # nothing can beat the plan that is known
            return replace(known, bound=bound)
        if len(keep) < len(value):
            stream, value = stream.silent(keep), value[keep]
    best = int(value.argmax())
    reward = float(value[best])
    return Hindsight(reward, max(bound, reward), stream.plan(best))


def _best(
    earned: np.ndarray, ahead: np.ndarray | float, which: np.ndarray, limit: int, bound: float
) -> tuple[np.ndarray, float]:
    """Return the `limit` histories of `which` with the highest bounds.

    Also return the bound that holds for the dropped ones too.
    """
    if len(which) <= limit:
        return which, bound
    total = earned + ahead
    order = np.argsort(-total, kind="stable")
    return which[order[:limit]], max(bound, float(total[order[limit]]))


def _bounds_ahead(
    problem: MultiCluster, stream: EpisodeBatch, weights: np.ndarray, rest: np.ndarray, t: int
) -> np.ndarray:
    """Return what no history can earn more than from request t on, shape (N,).

    The next `LOOK_AHEAD` requests see the latencies and the room that the running placements leave;
    their replicas go to the best clusters as far as these hold them. The others are as in
    `optimistic`, whose sums from each request on are `rest` (T + 1,).
    """
    last = min(t + LOOK_AHEAD, stream.steps)
    total = np.full(stream.num_envs, rest[last])
    arrays = problem.arrays
    share = arrays.increase / arrays.replicas
    for k in range(t, last):
        alive = np.flatnonzero(arrays.departure[:t] > arrays.arrival[k])
        placed = stream.state.placed[:, alive]
        used = arrays.used + np.einsum("nkc,kr->ncr", placed, arrays.demand[alive])
        room = ((arrays.capacity - used) // arrays.demand[k]).min(axis=2)
        factor = np.prod(1 + placed * share[alive][:, None], axis=1)
        reward = _earned(arrays, weights, arrays.base * factor, share[k])
        order = np.argsort(-reward, axis=1)
        wanted = arrays.replicas[k]
        filled = np.minimum(np.take_along_axis(room, order, axis=1).cumsum(axis=1), wanted)
        counts = np.diff(filled, axis=1, prepend=0)
        mean = (np.take_along_axis(reward, order, axis=1) * counts).sum(axis=1) / wanted
        whole = filled[:, -1] == wanted
        total += np.where(whole, np.maximum(mean + weights[2], 0.0), 0.0)
    return total


def _best_of_equals(
    problem: MultiCluster,
    stream: EpisodeBatch,
    envs: np.ndarray,
    actions: np.ndarray,
    earned: np.ndarray,
    t: int,
) -> np.ndarray:
    """Return which continuations to keep, as positions in `envs`, `actions` and `earned`.

    Of those with the same running placements at the next request it is the one that earned most.
    """
    if len(envs) == 0:
        return np.arange(len(envs))
    arrays = problem.arrays
    end = arrays.arrival[t + 1] if t + 1 < stream.steps else np.inf
    alive = np.flatnonzero(arrays.departure[:t] > end)
    before = stream.state.placed[:, alive].reshape(stream.num_envs, -1)
    placed = np.zeros((len(envs), stream.clusters), dtype=np.int64)
    if arrays.departure[t] > end:
        accepted = stream.outcomes.accepts[envs, actions]
        rows = np.flatnonzero(accepted & (actions < stream.clusters))
        placed[rows, actions[rows]] = arrays.replicas[t]
        rows = np.flatnonzero(accepted & (actions >= stream.clusters))
        placed[rows] = stream.outcomes.split[envs[rows], actions[rows] - stream.clusters]
    running = np.concatenate((before[envs], placed), axis=1)
    order = np.argsort(-earned, kind="stable")
    _, first = np.unique(running[order], axis=0, return_index=True)
    return np.sort(order[first])
