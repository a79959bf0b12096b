"""Tables of plain text that fit a screen: words stay whole, and so do numbers and names.

Where a table is too wide, headers wrap between their words, then the cells of columns that hold
sentences. What is too wide even so becomes a list of records.
"""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Iterable, Sequence

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
