"""Exact fronts by epsilon-constraints, for anything that can minimise one objective within limits on the others.

The search keeps *zones*: limits on every objective but the main one. Solving a zone gives a point y and proves that nothing in the
zone is cheaper; what may still be new there has one of the other values below that of y, so the zone is replaced by one smaller
zone for each of them, less those that lie inside another one. Every solve proves a *corner*: no feasible vector lies strictly
below it. Corners are the memo: a zone inside that of an earlier solve whose answer lies in it, or that was infeasible, costs
no solve. They also give the proven bound set at any moment, however early the search ends.

All values here are in units: multiples of an objective's `step`, whole numbers, or the values themselves where there is no step.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from placeopt.core.budget import Budget
from placeopt.core.errors import SolverError
from placeopt.core.front import Objective, minimal
from placeopt.exact.memory import TOLERANCE, Found, Memory, Rows

__all__ = ["TOLERANCE", "Answer", "Enumeration", "Found", "Oracle", "enumerate_front"]


@dataclass(frozen=True)
class Answer:
    """What an oracle says of one question.

    Attributes
    ----------
    status : str
        ``optimal``, ``feasible`` (a point, not proven least), ``infeasible`` or ``unknown``.
    bound : float
        No feasible vector within the limits has less of the objective; units.
    values : tuple of float or None
        What the referee says of the plan found, in units; None where there is no plan, or not a feasible one.
    claimed : tuple of float or None
        What the solver says of its solution, in units.
    payload : object
        Whatever the oracle wants to remember of the plan.
    """

    status: str
    bound: float = -math.inf
    values: tuple[float, ...] | None = None
    claimed: tuple[float, ...] | None = None
    payload: Any = None


class Oracle(Protocol):
    """Minimises one objective subject to limits on the others.

    Attributes
    ----------
    floors : sequence of float
        Trivial lower bounds of the objectives, in units.
    """

    floors: Sequence[float]

    def minimise(
        self, objective: int, limits: Sequence[float], *, seconds: float, start: Any, careful: bool
    ) -> Answer:
        """Minimise one objective.

        Parameters
        ----------
        objective : int
        limits : sequence of float
            Largest value of every objective, in units, inclusive; inf for none, and for the objective itself.
        seconds : float
            Time limit.
        start : object
            The payload of a point within the limits, or None.
        careful : bool
            An earlier answer contradicts what is known: ask another way.
        """


@dataclass
class Enumeration:
    """What a search has found and proven.

    Attributes
    ----------
    points : list of Found
        All feasible points met, dominated ones too.
    bounds : ndarray, shape (k, objectives)
        Every feasible vector is weakly dominated by a row; no rows where the problem is infeasible.
    complete : bool
        Whether nothing was left unexplored.
    main : int
        The objective that was minimised.
    ideal, nadir : ndarray
        Least values, and the greatest that the payoff table shows; nan where unknown.
    solves : int
        Questions put to the oracle.
    failures : int
        Of these, how many the solver could not answer at all.
    objectives : tuple of Objective
        What the units are of, where that is not what was asked for.
    """

    points: list[Found]
    bounds: np.ndarray
    complete: bool
    main: int
    ideal: np.ndarray
    nadir: np.ndarray
    solves: int
    failures: int
    objectives: tuple[Objective, ...] = ()

    def gap(self, values: Sequence[float], whole: Sequence[bool]) -> float | None:
        """Return None if a point is proven efficient, else the share of its main value that might still be saved.

        Others' values no worse; 0 where only another value might be improved.
        """
        z = np.asarray(values, dtype=float)
        slack = np.where(whole, 0.0, 4 * TOLERANCE * np.maximum(1.0, np.abs(z)))
        under = self.bounds[(self.bounds <= z + slack).all(axis=1)]
        if len(under) and (under >= z - slack).all():
            return None
        others = np.arange(len(z)) != self.main
        below = self.bounds[(self.bounds[:, others] <= (z + slack)[others]).all(axis=1)]
        least = below[:, self.main].min(initial=z[self.main])
        return 0.0 if z[self.main] <= 0 else float(max(0.0, z[self.main] - least) / z[self.main])


def enumerate_front(
    oracle: Oracle,
    objectives: Sequence[Objective],
    budget: Budget,
    *,
    main: int | None = None,
    grid: int | None = None,
    known: Sequence[Found] = (),
) -> Enumeration:
    """Enumerate the non-dominated points that an oracle can reach.

    Where all objectives but the main one have a step, and `grid` is None, all of them; otherwise at most `grid` limits of each
    constrained objective are tried, spread evenly between ideal and nadir.

    Parameters
    ----------
    main : int, optional
        The objective to minimise within limits on the others; by default one without a step, or the one of most values.
    grid : int, optional
        Limits per constrained objective; 20 where a constrained objective has no step.
    known : sequence of Found
        Feasible points to begin with.
    """
    return _Search(oracle, tuple(objectives), budget, grid, known).run(main)


class _ContradictionError(Exception):
    """A solver says, even when asked another way, that a plan which the referee accepts cannot exist."""


class _Search:
    def __init__(
        self,
        oracle: Oracle,
        objectives: tuple[Objective, ...],
        budget: Budget,
        grid: int | None,
        known: Sequence[Found],
    ):
        self.oracle, self.objectives, self.budget, self.grid = oracle, objectives, budget, grid
        self.whole = np.array([o.step is not None for o in objectives])
        self.units = np.array([o.step or 1.0 for o in objectives])
        self.size = len(objectives)
        self.memory = Memory(self.whole, known)
        self.zones = np.empty((0, self.size))  # not asked yet; none inside another
        self.later: list[np.ndarray] = []  # asked, and not answered in time
        self.given_up = 0
        self.solves = self.failures = self.main = 0
        self.ideal = self.nadir = np.full(self.size, math.nan)
        self._reported = -math.inf

    def run(self, main: int | None) -> Enumeration:
        try:
            feasible = self._payoff()
            self.main = self._choose() if main is None else main
            if self.grid is None and not np.delete(self.whole, self.main).all():
                self.grid = 20
            self.zones = np.full((int(feasible), self.size), math.inf)
            while (len(self.zones) or self.later) and not self.budget.out_of_time:
                self._step()
        except (
            _ContradictionError
        ):  # the points are the referee's, and stay; nothing that was proven is
            self.memory.open, self.given_up = Rows(self.size), 1
        complete = not (len(self.zones) or self.later or self.given_up)
        bounds = self.memory.bounds(self.oracle.floors)
        found = (
            self.memory.points,
            bounds,
            complete,
            self.main,
            self.ideal,
            self.nadir,
            self.solves,
            self.failures,
        )
        return Enumeration(*found, self.objectives)

    # -- payoff table ------------------------------------------------------------------------------------------

    def _payoff(self) -> bool:
        """Minimise the objectives lexicographically, each first once; False if the problem is infeasible."""
        rows = []
        for first in range(self.size):
            limits = np.full(self.size, math.inf)
            for objective in (first, *(k for k in range(self.size) if k != first)):
                if self.budget.out_of_time:
                    break
                lower, point = self._ask(
                    objective, limits, self.budget.seconds_left / (2 * self.size)
                )
                if lower == math.inf and objective == first:
                    return False
                if point is None or point[objective] > self._reach(lower, objective):
                    break  # not solved; what was found is kept
                limits[objective] = point[objective]
            rows.append(np.where(limits == math.inf, math.nan, limits))
        self.ideal = np.array(
            [self.memory.lower(k, np.full(self.size, math.inf)) for k in range(self.size)]
        )
        met = self.memory.values.all
        self.nadir = np.fmax.reduce(rows)
        self.nadir = np.where(
            np.isnan(self.nadir), met.max(axis=0) if len(met) else math.nan, self.nadir
        )
        return True

    def _choose(self) -> int:
        """Return the objective to minimise: one that is real-valued, else the one of most values."""
        if not self.whole.all():
            return int(np.argmin(self.whole))
        return int(np.argmax(self._spread(0.0)))

    def _spread(self, unknown: float) -> np.ndarray:
        return np.nan_to_num(self.nadir - self.ideal, nan=unknown, posinf=unknown, neginf=unknown)

    # -- zones -------------------------------------------------------------------------------------------------

    def _step(self) -> None:
        """Answer one zone, and replace it by smaller ones."""
        if len(self.zones):
            chosen = int(np.argmax(self._volumes()))
            zone, parts = self.zones[chosen], self.grid or 8
            self.zones = np.delete(self.zones, chosen, axis=0)
        else:
            zone, parts = self.later.pop(0), len(self.later) + 1
        left = self.budget.seconds_left
        lower, point = self._ask(self.main, zone, left / parts)
        if lower == math.inf:
            return
        if point is None or point[self.main] > self._reach(lower, self.main):
            if left - self.budget.seconds_left >= 0.5 * left / parts and left < math.inf:
                self.later.append(zone)
            else:
                self.given_up += 1  # it was not the time that lacked
        if point is not None:
            self._split(zone, np.minimum(point, zone))

    def _split(self, zone: np.ndarray, point: np.ndarray) -> None:
        for k in range(self.size):
            smaller = zone.copy()
            smaller[k] = -math.inf if k == self.main else self._below(k, point[k])
            if (
                smaller[k] == -math.inf
                or (smaller <= self.zones).all(axis=1).any()
                or any((smaller == z).all() for z in self.later)
            ):
                continue
            kept = self.zones[~(self.zones <= smaller).all(axis=1)]
            self.zones = np.concatenate((kept, smaller[None]))

    def _below(self, k: int, value: float) -> float:
        """Return the next limit under a value, -inf where there is none."""
        if self.grid is None:
            return value - 1
        low, high = self.ideal[k], self.nadir[k]
        if not (math.isfinite(low) and math.isfinite(high) and low < high):
            return -math.inf
        width = (high - low) / max(1, self.grid - 1)
        line = min(math.ceil((value - low) / width - 1e-6) - 1, self.grid - 1)
        if line < 0:
            return -math.inf
        limit = low + line * width
        return min(math.floor(limit + 1e-6), value - 1) if self.whole[k] else limit

    def _volumes(self) -> np.ndarray:
        """Return how much each zone may hold: the search takes the largest first, so that it covers the front evenly."""
        spread = self._spread(1.0)
        share = (np.fmin(self.zones, self.nadir) - self.ideal + self.whole) / np.where(
            spread > 0, spread, 1.0
        )
        share = np.clip(np.nan_to_num(share, nan=1.0, posinf=1.0), 0.0, None)
        return np.delete(share, self.main, axis=1).prod(axis=1)

    # -- questions ---------------------------------------------------------------------------------------------

    def _ask(
        self, objective: int, limits: np.ndarray, seconds: float
    ) -> tuple[float, np.ndarray | None]:
        """Return a lower bound of an objective within limits, and a vector there to go on from; from memory if it can be."""
        lower, best = self.memory.lower(objective, limits), self.memory.best(objective, limits)
        if lower == math.inf or (
            best is not None and best.values[objective] <= self._reach(lower, objective)
        ):
            return lower, None if best is None else np.array(best.values)
        answer, proven = self._solve(objective, limits, seconds, best)
        best = self.memory.best(objective, limits)
        if best is not None and proven > self._reach(best.values[objective], objective):
            answer, proven = self._solve(objective, limits, seconds, best, careful=True)
            best = self.memory.best(objective, limits) or best
            if proven > self._reach(best.values[objective], objective):
                raise _ContradictionError
        self.memory.refute(objective, limits, proven)
        lower = self.memory.lower(objective, limits)
        solved = best is not None and best.values[objective] <= self._reach(lower, objective)
        if (
            answer.claimed is not None
            and not solved
            and (answer.status == "optimal" or best is None)
        ):
            return lower, np.where(
                self.whole, np.floor(np.array(answer.claimed) + 1e-4), answer.claimed
            )
        return lower, None if best is None else np.array(best.values)

    def _solve(
        self,
        objective: int,
        limits: np.ndarray,
        seconds: float,
        start: Found | None,
        careful: bool = False,
    ) -> tuple[Answer, float]:
        """Put a question to the oracle; return its answer and what it proves."""
        self.solves += 1
        try:
            payload = None if start is None else start.payload
            answer = self.oracle.minimise(
                objective, limits.tolist(), seconds=seconds, start=payload, careful=careful
            )
        except SolverError:
            self.failures += 1
            answer = Answer("unknown")
        if answer.values is not None:
            self.memory.meet(Found(answer.values, answer.payload))
        self._report()
        return answer, self._round(answer.bound, objective)

    def _report(self) -> None:
        values = self.memory.values.all
        if len(values) and self.budget.seconds >= self._reported + 0.1:
            self._reported = self.budget.seconds
            self.budget.report(
                (values.min(axis=0) * self.units).tolist(),
                len(minimal(values)),
                f"{self.solves} solves",
            )

    def _round(self, bound: float, objective: int) -> float:
        """Return a solver's bound as what it proves: the next whole unit, or a little less."""
        if not math.isfinite(bound):
            return bound
        if self.whole[objective]:
            return float(math.ceil(bound - min(0.05, max(1e-4, 1e-9 * abs(bound)))))
        return bound - TOLERANCE * max(1.0, abs(bound))

    def _reach(self, lower: float, objective: int) -> float:
        """Return the largest value that counts as equal to a bound."""
        return (
            lower
            if self.whole[objective] or not math.isfinite(lower)
            else lower + 3 * TOLERANCE * max(1.0, abs(lower))
        )
