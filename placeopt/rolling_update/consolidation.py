"""Cheaper targets for a rolling update: which nodes to close, and a proof of how few there can be."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from placeopt.core.budget import Budget
from placeopt.rolling_update import packing as kernels
from placeopt.rolling_update.instance import RollingUpdate

#: Temperatures of the repair, as shares of a node's capacity.
_HOT, _COLD = 0.03, 0.001
#: Up to so many nodes every target is made easy to reach, not only the first.
_EASED_NODES = 2000


class Target(NamedTuple):
    """A deployment to aim at: the node of every microservice, and its price in units of ``1 / price_scale``."""

    price: int
    node: np.ndarray


def lower_bound(problem: RollingUpdate) -> int:
    """Return a price, in units of ``1 / price_scale``, below which no deployment at the new sizes can be.

    Nodes with a microservice that cannot leave are paid in any case. What does not fit into their room and into free nodes is
    covered at the least price per unit of capacity, each resource by itself; the sum is rounded up to what prices can add up to.
    """
    a = problem.arrays
    stuck = ~a.movable | a.pinned
    forced = np.zeros(len(a.price), dtype=bool)
    forced[a.home[stuck]] = True
    free = (forced | (a.price == 0)) & ~a.drain
    optional = np.flatnonzero(~forced & (a.price > 0) & ~a.drain)
    paid, least = int(a.price[forced].sum()), 0
    unit = math.gcd(*a.price[optional].tolist())
    for r in range(2):
        rest = int(a.new[:, r].sum()) - int(a.capacity[free, r].sum())
        least = max(least, _cover(rest, a.price[optional], a.capacity[optional, r], unit))
    return paid + least


def _cover(rest: int, prices: np.ndarray, capacities: np.ndarray, unit: int) -> int:
    """Return the least price at which fractions of nodes cover `rest`, rounded up to a multiple of `unit`."""
    if rest <= 0:
        return 0
    total_price, numerator = 0, 0
    for n in np.argsort(prices / np.maximum(capacities, 1e-9), kind="stable").tolist():
        price, capacity = int(prices[n]), int(capacities[n])
        if capacity >= rest:
            numerator = -(-price * rest // capacity)
            rest = 0
            break
        total_price, rest = total_price + price, rest - capacity
    return -(-(total_price + numerator) // unit) * unit if rest <= 0 else total_price


def room(problem: RollingUpdate) -> tuple[kernels.Room, np.ndarray]:
    """Return the packing problem, and the numbers of the microservices that it moves."""
    a = problem.arrays
    mine = np.flatnonzero(a.movable & ~a.pinned)
    number = np.full(len(a.home), -1)
    number[mine] = np.arange(len(mine))
    base = np.zeros_like(a.capacity)
    stuck = np.flatnonzero(number < 0)
    np.add.at(base, a.home[stuck], a.new[stuck])
    peers: list[list[tuple[int, np.ndarray]]] = [[] for _ in mine]
    root = np.arange(len(mine))

    def find(i: int) -> int:
        while root[i] != i:
            root[i] = root[root[i]]
            i = int(root[i])
        return i

    for k in a.tight_flows:
        one, other, limit = a.flows[k]
        legal = a.latency <= limit
        for m, p, table in ((one, other, legal), (other, one, legal.T)):
            if number[m] >= 0:
                peers[number[m]].append(
                    (int(number[p]) if number[p] >= 0 else -1 - int(a.cluster[a.home[p]]), table)
                )
        if number[one] >= 0 and number[other] >= 0:
            root[find(int(number[one]))] = find(int(number[other]))
    labels = np.array([find(i) for i in range(len(mine))], dtype=np.int64)
    _, group = np.unique(labels, return_inverse=True)
    flat = [entry for row in peers for entry in row]
    clusters = len(a.clusters)
    tables = np.array([t for _, t in flat], dtype=bool).reshape(len(flat), clusters, clusters)
    return kernels.Room(
        a.new[mine],
        a.home[mine],
        a.old[mine],
        a.initial_load,
        *_by(a.home[mine], len(a.price)),
        ~a.mandatory[mine],
        base,
        a.capacity,
        a.cluster,
        np.concatenate(([0], np.cumsum([len(row) for row in peers]))).astype(np.int64),
        np.array([p for p, _ in flat], dtype=np.int64),
        tables,
        group.astype(np.int64),
        *_by(group, len(mine)),
    ), mine


def _by(labels: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return (first, members): where each label of ``range(count)`` begins in the numbers sorted by label."""
    return np.concatenate(([0], np.cumsum(np.bincount(labels, minlength=count)))).astype(
        np.int64
    ), np.argsort(labels, kind="stable").astype(np.int64)


