"""Quick answers to rescheduling: block-seeded search, best improvement, and the schedulers that the REACH paper compares."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from placeopt.budget import Budget
from placeopt.errors import UsageError
from placeopt.front import Front, Objective
from placeopt.heuristics import rescheduling_kernels as kernels
from placeopt.problems.judge import Candidate, judged
from placeopt.problems.rescheduling import Arrays, Rescheduling

if TYPE_CHECKING:
    from placeopt.encoders.rescheduling import ReschedulingEncoder

#: Services of which every block vector is tried, 3 ** 5 of them at most; block vectors between two looks at the clock.
_EVERY, _CHUNK = 5, 27
#: Replicas up to which every descent is shortened move by move; beyond, only the last of a start.
_MOST_ROUNDS = 200


class Search:
    """The state of one search: a running deployment, and the best plan of every number of moves."""

    def __init__(self, problem: Rescheduling, most_moves: int | None = None):
        self.problem, self.table = problem, problem.arrays
        t = self.table
        services, nodes = t.home.shape
        calls, pods = t.member.size, int(t.replicas.sum())
        owner = np.repeat(np.repeat(np.arange(services), np.diff(t.group_first)), np.diff(t.member_first)).astype(np.int64)
        zeros = np.zeros
        self.work = kernels.Work(
            t.home.copy(), t.capacity.copy(), zeros(calls), zeros(calls), zeros(calls), zeros(services), zeros(services), zeros(services),
            zeros((services, nodes)), owner,
        )  # fmt: skip
        most = pods + 4 if most_moves is None else most_moves
        self.archive = kernels.Archive(np.full(most + 1, np.inf), np.zeros((most + 1, most, 3), dtype=np.int32), np.zeros(1, dtype=np.int64))
        kernels.load(t, self.work, t.home)
        kernels.offer(t, self.work, t.home, self.archive, kernels.total(t, self.work))
        self.zones = zones(t)
        self.score = t.execution + (np.arange(services) == t.order[-1])[:, None] * t.user

    def improve(self) -> None:
        """Best improvement from the running deployment."""
        kernels.load(self.table, self.work, self.table.home)
        kernels.descend(self.table, self.work, self.table.home, self.archive, True)

    def blocks(self, budget: Budget) -> bool:
        """Search from blocks of services; return whether it came to its end."""
        t = self.table
        if len(t.order) <= _EVERY:
            vectors = 3 ** len(t.order)
            seen, ends = np.zeros((2, vectors), dtype=np.int64)
            for first in range(0, vectors, _CHUNK):
                arguments = (t, self.work, t.home, self.zones, self.score, self.archive)
                kernels.every_block(*arguments, first, min(first + _CHUNK, vectors), seen, ends)
                if not self._go_on(budget):
                    return False
            return True
        return all(self._from(zone, budget) for zone in (-1, 0, 1))

    def _from(self, zone: int, budget: Budget) -> bool:
        """Move blocks while that helps, from the running deployment (-1) or from everything in one zone; then shorten."""
        t, w = self.table, self.work
        kernels.load(t, w, t.home)
        for i in t.order[::-1] if zone >= 0 else ():
            kernels.block(t, w, i, self.zones, zone, self.score)
        last = kernels.descend(t, w, t.home, self.archive, zone < 0)
        kernels.offer(t, w, t.home, self.archive, last)
        best, done = w.counts.copy(), False
        for _ in range(_MOST_ROUNDS):
            if not self._go_on(budget):
                break
            now = kernels.one_block(t, w, t.home, self.zones, self.score, self.archive, best)
            if now >= last - 1e-6:
                done = True
                break
            last = now
        kernels.load(t, w, best)
        kernels.shorten(t, w, t.home, self.archive)
        return done and self._go_on(budget)

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


def zones(t: Arrays) -> np.ndarray:
    """Return the zone of every node, 0 or 1: nearer to one or to the other of the two nodes that are farthest apart."""
    if len(t.user) < 2:
        return np.zeros(len(t.user), dtype=np.int64)
    between = t.delay + t.delay.T
    one, other = np.unravel_index(int(between.argmax()), between.shape)
    nearer = between[other] < between[one]
    nearer[other] = True  # with no delays at all, the zones still differ
    return nearer.astype(np.int64)


def block_search(
    problem: Rescheduling,
    objectives: tuple[Objective, ...],
    budget: Budget,
    seed: int,
    start: Front | None = None,
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
        What every move must gain over plans with fewer, in ms.
    """
    if max_moves is not None and (not isinstance(max_moves, int) or max_moves < 0):
        raise UsageError(f"max_moves is {max_moves!r}; give a whole number of at least 0")
    if not 0 <= min_gain_ms < float("inf"):
        raise UsageError(f"min_gain_ms is {min_gain_ms!r}; give a number of at least 0")
    search = Search(problem, max_moves)
    completed = search.blocks(budget)
    kept = worthwhile({k: latency for k, (latency, _) in search.plans().items()}, min_gain_ms)
    candidates = [Candidate(problem.plan(moves.tolist())) for k, (_, moves) in search.plans().items() if k in kept]
    parameters = {"max_moves": max_moves, "min_gain_ms": min_gain_ms}
    return judged(
        problem, objectives, candidates, method="block-search", seed=seed, budget=budget, completed=completed, parameters=parameters,
        libraries=("numba", "numpy"),
    )  # fmt: skip


