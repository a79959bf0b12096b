"""CSV files with a header: each line is a record of a model; a fault names the file and the line.

A table is a class of `TableRow` with a field per column. A field without a default is a column that
has to be there and is never empty; an empty cell of another column is its default.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    PrivateAttr,
    ValidationError,
    ValidationInfo,
)

from placeopt.core.errors import DocumentError, Faults, did_you_mean, fault
from placeopt.core.files.documents import read_text
from placeopt.core.files.paths import AnyPath

MAX_ROWS = 200_000
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


class CellError(ValueError):
    """What is wrong with a cell, and what is legal."""

    def __init__(self, problem: str, remedy: str):
        super().__init__(problem)
        self.remedy = remedy


class TableRow(BaseModel):
    """One line of a table."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    _where: tuple[str, int] = PrivateAttr(default=("", 0))

    @property
    def where(self) -> tuple[str, int]:
        """The file, and the line of it."""
        return self._where

    @property
    def label(self) -> str:
        """How notes name it."""
        return f"line {self._where[1]}"

    def fault(self, problem: str, remedy: str) -> DocumentError:
        """Return the error that names this line."""
        return fault(*self._where, problem, remedy)


Row = TypeVar("Row", bound=TableRow)


# -- kinds of cells --------------------------------------------------------------------------------


def cell(convert: Callable[[str, str], Any]) -> BeforeValidator:
    """Return what makes a value of a cell: ``convert(text, column)`` may raise a CellError."""

    def read(value: Any, info: ValidationInfo) -> Any:
        return convert(value, info.field_name or "") if isinstance(value, str) else value

    return BeforeValidator(read)


def number(maximum: str = "1e9") -> BeforeValidator:
    """Return what reads a number from 0 to `maximum`, as it is written."""

    def read(text: str, column: str) -> Decimal:
        value = decimal(text)
        if value is None or not 0 <= value <= Decimal(maximum):
            raise CellError(f"{column} is {text[:60]!a}", f"legal: a number, 0 to {maximum}")
        return value

    return cell(read)


def whole(minimum: int, maximum: int) -> BeforeValidator:
    """Return what reads a whole number."""

    def read(text: str, column: str) -> int:
        value = decimal(text)
        if value is None or value != int(value) or not minimum <= value <= maximum:
            raise CellError(
                f"{column} is {text[:60]}", f"legal: a whole number, {minimum} to {maximum:,}"
            )
        return int(value)

    return cell(read)


def decimal(text: str) -> Decimal | None:
    """Return an ordinary finite number as it is written, None for anything else."""
    if len(text) > 40 or not text.isascii() or "_" in text:
        return None
    try:
        value = Decimal(text)
    except InvalidOperation:
        return None
    return value if value.is_finite() and -50 < value.adjusted() < 50 else None


# -- tables ----------------------------------------------------------------------------------------


def rows(
    path: AnyPath,
    model: type[Row],
    use: Callable[[Row], object] | None = None,
    most: int = MAX_ROWS,
) -> list[Row]:
    """Return the records of a table; what is wrong in any line is told at once.

    Parameters
    ----------
    path : path
    model : type of TableRow
    use : callable, optional
        Called with each record; it may raise a DocumentError about its line.
    most : int
        Lines that a table may have.

    Raises
    ------
    DocumentError
        Names the file, the lines and what is legal.
    """
    fields = model.model_fields
    required = [name for name, field in fields.items() if field.is_required()]
    results, faults = list[Row](), Faults()
    for file, line, cells in lines(path, required, list(fields), most):
        with faults.gather():
            results.append(_record(file, line, {k: v for k, v in cells().items() if v}, model))
            if use is not None:
                use(results[-1])
    faults.check()
    return results


def _record(file: str, line: int, cells: dict[str, str], model: type[Row]) -> Row:
    try:
        result = model.model_validate(cells)
    except ValidationError as error:
        found = Faults()
        for one in error.errors(include_url=False, include_input=False):
            column, cause = ".".join(map(str, one["loc"])), one.get("ctx", {}).get("error")
            told = f"{column}: {one['msg']}", "mend the cell"
            if isinstance(cause, CellError):
                told = str(cause), cause.remedy
            elif one["type"] == "missing":
                told = f"{column} is empty", "fill it in"
            with found.gather():
                raise fault(file, line, *told) from None
        found.check()
        raise
    result._where = file, line
    return result


def lines(
    path: AnyPath,
    required: Sequence[str] = (),
    legal: Sequence[str] | None = None,
    most: int = MAX_ROWS,
) -> Iterator[tuple[str, int, Callable[[], dict[str, str]]]]:
    """Yield (file, number, what returns the cells by column) of each line below the header.

    Parameters
    ----------
    path : path
    required, legal : sequences of str
        Columns; `legal` None lets the table have any.
    most : int

    Raises
    ------
    DocumentError
        The file is no such table; what returns cells raises where there are more or fewer of them.
    """
    file, text = str(path), read_text(path, "CSV")
    if control := _CONTROL.search(text):
        line = text.count("\n", 0, control.start()) + 1
        raise fault(file, line, f"the control character {control[0]!a}", "give a text file")
    try:
        listed = list(csv.reader(text.splitlines(), strict=True))
    except csv.Error as error:
        raise fault(
            file, 1, f"not CSV: {error}", "separate cells by commas, quote those that contain one"
        ) from None
    header = [cell.strip() for cell in listed[0]] if listed else []
    _require_columns(file, header, required, legal)
    filled = [(k, cells) for k, cells in enumerate(listed, start=1) if any(map(str.strip, cells))]
    if len(filled) > most + 1:
        raise fault(file, filled[-1][0], f"more than {most:,} rows", "give a shorter table")

    def cells_of(line: int, cells: Sequence[str]) -> dict[str, str]:
        if len(cells) != len(header):
            remedy = f"give {len(header)}, one per column of the header"
            raise fault(file, line, f"{len(cells)} cells", remedy)
        return dict(zip(header, map(str.strip, cells), strict=True))

    for line, cells in filled[1:]:
        yield file, line, lambda line=line, cells=cells: cells_of(line, cells)  # type: ignore[misc]


def _require_columns(
    file: str, header: Sequence[str], required: Sequence[str], legal: Sequence[str] | None
) -> None:
    """Raise where a column is missing, unknown, or stands twice."""
    missing = [column for column in required if column not in header]
    wrong = [c for c in header if header.count(c) > 1 or (legal is not None and c not in legal)]
    told = [f"no column {_quoted(missing)}"] if missing else []
    told += [f"column {_quoted(wrong)} is unknown or stands twice"] if wrong else []
    if told:
        known = list(legal or required)
        only = wrong[0][:60] if len(set(wrong)) == 1 and not missing else ""
        remedy = did_you_mean(only, known) if only else f"legal columns: {', '.join(known)}"
        raise fault(file, 1, "; and ".join(told), remedy)


def _quoted(columns: Sequence[str]) -> str:
    """Return the first few of some names, each once."""
    return ", ".join(f"{column[:60]!a}" for column in list(dict.fromkeys(columns))[:5])
