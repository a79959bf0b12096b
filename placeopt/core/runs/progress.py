"""What a long run says while it works, in words: for a terminal, a log and a notebook.

A notebook has a bar below the cell while a run takes longer than a moment.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple

from placeopt.core.fronts.words import counted

if TYPE_CHECKING:
    from placeopt.core.budget import Budget, Progress
    from placeopt.core.fronts.values import Objective


class Told(NamedTuple):
    """What a command has done so far.

    Attributes
    ----------
    share : float
        Of all that is to be done; nan where that is not known.
    done : str
        How much of how much.
    facts : sequence of str
        What else may interest, the most interesting first.
    left : float or None
        Seconds that remain; None: they are reckoned from the share.
    """

    share: float
    done: str
    facts: Sequence[str] = ()
    left: float | None = None


Tell = Callable[[Told], None]


def of_run(state: Progress, budget: Budget, objectives: Sequence[Objective]) -> Told:
    """Return what a run has done: evaluations or seconds of its limit, points, best values."""
    evaluations, seconds = budget.evaluations_limit, budget.seconds_limit
    parts = []
    if evaluations is not None:
        parts.append(f"{state.evaluations:,} of {evaluations:,.0f} evaluations")
    if seconds is not None:
        parts.append(f"{min(state.seconds, seconds):.0f} of {seconds:g} s")
    best = [f"{o.name} {v:.4g}" for o, v in zip(objectives, state.best, strict=False)]
    facts = [counted(state.points, "point") if state.points else "", state.note, *best]
    return Told(state.share, ", ".join(parts), [fact for fact in facts if fact])


def left_in_words(told: Told, seconds: float) -> str:
    """Return the time left in words, nothing where it is not known."""
    if told.left is not None:
        return f"{in_words(told.left)} left" if told.share < 1 else ""
    if not 0 < told.share < 1 or seconds < 1:  # it may be nan
        return ""
    return f"{in_words(seconds * (1 - told.share) / told.share)} left"


def in_words(seconds: float) -> str:
    """Return a time for people.

    >>> in_words(50), in_words(200), in_words(9000)
    ('50 s', '3 min', '2.5 h')
    """
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


#: Seconds until the bar is shown, and between two changes of it.
_WAIT, _PAUSE = 1.0, 0.5


@contextmanager
def watching(budget: Budget, objectives: Sequence[Objective]) -> Iterator[None]:
    """Show the progress of a run in the block, in a notebook, unless somebody watches it."""
    if budget.on_progress is not None:
        yield
        return
    with notebook_bar() as tell:
        if tell is not None:
            budget.on_progress = lambda state: tell(of_run(state, budget, objectives))
        try:
            yield
        finally:
            budget.on_progress = None


@contextmanager
def notebook_bar() -> Iterator[Tell | None]:
    """Show a bar while the block runs; yield what is told, None outside of a notebook."""
    display = _display()
    if display is None:
        yield None
        return
    began = time.monotonic()
    place: Any = None
    next_change = began + _WAIT

    def tell(told: Told) -> None:
        nonlocal place, next_change
        now = time.monotonic()
        if now < next_change:
            return
        next_change = now + _PAUSE
        bar = _Bar(told, now - began)
        if place is None:
            place = display(bar, display_id=True)
        else:
            place.update(bar)

    try:
        yield tell
    finally:
        if place is not None:
            place.update(_Bar(None, 0.0))


class _Bar:
    """What a notebook draws: nothing any more where nothing is told."""

    def __init__(self, told: Told | None, seconds: float):
        self._told, self._seconds = told, seconds

    def __repr__(self) -> str:
        """Say it in a line."""
        return "" if self._told is None else self._text()

    def _repr_html_(self) -> str:
        """Return a bar and a line."""
        if self._told is None:
            return ""
        share = self._told.share
        value = "" if math.isnan(share) else f' value="{share:.3f}"'
        return f"<progress{value}></progress> <code>{escape(self._text())}</code>"

    def _text(self) -> str:
        assert self._told is not None
        told, seconds = self._told, self._seconds
        parts = (told.done or f"{seconds:.0f} s", left_in_words(told, seconds), *told.facts)
        return ", ".join(part for part in parts if part)


def _display() -> Callable[..., Any] | None:
    """Return what shows things below the cell that runs; None outside of a notebook."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    if shell is None or type(shell).__name__ != "ZMQInteractiveShell":
        return None
    from IPython.display import display

    return display
