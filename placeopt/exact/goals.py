"""The goals of a Pyomo model; what a problem declares of its own: goals, epsilon bounds, plans.

Goals are the model's own Objectives, or expressions given with names.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyomo.environ as pyo
from pyomo.core.expr.numvalue import as_numeric

from placeopt.core.errors import UnsupportedError, UsageError, did_you_mean
from placeopt.core.fronts.values import Objective, Plan, Sense
from placeopt.core.interfaces import ModelModule
from placeopt.core.problem import Problem
from placeopt.exact.program import quadratic

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


_WORDS = {"min": "minimised", "max": "maximised"}
_SENSES: dict[Any, Sense] = {"min": "min", "max": "max", pyo.minimize: "min", pyo.maximize: "max"}


@dataclass(frozen=True, eq=False)
class Goal:
    """An expression of a model, linear or quadratic, that is to be minimised or maximised.

    Attributes
    ----------
    objective : Objective
        Name, unit, sense, and the step where one was given.
    expression : pyomo expression
        As the model has it, not yet turned into one to minimise.
    gap : float or None
        How far apart the limits of a continuous goal may lie.
    """

    objective: Objective
    expression: Any
    gap: float | None = None

    @property
    def name(self) -> str:
        """Name of the goal."""
        return self.objective.name

    @property
    def sign(self) -> float:
        """1 for a minimised goal, -1 for a maximised one."""
        return self.objective.sign

    @property
    def minimised(self) -> Any:
        """The expression to minimise."""
        return self.expression if self.sign > 0 else -self.expression


def goals_of(
    model: pyo.ConcreteModel,
    objectives: Mapping[str, Any] | Sequence[Any] | None,
    steps: Mapping[str, float] | None,
    gap: float | Mapping[str, float] | None,
) -> list[Goal]:
    """Return the goals of a model; arguments as of `placeopt.enumerate`.

    Raises
    ------
    UsageError
        No goals, two of one name, unknown names, steps or gaps that are not positive.
    UnsupportedError
        A goal is neither linear nor a convex quadratic one.
    """
    named = list(_own(model) if objectives is None else _given(model, objectives))
    if not named:
        raise UsageError(
            "the model has no goals; add a pyo.Objective for each of them (all but one may be "
            "deactivated), or hand expressions over by name: "
            'placeopt.enumerate(model, {"cost": model.cost, "delay": model.delay})'
        )
    names = [objective.name for objective, _ in named]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"two goals are called {name!r}; give each a name of its own")
    for objective, expression in named:
        _check_form(objective, expression)
    steps, gaps = _numbers("steps", steps, names), _gaps(gap, names)
    return [
        Goal(replace(o, step=steps.get(o.name, o.step)), expression, gaps.get(o.name))
        for o, expression in named
    ]


def own_goals(model: pyo.ConcreteModel, names: Sequence[str]) -> list[Goal]:
    """Return goals of a model's problem, all minimised, in the order of their names."""
    return goals_of(model, {name: (model.component(name), "min") for name in names}, None, None)


# -- which goals -----------------------------------------------------------------------------------


def _own(model: pyo.ConcreteModel) -> Iterator[tuple[Objective, Any]]:
    """Yield the goals of a placeopt model, then the Objectives of the user."""
    origin = origin_of(model)
    ours: frozenset[str] = frozenset()
    if origin is not None:
        ours = origin.objective_names
        for objective in origin.goals:
            yield objective, getattr(model, objective.name)
    for block in model.block_data_objects(active=True):  # Pyomo takes nothing from other blocks
        for component in block.component_objects(pyo.Objective, descend_into=False):
            if component.name not in ours:
                yield from _of_component(component)


def _of_component(component: Any) -> Iterator[tuple[Objective, Any]]:
    """Yield every Objective of a component, active or not; one of text indices by its index."""
    for index, data in component.items():
        yield _data(data, index if isinstance(index, str) else data.name)


