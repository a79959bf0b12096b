"""What a problem declares of its Pyomo model: goals, epsilon bounds, and the way to plans."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyomo.environ as pyo

from placeopt.core.errors import UnsupportedError
from placeopt.core.fronts.values import Objective, Plan
from placeopt.core.interfaces import ModelModule
from placeopt.core.problem import Problem

if TYPE_CHECKING:
    from placeopt.exact.compiled_model import Cut

#: Rows that exclude a solution of a model (model, problem, plan); none for one that may stay.
Cuts = Callable[[Any, Any, Plan], "Sequence[Cut]"]


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
    omitted : str
        In words, the plans of the problem that the model leaves out, so that proofs in it do not
        hold for the problem; empty where none matters.
    """

    problem: Any
    goals: tuple[Objective, ...]
    objective_names: frozenset[str]
    extract: Callable[[Any], Plan]
    cuts: Cuts | None = None
    assign: Callable[[Any, Plan], bool] | None = None
    omitted: str = ""


def remember(
    model: pyo.ConcreteModel,
    problem: Any,
    extract: Callable[[Any], Plan],
    cuts: Cuts | None = None,
    assign: Callable[[Any, Plan], bool] | None = None,
    omitted: str = "",
) -> pyo.ConcreteModel:
    """Let a finished model remember its problem, so that `placeopt.enumerate` returns plans.

    Arguments are as of `ModelOrigin`.
    """
    goals = tuple(o for o in problem.objectives if model.component(o.name) is not None)
    names = frozenset(c.name for c in model.component_objects(pyo.Objective))
    model.placeopt_origin = ModelOrigin(problem, goals, names, extract, cuts, assign, omitted)
    return model


def origin_of(model: pyo.ConcreteModel) -> ModelOrigin | None:
    """Return what a model remembers of its problem, None for models that placeopt did not build."""
    return vars(model).get("placeopt_origin")


def require_model(module: Any, kind: str) -> None:
    """Raise unless something has the functions of a `ModelModule`.

    Raises
    ------
    UnsupportedError
        Names the function that is missing, and the kind of the problem.
    """
    for name in ("build", "extract"):
        if not (hasattr(module, name) and callable(getattr(module, name))):
            raise UnsupportedError(
                f"the model of {kind} has no function {name!r}; "
                "see placeopt.core.interfaces.ModelModule"
            )


def built(
    module: ModelModule, problem: Problem, goals: Sequence[str], options: Mapping[str, Any]
) -> pyo.ConcreteModel:
    """Return the model of a problem, which remembers where it comes from.

    Raises
    ------
    UnsupportedError
        It is no model of Pyomo, or lacks a goal.
    """
    model, whose = module.build(problem, **options), f"the model of {problem.problem}"
    if not isinstance(model, pyo.ConcreteModel):
        raise UnsupportedError(
            f"{whose} is of type {type(model).__name__}; build returns a pyomo ConcreteModel"
        )
    for name in goals:
        if model.component(name) is None:
            raise UnsupportedError(f"{whose} has no Expression or Objective {name!r}, its goal")
    return model if origin_of(model) else remember(model, problem, module.extract)


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
