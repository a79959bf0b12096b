"""Simulated annealing for the challenge's sum, and for other weightings of the goals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from machine_reassignment.arrays import Arrays
from machine_reassignment.instance import MachineReassignment
from machine_reassignment.kernels import begin
from machine_reassignment.search import MOST, Fixed, anneal, cost
from placeopt import Front
from placeopt.plugins import Budget, Candidate, RunSnapshot, Task, read_weights

#: First and last temperature of annealing the load, and the last of annealing the moves, in what a
#: process costs on average where nothing is safe.
HOT, COLD, COLDEST = 0.5, 2e-3, 5e-8
#: Processes a machine up to which they count as few, and large.
FEW = 25
#: Where processes are few: what one of average size that is away from home adds to what annealing
#: sees, in temperatures; odds; part of the budget until `COLD`. A process that is away holds
#: transient resources in two places; without the first most processes drift, and the machines are
#: too full for any move. Odds are of a shift, of a shift or swap, of these or a swap of like sizes,
#: then that a shift is one home, and of all these or a swap within a service; the rest are
#: exchanges.
OF_FEW = (1.5, (0.25, 0.45, 0.5, 0.2, 0.65), 0.9)
#: The same where processes are many.
OF_MANY = (8.0, (0.2, 0.5, 0.7, 0.2, 0.75), 0.75)
#: Parts of the budget until the first descent is over, and until the last descent.
FIRST, LAST = 0.02, 0.97
#: Moves that are tried between two looks at the clock, at most.
STEPS = 20_000
#: Weightings of load, balance and moves for a front: the challenge's own comes first.
FRONT = (
    *((1, 1, 10**k) for k in (0, 2, 3, 4, 5, 6)),
    *((1, 10, 1), (10, 1, 1), (1, 10, 1000), (10, 1, 1000)),
)


class Annealing:
    """A search for the least weighted sum from an assignment.

    Attributes
    ----------
    best : ndarray of int64, shape (P,)
        The machine of every process, in the best assignment so far.
    least : float
        Its weighted sum.
    costs : tuple of float
        Its load, balance and moves.
    """

    def __init__(self, arrays: Arrays, weights: np.ndarray, start: np.ndarray, seed: int):
        self.arrays, self.weights = arrays, np.asarray(weights, dtype=float)
        self.state = begin(arrays, start)
        size = (arrays.requirement / np.maximum(1, arrays.requirement.mean(axis=0))).sum(axis=1)
        order = np.argsort(size, kind="stable")
        width, self._random = arrays.capacity.shape[1], np.array([seed], dtype=np.uint64)
        few = len(arrays.home) <= FEW * len(arrays.location)
        away, odds, self._middle = OF_FEW if few else OF_MANY
        self._fixed = Fixed(
            self.weights,
            order,
            np.argsort(order, kind="stable"),
            *_places(arrays, few),
            _away(arrays, away),
            np.argsort(arrays.service, kind="stable"),
            np.concatenate(([0], np.bincount(arrays.service).cumsum())),
            np.array(odds),
            *(np.zeros(n, np.int64) for n in ((3,), (2, MOST), (MOST + 3,), (MOST + 2, 2, width))),
        )
        self.unit = self._unit()
        self.least = np.inf
        self._keep()

    def run(self, budget: Budget, report: Callable[[], None] = lambda: None) -> None:
        """Descend, anneal and descend, within a budget; an evaluation is a move that is tried."""
        while not budget.exhausted:
            steps = budget.allow(int(min(STEPS, max(200, budget.evaluations_left / 100))))
            temperature = self.unit * self.heat(budget.progress)
            anneal(self.arrays, self.state, self._fixed, temperature, steps, self._random)
            budget.spend(steps)
            self._keep()
            report()

    def heat(self, progress: float) -> float:
        """Return the temperature after a part of the budget; 0 at both ends."""
        parts, heats = (FIRST, self._middle, LAST), np.log((HOT, COLD, COLDEST))
        if not FIRST <= progress < LAST:
            return 0.0
        return float(np.exp(np.interp(progress, parts, heats)))

    def _keep(self) -> None:
        """Keep the present assignment if it is the best."""
        s = self.state
        now = float(cost(self.arrays, s, self.weights))
        if now < self.least:
            moves = s.costs[2] + s.costs[3] * self.arrays.service_weight[0]
            self.costs = float(s.costs[0]), float(s.costs[1]), float(moves)
            self.least, self.best = now, s.machine.copy()

    def _unit(self) -> float:
        """Return what an average process costs where nothing is safe."""
        a = self.arrays
        load = (a.requirement * a.load_cost).sum(axis=1).mean()
        balance = sum(a.requirement[:, b[0]].mean() * b[2] * b[3] for b in a.balance)
        return max(1.0, float(self.weights[0] * load + self.weights[1] * balance))


def _places(a: Arrays, few: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return machines that each process could be on, and where its list begins; none for many."""
    # Transient resources stay in use where processes were first: others have what was free then.
    count = len(a.home)
    if not few:
        return np.zeros(0, dtype=np.int32), np.zeros(count + 1, dtype=np.int64)
    used = np.zeros_like(a.capacity)
    np.add.at(used, a.home, a.requirement)
    free = a.capacity - used * a.transient
    fits = np.ones((count, len(free)), dtype=bool)
    for need, room in zip(a.requirement.T, free.T, strict=True):
        fits &= need[:, None] <= room
    fits[np.arange(count), a.home] = True
    return np.nonzero(fits)[1].astype(np.int32), np.concatenate(([0], fits.sum(axis=1).cumsum()))


