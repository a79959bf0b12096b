"""Greedy answers to temporal instances: one constructed solution per weight vector.

Requests are taken by decreasing duration and all start at slot 0, so that a machine is busy for as long as its first replica
and every later one that fits is free. Each replica goes where the weighted sum of what it adds to latency, cost and
interruption is least; cost is a blend of what it really adds now and of its share of a full machine.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from placeopt.core.front import Front, Objective, nondominated
from placeopt.core.interfaces import Encoder, build_encoder
from placeopt.core.kernels.compile import kernel
from placeopt.core.task import Candidate, Task
from placeopt.core.weights import lattice
from placeopt.temporal import timed_greedy as temporal_timed
from placeopt.temporal.instance import Temporal

#: Shares of the amortised cost in the blend.
BLENDS = (0.35, 0.7, 1.0)
#: Replicas times pools that the seeds may look at in all, for about a second at most.
WORK = 12_000_000
#: Up to this many requests times replicas times slots, seeds that choose starts too are added: fewer, as each takes milliseconds.
TIMED_WORK = 2_000_000
TIMED_FINENESS = 0.2
#: So many of the plans at given prices choose starts too.
MOST_TIMED = 60
#: Open bins of a pool that a replica looks at.
MOST_LOOKS = 16


@kernel
def _find(p, cpu, memory, last, earlier, free):
    """Return one of the bins that a pool opened last with room for a replica, -1 if there is none."""
    b = last[p]
    looks = 0
    while b >= 0 and looks < MOST_LOOKS:
        if free[b, 0] >= cpu and free[b, 1] >= memory:
            return b
        b = earlier[b]
        looks += 1
    return -1


@kernel
def _build(weights, blend, t, genes):
    """Write the genes of one greedy solution; `weights` are per unit of mean latency, cost and mean interruption."""
    n = len(t.duration)
    bins = 0
    last = np.full(len(t.offer), -1)
    earlier = np.empty(t.first[n], dtype=np.int64)
    free = np.empty((t.first[n], 2), dtype=np.int64)
    genes[:] = 0
    for i in t.rank:
        choices = t.legal[t.legal_first[i] : t.legal_first[i + 1]]
        cpu, memory, duration = t.demand[i, 0], t.demand[i, 1], t.duration[i]
        count = t.first[i + 1] - t.first[i]
        worst = 0.0
        for r in range(t.first[i], t.first[i + 1]):
            best, best_index, best_bin = np.inf, -1, -1
            for index in range(len(choices)):
                p = choices[index]
                score = weights[0] * max(0.0, t.latency[i, p] - worst) / n + weights[
                    2
                ] * t.frequency[p] / (n * count)
                if score >= best:
                    continue
                whole = min(t.price[p, 0] * duration, t.price[p, 1])
                share = max(cpu / t.capacity[p, 0], memory / t.capacity[p, 1]) * whole
                b = _find(p, cpu, memory, last, earlier, free)
                score += weights[1] * (blend * share + (1 - blend) * (whole if b < 0 else 0.0))
                if score < best:
                    best, best_index, best_bin = score, index, b
            if best_index < 0:
                break
            p = choices[best_index]
            genes[n + r] = best_index
            worst = max(worst, t.latency[i, p])
            if best_bin < 0:
                best_bin = bins
                earlier[bins], last[p] = last[p], bins
                free[bins, 0], free[bins, 1] = t.capacity[p, 0], t.capacity[p, 1]
                bins += 1
            free[best_bin, 0] -= cpu
            free[best_bin, 1] -= memory


@kernel
def _build_all(weights, blends, t, X):
    for k in range(len(weights)):
        _build(weights[k], blends[k], t, X[k])


def seeds(encoder: Any, rng: np.random.Generator) -> np.ndarray:
    """Return greedy vectors spread over the encoder's objectives, shape (k, num_genes); fewer for larger instances."""
    t = encoder.tables
    columns = encoder.problem.columns(encoder.objectives)
    most = max(6, WORK // (len(t.request) * len(t.offer)))
    blends = BLENDS if most >= 100 else BLENDS[1:2]
    fineness = min(
        1.0, (most / len(blends) / len(lattice(len(columns)))) ** (1 / max(1, len(columns) - 1))
    )
    weights = _weights(lattice(len(columns), fineness), columns)
    rough = _greedy(encoder, np.eye(3), np.full(3, BLENDS[1]))
    F = _all_values(encoder, rough)
    scale = np.maximum(F.max(axis=0) - F.min(axis=0), 1e-9)
    X = np.concatenate(
        [_greedy(encoder, weights / scale, np.full(len(weights), blend)) for blend in blends]
    )
    if len(t.duration) * len(t.request) * t.horizon <= TIMED_WORK:
        X = np.concatenate(
            (
                X,
                temporal_timed.solutions(
                    _weights(lattice(len(columns), TIMED_FINENESS), columns) / scale, t
                ),
            )
        )
    names = X @ (
        2 * np.random.default_rng(0).integers(0, 2**62, size=X.shape[1], dtype=np.int64) + 1
    )  # wraps around: a hash
    return X[np.sort(np.unique(names, return_index=True)[1])]


def _weights(spread: np.ndarray, columns: list[int]) -> np.ndarray:
    """Return weights of all three goals; a little on every one breaks ties well: among equal latencies, the cheaper."""
    weights = np.full((len(spread), 3), 1e-4)
    weights[:, columns] += spread
    return weights


def _greedy(encoder: Any, weights: np.ndarray, blends: np.ndarray) -> np.ndarray:
    X = np.zeros((len(weights), encoder.num_genes), dtype=np.int64)
    _build_all(weights, blends, encoder.tables, X)
    return X


def _all_values(encoder: Any, X: np.ndarray) -> np.ndarray:
    every = build_encoder(encoder.problem, encoder.problem.objectives)
    return every.evaluate(X)[0]


def plans_at(
    problem: Temporal, objectives: tuple[Objective, ...], prices: np.ndarray
) -> Iterator[Candidate]:
    """Hand on the best plans that are built greedily at given prices, an extreme one for each objective first.

    Parameters
    ----------
    prices : ndarray, shape (k, 2)
        What a ms of mean latency and a unit of mean interruption are worth in USD; the first ones matter most.
    """
    encoder: Any = build_encoder(problem, objectives)
    t = encoder.tables
    extremes = np.full((3, 3), 1e-6) + np.eye(3)
    weights = np.concatenate((extremes, np.insert(np.maximum(prices, 1e-6), 1, 1.0, axis=1)))
    weights = weights[: max(6, WORK // (len(t.request) * len(t.offer)) // len(BLENDS))]
    X = np.concatenate(
        [_greedy(encoder, weights, np.full(len(weights), blend)) for blend in BLENDS]
    )
    if len(t.duration) * len(t.request) * t.horizon <= TIMED_WORK:
        X = np.concatenate((X, temporal_timed.solutions(weights[:MOST_TIMED], t)))
    return _best(encoder, X)


def _best(encoder: Encoder, X: np.ndarray) -> Iterator[Candidate]:
    """Hand on the plans of the non-dominated of the vectors that violate least, an extreme one for each objective first."""
    F, G = encoder.evaluate(X)
    least = G.sum(axis=1) == G.sum(axis=1).min()
    X, F = X[least], F[least]
    chosen = nondominated(F)
    X, F = X[chosen], F[chosen]
    order = dict.fromkeys([*F.argmin(axis=0).tolist(), *range(len(X))])
    return (Candidate(encoder.decode(X[k])) for k in order)


def greedy(
    task: Task[Temporal],
) -> Front:
    """Return the front of the greedy solutions, one per weight vector and blend; `seed` and `start` change nothing."""
    encoder: Encoder = build_encoder(task.problem, task.objectives)
    X = seeds(encoder, np.random.default_rng(task.seed))
    X = X[: max(1, task.budget.allow(len(X)))]
    task.budget.spend(len(X))
    return task.front(_best(encoder, X), method="greedy")
