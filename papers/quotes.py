"""Look up in the papers' own texts what the page quotes from them.

    python papers/quotes.py [FOLDER]

FOLDER has the texts as ``*.txt``; without it ``seeds`` beside PLACEOPT_DATA. Looked up are the
words by which ``elements.toml`` names every element, and every number that entries quote as the
paper's, of a claim near its words; those that entries call derived are listed. So are tables,
figures, algorithms and equations that the texts have and the list of elements has not.
"""

from __future__ import annotations

import argparse
import importlib
import os
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "benchmarks")]

from papers.entry import Entry  # noqa: E402

_NUMBER = re.compile(r"(?<![\w.])-?(\d[\d,]*\.?\d*|\.\d+)")
#: A claim's numbers stand at most so many characters from its words.
NEAR = 800
#: Captions, and the numbers of equations at the end of a line.
_CAPTION = re.compile(r"^(Fig\.|Figure|Table|TABLE|Algorithm) (\d+|[IVX]+)\b", re.MULTILINE)
_EQUATION = re.compile(r"(?:\\tag\{(\d+)\}|\((\d{1,2})\))[$ ]*$", re.MULTILINE)


def elements() -> dict[str, dict[str, Any]]:
    """Return by paper the phrase that its text has, and its elements with their words."""
    return tomllib.loads((HERE / "elements.toml").read_text(encoding="utf-8"))


def folder() -> Path | None:
    """Return where the texts are, None where there is no such folder."""
    data = os.environ.get("PLACEOPT_DATA")
    place = Path(data).parent / "seeds" if data else None
    return place if place and place.is_dir() else None


def texts(place: Path) -> dict[str, str]:
    """Return the texts of the papers by key, as they are in the files."""
    found = {}
    everything = [file.read_text(encoding="utf-8") for file in sorted(place.glob("*.txt"))]
    for key, paper in elements().items():
        found[key] = next(text for text in everything if paper["phrase"] in text)
    return found


def plain(text: str) -> str:
    """Return a text on one line, without marks of LaTeX and Markdown around words."""
    text = text.replace("\\%", "%").replace("“", '"').replace("”", '"')
    return re.sub(r"\s+", " ", re.sub(r"\\\(|\\\)|[*_]{1,2}(?=[A-Za-z(])|(?<=\w)\*+", "", text))


def missing_words(key: str, text: str) -> list[str]:
    """Return the elements of a paper whose words its text has not."""
    flat = plain(text)
    return [
        f"{name}: {words!r}"
        for name, words in elements()[key]["elements"].items()
        if plain(words) not in flat and words not in text
    ]


def numbers(entry: Entry) -> list[str]:
    """Return the numbers that an entry quotes as the paper's, without those called derived."""
    return [n for n in _NUMBER.findall(entry.paper) if n.rstrip(".,") not in entry.derived]


def has_number(number: str, text: str) -> bool:
    """Return whether a text has a number, however it writes thousands and a leading zero."""
    plainly = number.rstrip(".,").replace(",", "")
    ways = {plainly, f"0{plainly}" if plainly.startswith(".") else plainly}
    if plainly.isdigit() and len(plainly) > 3:
        ways |= {f"{plainly[:-3]}{mark}{plainly[-3:]}" for mark in ",."}
    ways |= {f"{way}0" for way in ways if "." in way}  # .5 is printed .50
    options = "|".join(re.escape(way) for way in sorted(ways))
    return re.search(rf"(?<![\d.])(?:{options})(?![\d]|\.\d)", text) is not None


def missing_numbers(key: str, entries: tuple[Entry, ...], text: str) -> list[str]:
    """Return the numbers quoted as the paper's that its text has not, of claims not there."""
    flat, words = plain(text), elements()[key]["elements"]
    missing = []
    for entry in entries:
        where = flat
        if entry.element.startswith("claim") and not re.search(r"Table|Fig\.", entry.paper):
            at = max(flat.find(plain(words[entry.element])), 0)
            where = flat[max(at - NEAR, 0) : at + NEAR]
        missing += [f"{entry.element}: {n}" for n in numbers(entry) if not has_number(n, where)]
    return missing


def left_out(key: str, text: str) -> list[str]:
    """Return tables, figures, algorithms and equations of a text that no element names."""
    names = list(elements()[key]["elements"])
    found = []
    for kind, number in _CAPTION.findall(text):
        short = {"Figure": "Fig.", "TABLE": "Table"}.get(kind, kind)
        if not any(re.match(rf"{re.escape(short)} {number}(?![\dIVX])", name) for name in names):
            found.append(f"{short} {number}")
    covered = set(equations(names))
    tags = {int(a or b) for a, b in _EQUATION.findall(text)}
    last = next(n for n in range(1, 99) if n + 1 not in tags and n + 2 not in tags)
    found += [f"({n})" for n in sorted(tags) if n <= last and n not in covered]
    return sorted(set(found))


def equations(names: list[str]) -> Iterator[int]:
    """Yield the equations that elements such as ``(1)-(18)`` or ``(19)`` name."""
    for name in names:
        if found := re.fullmatch(r"\((\d+)\)(?:-\((\d+)\))?", name):
            yield from range(int(found[1]), int(found[2] or found[1]) + 1)


def main() -> None:
    """Print what is looked up, what is derived, and what is missing; fail for the last."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", nargs="?", type=Path, help="texts of the papers")
    place = parser.parse_args().folder or folder()
    if place is None:
        print("the papers' texts are not here: nothing is looked up; name their folder")
        return
    wrong = []
    for key, text in texts(place).items():
        entries = importlib.import_module(f"papers.entries.{key}").PAPER.entries
        wrong += [f"{key}: {one}" for one in missing_words(key, text)]
        wrong += [f"{key}: {one}" for one in missing_numbers(key, entries, text)]
        wrong += [f"{key}: no element for {one}" for one in left_out(key, text)]
        derived = [f"{e.element}: {', '.join(e.derived)}" for e in entries if e.derived]
        count = sum(len(numbers(entry)) for entry in entries)
        print(f"{key}: {len(entries)} elements, {count} numbers looked up")
        for line in derived:
            print(f"  derived or counted: {line}")
    if wrong:
        sys.exit("\n".join(["not in the papers' texts:", *wrong]))


if __name__ == "__main__":
    main()
