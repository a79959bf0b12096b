"""How long one run may take: evaluations and seconds for the whole of it, progress, cancellation."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from placeopt.errors import UsageError

#: Evaluations of a run when neither evaluations nor seconds are given.
DEFAULT_EVALUATIONS = 50_000


@dataclass(frozen=True)
class Progress:
    """What a run says of itself while it works.

    Attributes
    ----------
    seconds : float
        Since the run began.
    evaluations : int
        Spent so far.
    share : float
        Part of the budget used, in [0, 1]; nan where it cannot be known.
    best : tuple of float
        Least value of each objective so far, in the order asked for; empty when nothing was found.
    points : int
        Size of the front so far.
    note : str
        What the method is doing, in a few words.
    """

    seconds: float
    evaluations: int
    share: float
    best: tuple[float, ...]
    points: int
    note: str = ""


class Budget:
    """The limit of one whole run, and the clock that methods ask.

    Parameters
    ----------
    evaluations : int, optional
        Objective-vector evaluations; `DEFAULT_EVALUATIONS` when `seconds` is not given either.
    seconds : float, optional
        Wall-clock seconds, counted from the creation of the budget.
    on_progress : callable, optional
        Called with a `Progress`, at most ten times a second.

    Examples
    --------
    >>> budget = Budget(evaluations=100)
    >>> budget.spend(60)
    >>> budget.evaluations_left, budget.exhausted
    (40, False)
    """

    def __init__(
        self,
        evaluations: int | None = None,
        seconds: float | None = None,
        on_progress: Callable[[Progress], None] | None = None,
    ):
        if evaluations is not None and evaluations < 1:
            raise UsageError(f"evaluations is {evaluations}; give a whole number of at least 1")
        if seconds is not None and not 0 < seconds < math.inf:
            raise UsageError(f"the time limit is {seconds} s; give a positive number of seconds")
        if evaluations is None and seconds is None:
            evaluations = DEFAULT_EVALUATIONS
        self.evaluations_limit = evaluations
        self.seconds_limit = seconds
        self.evaluations = 0
        self._started = time.perf_counter()
        self._reported = -math.inf
        self.on_progress = on_progress
        self._cancelled = False

    @property
    def seconds(self) -> float:
        """Seconds since the run began."""
        return time.perf_counter() - self._started

    @property
    def seconds_left(self) -> float:
        """Seconds that remain, at least 0; ``inf`` without a time limit."""
        return (
            math.inf if self.seconds_limit is None else max(0.0, self.seconds_limit - self.seconds)
        )

    @property
    def evaluations_left(self) -> int | float:
        """Evaluations that remain, at least 0; ``inf`` without that limit."""
        return (
            math.inf
            if self.evaluations_limit is None
            else max(0, self.evaluations_limit - self.evaluations)
        )

    @property
    def cancelled(self) -> bool:
        """Whether `cancel` was called."""
        return self._cancelled

    @property
    def exhausted(self) -> bool:
        """Whether the run must stop: no evaluations or seconds left, or cancelled."""
        return self.cancelled or self.evaluations_left <= 0 or self.seconds_left <= 0

    @property
    def out_of_time(self) -> bool:
        """Whether the run must stop whatever it counts: no seconds left, or cancelled."""
        return self.cancelled or self.seconds_left <= 0

    def allow(self, wanted: int) -> int:
        """Return how many of `wanted` evaluations may still be made."""
        return int(min(wanted, self.evaluations_left))

    def spend(self, evaluations: int) -> None:
        """Count `evaluations` as made."""
        self.evaluations += evaluations

    def cancel(self) -> None:
        """Ask the run to stop at its next look at the clock and to return what it has."""
        self._cancelled = True

    def report(self, best: Sequence[float] = (), points: int = 0, note: str = "") -> None:
        """Tell the progress callback, if there is one and the last call is at least 0.1 s ago."""
        if self.on_progress is None or self.seconds - self._reported < 0.1:
            return
        self._reported = self.seconds
        limits = ((self.evaluations, self.evaluations_limit), (self.seconds, self.seconds_limit))
        shares = [used / limit for used, limit in limits if limit is not None]
        share = max(shares) if shares else math.nan
        self.on_progress(
            Progress(self.seconds, self.evaluations, min(share, 1.0), tuple(best), points, note)
        )
