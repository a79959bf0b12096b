"""What a page says, said once: sentences, figures, lists, tables, and what is folded away.

`html` and `markdown` write a list of blocks; `placeopt.cli.screen.on_screen` writes it for a
terminal. Cells of tables are those of `placeopt.plot.markup`.
"""

from __future__ import annotations

import html as escapes
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from placeopt.core.fronts.words import number
from placeopt.plot import markup
from placeopt.plot.markup import Bar, Cell, Mark, Strong, is_number


@dataclass(frozen=True)
class Sentence:
    """A sentence; a `strong` one must not be overlooked."""

    text: str
    strong: bool = False


@dataclass(frozen=True)
class Figures:
    """Large figures: (name, figure, what it means)."""

    entries: Sequence[tuple[str, str, str]]


@dataclass(frozen=True)
class Bullets:
    """A list of sentences below its title."""

    title: str
    texts: Sequence[str]


@dataclass(frozen=True)
class Table:
    """A table with at most `most` of its rows; the rest is counted as `more`."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    more: str = "rows"
    most: int = markup.MAX_ROWS


@dataclass(frozen=True)
class Folded:
    """Blocks that are folded away below a title."""

    title: str
    inside: Sequence[Block]


Block = Sentence | Figures | Bullets | Table | Folded


def html(blocks: Iterable[Block]) -> str:
    """Return blocks as HTML; everything is escaped."""
    return "".join(map(_html, blocks))


def _html(block: Block) -> str:
    if isinstance(block, Sentence):
        text = markup.clean(block.text)
        return f"<p><b>{text}</b></p>" if block.strong else f"<p>{text}</p>"
    if isinstance(block, Figures):
        return markup.tiles(block.entries)
    if isinstance(block, Bullets):
        return markup.paragraphs([f"{block.title}:"]) + markup.bullets(block.texts)
    if isinstance(block, Table):
        title, columns, rows = block.title, block.columns, block.rows
        return markup.table(title, columns, rows, most=block.most, more=block.more)
    return markup.details(block.title, html(block.inside))


def markdown(blocks: Iterable[Block], title: str = "") -> str:
    """Return blocks as Markdown for a pull request; everything is escaped."""
    lines = [f"## {escaped(title)}", ""] if title else []
    return "\n".join([*lines, *(line for block in blocks for line in _markdown(block))])


def _markdown(block: Block) -> Iterator[str]:
    if isinstance(block, Sentence):
        text = escaped(block.text)
        yield f"* **{text}**" if block.strong else f"* {text}"
    elif isinstance(block, Figures):
        for name, figure, hint in block.entries:
            yield f"* **{escaped(name)}: {escaped(figure)}**" + f" ({escaped(hint)})" * bool(hint)
    elif isinstance(block, Bullets):
        yield from ("", f"{escaped(block.title)}:", "", *(f"* {escaped(t)}" for t in block.texts))
    elif isinstance(block, Table):
        shown = block.rows[: block.most]
        yield from ("", f"### {escaped(block.title)}", "", _row(block.columns))
        numeric = (all(is_number(row[k]) for row in shown) for k in range(len(block.columns)))
        yield "|" + "|".join("--:" if right else "---" for right in numeric) + "|"
        yield from map(_row, shown)
        if len(block.rows) > block.most:
            yield from ("", f"{len(block.rows) - block.most:,} more {block.more} are not shown.")
    else:
        yield from ("", f"<details><summary>{escaped(block.title)}</summary>", "")
        yield from (line for inner in block.inside for line in _markdown(inner))
        yield from ("", "</details>")


def _row(cells: Sequence[Cell]) -> str:
    return f"| {' | '.join(escaped(in_words(cell)) for cell in cells)} |"


def in_words(cell: Cell) -> str:
    """Return a cell of a table as text."""
    if isinstance(cell, (Mark, Strong)):
        return cell.text
    if isinstance(cell, Bar):
        return f"{cell.share:.0%}"
    return "–" if cell is None else number(cell) if isinstance(cell, (int, float)) else cell


def escaped(text: str) -> str:
    """Return text that Markdown shows as it is, on one line."""
    shown = "".join(
        c if c.isprintable() else c.encode("ascii", "backslashreplace").decode() for c in text
    )
    return "".join(f"\\{c}" if c in "\\`*_[]|#~" else c for c in escapes.escape(shown, quote=False))
