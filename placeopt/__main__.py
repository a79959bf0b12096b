"""``placeopt`` and ``python -m placeopt``: the command line, which Ctrl-C ends in one line."""

from __future__ import annotations

import os
import signal


def _interrupted(_number: int, _frame: object) -> None:
    """End at once: an exception would be shown, or swallowed, by whatever is being imported."""
    shown = b"\x1b[?25h" if os.isatty(2) else b""  # a line that moves hides the cursor
    os.write(2, shown + b"interrupted\n")
    os._exit(130)


def main() -> None:
    """Run the command line; commands that keep what was found by then handle Ctrl-C themselves."""
    signal.signal(signal.SIGINT, _interrupted)
    from placeopt.cli import main as run

    run()


if __name__ == "__main__":
    main()