def worthwhile(latency: dict[int, float], gain: float) -> set[int]:
    """Return the numbers of moves that gain at least `gain` ms a move over every smaller one."""
    return {k for k, ms in latency.items() if all(latency[fewer] - ms >= gain * (k - fewer) - 1e-9 for fewer in latency if fewer < k)}


def greedy(problem: Rescheduling, objectives: tuple[Objective, ...], budget: Budget, seed: int, start: Front | None = None) -> Front:
    """Make the move that makes requests fastest, again and again; every plan on the way is kept."""
    search = Search(problem)
    search.improve()
    budget.spend(int(search.archive.tries[0]))
    candidates = [Candidate(problem.plan(moves.tolist())) for _, moves in search.plans().values()]
    return judged(problem, objectives, candidates, method="greedy", seed=seed, budget=budget, libraries=("numba", "numpy"))


def seeds(encoder: ReschedulingEncoder, rng: np.random.Generator) -> np.ndarray:
    """Return vectors of the plans that block search finds."""
    search, home = Search(encoder.problem), encoder.problem.arrays.home
    search.blocks(Budget(evaluations=1_000_000))
    found = []
    for _, moves in search.plans().values():
        counts = home.copy()
        np.subtract.at(counts, (moves[:, 0], moves[:, 1]), 1)
        np.add.at(counts, (moves[:, 0], moves[:, 2]), 1)
        found.append(encoder.encode_counts(counts))
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


def _scheduled(problem: Rescheduling, objectives: tuple[Objective, ...], budget: Budget, seed: int, method: str, score: Score) -> Front:
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
    budget.spend(1)
    return judged(problem, objectives, [Candidate(problem.plan(moves))], method=method, seed=seed, budget=budget, libraries=("numpy",))


def kubernetes(problem: Rescheduling, objectives: tuple[Objective, ...], budget: Budget, seed: int, start: Front | None = None) -> Front:
    """Place every replica anew on the node whose cpu and memory are least in use: the default scheduler's spreading."""
    return _scheduled(problem, objectives, budget, seed, "kubernetes", _least_allocated)


def cloud_first(problem: Rescheduling, objectives: tuple[Objective, ...], budget: Budget, seed: int, start: Front | None = None) -> Front:
    """Place every replica anew where it runs fastest: the paper's Cloud-First."""
    return _scheduled(problem, objectives, budget, seed, "cloud-first", _fastest)


def latency_greedy(problem: Rescheduling, objectives: tuple[Objective, ...], budget: Budget, seed: int, start: Front | None = None) -> Front:
    """Place every replica anew where users are nearest: the paper's Latency-Greedy."""
    return _scheduled(problem, objectives, budget, seed, "latency-greedy", _nearest)
