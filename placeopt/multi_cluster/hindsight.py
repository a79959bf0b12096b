"""``hindsight``: what a trace of requests could have earned by one who knew it, so that the regret of a policy can be stated.

Dynamic programming over the actions of the environment, request after request. What has gone leaves no mark in the fixed semantics: of
two histories with the same running placements only the better can be part of an optimum. A history is dropped too when an optimistic
reward for all that is still to come cannot lift it above a plan that is known. If more than a number of histories remain, the best are
kept: the plan is then a heuristic one, and the largest optimistic reward of what was dropped is the proven bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from placeopt.core.budget import Budget
from placeopt.core.errors import UsageError
from placeopt.core.front import Front
from placeopt.core.task import Candidate, Task
from placeopt.multi_cluster import policies
from placeopt.multi_cluster.heuristics import read_weights
from placeopt.multi_cluster.instance import MultiCluster
from placeopt.multi_cluster.paper_data import STRATEGIES
from placeopt.multi_cluster.simulator.stream import Stream

#: Histories that are kept by default: so many over all requests together, and per request at least.
WORK, LEAST_STATES = 100_000, 500
#: Histories that a first search keeps.
HASTY = 100
#: Requests that are looked ahead with what runs now; continuations that are kept until they are, per history.
AHEAD, WIDER = 12, 4
#: Rewards closer than this are the same.
TOLERANCE = 1e-9


@dataclass(frozen=True)
class Hindsight:
    """The best plan that was found for a trace.

    Attributes
    ----------
    reward, bound : float
        Its reward, and what no sequence of actions can exceed.
    plan : dict
    """

    reward: float
    bound: float
    plan: dict[str, Any]

    @property
    def proven(self) -> bool:
        """Whether no sequence of actions earns more."""
        return self.bound <= self.reward + TOLERANCE


def optimistic(problem: MultiCluster, weights: np.ndarray) -> np.ndarray:
    """Return for every request a reward that no decision exceeds, shape (T,).

    Fixed semantics: the best cluster as if it were empty, with the increase of a single replica's share, and Gini coefficient 0.
    Published: latency and cost 0, as for a spread that places nothing; 1 for refusals that earn it.
    """
    t = problem.arrays
    spread = t.scale[1] - t.scale[0]
    if problem.semantics == "published":
        most = weights @ np.array([1 + 1 / 999, 1 + t.scale[0] / spread, 1.0])
        return np.full(len(t.replicas), max(most, 1.0))
    latency = np.minimum(1000.0, t.base * (1 + (t.increase / t.replicas)[:, None]))
    worth = (
        weights[0] * (1 - (latency - 1) / 999)
        + weights[1] * (1 - (t.price - t.scale[0]) / spread)
        + weights[2]
    )
    hosts = (t.used + t.demand[:, None] <= t.capacity).all(axis=2)
    return np.maximum(0.0, np.where(hosts, worth, -np.inf).max(axis=1))


def optimum(
    problem: MultiCluster, weights: np.ndarray, states: int, budget: Budget | None = None
) -> Hindsight:
    """Return the plan of highest reward that keeping `states` histories per request finds.

    A hasty search first: the better the plan that is known, the more histories cannot beat it.
    """
    stream = Stream.of(problem, 1)
    stream.reset()
    if states > HASTY:
        first = optimum(problem, weights, HASTY, budget)
        if first.proven:
            return first
        reward, plan = first.reward, first.plan
    else:
        known = stream.fork([0])
        reward = float(
            (
                policies.play(known, policies.of("myopic", weights), np.random.default_rng(0))
                @ weights
            )[0]
        )
        plan = problem.plan(known.placements(0))
    rest = np.concatenate((optimistic(problem, weights)[::-1].cumsum()[::-1], [0.0]))
    value, bound = np.zeros(1), reward
    for t in range(stream.steps):
        most = 1 if budget is not None and budget.out_of_time else states
        envs, actions = np.nonzero(stream.masks)
        worth = value[envs] + stream.parts[envs, actions] @ weights
        keep = np.flatnonzero(worth + rest[t + 1] > reward + TOLERANCE)
        keep = keep[_best_of_equals(problem, stream, envs[keep], actions[keep], worth[keep], t)]
        keep, bound = _best(worth[keep], rest[t + 1], keep, WIDER * most, bound)
        if len(keep):
            stream = stream.silent(envs[keep])
            stream.step(actions[keep])
            value = worth[keep]
            ahead = _ahead(problem, stream, weights, rest, t + 1)
            still = np.flatnonzero(value + ahead > reward + TOLERANCE)
            still, bound = _best(value[still], ahead[still], still, most, bound)
            if 0 < len(still) < len(value):
                stream, value = stream.silent(still), value[still]
        if len(keep) == 0 or len(still) == 0:  # nothing can beat the plan that is known
            return Hindsight(reward, bound, plan)
    best = int(value.argmax())
    return Hindsight(
        float(value[best]), max(bound, float(value[best])), problem.plan(stream.placements(best))
    )


def _best(
    worth: np.ndarray, ahead: np.ndarray | float, which: np.ndarray, most: int, bound: float
) -> tuple[np.ndarray, float]:
    """Return the `most` of highest reward so far and ahead, and the bound that holds for the others too."""
    if len(which) <= most:
        return which, bound
    total = worth + ahead
    order = np.argsort(-total, kind="stable")
    return which[order[:most]], max(bound, float(total[order[most]]))


def _ahead(
    problem: MultiCluster, stream: Stream, weights: np.ndarray, rest: np.ndarray, t: int
) -> np.ndarray:
    """Return what no history can exceed from request t on, shape (N,): of what runs now, what still runs then takes its room.

    The next `AHEAD` requests are looked at with the latencies and the room that the running placements leave, their replicas on the
    best clusters as far as these hold them; the others as in `optimistic`.
    """
    last = min(t + AHEAD, stream.steps)
    total = np.full(stream.num_envs, rest[last])
    if problem.semantics == "published":
        return total + (rest[t] - rest[last])
    a, spread = problem.arrays, problem.arrays.scale[1] - problem.arrays.scale[0]
    for k in range(t, last):
        alive = np.flatnonzero(a.departure[:t] > a.arrival[k])
        placed = stream.decisions[:, alive]
        used = a.used + np.einsum("nkc,kr->ncr", placed, a.demand[alive])
        room = ((a.capacity - used) // a.demand[k]).min(axis=2)
        factor = np.prod(1 + placed * (a.increase[alive] / a.replicas[alive])[:, None], axis=1)
        latency = np.minimum(1000.0, a.base * factor * (1 + a.increase[k] / a.replicas[k]))
        worth = weights[0] * (1 - (latency - 1) / 999) + weights[1] * (
            1 - (a.price - a.scale[0]) / spread
        )
        order = np.argsort(-worth, axis=1)
        filled = np.minimum(np.take_along_axis(room, order, axis=1).cumsum(axis=1), a.replicas[k])
        counts = np.diff(filled, axis=1, prepend=0)
        mean = (np.take_along_axis(worth, order, axis=1) * counts).sum(axis=1) / a.replicas[
            k
        ] + weights[2]
        total += np.where(filled[:, -1] == a.replicas[k], np.maximum(mean, 0.0), 0.0)
    return total


def _best_of_equals(
    problem: MultiCluster,
    stream: Stream,
    envs: np.ndarray,
    actions: np.ndarray,
    worth: np.ndarray,
    t: int,
) -> np.ndarray:
    """Return which continuations to keep: of those with the same running placements at the next request, the one that earned most."""
    if problem.semantics == "published" or len(envs) == 0:
        return np.arange(len(envs))
    arrays = problem.arrays
    end = arrays.arrival[t + 1] if t + 1 < stream.steps else np.inf
    alive = np.flatnonzero(arrays.departure[:t] > end)
    before = stream.decisions[:, alive].reshape(stream.num_envs, -1)
    mark = np.zeros((len(envs), stream.clusters), dtype=np.int64)
    if arrays.departure[t] > end:
        accepted, single = stream.world.accepts[envs, actions], actions < stream.clusters
        rows = np.flatnonzero(accepted & single)
        mark[rows, actions[rows]] = arrays.replicas[t]
        rows = np.flatnonzero(accepted & ~single)
        mark[rows] = stream.world.split[envs[rows], actions[rows] - stream.clusters]
    _, same = np.unique(np.concatenate((before[envs], mark), axis=1), axis=0, return_inverse=True)
    order = np.lexsort((-worth, same.ravel()))
    first = np.concatenate(([True], np.diff(same.ravel()[order]) > 0))
    return np.sort(order[first])


def hindsight(
    task: Task[MultiCluster],
    *,
    states: int | None = None,
    weights: str | Sequence[float] | None = None,
) -> Front:
    """Return the plans of highest reward by the paper's strategies; reward, bound and proof stand in the parameters of the run.

    The rewards are those of the environment; as points of a front the plans claim nothing.

    Parameters
    ----------
    states : int, optional
        Histories that are kept per request, by default more for short traces; with enough of them the rewards are proven the highest.
    weights : str or sequence of float, optional
        Of latency, cost and inequality, or the name of a strategy: that one only.
    """
    states = max(LEAST_STATES, WORK // len(task.problem.requests)) if states is None else states
    if states < 1:
        raise UsageError(f"states is {states}; give a whole number of at least 1")
    named = STRATEGIES if weights is None else {"weights": tuple(read_weights(weights)[0].tolist())}
    found: dict[str, Hindsight] = {}
    for name, row in named.items():
        if found and task.budget.out_of_time:
            break
        found[name] = optimum(task.problem, np.array(row), states, task.budget)
        task.budget.report(
            points=len(found),
            note=f"{name}: {found[name].reward:.4g} of at most {found[name].bound:.4g}",
        )
    facts = {
        name: {"reward": h.reward, "bound": h.bound, "proven": h.proven}
        for name, h in found.items()
    }
    return task.front(
        (Candidate(h.plan) for h in found.values()),
        method="hindsight",
        completed=len(found) == len(named),
        parameters={"states": states, **facts},
        libraries=("numpy", "numba"),
    )
