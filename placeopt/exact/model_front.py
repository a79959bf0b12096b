"""`placeopt.enumerate`: the exact front of any Pyomo model with linear or quadratic goals."""

from __future__ import annotations

import hashlib
import math
from builtins import enumerate as numbered  # the name is that of the function below
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pyomo.environ as pyo

from placeopt.core.budget import Budget, Progress
from placeopt.core.errors import (
    InfeasibleInstanceError,
    PlaceoptError,
    UnsupportedError,
    UsageError,
)
from placeopt.core.fronts.dominance import minimal
from placeopt.core.fronts.front import Front
from placeopt.core.fronts.trace import Recorder, with_plain_traces
from placeopt.core.fronts.values import (
    OWN_MODEL,
    InstanceName,
    Objective,
    Plan,
    Point,
    Run,
    Status,
    names_of,
    versions,
)
from placeopt.exact.compiled_model import CompiledModel
from placeopt.exact.enumeration import enumerate_front
from placeopt.exact.extreme import ExtremePoints, corners, extreme_points
from placeopt.exact.goals import Goal, goals_of, origin_of
from placeopt.exact.memory import STATUSES, Enumeration, Found
from placeopt.exact.oracles import Oracle, Solution
from placeopt.exact.pyomo_rows import MAX_UNITS, legal_value
from placeopt.exact.solver_registry import (
    DEFAULT,
    LIBRARIES,
    check_options,
    choose,
    require_fit,
    require_solver,
)
from placeopt.exact.whole_rows import exact_unit, exactly, in_values

METHOD = "enumerate"
#: Significant digits of the terms of continuous goals, and of those of real variables: what follows
#: is rounding, and is not reported.
_DIGITS, _REAL_DIGITS = 15, 13
#: What `extract` raises where a model was changed so far that its solutions are no plans.
_NO_PLAN = (
    PlaceoptError,
    LookupError,
    TypeError,
    ValueError,
    AttributeError,
    StopIteration,
)
#: Of so many units a referee's value is a whole number for certain: it may be a sum of floats.
_MOST_JUDGED = 2.0**36
#: Referee and model agree on a value, relatively.
_AGREEMENT = 1e-6


