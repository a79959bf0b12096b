"""Block search: whole services go to one half of the continuum, then moves of single replicas."""

from __future__ import annotations

import numpy as np

from placeopt.core.budget import Budget
from placeopt.core.fronts.trace import RunSnapshot
from placeopt.rescheduling.instance import Rescheduling
from placeopt.rescheduling.local_search import beam, descent, eject
from placeopt.rescheduling.local_search.state import plan_archive, search_state, zones
from placeopt.rescheduling.move_order import MAX_HOPS

# The limits below keep a search of 200 services within a minute and one of 20 replicas within
# milliseconds; benchmarks/rescheduling.md has the times and the quality.
#: Services of which every block vector is tried, 3**5 of them at most; in a time limit 3**10, which
#: took .3 to 1 s on 6 nodes.
_MAX_ENUMERATED, _MAX_IN_TIME = 5, 10
#: Block vectors, and moves of a descent, between two looks at the clock.
_CHUNK = 27
#: Cells (replicas times nodes) up to which pairs of moves are tried.
_MAX_CELLS_PAIRS = 2000
#: The same for triples, from every plan.
_MAX_CELLS_TRIPLES = 24
#: The same for triples from the plan without moves and the fastest, and for pairs from the others.
_MAX_CELLS_OUTER_TRIPLES = 48
#: Rounds of pairs and triples.
_MAX_ROUNDS = 20
#: Width of the beam, and how many of its deployments descents begin with.
_WIDTH, _STARTS = 16, 4


class BlockSearch:
    """A search from a running deployment for the best plan of every number of moves.

    Parameters
    ----------
    problem : Rescheduling
    budget : Budget
        An evaluation is a deployment whose latency is estimated or computed.
    max_moves : int, optional
        Moves of a plan, at most.
    """

    def __init__(self, problem: Rescheduling, budget: Budget, max_moves: int | None = None):
        self.instance, self.budget = problem.arrays, budget
        self.num_replicas = int(self.instance.replicas.sum())
        longest = self.num_replicas + MAX_HOPS
        self.state = search_state(self.instance)
        self.archive = plan_archive(longest if max_moves is None else min(max_moves, longest))
        self._spent = 0
        self._interim = RunSnapshot(
            values=lambda: np.array([(ms, k) for k, (ms, _) in self.plans().items()]),
            plan=lambda row: problem.plan(list(self.plans().values())[row][1].tolist()),
            minimal=True,
            names=("latency_ms", "moves"),
        )
        descent.load(self.instance, self.state, self.instance.home)
        now = descent.state_latency(self.instance, self.state)
        descent.offer(self.instance, self.state, self.archive, now)
        self._count()

    def improve(self) -> bool:
        """Descend from the running deployment; return whether the descent came to its end."""
        descent.load(self.instance, self.state, self.instance.home)
        return self._descend(offering=True, back=False)

    def run(self, in_time: bool = False) -> bool:
        """Search from blocks of services; return whether the search came to its end.

        Where a time limit ends it (`in_time`) every block vector of more services is tried.
        """
        instance = self.instance
        zone_of, services = zones(instance), len(instance.order)
        if services > _MAX_ENUMERATED:
            if not self.improve():
                return False
            result = beam.deployments(instance, zone_of, _WIDTH)[:_STARTS]
            if not (self._polish(result) and self._try_pairs()):
                return False
            if services > _MAX_IN_TIME or not in_time:
                return True
        none = np.empty((0, *instance.home.shape), dtype=np.int64)
        return self._try_blocks(zone_of) and self._polish(none) and self._try_pairs()

    def _try_blocks(self, zone_of: np.ndarray) -> bool:
        """Descend from every vector of blocks; return whether there is budget left."""
        vectors = 3 ** len(self.instance.order)
        begun, ended = np.zeros((2, 1 << (2 * vectors).bit_length()), dtype=np.int64)
        for first in range(0, vectors, _CHUNK):
            last, arguments = min(first + _CHUNK, vectors), (self.state, self.archive, zone_of)
            descent.descend_from_blocks(self.instance, *arguments, first, last, begun, ended)
            if not self._go_on():
                return False
        return True

    def _descend(self, *, offering: bool, back: bool) -> bool:
        """Descend from the state's deployment; return whether the descent came to its end."""
        ended = False
        while not ended:
            arguments = (self.instance, self.state, self.archive, offering, back, _CHUNK)
            _, ended = descent.descend(*arguments)
            if not self._go_on():
                return False
        return True

    def _polish(self, starts: np.ndarray) -> bool:
        """Descend from deployments (n, S, N); from the best, try ejections and take moves back.

        Return whether it came to its end.
        """
        instance, state, archive = self.instance, self.state, self.archive
        least = float(archive.latency.min())
        best = self.end_of(int(archive.latency.argmin()))
        for counts in starts:
            descent.load(instance, state, counts)
            if not (self._go_on() and self._descend(offering=False, back=False)):
                return False
            latency = float(descent.state_latency(instance, state))
            if latency < least - descent.ROUNDING_MS:
                least, best = latency, state.deployment.counts.copy()
        descent.load(instance, state, best)
        return self._eject(least) and self._descend(offering=True, back=True)

    def _eject(self, least: float) -> bool:
        """Try ejections in the state while they help; return whether there is budget left."""
        instance, state, archive = self.instance, self.state, self.archive
        while (now := eject.improve(instance, state, archive)) < least - descent.MIN_GAIN_MS:
            least = now
            descent.offer(instance, state, archive, now)
            if not self._go_on():
                return False
        return True

    def end_of(self, num_moves: int) -> np.ndarray:
        """Return the deployment (S, N) that the archived plan of so many moves ends in."""
        descent.load_plan(self.instance, self.state, self.archive.moves[num_moves, :num_moves])
        return self.state.deployment.counts.copy()

    def _try_pairs(self) -> bool:
        """Try two moves at once from every archived plan, on small instances three, while it helps.

        From the plan without moves and from the fastest, every first move; from the others only
        those that undo a move of the plan, unless the instance is small. Return whether it came to
        its end.
        """
        latency, cells = self.archive.latency, self.num_replicas * len(self.instance.user)
        if cells > _MAX_CELLS_PAIRS:
            return True
        seen = np.full_like(latency, np.inf)
        for _ in range(_MAX_ROUNDS):
            changed = np.flatnonzero(latency < seen - descent.ROUNDING_MS)
            seen = latency.copy()
            for k in changed.tolist():
                outer, small = (
                    k == 0 or latency[k] == latency.min(),
                    cells <= _MAX_CELLS_OUTER_TRIPLES,
                )
                triples = cells <= _MAX_CELLS_TRIPLES or (outer and small)
                back = not outer and not small
                descent.try_pairs(self.instance, self.state, self.archive, k, triples, back)
                if not self._go_on():
                    return False
            if not len(changed):
                break
        return True

    def _go_on(self) -> bool:
        """Count the tried deployments, report, and return whether there is budget left."""
        self._count()
        self.budget.report("blocks", self._interim)
        return not self.budget.exhausted

    def _count(self) -> None:
        tries = int(self.archive.tries[0])
        self.budget.spend(tries - self._spent)
        self._spent = tries

    def plans(self) -> dict[int, tuple[float, np.ndarray]]:
        """Return latency and moves (k, 3) by number of moves; longer plans are always faster."""
        result, least = {}, np.inf
        for k, latency in enumerate(self.archive.latency.tolist()):
            if latency < least - descent.ROUNDING_MS:
                least = latency
                result[k] = (latency, self.archive.moves[k, :k])
        return result
