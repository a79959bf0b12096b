"""What a long command says while it works: a line that moves, or a plain line now and then.

On a terminal the line has a bar, how much is done of how much, the time left, and of the facts what
there is room for. Elsewhere a line is printed every ten seconds, also where the work
says nothing meanwhile. While kernels are compiled, it says so.
"""

from __future__ import annotations

import math
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from placeopt.cli.screen import console, is_quiet, say
from placeopt.core.fronts.words import counted
from placeopt.core.runs.compiling import CLOCK, Compiling
from placeopt.core.runs.progress import Tell, Told, in_words, left_in_words

if TYPE_CHECKING:
    from rich.console import Console
    from rich.status import Status

#: Said once, where what was compiled is lost.
NOT_KEPT = (
    "compiled kernels cannot be kept, so every run compiles them: set NUMBA_CACHE_DIR to a folder "
    "that can be written"
)


class _Notice:
    """Says what is compiled before it is: a line that moves on a terminal, else one line."""

    def __init__(self) -> None:
        self._console: Console | None = None
        self._said = False
        self._line: Status | None = None

    def __call__(self, state: Compiling) -> None:
        if is_quiet():
            return
        self._console = self._console or console()
        if not self._console.is_terminal:
            if state.kernel and not self._said:
                self._said = True
                say("compiling kernels, once; no time limit counts it")
        elif state.kernel:
            if self._line is None:
                self._line = self._console.status(str(state))
                self._line.start()
            self._line.update(str(state))
        else:
            self.end()

    def end(self) -> None:
        """Take the line away."""
        if self._line is not None:
            self._line.stop()
            self._line = None


@contextmanager
def announced() -> Iterator[None]:
    """Say what is being compiled until the command ends, and then what that took."""
    notice, before, began = _Notice(), CLOCK.kernels, CLOCK.compiled
    try:
        with CLOCK.watched(notice):
            yield
    finally:
        notice.end()
        kernels, seconds = CLOCK.kernels - before, CLOCK.compiled - began
        if seconds >= 1:
            say(f"compiled {counted(kernels, 'kernel')} in {seconds:.1f} s")
        if kernels and not CLOCK.kept:
            say(NOT_KEPT)


#: Seconds between two plain lines.
PAUSE = 10.0


@contextmanager
def shown(start: str = "starting") -> Iterator[Tell | None]:
    """Show what is told until the block ends; yield None where nobody wants to know."""
    if is_quiet():
        yield None
        return
    with _moving(start) if sys.stderr.isatty() else _now_and_then() as tell:
        yield tell


@contextmanager
def _moving(start: str) -> Iterator[Tell]:
    """Draw a line that moves, on a terminal: a bar, and words as far as there is room."""
    from rich.progress import BarColumn, Progress, ProgressColumn, SpinnerColumn, Task
    from rich.table import Column
    from rich.text import Text

    began, latest, compiled = CLOCK.seconds, Told(math.nan, start), ""

    class Words(ProgressColumn):
        def render(self, task: Task) -> Text:
            text = compiled or in_a_line(latest, CLOCK.seconds - began)
            return Text(text, no_wrap=True, overflow="ellipsis")

    columns = (SpinnerColumn(), BarColumn(bar_width=20), Words(Column(no_wrap=True)))
    drawn = Progress(*columns, console=console(), transient=True, refresh_per_second=8)
    task = drawn.add_task("", total=None)

    def tell(told: Told) -> None:
        nonlocal latest
        latest = told
        share = None if math.isnan(told.share) else told.share
        drawn.update(task, total=None if share is None else 1.0, completed=share or 0.0)

    def compiling(state: Compiling) -> None:
        nonlocal compiled
        compiled = str(state) if state.kernel else ""

    with drawn, CLOCK.watched(compiling):
        yield tell


def in_a_line(told: Told, seconds: float) -> str:
    """Return what the line that moves says: done, time left, and facts, the first ones first.

    Examples
    --------
    >>> in_a_line(Told(0.25, "5 of 20 runs", ["a", "b"]), 30.0)
    '5 of 20 runs  90 s left  a  b'
    """
    parts = (told.done or f"{seconds:.0f} s", left_in_words(told, seconds), *told.facts)
    return "  ".join(part for part in parts if part)


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
