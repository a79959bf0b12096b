"""Small linear models, drawn at random, with every vector that they can reach.

The brute force is exact, in fractions, and shares no code with placeopt: all whole numbers are
tried, and for each of them all vertices of the real variables.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import pyomo.environ as pyo
from pyomo.core.base.range import NumericRange
from pyomo.gdp import Disjunction

import placeopt

Row = tuple[list[Fraction], Fraction | None, Fraction | None]


@dataclass
class Goal:
    """A sum of coefficients times variables, and a constant."""

    coefficients: list[Fraction]
    constant: Fraction = Fraction(0)
    sense: str = "min"


@dataclass
class Case:
    """A model: whole variables by their legal values, then real ones by their bounds.

    `legal` is whatever else whole variables must keep; `build` makes the Pyomo model where it is
    not plain.
    """

    kind: str
    whole: list[list[Fraction]]
    real: list[tuple[Fraction | None, Fraction | None]] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    goals: list[Goal] = field(default_factory=list)
    gap: dict[str, float] | None = None
    legal: Callable[[tuple[Fraction, ...]], bool] = lambda x: True
    build: Callable[[Case], pyo.ConcreteModel] | None = None
    is_unbounded: bool = False
    first_points: int | None = None  # stop there, and go on from that front

    @property
    def names(self) -> list[str]:
        """The names of the goals."""
        return [f"g{k}" for k in range(len(self.goals))]

    def model(self) -> pyo.ConcreteModel:
        """Return a new Pyomo model."""
        return plain(self) if self.build is None else self.build(self)

    def points(self) -> Iterator[tuple[Fraction, ...]]:
        """Yield solutions: all whole ones, each with all its vertices."""
        for x in itertools.product(*self.whole):
            if self.legal(x):
                yield from (x + y for y in vertices(self, x))

    def vector(self, solution: Sequence[Fraction]) -> tuple[Fraction, ...]:
        """Return the goals' values at a solution, as they are: neither negated nor scaled."""
        return tuple(
            sum((c * v for c, v in zip(g.coefficients, solution, strict=True)), g.constant)
            for g in self.goals
        )

    def is_feasible(self, solution: Sequence[Fraction], slack: Fraction) -> bool:
        """Whether a solution keeps everything; rows and bounds of real variables up to slack."""
        count = len(self.whole)
        if any(v not in values for v, values in zip(solution, self.whole, strict=False)):
            return False
        return self.legal(tuple(solution[:count])) and all(
            (low is None or value >= low - slack * size)
            and (high is None or value <= high + slack * size)
            for value, low, high, size in self._values(solution)
        )

    def _values(self, solution: Sequence[Fraction]) -> Iterator[tuple[Any, Any, Any, Fraction]]:
        count = len(self.whole)
        for value, (low, high) in zip(solution[count:], self.real, strict=True):
            yield value, low, high, 1 + abs(value)
        for coefficients, low, high in self.rows:
            terms = [c * v for c, v in zip(coefficients, solution, strict=True)]
            only_whole = not any(coefficients[count:])
            yield sum(terms, Fraction(0)), low, high, 0 if only_whole else 1 + sum(map(abs, terms))


def vertices(case: Case, x: tuple[Fraction, ...]) -> list[tuple[Fraction, ...]]:
    """Return the vertices of what is left of up to two real variables."""
    count, planes = len(x), []
    for coefficients, low, high in case.rows:
        rest = coefficients[count:]
        base = sum((c * v for c, v in zip(coefficients, x, strict=False)), Fraction(0))
        planes += [(rest, high - base)] if high is not None else []
        planes += [([-c for c in rest], base - low)] if low is not None else []
    for k, (low, high) in enumerate(case.real):
        unit = [Fraction(int(j == k)) for j in range(len(case.real))]
        planes += [(unit, high)] if high is not None else []
        planes += [([-c for c in unit], -low)] if low is not None else []
    if not case.real:
        return [()] if all(limit >= 0 for _, limit in planes) else []
    candidates: set[tuple[Fraction, ...]] = set()
    for chosen in itertools.combinations(planes, len(case.real)):
        point = _meet(chosen)
        if point is not None:
            candidates.add(point)
    return [
        point
        for point in sorted(candidates)
        if all(sum(a * v for a, v in zip(c, point, strict=True)) <= limit for c, limit in planes)
    ]


