"""What the command line says while kernels are compiled, and ``placeopt warm-up``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from placeopt.cli.screen import console, emit_table, say
from placeopt.core.compiling import Compiling, watched

if TYPE_CHECKING:
    from rich.console import Console
    from rich.status import Status

#: Said once, where what was compiled is lost.
NOT_KEPT = (
    "compiled kernels cannot be kept, so every run compiles them: set NUMBA_CACHE_DIR to a folder "
    "that can be written"
)


def register(app: typer.Typer) -> None:
    """Add the command to `app`."""
    app.command("warm-up", epilog="Example: placeopt warm-up temporal")(warm_up)


def in_words(state: Compiling) -> str:
    """Return what is being compiled: for a line that moves."""
    return (
        f"compiling {state.package}: {state.kernel.lstrip('_')} "
        f"| {state.kernels} kernels | {state.seconds:.0f} s"
    )


class _Notice:
    """Says what is compiled: a line that moves on a terminal, else a line for each package."""

    def __init__(self) -> None:
        self._console: Console | None = None
        self._said: set[str] = set()
        self._line: Status | None = None
        self._last: Compiling | None = None

    def __call__(self, state: Compiling) -> None:
        self._last = state
        self._console = self._console or console()
        if not self._console.is_terminal:
            if state.kernel and state.package not in self._said | {"core"}:
                self._said.add(state.package)
                say(f"compiling {state.package}: this first run takes longer than the next ones")
        elif state.kernel:
            if self._line is None:
                self._line = self._console.status(in_words(state))
                self._line.start()
            self._line.update(in_words(state))
        elif self._line is not None:
            self._line.stop()
            self._line = None

    def end(self) -> None:
        """Say what compiling took, and whether it was for this run alone."""
        if self._line is not None:
            self._line.stop()
        if self._last is not None and self._last.seconds >= 1:
            say(f"compiled {self._last.kernels} kernels in {self._last.seconds:.0f} s")
        if self._last is not None and not self._last.kept:
            say(NOT_KEPT)


@contextmanager
def announced() -> Iterator[None]:
    """Say what is being compiled until the command ends."""
    notice = _Notice()
    try:
        with watched(notice):
            yield
    finally:
        notice.end()


def warm_up(
    problems: Annotated[
        list[str] | None, typer.Argument(metavar="[PROBLEM]...", help="Problems; all by default.")
    ] = None,
    jobs: Annotated[int, typer.Option(help="Processes that compile side by side.")] = 1,
) -> None:
    """Compile now what first runs would compile, and keep it: about half a minute a problem.

    Every method of the problems answers a small instance.
    """
    from placeopt.warm_up import Warmed
    from placeopt.warm_up import warm_up as run

    def tell(_k: int, warmed: Warmed) -> None:
        say(f"{warmed.kind}: {len(warmed.methods)} methods in {warmed.seconds:.0f} s")

    found = run(problems or (), jobs, tell)
    rows = [(one.kind, ", ".join(one.methods)) for one in found]
    emit_table(("problem", "methods that are ready"), rows, left=2, text=(1,))