class ModelSearch:
    """A compiled model, its goals, and how its solutions become points.

    Parameters
    ----------
    judged : bool
        The referee of the model's problem gives solutions their values; see `Oracle`.
    """

    def __init__(
        self,
        model: pyo.ConcreteModel,
        goals: Sequence[Goal],
        budget: Budget,
        judged: bool = False,
    ):
        self.model, self.goals, self.budget = model, goals, budget
        self.origin = origin_of(model)
        minimised = [replace(goal.objective, sense="min") for goal in goals]
        expressions = [goal.minimised for goal in goals]
        without_gap = [k for k, goal in numbered(goals) if goal.gap is None and not judged]
        most = _MOST_JUDGED if judged else MAX_UNITS
        self.compiled = CompiledModel(
            model, minimised, expressions, rounded=without_gap, most_units=most
        )
        if not judged:  # the referee says what a step is
            self._check_steps()
        self.main, self.endless = self._choose_main()
        self.signs = np.array([goal.sign for goal in goals])
        self.constants = np.array(self.compiled.constants)
        self.names = [variable.name for variable in self.compiled.columns]
        self.others = self._values_of_others()
        self.instance = self._instance()

    def _values_of_others(self) -> dict[str, float | int]:
        """Return the variables that no row has and that are not zero: fixed ones, and free ones.

        A free one has the legal value that is nearest to zero.
        """
        used, values = set(map(id, self.compiled.columns)), {}
        for variable in self.model.component_data_objects(pyo.Var, active=True, descend_into=True):
            if variable.fixed:
                values[variable.name] = _plain(variable.value)
            elif id(variable) not in used:
                values[variable.name] = _plain(legal_value(variable))
        return {name: value for name, value in values.items() if value}

    def solver(self, wanted: str | None, options: Mapping[str, Any] | None) -> str:
        """Return the solver to ask: the wanted one, else the quickest, of the usual options."""
        if wanted is None:
            return DEFAULT if options else choose(self.compiled.program)
        self.require_fit(wanted)
        return wanted

    def require_fit(self, solver: str) -> None:
        """Raise unless a solver can take the questions of this model."""
        if solver == "cp-sat" and self.compiled.squares:
            name = self.goals[int(self.compiled.curved.argmax())].name
            raise UnsupportedError(
                f"cp-sat takes whole numbers only, and goal {name!r} is quadratic: its squares are "
                "real columns; take solver='highs'"
            )
        require_fit(solver, self.compiled.program, self.names)

    # -- limits on real values ---------------------------------------------------------------------

    def _check_steps(self) -> None:
        """Refuse a given step that the coefficients of whole numbers are no multiples of."""
        compiled = self.compiled
        for objective, cost in zip(compiled.objectives, compiled.costs, strict=True):
            off = np.abs(cost - np.round(cost)) > 1e-6
            wrong = np.flatnonzero(off & compiled.integrality)
            if objective.step is not None and len(wrong):
                column, value = compiled.columns[wrong[0]], cost[wrong[0]] * objective.step
                raise UsageError(
                    f"the step of goal {objective.name!r} is {objective.step:g}, but it changes "
                    f"by {value:g} with {column.name}; leave the step out: it is found from the "
                    "coefficients"
                )

    def _choose_main(self) -> tuple[int | None, UsageError | None]:
        """Return the continuous goal to minimise within limits on the others, if there is one.

        And what is wrong where others have no gap.
        """
        continuous = [k for k, o in numbered(self.compiled.objectives) if o.step is None]
        open_ = [k for k in continuous if self.goals[k].gap is None]
        main = next(iter(open_ or continuous), None)
        if len(open_) <= 1:
            return main, None
        names = [self.goals[k].name for k in open_]
        return main, UsageError(
            f"goals {', '.join(map(repr, names))} take continuous values, so that their front "
            f"need not be finite; give a tolerance for all but one of them, such as "
            f"gap={{{names[-1]!r}: 0.5}} in the goal's own unit, or steps={{...}} if their "
            "values are multiples of a number"
        )

    def _gaps(self) -> list[float | None] | None:
        """Return the gaps of the limited goals, in units."""
        gaps: list[float | None] = [None] * len(self.goals)
        for k, goal in numbered(self.goals):
            step = self.compiled.objectives[k].step
            gap = None if goal.gap is None else goal.gap / float(self.compiled.units[k])
            if k != self.main and gap is not None and (step is None or gap >= 2):
                gaps[k] = gap
        return gaps if any(gaps) else None

    # -- the search --------------------------------------------------------------------------------

    def run(
        self,
        facts: Mapping[str, Any],
        start: Front | None,
        max_points: int | None,
        on_point: Callable[[Point], None] | None,
    ) -> Front:
        """Return the front, as far as the budget goes.

        Parameters
        ----------
        facts : mapping
            ``solver``, its ``options``, and ``jobs``.
        """
        recorder = Recorder([goal.name for goal in self.goals], self.signs)
        self.budget.recorder = recorder
        origin, options = self.origin, facts["options"]
        oracle = Oracle(self.compiled, self.budget, facts["solver"], options=options, origin=origin)
        has_cuts = origin is not None and origin.cuts is not None
        search = self._search(
            oracle,
            known=[] if start is None else self._known(start),
            proven=None if start is None else self._proven(start),
            # Cuts and tangents change later questions.
            jobs=1 if has_cuts or self.compiled.squares else facts["jobs"],
            max_points=max_points,
            on_found=None if on_point is None else lambda found: on_point(self.point(found)),
        )
        front = self._front(search, facts)
        return with_plain_traces(
            recorder.traced(front, self.budget.seconds, self.budget.evaluations)
        )

    def ask(self, oracle: Oracle, **rules: Any) -> Enumeration:
        """Enumerate the front; rules as of `enumerate_front`."""
        own = {"main": self.main, "present": self._unrounded, "precision": self.compiled.precision}
        return enumerate_front(oracle, self.compiled.objectives, self.budget, **{**own, **rules})

    def _search(self, oracle: Oracle, known: Sequence[Found], **rules: Any) -> Enumeration:
        """Enumerate the front; of a linear program its extreme points come first."""
        compiled, ask = self.compiled, partial(self.ask, oracle, **rules)
        is_linear = (
            self.main is not None and not compiled.integrality.any() and not compiled.squares
        )
        if self.endless is None and not (is_linear and len(self.goals) > 1):
            return ask(gaps=self._gaps(), known=known)
        payoff = ask(payoff_only=True, known=known)
        if payoff.status != "payoff":
            return payoff
        if not is_linear and self.endless is not None:
            raise self.endless
        extreme = self._extreme_points(oracle)
        if self.endless is None:
            search = ask(gaps=self._gaps(), known=[*known, *payoff.points, *extreme.points])
            return replace(search, solves=payoff.solves + extreme.asked + search.solves)
        points = [*payoff.points, *extreme.points]
        if extreme.complete:
            single = corners(np.array([point.values for point in points]))
            points = [point for point, is_corner in zip(points, single, strict=True) if is_corner]
        return replace(
            payoff,
            points=points,
            bounds=extreme.bounds if extreme.complete else payoff.bounds,
            status="extreme" if extreme.complete else "time-limit",
            solves=payoff.solves + extreme.asked,
        )

    def _extreme_points(self, oracle: Oracle) -> ExtremePoints:
        """Return the extreme points of a linear program."""
        free = [math.inf] * len(self.goals)

        def least(weights: np.ndarray) -> Found | None:
            if self.budget.out_of_time:
                return None
            answer = oracle.minimise_sum(weights.tolist(), free, seconds=math.inf, start=None)
            return None if answer.values is None else Found(answer.values, answer.payload)

        return extreme_points(least, len(self.goals))

    def _known(self, start: Front) -> list[Found]:
        """Return the points of a front of this model that are still feasible."""
        results = []
        for point in start.points:
            values = self._values_of_plan(point.plan)
            x = None if values is None else self.compiled.completed(values)
            if x is not None:
                units = [
                    round(v) if o.step is not None else v
                    for v, o in zip(self.compiled.values(x), self.compiled.objectives, strict=True)
                ]
                results.append(Found(tuple(map(float, units)), Solution.of(x)))
        return results

    def _values_of_plan(self, plan: Mapping[str, Any]) -> np.ndarray | None:
        """Return the values of the columns' variables, None of another model's plan."""
        column = {name: k for k, name in numbered(self.names)}
        if all(name in column or name in self.others for name in plan):
            values = np.zeros(len(column))
            for name, value in plan.items():
                if name in column:
                    values[column[name]] = value
            return values
        if self.origin is None or self.origin.assign is None:
            return None
        try:
            fits = self.origin.assign(self.model, plan)
        except _NO_PLAN:
            return None
        return self.compiled.read()[: len(column)] if fits else None

    def _proven(self, start: Front) -> np.ndarray | None:
        """Return the bounds of a front of this very model, in units."""
        if start.instance != self.instance or not start.bounds:
            return None
        compiled = self.compiled
        values = (np.array(start.bounds) * self.signs - self.constants) / compiled.units
        # Subtraction of a large constant leaves few digits.
        error = 4e-16 * np.abs(self.constants) / compiled.units
        whole = np.where(error > 0.1, np.floor(values - error), np.round(values))
        return np.where(compiled.precision.whole, whole + compiled.rounding, values - error)

    # -- from solutions to points ------------------------------------------------------------------

    def _values(self, units: np.ndarray) -> np.ndarray:
        """Return minimised values in units as values in the goals' own senses."""
        compiled, values = self.compiled, self._unrounded(units)
        for k, objective in numbered(compiled.objectives):
            if objective.step is None:
                terms = [*compiled.largest_terms(k), abs(self.constants[k])]
                values[:, k] = [_rounded(value, terms) for value in values[:, k].tolist()]
            elif not compiled.rounding[k]:
                step, constant = exact_unit(objective.step), exactly(self.constants[k])
                values[:, k] = [
                    float(int(unit) * step + constant) * self.signs[k] + 0.0
                    if math.isfinite(unit)
                    else unit * self.signs[k]
                    for unit in units[:, k].tolist()
                ]
        return values

    def bounds(self, search: Enumeration) -> np.ndarray:
        """Return the bounds of an enumeration as values in the goals' own senses."""
        return self._values(search.bounds - self.compiled.rounding)

    def _unrounded(self, units: np.ndarray) -> np.ndarray:
        return (in_values(units, self.compiled.units) + self.constants) * self.signs

    def point(self, found: Found, status: Status = "heuristic", gap: float | None = None) -> Point:
        """Return a solution as a point, with the plan of its problem where it is one."""
        values = tuple(self._values(np.array([found.values]))[0].tolist())
        values = self._with_true_values(values, found.payload.x)
        planned = self._plan(found, values)
        if planned is None:
            planned = values, self._variables(found.payload)
        return Point(planned[0], planned[1], status, gap, METHOD)

    def _with_true_values(self, values: tuple[float, ...], x: np.ndarray) -> tuple[float, ...]:
        """Return values in which those that were rounded to a step are exact."""
        exact = list(values)
        for k in np.flatnonzero(self.compiled.rounding).tolist():
            true = self.compiled.true_value(k, x) + self.constants[k]
            exact[k] = true * float(self.signs[k]) + 0.0
        return tuple(exact)

    def _variables(self, solution: Solution) -> dict[str, Any]:
        chosen = zip(solution.indices.tolist(), solution.amounts.tolist(), strict=True)
        named = {self.names[k]: _plain(v) for k, v in chosen if k < len(self.names)}
        return {**self.others, **named}

    def _plan(
        self, found: Found, values: tuple[float, ...]
    ) -> tuple[tuple[float, ...], Plan] | None:
        """Return the referee's values and the plan, None where a solution is none.

        Goals that the problem does not know keep the model's values.
        """
        origin = self.origin
        if origin is None:
            return None
        self.compiled.load(found.payload.x)
        try:
            plan = origin.extract(self.model)
            verdict = origin.problem.evaluate(plan)
        except _NO_PLAN:
            return None
        if not verdict.feasible:
            return None
        known = names_of(origin.problem.objectives)
        judged = list(values)
        for k, goal in numbered(self.goals):
            if goal.name not in known or goal.expression is not self.model.component(goal.name):
                continue
            value = verdict.values[known.index(goal.name)]
            if abs(value - values[k]) > _AGREEMENT * max(1.0, abs(value)):
                return None  # the goal's name stands for something else now
            judged[k] = value
        return tuple(judged), plan

    # -- the front ---------------------------------------------------------------------------------

    def _front(self, search: Enumeration, facts: Mapping[str, Any]) -> Front:
        compiled = self.compiled
        bounds = self.bounds(search)
        return answer_of(
            self.instance,
            [
                replace(goal.objective, step=None if compiled.rounding[k] else objective.step)
                for k, (goal, objective) in numbered(
                    zip(self.goals, compiled.objectives, strict=True)
                )
            ],
            self.budget,
            {**facts, "status": search.status, "reason": self._reason(search)},
            search.solves,
            tuple(self._points(search)),
            tuple(map(tuple, bounds.tolist())) if np.isfinite(bounds).all() else (),
        )

    def _points(self, search: Enumeration) -> Iterator[Point]:
        """Yield the efficient points, with what is proven of each."""
        efficient = {tuple(v) for v in minimal([f.values for f in search.points]).tolist()}
        for result in search.points:
            if result.values in efficient:
                efficient.discard(result.values)
                is_extreme = search.status == "extreme"
                gap = None if is_extreme else search.gap(result.values, self.compiled.precision)
                yield self.point(result, "optimal" if gap is None else "bounded", gap)

    def _reason(self, search: Enumeration) -> str:
        """Return why the search ended, in a sentence."""
        if search.status == "resolution" and search.unresolved is not None:
            apart = [
                f"less than {value:.2g} in {goal.name}"
                for goal, value in zip(
                    self.goals, search.unresolved * self.compiled.units, strict=True
                )
                if value
            ]
            return f"complete, but points that differ by {', '.join(apart)} may be missing"
        if search.status != "grid":
            return STATUSES[search.status]
        gaps = [f"{goal.name} {goal.gap:g}" for goal in self.goals if goal.gap is not None]
        return f"complete but for the given tolerances: {', '.join(gaps)}"

    def _instance(self) -> InstanceName:
        """Name the model by its rows: a changed model is another instance than its problem."""
        program, digest = self.compiled.program, hashlib.sha256()
        rows = (program.A.indptr, program.A.indices, program.A.data)
        limits = (program.row_lower, program.row_upper, program.col_lower, program.col_upper)
        for array in (*rows, *limits, program.integrality):
            digest.update(np.ascontiguousarray(array).tobytes())
        digest.update(repr([goal.objective for goal in self.goals]).encode())
        digest.update(repr(self.compiled.constants).encode())
        kind = OWN_MODEL if self.origin is None else self.origin.problem.problem
        return InstanceName(kind, self.model.name, digest.hexdigest())


