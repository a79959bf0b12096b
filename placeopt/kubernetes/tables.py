"""CSV files with a header, read line by line; each fault names the file and the line."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from placeopt.core.errors import DocumentError, did_you_mean
from placeopt.core.files.paths import AnyPath
from placeopt.kubernetes.faults import Faults
from placeopt.kubernetes.quantities import millicores, whole_bytes
from placeopt.kubernetes.reading import LABEL, LABEL_KEY, read_text
from placeopt.kubernetes.sizes import PodSize
from placeopt.kubernetes.yaml_reading import fault

MAX_ROWS = 200_000


@dataclass(frozen=True)
class TableRow:
    """One line of a table, by column."""

    file: str
    line: int
    cells: dict[str, str]

    def fault(self, problem: str, remedy: str) -> DocumentError:
        """Return the error that names this line."""
        return fault(self.file, self.line, problem, remedy)

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

    def number(self, column: str, *, maximum: str = "1e9") -> Decimal | None:
        """Return a cell that is a number from 0 to `maximum`, None where it is empty."""
        text = self.cells.get(column, "")
        if not text:
            return None
        value = decimal(text)
        if value is None or not 0 <= value <= Decimal(maximum):
            raise self.fault(f"{column} is {text[:60]!a}", f"legal: a number, 0 to {maximum}")
        return value

    def parts(self, column: str) -> list[str]:
        """Return the texts that a cell holds, separated by ``;``."""
        return [p for p in (part.strip() for part in self.cells.get(column, "").split(";")) if p]

    def labels(self) -> dict[str, str]:
        """Return the labels of the column ``labels``, such as ``pool=general;arch=arm64``.

        Raises
        ------
        DocumentError
            One is not ``key=value`` as Kubernetes allows it.
        """
        results = {}
        for part in self.parts("labels"):
            key, _, value = part.partition("=")
            if not LABEL_KEY.fullmatch(key) or not LABEL.fullmatch(value):
                raise self.fault(
                    f"{part[:60]!a} is no label", "legal: key=value, several separated by ;"
                )
            results[key] = value
        return results

    def size(self, *, capacity: bool = False) -> PodSize:
        """Return the quantities of the columns ``cpu`` and ``memory``.

        Raises
        ------
        DocumentError
            One is not a quantity.
        """
        try:
            return PodSize(
                millicores(self.cells["cpu"], capacity=capacity),
                whole_bytes(self.cells["memory"], capacity=capacity),
            )
        except DocumentError as error:
            raise self.fault(error.problem, error.remedy or "") from None


def decimal(text: str) -> Decimal | None:
    """Return an ordinary finite number as it is written, None for anything else."""
    if len(text) > 40 or not text.isascii() or "_" in text:
        return None
    try:
        value = Decimal(text)
    except InvalidOperation:
        return None
    return value if value.is_finite() and -50 < value.adjusted() < 50 else None


def read_rows(
    path: AnyPath,
    required: Sequence[str],
    optional: Sequence[str] | None,
    use: Callable[[TableRow], object],
) -> None:
    """Call `use` with each line below the header; what is wrong in any of them is told at once.

    Parameters
    ----------
    path : path
    required, optional : sequences of str
        Columns; `optional` None lets the table have any other ones.
    use : callable
        May raise a DocumentError about its line.

    Raises
    ------
    DocumentError
        Names the file, the lines and what is legal.
    """
    file, text = read_text(path)
    try:
        lines = list(csv.reader(text.splitlines(), strict=True))
    except csv.Error as error:
        raise fault(
            file, 1, f"not CSV: {error}", "separate cells by commas, quote those that contain one"
        ) from None
    header = [cell.strip() for cell in lines[0]] if lines else []
    _require_columns(file, header, required, optional)
    filled = [(k, cells) for k, cells in enumerate(lines, start=1) if any(map(str.strip, cells))]
    if len(filled) > MAX_ROWS + 1:
        raise fault(file, filled[-1][0], f"more than {MAX_ROWS:,} rows", "give a shorter table")
    faults = Faults()
    for number, cells in filled[1:]:
        with faults.gather():
            use(_row(file, number, header, cells))
    faults.check()


def _require_columns(
    file: str, header: Sequence[str], required: Sequence[str], optional: Sequence[str] | None
) -> None:
    """Raise where a column is missing, unknown, or stands twice."""
    legal = [*required, *(optional or ())]
    missing = [column for column in required if column not in header]
    wrong = [c for c in header if header.count(c) > 1 or (optional is not None and c not in legal)]
    told = [f"no column {_quoted(missing)}"] if missing else []
    told += [f"column {_quoted(wrong)} is unknown or stands twice"] if wrong else []
    if told:
        only = wrong[0][:60] if len(set(wrong)) == 1 and not missing else ""
        remedy = did_you_mean(only, legal) if only else f"legal columns: {', '.join(legal)}"
        raise fault(file, 1, "; and ".join(told), remedy)


def _quoted(columns: Sequence[str]) -> str:
    """Return the first few of some names, each once."""
    return ", ".join(f"{column[:60]!a}" for column in list(dict.fromkeys(columns))[:5])


def _row(file: str, number: int, header: Sequence[str], cells: Sequence[str]) -> TableRow:
    if len(cells) != len(header):
        remedy = f"give {len(header)}, one per column of the header"
        raise fault(file, number, f"{len(cells)} cells", remedy)
    return TableRow(file, number, dict(zip(header, (cell.strip() for cell in cells), strict=True)))
