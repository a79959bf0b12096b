"""What the commands share: results on stdout or in a file, messages on stderr, ``key=value``.

Tables of plain text fit a screen: words stay whole, and so do numbers and names. Where a table is
too wide, headers wrap between their words, then the cells of columns that hold sentences. What is
too wide even so becomes a list of records.
"""

from __future__ import annotations

import errno
import json
import math
import os
import shlex
import sys
import textwrap
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from placeopt.cli.completion import instance_names
from placeopt.core.errors import DocumentError, OutputError, UsageError
from placeopt.plot.blocks import Block, Bullets, Figures, Sentence, Table, in_words
from placeopt.plot.markup import is_number

#: Between two columns.
_GAP = "  "
#: Narrowest column of sentences.
_TEXT = 20
#: Rows of a table that a terminal shows of blocks.
_ROWS = 20


def table(
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    left: int = 1,
    text: Collection[int] = (),
    width: int | None = None,
) -> str:
    """Return a table as text.

    Parameters
    ----------
    columns : sequence of str
        Headers.
    rows : iterable of sequences of str
        Cells; what a terminal would take for a command is escaped. A column that is empty in all
        rows is left out.
    left : int
        So many columns stand at the left of their place, the others at the right.
    text : collection of int
        Numbers of the columns whose cells may wrap between words.
    width : int, optional
        Of the screen; without it nothing wraps.

    Examples
    --------
    >>> print(table(("plan", "cost USD"), [("0", "1.20"), ("17", "10.5")], width=10))
    plan  cost
           USD
    ----  ----
    0     1.20
    17    10.5
    """
    head, body = [*map(plain, columns)], [[*map(plain, row)] for row in rows]
    used = [k for k in range(len(head)) if k == 0 or any(row[k] for row in body)]
    head, body = [head[k] for k in used], [[row[k] for k in used] for row in body]
    text, left = {used.index(k) for k in text if k in used}, sum(k < left for k in used)
    widths = _widths(head, body, text, width)
    if widths is None:
        assert width is not None
        return _records(head, body, width)
    lines = [*_line(head, widths, left), _GAP.join("-" * w for w in widths)]
    for row in body:
        lines += _line(row, widths, left)
    return "\n".join(line.rstrip() for line in lines)


def on_screen(blocks: Iterable[Block], width: int | None) -> str:
    """Return blocks for a terminal of so many columns; of what is folded away the title."""
    lines: list[str] = []
    for block in blocks:
        if isinstance(block, Sentence):
            lines += wrapped(plain(block.text), width or 10**6)
        elif isinstance(block, Figures):
            lines += [f"{plain(name)}: {plain(figure)}" for name, figure, _ in block.entries]
        elif isinstance(block, Bullets):
            lines += ["", f"{plain(block.title)}:"]
            lines += [line for text in block.texts for line in wrapped(plain(text), width or 10**6)]
        elif isinstance(block, Table):
            most = min(block.most, _ROWS)
            rows = [[in_words(cell) for cell in row] for row in block.rows[:most]]
            told = [
                k for k in range(len(block.columns)) if not all(is_number(row[k]) for row in rows)
            ]
            lines += ["", f"{plain(block.title)}:", ""]
            left = next((k for k in range(len(block.columns)) if k not in told), len(told))
            lines.append(table(block.columns, rows, left=left, text=told, width=width))
            if len(block.rows) > most:
                more = ": --format markdown has more" if block.most > most else ""
                lines.append(f"and {len(block.rows) - most:,} more {block.more}{more}")
        else:
            lines += ["", f"{plain(block.title)}: --format markdown has it"]
    return "\n".join(lines)


def plain(text: str) -> str:
    """Return text without what a terminal takes for a command: names come from files."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def room(text: str) -> int:
    """Return the columns of a terminal that text takes; some letters take two."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def wrapped(text: str, width: int) -> list[str]:
    """Return text as lines, broken between words; a word that is too long stays whole."""
    if room(text) <= width:
        return [text]
    return textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False) or [""]