def front_without_points(
    model: pyo.ConcreteModel,
    goals: Sequence[Goal],
    budget: Budget,
    facts: Mapping[str, Any],
    reasons: Sequence[str],
) -> Front:
    """Return the front of a model that has no solution."""
    instance = InstanceName(OWN_MODEL, model.name, hashlib.sha256(model.name.encode()).hexdigest())
    facts = {**facts, "status": "infeasible", "reason": "; ".join(reasons)}
    front = answer_of(instance, [goal.objective for goal in goals], budget, facts, 0)
    return replace(front, reasons=tuple(reasons))


def answer_of(
    instance: InstanceName,
    objectives: Sequence[Objective],
    budget: Budget,
    facts: Mapping[str, Any],
    solves: int,
    points: Sequence[Point] = (),
    bounds: Sequence[tuple[float, ...]] = (),
) -> Front:
    """Return what was found in a model, by one run; it is completed where it ended by itself.

    Parameters
    ----------
    facts : mapping
        Of the run: what was asked, ``question`` where that is no enumeration, ``solver``,
        ``status`` and ``reason``.
    """
    run = Run(
        facts.get("question", METHOD),
        None,
        budget.seconds,
        solver_calls=solves,
        completed=facts["status"] in ("complete", "extreme", "resolution", "grid", "infeasible"),
        parameters=dict(facts),
        versions=versions((LIBRARIES[facts["solver"]], "pyomo")),
    )
    reasons = (facts["reason"],)
    return Front(instance, tuple(objectives), tuple(points), tuple(bounds), (run,), None, reasons)


