"""What a long command says while it works: a line that moves, or a plain line now and then.

On a terminal the line keeps its bar, how much is done of how much, and the time left; what has no
room beside them is left out. Elsewhere a line is printed every ten seconds, also where the work
says nothing meanwhile.
"""

from __future__ import annotations

import math
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from placeopt.cli.screen import console, is_quiet, say
from placeopt.cli.tables import room
from placeopt.core.runs.compiling import CLOCK, Compiling
from placeopt.core.runs.progress import Tell, Told, in_words, left_in_words

#: Seconds between two plain lines.
PAUSE = 10.0
#: Columns of the bar, at most and at least, what it is filled with, and what the rest is.
_BAR, _LEAST_BAR, _FULL, _EMPTY = 20, 5, "█", "░"
#: Turns while the work goes on.
_SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"


@contextmanager
def shown(start: str = "starting") -> Iterator[Tell | None]:
    """Show what is told until the block ends; yield None where nobody wants to know."""
    if is_quiet():
        yield None
        return
    with _moving(start) if sys.stderr.isatty() else _now_and_then() as tell:
        yield tell


def line(told: Told, seconds: float, width: int) -> str:
    """Return the line that moves: bar, done, time left, and of the facts what there is room for.

    Examples
    --------
    >>> line(Told(0.25, "5 of 20 runs", ["a", "b" * 40]), 30.0, 50)
    '█████░░░░░░░░░░░░░░░  5 of 20 runs  90 s left  a'
    """
    text = "  ".join(
        part for part in (told.done or f"{seconds:.0f} s", left_in_words(told, seconds)) if part
    )
    if not math.isnan(told.share):
        columns = max(_LEAST_BAR, min(_BAR, width - room(text) - 2))
        filled = round(columns * min(1.0, max(0.0, told.share)))
        text = f"{_FULL * filled}{_EMPTY * (columns - filled)}  {text}"
    for fact in told.facts:
        if room(text) + 2 + room(fact) > width:
            break
        text += f"  {fact}"
    return text[:width]


@contextmanager
def _moving(start: str) -> Iterator[Tell]:
    """Draw a line that moves, on a terminal."""
    from rich.live import Live
    from rich.text import Text

    screen, began = console(), CLOCK.seconds
    latest, compiled = Told(math.nan, start), ""

    def tell(told: Told) -> None:
        nonlocal latest
        latest = told

    def compiling(state: Compiling) -> None:
        nonlocal compiled
        compiled = str(state) if state.kernel else ""

    def drawn() -> Text:
        turn = _SPINNER[int(8 * time.monotonic()) % len(_SPINNER)]
        text = compiled or line(latest, CLOCK.seconds - began, screen.width - 3)
        return Text(f"{turn} {text}", no_wrap=True, overflow="crop")

    live = Live(get_renderable=drawn, console=screen, refresh_per_second=8, transient=True)
    with live, CLOCK.watched(compiling):
        yield tell


@contextmanager
def _now_and_then() -> Iterator[Tell]:
    """Print a plain line every ten seconds, from a thread: some solvers say nothing for minutes."""
    began, work_began, ended = time.monotonic(), CLOCK.seconds, threading.Event()
    latest: Told | None = None

    def tell(told: Told) -> None:
        nonlocal latest
        latest = told

    def work() -> None:
        while not ended.wait(PAUSE):
            told = latest or Told(math.nan, "starting")
            facts = plain_facts(told, CLOCK.seconds - work_began)
            say(f"{in_words(time.monotonic() - began)}: {', '.join(facts)}")

    thread = threading.Thread(target=work, name="placeopt-progress", daemon=True)
    thread.start()
    try:
        yield tell
    finally:
        ended.set()
        thread.join()


def plain_facts(told: Told, seconds: float) -> list[str]:
    """Return what a plain line says: done, time left, and the first fact."""
    facts = (told.done, left_in_words(told, seconds), *told.facts[:1])
    return [fact for fact in facts if fact] or ["at work"]
