"""Plans of which every move saves a given time: no subset of the moves can be left out cheaply.

Say that a plan costs its latency plus `gain` per move. Leaving out m moves loses less than m `gain`
ms exactly if what remains costs less. So the cheapest of all plans that remain when moves are left
out has the property: what remains of it remained of the whole, too. Up to `EXHAUSTIVE` combinations
all are compared, which is a proof; a combination counts as possible if there is any order of its
moves with room. Beyond, single moves, whole services, and callers with what they call are left out
while that makes a plan cheaper.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from placeopt.core.budget import Budget
from placeopt.rescheduling.instance import Rescheduling
from placeopt.rescheduling.latency import latencies
from placeopt.rescheduling.local_search import descent
from placeopt.rescheduling.local_search.state import plan_archive, search_state
from placeopt.rescheduling.move_order import MAX_HOPS, Moves, arranged, misplaced, shortest

#: Combinations up to which all are compared. Equal moves count once: three are 4 combinations.
EXHAUSTIVE = 2**16
_CHUNK = 4096


class PlanPruning:
    """Leaves out moves that save too little.

    Parameters
    ----------
    problem : Rescheduling
    gain : float
        What every move must save, in ms.
    budget : Budget, optional
        Out of time, a plan is not finished: of 65,536 combinations one takes seconds.
    """

    def __init__(self, problem: Rescheduling, gain: float, budget: Budget | None = None):
        self.gain, self.instance = gain, problem.arrays
        self.budget = budget or Budget()
        self._state, self._archive = search_state(self.instance), plan_archive(1)

    def reduce(self, moves: Sequence[Sequence[int]]) -> tuple[Moves | None, bool]:
        """Return the plan that remains, and whether all combinations of its moves were compared.

        The plan is None where the time ended before.
        """
        if not len(moves):
            return [], True
        plan: Moves = [(int(i), int(u), int(v)) for i, u, v in moves]
        kinds, counts = np.unique(np.array(plan), axis=0, return_counts=True)
        if float(np.prod(counts + 1.0)) <= EXHAUSTIVE:
            return self._cheapest(plan, kinds, counts), True
        return self._stepwise(plan), False

    # -- all combinations --------------------------------------------------------------------------

    def _cheapest(self, moves: Moves, kinds: np.ndarray, counts: np.ndarray) -> Moves | None:
        """Return the cheapest plan among all combinations of the moves, None without the time.

        Parameters
        ----------
        kinds : ndarray of int64, shape (k, 3)
            The different moves.
        counts : ndarray of int64, shape (k,)
            How often each is in the plan.
        """
        home, demand = self.instance.home, self.instance.demand
        change = np.zeros((len(kinds), *home.shape), dtype=np.int64)
        for k, (service, source, target) in enumerate(kinds):
            change[k, service, source] -= 1
            change[k, service, target] += 1
        total = int(np.prod(counts + 1))
        costs, codes = [], []
        for first in range(0, total, _CHUNK):
            if first and self.budget.out_of_time:
                return None
            code = np.arange(first, min(first + _CHUNK, total))
            taken = np.stack(np.unravel_index(code, counts + 1), axis=1)
            ends = home + np.tensordot(taken, change, axes=1)
            load = np.tensordot(ends, demand, axes=(1, 0))
            possible = (ends >= 0).all(axis=(1, 2)) & (load <= self.instance.capacity).all((1, 2))
            network = latencies(self.instance, ends[possible])
            costs.append(network + self.gain * taken[possible].sum(axis=1))
            codes.append(code[possible])
        cost, code = np.concatenate(costs), np.concatenate(codes)
        whole = cost[code == total - 1].min(initial=np.inf)
        better = np.flatnonzero(cost < whole - descent.ROUNDING_MS)
        for k in better[np.argsort(cost[better], kind="stable")]:
            if self.budget.out_of_time:
                return None
            taken = np.array(np.unravel_index(code[k], counts + 1))
            end = home + np.tensordot(taken, change, axes=1)
            if (result := self._ordered(end, int(taken.sum()))) is not None:
                return result
        return moves

    def _ordered(self, target: np.ndarray, max_moves: int) -> Moves | None:
        """Return at most `max_moves` moves to a deployment (S, N), each with room, or None."""
        result = arranged(self.instance, target, max_moves + MAX_HOPS)
        if result is None or len(result) > max_moves:
            result, _ = shortest(self.instance, target, stop=self._is_out_of_time)
        return result if result is not None and len(result) <= max_moves else None

    def _is_out_of_time(self) -> bool:
        return self.budget.out_of_time

    # -- step by step ------------------------------------------------------------------------------

    def _stepwise(self, moves: Moves) -> Moves | None:
        """Return the plan after leaving out moves and services while that makes it cheaper.

        It is None where the time ends before.
        """
        instance, state = self.instance, self._state
        descent.load_plan(instance, state, np.array(moves, dtype=np.int32))
        while True:
            self._undo_single_moves()
            counts = state.deployment.counts.copy()
            cost = self._cost()
            for services in self._parts(counts):
                if self.budget.out_of_time:
                    return None
                other = counts.copy()
                other[services] = instance.home[services]
                descent.load(instance, state, other)
                cheaper = self._cost() < cost - descent.ROUNDING_MS
                if cheaper and (state.deployment.free >= 0).all():
                    break
            else:
                max_moves = misplaced(instance.home, counts) + MAX_HOPS
                result = arranged(instance, counts, max_moves)
                return moves if result is None else result

    def _cost(self) -> float:
        """Return latency plus `gain` per move of the state's deployment."""
        count = misplaced(self.instance.home, self._state.deployment.counts)
        return float(descent.state_latency(self.instance, self._state)) + self.gain * count

    def _undo_single_moves(self) -> None:
        """Undo the move whose loss is least while that is less than `gain`."""
        instance, state, limit = self.instance, self._state, self.gain - descent.ROUNDING_MS
        while not self.budget.out_of_time:
            now = descent.state_latency(instance, state)
            _, *result = descent.best_move(instance, state, self._archive, now, limit, True)
            if result[0] < 0:
                return
            descent.move(instance, state, *result)

    def _parts(self, counts: np.ndarray) -> Iterator[list[int]]:
        """Yield what is left out together: moved services, and moved callers with moved callees."""
        moved = (counts != self.instance.home).any(axis=1)
        yield from ([int(service)] for service in np.flatnonzero(moved))
        callers, callees = self.instance.caller.tolist(), self.instance.callee.tolist()
        for caller, callee in zip(callers, callees, strict=True):
            if moved[caller] and moved[callee]:
                yield [caller, callee]
