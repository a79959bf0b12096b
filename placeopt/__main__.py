"""``placeopt`` and ``python -m placeopt``: the command line, which Ctrl-C ends in one line."""

from __future__ import annotations

import atexit
import gc
import os
import signal
import sys
import time

#: With these loaded there may be workers and connections, which the interpreter ends with care.
_WITH_CARE = ("joblib", "distributed", "multiprocessing.managers")


#: Objects that are made before garbage is looked for. Imports make hundreds of thousands and no
#: garbage: at Python's own 700 a tenth of a short run goes into looking for it.
_GARBAGE_AFTER = 50_000


def _interrupted(_number: int, _frame: object) -> None:
    """End at once: an exception would be shown, or swallowed, by whatever is being imported."""
    shown = b"\x1b[?25h" if os.isatty(2) else b""  # a line that moves hides the cursor
    os.write(2, shown + b"interrupted\n")
    os._exit(130)


def main() -> None:
    """Run the command line; commands that keep what was found by then handle Ctrl-C themselves."""
    began = time.perf_counter() - time.process_time()  # the interpreter's start counts too
    gc.set_threshold(_GARBAGE_AFTER)
    signal.signal(signal.SIGINT, _interrupted)
    from placeopt.cli import main as run

    try:
        run(began=began)
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
    os._exit(code)


if __name__ == "__main__":
    main()
