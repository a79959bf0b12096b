"""Quick answers to rescheduling: block-seeded search, best improvement, and the schedulers that the REACH paper compares."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from placeopt.core.budget import Budget
from placeopt.core.errors import UsageError
from placeopt.core.front import Front
from placeopt.core.task import Candidate, Task
from placeopt.rescheduling.instance import Arrays, Rescheduling
from placeopt.rescheduling.local_search import beam, eject, kernels
from placeopt.rescheduling.local_search.marginal import Marginal, Moves
from placeopt.rescheduling.local_search.state import archive, work, zones

if TYPE_CHECKING:
    from placeopt.rescheduling.encoder import ReschedulingEncoder

#: Services of which every block vector is tried, 3 ** 5 of them at most; block vectors between two looks at the clock.
_EVERY, _CHUNK = 5, 27
#: Replicas times nodes up to which moves are tried in threes from every plan, from the first and the last; in twos; rounds of exchange.
_FEW_CELLS, _CELLS, _ROUNDS = (24, 48), 2000, 20
#: Width of the beam, and how many of its deployments descents begin with.
_WIDTH, _STARTS = 16, 4


class Search:
    """The state of one search: a running deployment, and the best plan of every number of moves."""

    def __init__(self, problem: Rescheduling, most_moves: int | None = None):
        self.problem, self.table = problem, problem.arrays
        t = self.table
        self.pods = int(t.replicas.sum())
        self.work, self.archive = (
            work(t),
            archive(self.pods + 4 if most_moves is None else most_moves),
        )
        kernels.load(t, self.work, t.home)
        kernels.offer(t, self.work, t.home, self.archive, kernels.total(t, self.work))
        self.zones = zones(t)
        self.score = t.execution + (np.arange(len(t.replicas)) == t.order[-1])[:, None] * t.user

    def improve(self) -> float:
        """Best improvement from the running deployment; return the latency."""
        kernels.load(self.table, self.work, self.table.home)
        return float(
            kernels.descend(self.table, self.work, self.table.home, self.archive, True, False)
        )

    def blocks(self, budget: Budget) -> bool:
        """Search from blocks of services; return whether it came to its end."""
        t = self.table
        if len(t.order) > _EVERY:
            self.improve()
            starts = beam.deployments(t, self.work, self.zones, self.score, _WIDTH)[:_STARTS]
        else:
            vectors = 3 ** len(t.order)
            seen, ends = np.zeros((2, vectors), dtype=np.int64)
            for first in range(0, vectors, _CHUNK):
                arguments = (t, self.work, t.home, self.zones, self.score, self.archive)
                kernels.every_block(*arguments, first, min(first + _CHUNK, vectors), seen, ends)
                if not self._go_on(budget):
                    return False
            starts = np.empty((0, *t.home.shape), dtype=np.int64)
        return self._polish(starts, budget) and self._exchange(budget)

    def _polish(self, starts: np.ndarray, budget: Budget) -> bool:
        """Descend from deployments; make room for what gains more in the best of them, or in the best plan; take moves back."""
        t, w, least, best = (
            self.table,
            self.work,
            float(self.archive.latency.min()),
            self.ends(int(self.archive.latency.argmin())),
        )
        for counts in starts:
            if not self._go_on(budget):
                return False
            kernels.load(t, w, counts)
            latency = kernels.descend(t, w, t.home, self.archive, False, False)
            if latency < least - 1e-9:
                least, best = latency, w.counts.copy()
        kernels.load(t, w, best)
        while (now := eject.improve(t, w, self.archive)) < least - 1e-6:
            least = now
            kernels.offer(t, w, t.home, self.archive, now)
            if not self._go_on(budget):
                return False
        kernels.descend(t, w, t.home, self.archive, True, True)
        return self._go_on(budget)

    def ends(self, k: int) -> np.ndarray:
        """Return the deployment that the plan of `k` moves ends in."""
        counts, moves = self.table.home.copy(), self.archive.moves[k, :k]
        np.subtract.at(counts, (moves[:, 0], moves[:, 1]), 1)
        np.add.at(counts, (moves[:, 0], moves[:, 2]), 1)
        return counts

    def _exchange(self, budget: Budget) -> bool:
        """Try two moves at once from where it stands; then another move in place of one of every plan kept, while that helps.

        On small instances every move with every other, and three at once.
        """
        t, cells, latency = self.table, self.pods * len(self.table.user), self.archive.latency
        if cells > _CELLS:
            return True
        seen = np.full_like(latency, np.inf)
        for _ in range(_ROUNDS):
            changed = np.flatnonzero(latency < seen - 1e-9)
            seen = latency.copy()
            for k in changed.tolist():
                outer = k == 0 or latency[k] == latency.min()
                triples = cells <= _FEW_CELLS[0] or (outer and cells <= _FEW_CELLS[1])
                kernels.couples(
                    t,
                    self.work,
                    t.home,
                    self.archive,
                    k,
                    triples,
                    not outer and cells > _FEW_CELLS[1],
                )
                if not self._go_on(budget):
                    return False
            if not len(changed):
                break
        return True

    def _go_on(self, budget: Budget) -> bool:
        budget.spend(int(self.archive.tries[0]) - budget.evaluations)
        found = np.isfinite(self.archive.latency)
        budget.report((float(self.archive.latency.min()),), int(found.sum()), "blocks")
        return not budget.exhausted

    def plans(self) -> dict[int, tuple[float, np.ndarray]]:
        """Return latency and moves (k, 3) by number of moves, where longer plans are always faster."""
        found, least = {}, np.inf
        for k, latency in enumerate(self.archive.latency.tolist()):
            if latency < least - 1e-9:
                least = latency
                found[k] = (latency, self.archive.moves[k, :k])
        return found


def block_search(
    task: Task[Rescheduling],
    *,
    max_moves: int | None = None,
    min_gain_ms: float = 0.0,
) -> Front:
    """Move blocks of services between the two halves of the continuum, descend from there, and take moves back one by one.

    Single moves do not cross the latency between cloud and edge: a service that moves alone pays it twice. With up to five services
    every vector of stay, one half, the other half is tried; with more, blocks along the call graph while they help. The best plan of
    every number of moves is kept, each in an order that has room for every move. Nothing is random. An evaluation is a deployment.

    Parameters
    ----------
    max_moves : int, optional
        Most moves of a plan.
    min_gain_ms : float
        What every move must gain, in ms: over plans with fewer, and over what remains of the plan if any of its moves are left out. The
        latter is proven up to 65,536 combinations of moves and looked for beyond; see `placeopt.rescheduling.local_search.marginal`.
    """
    if max_moves is not None and (not isinstance(max_moves, int) or max_moves < 0):
        raise UsageError(f"max_moves is {max_moves!r}; give a whole number of at least 0")
    if not 0 <= min_gain_ms < float("inf"):
        raise UsageError(f"min_gain_ms is {min_gain_ms!r}; give a number of at least 0")
    search = Search(task.problem, max_moves)
    completed = search.blocks(task.budget)
    candidates = [
        Candidate(task.problem.plan(moves))
        for moves in _paying(task.problem, search.plans(), min_gain_ms)
    ]
    parameters = {"max_moves": max_moves, "min_gain_ms": min_gain_ms}
    return task.front(
        candidates,
        method="block-search",
        completed=completed,
        parameters=parameters,
        libraries=("numba", "numpy"),
    )


def _paying(
    problem: Rescheduling, plans: dict[int, tuple[float, np.ndarray]], gain: float
) -> list[Moves]:
    """Return the plans of which every move pays, against every plan with fewer and against what is left if some are left out."""
    if gain == 0:
        return [moves.tolist() for _, moves in plans.values()]
    kept = worthwhile({k: latency for k, (latency, _) in plans.items()}, gain)
    marginal, best = Marginal(problem, gain), dict[int, tuple[float, Moves]]()
    for k in sorted(kept):
        moves, _ = marginal.reduce(plans[k][1].tolist())
        latency = problem.evaluate(problem.plan(moves)).values[0]
        if latency < best.get(len(moves), (np.inf, []))[0]:
            best[len(moves)] = (latency, moves)
    kept = worthwhile({k: latency for k, (latency, _) in best.items()}, gain)
    return [best[k][1] for k in sorted(kept)]


def worthwhile(latency: dict[int, float], gain: float) -> set[int]:
    """Return the numbers of moves that gain at least `gain` ms a move over every smaller one."""
    return {
        k
        for k, ms in latency.items()
        if all(latency[fewer] - ms >= gain * (k - fewer) - 1e-9 for fewer in latency if fewer < k)
    }


def greedy(
    task: Task[Rescheduling],
) -> Front:
    """Make the move that makes requests fastest, again and again; every plan on the way is kept."""
    search = Search(task.problem)
    search.improve()
    task.budget.spend(int(search.archive.tries[0]))
    candidates = [
        Candidate(task.problem.plan(moves.tolist())) for _, moves in search.plans().values()
    ]
    return task.front(candidates, method="greedy", libraries=("numba", "numpy"))


def seeds(encoder: ReschedulingEncoder, rng: np.random.Generator) -> np.ndarray:
    """Return vectors of the plans that block search finds."""
    search = Search(encoder.problem)
    search.blocks(Budget(evaluations=1_000_000))
    found = [encoder.encode_counts(search.ends(k)) for k in search.plans()]
    return np.array(found, dtype=np.int64)


# -- schedulers: every replica in turn, where the scheduler would put it ---------------------------------------------

#: What a scheduler likes: ``score(arrays, service, room after the replica has arrived)`` per node; the least wins.
Score = Callable[[Arrays, int, np.ndarray], np.ndarray]


def _least_allocated(t: Arrays, service: int, room: np.ndarray) -> np.ndarray:
    return -(room / np.maximum(t.capacity, 1)).sum(axis=1)


def _fastest(t: Arrays, service: int, room: np.ndarray) -> np.ndarray:
    return t.execution[service]


def _nearest(t: Arrays, service: int, room: np.ndarray) -> np.ndarray:
    return t.user


def _scheduled(task: Task[Rescheduling], method: str, score: Score) -> Front:
    """Return the front of one plan: every replica in turn goes where `score` is least."""
    problem = task.problem
    t = problem.arrays
    free = t.capacity - np.tensordot(t.home, t.demand, axes=(0, 0))
    moves = []
    for i, service in enumerate(problem.services):
        for u in (problem.node_numbers[name] for name in service.replicas):
            room = free - t.demand[i]
            room[u] += t.demand[i]
            liked = np.where((room >= 0).all(axis=1), score(t, i, room), np.inf)
            v = u if liked[u] <= liked.min() else int(liked.argmin())
            if v != u:
                moves.append((i, u, v))
                free[u] += t.demand[i]
                free[v] -= t.demand[i]
    task.budget.spend(1)
    return task.front([Candidate(problem.plan(moves))], method=method, libraries=("numpy",))


def kubernetes(
    task: Task[Rescheduling],
) -> Front:
    """Place every replica anew on the node whose cpu and memory are least in use: the default scheduler's spreading."""
    return _scheduled(task, "kubernetes", _least_allocated)


def cloud_first(
    task: Task[Rescheduling],
) -> Front:
    """Place every replica anew where it runs fastest: the paper's Cloud-First."""
    return _scheduled(task, "cloud-first", _fastest)


def latency_greedy(
    task: Task[Rescheduling],
) -> Front:
    """Place every replica anew where users are nearest: the paper's Latency-Greedy."""
    return _scheduled(task, "latency-greedy", _nearest)
