"""Plans of which every part pays: no subset of the moves may be left out at a loss of less than so much a move.

Say that a plan costs its latency plus `gain` per move. Leaving out m moves loses less than m `gain` ms exactly if what remains
costs less. So the cheapest of all plans that remain when moves are left out has the property: what remains of it remained of the
whole, too. Up to `EXHAUSTIVE` combinations all are compared, which is a proof; the moves of a combination count as possible if there is
any order with room. Beyond, single moves, whole services, and callers with what they call, are left out while that makes a plan cheaper.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from placeopt.rescheduling.call_order import shortest
from placeopt.rescheduling.encoder import ReschedulingEncoder
from placeopt.rescheduling.instance import Rescheduling
from placeopt.rescheduling.local_search import kernels
from placeopt.rescheduling.local_search.state import archive, work

#: Combinations of moves up to which all are compared. Equal moves count once: three of them are 4 combinations, not 8.
EXHAUSTIVE = 2**16
_CHUNK = 4096
_TINY = 1e-9

Moves = list[tuple[int, int, int]]


class Marginal:
    """Leaves out moves that do not pay.

    Parameters
    ----------
    problem : Rescheduling
    gain : float
        What every move must save, in ms.
    """

    def __init__(self, problem: Rescheduling, gain: float):
        self.problem, self.gain, self.table = problem, gain, problem.arrays
        self._encoder = ReschedulingEncoder(problem, problem.objectives)
        self._work, self._archive = work(self.table), archive(1)
        kernels.load(self.table, self._work, self.table.home)

    def reduce(self, moves: Sequence[Sequence[int]]) -> tuple[Moves, bool]:
        """Return the plan that remains, and whether all combinations of its moves were compared."""
        if not len(moves):
            return [], True
        kinds, counts = np.unique(
            np.array(moves, dtype=np.int64).reshape(-1, 3), axis=0, return_counts=True
        )
        if float(np.prod(counts + 1.0)) <= EXHAUSTIVE:
            return self._exhaustive(
                [(int(i), int(u), int(v)) for i, u, v in moves], kinds, counts
            ), True
        return self._stepwise([(int(i), int(u), int(v)) for i, u, v in moves]), False

    # -- all combinations ----------------------------------------------------------------------------------------

    def _exhaustive(self, moves: Moves, kinds: np.ndarray, counts: np.ndarray) -> Moves:
        """Return the cheapest plan among all combinations of the moves."""
        change = np.zeros((len(kinds), *self.table.home.shape), dtype=np.int64)
        for k, (i, u, v) in enumerate(kinds):
            change[k, i, u] -= 1
            change[k, i, v] += 1
        total = int(np.prod(counts + 1))
        costs, codes = [], []
        for first in range(0, total, _CHUNK):
            code = np.arange(first, min(first + _CHUNK, total))
            digits = np.stack(np.unravel_index(code, counts + 1), axis=1)
            targets = self.table.home + np.tensordot(digits, change, axes=1)
            fits = (targets >= 0).all(axis=(1, 2)) & (
                np.tensordot(targets, self.table.demand, axes=(1, 0)) <= self.table.capacity
            ).all(axis=(1, 2))
            costs.append(
                self._encoder._latency(targets[fits]) + self.gain * digits[fits].sum(axis=1)
            )
            codes.append(code[fits])
        cost, code = np.concatenate(costs), np.concatenate(codes)
        whole = cost[code == total - 1].min(initial=np.inf)
        better = np.flatnonzero(cost < whole - _TINY)
        for k in better[np.argsort(cost[better], kind="stable")]:
            digits = np.array(np.unravel_index(code[k], counts + 1))
            found = self._order(
                self.table.home + np.tensordot(digits, change, axes=1), int(digits.sum())
            )
            if found is not None:
                return found
        return moves

    def _order(self, target: np.ndarray, most: int) -> Moves | None:
        """Return at most `most` moves to a deployment, each with room when it is made; None if there are none."""
        made = np.empty((most + 4, 3), dtype=np.int32)
        count = kernels.arrange(self.table, self.table.home, target, made)
        if 0 <= count <= most:
            return [(int(i), int(u), int(v)) for i, u, v in made[:count]]
        found, _ = shortest(self.problem, target)
        return found if found is not None and len(found) <= most else None

    # -- step by step --------------------------------------------------------------------------------------------

    def _stepwise(self, moves: Moves) -> Moves:
        t, w = self.table, self._work
        counts = t.home.copy()
        for i, u, v in moves:
            counts[i, u] -= 1
            counts[i, v] += 1
        while True:
            kernels.load(t, w, counts)
            self._singles()
            counts = w.counts.copy()
            cost = kernels.total(t, w) + self.gain * _count(counts, t.home)
            found = None
            for services in self._parts(counts):
                other = counts.copy()
                other[services] = t.home[services]
                kernels.load(t, w, other)
                if (w.free >= 0).all() and kernels.total(t, w) + self.gain * _count(
                    other, t.home
                ) < cost - _TINY:
                    found = other
                    break
            if found is None:
                order = self._order_long(counts)
                return moves if order is None else order
            counts = found

    def _singles(self) -> None:
        """Take back the move that is missed least while it is missed by less than it has to save."""
        t, w = self.table, self._work
        while True:
            _, i, u, v = kernels._best(
                t, w, t.home, self._archive, kernels.total(t, w), self.gain - _TINY, True
            )
            if i < 0:
                return
            kernels.move(t, w, i, u, v)

    def _parts(self, counts: np.ndarray) -> Iterator[list[int]]:
        moved = (counts != self.table.home).any(axis=1)
        yield from ([int(i)] for i in np.flatnonzero(moved))
        for a, b in zip(self._work.owner.tolist(), self.table.member.tolist(), strict=True):
            if moved[a] and moved[b]:
                yield [a, b]

    def _order_long(self, target: np.ndarray) -> Moves | None:
        made = np.empty((_count(target, self.table.home) + 4, 3), dtype=np.int32)
        count = kernels.arrange(self.table, self.table.home, target, made)
        return [(int(i), int(u), int(v)) for i, u, v in made[:count]] if count >= 0 else None


def _count(counts: np.ndarray, home: np.ndarray) -> int:
    return int(np.maximum(counts - home, 0).sum())