def _given(
    model: pyo.ConcreteModel, objectives: Mapping[str, Any] | Sequence[Any]
) -> Iterator[tuple[Objective, Any]]:
    if isinstance(objectives, Mapping):
        for name, value in objectives.items():
            yield _named(model, str(name), value)
        return
    if isinstance(objectives, str):
        objectives = [objectives]
    for value in objectives:
        if isinstance(value, str):
            yield _named(model, value, value)
        elif hasattr(value, "ctype") and value.ctype is pyo.Objective:
            yield from (
                _of_component(value) if hasattr(value, "items") else [_data(value, value.name)]
            )
        else:
            raise UsageError(
                f"goal {str(value)!r} has no name; give expressions by name: "
                'placeopt.enumerate(model, {"cost": expression})'
            )


def _data(objective: Any, name: str) -> tuple[Objective, Any]:
    return Objective(name, "", None, _SENSES[objective.sense]), objective.expr


def _named(model: pyo.ConcreteModel, name: str, given: Any) -> tuple[Objective, Any]:
    """Return a goal that is given as an expression, a component, its name, or with a sense."""
    sense = None
    if isinstance(given, tuple):
        given, sense = given
        if sense not in _SENSES:
            raise UsageError(f"the sense of goal {name!r} is {sense!r}; legal: 'min', 'max'")
    known = _known_objective(model, given if isinstance(given, str) else name)
    if isinstance(given, str):
        given = _find(model, given)
    if hasattr(given, "ctype") and given.ctype is pyo.Objective:
        sense, given = sense or given.sense, given.expr
    unit, step = ("", None) if known is None else (known.unit, known.step)
    return Objective(name, unit, step, _SENSES[sense or "min"]), given


def _known_objective(model: pyo.ConcreteModel, name: str) -> Objective | None:
    """Return the objective of a placeopt problem by its name, with unit and step."""
    origin = origin_of(model)
    return next((o for o in origin.goals if o.name == name), None) if origin else None


def _find(model: pyo.ConcreteModel, name: str) -> Any:
    result = model.find_component(name) if name else None
    if result is None:
        kinds = (pyo.Objective, pyo.Expression)
        legal = [c.name for c in model.component_data_objects(kinds, descend_into=True)]
        raise UsageError(f"the model has no goal {name!r}; {did_you_mean(name, legal)}")
    return result


# -- what is legal ---------------------------------------------------------------------------------


def _check_form(objective: Objective, expression: Any) -> None:
    """Raise unless a goal is linear, or quadratic and convex where it is minimised."""
    name = objective.name
    try:
        degree = as_numeric(expression).polynomial_degree()
    except (AttributeError, TypeError) as error:
        raise UsageError(f"goal {name!r} is not an expression: {expression!r}") from error
    remedy = (
        "replace products of binary variables by a variable of their own, a maximum by a "
        "variable that is at least every term, and a curve by pieces"
    )
    if degree == 2:
        if quadratic(objective.sign * expression) is None:
            wanted = "convex" if objective.sign > 0 else "concave"
            raise UnsupportedError(
                f"goal {name!r} is not linear: {expression}; it is quadratic, and not {wanted} as "
                f"what is {_WORDS[objective.sense]} must be; {remedy}"
            )
    elif degree not in (0, 1):
        raise UnsupportedError(f"goal {name!r} is not linear: {expression}; {remedy}")


def require_goal(name: object, names: Sequence[str], what: str) -> None:
    """Raise unless a name is that of a goal; `what` is the argument that has it."""
    if name not in names:
        raise UsageError(f"{what} names no goal: {name!r}; {did_you_mean(str(name), names)}")


def positive(value: Any, what: str) -> float:
    """Return a positive number; `what` it is in the error."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        raise UsageError(f"{what} is {value!r}; give a positive number")
    return float(value)


def _numbers(
    what: str, given: Mapping[str, float] | None, names: Sequence[str]
) -> dict[str, float]:
    """Return positive numbers by the names of goals."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise UsageError(f"{what} is {given!r}; give numbers by the names of goals")
    for name, value in given.items():
        require_goal(name, names, what)
        positive(value, f"{what}[{name!r}]")
    return dict(given)


def _gaps(gap: float | Mapping[str, float] | None, names: Sequence[str]) -> dict[str, float]:
    if isinstance(gap, int | float):
        gap = dict.fromkeys(names, float(gap))
    return _numbers("gap", gap, names)
