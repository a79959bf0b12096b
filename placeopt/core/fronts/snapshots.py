"""What a run has found so far: told by methods at every report, looked at now and then."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from placeopt.core.fronts.front import Front
from placeopt.core.fronts.values import Plan


@dataclass(frozen=True)
class RunSnapshot:
    """What a run has found so far; its members are called only when somebody looks.

    Attributes
    ----------
    values : callable or None
        Returns the values of feasible plans, shape (plans, objectives). None: the plans have to be
        judged.
    plan : callable or None
        Returns the plan of a row of `values`, by its number. None: there are no plans yet.
    count : int
        Plans, where `values` is None.
    bounds : callable or None
        Returns a proven bound set, shape (bounds, objectives).
    update : callable or None
        Called before a look that is due after the same evaluations in every run; other looks, such
        as those of a progress bar, come by the clock and must change nothing.
    names : tuple of str or None
        Objectives that the columns of `values` and `bounds` are; those of the task by default.
    minimal : bool
        No row of `values` dominates another.
    best : callable or None
        Returns the best value of each objective, shape (objectives,); the least by default.
    """

    values: Callable[[], np.ndarray] | None = None
    plan: Callable[[int], Plan] | None = None
    count: int = 0
    bounds: Callable[[], np.ndarray] | None = None
    update: Callable[[], None] | None = None
    names: tuple[str, ...] | None = None
    minimal: bool = False
    best: Callable[[], np.ndarray] | None = None

    def best_and_count(self) -> tuple[tuple[float, ...], int]:
        """Return the best value of each objective, if known, and how many plans there are."""
        if self.values is None:
            return (), self.count
        values = self.values()
        if not len(values):
            return (), 0
        best = values.min(axis=0) if self.best is None else self.best()
        return tuple(best.tolist()), len(values)

    @classmethod
    def of_plans(
        cls, plans: Sequence[Plan], bounds: Callable[[], np.ndarray] | None = None
    ) -> RunSnapshot:
        """Return what a list of plans says, feasible or not."""
        return cls(plan=plans.__getitem__, count=len(plans), bounds=bounds)


class Witness(Protocol):
    """Somebody who is shown every report of a run."""

    def see(self, seconds: float, evaluations: int, interim: RunSnapshot) -> None:
        """Look at what the run has found after so many seconds and evaluations, or do not."""


#: Points of a front that is shown before a run is over.
MAX_SHOWN = 100


class Watch:
    """Somebody who looks at fronts while they grow.

    Parameters
    ----------
    take : callable
        Called with each `Front`.
    every : float
        Seconds between two looks, at least; and never less than a look takes.
    other : Watch, optional
        Another one, who looks at the same run.
    """

    def __init__(
        self, take: Callable[[Front], None], every: float = 1.0, other: Watch | None = None
    ):
        self._take, self._every, self._other, self._next = take, every, other, -math.inf

    def look(self, build: Callable[[], Front]) -> None:
        """Build a front and take it, if it is time for one."""
        if self._other is not None:
            self._other.look(build)
        began = time.perf_counter()
        if began >= self._next:
            self._take(build())
            ended = time.perf_counter()
            self._next = ended + max(self._every, ended - began)
