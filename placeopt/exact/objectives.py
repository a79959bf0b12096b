"""Objectives and epsilon bounds, declared the same way on every model."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pyomo.environ as pyo

from placeopt.core.errors import UnsupportedError
from placeopt.core.fronts.values import Plan


@dataclass(frozen=True, eq=False)
class ModelOrigin:
    """What a model remembers of the problem that it was built for.

    Attributes
    ----------
    problem : Problem
    goals : tuple of Objective
        The problem's objectives; each is a named Expression of the model.
    objective_names : frozenset of str
        The model's own Objective components, which are no goals of a user.
    extract : callable
        ``extract(model) -> plan``.
    cuts : callable, optional
        ``cuts(model, problem, plan)``: rows that exclude a solution which is no plan.
    assign : callable, optional
        ``assign(model, plan)``: give the variables the values of a plan; whether the model can.
    """

    problem: Any
    goals: tuple[Any, ...]
    objective_names: frozenset[str]
    extract: Callable[[Any], Plan]
    cuts: Callable[..., Any] | None = None
    assign: Callable[[Any, Plan], bool] | None = None


def remember(
    model: pyo.ConcreteModel,
    problem: Any,
    extract: Callable[[Any], Plan],
    cuts: Callable[..., Any] | None = None,
    assign: Callable[[Any, Plan], bool] | None = None,
) -> pyo.ConcreteModel:
    """Let a finished model remember its problem, so that `placeopt.enumerate` returns plans."""
    goals = tuple(o for o in problem.objectives if o.name in model.OBJECTIVES)
    names = frozenset(c.name for c in model.component_objects(pyo.Objective))
    model.placeopt_origin = ModelOrigin(problem, goals, names, extract, cuts, assign)
    return model


def declare(model: pyo.ConcreteModel, expressions: Mapping[str, Any]) -> None:
    """Add linear objectives to a model, all minimised.

    Afterwards ``model.<name>`` is a named Expression for every objective. ``model.minimise[name]``
    are the Objectives, of which the first is active. ``model.epsilon[name]`` is a mutable Param,
    infinite at first, and the Constraint ``model.within_epsilon[name]`` keeps the expression within
    it: to bound the cost, set ``model.epsilon["cost_usd"] = 60``.

    Raises
    ------
    UnsupportedError
        The name of an objective is a member that all models of Pyomo have, such as ``load``.
    """
    for name, expression in expressions.items():
        if hasattr(pyo.ConcreteModel, name):
            raise UnsupportedError(
                f"a goal cannot be called {name!r}: models of Pyomo have a member of this name; "
                f"call it {name + '_cost'!r}, say"
            )
        setattr(model, name, pyo.Expression(expr=expression))
    model.OBJECTIVES = pyo.Set(initialize=list(expressions), doc="names of the objectives")
    model.minimise = pyo.Objective(
        model.OBJECTIVES, rule=lambda m, name: getattr(m, name), doc="one of them is active"
    )
    model.epsilon = pyo.Param(
        model.OBJECTIVES,
        mutable=True,
        default=math.inf,
        within=pyo.Any,
        doc="largest value of an objective",
    )
    model.within_epsilon = pyo.Constraint(
        model.OBJECTIVES,
        rule=lambda m, name: getattr(m, name) <= m.epsilon[name],
        doc="epsilon bounds",
    )
    minimise_only(model, next(iter(expressions)))


def minimise_only(model: pyo.ConcreteModel, name: str) -> None:
    """Make one objective the active one."""
    for other in model.OBJECTIVES:
        if other == name:
            model.minimise[other].activate()
        else:
            model.minimise[other].deactivate()
