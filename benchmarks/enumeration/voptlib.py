"""vOptLib (github.com/vOptSolver/vOptLib): files of numbers, a layout for each class of problem."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pyomo.environ as pyo
from pyomo.core.expr.numeric_expr import LinearExpression


class Row(NamedTuple):
    name: str
    terms: Mapping[int, float]
    lower: float | None = None
    upper: float | None = None


def read_voptlib(file: Path, layout: str | None = None) -> pyo.ConcreteModel:
    """Return the model of a file of vOptLib.

    Parameters
    ----------
    layout : str, optional
        One of `LAYOUTS`; by default the one that the numbers fit, or the file's name tells.

    Raises
    ------
    ValueError
        The numbers fit none, or more than one.
    """
    numbers, name = _numbers(file.read_text()), file.name.split(".")[0]
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
        raise ValueError(f"the file's {len(numbers)} numbers do not fit {what}")
    raise ValueError(f"the file's numbers fit several layouts: {', '.join(fitting)}")


class _MisfitError(Exception):
    """The numbers are not those of a layout."""


def _numbers(text: str) -> list[float]:
    """Return the numbers of a file; some comments end with one that counts."""
    text = re.sub(r"^#\s*N[^\S\n]*(\d+)\s*$", r"\1", text, flags=re.M)
    words = re.sub(r"#.*", "", text).split()
    numbers = [float(word) for word in words]
    if not all(map(math.isfinite, numbers)):
        raise ValueError("a number is not finite")
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


def _model(
    name: str,
    columns: Sequence[str],
    rows: Sequence[Row],
    sense: str,
    costs: Sequence[Sequence[float]],
) -> pyo.ConcreteModel:
    """Return a model of binary columns; terms of rows are by index."""
    model = pyo.ConcreteModel(name=name)
    model.x = pyo.Var(list(columns), domain=pyo.Binary)
    each = [model.x[one] for one in columns]

    def linear(terms: Mapping[int, float]) -> LinearExpression:
        variables = [each[k] for k in terms]
        return LinearExpression(linear_coefs=list(terms.values()), linear_vars=variables)

    by_name = {row.name: row for row in rows}
    model.row = pyo.Constraint(
        list(by_name),
        rule=lambda m, k: (by_name[k].lower, linear(by_name[k].terms), by_name[k].upper),
    )
    model.goal = pyo.Objective(
        [f"f{k + 1}" for k in range(len(costs))],
        rule=lambda m, k: linear({j: c for j, c in enumerate(costs[int(k[1:]) - 1]) if c}),
        sense=pyo.maximize if sense == "max" else pyo.minimize,
    )
    return model


def _names(letter: str, count: int) -> list[str]:
    return [f"{letter}{k + 1}" for k in range(count)]


def _knapsack(numbers: _Numbers, name: str) -> pyo.ConcreteModel:
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
    return _model(name, _names("x", items), limits, "max", profits)


def _by_rows(
    sense: str, limits: tuple[float | None, float | None]
) -> Callable[[_Numbers, str], pyo.ConcreteModel]:
    """Rows, columns; costs of two goals; for each row its number of columns, and these."""

    def read(numbers: _Numbers, name: str) -> pyo.ConcreteModel:
        rows, columns = numbers.count(), numbers.count()
        costs = [numbers.take(columns) for _ in range(2)]
        covered = [numbers.indices(columns) for _ in range(rows)]
        numbers.end()
        each = [Row(f"row{k + 1}", dict.fromkeys(of, 1.0), *limits) for k, of in enumerate(covered)]
        return _model(name, _names("x", columns), each, sense, costs)

    return read


def _partitioning(numbers: _Numbers, name: str) -> pyo.ConcreteModel:
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
    return _model(name, _names("x", columns), each, "min", costs)


def _facilities(numbers: _Numbers, name: str) -> pyo.ConcreteModel:
    """Users, services; costs of users by services, twice; costs of services, twice."""
    users, services = numbers.count(), numbers.count()
    serving = [numbers.take(users * services) for _ in range(2)]
    opening = [numbers.take(services) for _ in range(2)]
    numbers.end()
    pairs = [(i, j) for i in range(users) for j in range(services)]
    columns = [f"x{i + 1}_{j + 1}" for i, j in pairs] + _names("s", services)
    rows = list(_service_rows(users, services))
    costs = [[*one, *other] for one, other in zip(serving, opening, strict=True)]
    return _model(name, columns, rows, "min", costs)


def _service_rows(users: int, services: int) -> Iterator[Row]:
    for i in range(users):
        own = range(i * services, (i + 1) * services)
        yield Row(f"user{i + 1}", dict.fromkeys(own, 1.0), 1.0, 1.0)
        for j, column in enumerate(own):
            terms = {column: 1.0, users * services + j: -1.0}
            yield Row(f"open{i + 1}_{j + 1}", terms, upper=0.0)


#: Layouts by vOptLib's names of the classes: how to read them, and how names of files begin.
LAYOUTS: dict[str, tuple[Callable[[_Numbers, str], pyo.ConcreteModel], str]] = {
    "ukp": (_knapsack, r"\d*kp|[fk]\d{4}"),
    "scp": (_by_rows("min", (1.0, None)), r"\d*scp"),
    "spa": (_partitioning, r"bio"),
    "spp": (_by_rows("max", (None, 1.0)), r"\d*(spp|mis)"),
    "uflp": (_facilities, r"[fh]\d+-\d+$|didactic"),
}