def _plain(value: float) -> float | int:
    """Return a whole number as an int."""
    return int(value) if float(value).is_integer() else float(value)


def _rounded(value: float, terms: Sequence[float]) -> float:
    """Return a value without the digits that are rounding.

    Parameters
    ----------
    terms : sequence of float
        How large terms are: those of real variables, which may be infinite, and others.
    """
    real, *others = (abs(value) if math.isinf(term) else term for term in terms)
    largest = max(abs(value), *others)
    if not 0 < largest < math.inf:
        return value + 0.0  # no negative 0
    digits = _DIGITS - math.ceil(math.log10(largest))
    if real > 0:
        digits = min(digits, _REAL_DIGITS - math.ceil(math.log10(real)))
    return round(value, digits) + 0.0


#: Seconds.
_NO_TIME = 1e-9


def enumerate(
    model: pyo.ConcreteModel,
    objectives: Mapping[str, Any] | Sequence[Any] | None = None,
    *,
    seconds: float | None = None,
    jobs: int = 1,
    solver: str | None = None,
    start: Front | None = None,
    steps: Mapping[str, float] | None = None,
    gap: float | Mapping[str, float] | None = None,
    max_points: int | None = None,
    options: Mapping[str, Any] | None = None,
    on_point: Callable[[Point], None] | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    budget: Budget | None = None,
) -> Front:
    """Enumerate the non-dominated points of a Pyomo model with linear constraints.

    Goals are linear, or quadratic and convex where they are minimised.

    Parameters
    ----------
    model : pyomo.environ.ConcreteModel
        It is not changed, but for the values of its variables.
    objectives : mapping or sequence, optional
        The goals: ``{"cost": model.cost, "profit": (model.profit, "max")}``, or names or
        Objectives of the model. By default all Objectives of the model, each in its own sense,
        whether active or not; of a model that placeopt built, the goals of its problem and the
        Objectives added since.
    seconds : float, optional
        Time limit. What was found and proven by then is returned; with 0 nothing is asked.
    jobs : int
        Questions that are solved at the same time. The points are the same for any number.
    solver : {"highs", "scip", "cp-sat", "cbc", "cplex", "gurobi"}, optional
        CP-SAT takes whole numbers only, and comes with the extra ``cp-sat``. By default HiGHS, or
        CP-SAT where it is installed and quicker: see `docs/enumerate.md`. The last three are those
        that Pyomo finds installed.
    start : Front, optional
        To go on from, of this function for the same model: its points are kept and its bounds count
        as proven, so that only what is open is asked. Of a changed model the points are kept that
        are still feasible.
    steps : mapping of goal to number, optional
        Smallest difference that two values of a goal can have. Goals that only depend on whole
        numbers need none: their coefficients show it.
    gap : number, or mapping of goal to number, optional
        For continuous goals: every feasible vector is at most so much better than some point, in
        the goal's own unit. One continuous goal needs no gap.
    max_points : int, optional
        Stop at so many non-dominated points.
    options : mapping, optional
        The solver's own options by its names, such as ``{"mip_heuristic_effort": 0.0}``.
    on_point : callable, optional
        Called with each `Point` when it is found.
    on_progress : callable, optional
        Called with a `placeopt.core.budget.Progress`, at most ten times a second.
    budget : Budget, optional
        Instead of `seconds` and `on_progress`: for callers who want to cancel.

    Returns
    -------
    Front
        Values in the model's own senses. ``plan`` of a point holds the variables that are not zero
        by name, or the plan of the problem that placeopt built the model for; ``point.load(model)``
        gives it to the variables. ``bounds`` is valid however early the search ends.
        ``runs[0].parameters`` has ``status``, one of `placeopt.exact.memory.STATUSES`, and
        ``reason``.

    Raises
    ------
    UsageError
        No goals, unknown names, an unbounded goal, a wrong step, continuous goals without a gap.
    UnsupportedError
        A constraint is not linear, or a goal neither that nor convex and quadratic.

    Examples
    --------
    >>> model = pyo.ConcreteModel()
    >>> model.x = pyo.Var(range(3), domain=pyo.Binary)
    >>> model.value = pyo.Objective(expr=3 * model.x[0] + 2 * model.x[1] + model.x[2], sense=-1)
    >>> model.weight = pyo.Objective(expr=2 * model.x[0] + model.x[1] + 2 * model.x[2])
    >>> [point.values for point in enumerate(model).points]
    [(0.0, 0.0), (2.0, 1.0), (3.0, 2.0), (5.0, 3.0), (6.0, 5.0)]
    """
    check_request(model, solver, options)
    _check(start, jobs, max_points)
    budget = budget or budget_of(seconds, on_progress)
    goals = goals_of(model, objectives, steps, gap)
    facts = {"solver": solver or DEFAULT, "jobs": jobs, "options": dict(options or {})}
    try:
        search = ModelSearch(model, goals, budget)
    except InfeasibleInstanceError as error:
        return front_without_points(model, goals, budget, facts, error.reasons)
    facts["solver"] = search.solver(solver, options)
    return search.run(facts, start, max_points, on_point)


