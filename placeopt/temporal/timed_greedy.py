"""Greedy answers to temporal instances that choose starts too: slower than `placeopt.temporal.heuristics`, better where machines are reused.

Requests are taken by decreasing duration. For each, every start that aligns with an end or a start of those already placed is
tried, with the cheapest pool and machine for each replica under the weights; the best is kept.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from placeopt.core.kernels.compile import kernel


@kernel
def _fits(used, capacity, demand, begin, end):
    """Return how many replicas a machine can take over [begin, end), and the slots in which it would newly be busy."""
    fresh, cpu, memory = 0, capacity[0], capacity[1]
    for slot in range(begin, end):
        fresh += used[slot, 2] == 0
        cpu = min(cpu, capacity[0] - used[slot, 0])
        memory = min(memory, capacity[1] - used[slot, 1])
        if cpu < demand[0] or memory < demand[1]:
            return 0, 0
    return min(cpu // demand[0], memory // demand[1]), fresh


@kernel
def _added(price, busy, fresh):
    """Return what `fresh` more busy slots cost on a machine with `busy` of them."""
    return min(price[0] * (busy + fresh), price[1]) - min(price[0] * busy, price[1])


@kernel
def _try(i, begin, weights, blend, t, bins, pool, used, busy, room, fresh, choice, bin_of):
    """Choose pool and machine for each replica of request i from `begin` on; return the weighted sum of what that adds."""
    n, duration, demand = len(t.duration), t.duration[i], t.demand[i]
    count = t.first[i + 1] - t.first[i]
    legal = t.legal[t.legal_first[i] : t.legal_first[i + 1]]
    for b in range(bins):
        room[b], fresh[b] = _fits(used[b], t.capacity[pool[b]], demand, begin, begin + duration)
    total = worst = 0.0
    for r in range(count):
        best, choice[r], bin_of[r] = np.inf, 0, bins
        for index in range(len(legal)):
            p = legal[index]
            score = weights[0] * max(0.0, t.latency[i, p] - worst) / n + weights[2] * t.frequency[
                p
            ] / (n * count)
            if score >= best:
                continue
            share = max(demand[0] / t.capacity[p, 0], demand[1] / t.capacity[p, 1])
            amortised = share * duration * min(t.price[p, 0], t.price[p, 1] / t.horizon)
            added, chosen = _added(t.price[p], 0, duration), bins
            for b in range(bins):
                if pool[b] == p and room[b] > 0 and _added(t.price[p], busy[b], fresh[b]) < added:
                    added, chosen = _added(t.price[p], busy[b], fresh[b]), b
            score += weights[1] * (blend * amortised + (1 - blend) * added)
            if score < best:
                best, choice[r], bin_of[r] = score, index, chosen
        p = legal[choice[r]]
        worst = max(worst, t.latency[i, p])
        total += best
        b = bin_of[r]
        if b == bins:
            pool[b], busy[b], fresh[b] = p, 0, duration
            room[b] = min(t.capacity[p, 0] // demand[0], t.capacity[p, 1] // demand[1])
            bins += 1
        room[b] -= 1
    return total


@kernel
def _starts(i, placed, genes, t, mark):
    """Mark the starts of request i that are worth a look."""
    latest = t.horizon - t.duration[i]
    mark[:] = False
    mark[0] = mark[latest] = True
    for j in range(len(placed)):
        if placed[j]:
            end = genes[j] + t.duration[j]
            if end <= latest:
                mark[end] = True
            if genes[j] >= t.duration[i]:
                mark[genes[j] - t.duration[i]] = True


@kernel
def _build(weights, blend, t, genes):
    """Write the genes of one solution."""
    n, replicas = len(t.duration), t.first[len(t.duration)]
    pool, busy = np.empty(replicas, np.int64), np.zeros(replicas, np.int64)
    room, fresh = np.empty(replicas, np.int64), np.empty(replicas, np.int64)
    choice, bin_of = np.empty(replicas, np.int64), np.empty(replicas, np.int64)
    used = np.zeros((replicas, t.horizon, 3), np.int64)
    placed, mark = np.zeros(n, np.bool_), np.zeros(t.horizon, np.bool_)
    bins = 0
    genes[:] = 0
    for i in t.rank:
        if t.legal_first[i + 1] == t.legal_first[i]:
            continue
        _starts(i, placed, genes, t, mark)
        best = np.inf
        for begin in np.flatnonzero(mark):
            total = _try(
                i, begin, weights, blend, t, bins, pool, used, busy, room, fresh, choice, bin_of
            )
            if total < best - 1e-12:
                best, genes[i] = total, begin
        _try(i, genes[i], weights, blend, t, bins, pool, used, busy, room, fresh, choice, bin_of)
        placed[i] = True
        for r in range(t.first[i + 1] - t.first[i]):
            genes[n + t.first[i] + r] = choice[r]
            b = bin_of[r]
            bins = max(bins, b + 1)
            for slot in range(genes[i], genes[i] + t.duration[i]):
                busy[b] += used[b, slot, 2] == 0
                used[b, slot, 0] += t.demand[i, 0]
                used[b, slot, 1] += t.demand[i, 1]
                used[b, slot, 2] += 1


@kernel
def _build_all(weights, blend, t, X):
    for k in range(len(weights)):
        _build(weights[k], blend, t, X[k])


def solutions(weights: np.ndarray, tables: Any, blend: float = 0.2) -> np.ndarray:
    """Return one vector per weight vector, shape (len(weights), num_genes); weights are per ms, USD and share."""
    X = np.zeros((len(weights), len(tables.duration) + len(tables.request)), dtype=np.int64)
    _build_all(weights, blend, tables, X)
    return X
