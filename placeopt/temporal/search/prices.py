"""Prices of demands: what a replica is worth on each kind of machine, and the bound that follows.

Let pi(c, m) >= 0 be the price of a replica of c vCPU and m GiB in a slot, as a share of a machine's
price, such that the prices of all replicas that fit a machine together sum to at most 1. Then a
machine costs at least the sum over its replicas of its price x duration x pi: in every slot that is
paid for. So for an exchange rate of a ms of mean latency (a) and of mean interruption (c),

    cost + a latency + c interruption >= sum over requests of the least, over the pools k, of
        a latency_k / n + c frequency_k / n + replicas x duration x price_k x pi_k(demand).

One pool serves a request best, since all pools up to a latency cost no more latency. Equal demands
have equal prices: the work does not grow with the requests. The best prices are found by fictitious
play: requests answer the mean of the prices so far, prices the mean of the loads (J. Robinson,
Annals of Mathematics 54, 1951). All prices on the way are legal, so that every round is a bound.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placeopt.core.kernels.compile import allocating_kernel, kernel
from placeopt.core.numbers import begins
from placeopt.temporal.pools import PoolArrays

# -- knapsacks -------------------------------------------------------------------------------------

#: Cells of capacity beyond which sizes are rounded down to coarser units; that admits more.
MAX_CELLS = 6_000


class Knapsack:
    """Packs one machine size.

    Parameters
    ----------
    demands : ndarray of int, shape (items, 2)
    limits : ndarray of int, shape (items,)
        Greatest number of each item.
    capacity : ndarray of int, shape (2,)

    Attributes
    ----------
    limits : ndarray
        Greatest number of each item that fits alone; 0 for an item that does not fit.
    exact : bool
        Whether sizes are kept as they are; where not, more than what fits may be packed.
    """

    def __init__(self, demands: np.ndarray, limits: np.ndarray, capacity: np.ndarray):
        fits = np.where(demands > 0, capacity // np.maximum(demands, 1), limits[:, None]).min(
            axis=1
        )
        self.limits = np.minimum(limits, fits)
        used = self.limits > 0
        unit = [max(1, int(np.gcd.reduce(np.append(demands[used, r], 0)))) for r in range(2)]
        shape = [int(capacity[r]) // unit[r] + 1 for r in range(2)]
        while shape[0] * shape[1] > MAX_CELLS:
            largest = 0 if shape[0] >= shape[1] else 1
            unit[largest] *= 2
            shape[largest] = int(capacity[largest]) // unit[largest] + 1
        self.exact = all((demands[used, r] % unit[r] == 0).all() for r in range(2))
        self._sizes = np.ascontiguousarray(demands // np.array(unit)).astype(np.int64)
        self._room = np.array(shape, dtype=np.int64) - 1

    def best(self, value: np.ndarray, setup: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the greatest sum of ``value * count - setup`` over the items packed, and counts.

        The sum is at least 0; all arrays have shape (items,).
        """
        return _pack(value, setup, self._sizes, self.limits, self._room)


@allocating_kernel
def _pack(value, setup, sizes, limits, room):
    """Fill the table of best sums by capacity, item by item; return the best sum and its counts."""
    n = len(value)
    best = np.zeros((room[0] + 1, room[1] + 1))
    taken = np.zeros((n, room[0] + 1, room[1] + 1), np.int32)
    for i in range(n):
        if limits[i] == 0 or limits[i] * value[i] - setup[i] <= 0.0:
            continue
        cpu, memory = sizes[i, 0], sizes[i, 1]
        for a in range(room[0], cpu - 1, -1):  # downwards: an item is not taken on top of itself
            for b in range(room[1], memory - 1, -1):
                top, count = best[a, b], 0
                for q in range(1, limits[i] + 1):
                    if q * cpu > a or q * memory > b:
                        break
                    gain = best[a - q * cpu, b - q * memory] + q * value[i] - setup[i]
                    if gain > top:
                        top, count = gain, q
                best[a, b] = top
                taken[i, a, b] = count
    counts = np.zeros(n, np.int64)
    a, b = room[0], room[1]
    for i in range(n - 1, -1, -1):
        q = taken[i, a, b]
        counts[i] = q
        a -= q * sizes[i, 0]
        b -= q * sizes[i, 1]
    return best[room[0], room[1]], counts


# -- prices of demands -----------------------------------------------------------------------------

#: Different demands that have a price of their own; more are rounded down to coarser units, which
#: lets more fit together and keeps the bound valid.
MAX_DEMANDS = 200
#: Shares of vCPU in the prices pi = share x vCPU / C + (1 - share) x memory / M, all legal.
CPU_SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)
#: A little less than any number: bounds are rounded down by it.
SAFETY = 1 - 1e-10


