"""Random models, written as LP, MPS and MathOptFormat by others and read back, have their front."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import highspy
import numpy as np
import pyomo.environ as pyo
import pytest
from effort import tries
from hypothesis import given, settings
from hypothesis import strategies as st

import placeopt
from placeopt.exact.engines import new_highs

SIZES = st.integers(-6, 6)
COUNTS = st.integers(2, 4)


@st.composite
def drawn(draw: Any) -> pyo.ConcreteModel:
    """Return a model of few variables of all kinds, with bounds of all kinds, and two goals."""
    m = pyo.ConcreteModel(name="drawn")
    count = draw(COUNTS)
    m.x = pyo.Var(range(count), domain=pyo.Reals)
    for x in m.x.values():
        x.domain = draw(st.sampled_from([pyo.Integers, pyo.Binary, pyo.NonNegativeIntegers]))
        if x.domain is not pyo.Binary:
            low = draw(st.integers(0 if x.domain is pyo.NonNegativeIntegers else -3, 2))
            x.setlb(low), x.setub(low + draw(st.integers(0, 3)))
    m.c = pyo.ConstraintList()
    for _ in range(draw(st.integers(0, 3))):
        body = sum(draw(SIZES) * x for x in m.x.values()) + draw(SIZES) * 0.5
        low = draw(SIZES)
        kinds = [body <= low, body >= low, (low, body, low + draw(st.integers(0, 9)))]
        if not isinstance(body, float):
            m.c.add(draw(st.sampled_from(kinds)))
    m.f = pyo.Objective(expr=sum(draw(SIZES) * x for x in m.x.values()) + draw(SIZES))
    m.g = pyo.Objective(expr=sum(draw(SIZES) * x for x in m.x.values()) + draw(SIZES))
    m.g.deactivate()
    return m


def front(model: pyo.ConcreteModel, goals: Any = None) -> list[tuple[float, ...]]:
    return [point.values for point in placeopt.enumerate(model, goals, solver="highs")]


def with_free_row(text: str, m: pyo.ConcreteModel, names: dict[str, str]) -> str:
    """Return an LP text of the first goal with the second as a free row."""
    from pyomo.repn import generate_standard_repn

    form = generate_standard_repn(m.g.expr)
    pairs = zip(form.linear_coefs, form.linear_vars, strict=True)
    terms = [f"{c:+} {names[v.name]}" for c, v in pairs]
    row = f"second: {' '.join(terms)} {form.constant:+} >= -infinity\n"
    return text.replace("s.t.\n", f"s.t.\n\n{row}", 1)


@settings(max_examples=tries(12, 60))
@given(drawn())
def test_lp_by_pyomo(tmp_path_factory, m):
    file = tmp_path_factory.mktemp("lp") / "m.lp"
    _, key = m.write(str(file), io_options={"symbolic_solver_labels": True})
    names = {v.name: s for s, v in m.solutions.symbol_map[key].bySymbol.items() if hasattr(v, "lb")}
    missing = [v for v in m.x.values() if v.name not in names]
    names |= {v.name: f"absent{k}" for k, v in enumerate(missing)}
    if missing:  # Pyomo leaves variables out that stand in no row: without their bounds
        return
    file.write_text(with_free_row(file.read_text(), m, names))
    got = front(placeopt.read_model(file))
    assert got == front(m, ["f", "g"])


def of_highs(m: pyo.ConcreteModel, file: Path) -> None:
    """Write the model by HiGHS, with its first goal."""
    from pyomo.repn import generate_standard_repn

    highs = new_highs()
    highs.setOptionValue("output_flag", False)
    index = {id(x): k for k, x in enumerate(m.x.values())}
    for x in m.x.values():
        highs.addVar(x.lb, x.ub)
        highs.changeColIntegrality(index[id(x)], highspy.HighsVarType.kInteger)
    form = generate_standard_repn(m.f.expr)
    for c, v in zip(form.linear_coefs, form.linear_vars, strict=True):
        highs.changeColCost(index[id(v)], c)
    highs.changeObjectiveOffset(form.constant)
    for row in m.c.values():
        form = generate_standard_repn(row.body)
        low = -math.inf if row.lower is None else pyo.value(row.lower) - form.constant
        high = math.inf if row.upper is None else pyo.value(row.upper) - form.constant
        columns = np.array([index[id(v)] for v in form.linear_vars], dtype=np.int32)
        values = np.array(form.linear_coefs, dtype=float)
        highs.addRow(low, high, len(columns), columns, values)
    highs.writeModel(str(file))


@pytest.mark.parametrize("suffix", ["lp", "mps"])
@settings(max_examples=tries(12, 60))
@given(m=drawn())
def test_by_highs(tmp_path_factory, suffix, m):
    file = tmp_path_factory.mktemp("highs") / f"m.{suffix}"
    of_highs(m, file)
    assert front(placeopt.read_model(file)) == front(m, ["f"])


@settings(max_examples=tries(10, 40))
@given(drawn())
def test_mps_by_pyomo(tmp_path_factory, m):
    file = tmp_path_factory.mktemp("mps") / "m.mps"
    m.write(str(file))
    model = placeopt.read_model(file)
    if len(model.x) == len(m.x):
        assert front(model) == front(m, ["f"])


def mof_of(m: pyo.ConcreteModel) -> str:
    """Return the model as MathOptFormat, as JuMP lays it out."""
    from pyomo.repn import generate_standard_repn

    def affine(expression: Any) -> tuple[list[Any], float]:
        form = generate_standard_repn(expression)
        pairs = zip(form.linear_coefs, form.linear_vars, strict=True)
        return [{"coefficient": c, "variable": v.name} for c, v in pairs], form.constant

    listed: list[dict[str, Any]] = []
    for x in m.x.values():
        function = {"type": "Variable", "name": x.name}
        for limits in (
            {"type": "ZeroOne"} if x.domain is pyo.Binary else {"type": "Integer"},
            {"type": "GreaterThan", "lower": x.lb},
            {"type": "LessThan", "upper": x.ub},
        ):
            listed.append({"function": function, "set": limits})
    for name, row in m.c.items():
        terms, constant = affine(row.body)
        low, high = (None if end is None else pyo.value(end) for end in (row.lower, row.upper))
        limits = {"type": "Interval", "lower": low, "upper": high}
        if low is None or high is None:
            limits = {"type": "GreaterThan", "lower": low}
            limits = limits if high is None else {"type": "LessThan", "upper": high}
        function = {"type": "ScalarAffineFunction", "terms": terms, "constant": constant}
        listed.append({"name": f"c{name}", "function": function, "set": limits})
    goals = [affine(goal.expr) for goal in (m.f, m.g)]
    terms = [
        {"output_index": k + 1, "scalar_term": term}
        for k, (own, _) in enumerate(goals)
        for term in own
    ]
    constants = [constant for _, constant in goals]
    function = {"type": "VectorAffineFunction", "terms": terms, "constants": constants}
    return json.dumps(
        {
            "version": {"major": 1, "minor": 7},
            "variables": [{"name": x.name} for x in m.x.values()],
            "objective": {"sense": "min", "function": function},
            "constraints": listed,
        }
    )


@settings(max_examples=tries(12, 60))
@given(drawn())
def test_mof(tmp_path_factory, m):
    file = tmp_path_factory.mktemp("mof") / "m.mof.json"
    file.write_text(mof_of(m))
    assert front(placeopt.read_model(file)) == front(m, ["f", "g"])


def test_semicontinuous_variables_by_highs(tmp_path):
    """The kinds that Pyomo has no name for."""
    rng = np.random.default_rng(0)
    for suffix in ("lp", "mps"):
        for _ in range(20):
            highs = new_highs()
            highs.setOptionValue("output_flag", False)
            low, width = int(rng.integers(1, 4)), int(rng.integers(1, 4))
            kind = highspy.HighsVarType.kSemiInteger
            kind = kind if rng.random() < 0.5 else highspy.HighsVarType.kSemiContinuous
            numbers = (0, *range(low, low + width + 1))
            highs.addVar(low, low + width), highs.addVar(0, 3)
            highs.changeColIntegrality(0, kind)
            highs.changeColIntegrality(1, highspy.HighsVarType.kInteger)
            limit, costs = int(rng.integers(0, 7)), rng.integers(-4, 5, 2)
            highs.addRow(limit, math.inf, 2, np.array([0, 1], np.int32), np.array([1.0, 1.0]))
            highs.changeColCost(0, float(costs[0])), highs.changeColCost(1, float(costs[1]))
            file = tmp_path / f"m.{suffix}"
            highs.writeModel(str(file))
            plans = [(x, y) for x in numbers for y in range(4) if x + y >= limit]
            best = min((float(costs @ plan) for plan in plans), default=None)
            got = front(placeopt.read_model(file))
            assert got == ([] if best is None else [(best,)]), file.read_text()