def _away(a: Arrays, mean: float) -> np.ndarray:
    """Return what it counts that a process is away from home, in temperatures, (P,)."""
    share = (a.requirement * a.transient / np.maximum(1, a.capacity.sum(axis=0))).max(axis=1)
    return mean * share / share.mean() if share.any() else np.zeros(len(a.home))


def run(
    task: Task[MachineReassignment],
    *,
    weights: Annotated[
        str,
        Field(description="Weights of the goals asked for, such as 1,1,1: one plan. Empty: many."),
    ] = "",
) -> Front:
    """Anneal for one weighting of the goals, or for one after another.

    With ``weights="1,1,1"`` the goal is that of the challenge.
    """
    columns = task.problem.columns(task.objectives)
    rows = [read_weights(weights, len(columns))] if weights else _weightings(columns)
    stages, fronts = task.stages(), list[Front]()
    for k, row in enumerate(rows):
        full = np.zeros(3)
        full[columns] = row
        share = task.budget.share(1 / (len(rows) - k))
        search = _annealed(task, full, share, k)
        fronts.append(stages.do(f"weighting {k + 1}", search))
        if task.budget.exhausted:
            break
    plans = [point.plan for front in fronts for point in front.points]
    plans += [point.plan for point in (task.start.points if task.start else ())]
    home = {"machines": task.problem.arrays.home.tolist()}
    return task.front(
        [Candidate(plan) for plan in (*plans, home)],
        method="annealing",
        completed=False,
        parameters={"weights": weights},
        libraries=("numba", "numpy"),
    )


def _weightings(columns: list[int]) -> list[np.ndarray]:
    """Return different weightings of some of the goals, none without weight."""
    rows = [np.array(row, dtype=float)[columns] for row in FRONT]
    rows = [row / row.min() for row in rows]
    return list({tuple(row): row for row in rows}.values())


def _annealed(
    task: Task[MachineReassignment], weights: np.ndarray, budget: Budget, number: int
) -> Callable[[], Front]:
    """Return what anneals for one weighting: the front of one plan."""

    def work() -> Front:
        arrays = task.problem.arrays
        starts = [
            task.problem.assignment(p.plan) for p in (task.start.points if task.start else ())
        ]
        costs = [float(cost(arrays, begin(arrays, start), weights)) for start in starts]
        start = starts[int(np.argmin(costs))] if starts else arrays.home
        search = Annealing(arrays, weights, start, task.seed * 1000 + number)
        columns = task.problem.columns(task.objectives)
        interim = RunSnapshot(
            values=lambda: np.array([search.costs])[:, columns],
            plan=lambda _: {"machines": search.best.tolist()},
        )
        search.run(budget, lambda: budget.report(f"{search.least:,.0f}", interim))
        return task.front([Candidate({"machines": search.best.tolist()})], method="annealing")

    return work


def seeds(encoder: Any, rng: np.random.Generator, seconds: float | None = None) -> np.ndarray:
    """Return the assignment that runs now and short annealings, shape (k, P)."""
    arrays, rows = encoder.problem.arrays, [encoder.problem.arrays.home]
    for weights in FRONT[:6]:
        search = Annealing(arrays, np.array(weights), arrays.home, int(rng.integers(2**62)))
        search.run(Budget(500 * len(arrays.home), None if seconds is None else seconds / 6))
        rows.append(search.best)
    return np.array(rows, dtype=np.int64)
