"""Domains of a variable are kept: intervals, 0 beside one, special ordered sets; others refused."""

from __future__ import annotations

import itertools

import numpy as np
import pyomo.environ as pyo
import pytest
from pyomo.core.base.range import NumericRange

import placeopt
from placeopt.core.errors import UnsupportedError
from placeopt.exact.pyomo_rows import legal_value

SEMI = pyo.RangeSet(ranges=(NumericRange(0, 0, 0), NumericRange(2, 5, 0)))
SOLVERS = ("highs", "scip")


def status(front: placeopt.Front) -> str:
    return front.runs[0].parameters["status"]


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize(
    ("domain", "bounds", "legal"),
    [
        (pyo.Set(initialize=[4]), None, [4]),
        (pyo.Set(initialize=[0, 3, 4, 5]), None, [0, 3, 4, 5]),
        (pyo.Set(initialize=[0, 3, 4, 5]), (1, 9), [3, 4, 5]),
        (pyo.Set(initialize=[0, 3, 4, 5]), (-1, 4), [0, 3, 4]),
        (pyo.Set(initialize=[0, 3, 4, 5]), (-1, 2), [0]),
        (pyo.Set(initialize=[-5, -4, 0]), None, [-5, -4, 0]),
        (pyo.RangeSet(3, 6), (None, 5), [3, 4, 5]),
        (pyo.Set(initialize=[1, 2, 3]), None, [1, 2, 3]),
        (pyo.PositiveIntegers, (None, 3.5), [1, 2, 3]),
    ],
)
def test_a_discrete_domain_is_kept(solver, domain, bounds, legal):
    model = pyo.ConcreteModel()
    model.size = pyo.Var(domain=domain, bounds=bounds)
    model.few = pyo.Objective(expr=2 * model.size + 1)
    model.much = pyo.Objective(expr=model.size, sense=pyo.maximize)
    front = placeopt.enumerate(model, solver=solver)
    assert front.values.tolist() == [[2 * v + 1, v] for v in legal]
    assert status(front) == "complete"
    assert [p.plan.get("size", 0) for p in front] == legal
    again = placeopt.enumerate(model, start=front, max_points=len(legal))
    assert again.values.tolist() == front.values.tolist()


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_semicontinuous_variable_is_zero_or_within_its_range(solver):
    model = pyo.ConcreteModel()
    model.batch = pyo.Var(domain=SEMI)
    model.rest = pyo.Var(domain=pyo.Integers, bounds=(0, 9))
    model.enough = pyo.Constraint(expr=model.batch + model.rest >= 1)
    model.cost = pyo.Objective(expr=3 * model.batch + 1.5 * model.rest)
    model.people = pyo.Objective(expr=model.rest)
    front = placeopt.enumerate(model, solver=solver)
    assert front.values.tolist() == [[1.5, 1], [6, 0]]
    assert front.points[1].plan == {"batch": 2}


@pytest.mark.parametrize(
    ("domain", "message"),
    [
        (pyo.Any, "variable x has the domain Any; placeopt takes intervals of real or of whole"),
        (pyo.Set(initialize=["a", "b"]), "number [*] binary variable"),
        (pyo.Set(initialize=[2, 5, 7]), "number [*] binary variable"),
        (pyo.Set(initialize=[-1.5, 0.25, 3]), "number [*] binary variable"),
        (pyo.RangeSet(0, 10, 2), "number [*] binary variable"),
        (pyo.RangeSet(0, 3, 0.5), "number [*] binary variable"),
        (pyo.Integers - pyo.Set(initialize=[3]), "number [*] binary variable"),
        (
            pyo.RangeSet(ranges=(NumericRange(0, 0, 0), NumericRange(2, None, 0))),
            "variable x is 0 or within an interval that has no end; give it bounds",
        ),
    ],
)
def test_other_domains_are_refused_by_name(domain, message):
    model = pyo.ConcreteModel()
    model.x = pyo.Var(domain=domain)
    model.goal = pyo.Objective(expr=model.x)
    with pytest.raises(UnsupportedError, match=message):
        placeopt.enumerate(model)


def test_a_domain_without_a_number_within_the_bounds_is_infeasible():
    model = pyo.ConcreteModel()
    model.x = pyo.Var(domain=pyo.Set(initialize=[0, 5, 6]), bounds=(3, 4))
    model.goal = pyo.Objective(expr=model.x)
    front = placeopt.enumerate(model)
    assert status(front) == "infeasible"
    assert "no value in the domain" in front.reasons[0]


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("level", [1, 2])
def test_an_ordered_set_becomes_binary_variables(solver, level):
    bounds = [(-1, 2), (0, 3), (-2, 0), (0, 1)]
    model = pyo.ConcreteModel()
    model.x = pyo.Var(range(4), domain=pyo.Integers, bounds=lambda m, j: bounds[j])
    model.few = pyo.SOSConstraint(var=model.x, sos=level)
    tables = np.array([[3, -2, 1, 4], [-1, 2, 5, -3]])
    for k, row in enumerate(tables.tolist()):
        body = sum(c * model.x[j] for j, c in enumerate(row))
        model.add_component(f"g{k}", pyo.Objective(expr=body))
    vectors = []
    for x in itertools.product(*(range(low, high + 1) for low, high in bounds)):
        used = np.flatnonzero(x)
        if len(used) <= level and (len(used) < 2 or used[1] - used[0] == 1):
            vectors.append(tables @ x)
    truth = placeopt.core.fronts.front.minimal(np.array(vectors)).tolist()
    front = placeopt.enumerate(model, solver=solver)
    assert front.values.tolist() == sorted(truth)
    assert status(front) == "complete"
    assert model.few.active


def test_bounds_of_an_ordered_set_follow_from_rows_or_are_asked_for():
    model = pyo.ConcreteModel()
    model.x = pyo.Var(range(3), domain=pyo.NonNegativeReals)
    model.one = pyo.Constraint(expr=sum(model.x.values()) == 2)
    model.few = pyo.SOSConstraint(var=model.x, sos=1)
    model.g = pyo.Objective(expr=model.x[0] + 3 * model.x[1] - model.x[2])
    assert placeopt.enumerate(model).values.tolist() == [[-2]]
    model.one.deactivate()
    with pytest.raises(
        UnsupportedError, match=r"variable x.0. of the ordered set 'few' has no bou"
    ):
        placeopt.enumerate(model)


@pytest.mark.parametrize(
    ("domain", "bounds", "nearest"),
    [
        (pyo.Reals, (None, None), 0),
        (pyo.Reals, (2, 5), 2),
        (pyo.Integers, (-7.5, -2.5), -3),
        (pyo.Set(initialize=[-4, -3]), None, -3),
        (SEMI, None, 0),
        (pyo.RangeSet(3, 30), (5, None), 5),
    ],
)
def test_the_legal_value_that_is_nearest_to_zero(domain, bounds, nearest):
    model = pyo.ConcreteModel()
    model.x = pyo.Var(domain=domain, bounds=bounds)
    assert legal_value(model.x) == nearest
