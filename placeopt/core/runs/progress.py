"""What a long run says while it works, in words: for a terminal, a log and a notebook."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

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
