"""Progress in notebooks: a bar below the cell while a run takes longer than a moment."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from html import escape
from typing import TYPE_CHECKING, Any

from placeopt.core.runs.progress import Tell, Told, left_in_words, of_run

if TYPE_CHECKING:
    from placeopt.core.budget import Budget
    from placeopt.core.fronts.values import Objective

#: Seconds until the bar is shown, and between two changes of it.
_WAIT, _PAUSE = 1.0, 0.5


@contextmanager
def watching(budget: Budget, objectives: Sequence[Objective]) -> Iterator[None]:
    """Show the progress of a run in the block, in a notebook, unless somebody watches it."""
    if budget.on_progress is not None:
        yield
        return
    with shown() as tell:
        if tell is not None:
            budget.on_progress = lambda state: tell(of_run(state, budget, objectives))
        try:
            yield
        finally:
            budget.on_progress = None


@contextmanager
def shown() -> Iterator[Tell | None]:
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
