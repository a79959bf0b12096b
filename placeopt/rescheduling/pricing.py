"""Prices that sharpen the lower bounds of rescheduling: a Lagrangian over the tree of calls.

The relaxation of `placeopt.rescheduling.relaxation` forgets that services share nodes, and lets a
service with several callers stand elsewhere for each of them. Here every service stands once:

* A replica pays a price for the room that it takes; what all room earns is taken off.
* The slowest of parallel groups is at least any weighted mean of all groups. With these shares
  fixed, a service and a call count as often as they are on the way of a mean request.
* Each service keeps one call that leads to it. Of any other call c, from i to j, remains
  ``a(n_i) + b(n_j)``, with b free and ``a(n) = min over n' of (network(n, n') - b(n'))``.

What is left is a sum over a tree, which tables from the callees to the callers minimise exactly for
all numbers of moves at once; every choice of prices, shares and b gives bounds. A subgradient
ascent with Polyak's step chooses them (Held, Wolfe, Crowder, Mathematical Programming 6, 1974).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from placeopt.core.budget import Budget
from placeopt.rescheduling.relaxation import NodeClasses
from placeopt.rescheduling.tables import entered, shared

#: Steps of one ascent, and ascents by number of moves until it is left as it is.
_STEPS, _ASCENTS = 40, 6
#: A gap of this part of the latency counts as closed.
_CLOSED = 1e-4
#: An ascent that leaves more than this part of a gap is the last one there, but for the first.
_STALLED = 0.99
#: Sums of rows that a run without a time limit makes in all: some seconds.
_WORK = 3e9
#: Steps without progress until the step is halved.
_PATIENCE = 4
#: How fast shares of groups follow the slowest one, and the least share of a group.
_FOLLOW, _LEAST = 4.0, 1e-5
#: Part of all sums that rounding may take off a bound.
_ROUNDING = 1e-11


class _Call(NamedTuple):
    """A call, by its number among all calls, and how often a mean request makes it."""

    number: int
    callee: int
    weight: float
    in_tree: bool


@dataclass
class _Multipliers:
    """What an ascent chooses: prices (classes, 2), shares of groups and b by call."""

    prices: np.ndarray
    shares: dict[int, np.ndarray]
    split: dict[int, np.ndarray] = field(default_factory=dict)

    def copy(self) -> _Multipliers:
        return _Multipliers(self.prices.copy(), dict(self.shares), dict(self.split))


class _Choice(NamedTuple):
    """The best choice for fixed multipliers: the row of every service, and what it breaks."""

    rows: dict[int, int]
    used: np.ndarray  # (classes, 2)
    apart: list[tuple[int, int, int]]  # call, row of the callee, and the row that a(n_i) chose


class PricedTree:
    """Lower bounds of one instance for prices, shares and splits that change: those of `now`."""

    def __init__(self, relaxation: NodeClasses):
        self.relaxed = relaxation
        self.order = relaxation.arrays.order.tolist()
        groups = relaxation.groups
        self.now = _Multipliers(
            np.zeros(relaxation.capacity.shape),
            {i: np.full(len(groups[i]), 1.0 / max(1, len(groups[i]))) for i in self.order},
        )
        self._used = {
            i: relaxation.counts[i][:, :, None] * relaxation.arrays.demand[i] for i in self.order
        }
        self._owners = relaxation.owners()

    def bound(self) -> np.ndarray:
        """Return lower bounds by the number of moves, shape (most + 2,), not yet monotone."""
        self._weigh()
        self._own = {i: self._unary(i) for i in self.order}
        for i, call in self._cut():
            row = self.now.split.get(call.number)
            if row is not None:
                self._own[call.callee] = self._own[call.callee] + row
            self._own[i] = self._own[i] + self._apart(i, call).min(axis=1)
        self._tables: dict[int, np.ndarray] = {}
        for i in self.order:
            total = np.zeros((len(self.relaxed.counts[i]), self.relaxed.most + 2))
            for call in self._calls[i]:
                if call.in_tree:
                    entering = entered(self._network(i, call), self._tables[call.callee])
                    total = shared(total, entering, False)
            self._tables[i] = self.relaxed.spend(i, total) + self._own[i][:, None]
        earned = float((self.now.prices * self.relaxed.capacity).sum())
        least = self._tables[self.order[-1]].min(axis=0)
        return np.asarray(least - earned - _ROUNDING * (np.abs(least) + earned))

    def _weigh(self) -> None:
        """Set how often a mean request is at every service and makes every call."""
        self._weight = dict.fromkeys(self.order, 0.0)
        self._weight[self.order[-1]] = 1.0
        self._calls: dict[int, list[_Call]] = {i: [] for i in self.order}
        number = 0
        for i in reversed(self.order):
            for g, group in enumerate(self.relaxed.groups[i]):
                weight = self._weight[i] * float(self.now.shares[i][g])
                for position, j in enumerate(group):
                    self._weight[j] += weight
                    in_tree = (i, g, position) in self._owners
                    self._calls[i].append(_Call(number, j, weight, in_tree))
                    number += 1

    def _cut(self) -> Iterator[tuple[int, _Call]]:
        """Yield the calls that are not in the tree."""
        for i, calls in self._calls.items():
            yield from ((i, call) for call in calls if not call.in_tree)

    def _unary(self, i: int) -> np.ndarray:
        """Return what a service costs by itself, by its row."""
        own = self._weight[i] * self.relaxed.own_time(i)
        return np.asarray(own + np.tensordot(self._used[i], self.now.prices, axes=2))

    def _network(self, i: int, call: _Call) -> np.ndarray:
        """Return the weighted latency of a call by rows; infinite where there is no room.

        No weight is 0: each group keeps a share.
        """
        return call.weight * self.relaxed.network(i, call.callee)

    def _apart(self, i: int, call: _Call) -> np.ndarray:
        """Return what a call that is not in the tree costs its caller, by both rows."""
        row = self.now.split.get(call.number)
        return self._network(i, call) - (0.0 if row is None else row)

    def choice(self, moves: int) -> _Choice:
        """Return the best choice for a column of the tables."""
        root = self.order[-1]
        rows = {root: int(self._tables[root][:, moves].argmin())}
        columns = {root: moves}
        for i in reversed(self.order):
            for call, row, column in self._followed(i, rows[i], columns[i]):
                rows[call.callee], columns[call.callee] = row, column
        used = np.sum([self._used[i][row] for i, row in rows.items()], axis=0)
        apart = [
            (call.number, rows[call.callee], int(self._apart(i, call)[rows[i]].argmin()))
            for i, call in self._cut()
        ]
        return _Choice(rows, used, apart)

    def _followed(self, i: int, row: int, column: int) -> Iterator[tuple[_Call, int, int]]:
        """Yield the calls in the tree of a service with the row and the column of each callee."""
        last, calls = self.relaxed.most + 1, [c for c in self._calls[i] if c.in_tree]
        left = last if column == last else column - int(self.relaxed.moves[i][row])
        ways, sums = [], [np.zeros((1, last + 1))]
        for call in calls:
            network = self._network(i, call)[row]
            ways.append(network[:, None] + self._tables[call.callee])
            sums.append(shared(sums[-1], ways[-1].min(axis=0)[None], False))
        for k in reversed(range(len(calls))):
            mine = last
            if left != last:
                least = ways[k].min(axis=0)
                mine = int((least[: left + 1] + sums[k][0, left::-1]).argmin())
                left -= mine
            yield calls[k], int(ways[k][:, mine].argmin()), mine

    def step(self, choice: _Choice, missing: float) -> None:
        """Change the multipliers against what a choice breaks; `missing` is the way to go, ms."""
        scale = np.maximum(1, self.relaxed.capacity.mean(axis=0, keepdims=True)) ** 2
        lack = choice.used - self.relaxed.capacity
        lack[(lack < 0) & (self.now.prices <= 0)] = 0
        torn = [one for one in choice.apart if one[1] != one[2]]
        size = float((lack**2 / scale).sum()) + 2.0 * len(torn)
        if size > 0:
            self.now.prices = np.maximum(0, self.now.prices + missing / size * lack / scale)
        callee = {c.number: c.callee for calls in self._calls.values() for c in calls}
        for number, row, other in torn:
            zero = np.zeros(len(self.relaxed.counts[callee[number]]))
            split = self.now.split.get(number, zero).copy()
            split[row] += missing / size
            split[other] -= missing / size
            self.now.split[number] = split
        self._follow(choice.rows, missing)

    def _follow(self, rows: dict[int, int], missing: float) -> None:
        """Give more of the mean to the groups that are slow where services stand in `rows`."""
        times: dict[int, float] = {}
        for i in self.order:
            groups = np.array(
                [
                    sum(self.relaxed.network(i, j)[rows[i], rows[j]] + times[j] for j in group)
                    for group in self.relaxed.groups[i]
                ]
            )
            slowest = groups.max(initial=0.0)
            times[i] = float(self.relaxed.own_time(i)[rows[i]] + slowest)
            if len(groups) > 1 and 0 < slowest < np.inf:
                haste = _FOLLOW * min(1.0, 10 * missing / slowest)
                share = self.now.shares[i] * np.exp(haste * (groups / slowest - 1))
                share = np.maximum(_LEAST, share / share.sum())
                self.now.shares[i] = share / share.sum()


def sharpened(
    relaxation: NodeClasses, least: np.ndarray, targets: dict[int, float], budget: Budget
) -> np.ndarray:
    """Return bounds (most + 2,) that are nowhere below `least`, raised within a budget.

    Parameters
    ----------
    relaxation : NodeClasses
    least : ndarray, shape (most + 2,)
        Bounds in ms by the number of moves.
    targets : dict of int to float
        Latency in ms of the best plan by its number of moves, or the last column: where the bound
        is to be raised. The ascent stops there where it comes near.
    """
    prices = PricedTree(relaxation)
    chosen, unsettled = dict[int, _Multipliers](), set(targets)
    done = dict.fromkeys(targets, 0)
    timed = budget.seconds_limit is not None
    affordable = np.inf if timed else max(1, _WORK / (_STEPS * max(1, relaxation.cells)))
    while not budget.exhausted and sum(done.values()) < affordable:
        gaps = {
            m: 1 - least[m] / latency
            for m, latency in targets.items()
            if m in unsettled and done[m] < _ASCENTS and latency - least[m] > _CLOSED * latency
        }
        if not gaps:
            break
        m = max(gaps, key=lambda k: gaps[k] / (1 + done[k]))
        if chosen:
            prices.now = chosen[min(chosen, key=lambda k: abs(k - m))].copy()
        least = _ascend(prices, least, m, targets[m], budget)
        chosen[m] = prices.now
        done[m] += 1
        if done[m] > 1 and 1 - least[m] / targets[m] > _STALLED * gaps[m]:
            unsettled.discard(m)
    return least


def _ascend(
    prices: PricedTree, least: np.ndarray, moves: int, latency: float, budget: Budget
) -> np.ndarray:
    """Raise the bound of one number of moves; return all bounds."""
    factor, best, idle, kept = 1.0, -np.inf, 0, prices.now.copy()
    for _ in range(_STEPS):
        if budget.exhausted:
            break
        bound = prices.bound()
        # What no plan of more moves beats, none of fewer does.
        least = np.maximum(least, np.maximum.accumulate(bound[::-1])[::-1])
        missing = latency - bound[moves]
        if bound[moves] > best:
            best, idle, kept = bound[moves], 0, prices.now.copy()
        else:
            idle += 1
        if idle == _PATIENCE:
            factor, idle, prices.now = factor / 2, 0, kept.copy()
        if missing <= _CLOSED * latency or not np.isfinite(missing):
            break
        prices.step(prices.choice(moves), factor * missing)
    prices.now = kept
    return least
