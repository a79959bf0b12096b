"""CSV files with a header, read line by line; every fault names the file and the line."""

from __future__ import annotations

import csv
import os
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from placeopt.core.errors import DocumentError, did_you_mean
from placeopt.kubernetes.reading import LABEL, read_text

MOST_ROWS = 200_000


@dataclass(frozen=True)
class TableRow:
    """One line of a table, by column."""

    file: str
    line: int
    cells: dict[str, str]

    def fault(self, problem: str, remedy: str) -> DocumentError:
        """Return the error that names this line."""
        return DocumentError(problem, file=self.file, path=f"line {self.line}", remedy=remedy)

    def word(self, column: str, default: str | None = None) -> str:
        """Return a cell that is a name, such as a place or a machine type.

        Raises
        ------
        DocumentError
            It is empty and has no default, or holds characters that labels of Kubernetes may not.
        """
        text = self.cells.get(column, "") or default
        if not text:
            raise self.fault(f"{column} is empty", "fill it in")
        if not LABEL.fullmatch(text):
            raise self.fault(
                f"{column} is {text[:60]!a}", "legal: letters, digits, -, _ and ., up to 63"
            )
        return text

    def number(self, column: str, *, most: str = "1e9") -> Decimal | None:
        """Return a cell that is a number from 0 to `most`, None where it is empty."""
        text = self.cells.get(column, "")
        if not text:
            return None
        value = decimal(text)
        if value is None or not 0 <= value <= Decimal(most):
            raise self.fault(f"{column} is {text[:60]!a}", f"legal: a number, 0 to {most}")
        return value


def decimal(text: str) -> Decimal | None:
    """Return an ordinary finite number as it is written, None for anything else."""
    if len(text) > 40 or not text.isascii() or "_" in text:
        return None
    try:
        value = Decimal(text)
    except InvalidOperation:
        return None
    return value if value.is_finite() and -50 < value.adjusted() < 50 else None


def rows(
    path: str | os.PathLike[str], required: Sequence[str], optional: Sequence[str] | None = None
) -> list[TableRow]:
    """Return the lines below the header; `optional` None lets the table have any other columns.

    Raises
    ------
    DocumentError
        Names the file, the line and what is legal.
    """
    file, text = read_text(path)
    try:
        lines = list(csv.reader(text.splitlines(), strict=True))
    except csv.Error as error:
        raise DocumentError(
            f"not CSV: {error}",
            file=file,
            path="line 1",
            remedy="separate cells by commas, quote those that contain one",
        ) from None
    header = [cell.strip() for cell in lines[0]] if lines else []
    legal = [*required, *(optional or ())]
    for column in required:
        if column not in header:
            raise DocumentError(
                f"no column {column!r}",
                file=file,
                path="line 1",
                remedy=f"legal columns: {', '.join(legal)}",
            )
    for column in header:
        if header.count(column) > 1 or (optional is not None and column not in legal):
            problem = f"column {column[:60]!a} is unknown or stands twice"
            raise DocumentError(
                problem, file=file, path="line 1", remedy=did_you_mean(column[:60], legal)
            )
    found: list[TableRow] = []
    for number, cells in enumerate(lines[1:], start=2):
        if not any(cell.strip() for cell in cells):
            continue
        if len(cells) != len(header):
            raise DocumentError(
                f"{len(cells)} cells",
                file=file,
                path=f"line {number}",
                remedy=f"give {len(header)}, one per column of the header",
            )
        if len(found) >= MOST_ROWS:
            raise DocumentError(
                f"more than {MOST_ROWS:,} rows",
                file=file,
                path=f"line {number}",
                remedy="give a shorter table",
            )
        found.append(
            TableRow(file, number, dict(zip(header, (cell.strip() for cell in cells), strict=True)))
        )
    return found
