"""The page of the papers: as HTML in the look of the reports, and as markdown."""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import stamps
from machine import table as markdown_table
from papers.entry import STATUSES, Entry, Paper

from placeopt.plot import markup
from placeopt.plot.markup import Mark, clean, shell

_TONES = {
    "regenerated": "plain",
    "met": "good",
    "missed": "bad",
    "cannot be judged": "warn",
    "open": "warn",
}
_COLUMNS = ("element", "what it says", "paper", "authors' files", "placeopt", "status", "why")
_MEANINGS = {
    "regenerated": "the table or figure is made again; no number must be reached",
    "met": "a claim with a number holds here",
    "missed": "it does not hold here; whose the difference is stands beside it",
    "cannot be judged": "the paper has no rule or number for it, or it is about another machine",
    "open": "nothing here to put beside it, with the reason",
    "states no result": "drawings, notation, surveys, algorithms",
}
#: A picture wider than this in bytes is left to its own page.
_MAX_PICTURE = 400_000


def counts(papers: Sequence[Paper], results: Mapping[str, Any]) -> dict[str, int]:
    """Return how many entries have each status."""
    found = Counter(entry.status(results) for paper in papers for entry in paper.entries)
    return {status: found[status] for status in STATUSES}


def summary(papers: Sequence[Paper], results: Mapping[str, Any]) -> str:
    """Return the count in a sentence."""
    number = counts(papers, results)
    total = sum(number.values())
    *others, silent = STATUSES
    parts = ", ".join(f"{number[status]} {status}" for status in others)
    return (
        f"The five papers have {total} tables, figures, algorithms, blocks of equations and "
        f"claims. {number[silent]} of them state no result. Of the other "
        f"{total - number[silent]}: {parts}."
    )


def html(papers: Sequence[Paper], documents: Mapping[str, Any], *, quick: bool) -> str:
    """Return the page as HTML text, pictures inside."""
    results = {name: document["result"] for name, document in documents.items()}
    number = counts(papers, results)
    tiles = [(status, str(number[status]), _MEANINGS[status]) for status in STATUSES]
    notes = ["Quick run: few seeds and short runs."] if quick else []
    sections = [("count", "The count", markup.tiles(tiles) + markup.paragraphs(notes))]
    for paper in papers:
        sections.append((paper.key, f"{paper.where}: {paper.problem}", _part(paper, results)))
    sections.append(("runs", "How it was made", _runs(documents)))
    return shell(
        title="The papers, element by element",
        heading="The papers, element by element",
        eyebrow="placeopt \u00b7 five papers",
        lead=summary(papers, results),
        links=[(name, head) for name, head, _ in sections],
        body="\n".join(markup.section(*one) for one in sections),
        footer="Written by papers/run.py: make papers.",
    )


def _part(paper: Paper, results: Mapping[str, Any]) -> str:
    rows: list[list[markup.Cell]] = []
    for entry in paper.entries:
        status = entry.status(results)
        cells = (entry.element, entry.says, entry.paper, entry.authors, entry.shown(results))
        mark = Mark(entry.verdict(results), _TONES.get(status, "plain"))
        rows.append([*(cell or None for cell in cells), mark, entry.reason(results)])
    pictures = "".join(_picture(entry) for entry in paper.entries if entry.figure)
    title = markup.paragraphs([paper.title], "note")
    return title + markup.table(paper.where, _COLUMNS, rows, most=len(rows)) + pictures


def _picture(entry: Entry) -> str:
    file = stamps.ROOT / entry.figure
    if not file.exists() or file.stat().st_size > _MAX_PICTURE:
        return ""
    data = base64.b64encode(file.read_bytes()).decode("ascii")
    label = clean(f"{entry.element}: {entry.says}")
    image = f'<img style="max-width:100%" alt="{label}" src="data:image/png;base64,{data}">'
    return f"<figure>{image}<figcaption>{label}</figcaption></figure>"


def _runs(documents: Mapping[str, Any]) -> str:
    rows = [[name, str(d["settings"]), d["made"]] for name, d in sorted(documents.items())]
    return markup.table("Measures", ("measure", "settings", "made"), rows, most=len(rows) or 1)


def markdown(papers: Sequence[Paper], documents: Mapping[str, Any]) -> str:
    """Return the page as markdown; links lead from ``papers/``."""
    results = {name: document["result"] for name, document in documents.items()}
    lines = ["# The papers, element by element", "", summary(papers, results), ""]
    lines += [f"* {status}: {_MEANINGS[status]}" for status in STATUSES]
    for paper in papers:
        lines += ["", f"## {paper.where}: {paper.problem}", "", f"*{paper.title}*", ""]
        rows = []
        for e in paper.entries:
            more = f" [page](../{e.page})" if e.page else ""
            cells = [e.element, e.says, e.paper, e.authors, e.shown(results), e.verdict(results)]
            rows.append([*(c.replace("|", "\\|") for c in cells), e.reason(results) + more])
        lines += markdown_table(_COLUMNS, rows)
    return "\n".join(lines)


def write_html(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