def _meet(planes: Sequence[tuple[list[Fraction], Fraction]]) -> tuple[Fraction, ...] | None:
    """Return where one or two planes meet, None where they are parallel."""
    if len(planes) == 1:
        (a,), limit = planes[0]
        return (limit / a,) if a else None
    ((a, b), p), ((c, d), q) = planes
    det = a * d - b * c
    return ((p * d - b * q) / det, (a * q - p * c) / det) if det else None


def efficient(case: Case, vectors: set[tuple[Fraction, ...]]) -> list[tuple[Fraction, ...]]:
    """Return the vectors that no other dominates."""
    signs = [1 if goal.sense == "min" else -1 for goal in case.goals]
    kept: list[tuple[Fraction, ...]] = []
    for v in sorted(vectors, key=lambda v: [s * a for s, a in zip(signs, v, strict=True)]):
        if not any(all(s * a <= s * b for s, a, b in zip(signs, w, v, strict=True)) for w in kept):
            kept.append(v)
    return sorted(kept)


# -- pyomo -----------------------------------------------------------------------------------------


def plain(case: Case) -> pyo.ConcreteModel:
    """Return variables, rows and goals as they stand."""
    model = pyo.ConcreteModel()
    model.x = pyo.Var(range(len(case.whole) + len(case.real)))
    for j, values in enumerate(case.whole):
        first, last = values[0], values[-1]
        plain_range = [first + k for k in range(len(values))] == values and first.denominator == 1
        if plain_range:
            model.x[j].domain = pyo.Binary if (first, last) == (0, 1) else pyo.Integers
            model.x[j].setlb(int(first))
            model.x[j].setub(int(last))
        else:
            domain = pyo.Set(initialize=[float(v) for v in values])
            model.add_component(f"domain{j}", domain)
            model.x[j].domain = domain
    for k, (low, high) in enumerate(case.real):
        model.x[len(case.whole) + k].setlb(None if low is None else float(low))
        model.x[len(case.whole) + k].setub(None if high is None else float(high))
    add_rows(model, case.rows)
    add_goals(model, case)
    return model


def body(model: pyo.ConcreteModel, coefficients: Sequence[Fraction]) -> Any:
    """Return a sum over ``model.x``."""
    return sum(float(c) * model.x[j] for j, c in enumerate(coefficients) if c)


def add_rows(model: pyo.ConcreteModel, rows: Sequence[Row]) -> None:
    """Add rows that are not empty; an empty one that does not hold becomes one that cannot."""
    model.rows = pyo.ConstraintList()
    for coefficients, low, high in rows:
        limits = (None if low is None else float(low), None if high is None else float(high))
        if any(coefficients):
            model.rows.add((limits[0], body(model, coefficients), limits[1]))
        elif not (limits[0] or 0) <= 0 <= (0 if limits[1] is None else limits[1]):
            model.rows.add(model.x[0] >= 10**4)


def add_goals(model: pyo.ConcreteModel, case: Case) -> None:
    """Add the goals, by name."""
    for name, goal in zip(case.names, case.goals, strict=True):
        sense = pyo.minimize if goal.sense == "min" else pyo.maximize
        expression = body(model, goal.coefficients) + float(goal.constant)
        model.add_component(name, pyo.Objective(expr=expression, sense=sense))


# -- draws -----------------------------------------------------------------------------------------