def budget_of(
    seconds: float | None, on_progress: Callable[[Progress], None] | None = None
) -> Budget:
    """Return the budget of a time limit, which may be 0."""
    # A budget has a positive limit; the shortest one is over before the first question.
    return Budget(None, _NO_TIME if seconds == 0 else seconds, on_progress)


def check_request(model: Any, solver: str | None, options: Mapping[str, Any] | None) -> None:
    """Raise unless this is a model, its fixed variables have values, and the solver is known."""
    if not isinstance(model, pyo.ConcreteModel):
        remedy = "give a pyomo ConcreteModel; of an AbstractModel its create_instance(data)"
        raise UsageError(f"the model is of type {type(model).__name__}; {remedy}")
    for variable in model.component_data_objects(pyo.Var, active=True, descend_into=True):
        if variable.fixed and variable.value is None:
            raise UsageError(f"variable {variable.name} is fixed and has no value; fix it at one")
    if solver is not None:
        require_solver(solver)
    check_options(solver or DEFAULT, options or {})


def _check(start: Any, jobs: int, max_points: int | None) -> None:
    if not (start is None or isinstance(start, Front)):
        raise UsageError(f"start is {start!r}; give a Front that this function returned")
    for name, value in (("jobs", jobs), ("max_points", max_points)):
        if value is not None and (not isinstance(value, int) or value < 1):
            raise UsageError(f"{name} is {value!r}; give a whole number of at least 1")
