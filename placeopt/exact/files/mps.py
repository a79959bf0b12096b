"""MPS files, fixed or free, without spaces in names; all rows of type N are goals."""

from __future__ import annotations

import math
from collections.abc import Iterator

from placeopt.core.errors import DocumentError, UnsupportedError
from placeopt.exact.files.draft import Column, Draft, Row, finite, number

_SENSES = {"MIN": "min", "MINIMIZE": "min", "MAX": "max", "MAXIMIZE": "max"}
#: Types of bounds with a number, and without.
_WITH, _WITHOUT = ("UP", "LO", "FX", "LI", "UI", "SC", "SI"), ("FR", "MI", "PL", "BV")
#: Types of rows, and whether the number on the right limits them from below, and from above.
_TYPES = {"N": (False, False), "L": (False, True), "G": (True, False), "E": (True, True)}


def read_mps(text: str, name: str) -> Draft:
    """Read an MPS file.

    Goals are all rows of type N, in the file's sense; a number on the right of one is subtracted.

    Raises
    ------
    DocumentError, UnsupportedError
        What cannot be read, and in which line.
    """
    reader = _Reader(name)
    for line, is_head, words in _lines(text):
        reader.read(line, is_head, words)
    return reader.finished()


def _lines(text: str) -> Iterator[tuple[int, bool, list[str]]]:
    """Yield the lines of some words, with their numbers and whether they begin a section."""
    for line, content in enumerate(text.splitlines(), start=1):
        if content.strip() and not content.startswith("*"):
            yield line, not content[0].isspace(), content.split()


