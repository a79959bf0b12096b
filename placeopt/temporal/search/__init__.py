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
from placeopt.temporal.pools import PoolArrays, pool_of, served, weighted_quality
from placeopt.temporal.problem import Temporal
from placeopt.temporal.search.prices import DemandPrices

# -- levelling -------------------------------------------------------------------------------------

#: Cells of a horizon, at most; a horizon of fewer slots has one for each.
MAX_CELLS = 128


@kernel
def _shares(genes, instance, request, shares):
    """Write into `shares`, (P,), how many machines of each pool a request fills.

    Returns whether machines of all of its pools are cheaper reserved than on demand for all slots.
    """
    shares[:] = 0.0
    cpu, memory = instance.demand[request, 0], instance.demand[request, 1]
    for replica in range(instance.first[request], instance.first[request + 1]):
        pool = pool_of(instance, genes, replica)
        if instance.price[pool, 1] >= instance.price[pool, 0] * instance.horizon:
            return False
        capacity = instance.capacity[pool]
        shares[pool] += max(cpu / max(capacity[0], 1), memory / max(capacity[1], 1))
    return True


@kernel
def _least_loaded(load, shares, duration):
    """Return the cell whose largest load is least, of equal ones the one of least total load.

    `load`, (P, cells), is that of the pools; those with `shares`, (P,), above 0 count. `duration`
    is in cells.
    """
    best, best_cell = np.inf, 0
    for start in range(load.shape[1] - duration + 1):
        score = 0.0
        for pool in range(len(shares)):
            if shares[pool] > 0:
                peak = total = 0.0
                for cell in range(start, start + duration):
                    peak = max(peak, load[pool, cell])
                    total += load[pool, cell]
                score += shares[pool] * (peak + 1e-3 * total / duration)
        if score < best - 1e-12:
            best, best_cell = score, start
    return best_cell


@kernel
def _level(genes, instance, order, width, load, shares):
    """Choose starts in one vector, (n + R,), in place; overwrites `load` (P, C), `shares` (P,).

    A cell has `width` slots. The last one may reach beyond the horizon: a request that would end
    there starts earlier.
    """
    load[:] = 0.0
    for request in order:
        if served(instance, request) and _shares(genes, instance, request, shares):
            duration = -(-instance.duration[request] // width)
            cell = _least_loaded(load, shares, duration)
            genes[request] = min(cell * width, instance.horizon - instance.duration[request])
            for pool in range(len(shares)):
                if shares[pool] > 0:
                    for k in range(cell, cell + duration):
                        load[pool, k] += shares[pool]


@kernel
def _level_all(X, instance, order, width, load, shares):
    """Choose starts in vectors, (k, n + R), in place."""
    for k in range(len(X)):
        _level(X[k], instance, order, width, load, shares)


def levelled(X: np.ndarray, instance: PoolArrays) -> np.ndarray:
    """Return copies of vectors, shape (k, n + R), with starts that level the load of pools.

    Requests keep their start where a pool of theirs is not cheaper reserved.
    """
    levelled = X.copy()
    order = np.argsort(-instance.duration, kind="stable")
    width = -(-instance.horizon // MAX_CELLS)
    pools, cells = len(instance.offer), -(-instance.horizon // width)
    load, shares = np.zeros((pools, cells)), np.zeros(pools)
    _level_all(levelled, instance, order, width, load, shares)
    return levelled


# -- greedy plans ----------------------------------------------------------------------------------

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


# -- plans by prices -------------------------------------------------------------------------------

#: Rounds of play for the prices of one weight vector.
ROUNDS = 8


def vectors_at(encoder: TemporalEncoder, weights: np.ndarray) -> np.ndarray:
    """Return vectors that are good for weighted sums, shape (j, num_genes).

    Parameters
    ----------
    encoder : TemporalEncoder
    weights : ndarray, shape (k, objectives)
        Of the encoder's objectives, above 0.
    """
    every = np.zeros((len(weights), 3))
    every[:, encoder.problem.columns(encoder.objectives)] = weights
    every = np.maximum(every, 1e-9 * every.max(axis=1, keepdims=True))
    prices = DemandPrices(encoder.arrays)
    sent = np.array([_sent(encoder, prices, *row) for row in every])
    X = np.concatenate((greedy_vectors(encoder, every), sent))
    return np.unique(np.concatenate((X, levelled(X, encoder.arrays))), axis=0)


def _sent(
    encoder: TemporalEncoder,
    prices: DemandPrices,
    latency: float,
    cost: float,
    interruption: float,
) -> np.ndarray:
    """Return the vector that the prices for one weight vector make, all starts 0, (num_genes,)."""
    instance, rates = encoder.arrays, (latency / cost, interruption / cost)
    pools = prices.best_pools(*rates, prices.solve(*rates, ROUNDS).prices)
    request = np.repeat(np.arange(len(pools)), np.diff(instance.legal_first))
    index = np.arange(len(instance.legal)) - instance.legal_first[request]
    choice = np.zeros(len(pools), dtype=np.int64)
    chosen = instance.legal == pools[request]
    choice[request[chosen]] = index[chosen]
    starts = np.zeros(len(pools), dtype=np.int64)
    return np.concatenate((starts, choice[instance.request]))
