"""What the commands share: JSON to stdout or a file, messages and tables to stderr, ``key=value`` arguments."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from placeopt.core.errors import DocumentError, UsageError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table


def say(message: str) -> None:
    """Print a message for people, on stderr."""
    print(message, file=sys.stderr)


def emit(text: str) -> None:
    """Print a result on stdout, as UTF-8 whatever the terminal's own encoding."""
    stream = getattr(sys.stdout, "buffer", None)
    if stream is None:
        print(text)
        return
    sys.stdout.flush()
    stream.write(text.encode("utf-8", "backslashreplace") + b"\n")
    stream.flush()


def deliver(text: str, output: Path | None) -> None:
    """Write a result to a file, atomically, or to stdout."""
    if output is None:
        emit(text)
        return
    from placeopt.core.documents import write_text

    write_text(output, text + "\n")
    say(f"wrote {output}")


def require_folder(path: Path | None) -> None:
    """Raise unless `path` can be written: asked before the work begins.

    Raises
    ------
    DocumentError
        The folder does not exist or cannot be written, or `path` is a folder.
    """
    if path is None:
        return
    if path.is_dir():
        raise DocumentError("is a folder", file=str(path), remedy="give the path of a file")
    if not (path.parent.is_dir() and os.access(path.parent, os.W_OK)):
        raise DocumentError(
            "cannot write: no such folder, or not writable",
            file=str(path),
            remedy=f"create it first: mkdir -p '{path.parent}'",
        )


def console(*, stderr: bool = True) -> Console:
    """Return a console; wide enough for the tables where the output is not a terminal."""
    from rich.console import Console

    screen = Console(stderr=stderr, highlight=False, markup=False)
    return (
        screen
        if screen.is_terminal
        else Console(stderr=stderr, highlight=False, markup=False, width=140)
    )


def make_table(
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    title: str | None = None,
    left: int = 1,
) -> Table:
    """Return a table of plain text; the first `left` columns are aligned to the left."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(
        title=None if title is None else Text(title),
        title_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
    )
    for k, column in enumerate(columns):
        table.add_column(Text(column), justify="left" if k < left else "right", overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    return table


def show(value: float | None, digits: int = 6) -> str:
    """Return a number for people, a dash for None."""
    return "-" if value is None else f"{value:.{digits}g}"


def pairs(arguments: Iterable[str], option: str) -> dict[str, Any]:
    """Read ``key=value`` arguments; a value that is a JSON number or true/false becomes one, else it stays text."""
    found: dict[str, Any] = {}
    for argument in arguments:
        key, equals, text = argument.partition("=")
        if not key or not equals:
            raise UsageError(f"{option} {argument!r}: write it as key=value")
        if key in found:
            raise UsageError(f"{option} {key!r} is given twice; keep one of the two")
        found[key] = _scalar(text)
    return found


def _scalar(text: str) -> Any:
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return value if isinstance(value, (int, float, bool)) and value == value else text


def names(text: str | None) -> list[str] | None:
    """Split ``a,b,c``."""
    return None if text is None else [part.strip() for part in text.split(",")]