class DemandGroups(NamedTuple):
    """Requests of one demand and one choice of pools: N requests in G groups, P pools, D demands.

    Only the *work* of a request, replicas x duration, tells it from others of its group.
    """

    demand: np.ndarray  # (G,)
    latency: np.ndarray  # (G, P) ms, inf where a pool cannot serve the group
    first: np.ndarray  # (G + 1,) first request of each group
    work: np.ndarray  # (N,) ascending within a group
    sum_of_work: np.ndarray  # (N + 1,) of all requests before


class Priced(NamedTuple):
    """Prices, what they prove, and the loads that answer them."""

    bound: float  # on cost + a latency + c interruption, USD
    prices: np.ndarray  # (P, D) share of a machine's price
    load: np.ndarray  # (P, D) mean replica-slots that requests send to each pool
    chosen: np.ndarray  # (G, P) mean number of requests that go to each pool


@kernel
def _first_not_below(values, low, high, limit):
    """Return the first index from `low` to `high` of a sorted value of `limit` or more."""
    while low < high:
        middle = (low + high) // 2
        if values[middle] < limit:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def _answer(fixed, slope, groups, load, chosen):
    """Send every request to the pool of the least ``fixed + slope x work``; return the sum.

    Within a group the pools are taken along the lower envelope of their lines.

    Parameters
    ----------
    fixed : (G, P) inf where a pool cannot serve the group
    slope : (D, P)
    load, chosen : (P, D), (G, P) overwritten
    """
    load[:] = 0.0
    chosen[:] = 0.0
    total, pools = 0.0, fixed.shape[1]
    for g in range(len(fixed)):
        demand, at, last = groups.demand[g], groups.first[g], groups.first[g + 1]
        current, least = -1, np.inf
        for p in range(pools):
            value = fixed[g, p] + slope[demand, p] * groups.work[at]
            if value < least or (value == least and slope[demand, p] < slope[demand, current]):
                current, least = p, value
        while at < last:
            following, crossing = -1, np.inf
            for p in range(pools):
                if slope[demand, p] < slope[demand, current] and fixed[g, p] < np.inf:
                    work = fixed[g, p] - fixed[g, current]
                    work /= slope[demand, current] - slope[demand, p]
                    if work < crossing or (
                        work == crossing and slope[demand, p] < slope[demand, following]
                    ):
                        following, crossing = p, work
            end = _first_not_below(groups.work, at, last, crossing)
            work = groups.sum_of_work[end] - groups.sum_of_work[at]
            total += fixed[g, current] * (end - at) + slope[demand, current] * work
            load[current, demand] += work
            chosen[g, current] += end - at
            at, current = end, following
    return total


