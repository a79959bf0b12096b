"""Heuristic plans for a trace of requests: the policies that the paper compares, and look-ahead."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from placeopt.core.errors import UsageError, did_you_mean
from placeopt.core.fronts.front import Front
from placeopt.core.goals import read_weights as read_row
from placeopt.core.goals import simplex
from placeopt.core.interfaces import Encoder
from placeopt.core.task import Candidate, Task
from placeopt.multi_cluster.episodes import policies
from placeopt.multi_cluster.episodes.stream import EpisodeBatch
from placeopt.multi_cluster.generator import STRATEGIES
from placeopt.multi_cluster.problem import MultiCluster

#: `greedy` refuses requests that would earn less than one of these rewards; -inf for none.
MIN_REWARDS = (-np.inf, 0.5, 0.6, 0.7, 0.8, 0.9)
#: Parts of the lattice of weights: 66 vectors.
PARTS = 10

WeightsText = Annotated[
    str | Sequence[float] | None,
    Field(description="Of latency, cost, inequality, such as 0.4,0.3,0.3; or a paper's strategy."),
]


def _front(
    method: str,
    task: Task[MultiCluster],
    policy: policies.Policy,
    count: int = 1,
    **parameters: Any,
) -> Front:
    """Return the front of the `count` plans of a policy."""
    batch = EpisodeBatch.of(task.problem, count)
    policies.play(batch, policy, np.random.default_rng(task.seed), task.budget)
    task.budget.spend(count)
    return task.front(
        (Candidate(batch.plan(k)) for k in range(count)),
        method=method,
        completed=bool(batch.ended.all()),
        parameters=parameters,
        libraries=("numpy", "numba"),
    )


def cpu_greedy(task: Task[MultiCluster]) -> Front:
    """All replicas of a request on the feasible cluster with the least share of cpu in use."""
    return _front("cpu-greedy", task, policies.cpu_greedy)


def binpack(task: Task[MultiCluster]) -> Front:
    """All replicas of a request on the feasible cluster with the greatest share of cpu in use."""
    return _front("binpack", task, policies.binpack)


def latency_greedy(task: Task[MultiCluster]) -> Front:
    """All replicas on a random feasible cluster within the latency threshold, else refuse."""
    return _front("latency-greedy", task, policies.latency_greedy)


def karmada_greedy(task: Task[MultiCluster]) -> Front:
    """All replicas on the feasible cluster where most of them fit: the paper's Karmada-Greedy."""
    return _front("karmada-greedy", task, policies.karmada_greedy)


def karmada_divided(task: Task[MultiCluster]) -> Front:
    """Divide replicas in proportion to what clusters can still take: Karmada's dynamic weights."""
    return _front("karmada-divided", task, policies.karmada_divided)


def _look_ahead(
    method: str, task: Task[MultiCluster], weights: np.ndarray, min_reward: np.ndarray
) -> Front:
    """Return one-step look-ahead by rows of weights (n, 3), as many as the budget allows."""
    count = max(1, task.budget.allow(len(weights)))
    policy = partial(policies.myopic, weights=weights[:count], min_reward=min_reward[:count])
    return _front(method, task, policy, count, plans=count)


def read_weights(weights: str | Sequence[float] | None) -> np.ndarray:
    """Return rows of weights, shape (n, 3), that sum to 1.

    They are those of the paper's strategies and a lattice; or the one that is named or given.
    """
    if weights is None:
        return np.concatenate((np.array(list(STRATEGIES.values())), simplex(PARTS, 3)))
    if isinstance(weights, str) and weights in STRATEGIES:
        return np.array([STRATEGIES[weights]])
    try:
        row = read_row(weights, 3)
    except UsageError:
        hint = ""
        if isinstance(weights, str):
            hint = f" or a strategy: {did_you_mean(weights, STRATEGIES)}"
        raise UsageError(
            f"weights is {weights!r}; give three numbers of at least 0, such as 0.4,0.3,0.3{hint}"
        ) from None
    return row[None] / row.sum()


def myopic(task: Task[MultiCluster], *, weights: WeightsText = None) -> Front:
    """Return plans that take the action of the highest reward, request after request.

    With `weights` it is a single plan.
    """
    rows = read_weights(weights)
    return _look_ahead("myopic", task, rows, np.full(len(rows), -np.inf))


def _grid() -> tuple[np.ndarray, np.ndarray]:
    """Return all pairs of weights (n, 3) and least rewards (n,)."""
    rows = read_weights(None)
    return np.tile(rows, (len(MIN_REWARDS), 1)), np.repeat(MIN_REWARDS, len(rows))


def greedy(task: Task[MultiCluster]) -> Front:
    """Return the plans of `myopic`, and those that refuse requests which would earn too little."""
    return _look_ahead("greedy", task, *_grid())


def seeds(encoder: Encoder, rng: np.random.Generator, seconds: float | None = None) -> np.ndarray:
    """Return the vectors of greedy plans, without repetitions, shape (k, num_genes).

    They are played together, in milliseconds; `seconds` changes nothing.
    """
    assert isinstance(encoder.problem, MultiCluster)
    weights, min_reward = _grid()
    batch = EpisodeBatch.of(encoder.problem, len(weights))
    policies.play(batch, partial(policies.myopic, weights=weights, min_reward=min_reward), rng)
    actions = batch.state.action
    return np.unique(np.where(actions < 0, batch.num_actions - 1, actions), axis=0)
