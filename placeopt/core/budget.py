"""The limit of one whole run: evaluations and seconds, progress, cancellation."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any

from placeopt.core.errors import UsageError, shown
from placeopt.core.fronts.trace import Recorder, RunSnapshot, Watch
from placeopt.core.runs.compiling import CLOCK, Clock

#: Evaluations of a run when neither evaluations nor seconds are given.
DEFAULT_EVALUATIONS = 50_000


@dataclass(frozen=True)
class Progress:
    """What a run says of itself while it works.

    Attributes
    ----------
    seconds : float
        Of work since the run began; seconds of compiling do not count.
    evaluations : int
        Spent so far.
    share : float
        Part of the budget used, in [0, 1]; nan where it cannot be known.
    best : tuple of float
        Best value of each objective so far, in the order asked for; empty when nothing was found,
        or not judged yet.
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


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _evaluations(given: Any) -> int:
    """Return a number of evaluations; 1e4 is one, too."""
    if not (_is_number(given) and 1 <= given < math.inf and given == int(given)):
        raise UsageError(f"evaluations is {shown(given)}; give a whole number of at least 1")
    return int(given)


class Budget:
    """The limit of one whole run, and the clock that methods ask.

    Parameters
    ----------
    evaluations : int, optional
        Objective-vector evaluations; `DEFAULT_EVALUATIONS` when `seconds` is not given either.
    seconds : float, optional
        Wall-clock seconds of work, counted from the creation of the budget. Those that pass while
        this process compiles kernels do not count.
    on_progress : callable, optional
        Called with a `Progress`, at most ten times a second.
    stop : callable, optional
        Returns whether somebody outside cancels the run; asked at most every 0.05 s.
    clock : Clock, optional
        Counts the seconds of work; that of this process by default.

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
        stop: Callable[[], bool] | None = None,
        clock: Clock = CLOCK,
    ):
        if evaluations is not None:
            evaluations = _evaluations(evaluations)
        if seconds is not None and not (_is_number(seconds) and 0 < seconds < math.inf):
            raise UsageError(
                f"the time limit is {shown(seconds)} s; give a positive number of seconds"
            )
        if evaluations is None and seconds is None:
            evaluations = DEFAULT_EVALUATIONS
        self.evaluations_limit: float | None = evaluations
        self.seconds_limit = seconds
        self.evaluations = 0
        self.on_progress = on_progress
        #: Shown what is reported, of shares too; who records a run sets it.
        self.recorder: Recorder | None = None
        #: Shown fronts while they grow.
        self.watch: Watch | None = None
        self.clock = clock
        self._started, self._compiled = clock.seconds, clock.compiled
        self._reported = -math.inf
        self._cancelled = False
        self._stop, self._next_look = stop, -math.inf
        self._whole: Budget | None = None  # what this is a share of

    @property
    def seconds(self) -> float:
        """Seconds of work since the run began."""
        return self.clock.seconds - self._started

    @property
    def compile_seconds(self) -> float:
        """Seconds that the run waited for compiling; `seconds` leaves them out."""
        return self.clock.compiled - self._compiled

    @property
    def began_after(self) -> tuple[float, int]:
        """Seconds and evaluations that the whole run had spent when this share of it began."""
        if self._whole is None:
            return 0.0, 0
        seconds, evaluations = self._whole.began_after
        own = self._whole.evaluations - self.evaluations
        return seconds + self._started - self._whole._started, evaluations + own

    @property
    def seconds_left(self) -> float:
        """Seconds that remain, at least 0; ``inf`` without a time limit."""
        return (
            math.inf if self.seconds_limit is None else max(0.0, self.seconds_limit - self.seconds)
        )

    @property
    def evaluations_left(self) -> float:
        """Evaluations that remain, at least 0; ``inf`` without that limit."""
        return (
            math.inf
            if self.evaluations_limit is None
            else max(0, self.evaluations_limit - self.evaluations)
        )

    @property
    def progress(self) -> float:
        """Part of the budget that is used, 0 to 1."""
        limits = ((self.evaluations, self.evaluations_limit), (self.seconds, self.seconds_limit))
        used = [spent / limit for spent, limit in limits if limit is not None]
        return min(1.0, max(used, default=0.0))

    @property
    def cancelled(self) -> bool:
        """Whether the run was cancelled, by `cancel` or from outside."""
        if not self._cancelled and self._stop is not None:
            now = self.clock.now()
            if now >= self._next_look:
                self._next_look = now + 0.05
                self._cancelled = self._stop()
        return self._cancelled or (self._whole is not None and self._whole.cancelled)

    @property
    def exhausted(self) -> bool:
        """Whether the run must stop: no evaluations or seconds left, or cancelled."""
        if self.cancelled or self.evaluations_left <= 0 or self.seconds_left <= 0:
            return True
        return self._whole is not None and self._whole.exhausted

    @property
    def out_of_time(self) -> bool:
        """Whether the run must stop whatever it counts: no seconds left, or cancelled."""
        if self.cancelled or self.seconds_left <= 0:
            return True
        return self._whole is not None and self._whole.out_of_time

    def allow(self, wanted: int) -> int:
        """Return how many of `wanted` evaluations may still be made."""
        if self._whole is None:
            return int(min(wanted, self.evaluations_left))
        own = self.evaluations_left  # a share need not be whole
        own = own if math.isinf(own) else math.ceil(own - 1e-9)
        return max(0, int(min(self._whole.allow(wanted), own)))

    def spend(self, evaluations: int) -> None:
        """Count `evaluations` as made."""
        self.evaluations += evaluations
        if self._whole is not None:
            self._whole.spend(evaluations)

    def cancel(self) -> None:
        """Ask the run to stop at its next look at the clock and to return what it has."""
        self._cancelled = True

    def report(self, note: str = "", interim: RunSnapshot | None = None) -> None:
        """Say what the method is doing, in a few words, and what it has found so far."""
        if self._whole is not None:
            self._whole.report(note, interim)
            return
        if self.recorder is not None and interim is not None:
            self.recorder.see(self.seconds, self.evaluations, interim)
        if self.on_progress is not None and self.seconds - self._reported >= 0.1:
            self._reported = self.seconds
            self._progress(note, interim)

    def _progress(self, note: str, interim: RunSnapshot | None) -> None:
        assert self.on_progress is not None
        unlimited = self.evaluations_limit is None and self.seconds_limit is None
        best: tuple[float, ...] = ()
        points = 0
        if interim is not None:
            best, points = interim.best_and_count()
        self.on_progress(
            Progress(
                seconds=self.seconds,
                evaluations=self.evaluations,
                share=math.nan if unlimited else self.progress,
                best=best,
                points=points,
                note=note,
            )
        )

    def resume(self, evaluations: int, seconds: float) -> None:
        """Count what an earlier process spent on this run."""
        self.spend(evaluations)
        self._set_back(seconds)

    def _set_back(self, seconds: float) -> None:
        self._started -= seconds
        if self._whole is not None:
            self._whole._set_back(seconds)

    def beside(self, evaluations: int | None = None, seconds: float | None = None) -> Budget:
        """Return a budget with limits of its own that is cancelled when this one is."""
        return Budget(evaluations, seconds, stop=lambda: self.cancelled, clock=self.clock)

    def share(
        self, part: float = 1.0, evaluations: float | None = None, seconds: float | None = None
    ) -> Budget:
        """Return a budget of a part of what is left, in evaluations and in seconds.

        What it spends, this budget spends too. It ends when this budget ends.

        Parameters
        ----------
        part : float
            Above 0, at most 1.
        evaluations : float, optional
            Instead of that part of the evaluations.
        seconds : float, optional
            Its time limit where this budget has none.

        Examples
        --------
        >>> share = Budget(evaluations=100).share(0.25)
        >>> share.spend(20)
        >>> share.allow(20), share.progress
        (5, 0.8)
        """
        timed, counted = self.seconds_limit is not None, self.evaluations_limit is not None
        result = Budget(
            1, max(1e-9, self.seconds_left * part) if timed else seconds, clock=self.clock
        )
        wanted = self.evaluations_left * part if evaluations is None else evaluations
        result.evaluations_limit = max(1.0, wanted) if counted else None
        result.on_progress, result.watch = self.on_progress, self.watch
        result.recorder, result._whole = self.recorder, self
        return result
