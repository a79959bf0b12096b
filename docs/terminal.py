"""Write docs/terminal.md: what commands show on a terminal of 80 and of 120 columns.

python docs/terminal.py
"""

from __future__ import annotations

import io
import os
import re
import sys
import tempfile
from contextlib import chdir, redirect_stderr, redirect_stdout, suppress
from pathlib import Path

PAGE = Path(__file__).with_suffix(".md")
WIDTHS = (80, 120)
SHOWN = (
    "placeopt solve toy --evaluations 2000 --seed 1",
    "placeopt consolidate shop --prices shop",
    "placeopt consolidate shop --prices shop --remove node-2",
    "placeopt generate trace --size days=2 --seed 1 -o trace.json",
    "placeopt backtest trace.json --policy none --policy karpenter --policy placeopt:interval=6h",
)
_COLOURS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
#: What a machine's speed decides: it is left out.
_SECONDS = re.compile(r"\b\d+(\.\d+)? s\b")


class Screen(io.StringIO):
    """What a terminal would show."""

    def isatty(self) -> bool:
        return True


def shown(command: str, columns: int) -> str:
    """Return what a command shows on a terminal of some columns, without seconds."""
    from placeopt.cli import main

    screen = Screen()
    os.environ |= {"COLUMNS": str(columns), "NO_COLOR": "1"}
    with redirect_stdout(screen), redirect_stderr(io.StringIO()), suppress(SystemExit):
        main(command.split()[1:])
    text = _SECONDS.sub("... s", _COLOURS.sub("", screen.getvalue()))
    return "\n".join(line.rstrip() for line in text.strip().splitlines())


def page() -> str:
    """Return the page."""
    parts = [
        "# On a terminal\n\n`python docs/terminal.py` wrote this page. Piped, the same is JSON."
    ]
    for width in WIDTHS:
        with tempfile.TemporaryDirectory() as folder, chdir(folder):
            for command in SHOWN:
                text = shown(command, width)
                if text:
                    parts.append(f"## `{command}`, {width} columns\n\n```text\n{text}\n```")
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    sys.path.insert(0, str(PAGE.parents[1]))
    PAGE.write_text(page(), encoding="utf-8")
