"""What passes between a search and its oracle, and what a search returns.

All values are in units, as in `placeopt.exact.enumeration`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from placeopt.core.fronts.values import Objective
from placeopt.exact.memory import Found, Precision

#: How a search may end, and why.
STATUSES = {
    "complete": "every point of the front is found and proven",
    "extreme": "every extreme point of the front is found and proven; the front lies between them",
    "resolution": "points that differ by less than a solver can tell may be missing",
    "grid": "limits were tried on a grid: between two of them points may be missing",
    "infeasible": "no solution satisfies all constraints",
    "time-limit": "the time limit ended the search",
    "solution-limit": "the largest number of points was reached",
    "cancelled": "the search was cancelled",
    "numerical": "the solver could not answer some questions",
}


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
        The referee's values of the plan found, in units; None without a feasible plan.
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
    """Minimises one objective, or a weighted sum of all, subject to limits.

    Attributes
    ----------
    floors : sequence of float
        Trivial lower bounds of the objectives, in units.
    """

    floors: Sequence[float]

    def minimise(
        self, objective: int, limits: Sequence[float], *, seconds: float, start: Any, careful: bool
    ) -> Answer:
        """Minimise one objective; with several jobs, called from several threads at once.

        Parameters
        ----------
        objective : int
        limits : sequence of float
            Largest value of every objective, in units, inclusive; inf for none, and for the
            objective itself.
        seconds : float
            Time limit.
        start : object
            The payload of a point within the limits, or None.
        careful : bool
            An earlier answer contradicts what is known: ask another way.
        """

    def minimise_sum(
        self, weights: Sequence[float], limits: Sequence[float], *, seconds: float, start: Any
    ) -> Answer:
        """Minimise the weighted sum of all objectives; the bound of the answer is on the sum.

        Parameters
        ----------
        weights : sequence of float
            One for each objective, positive.
        limits, seconds, start
            As of `minimise`, with a limit on every objective.
        """


@dataclass
class Enumeration:
    """What a search has found and proven.

    Attributes
    ----------
    points : list of Found
        The feasible points met, some dominated ones too.
    bounds : ndarray, shape (k, objectives)
        Every feasible vector is weakly dominated by a row; no rows where the problem is infeasible.
    status : str
        One of `STATUSES`, or ``payoff``: each objective was minimised, and no more was asked.
    main : int
        The objective that was minimised.
    solves : int
        Questions put to the oracle.
    failures : int
        Of these, how many the solver could not answer at all.
    objectives : tuple of Objective
        What the units are of, where that is not what was asked for.
    unresolved : ndarray or None, shape (objectives,)
        Points that differ by less may be missing; units.
    """

    points: list[Found]
    bounds: np.ndarray
    status: str
    main: int
    solves: int = 0
    failures: int = 0
    objectives: tuple[Objective, ...] = ()
    unresolved: np.ndarray | None = None

    @property
    def complete(self) -> bool:
        """Whether nothing was left unexplored."""
        return self.status in ("complete", "infeasible")

    def gap(self, values: Sequence[float], precision: Precision) -> float | None:
        """Return None if a point is proven efficient, else what of its main value might be saved.

        As a share of the value, with the other values no worse; 0 where only another value might
        be improved.
        """
        z = np.asarray(values, dtype=float)
        slack = precision.accepted * precision.of(z)
        under = self.bounds[(self.bounds <= z + slack).all(axis=1)]
        if len(under) and (under >= z - slack).all():
            return None
        others = np.arange(len(z)) != self.main
        below = self.bounds[(self.bounds[:, others] <= (z + slack)[others]).all(axis=1)]
        least = below[:, self.main].min(initial=z[self.main])
        value = abs(z[self.main])
        return 0.0 if value == 0 else float(max(0.0, z[self.main] - least) / value)


@dataclass(eq=False)
class Question:
    """One objective to minimise within limits, by the clock's share `parts`.

    Where it has `weights` it is about the weighted sum of all objectives.
    """

    objective: int
    limits: np.ndarray
    parts: float
    start: Found | None
    is_region: bool = True
    weights: np.ndarray | None = None
    job: Future[None] | None = None  # of the worker that asks
    answer: Answer | None = None  # None: not asked, the time was up
    failed: bool = False
    slow: bool = False  # took most of its time slice