class Draw:
    """Random numbers that are short decimals."""

    def __init__(self, kind: str, seed: int):
        self.rng = np.random.default_rng([sum(map(ord, kind)), len(kind), seed])
        self.point: list[Fraction] = []  # most rows keep it

    def int(self, low: int, high: int) -> int:
        """Return a whole number, `high` included."""
        return int(self.rng.integers(low, high + 1))

    def one(self, *values: Any) -> Any:
        """Return one of the values."""
        return values[self.int(0, len(values) - 1)]

    def number(self, size: float, digits: int = 0) -> Fraction:
        """Return a decimal number of at most that size."""
        return Fraction(round(float(self.rng.uniform(-size, size)) * 10**digits), 10**digits)

    def numbers(self, count: int, size: float, digits: int = 0) -> list[Fraction]:
        """Return some numbers; about a fifth of them is zero."""
        return [
            Fraction(0) if self.rng.random() < 0.2 else self.number(size, digits)
            for _ in range(count)
        ]

    def sense(self) -> str:
        """Return a sense."""
        return self.one("min", "max")

    def whole(self, count: int, most: int = 3, low: int = 0) -> list[list[Fraction]]:
        """Return ranges of whole numbers."""
        ranges = []
        for _ in range(count):
            first = self.int(low, 0)
            ranges.append([Fraction(v) for v in range(first, first + self.int(1, most) + 1)])
            self.point.append(self.one(*ranges[-1]))
        return ranges

    def real(self, count: int, low: int, high: int) -> list[tuple[Fraction, Fraction]]:
        """Return bounds of real numbers, around zero."""
        bounds = []
        for _ in range(count):
            bounds.append((Fraction(self.int(low, 0)), Fraction(self.int(1, high))))
            self.point.append(self.one(*bounds[-1]))
        return bounds

    def row(self, count: int, size: float, digits: int = 0) -> Row:
        """Return a row that the `point` keeps, mostly."""
        coefficients = self.numbers(count, size, digits)
        point = (self.point + [Fraction(0)] * count)[:count]
        value = sum((c * v for c, v in zip(coefficients, point, strict=True)), Fraction(0))
        spare = self.number(size, digits) if self.int(0, 9) == 0 else abs(self.number(size, digits))
        kind = self.int(0, 9)
        if kind == 0:
            return coefficients, value - abs(spare), value + spare
        return (
            (coefficients, None, value + spare) if kind < 6 else (coefficients, value - spare, None)
        )


def goals_of(
    draw: Draw, count: int, variables: int, size: float, digits: int = 0, real: int = 0
) -> list[Goal]:
    """Return goals; the last `variables` - `real` variables stand in the first goal alone."""
    goals = []
    for k in range(count):
        coefficients = draw.numbers(variables, size, digits)
        if k:
            coefficients[variables - real :] = [Fraction(0)] * real
        goals.append(Goal(coefficients, draw.number(size, digits), draw.sense()))
    return goals


def binary(draw: Draw) -> Case:
    """Binary variables, two to four goals of small whole numbers."""
    n = draw.int(3, 8)
    return Case(
        "binary",
        draw.whole(n, 1),
        rows=[draw.row(n, 9) for _ in range(draw.int(0, 3))],
        goals=goals_of(draw, draw.int(1, 4), n, 12),
    )


def integer(draw: Draw) -> Case:
    """Whole numbers of both signs, decimal coefficients."""
    n, digits = draw.int(2, 4), draw.int(0, 3)
    return Case(
        "integer",
        draw.whole(n, 4, -3),
        rows=[draw.row(n, 9, digits) for _ in range(draw.int(0, 3))],
        goals=goals_of(draw, draw.int(1, 4), n, 12, digits),
    )


def mixed(draw: Draw) -> Case:
    """One goal has real terms."""
    n, real = draw.int(2, 5), draw.int(1, 2)
    return Case(
        "mixed",
        draw.whole(n, 2),
        draw.real(real, -3, 9),
        [draw.row(n + real, 6, 1) for _ in range(draw.int(1, 3))],
        goals_of(draw, draw.int(1, 3), n + real, 9, draw.int(0, 3), real),
    )


def big_m(draw: Draw) -> Case:
    """A real amount that a binary variable allows, with a far too large factor."""
    n, factor = draw.int(2, 5), Fraction(10) ** draw.int(3, 8)
    whole, real = draw.whole(n, 1), draw.real(1, 0, 20)
    draw.point[0] = Fraction(1)
    rows: list[Row] = [([-factor] + [Fraction(0)] * (n - 1) + [Fraction(1)], None, Fraction(0))]
    rows.append(([Fraction(0)] * n + [Fraction(-1)], None, draw.number(5, 1)))
    rows += [draw.row(n + 1, 6, 1) for _ in range(draw.int(0, 2))]
    return Case(
        "big_m",
        whole,
        real,
        rows,
        goals_of(draw, draw.int(2, 3), n + 1, 9, 2, 1),
    )


def ranges(draw: Draw) -> Case:
    """Rows between two limits, equations too."""
    n = draw.int(3, 6)
    whole, rows = draw.whole(n, 2, -1), []
    for _ in range(draw.int(1, 3)):
        coefficients = draw.numbers(n, 5)
        value = sum((c * v for c, v in zip(coefficients, draw.point, strict=True)), Fraction(0))
        low = value - draw.int(0, 2)
        rows.append((coefficients, low, low + draw.one(0, 1, 3)))
    return Case("ranges", whole, rows=rows, goals=goals_of(draw, draw.int(2, 3), n, 9))


