"""Quick plans for a trace of requests: the policies of the HephaestusForge paper's comparison, and look-ahead by weights."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from placeopt.core.errors import UsageError, did_you_mean
from placeopt.core.front import Front
from placeopt.core.interfaces import Encoder
from placeopt.core.task import Candidate, Task
from placeopt.core.weights import simplex
from placeopt.multi_cluster import policies
from placeopt.multi_cluster.instance import MultiCluster
from placeopt.multi_cluster.paper_data import STRATEGIES
from placeopt.multi_cluster.simulator.stream import Stream

#: What `greedy` refuses requests below: rewards, -inf for none.
LEAST = (-np.inf, 0.5, 0.6, 0.7, 0.8, 0.9)
#: Parts of the lattice of weights.
PARTS = 10


def _candidates(problem: MultiCluster, batch: Stream) -> Iterable[Candidate]:
    return (Candidate(problem.plan(batch.placements(k))) for k in range(batch.num_envs))


def _played(problem: MultiCluster, policy: policies.Policy, seed: int, count: int = 1) -> Stream:
    batch = Stream.of(problem, count)
    batch.reset()
    policies.play(batch, policy, np.random.default_rng(seed))
    return batch


def _baseline(name: str, task: Task[MultiCluster]) -> Front:
    batch = _played(task.problem, policies.BASELINES[name], task.seed)
    task.budget.spend(1)
    candidates = _candidates(task.problem, batch)
    return task.front(candidates, method=name, libraries=("numpy", "numba"))


def cpu_greedy(
    task: Task[MultiCluster],
) -> Front:
    """All replicas of a request on the feasible cluster with the least share of cpu in use."""
    return _baseline("cpu-greedy", task)


def binpack(
    task: Task[MultiCluster],
) -> Front:
    """All replicas of a request on the feasible cluster with the greatest share of cpu in use."""
    return _baseline("binpack", task)


def latency_greedy(
    task: Task[MultiCluster],
) -> Front:
    """All replicas of a request on a random feasible cluster within its latency threshold, else refuse it."""
    return _baseline("latency-greedy", task)


def karmada_greedy(
    task: Task[MultiCluster],
) -> Front:
    """All replicas of a request on the feasible cluster that could hold the most of them: Karmada's default."""
    return _baseline("karmada-greedy", task)


def _by_weights(
    method: str, task: Task[MultiCluster], weights: np.ndarray, least: np.ndarray
) -> Front:
    """Return the front of one-step look-ahead, a plan for every row of weights, as many as the budget allows."""
    count = max(1, task.budget.allow(len(weights)))
    weights, least = weights[:count], least[:count]

    def policy(batch: Stream, rng: np.random.Generator) -> np.ndarray:
        return policies.myopic(batch, rng, weights, least)

    batch = _played(task.problem, policy, task.seed, count)
    task.budget.spend(count)
    return task.front(
        _candidates(task.problem, batch),
        method=method,
        parameters={"plans": count},
        libraries=("numpy", "numba"),
    )


def read_weights(weights: str | Sequence[float] | None) -> np.ndarray:
    """Return rows of weights: those of the paper's strategies and a lattice, or the one that is named or given."""
    if weights is None:
        return np.concatenate((np.array(list(STRATEGIES.values())), simplex(PARTS, 3)))
    if isinstance(weights, str) and weights in STRATEGIES:
        return np.array([STRATEGIES[weights]])
    try:
        row = np.array(weights.split(",") if isinstance(weights, str) else weights, dtype=float)
    except (TypeError, ValueError):
        row = np.empty(0)
    if row.shape != (3,) or not (np.isfinite(row).all() and (row >= 0).all() and row.any()):
        hint = (
            f" or a strategy: {did_you_mean(weights, STRATEGIES)}"
            if isinstance(weights, str)
            else ""
        )
        raise UsageError(
            f"weights is {weights!r}; give three numbers of at least 0, such as 0.4,0.3,0.3{hint}"
        )
    return row[None] / row.sum()


def myopic(
    task: Task[MultiCluster],
    *,
    weights: str | Sequence[float] | None = None,
) -> Front:
    """Return plans that take the action of the highest reward, request after request.

    Parameters
    ----------
    weights : str or sequence of float, optional
        Of latency, cost and inequality, or the name of a strategy of the paper: a single plan, instead of a spread.
    """
    rows = read_weights(weights)
    return _by_weights(
        "myopic",
        task,
        rows,
        np.full(len(rows), -np.inf),
    )


def _grid() -> tuple[np.ndarray, np.ndarray]:
    rows = read_weights(None)
    return np.tile(rows, (len(LEAST), 1)), np.repeat(LEAST, len(rows))


def greedy(
    task: Task[MultiCluster],
) -> Front:
    """Return the plans of `myopic`, and of the same that refuses requests which would earn too little: milliseconds."""
    return _by_weights("greedy", task, *_grid())


def seeds(encoder: Encoder, rng: np.random.Generator) -> np.ndarray:
    """Return the vectors of greedy plans, without repetitions."""
    weights, least = _grid()

    def policy(batch: Stream, rng: np.random.Generator) -> np.ndarray:
        return policies.myopic(batch, rng, weights, least)

    batch = _played(encoder.problem, policy, 0, len(weights))  # type: ignore[arg-type]
    taken = batch.world.action
    return np.unique(np.where(taken < 0, batch.num_actions - 1, taken), axis=0)