def _widths(
    head: Sequence[str], body: Sequence[Sequence[str]], text: Collection[int], width: int | None
) -> list[int] | None:
    """Return the width of each column; None where the table does not fit."""
    cells = [[row[k] for row in body] for k in range(len(head))]
    natural = [max(map(room, (title, *own))) for title, own in zip(head, cells, strict=True)]
    if width is None or _total(natural) <= width:
        return natural
    least = [
        max(
            _longest_word(title),
            *(_longest_word(cell) if k in text else room(cell) for cell in cells[k]),
            min(natural[k], _TEXT) if k in text else 1,
        )
        for k, title in enumerate(head)
    ]
    if _total(least) > width:
        return None
    widths = list(natural)
    heights = [_height(head[k], cells[k], widths[k]) for k in range(len(head))]
    while _total(widths) > width:
        grown = {
            k: _height(head[k], cells[k], widths[k] - 1)
            for k in range(len(head))
            if widths[k] > least[k]
        }
        k = min(grown, key=lambda k: (grown[k] - heights[k], -widths[k]))
        widths[k], heights[k] = widths[k] - 1, grown[k]
    return widths


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + len(_GAP) * (len(widths) - 1)


def _longest_word(text: str) -> int:
    return max(map(room, text.split()), default=0)


def _height(title: str, cells: Sequence[str], width: int) -> int:
    """Return the lines that a column takes; a line of the header counts as one cell's."""
    return len(wrapped(title, width)) + sum(len(wrapped(cell, width)) for cell in cells)


def _line(cells: Sequence[str], widths: Sequence[int], left: int) -> list[str]:
    """Return the lines of one row."""
    parts = [wrapped(cell, width) for cell, width in zip(cells, widths, strict=True)]
    lines = []
    for n in range(max(map(len, parts))):
        here = [part[n] if n < len(part) else "" for part in parts]
        padded = [
            text + " " * (width - room(text)) if k < left else " " * (width - room(text)) + text
            for k, (text, width) in enumerate(zip(here, widths, strict=True))
        ]
        lines.append(_GAP.join(padded))
    return lines


def _records(head: Sequence[str], body: Sequence[Sequence[str]], width: int) -> str:
    """Return rows below each other: the first cell, then a line for each other column."""
    names = max(map(room, head[1:]), default=0)
    lines = []
    for first, *cells in body:
        lines.append(first)
        for name, cell in zip(head[1:], cells, strict=True):
            if not cell:
                continue
            start = f"{_GAP}{name}{' ' * (names - room(name))}{_GAP}"
            parts = wrapped(cell, max(12, width - room(start)))
            lines.append(start + parts[0])
            lines += [" " * room(start) + part for part in parts[1:]]
    return "\n".join(lines)


#: The option of commands that write one file.
Output = Annotated[
    Path | None, typer.Option("-o", "--output", help="File to write (default: stdout).")
]
#: The option of commands that print a table or JSON.
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, also on a terminal.")]
#: Arguments of several commands.
InstanceFile = Annotated[
    Path,
    typer.Argument(
        metavar="INSTANCE",
        help="Instance: a JSON file, or the name of one that `placeopt instances` lists.",
        autocompletion=instance_names,
    ),
]
Plans = Annotated[
    Path,
    typer.Argument(
        metavar="FRONT_OR_PLAN",
        help="A front, a plan as `pick -o` writes it, a bare plan, or exported steps.",
    ),
]

if TYPE_CHECKING:
    from rich.console import Console

    from placeopt.core.fronts.front import Front


#: Whether `--quiet` was given.
_quiet = False
#: The words of the command that runs.
_words: list[str] = []


def begin(words: Sequence[str]) -> None:
    """Begin a command line: messages are printed, and its words are known."""
    global _words
    _words = list(words)
    be_quiet(False)


def same_command(more: str) -> str:
    """Return the command that runs, with more behind it."""
    return f"placeopt {shlex.join(_words)} {more}"