def decimals(draw: Draw) -> Case:
    """Decimals of six digits, in rows and goals."""
    n = draw.int(3, 6)
    return Case(
        "decimals",
        draw.whole(n, 2),
        rows=[draw.row(n, 9, 6) for _ in range(draw.int(1, 2))],
        goals=goals_of(draw, draw.int(2, 3), n, 30, 6),
    )


def floats(draw: Draw) -> Case:
    """Goals of whole variables whose coefficients are no short decimals."""
    n = draw.int(3, 7)
    whole = draw.whole(n, 2)
    goals = [
        Goal([Fraction(float(v)) for v in draw.rng.normal(0, 5, n)], Fraction(0), draw.sense())
        for _ in range(draw.int(1, 3))
    ]
    return Case("floats", whole, rows=[draw.row(n, 9) for _ in range(2)], goals=goals)


def large(draw: Draw) -> Case:
    """Values of up to 1e9 that differ by one."""
    n, size = draw.int(3, 6), 10.0 ** draw.int(6, 9)
    goals = [
        Goal(
            [Fraction(round(size)) * draw.int(-1, 1) + draw.int(-3, 3) for _ in range(n)],
            draw.number(size),
            draw.sense(),
        )
        for _ in range(draw.int(2, 3))
    ]
    row = [Fraction(round(size)) + draw.int(-2, 2) for _ in range(n)]
    limit = sum(row[: draw.int(1, n)], Fraction(draw.int(-2, 1)))
    return Case("large", draw.whole(n, 2), rows=[(row, None, limit)], goals=goals)


def scales(draw: Draw) -> Case:
    """Coefficients from a thousandth to a billion in one goal, with and without a real term."""
    n, real = draw.int(3, 6), draw.int(0, 1)
    whole, bounds, goals = draw.whole(n, 2), draw.real(real, 0, 3), []
    for k in range(draw.int(2, 3)):
        coefficients = [
            draw.number(10.0 ** draw.int(-1, 9), 3) if draw.int(0, 4) else Fraction(0)
            for _ in range(n + real)
        ]
        if real:
            coefficients[-1] = draw.number(4, 2) if k == 0 else Fraction(0)
        goals.append(Goal(coefficients, Fraction(0), draw.sense()))
    rows = [draw.row(n + real, 9, 1) for _ in range(draw.int(0, 2))]
    return Case("scales", whole, bounds, rows, goals)


def base(draw: Draw) -> Case:
    """A real goal of up to a billion, in which small extras count."""
    n, size = draw.int(4, 8), 10 ** draw.int(5, 9)
    first = [Fraction(size)] + [draw.number(3, 2) for _ in range(n - 1)] + [Fraction(1)]
    second = [Fraction(0)] + [Fraction(draw.int(1, 3)) for _ in range(n - 1)] + [Fraction(0)]
    whole = draw.whole(n, 1)
    rows = [draw.row(n + 1, 9) for _ in range(draw.int(0, 1))]
    goals = [Goal(first, Fraction(0), "max"), Goal(second)]
    bounds = [(Fraction(0), Fraction(1, 2))]
    return Case("base", whole, bounds, rows, goals)


def tiny(draw: Draw) -> Case:
    """Goals that range over a ten-millionth."""
    n, real = draw.int(3, 6), draw.int(0, 1)
    goals = goals_of(draw, draw.int(2, 3), n + real, 9e-8, 9, real)
    whole, bounds = draw.whole(n, 2), draw.real(real, 0, 1)
    return Case("tiny", whole, bounds, [draw.row(n + real, 5)], goals)


def hair(draw: Draw) -> Case:
    """Rows that the best points break by a hair, or just keep."""
    n, digits = draw.int(3, 5), draw.int(0, 3)
    whole = draw.whole(n, 2)
    rows: list[Row] = []
    for _ in range(draw.int(1, 2)):
        coefficients = draw.numbers(n, 9, digits)
        at = [draw.one(*values) for values in whole]
        value = sum((c * v for c, v in zip(coefficients, at, strict=True)), Fraction(0))
        miss = draw.one(-1, 0, 0, 1) * Fraction(1, 10 ** draw.int(4, 8))
        rows.append((coefficients, None, value + miss))
    return Case("hair", whole, rows=rows, goals=goals_of(draw, 2, n, 9))