class Packer:
    """Closes one priced node after another.

    Parameters
    ----------
    seed : int
    rounds : int
        Shifts and swaps of one repair.
    patience : int
        Nodes in a row that may resist before the search ends.
    """

    def __init__(
        self, problem: RollingUpdate, seed: int = 0, rounds: int = 20_000, patience: int = 6
    ):
        a = problem.arrays
        self.problem, self.rounds, self.patience = problem, rounds, patience
        self.room, self.mine = room(problem)
        self.rng = np.random.default_rng(seed)
        self.seed = seed
        stuck = ~a.movable | a.pinned
        self.forced = np.zeros(len(a.price), dtype=bool)
        self.forced[a.home[stuck]] = True
        used = np.zeros(len(a.price), dtype=bool)
        used[a.home] = True
        self.open = ((a.price == 0) | used) & ~a.drain
        self.lowest = lower_bound(problem)

    def targets(self, budget: Budget) -> Iterator[Target]:
        """Yield ever cheaper targets, each within all capacities and latency limits."""
        state = self._first(budget)
        if state is None:
            return
        yield self._target(state, first=True)
        while True:
            for _ in self._descend(state, self.patience, budget):
                yield self._target(state)
            if not self._exchange(state, budget):
                return
            yield self._target(state)

    def _descend(
        self, state: kernels.State, patience: int, budget: Budget, keep: int | None = None
    ) -> Iterator[int]:
        """Close node after node in place, `keep` excepted, yielding the price after each, until `patience` in a row resist."""
        resisting = set() if keep is None else {keep}
        failures = 0
        while failures < patience and self._price(state) > self.lowest and not budget.out_of_time:
            n = self._next(state, resisting)
            if n is None:
                return
            if self._close(state, n, self.rounds * (1 + failures)):
                failures = 0
                yield self._price(state)
            else:
                failures += 1
                resisting.add(n)

    def _exchange(self, state: kernels.State, budget: Budget) -> bool:
        """Open one node and close others that cost more together; return whether that was possible.

        Of closed nodes of one price, size and cluster one is tried; where all nodes are of one price and size there is no use.
        """
        a = self.problem.arrays
        kinds = np.column_stack((a.price, a.capacity))
        if (
            self._price(state) <= self.lowest
            or len(np.unique(kinds[(a.price > 0) & ~a.drain], axis=0)) < 2
        ):
            return False
        closed = np.flatnonzero(~state.open & ~a.drain)
        _, first = np.unique(np.column_stack((kinds, a.cluster))[closed], axis=0, return_index=True)
        for c in closed[first].tolist():
            before, node, is_open = self._price(state), state.node.copy(), state.open.copy()
            state.open[c] = True
            kernels.list_open(self.room, state)
            if any(price < before for price in self._descend(state, self.patience, budget, keep=c)):
                return True
            self._restore(state, node, is_open)
        return False

    def _first(self, budget: Budget) -> kernels.State | None:
        """Return a state without overload: as things are, with more nodes opened where there is no other way."""
        a = self.problem.arrays
        if self.problem.infeasibility():
            return None
        is_open = self.open.copy()
        state = self._start(a.home[self.mine], is_open)
        if not kernels.mend(self.room, state):
            return None
        for n in np.flatnonzero(a.drain).tolist():
            if not kernels.evacuate(self.room, state, n):
                return None
        spare = sorted(
            np.flatnonzero(~is_open & ~a.drain).tolist(),
            key=lambda n: (a.price[n] / max(1, a.capacity[n, 0]), n),
        )
        while not kernels.repair(self.room, state, self.rounds, _HOT, _COLD):
            if not spare or budget.out_of_time:
                return None
            state.open[spare.pop(0)] = True
            kernels.list_open(self.room, state)
        return state

    def _start(self, node: np.ndarray, is_open: np.ndarray) -> kernels.State:
        return kernels.start(self.room, node, is_open, int(self.rng.integers(2**31)))

    def _price(self, state: kernels.State) -> int:
        a = self.problem.arrays
        return int(a.price[(state.head >= 0) | self.forced].sum())

    def _target(self, state: kernels.State, first: bool = False) -> Target:
        """Return the target as it stands, after what makes it easier to reach: room for that is most at first."""
        kernels.settle(self.room, state)
        if first or len(self.forced) <= _EASED_NODES:
            kernels.ease(self.room, state)
        node = self.problem.arrays.home.copy()
        node[self.mine] = state.node
        return Target(self._price(state), node)

    def _next(self, state: kernels.State, resisting: set[int]) -> int | None:
        """Return the open priced node that saves most for the load that has to move."""
        a = self.problem.arrays
        may = state.open & ~self.forced & (a.price > 0)
        may[list(resisting)] = False
        choice = np.flatnonzero(may)
        if len(choice) == 0:
            return None
        share = (state.load[choice] / np.maximum(a.capacity[choice], 1)).max(axis=1)
        score = share / a.price[choice] * a.price_scale + 0.02 * self.rng.random(len(choice))
        return int(choice[score.argmin()])

    def _close(self, state: kernels.State, n: int, rounds: int) -> bool:
        """Close node n in place; where that overloads others for good, leave all as it was."""
        node, is_open = state.node.copy(), state.open.copy()
        state.open[n] = False
        kernels.list_open(self.room, state)
        if kernels.evacuate(self.room, state, n) and kernels.repair(
            self.room, state, rounds, _HOT, _COLD
        ):
            return True
        self._restore(state, node, is_open)
        return False

    def _restore(self, state: kernels.State, node: np.ndarray, is_open: np.ndarray) -> None:
        for old, new in zip(state, self._start(node, is_open), strict=True):
            old[...] = new