def be_quiet(wanted: bool) -> None:
    """Print no messages from now on, if wanted."""
    global _quiet
    _quiet = wanted


def is_quiet() -> bool:
    """Return whether no messages are wanted."""
    return _quiet


#: The option of commands that say much.
Quiet = Annotated[
    bool,
    typer.Option(
        "--quiet",
        "-q",
        callback=be_quiet,
        expose_value=False,
        help="Print only results, warnings and errors.",
    ),
]


def say(message: str) -> None:
    """Print a message for people, on stderr, unless `--quiet` was given."""
    if not _quiet:
        print(_fitting(message, sys.stderr), file=sys.stderr)


def for_people(as_json: bool = False, output: Path | None = None) -> bool:
    """Return whether a result is read by a person: printed on a terminal, and not as JSON."""
    return output is None and not as_json and sys.stdout.isatty()


def _fitting(text: str, stream: TextIO) -> str:
    """Return text whose lines break between words where they are too wide for a terminal."""
    width = width_of(stream)
    if width is None:
        return text
    return "\n".join(part for line in text.split("\n") for part in wrapped(line, width))


def warn(warnings: Iterable[str]) -> None:
    """Print warnings on stderr."""
    for warning in warnings:
        print(_fitting(f"warning: {warning}", sys.stderr), file=sys.stderr)


def emit(text: str) -> None:
    """Print a result on stdout, as UTF-8 whatever the terminal's own encoding.

    Raises
    ------
    OutputError
        Stdout cannot be written, such as a file on a full disk.
    """
    if not hasattr(sys.stdout, "buffer"):  # a notebook's, say
        print(text)
        return
    try:
        sys.stdout.flush()
        sys.stdout.buffer.write(text.encode("utf-8", "backslashreplace") + b"\n")
        sys.stdout.buffer.flush()
    except OSError as error:
        raise _unwritten(error) from None


def _unwritten(error: OSError) -> OutputError:
    """Return what to raise where stdout cannot be written; from now on it takes everything."""
    _give_up(sys.stdout)
    why = "it is closed" if error.errno == errno.EBADF else error.strerror
    return OutputError(f"<stdout>: cannot write: {why}")


@contextmanager
def checked_output() -> Iterator[None]:
    """Run a command; where stdout takes none of what it prints, say so instead of a traceback.

    Tables and help are printed by libraries, which buffer: a full disk is found out at the end.

    Raises
    ------
    OutputError
        Stdout cannot be written.
    """
    end: BaseException | None = None
    try:
        yield
    except (OSError, SystemExit) as error:
        end = error
    try:
        if type(end) is OSError and end.filename is None:  # no file was opened, no peer has left
            raise end
        sys.stdout.flush()
    except OSError as error:
        raise _unwritten(error) from None
    if end is not None:
        raise end


