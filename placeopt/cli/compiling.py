"""What the command line says while kernels are compiled, and ``placeopt warm-up``."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from placeopt.cli.commands import SOLVE, add
from placeopt.cli.completion import problem_names
from placeopt.cli.screen import Quiet, console, emit_table, is_quiet, say
from placeopt.core.errors import OutputError
from placeopt.core.runs.compiling import CLOCK, Compiling

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
    add(app, warm_up, "placeopt warm-up temporal", group=SOLVE, name="warm-up")


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
            say(f"compiled {kernels} kernels in {seconds:.1f} s")
        if kernels and not CLOCK.kept:
            say(NOT_KEPT)


def warm_up(
    problems: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[PROBLEM]...", help="Problems (default: all).", autocompletion=problem_names
        ),
    ] = None,
    jobs: Annotated[int, typer.Option(help="Number of processes.")] = 1,
    any_cpu: Annotated[
        bool,
        typer.Option(
            "--any-cpu",
            help="Compile into the installed package, for any CPU of this kind: for images that "
            "run on other machines.",
        ),
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Compile now what the first runs would compile.

    The code is cached. It takes about half a minute a problem.

    Every method of the problems answers a small instance.
    """
    if any_cpu:
        _compile_for_any_cpu()
    from placeopt.warm_up import Warmed
    from placeopt.warm_up import warm_up as run

    def tell(_k: int, warmed: Warmed) -> None:
        say(f"{warmed.kind}: {len(warmed.methods)} methods in {warmed.seconds:.0f} s")

    result = run(problems or (), jobs, tell)
    rows = [(one.kind, ", ".join(one.methods)) for one in result]
    emit_table(("problem", "methods that are ready"), rows, left=2, text=(1,))


def _compile_for_any_cpu() -> None:
    """Tell numba, which nobody has imported yet, and workers: they inherit the environment.

    Raises
    ------
    OutputError
        The package cannot be written to.
    """
    from placeopt import __file__ as package

    folder = Path(package).parent / "_compiled"
    try:
        folder.mkdir(exist_ok=True)
        (folder / "try").touch()
        (folder / "try").unlink()
    except OSError as error:
        raise OutputError(
            f"{folder}: cannot write: {error.strerror}; run it as whoever installed placeopt"
        ) from None
    os.environ |= {
        "NUMBA_CPU_NAME": "generic",
        "NUMBA_CPU_FEATURES": "",
        "PLACEOPT_FOR_ANY_CPU": "1",
    }
