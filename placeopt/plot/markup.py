"""The shell of every page, and its pieces: what comes from a file is escaped here, nowhere else.

Pages have one style, a policy that forbids the network, and scripts by their hash.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files

from placeopt.core.fronts.words import number
from placeopt.version import __version__

#: Rows of a table that a page shows at most; what is left out is counted below the table.
MAX_ROWS = 60


@dataclass(frozen=True)
class Bar:
    """A share of a whole, drawn as a bar with its number; above 1 in the colour of a warning."""

    share: float


@dataclass(frozen=True)
class Mark:
    """A word in a coloured badge; `tone` is ``good``, ``warn``, ``bad`` or ``plain``."""

    text: str
    tone: str = "plain"


@dataclass(frozen=True)
class Strong:
    """A text in bold."""

    text: str


Cell = str | float | int | Bar | Mark | Strong | None
#: Text that stands to the right, as numbers do.
_NUMBER = re.compile(r"[+-]?[\d.,]+(e[+-]?\d+)?")


def clean(text: object) -> str:
    """Return text escaped for HTML.

    Control characters, and those that turn the direction of text, are shown as U+FFFD.
    """
    shown = "".join("\ufffd" if _unprintable(c) else c for c in str(text))
    return escape(shown)


def _unprintable(character: str) -> bool:
    code = ord(character)
    return (
        code < 32
        or 127 <= code < 160
        or 0x202A <= code <= 0x202E
        or 0x2066 <= code <= 0x2069
        or 0xD800 <= code <= 0xDFFF
    )


def paragraphs(sentences: Iterable[str], kind: str = "") -> str:
    """Return each text as a paragraph, escaped."""
    opening = f'<p class="{kind}">' if kind else "<p>"
    return "\n".join(f"{opening}{clean(sentence)}</p>" for sentence in sentences)


def bullets(sentences: Iterable[str]) -> str:
    """Return a list, escaped; empty for no sentences."""
    items = "".join(f"<li>{clean(sentence)}</li>" for sentence in sentences)
    return f"<ul>{items}</ul>" if items else ""


def table(
    caption: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[Cell]],
    *,
    most: int = MAX_ROWS,
    more: str = "rows",
) -> str:
    """Return a table of at most `most` rows.

    The first column names the row; numbers are aligned to the right.
    """
    shown = rows[:most]
    numeric = [bool(shown) and all(is_number(row[c]) for row in shown) for c in range(len(columns))]
    head = "".join(
        f'<th scope="col"{_number_class(yes)}>{clean(name)}</th>' if name else "<td></td>"
        for name, yes in zip(columns, numeric, strict=True)
    )
    body = "".join(f"<tr>{_row(row, numeric)}</tr>" for row in shown)
    left = f"{len(rows) - most:,} more {more} are not shown."
    parts = f"<caption>{clean(caption)}</caption><thead><tr>{head}</tr></thead>"
    whole = f"<table>{parts}<tbody>{body}</tbody></table>"
    region = f'<div class="scroll" tabindex="0" role="group" aria-label="{clean(caption)}">'
    return f"{region}{whole}</div>" + paragraphs([left] if len(rows) > most else [], "note")


def before_after(
    caption: str,
    columns: Sequence[str],
    heads: Sequence[Sequence[Cell]],
    before: Sequence[Sequence[float]],
    after: Sequence[Sequence[float]],
    marks: Sequence[Cell],
    *,
    resources: Sequence[str] = ("CPU", "memory"),
    more: str = "nodes",
) -> str:
    """Return a table of what is in use before and after a plan.

    Parameters
    ----------
    columns, heads
        What stands before the bars: its columns, and the cells of each row.
    before, after
        Shares in use, by row and by resource.
    marks
        What stands behind the bars of each row.
    """
    shares = [f"{name} {when}" for name in resources for when in ("before", "after")]
    rows: list[list[Cell]] = [
        [*head, *(Bar(float(row[r])) for r in range(len(resources)) for row in pair), mark]
        for head, mark, *pair in zip(heads, marks, before, after, strict=True)
    ]
    return table(caption, (*columns, *shares, ""), rows, more=more)


def is_number(cell: Cell) -> bool:
    """Return whether a cell is a number, or a text that looks like one."""
    text = cell.text if isinstance(cell, Strong) else cell
    return isinstance(text, (int, float)) or (
        isinstance(text, str) and _NUMBER.fullmatch(text) is not None
    )


def _row(row: Sequence[Cell], numeric: Sequence[bool]) -> str:
    first, *rest = row
    cells = (
        f"<td{_number_class(yes)}>{_cell(cell)}</td>"
        for cell, yes in zip(rest, numeric[1:], strict=True)
    )
    return f'<th scope="row"{_number_class(numeric[0])}>{_cell(first)}</th>' + "".join(cells)


def _number_class(yes: bool) -> str:
    return ' class="n"' if yes else ""


def _cell(cell: Cell) -> str:
    if cell is None:
        return '<span class="none">–</span>'
    if isinstance(cell, Bar):
        kind = "bar over" if cell.share > 1 else "bar"
        width, shown = f"{min(cell.share, 1):.1%}", f"{cell.share:.0%}"
        return f'<span class="{kind}"><i style="width:{width}"></i><b>{shown}</b></span>'
    if isinstance(cell, Strong):
        return f"<b>{clean(cell.text)}</b>"
    if isinstance(cell, Mark):
        return f'<span class="mark {cell.tone}">{clean(cell.text)}</span>'
    return clean(number(cell) if isinstance(cell, (int, float)) else cell)


def facts(pairs: Iterable[tuple[str, str]]) -> str:
    """Return a list of named facts."""
    items = "".join(
        f"<div{_wide(text)}><dt>{clean(name)}</dt><dd>{clean(text)}</dd></div>"
        for name, text in pairs
    )
    return f'<dl class="facts">{items}</dl>'


def some(text: str, most: int = 12) -> str:
    """Return a list in words that fits a page: about `most` of its items."""
    items = text.split(", ")
    if len(items) <= most + 3:
        return text
    return f"{len(items):,}: {', '.join(items[:most])} and {len(items) - most:,} more"


def section(name: str, head: str, inside: str) -> str:
    """Return a section of a page, which its heading names."""
    opening = f'<section id="{name}" aria-labelledby="{name}-h">'
    return f'{opening}<h2 id="{name}-h">{clean(head)}</h2>{inside}</section>'


def _wide(text: str) -> str:
    return ' class="whole-row"' if len(text) > 90 else ""


def tiles(entries: Iterable[tuple[str, str, str]]) -> str:
    """Return large figures side by side: (label, figure, what it means)."""
    items = "".join(
        f'<div class="tile"><dt>{clean(a)}</dt><dd>{clean(b)}</dd>'
        f'<dd class="hint">{clean(c)}</dd></div>'
        for a, b, c in entries
    )
    return f'<dl class="tiles">{items}</dl>'


def details(summary: str, inside: str) -> str:
    """Return something folded away."""
    return f"<details><summary>{clean(summary)}</summary>{inside}</details>"


#: What a browser may load and run: this page's own scripts, and nothing from anywhere.
_POLICY = (
    "default-src 'none'; script-src {scripts}; style-src 'unsafe-inline'; img-src data: blob:; "
    "connect-src 'none'; base-uri 'none'; form-action 'none'"
)


def asset(name: str, package: str = "placeopt.plot") -> str:
    """Return a file of a package as text."""
    return files(package).joinpath(name).read_text(encoding="utf-8")


def shell(
    *,
    title: str,
    heading: str,
    eyebrow: str,
    body: str,
    lead: str = "",
    links: Sequence[tuple[str, str]] = (),
    footer: str = "",
    script: str = "",
    reload: int | None = None,
) -> str:
    """Return a page.

    Parameters
    ----------
    title, heading, eyebrow, lead : str
        Plain text.
    body, footer : str
        HTML; names in it are escaped.
    links : sequence of (str, str)
        The sections of the body that the navigation leads to: id and text.
    script : str
        JavaScript, run after the body.
    reload : int, optional
        Seconds after which a browser reads the page again.
    """
    digest = base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")
    return asset("page.html").format(
        version=__version__,
        policy=_POLICY.format(scripts=f"'sha256-{digest}'" if script else "'none'"),
        reload="" if reload is None else f'<meta http-equiv="refresh" content="{reload}">\n',
        title=clean(title),
        style=asset("page.css"),
        eyebrow=clean(eyebrow),
        heading=clean(heading),
        lead=clean(lead),
        navigation=_navigation(links),
        body=body,
        footer=footer,
        script=f"<script>{script}</script>" if script else "",
    )


def _navigation(links: Sequence[tuple[str, str]]) -> str:
    inside = "".join(f'<a href="#{name}">{clean(text)}</a>' for name, text in links)
    return f'<nav aria-label="Sections">{inside}</nav>' if links else ""
