"""vOptLib (github.com/vOptSolver/vOptLib): files of numbers, a layout for each class of problem."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence

from placeopt.core.errors import DocumentError
from placeopt.exact.files.content import Column, Content, Row


def read_voptlib(text: str, name: str, layout: str | None) -> Content:
    """Read a file of vOptLib.

    Parameters
    ----------
    layout : str, optional
        One of `LAYOUTS`; by default the one that the numbers fit, or the file's name tells.

    Raises
    ------
    DocumentError
        The numbers fit none, or more than one.
    """
    numbers = _numbers(text)
    fitting = {}
    for one, (read, _) in LAYOUTS.items():
        if layout in (None, one):
            try:
                fitting[one] = read(_Numbers(numbers), name)
            except _MisfitError:
                continue
    if len(fitting) > 1:
        told = [one for one, (_, prefix) in LAYOUTS.items() if re.match(prefix, name)]
        fitting = {one: content for one, content in fitting.items() if one in told} or fitting
    if len(fitting) == 1:
        return next(iter(fitting.values()))
    if not fitting:
        what = "any layout of vOptLib" if layout is None else f"the layout {layout}"
        raise DocumentError(
            f"the file's {len(numbers)} numbers do not fit {what}",
            remedy=f"layouts: {', '.join(LAYOUTS)}",
        )
    raise DocumentError(
        f"the file's numbers fit several layouts: {', '.join(fitting)}",
        remedy=f"say which, as in --layout {next(iter(fitting))}",
    )


class _MisfitError(Exception):
    """The numbers are not those of a layout."""


def _numbers(text: str) -> list[float]:
    """Return the numbers of a file; some comments end with one that counts."""
    text = re.sub(r"^#\s*N[^\S\n]*(\d+)\s*$", r"\1", text, flags=re.M)
    words = re.sub(r"#.*", "", text).split()
    try:
        numbers = [float(word) for word in words]
    except ValueError as error:
        wrong = str(error).split(":")[-1].strip()
        raise DocumentError(f"{wrong} is no number", remedy="give a file of vOptLib") from None
    if not all(map(math.isfinite, numbers)):
        raise DocumentError("a number is not finite", remedy="give a file of vOptLib")
    return numbers


class _Numbers:
    """Numbers that are taken from the first to the last."""

    def __init__(self, numbers: Sequence[float]):
        self._numbers, self._at = numbers, 0

    def take(self, count: int) -> Sequence[float]:
        taken = self._numbers[self._at : self._at + count]
        if len(taken) < count or count < 0:
            raise _MisfitError
        self._at += count
        return taken

    def count(self, most: float = 1e7) -> int:
        """Take a number of things: a whole number of at least 1."""
        (value,) = self.take(1)
        if not (value.is_integer() and 1 <= value <= most):
            raise _MisfitError
        return int(value)

    def indices(self, below: int) -> list[int]:
        """Take a list of different indices, its length before it; they begin at 1."""
        results = [int(value) - 1 for value in self.take(self.count(below))]
        if len(set(results)) < len(results) or not all(0 <= one < below for one in results):
            raise _MisfitError
        return results

    def end(self) -> None:
        if self._at < len(self._numbers):
            raise _MisfitError


def _binaries(count: int) -> list[Column]:
    return [Column(f"x{k + 1}", 0.0, 1.0, "whole") for k in range(count)]


def _goals(sense: str, costs: Sequence[Sequence[float]]) -> tuple[tuple[str, Row], ...]:
    return tuple(
        (sense, Row(f"f{k + 1}", {j: c for j, c in enumerate(row) if c}))
        for k, row in enumerate(costs)
    )


def _knapsack(numbers: _Numbers, name: str) -> Content:
    """Items, goals, rows; profits of each goal; weights of each row; capacities."""
    items, goals, rows = numbers.count(), numbers.count(10), numbers.count(100)
    profits = [numbers.take(items) for _ in range(goals)]
    weights = [numbers.take(items) for _ in range(rows)]
    capacities = numbers.take(rows)
    numbers.end()
    limits = [
        Row(f"capacity{k + 1}", dict(enumerate(row)), upper=limit)
        for k, (row, limit) in enumerate(zip(weights, capacities, strict=True))
    ]
    return Content(name, _binaries(items), limits, _goals("max", profits), "max")


def _by_rows(sense: str, limits: tuple[float, float]) -> Callable[[_Numbers, str], Content]:
    """Rows, columns; costs of two goals; for each row its number of columns, and these."""

    def read(numbers: _Numbers, name: str) -> Content:
        rows, columns = numbers.count(), numbers.count()
        costs = [numbers.take(columns) for _ in range(2)]
        covered = [numbers.indices(columns) for _ in range(rows)]
        numbers.end()
        each = [Row(f"row{k + 1}", dict.fromkeys(of, 1.0), *limits) for k, of in enumerate(covered)]
        return Content(name, _binaries(columns), each, _goals(sense, costs), sense)

    return read


def _partitioning(numbers: _Numbers, name: str) -> Content:
    """Rows, columns; for each column its costs of two goals, its number of rows, and these."""
    rows, columns = numbers.count(), numbers.count()
    costs: list[list[float]] = [[], []]
    covering: list[dict[int, float]] = [{} for _ in range(rows)]
    for column in range(columns):
        for goal, cost in zip(costs, numbers.take(2), strict=True):
            goal.append(cost)
        for row in numbers.indices(rows):
            covering[row][column] = 1.0
    numbers.end()
    each = [Row(f"row{k + 1}", terms, 1.0, 1.0) for k, terms in enumerate(covering)]
    return Content(name, _binaries(columns), each, _goals("min", costs))


def _facilities(numbers: _Numbers, name: str) -> Content:
    """Users, services; costs of users by services, twice; costs of services, twice."""
    users, services = numbers.count(), numbers.count()
    serving = [numbers.take(users * services) for _ in range(2)]
    opening = [numbers.take(services) for _ in range(2)]
    numbers.end()
    pairs = [(i, j) for i in range(users) for j in range(services)]
    columns = [Column(f"x{i + 1}_{j + 1}", 0.0, 1.0, "whole") for i, j in pairs]
    columns += [Column(f"s{j + 1}", 0.0, 1.0, "whole") for j in range(services)]
    rows = list(_service_rows(users, services))
    costs = [[*one, *other] for one, other in zip(serving, opening, strict=True)]
    return Content(name, columns, rows, _goals("min", costs))


def _service_rows(users: int, services: int) -> Iterator[Row]:
    for i in range(users):
        own = range(i * services, (i + 1) * services)
        yield Row(f"user{i + 1}", dict.fromkeys(own, 1.0), 1.0, 1.0)
        for j, column in enumerate(own):
            terms = {column: 1.0, users * services + j: -1.0}
            yield Row(f"open{i + 1}_{j + 1}", terms, upper=0.0)


#: Layouts by vOptLib's names of the classes: how to read them, and how names of files begin.
LAYOUTS: dict[str, tuple[Callable[[_Numbers, str], Content], str]] = {
    "ukp": (_knapsack, r"\d*kp|[fk]\d{4}"),
    "scp": (_by_rows("min", (1.0, math.inf)), r"\d*scp"),
    "spa": (_partitioning, r"bio"),
    "spp": (_by_rows("max", (-math.inf, 1.0)), r"\d*(spp|mis)"),
    "uflp": (_facilities, r"[fh]\d+-\d+$|didactic"),
}