class _Reader:
    def __init__(self, name: str):
        self.draft = Draft(name)
        self.section = ""
        self.types: dict[str, str] = {}
        self.rows: dict[str, Row] = {}
        self.right: dict[str, float] = {}
        self.ranges: dict[str, float] = {}
        self.names_of_sets: dict[str, str] = {}
        self.is_whole, self.last_column = False, ""
        self.filled: set[tuple[str, str]] = set()

    def read(self, line: int, is_head: bool, words: list[str]) -> None:
        """Read a line."""
        key = words[0].upper()
        if self.section == "ENDATA":
            return
        if is_head and not (self.section == "OBJSENSE" and key in _SENSES):
            if not hasattr(self, f"_read_{key.lower()}"):
                self._refuse_section(key, line)
            if len(words) > 1 and key not in ("NAME", "OBJSENSE", "ENDATA"):
                raise DocumentError(
                    f"words behind {words[0]} at the margin, in line {line}",
                    remedy="begin lines within a section with a space",
                )
            self.section = key
            if key == "OBJSENSE" and len(words) > 1:
                self._read_objsense(words[1:], line)
            return
        if self.section in ("", "NAME"):
            raise DocumentError(
                f"this is no MPS file: {words[0]!r} in line {line} is in no section",
                remedy="give a legal MPS file",
            )
        getattr(self, f"_read_{self.section.lower()}")(words, line)

    def _refuse_section(self, key: str, line: int) -> None:
        if not self.section:
            raise DocumentError(
                f"this is no MPS file: it begins with {key!r}", remedy="give a legal MPS file"
            )
        raise UnsupportedError(
            f"the section {key!r}, in line {line}, is no linear rows; write it with linear rows "
            "and binary variables"
        )

    def _count(self, words: list[str], legal: tuple[int, ...], line: int) -> None:
        if len(words) not in legal:
            raise DocumentError(
                f"{len(words)} words in line {line}, where {self.section} has "
                f"{' or '.join(map(str, legal))}",
                remedy="names have no spaces",
            )

    # -- sections ----------------------------------------------------------------------------------

    def _read_name(self, words: list[str], line: int) -> None:
        """Read nothing: the model has the name of its file."""

    def _read_endata(self, words: list[str], line: int) -> None:
        """Read nothing more."""

    def _read_objsense(self, words: list[str], line: int) -> None:
        if words[0].upper() not in _SENSES:
            raise DocumentError(f"OBJSENSE is {words[0]!r}, in line {line}; legal: MIN, MAX")
        self.draft.sense = _SENSES[words[0].upper()]

    def _read_rows(self, words: list[str], line: int) -> None:
        self._count(words, (2,), line)
        kind, name = words[0].upper(), words[1]
        if kind not in _TYPES:
            raise DocumentError(
                f"a row of type {words[0]!r}, in line {line}; legal: {', '.join(_TYPES)}"
            )
        if name in self.types:
            raise DocumentError(f"two rows are called {name!r}, in line {line}")
        self.types[name], self.rows[name] = kind, Row()

    def _read_columns(self, words: list[str], line: int) -> None:
        if len(words) > 2 and words[1].strip("'`\"") == "MARKER":
            kind = words[-1].strip("'`\"").upper()
            if kind not in ("INTORG", "INTEND"):
                raise UnsupportedError(
                    f"the marker {kind!r}, in line {line}; write ordered sets with linear rows"
                )
            self.is_whole = kind == "INTORG"
            return
        self._count(words, (3, 5), line)
        name = words[0]
        if name in self.draft.columns and name != self.last_column:
            raise DocumentError(f"column {name!r} begins again, in line {line}")
        self.last_column = name
        self.draft.column(name).is_whole = self.is_whole
        for row, value in self._pairs(words[1:], line):
            if (name, row) in self.filled:
                raise DocumentError(f"column {name!r} has row {row!r} twice, in line {line}")
            self.filled.add((name, row))
            self.rows[row].terms[name] = finite(value, line)

    def _pairs(self, words: list[str], line: int) -> Iterator[tuple[str, str]]:
        for row, value in zip(words[::2], words[1::2], strict=True):
            if row not in self.rows:
                raise DocumentError(f"there is no row {row!r}, in line {line}")
            yield row, value

    def _without_set(self, words: list[str], line: int, has_set: bool) -> list[str]:
        """Return words behind the name of a set of numbers, of which a section has one."""
        name = words[0] if has_set else ""
        first = self.names_of_sets.setdefault(self.section, name)
        if name != first:
            raise DocumentError(
                f"a second set {name!r} beside {first!r}, in line {line}",
                remedy=f"keep one set in {self.section}",
            )
        return words[1:] if has_set else words

    def _read_numbers(self, words: list[str], line: int) -> Iterator[tuple[str, str]]:
        self._count(words, (2, 3, 4, 5), line)
        kept = self.right if self.section == "RHS" else self.ranges
        for row, value in self._pairs(self._without_set(words, line, len(words) % 2 == 1), line):
            if row in kept:
                raise DocumentError(f"{self.section} of row {row!r} twice, in line {line}")
            yield row, value

    def _read_rhs(self, words: list[str], line: int) -> None:
        for row, value in self._read_numbers(words, line):
            must_be_finite = self.types[row] in "NE"
            self.right[row] = finite(value, line) if must_be_finite else number(value, line)

    def _read_ranges(self, words: list[str], line: int) -> None:
        for row, value in self._read_numbers(words, line):
            if self.types[row] == "N":
                raise DocumentError(
                    f"a range of row {row!r} of type N, which has no limits, in line {line}"
                )
            self.ranges[row] = finite(value, line)

    def _read_bounds(self, words: list[str], line: int) -> None:
        kind = words[0].upper()
        if kind not in _WITH + _WITHOUT:
            legal = ", ".join(_WITH + _WITHOUT)
            raise DocumentError(f"a bound of type {words[0]!r}, in line {line}; legal: {legal}")
        self._count(words, (3, 4) if kind in _WITH else (2, 3, 4), line)
        columns = self.draft.columns
        has_set = len(words) == 4
        if kind in _WITHOUT and len(words) == 3:  # a set and a column, or a column and a number
            has_set = words[2] in columns
        name, *more = self._without_set(words[1:], line, has_set)
        if name not in columns:
            raise DocumentError(f"there is no column {name!r}, in line {line}")
        _bound(columns[name], kind, number(more[0], line) if kind in _WITH else 0.0, line)

    # -- the end -----------------------------------------------------------------------------------

    def finished(self) -> Draft:
        """Return the model once all lines are read."""
        draft = self.draft
        if self.section != "ENDATA":
            raise DocumentError(
                "the file ends before ENDATA" if self.section else "the file has no variables",
                remedy="give a whole MPS file",
            )
        for name, column in draft.columns.items():
            if column.is_whole and column.lower is None and column.upper is None:
                column.upper = 1.0  # of whole variables without bounds, by a convention of MPS
            column.with_defaults(name)
        for name, row in self.rows.items():
            right = self.right.get(name, 0.0)
            if self.types[name] == "N":
                row.constant = 0.0 - right
                draft.add_goal(name, draft.sense, row)
            else:
                row.lower, row.upper = self._limits(name, right)
                draft.add_row(name, row)
        if draft.goals:
            draft.drop_empty_goal(next(iter(draft.goals)))
        return draft

    def _limits(self, name: str, right: float) -> tuple[float, float]:
        from_below, from_above = _TYPES[self.types[name]]
        lower = right if from_below else -math.inf
        upper = right if from_above else math.inf
        if name in self.ranges:
            width = self.ranges[name]
            if not from_below or (from_above and width < 0):
                lower = right - abs(width)
            else:
                upper = right + abs(width)
        if lower == math.inf or upper == -math.inf:
            raise DocumentError(f"the limit of row {name!r} never holds")
        return lower, upper


def _bound(column: Column, kind: str, value: float, line: int) -> None:
    """Apply a bound to a column."""
    if kind in ("LI", "UI", "SI"):
        column.is_whole = True
    if kind == "BV":
        column.is_whole, value = True, 1.0
    if kind in ("SC", "SI"):
        if value <= 0:
            raise DocumentError(
                f"the bound {value:g} of a semicontinuous column, in line {line}",
                remedy="give a positive number",
            )
        column.may_be_zero = True
    lower = {"LO": value, "LI": value, "FX": value, "FR": -math.inf, "MI": -math.inf, "BV": 0.0}
    upper = {**dict.fromkeys(("UP", "UI", "SC", "SI", "FX", "BV"), value)}
    upper |= dict.fromkeys(("FR", "PL"), math.inf)
    column.limit(line, lower.get(kind), upper.get(kind))