class DemandPrices:
    """The prices of the demands of an instance; see the module.

    Parameters
    ----------
    instance : PoolArrays

    Attributes
    ----------
    demand_of : ndarray, shape (n,)
        The demand of each request.
    sizes : list of Knapsack
        One for each different capacity.
    size_of, rate, frequency : ndarray, shape (P,)
        Of each pool: its size, the least USD per slot, the share of interruptions.
    legal_prices : list of ndarray, shape (k, D)
        For each size the prices that are mixed; a mean of legal prices is legal.
    """

    def __init__(self, instance: PoolArrays):
        self.instance = instance
        self.demands, self.demand_of = _rounded(instance.demand)
        capacities, size_of = np.unique(instance.capacity, axis=0, return_inverse=True)
        self.size_of = size_of.ravel()
        limits = np.full(len(self.demands), int(capacities.max()), dtype=np.int64)
        self.sizes = [Knapsack(self.demands, limits, capacity) for capacity in capacities]
        self.rate = np.minimum(instance.price[:, 0], instance.price[:, 1] / instance.horizon)
        self.frequency = instance.frequency
        self.groups, self._order = _groups(instance, self.demand_of)
        self.legal_prices = [
            np.array([self._linear(size, share) for share in CPU_SHARES])
            for size in range(len(self.sizes))
        ]

    def _linear(self, size: int, share: float) -> np.ndarray:
        knapsack, capacity = self.sizes[size], self.instance.capacity[self.size_of == size][0]
        pi = self.demands @ (np.array([share, 1 - share]) / np.maximum(capacity, 1))
        return np.where(knapsack.limits > 0, pi, 0.0)

    def add(self, size: int, prices: np.ndarray) -> float:
        """Add prices, shape (D,), scaled down until they are legal; return the scale they had."""
        usable = (self.sizes[size].limits > 0) & self.demands.any(axis=1)
        worth = self.sizes[size].best(np.where(usable, prices, -1.0), np.zeros(len(prices)))[0]
        scaled = np.where(usable, prices, 0.0) * (SAFETY / max(1.0, worth))
        self.legal_prices[size] = np.concatenate((self.legal_prices[size], scaled[None]))
        return float(worth)

    def solve(self, per_ms: float, per_interruption: float, rounds: int) -> Priced:
        """Return the best prices that some rounds of play find, for given exchange rates in USD."""
        groups, fixed = self.groups, self._fixed(per_ms, per_interruption)
        prices = np.array([self.legal_prices[size].mean(axis=0) for size in self.size_of])
        load, mean_load = np.zeros_like(prices), np.zeros_like(prices)
        chosen, mean_chosen = np.zeros_like(fixed), np.zeros_like(fixed)
        best, kept = -np.inf, prices
        for k in range(rounds):
            slope = np.ascontiguousarray((prices * self.rate[:, None]).T)
            value = _answer(fixed, slope, groups, load, chosen)
            if value > best:
                best, kept = value, prices
            step = 2 / (k + 2)
            mean_load += step * (load - mean_load)
            mean_chosen += step * (chosen - mean_chosen)
            reply = np.array(
                [
                    self.legal_prices[size][(self.legal_prices[size] @ row).argmax()]
                    for size, row in zip(self.size_of, mean_load, strict=True)
                ]
            )
            prices = prices + step * (reply - prices)
        return Priced(best * SAFETY, kept, mean_load, mean_chosen)

    def _fixed(self, per_ms: float, per_interruption: float) -> np.ndarray:
        """Return what a request of each group pays whatever its work, (G, P)."""
        reachable = np.isfinite(self.groups.latency)
        latency = np.where(reachable, self.groups.latency, 0.0)
        fixed = (per_ms * latency + per_interruption * self.frequency) / len(self.demand_of)
        return np.where(reachable, fixed, np.inf)

    def use(self, priced: Priced) -> tuple[float, float]:
        """Return mean latency in ms and mean interruption of the requests' answers."""
        latency = np.where(priced.chosen > 0, self.groups.latency, 0.0)
        n = len(self.demand_of)
        return (
            float((priced.chosen * latency).sum() / n),
            float((priced.chosen @ self.frequency).sum() / n),
        )

    def best_pools(self, per_ms: float, per_interruption: float, prices: np.ndarray) -> np.ndarray:
        """Return the pool that each request answers given prices with, -1 for none, shape (n,)."""
        groups, fixed = self.groups, self._fixed(per_ms, per_interruption)
        group = np.repeat(np.arange(len(groups.demand)), np.diff(groups.first))
        slope = (prices * self.rate[:, None]).T[groups.demand]
        pools = np.full(len(self.demand_of), -1)
        pools[self._order] = (fixed[group] + groups.work[:, None] * slope[group]).argmin(axis=1)
        return pools


def _rounded(demand: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return at most `MAX_DEMANDS` demands, (D, 2), each no larger than those it stands for.

    The demand of each row is returned too.
    """
    unit = np.ones(2, dtype=np.int64)
    while True:
        demands, of = np.unique(demand // unit * unit, axis=0, return_inverse=True)
        if len(demands) <= MAX_DEMANDS:
            return demands, of.ravel()
        unit[np.argmax([len(np.unique(column)) for column in demands.T])] *= 2


def _groups(instance: PoolArrays, demand_of: np.ndarray) -> tuple[DemandGroups, np.ndarray]:
    """Return the groups of the requests that can be served, and the requests in their order."""
    n, pools = len(instance.duration), len(instance.offer)
    latency = np.full((n, pools), np.inf)
    request = np.repeat(np.arange(n), np.diff(instance.legal_first))
    latency[request, instance.legal] = instance.latency[request, instance.legal]
    served = np.flatnonzero(np.diff(instance.legal_first) > 0)
    rows = np.column_stack((demand_of[served], latency[served]))
    keys, group = np.unique(rows, axis=0, return_inverse=True)
    work = (np.diff(instance.first) * instance.duration)[served].astype(float)
    order = np.lexsort((work, group.ravel()))
    groups = DemandGroups(
        demand=keys[:, 0].astype(np.int64),
        latency=np.ascontiguousarray(keys[:, 1:]),
        first=begins(np.bincount(group.ravel(), minlength=len(keys))),
        work=work[order],
        sum_of_work=np.concatenate(([0.0], np.cumsum(work[order]))),
    )
    return groups, served[order]
