"""MathOptFormat: models as JSON, as JuMP writes them (jump.dev/MathOptFormat)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from placeopt.core.errors import DocumentError, UnsupportedError
from placeopt.core.files.documents import parse_json
from placeopt.exact.files.draft import Draft, Row

#: Limits that the vectors of a set have, in every entry.
_CONES = {
    "Nonnegatives": (0.0, math.inf),
    "Nonpositives": (-math.inf, 0.0),
    "Zeros": (0.0, 0.0),
    "Reals": (-math.inf, math.inf),
}
#: Limits that a set has, by the names of its numbers.
_INTERVALS = {
    "LessThan": (None, "upper"),
    "GreaterThan": ("lower", None),
    "EqualTo": ("value", "value"),
    "Interval": ("lower", "upper"),
}


def read_mof(text: str, name: str) -> Draft:
    """Read a MathOptFormat file; the entries of a vector objective are goals f1, f2, ..."""
    document = parse_json(text)
    if not isinstance(document, dict) or "variables" not in document:
        raise DocumentError(
            "this JSON is no MathOptFormat: it has no variables", remedy="give a .mof.json file"
        )
    try:
        return _Reader(document, name).draft
    except (KeyError, TypeError, AttributeError, ValueError, IndexError, OverflowError) as error:
        raise DocumentError(
            f"this is no MathOptFormat: {type(error).__name__} {error}",
            remedy="see jump.dev/MathOptFormat for what it has",
        ) from None


class _Reader:
    def __init__(self, document: Mapping[str, Any], name: str):
        self.draft = Draft(document.get("name") or name)
        version = document.get("version", {}).get("major", 1)
        if version != 1:
            raise UnsupportedError(f"version.major is {version}; placeopt reads MathOptFormat 1")
        for variable in document["variables"]:
            if variable["name"] in self.draft.columns:
                raise DocumentError("two variables have one name", path="variables")
            self.draft.column(variable["name"])
        for k, constraint in enumerate(document.get("constraints", ())):
            path = f"constraints[{k}]"
            self._add(constraint.get("name") or "", constraint["function"], constraint["set"], path)
        objective = document.get("objective", {"sense": "feasibility"})
        if objective["sense"] not in ("min", "max", "feasibility"):
            raise DocumentError(
                f"{objective['sense']!r}; legal: min, max, feasibility", path="objective.sense"
            )
        self.draft.sense = "max" if objective["sense"] == "max" else "min"
        if objective["sense"] != "feasibility":
            self._add_goals(objective["function"])

    def _add_goals(self, function: Mapping[str, Any]) -> None:
        rows = self._functions(function, "objective.function")
        is_vector = function["type"].startswith("Vector")
        names = [f"f{k + 1}" for k in range(len(rows))] if is_vector else ["objective"]
        for name, row in zip(names, rows, strict=True):
            self.draft.add_goal(name, self.draft.sense, row)

    # -- functions ---------------------------------------------------------------------------------

    def _functions(self, function: Mapping[str, Any], path: str) -> list[Row]:
        """Return the entries of a function as rows without limits."""
        kind = function["type"]
        if kind in ("Variable", "SingleVariable"):
            return [Row({self._variable(function, path): 1.0})]
        if kind == "VectorOfVariables":
            return [Row({self._known(one, path): 1.0}) for one in function["variables"]]
        if kind == "ScalarAffineFunction":
            return [self._sum(function["terms"], function.get("constant", 0.0), path)]
        if kind == "VectorAffineFunction":
            constants = function["constants"]
            terms: list[list[Any]] = [[] for _ in constants]
            for term in function["terms"]:
                place = term["output_index"]
                if not 1 <= place <= len(terms):
                    raise DocumentError(f"output_index {place} of {len(terms)}", path=path)
                terms[place - 1].append(term["scalar_term"])
            pairs = zip(terms, constants, strict=True)
            return [self._sum(one, constant, path) for one, constant in pairs]
        raise UnsupportedError(
            f"{path} is a {kind}; placeopt reads linear functions: write it with linear rows and "
            "binary variables"
        )

    def _sum(self, terms: Any, constant: float, path: str) -> Row:
        row = Row(constant=_finite(constant, path))
        for term in terms:
            name = self._known(term.get("variable") or term["variable_name"], path)
            row.terms[name] = row.terms.get(name, 0.0) + _finite(term["coefficient"], path)
        return row

    def _variable(self, function: Mapping[str, Any], path: str) -> str:
        return self._known(function.get("name") or function["variable"], path)

    def _known(self, name: str, path: str) -> str:
        if name not in self.draft.columns:
            raise DocumentError(f"there is no variable {name!r}", path=path)
        return name

    # -- constraints -------------------------------------------------------------------------------

    def _add(self, name: str, function: Any, limits: Mapping[str, Any], path: str) -> None:
        kind, rows = limits["type"], self._functions(function, f"{path}.function")
        is_variable = function["type"] in ("Variable", "SingleVariable")
        if kind in ("SOS1", "SOS2") and function["type"] == "VectorOfVariables":
            weights = [_finite(weight, path) for weight in limits["weights"]]
            columns = dict(zip(function["variables"], weights, strict=True))
            if len(columns) < len(weights) or len(set(weights)) < len(weights):
                raise DocumentError("a variable or a weight stands there twice", path=path)
            self.draft.sets[name or path] = int(kind[-1]), columns
        elif kind in ("Integer", "ZeroOne", "Semicontinuous", "Semiinteger") and is_variable:
            self._restrict(self._variable(function, path), kind, limits, path)
        elif kind in _INTERVALS:
            ends = [_limit(limits, key, path) for key in _INTERVALS[kind]]
            lower = -math.inf if ends[0] is None else ends[0]
            upper = math.inf if ends[1] is None else ends[1]
            if is_variable:
                self._tighten(self._variable(function, path), lower, upper)
            else:
                self._add_rows(name, rows, lower, upper)
        elif kind in _CONES:
            self._add_rows(name, rows, *_CONES[kind])
        else:
            raise UnsupportedError(
                f"{path}, a {function['type']}, is in the set {kind}, which is no linear row; "
                "write it with linear rows and binary variables"
            )

    def _add_rows(self, name: str, rows: list[Row], lower: float, upper: float) -> None:
        for k, row in enumerate(rows):
            row.lower, row.upper = lower, upper
            own = name if len(rows) == 1 or not name else f"{name}[{k + 1}]"
            self.draft.add_row(own, row)

    def _tighten(self, name: str, lower: float, upper: float) -> None:
        column = self.draft.column(name)
        if column.may_be_zero:  # a limit holds where it is 0, too
            self.draft.add_row("", Row({name: 1.0}, lower, upper))
            return
        column.lower = lower if column.lower is None else max(column.lower, lower)
        column.upper = upper if column.upper is None else min(column.upper, upper)

    def _restrict(self, name: str, kind: str, limits: Mapping[str, Any], path: str) -> None:
        column = self.draft.column(name)
        column.is_whole |= kind in ("Integer", "Semiinteger")
        column.is_binary |= kind == "ZeroOne"
        if kind.startswith("Semi"):
            if column.may_be_zero:
                raise DocumentError(f"{name!r} is semicontinuous twice", path=path)
            if column.lower is not None or column.upper is not None:
                old = Row({name: 1.0}, *column.ends())
                self.draft.add_row("", old)
            column.lower, column.upper = (_limit(limits, key, path) for key in ("lower", "upper"))
            column.may_be_zero = True


def _finite(value: Any, path: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or math.isinf(value):
        raise DocumentError(f"{value!r} is no finite number", path=path)
    return float(value)


def _limit(limits: Mapping[str, Any], key: str | None, path: str) -> float | None:
    return None if key is None else _finite(limits[key], f"{path}.set.{key}")