def alike(draw: Draw) -> Case:
    """Goals that are equal, or nearly parallel; variables that are copies of each other."""
    n = draw.int(3, 5)
    first = draw.numbers(n, 9)
    near = [c + draw.one(0, 0, 1, -1) * Fraction(1, 10 ** draw.int(0, 5)) for c in first]
    goals = [Goal(first), Goal(near, Fraction(1), draw.sense()), Goal(list(first))]
    goals, whole = goals[: draw.int(2, 3)], draw.whole(n, 2, -1)
    rows = [draw.row(n, 9) for _ in range(draw.int(0, 2))]
    for goal in goals:
        goal.coefficients[-1] = goal.coefficients[0]
    rows = [([*c[:-1], c[0]], low, high) for c, low, high in rows]
    return Case("alike", whole, rows=rows, goals=goals)


def trivial(draw: Draw) -> Case:
    """Constant goals, no rows, one vector, variables that are fixed or stand nowhere."""
    n = draw.int(1, 3)
    goals = [
        Goal([Fraction(0)] * n if draw.int(0, 1) else draw.numbers(n, 3), draw.number(9, 1))
        for _ in range(draw.int(1, 3))
    ]
    whole = [[values[0]] if draw.int(0, 1) else values for values in draw.whole(n, 2, -1)]
    rows = [draw.row(n, 3)] if draw.int(0, 1) else []
    return Case("trivial", whole, rows=rows, goals=goals, build=_with_fixed)


def _with_fixed(case: Case) -> pyo.ConcreteModel:
    model = plain(case)
    for j, values in enumerate(case.whole):
        if len(values) == 1:
            model.x[j].fix(int(values[0]))
    model.nowhere = pyo.Var(bounds=(2, 5))
    return model


def domains(draw: Draw) -> Case:
    """Whole numbers with nothing between zero and a least amount, below or above."""
    whole = []
    for _ in range(draw.int(1, 3)):
        first, more = draw.int(2, 9), draw.int(1, 4)
        sign = draw.one(1, -1)
        whole.append(sorted(Fraction(sign * v) for v in (0, *range(first, first + more))))
    draw.point += [draw.one(*values) for values in whole]
    whole += draw.whole(draw.int(0, 2), 2)
    n = len(whole)
    return Case(
        "domains",
        whole,
        rows=[draw.row(n, 6) for _ in range(draw.int(0, 2))],
        goals=goals_of(draw, draw.int(1, 3), n, 9, draw.int(0, 1)),
    )


def semicontinuous(draw: Draw) -> Case:
    """A real amount that is zero or at least something: twice a model, so in two parts."""
    n, least = draw.int(2, 4), Fraction(draw.int(1, 4))
    most = least + draw.int(1, 5)
    zero_or = [Fraction(0), Fraction(1)]
    rows: list[Row] = [
        ([least] + [Fraction(0)] * (n - 1) + [Fraction(-1)], None, Fraction(0)),
        ([-most] + [Fraction(0)] * (n - 1) + [Fraction(1)], None, Fraction(0)),
    ]
    whole = [zero_or, *draw.whole(n - 1, 2)]
    draw.point.insert(0, Fraction(1))
    draw.point.append(least)
    own = [draw.row(n + 1, 6) for _ in range(draw.int(1, 2))]
    goals = goals_of(draw, 2, n + 1, 9, 1, 1)
    for linear in [*(row[0] for row in own), *(goal.coefficients for goal in goals)]:
        linear[0] = Fraction(0)

    def build(case: Case) -> pyo.ConcreteModel:
        model = pyo.ConcreteModel()
        model.x = pyo.Var(range(n + 1))
        model.x[0].setlb(0)
        model.x[0].setub(1)
        pieces = (NumericRange(0, 0, 0), NumericRange(int(least), int(most), 0))
        model.pieces = pyo.RangeSet(ranges=pieces)
        model.x[n].domain = model.pieces
        for j, values in enumerate(case.whole[1:], start=1):
            model.x[j].domain = pyo.Integers
            model.x[j].setlb(int(values[0]))
            model.x[j].setub(int(values[-1]))
        add_rows(model, own)
        add_goals(model, case)
        return model

    return Case("semicontinuous", whole, [(Fraction(0), most)], [*rows, *own], goals, build=build)


