"""MathOptFormat: models as JSON, as JuMP writes them (jump.dev/MathOptFormat)."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from placeopt.core.errors import DocumentError, UnsupportedError
from placeopt.exact.files.content import Column, Content, OrderedSet, Row

#: Limits that the vectors of a set have, in every entry.
_CONES = {
    "Nonnegatives": (0.0, math.inf),
    "Nonpositives": (-math.inf, 0.0),
    "Zeros": (0.0, 0.0),
    "Reals": (-math.inf, math.inf),
}


def read_mof(text: str, name: str) -> Content:
    """Read a MathOptFormat file; the entries of a vector objective are goals f1, f2, ..."""
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        raise DocumentError(
            f"this is no JSON: {error.msg}, in line {error.lineno}", remedy="give a .mof.json file"
        ) from None
    if not isinstance(document, dict) or "variables" not in document:
        raise DocumentError(
            "this JSON is no MathOptFormat: it has no variables", remedy="give a .mof.json file"
        )
    try:
        return _Reader(document, name).content()
    except (KeyError, TypeError, AttributeError, ValueError, IndexError) as error:
        raise DocumentError(
            f"this is no MathOptFormat: {type(error).__name__} {error}",
            remedy="see jump.dev/MathOptFormat for what it has",
        ) from None


class _Reader:
    def __init__(self, document: Mapping[str, Any], name: str):
        self.document, self.name = document, name
        names = [variable["name"] for variable in document["variables"]]
        self.index = {one: k for k, one in enumerate(names)}
        if len(self.index) < len(names):
            raise DocumentError("two variables have one name", path="variables")
        self.columns = [Column(one, -math.inf) for one in names]
        self.rows: list[Row] = []
        self.sets: list[OrderedSet] = []

    def content(self) -> Content:
        for k, constraint in enumerate(self.document.get("constraints", ())):
            name = constraint.get("name") or f"c{k + 1}"
            self._add(name, constraint["function"], constraint["set"], f"constraints[{k}]")
        objective = self.document.get("objective", {"sense": "feasibility"})
        sense = objective["sense"]
        goals = [] if sense == "feasibility" else self._goals(objective["function"])
        return Content(
            self.document.get("name") or self.name,
            self.columns,
            self.rows,
            tuple((sense, goal) for goal in goals),
            "max" if sense == "max" else "min",
            self.sets,
        )

    def _goals(self, function: Mapping[str, Any]) -> list[Row]:
        rows = self._functions(function, "objective.function")
        is_vector = function["type"].startswith("Vector")
        names = [f"f{k + 1}" for k in range(len(rows))] if is_vector else ["objective"]
        return [replace(row, name=name) for row, name in zip(rows, names, strict=True)]

    def _functions(self, function: Mapping[str, Any], path: str) -> list[Row]:
        """Return the entries of a function as rows without limits."""
        kind = function["type"]
        if kind in ("Variable", "SingleVariable"):
            return [
                Row("", {self._column(function.get("name") or function["variable"], path): 1.0})
            ]
        if kind == "VectorOfVariables":
            return [Row("", {self._column(one, path): 1.0}) for one in function["variables"]]
        if kind == "ScalarAffineFunction":
            return [self._sum(function["terms"], function.get("constant", 0.0), path)]
        if kind == "VectorAffineFunction":
            constants = function["constants"]
            terms: list[list[Any]] = [[] for _ in constants]
            for term in function["terms"]:
                terms[int(term["output_index"]) - 1].append(term["scalar_term"])
            pairs = zip(terms, constants, strict=True)
            return [self._sum(one, constant, path) for one, constant in pairs]
        raise UnsupportedError(
            f"{path} is a {kind}; placeopt reads linear functions: write it with linear rows and "
            "binary variables"
        )

    def _sum(self, terms: Any, constant: float, path: str) -> Row:
        summed: dict[int, float] = {}
        for term in terms:
            column = self._column(term.get("variable") or term["variable_name"], path)
            summed[column] = summed.get(column, 0.0) + float(term["coefficient"])
        return Row("", summed, constant=float(constant))

    def _column(self, name: str, path: str) -> int:
        if name not in self.index:
            raise DocumentError(f"there is no variable {name!r}", path=path)
        return self.index[name]

    # -- constraints -------------------------------------------------------------------------------

    def _add(self, name: str, function: Any, limits: Mapping[str, Any], path: str) -> None:
        kind = limits["type"]
        rows = self._functions(function, f"{path}.function")
        if kind in ("SOS1", "SOS2"):
            columns = [next(iter(row.terms)) for row in rows]
            weights = [float(weight) for weight in limits["weights"]]
            self.sets.append(OrderedSet(name, int(kind[-1]), columns, weights))
        elif kind in ("Integer", "ZeroOne", "Semicontinuous", "Semiinteger"):
            self._restrict(next(iter(rows[0].terms)), kind, limits)
        elif kind in _CONES:
            self._limit(name, rows, *_CONES[kind])
        elif kind in ("LessThan", "GreaterThan", "EqualTo", "Interval"):
            lower = limits.get("value", limits.get("lower", -math.inf))
            upper = limits.get("value", limits.get("upper", math.inf))
            self._limit(name, rows, float(lower), float(upper))
        else:
            raise UnsupportedError(
                f"{path} {name!r} is in the set {kind}, which is no linear row; write it with "
                "linear rows and binary variables"
            )

    def _restrict(self, column: int, kind: str, limits: Mapping[str, Any]) -> None:
        old = self.columns[column]
        if kind == "Integer":
            new = replace(old, kind="whole")
        elif kind == "ZeroOne":
            new = replace(old, kind="whole", lower=max(0.0, old.lower), upper=min(1.0, old.upper))
        else:
            new = replace(
                old,
                lower=float(limits["lower"]),
                upper=float(limits["upper"]),
                kind="semi-whole" if kind == "Semiinteger" else "semi-real",
            )
        self.columns[column] = new

    def _limit(self, name: str, rows: list[Row], lower: float, upper: float) -> None:
        """Add rows; one of a single variable is a bound."""
        for k, row in enumerate(rows):
            low, high = lower - row.constant, upper - row.constant
            (column, coefficient), *more = [*row.terms.items()] or [(0, 0.0)]
            if not more and coefficient == 1.0 and row.constant == 0.0:
                old = self.columns[column]
                self.columns[column] = replace(
                    old, lower=max(old.lower, low), upper=min(old.upper, high)
                )
                continue
            one = name if len(rows) == 1 else f"{name}[{k + 1}]"
            self.rows.append(Row(one, row.terms, low, high))