def _give_up(stream: TextIO) -> None:
    """Let what a stream has buffered go nowhere: it would be tried again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def emit_sentence(text: str) -> None:
    """Print a sentence of a result on stdout, which fits the terminal."""
    emit(_fitting(text, sys.stdout))


def emit_json(document: Any) -> None:
    """Print a JSON document on stdout."""
    emit(json.dumps(document, indent=1, ensure_ascii=False))


def deliver(text: str, output: Path | None) -> None:
    """Write a result to a file, atomically, or to stdout; if neither works, as `keep` does."""
    if output is None:
        try:
            emit(text)
        except OutputError as error:
            raise _kept_elsewhere(str(error), Path("stdout"), partial(_write_line, text)) from None
    else:
        keep(output, partial(_write_line, text))


def deliver_front(front: Front, output: Path | None) -> None:
    """Write a front as `deliver` does; to a file in parts, since it may be gigabytes."""
    if output is None:
        deliver(front.to_json(), None)
    else:
        keep(output, front.write)


def _write_line(text: str, path: Path) -> None:
    from placeopt.core.files.documents import write_text

    write_text(path, text + "\n")


def keep(output: Path, write: Callable[[Path], None]) -> None:
    """Call ``write(output)`` for a result that cost a run; where that fails, write it elsewhere.

    Raises
    ------
    OutputError
        Names the new file in the temporary folder.
    """
    try:
        write(output)
    except DocumentError as error:
        raise _kept_elsewhere(f"{output}: {error.problem}", output, write) from None
    say(f"wrote {output}")


def _kept_elsewhere(problem: str, output: Path, write: Callable[[Path], None]) -> OutputError:
    """Write a result into a new folder among the temporary ones; return what to raise."""
    import tempfile

    try:
        other = Path(tempfile.mkdtemp(prefix="placeopt-")) / output.name
        write(other)
    except (OSError, DocumentError) as error:
        return OutputError(f"{problem}; nor can it be kept elsewhere: {error}")
    return OutputError(f"{problem}; the result is kept in {other}")


def console(*, stderr: bool = True) -> Console:
    """Return a console; wide enough for the tables where the output is not a terminal."""
    from rich.console import Console

    screen = Console(stderr=stderr, highlight=False, markup=False)
    if not screen.is_terminal:
        screen.width = 140
    return screen


def width_of(stream: TextIO) -> int | None:
    """Return the columns of the terminal that a stream writes to; None where it is none."""
    if not stream.isatty():
        return None
    told = os.environ.get("COLUMNS", "")
    if told.isdecimal() and int(told) > 0:
        return int(told)
    try:
        return os.get_terminal_size(stream.fileno()).columns or 80
    except (OSError, ValueError):
        return 80


def emit_table(
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    left: int = 1,
    text: Collection[int] = (),
) -> None:
    """Print a table on stdout that fits the terminal; see `placeopt.cli.screen.table`."""
    emit(table(columns, rows, left=left, text=text, width=width_of(sys.stdout)))


def show(value: float | None, digits: int = 6) -> str:
    """Return a number for people, a dash for None."""
    return "-" if value is None else f"{value:.{digits}g}"


def pairs(arguments: Iterable[str] | None, option: str) -> dict[str, Any]:
    """Read ``key=value`` arguments.

    A value that is a JSON number or true/false becomes one, any other stays text.
    """
    results: dict[str, Any] = {}
    for argument in arguments or ():
        key, equals, text = argument.partition("=")
        if not key or not equals:
            raise UsageError(f"{option} {argument!r}: write it as key=value")
        if key in results:
            raise UsageError(f"{option} {key!r} is given twice; keep one of the two")
        results[key] = _scalar(text)
    return results


def numbers_of(arguments: Iterable[str] | None, option: str) -> dict[str, float]:
    """Read ``name=number`` arguments."""
    result = pairs(arguments, option)
    for name, value in result.items():
        if isinstance(value, (str, bool)):
            raise UsageError(f"{option} {name} is {value!r}; give a number")
    return result


def corner_of(text: str | None, width: int | None = None) -> list[float] | None:
    """Read ``--reference A,B``, of so many finite numbers where that is known."""
    if text is None:
        return None
    try:
        corner = [float(part) for part in text.split(",")]
    except ValueError:
        corner = []
    if not corner or (width and (len(corner) != width or not all(map(math.isfinite, corner)))):
        count = f"{width} numbers" if width else "numbers"
        raise UsageError(f"--reference is {text!r}; give {count}, separated by commas")
    return corner


def split_pair(text: str, mark: str, option: str, legal: str) -> tuple[str, str]:
    """Return what stands before and behind a mark, both not empty."""
    before, _, behind = text.partition(mark)
    if not before or not behind:
        raise UsageError(f"{option} {text!r}; legal: {legal}")
    return before, behind


def _scalar(text: str) -> Any:
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return value if isinstance(value, (int, float, bool)) and value == value else text


def drop_none(**options: Any) -> dict[str, Any]:
    """Return the options that are not None."""
    return {name: value for name, value in options.items() if value is not None}


def names(text: str | None) -> list[str] | None:
    """Split ``a,b,c``."""
    return None if text is None else [part.strip() for part in text.split(",")]