def logical(draw: Draw) -> Case:
    """Implications between binary variables."""
    n = draw.int(4, 7)
    pairs = [
        (a, (a + draw.int(1, n - 1)) % n)
        for a in (draw.int(0, n - 1) for _ in range(draw.int(1, 4)))
    ]
    goals = goals_of(draw, draw.int(2, 3), n, 9)

    def build(case: Case) -> pyo.ConcreteModel:
        model = plain(case)
        model.chosen = pyo.BooleanVar(range(n))
        for j in range(n):
            model.chosen[j].associate_binary_var(model.x[j])
        model.implied = pyo.LogicalConstraintList()
        for a, b in pairs:
            model.implied.add(pyo.implies(model.chosen[a], model.chosen[b]))
        pyo.TransformationFactory("core.logical_to_linear").apply_to(model)
        return model

    return Case(
        "logical",
        [[Fraction(0), Fraction(1)]] * n,
        rows=[draw.row(n, 6)],
        goals=goals,
        legal=lambda x: all(x[a] <= x[b] for a, b in pairs),
        build=build,
    )


def disjunctions(draw: Draw) -> Case:
    """One of two rows holds, by big-M or by the hull."""
    n, how = draw.int(2, 4), draw.one("gdp.bigm", "gdp.hull")
    whole = draw.whole(n, 3)
    either = [[draw.row(n, 5)[0], Fraction(draw.int(-4, 6))] for _ in range(2)]
    goals = goals_of(draw, draw.int(2, 3), n, 9)

    def build(case: Case) -> pyo.ConcreteModel:
        model = plain(case)
        parts = [
            [body(model, c) <= int(limit)]
            if any(c)
            else [model.x[0] <= (99 if limit >= 0 else -99)]
            for c, limit in either
        ]
        model.either = Disjunction(expr=parts)
        pyo.TransformationFactory(how).apply_to(model)
        return model

    def legal(x: tuple[Fraction, ...]) -> bool:
        return any(sum(a * v for a, v in zip(c, x, strict=True)) <= lim for c, lim in either)

    return Case("disjunctions", whole, goals=goals, legal=legal, build=build)


def piecewise(draw: Draw) -> Case:
    """Costs that are curves of pieces, in all ways that Pyomo can write them."""
    count, last = draw.int(1, 2), 4
    how = draw.one("MC", "CC", "DCC", "LOG", "DLOG", "INC", "SOS2")
    curves = [[draw.number(9, draw.int(0, 2)) for _ in range(last + 1)] for _ in range(count)]
    weights = [draw.int(1, 4) for _ in range(count)]
    whole = [[Fraction(v) for v in range(last + 1)] for _ in range(count)]
    goals = [Goal([Fraction(1)] * count), Goal([Fraction(w) for w in weights], sense="max")]
    case = Case("piecewise", whole, goals=goals)
    case.vector = lambda x: (  # type: ignore[method-assign]
        sum((curves[j][int(x[j])] for j in range(count)), Fraction(0)),
        sum((weights[j] * x[j] for j in range(count)), Fraction(0)),
    )

    def build(case: Case) -> pyo.ConcreteModel:
        model = pyo.ConcreteModel()
        model.x = pyo.Var(range(count), domain=pyo.Integers, bounds=(0, last))
        model.at = pyo.Var(range(count), bounds=(0, last))
        model.y = pyo.Var(range(count), bounds=(-100, 100))
        model.same = pyo.Constraint(range(count), rule=lambda m, j: m.at[j] == m.x[j])
        values = {j: [float(v) for v in curve] for j, curve in enumerate(curves)}
        for j in range(count):
            model.add_component(
                f"curve{j}",
                pyo.Piecewise(
                    model.y[j],
                    model.at[j],
                    pw_pts=list(range(last + 1)),
                    pw_constr_type="EQ",
                    pw_repn=how,
                    f_rule=values[j],
                    warn_domain_coverage=False,
                ),
            )
        model.g0 = pyo.Objective(expr=sum(model.y.values()))
        bodies = sum(w * model.x[j] for j, w in enumerate(weights))
        model.g1 = pyo.Objective(expr=bodies, sense=pyo.maximize)
        return model

    case.build = build
    return case


