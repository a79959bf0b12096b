"""Greedy plans of temporal instances: one per weight vector.

Requests are taken by decreasing duration and all start at slot 0, so that a machine is busy for as
long as its first replica runs, and later replicas that fit add no cost. Each replica goes to the
pool with the least weighted sum of what it adds to latency, cost and interruption. Its cost is a
blend of the added cost and of its share of a full machine (the amortised cost).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from placeopt.core.budget import Budget
from placeopt.core.fronts.dominance import nondominated
from placeopt.core.fronts.front import Front
from placeopt.core.fronts.values import Objective
from placeopt.core.goals import lattice
from placeopt.core.kernels.compile import kernel
from placeopt.core.task import Candidate, Task
from placeopt.temporal.encoder import TemporalEncoder
from placeopt.temporal.instance import Temporal
from placeopt.temporal.pools import weighted_quality

#: Shares of the amortised cost in the blend.
BLENDS = (0.35, 0.7, 1.0)
#: Replicas times pools that all seeds together may look at: about a second.
MAX_LOOKS = 12_000_000
#: Greedy plans that are judged even when the time is over.
MIN_JUDGED = 20
#: Bins of a pool that are tried for a replica, the newest first.
MAX_TRIED = 16


@kernel
def _find_bin(newest, earlier, free, cpu, memory):
    """Return one of the newest bins of a pool with room for a replica, -1 if there is none.

    `newest` is the newest bin; `earlier`, (R,), leads to the bin before; `free` is (R, 2).
    """
    b, tried = newest, 0
    while b >= 0 and tried < MAX_TRIED:
        if free[b, 0] >= cpu and free[b, 1] >= memory:
            return b
        b = earlier[b]
        tried += 1
    return -1


@kernel
def _best_pool(request, weights, blend, instance, worst_latency, newest, earlier, free):
    """Return the legal index and the bin of the best pool for a replica; bin -1 is a new one."""
    cpu, memory = instance.demand[request, 0], instance.demand[request, 1]
    low = instance.legal_first[request]
    best, best_index, best_bin = np.inf, -1, -1
    for index in range(instance.legal_first[request + 1] - low):
        pool = instance.legal[low + index]
        score = weighted_quality(instance, weights, request, pool, worst_latency)
        if score >= best:
            continue
        capacity, price = instance.capacity[pool], instance.price[pool]
        whole = min(price[0] * instance.duration[request], price[1])
        amortised = max(cpu / capacity[0], memory / capacity[1]) * whole
        b = _find_bin(newest[pool], earlier, free, cpu, memory)
        score += weights[1] * (blend * amortised + (1 - blend) * (whole if b < 0 else 0.0))
        if score < best:
            best, best_index, best_bin = score, index, b
    return best_index, best_bin


@kernel
def _build(weights, blend, instance, newest, earlier, free, genes):
    """Write the genes of one plan, shape (n + R,), in place.

    For the bins, see `_find_bin`; `newest`, (pools,), is that of each pool.
    """
    n, bins = len(instance.duration), 0
    newest[:] = -1
    genes[:] = 0
    for request in instance.rank:
        worst_latency = 0.0
        for r in range(instance.first[request], instance.first[request + 1]):
            index, b = _best_pool(
                request, weights, blend, instance, worst_latency, newest, earlier, free
            )
            if index < 0:
                break
            pool = instance.legal[instance.legal_first[request] + index]
            genes[n + r] = index
            worst_latency = max(worst_latency, instance.latency[request, pool])
            if b < 0:
                b = bins
                earlier[b], newest[pool] = newest[pool], b
                free[b, 0], free[b, 1] = instance.capacity[pool, 0], instance.capacity[pool, 1]
                bins += 1
            free[b, 0] -= instance.demand[request, 0]
            free[b, 1] -= instance.demand[request, 1]


@kernel
def _build_all(weights, blend, instance, newest, earlier, free, X):
    """Write one plan a row into X, shape (k, n + R), in place."""
    for k in range(len(weights)):
        _build(weights[k], blend, instance, newest, earlier, free, X[k])


def seeds(
    encoder: TemporalEncoder, rng: np.random.Generator, seconds: float | None = None
) -> np.ndarray:
    """Return greedy vectors spread over the encoder's objectives, shape (k, num_genes).

    There are fewer of them for larger instances; nothing is random. Where `seconds` are short,
    there is one for each objective.
    """
    budget = Budget(seconds=seconds)
    instance, problem = encoder.arrays, encoder.problem
    columns = problem.columns(encoder.objectives)
    limit = max(6, MAX_LOOKS // (len(instance.request) * len(instance.offer)))
    blends = BLENDS if limit >= 100 else BLENDS[1:2]
    each = limit / len(blends) / len(lattice(len(columns)))
    fineness = min(1.0, each ** (1 / max(1, len(columns) - 1)))
    rough = _greedy(encoder, np.eye(3), BLENDS[1:2])
    if seconds is not None and budget.progress > len(rough) / limit:
        return rough
    F = TemporalEncoder(problem, problem.objectives).evaluate(rough)[0]
    scale = np.maximum(F.max(axis=0) - F.min(axis=0), 1e-9)
    X = _greedy(encoder, _weights(fineness, columns) / scale, blends)
    # Equal vectors are found by a hash; the sums wrap around.
    factors = 2 * np.random.default_rng(0).integers(0, 2**62, size=X.shape[1], dtype=np.int64) + 1
    return X[np.sort(np.unique(X @ factors, return_index=True)[1])]


def _weights(fineness: float, columns: list[int]) -> np.ndarray:
    """Return weights of all three objectives, shape (k, 3).

    Objectives that were not asked for get a little, which breaks ties well: of equal latencies, the
    cheaper.
    """
    spread = lattice(len(columns), fineness)
    weights = np.full((len(spread), 3), 1e-4)
    weights[:, columns] += spread
    return weights


def _greedy(encoder: TemporalEncoder, weights: np.ndarray, blends: tuple[float, ...]) -> np.ndarray:
    """Return one vector per blend and weight vector, shape (len(blends) * k, num_genes)."""
    X = np.zeros((len(blends), len(weights), encoder.num_genes), dtype=np.int64)
    instance, replicas = encoder.arrays, len(encoder.arrays.request)
    newest, earlier, free = (
        np.zeros(shape, dtype=np.int64) for shape in (len(instance.offer), replicas, (replicas, 2))
    )
    for k, blend in enumerate(blends):
        _build_all(weights, blend, instance, newest, earlier, free, X[k])
    return X.reshape(-1, encoder.num_genes)


def greedy_vectors(encoder: TemporalEncoder, weights: np.ndarray) -> np.ndarray:
    """Return the greedy vectors for weights of all three objectives, shape (k, num_genes)."""
    return _greedy(encoder, weights, BLENDS[1:2])


def plans_at(
    problem: Temporal, objectives: tuple[Objective, ...], prices: np.ndarray
) -> Iterator[Candidate]:
    """Yield the best plans that are built greedily at given prices, the extreme ones first.

    Parameters
    ----------
    prices : ndarray, shape (k, 2)
        What a ms of mean latency and a unit of mean interruption are worth in USD. Where the
        instance is large, only the first ones are used.
    """
    encoder = TemporalEncoder(problem, objectives)
    instance = encoder.arrays
    extremes = np.full((3, 3), 1e-6) + np.eye(3)
    weights = np.concatenate((extremes, np.insert(np.maximum(prices, 1e-6), 1, 1.0, axis=1)))
    looks = len(instance.request) * len(instance.offer)
    weights = weights[: max(6, MAX_LOOKS // looks // len(BLENDS))]
    return _best(encoder, _greedy(encoder, weights, BLENDS))


def _best(encoder: TemporalEncoder, X: np.ndarray) -> Iterator[Candidate]:
    """Yield the plans of the non-dominated vectors among those of the smallest violation.

    A plan that is best in an objective comes first.
    """
    F, G = encoder.evaluate(X)
    violation = G.sum(axis=1)
    best = violation == violation.min()
    X, F = X[best], F[best]
    chosen = nondominated(F)
    X, F = X[chosen], F[chosen]
    order = dict.fromkeys([*F.argmin(axis=0).tolist(), *range(len(X))])
    return (Candidate(encoder.decode(X[k])) for k in order)


def greedy(task: Task[Temporal]) -> Front:
    """Return the front of the greedy plans; `seed` and `start` of the task change nothing."""
    encoder = TemporalEncoder(task.problem, task.objectives)
    timed = task.budget.seconds_limit is not None
    seconds = max(1e-3, task.budget.seconds_left) if timed else None
    X = seeds(encoder, np.random.default_rng(task.seed), seconds)
    X = X[: max(1, task.budget.allow(len(X)))]
    task.budget.spend(len(X))
    return task.front(until_time(_best(encoder, X), task.budget, MIN_JUDGED), method="greedy")


def until_time(
    candidates: Iterator[Candidate], budget: Budget, least: int = 3
) -> Iterator[Candidate]:
    """Yield candidates until the time is over, so many in any case: the extremes come first."""
    for count, candidate in enumerate(candidates):
        if count >= least and budget.out_of_time:
            return
        yield candidate
