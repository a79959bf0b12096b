"""``placeopt`` and ``python -m placeopt``: the command line, which Ctrl-C ends in one line."""

from __future__ import annotations

import atexit
import contextlib
import gc
import io
import os
import re
import signal
import sys
import time
from typing import Any, TextIO

#: With these loaded there may be workers and connections, which the interpreter ends with care.
_WITH_CARE = ("joblib", "distributed", "multiprocessing.managers")


#: Objects that are made before garbage is looked for. Imports make hundreds of thousands and no
#: garbage: at Python's own 700 a tenth of a short run goes into looking for it.
_GARBAGE_AFTER = 50_000

#: Names of stdout as a file, in a word or behind an option.
_STDOUT = re.compile(r"^(-o|--?[\w-]+=|)(?:/dev/stdout|/dev/fd/1|/proc/self/fd/1)$")


class _Output(io.FileIO):
    """Standard output or error: a reader may leave it, and what it should say may not fit.

    Who left has what he wanted: the command goes on and ends with its own exit code. Results that
    cannot be written are errors; messages that cannot be written are none.
    """

    def write(self, data: Any, /) -> int:
        """Write bytes; drop them where nobody misses them."""
        try:
            return super().write(data) or 0
        except OSError as error:
            if self.fileno() != 2 and not isinstance(error, BrokenPipeError):
                raise
            return len(data)


def _open_streams(words: list[str]) -> list[str]:
    """Open standard streams that are closed, as daemons have them, and make the others patient.

    A file that is opened later would get the number of a closed one, and what libraries print would
    stand in it. A closed stdout refuses to be written, so that no result is lost in silence.

    Descriptor 1 is that of stderr from here on: solvers print a line now and then whatever they are
    told, and C holds it back until the process ends. Only `sys.stdout` reaches stdout. Returns the
    words of the command line, in which stdout may be the name of a file.
    """
    for number, stream in enumerate((sys.stdin, sys.stdout, sys.stderr)):
        if stream is None:
            handle = os.open(os.devnull, os.O_WRONLY if number == 2 else os.O_RDONLY)
            if handle != number:
                os.dup2(handle, number)
                os.close(handle)
    if sys.stdin is None:
        sys.stdin = io.TextIOWrapper(io.FileIO(0, closefd=False))  # type: ignore[type-var]
    answers = os.dup(1)
    os.dup2(2, 1)
    sys.stdout = _patient(answers, sys.stdout)
    sys.stderr = _patient(2, sys.stderr)
    return [_STDOUT.sub(rf"\g<1>/dev/fd/{answers}", word) for word in words]


def _patient(number: int, old: TextIO | None) -> TextIO:
    """Return a stream of texts like `old` over `_Output`."""
    raw = _Output(number, "w", closefd=False)
    return io.TextIOWrapper(
        raw if number == 2 else io.BufferedWriter(raw),  # type: ignore[arg-type]
        encoding="utf-8" if old is None else old.encoding,
        errors="backslashreplace" if old is None else old.errors,
        line_buffering=number != 2 and raw.isatty(),
        write_through=number == 2,
    )


def _interrupted(_number: int, _frame: object) -> None:
    """End at once: an exception would be shown, or swallowed, by whatever is being imported."""
    shown = b"\x1b[?25h" if os.isatty(2) else b""  # a line that moves hides the cursor
    with contextlib.suppress(OSError):
        os.write(2, shown + b"interrupted\n")
    os._exit(130)


def main() -> None:
    """Run the command line; commands that keep what was found by then handle Ctrl-C themselves."""
    began = time.perf_counter() - time.process_time()  # the interpreter's start counts too
    words = _open_streams(sys.argv[1:])
    gc.set_threshold(_GARBAGE_AFTER)
    signal.signal(signal.SIGINT, _interrupted)
    from placeopt.cli import main as run

    try:
        run(words, began=began)
    except SystemExit as end:
        if not isinstance(end.code, str) and not any(name in sys.modules for name in _WITH_CARE):
            _leave(end.code or 0)
        raise


def _leave(code: int) -> None:
    """End the process without taking it apart: that takes a quarter of a second after a run.

    Where the output cannot be written to its end, return: the interpreter says so.
    """
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError):
        return
    atexit._run_exitfuncs()
    with contextlib.suppress(OSError, ValueError):  # what these have said
        sys.stdout.flush()
    os._exit(code)


if __name__ == "__main__":
    main()