def unbounded(draw: Draw) -> Case:
    """A goal that can improve without end, or one that could if a row did not stop it."""
    n, stopped = draw.int(2, 3), draw.int(0, 1)
    whole = draw.whole(n, 2)
    goals = goals_of(draw, 2, n, 9)
    rows = [draw.row(n, 6)]

    def build(case: Case) -> pyo.ConcreteModel:
        model = plain(case)
        model.far = pyo.Var(domain=draw_domain, bounds=(0, None))
        factor = -1 if goals[0].sense == "min" else 1
        model.g0.expr = model.g0.expr + factor * model.far
        if stopped:
            model.stop = pyo.Constraint(expr=model.far <= 0)
        return model

    draw_domain = draw.one(pyo.NonNegativeIntegers, pyo.NonNegativeReals)
    return Case("unbounded", whole, rows=rows, goals=goals, build=build, is_unbounded=not stopped)


def gap_of_one(draw: Draw) -> Case:
    """One goal has real terms, and a gap of its own."""
    case = mixed(draw)
    case.kind = "gap_of_one"
    case.gap = {"g0": float(draw.one(0.5, 1, 2))}
    return case


def two_real(draw: Draw) -> Case:
    """Two goals have real terms; one of them, or both, have a gap."""
    n, real = draw.int(1, 4), draw.int(1, 2)
    goals = goals_of(draw, draw.int(2, 3), n + real, 9, draw.int(0, 3))
    for goal in goals[2:]:
        goal.coefficients[n:] = [Fraction(0)] * real
    whole, bounds = draw.whole(n, 2), draw.real(real, -3, 6)
    rows = [draw.row(n + real, 6, 1) for _ in range(draw.int(1, 3))]
    gaps = draw.one({"g1": 2.0}, {"g0": 1.5}, {"g0": 2.0, "g1": 2.5})
    return Case("two_real", whole, bounds, rows, goals, gaps)


def linear(draw: Draw) -> Case:
    """A linear program of two variables, with two or three goals."""
    size, bounds = draw.int(2, 3), draw.real(2, -4, 9)
    rows = [draw.row(2, 9, draw.int(0, 2)) for _ in range(draw.int(2, 6))]
    goals = goals_of(draw, size, 2, 9, draw.int(0, 2))
    gaps = {f"g{k}": float(draw.one(2, 3, 5)) for k in range(draw.int(1, 2), size)}
    gaps["g1"] = 2.0
    return Case("linear", [], bounds, rows, goals, gaps)


def extreme(draw: Draw) -> Case:
    """A linear program without a gap."""
    case = linear(draw)
    case.kind, case.gap = "extreme", None
    return case


def stopped(draw: Draw) -> Case:
    """A search that is stopped, and gone on with: whole goals of all sizes, or one real one."""
    case = draw.one(integer, large, mixed, decimals)(draw)
    case.kind, case.first_points = "stopped", draw.int(1, 4)
    return case


#: What to draw a case by, by name.
KINDS: dict[str, Callable[[Draw], Case]] = {
    function.__name__: function
    for function in (
        binary,
        integer,
        mixed,
        big_m,
        ranges,
        decimals,
        floats,
        large,
        scales,
        base,
        tiny,
        hair,
        alike,
        trivial,
        domains,
        semicontinuous,
        logical,
        disjunctions,
        piecewise,
        unbounded,
        gap_of_one,
        two_real,
        linear,
        extreme,
        stopped,
    )
}


def drawn(kind: str, seed: int) -> Case:
    """Return a case."""
    return KINDS[kind](Draw(kind, seed))


# -- judging ---------------------------------------------------------------------------------------

#: How far a value may be off: of real terms a share of their size, and of all values the digits
#: that are reported.
NEAR, DIGITS = 1e-8, {True: 1e-13, False: 2e-15}


def answered(case: Case, **options: Any) -> tuple[Any, list[str]]:
    """Return the front of a case, and what is false about it or was false on the way."""
    found: list[str] = []
    if case.first_points is not None:
        first = placeopt.enumerate(case.model(), max_points=case.first_points, **options)
        found = faults(case, first)
        options["start"] = first
    front = placeopt.enumerate(case.model(), gap=case.gap, **options)
    return front, found + faults(case, front)


def faults(case: Case, front: Any) -> list[str]:
    """Return what is false about a front."""
    status = front.runs[0].parameters["status"]
    solutions = list(case.points())
    vectors = {case.vector(solution) for solution in solutions}
    if not vectors:
        return [] if (status, len(front)) == ("infeasible", 0) else [f"{status}, not infeasible"]
    if status == "infeasible":
        return ["infeasible"]
    near = np.array([_nearness(case, k, vectors) for k in range(len(case.goals))])
    found = [f"point {p.values} is no vector" for p in front if not _is_reached(case, p, near)]
    signs = np.array([1.0 if goal.sense == "min" else -1.0 for goal in case.goals])
    every = np.array([[float(a) for a in v] for v in vectors]) * signs
    points = front.values * signs
    truth = np.array([[float(a) for a in v] for v in efficient(case, vectors)]) * signs
    is_finite = case.gap is None or all(
        not any(g.coefficients[len(case.whole) :]) for g in case.goals
    )
    if status == "complete":
        lost = [v for v in truth if not (np.abs(points - v) <= near).all(axis=1).any()]
        found += [f"lost {(v * signs).tolist()}" for v in lost]
        if len(points) > len(truth):
            found.append(f"{len(points)} points, not {len(truth)}")
    if status in ("complete", "grid"):
        reach = np.array([(case.gap or {}).get(name, 0.0) for name in case.names])
        every = np.concatenate((every, *_between(case, solutions, signs)))
        far = [v for v in every if not (points <= v + reach + near).all(axis=1).any()]
        found += [f"nothing near {(v * signs).tolist()}" for v in far[:3]]
    if status == "extreme":
        for weights in np.random.default_rng(0).dirichlet(np.ones(len(signs)), 20):
            if abs((points @ weights).min() - (every @ weights).min()) > near @ weights:
                found.append(f"no extreme point for weights {weights.tolist()}")
    if front.bounds:
        bounds = np.array(front.bounds) * signs
        missed = [v for v in every if not (bounds <= v + near).all(axis=1).any()]
        found += [f"no bound below {(v * signs).tolist()}" for v in missed[:3]]
    if is_finite:
        for point in front:
            value = np.array(point.values) * signs
            beaten = (
                (every <= value + near).all(axis=1) & (every < value - near).any(axis=1)
            ).any()
            if point.status == "optimal" and beaten:
                found.append(f"{point.values} is called optimal")
    return found


def _nearness(case: Case, k: int, vectors: set[tuple[Fraction, ...]]) -> float:
    """Return how far the values of a goal may be off."""
    real = list(zip(case.goals[k].coefficients[len(case.whole) :], case.real, strict=True))
    if case.kind == "floats":
        return 1e-11 * sum(float(abs(c)) * 2 for c in case.goals[k].coefficients)
    if case.kind == "piecewise":
        real = [(Fraction(int(k == 0)), (Fraction(0), Fraction(9)))]
    terms = sum(float(abs(c) * max(map(abs, bounds))) for c, bounds in real)
    return NEAR * terms + DIGITS[terms > 0] * max(abs(float(v[k])) for v in vectors)


def _is_reached(case: Case, point: Any, near: np.ndarray) -> bool:
    """Whether the values of a point are those of its plan, and legal."""
    if case.kind in ("piecewise", "semicontinuous"):
        vectors = {case.vector(solution) for solution in case.points()}
        each = np.array([[float(a) for a in v] for v in vectors])
        return bool((np.abs(each - point.values) <= near).all(axis=1).any())
    count = len(case.whole) + len(case.real)
    solution = [Fraction(point.plan.get(f"x[{j}]", 0)) for j in range(count)]
    for j, values in enumerate(case.whole):  # a decimal of a domain as a float
        solution[j] = min(values, key=lambda v, x=solution[j]: abs(v - x))  # type: ignore[misc]
    values = np.array([float(v) for v in case.vector(solution)])
    return bool(
        (np.abs(values - point.values) <= near).all()
        and case.is_feasible(solution, Fraction(1, 10**8))
    )


def _between(
    case: Case, solutions: list[tuple[Fraction, ...]], signs: np.ndarray
) -> list[np.ndarray]:
    """Return vectors on the lines between vertices of the same whole numbers."""
    count, rows = len(case.whole), []
    if not case.real:
        return rows
    for _, group in itertools.groupby(solutions, key=lambda s: s[:count]):
        corners = [[float(v) for v in case.vector(s)] for s in group]
        for a, b in itertools.combinations(corners, 2):
            shares = np.linspace(0.1, 0.9, 5)[:, None]
            rows.append((shares * np.array(a) + (1 - shares) * np.array(b)) * signs)
    return rows


def is_refused(case: Case, error: Exception) -> bool:
    """Whether an error is the right answer."""
    return case.is_unbounded and "unbounded" in str(error) and any(True for _ in case.points())
