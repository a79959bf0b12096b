"""Answers of a solver for a compiled Pyomo model."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from placeopt.core.budget import Budget
from placeopt.core.errors import SolverError, UsageError
from placeopt.core.fronts.values import Plan
from placeopt.exact.extreme import least_vertex
from placeopt.exact.memory import Answer, Found
from placeopt.exact.program import Program, lifted
from placeopt.exact.solvers import Outcome, solve

if TYPE_CHECKING:
    from placeopt.exact.compiled_model import CompiledModel
    from placeopt.exact.goals import ModelOrigin

#: Values that are so near to a whole number of units are that number.
_NEARLY_WHOLE = 1e-3
#: How far a value may be from a multiple of the step that a model shows, relatively.
_OFF_STEP = 1e-6
#: Tolerances where a solver's own is too large: at which real terms are nearly exact, and at which
#: the whole numbers are right that a solution is rounded to.
_SMALL_TOLERANCE, _WHOLE_TOLERANCE = 1e-9, 1e-7
#: Solvers to ask where one is not certain.
_SECOND_OPINIONS = ("highs", "scip")
#: How far a value may be from its bound, in differences that can be told apart.
_DOUBTFUL = 1000
#: Relative gap at which a weighted sum counts as least: it only has to give a good point.
_SUM_GAP = 1e-4
#: Rounding of a solver's bound of whole numbers, absolute and relative.
_BOUND_ROUNDING = (1e-4, 1e-9)


@dataclass(frozen=True)
class Way:
    """How a question is asked: of which solver, with what tolerance, with or without presolve."""

    solver: str
    tolerance: float | None = None
    careful: bool = False


@dataclass(frozen=True, eq=False)
class Solution:
    """The variables of a solution that are not zero, and its plan where that was asked for.

    A plan that comes from no model stands alone.
    """

    indices: np.ndarray
    amounts: np.ndarray
    size: int
    plan: Plan | None = None

    @classmethod
    def of(cls, x: np.ndarray | None, plan: Plan | None = None) -> Solution:
        """Return a solution without its zeros."""
        if x is None:
            return cls(np.empty(0, dtype=np.int32), np.empty(0), 0, plan)
        indices = np.flatnonzero(x).astype(np.int32)
        return cls(indices, x[indices], len(x), plan)

    @property
    def x(self) -> np.ndarray | None:
        """The solution, shape (columns,); None of a plan alone."""
        if not self.size:
            return None
        x = np.zeros(self.size)
        x[self.indices] = self.amounts
        return x


class Oracle:
    """Minimises one objective of a compiled model, or a weighted sum of all, within limits.

    Answers have values of variables; those of the objectives are computed from them. An answer that
    is not certain is asked for again: with a small tolerance, then of another solver. Where the
    referee of a problem judges each plan, no answer is in doubt.

    Parameters
    ----------
    compiled : CompiledModel
    budget : Budget
        Its cancellation stops the solver.
    solver : str
    seed : int
    options : mapping, optional
        The solver's own options.
    origin : ModelOrigin, optional
        Of a problem's model: its ``cuts`` exclude solutions that are no plans.
    judged : bool
        Values are those that the referee of the problem gives to the plan of a solution.

    Attributes
    ----------
    floors : sequence of float
        Trivial lower bounds of the objectives, in units.
    """

    def __init__(
        self,
        compiled: CompiledModel,
        budget: Budget,
        solver: str,
        seed: int = 0,
        options: Mapping[str, Any] | None = None,
        origin: ModelOrigin | None = None,
        judged: bool = False,
    ):
        self.judged = judged
        self.compiled, self.budget, self.solver, self.seed = compiled, budget, solver, seed
        self.options, self.origin = options or {}, origin
        self.floors: Sequence[float] = compiled.floors
        self.lock = threading.Lock()  # the Pyomo model holds one solution at a time

    def ways(self, careful: bool) -> Sequence[Way]:
        """Return three ways to ask: as usual, with a small tolerance, by another solver.

        One is enough where the referee judges what the solver says.
        """
        if self.judged:
            return (Way(self.solver, careful=careful),)
        compiled, usual = self.compiled, None
        if compiled.is_delicate:
            usual = _SMALL_TOLERANCE if compiled.has_real_columns else _WHOLE_TOLERANCE
        other = next((name for name in _SECOND_OPINIONS if name != self.solver), self.solver)
        ways = (
            Way(self.solver, usual),
            Way(self.solver, _SMALL_TOLERANCE, careful=True),
            Way(other, _SMALL_TOLERANCE),
        )
        return ways[int(careful) :]

    def is_certain(self, answer: Answer, objective: int, limits: Sequence[float]) -> bool:
        """Whether the point of an optimal answer attains its bound within the limits."""
        if self.judged or answer.status != "optimal":
            return answer.status != "doubtful"
        if answer.values is None:
            return False
        precision, value = self.compiled.precision, answer.values[objective]
        room = precision.asked * precision.of(np.array(limits))
        inside = (np.array(answer.values) <= limits + room).all()
        near = precision.of(np.array(answer.values))[objective] * _DOUBTFUL
        return bool(inside and abs(value - answer.bound) <= (near or 0.9))

    # -- questions ---------------------------------------------------------------------------------

    def minimise(
        self,
        objective: int,
        limits: Sequence[float],
        *,
        seconds: float,
        start: Any,
        careful: bool,
    ) -> Answer:
        """Minimise one objective; with several jobs, called from several threads at once.

        Parameters
        ----------
        objective : int
        limits : sequence of float
            Largest value of every objective, in units, inclusive; inf for none, and for the
            objective itself.
        seconds : float
            Time limit.
        start : object
            The payload of a point within the limits, or None.
        careful : bool
            An earlier answer contradicts what is known: ask another way.
        """
        deadline = self.budget.seconds + seconds
        return self._surely(
            lambda way: self._descend(objective, limits, way, deadline, start),
            lambda answer: self.is_certain(answer, objective, limits),
            np.eye(len(limits))[objective],
            deadline,
            careful,
        )

    def minimise_sum(
        self,
        weights: Sequence[float],
        limits: Sequence[float],
        *,
        seconds: float,
        start: Any,
        exact: bool = False,
        apart: float | None = None,
    ) -> Answer:
        """Minimise a weighted sum of the objectives, of which the answer's bound is.

        Other arguments as of `minimise`.

        Parameters
        ----------
        weights : sequence of float
            Of at least 0.
        exact : bool
            As exactly as single objectives; else roughly: it only has to give a good point.
        apart : float, optional
            Difference below which two exact sums are one; by default what can be told.
        """
        compiled, deadline = self.compiled, self.budget.seconds + seconds
        w = np.array(weights, dtype=float)
        size, is_whole = compiled.scale(w), self._is_whole(w)
        apart = apart or (0.9 if is_whole else self._resolution(w))
        near = apart if is_whole else max(apart, _DOUBTFUL * self._resolution(w))
        relative, absolute = (0.0, apart / size) if exact else (_SUM_GAP, 0.0)

        def ask(way: Way) -> Answer:
            answer = self._ask(
                lambda: compiled.within_sum(w, limits, size),
                w,
                limits,
                way,
                deadline,
                start,
                relative_gap=relative,
                absolute_gap=absolute,
            )
            if answer.status == "unbounded":
                floors = [k for k in np.flatnonzero(w).tolist() if math.isinf(self.floors[k])]
                raise UsageError(self._unbounded(floors[0] if floors else 0))
            return replace(answer, bound=answer.bound * size)

        if not exact:
            return ask(Way(self.solver))
        return self._surely(ask, lambda answer: _is_least(answer, w, near, is_whole), w, deadline)

    def _surely(
        self,
        ask: Callable[[Way], Answer],
        is_sure: Callable[[Answer], bool],
        weights: np.ndarray,
        deadline: float,
        careful: bool = False,
    ) -> Answer:
        """Ask one way after the other until an answer is sure; else the surest is unknown."""
        answers: list[Answer] = []
        error: SolverError | None = None
        for way in self.ways(careful):
            try:
                answers.append(ask(way))
            except SolverError as reason:
                error = reason
                continue
            if is_sure(answers[-1]):
                return answers[-1]
            if self._is_over(deadline):
                break
        if not answers and error is not None:
            raise error
        return _surest(answers, weights)

    def _is_whole(self, weights: np.ndarray) -> bool:
        """Whether a sum takes whole numbers only."""
        whole = self.compiled.precision.whole[np.flatnonzero(weights)]
        return bool(whole.all() and (weights == np.round(weights)).all())

    def _resolution(self, weights: np.ndarray) -> float:
        """Return the difference of sums that can be told."""
        used = np.flatnonzero(weights).tolist()
        return float(sum(abs(weights[k]) * self.compiled.gaps(k)[0] for k in used))

    def _descend(
        self, objective: int, limits: Sequence[float], way: Way, deadline: float, start: Any
    ) -> Answer:
        """Minimise an objective, part by part where it has parts."""
        compiled, leading = self.compiled, list[float]()
        absolute, relative = compiled.gaps(objective)
        while True:
            whole = compiled.is_whole(objective, leading)
            answer = self._ask(
                lambda: compiled.within(objective, limits, leading),
                np.eye(len(compiled.objectives))[objective],
                limits,
                way,
                deadline,
                start,
                relative_gap=0.0 if whole else relative,
                absolute_gap=0.9 if whole else absolute,
            )
            if answer.status == "unbounded":
                raise UsageError(self._unbounded(objective))
            if answer.status != "optimal" or len(leading) == compiled.levels(objective) - 1:
                return replace(answer, bound=compiled.bound(objective, leading, answer.bound))
            leading.append(math.ceil(answer.bound - 1e-4))
            start = answer.payload

    def _is_over(self, deadline: float) -> bool:
        return self.budget.out_of_time or self.budget.seconds >= deadline

    def _ask(
        self,
        program: Callable[[], Program],
        weights: np.ndarray,
        limits: Sequence[float],
        way: Way,
        deadline: float,
        start: Any,
        **settings: Any,
    ) -> Answer:
        """Solve a program, made anew for every try: rows may be added in between."""
        settings |= {"careful": way.careful, "tolerance": way.tolerance}
        first = None if start is None else start.x
        while True:
            now, left = program(), deadline - self.budget.seconds
            begin = None if first is None else self.compiled.start(now, first)
            outcome = self._solve(now, way.solver, {"seconds": left, "start": begin, **settings})
            if outcome.x is None:
                return Answer(outcome.status, outcome.bound)
            answer = self.read(outcome, weights, limits)
            if answer is not None:
                return answer
            first = None
            if self._is_over(deadline):
                return Answer("unknown", outcome.bound)

    def _solve(self, program: Program, solver: str, settings: dict[str, Any]) -> Outcome:
        options = self.options if solver == self.solver else {}
        return solve(
            program, solver, budget=self.budget, seed=self.seed, options=options, **settings
        )

    def _unbounded(self, objective: int) -> str:
        name, cost = self.compiled.objectives[objective].name, self.compiled.costs[objective]
        program = self.compiled.program
        ends = np.where(cost > 0, program.col_lower, program.col_upper)
        open_ = np.flatnonzero((cost != 0) & ~np.isfinite(ends))[:5].tolist()
        names = ", ".join(self.compiled.columns[k].name for k in open_)
        return (
            f"goal {name!r} is unbounded: it can improve without end"
            + (f" through {names}" if names else "")
            + "; give these variables bounds, add the constraint that is missing, "
            "or check the sense of the goal"
        )

    # -- answers -----------------------------------------------------------------------------------

    def read(self, outcome: Outcome, weights: np.ndarray, limits: Sequence[float]) -> Answer | None:
        """Return the solution, its real-valued terms as low as its whole numbers allow.

        None where rows were added that exclude it. Several workers call it: who needs the Pyomo
        model holds `lock`.

        Parameters
        ----------
        weights : ndarray, shape (objectives,)
            Of the objectives in what was minimised.
        limits : sequence of float
            Of the objectives, in units.
        """
        assert outcome.x is not None
        plan = self._plan_of(outcome.x)
        if plan is None and self._has_cuts:
            return None
        if self.judged:
            assert plan is not None
            solution, claimed = Solution.of(outcome.x, plan), self.compiled.values(outcome.x)
            return Answer(outcome.status, outcome.bound, self.judge(plan), claimed, solution)
        if self._adds_tangents(outcome.x):
            return None
        x = self._polished(outcome.x, weights, limits)
        if self._adds_tangents(x):
            return None
        x = lifted(self.compiled.squares, x)
        if not self.compiled.keeps_rows(x):
            return Answer("doubtful", outcome.bound)
        values = self.compiled.values(x)
        units = self._units(values)
        if units is None:
            return Answer("doubtful", outcome.bound)
        return Answer(outcome.status, outcome.bound, units, values, Solution.of(x))

    @property
    def _has_cuts(self) -> bool:
        return self.origin is not None and self.origin.cuts is not None

    def _plan_of(self, x: np.ndarray) -> Plan | None:
        """Return the plan of a solution where it is asked for; None if it is none.

        Rows that exclude it are added then.
        """
        origin, model = self.origin, self.compiled.model
        if origin is None or not (self.judged or self._has_cuts):
            return None
        with self.lock:
            self.compiled.load(x)
            plan = origin.extract(model)
            rows = () if origin.cuts is None else origin.cuts(model, origin.problem, plan)
            if rows:
                self.compiled.add(rows)
        return None if rows else plan

    def _adds_tangents(self, x: np.ndarray) -> bool:
        """Whether a solution has less than some squares, of which it adds tangents."""
        with self.lock:
            return bool(self.compiled.squares) and self.compiled.add_tangents(x)

    def _polished(self, x: np.ndarray, weights: np.ndarray, limits: Sequence[float]) -> np.ndarray:
        """Return x with its real columns at the best vertex that its whole numbers allow."""
        compiled = self.compiled
        if not compiled.has_real_columns or not (
            compiled.has_real_terms or not compiled.keeps_rows(x)
        ):
            return x
        costs = compiled.real_costs
        sizes = np.abs(costs).max(axis=1, keepdims=True)
        least = [weights @ costs, (costs / np.where(sizes > 0, sizes, 1.0)).sum(axis=0)]
        for exact in (True, False):
            program = compiled.with_whole_fixed(x, limits, exact=exact)
            lowest = least_vertex(program, least, self.budget)
            if lowest is not None:
                return compiled.with_real(x, lowest)
        return x

    def _units(self, values: Sequence[float]) -> tuple[float, ...] | None:
        """Return values as whole numbers of units where an objective has a step.

        None where the time was over before the real columns were polished: they are then as rough
        as the solver left them.
        """
        rough = self.compiled.has_real_columns and self.budget.out_of_time
        units = []
        for objective, value in zip(self.compiled.objectives, values, strict=True):
            whole = round(value) if objective.step is not None else value
            if abs(whole - value) > _NEARLY_WHOLE:
                if rough:
                    return None
                raise UsageError(
                    f"the step of goal {objective.name!r} is {objective.step:g}, but a solution "
                    f"lies {abs(whole - value) * (objective.step or 1.0):.6g} between two "
                    "multiples of it; give a smaller step, or a gap instead"
                )
            units.append(float(whole))
        return tuple(units)

    # -- plans -------------------------------------------------------------------------------------

    def judge(self, plan: Plan) -> tuple[float, ...] | None:
        """Return the referee's values of a plan in units, None where it breaks the instance."""
        assert self.origin is not None
        problem = self.origin.problem
        verdict = problem.evaluate(plan)
        if not verdict.feasible:
            return None
        values = [verdict.values[c] for c in problem.columns(self.compiled.objectives)]
        result = list[float]()
        for value, units, objective in zip(
            values, self.compiled.in_units(values).tolist(), self.compiled.objectives, strict=True
        ):
            whole = units if objective.step is None else float(round(units))
            if abs(units - whole) > _OFF_STEP * max(1.0, abs(units)):
                raise UsageError(
                    f"the referee of {problem.problem} says {objective.name} is "
                    f"{value:.12g}, but by the model it is a multiple of {objective.step:g}; "
                    "referee and model have to agree"
                )
            result.append(whole)
        return tuple(result)

    def known(self, plans: Iterable[Plan]) -> list[Found]:
        """Return feasible plans as points, with vectors of the model where it can express them."""
        origin, result = self.origin, list[Found]()
        assert origin is not None
        for plan in plans:
            values = self.judge(plan)
            if values is None:
                continue
            fits = origin.assign is not None and origin.assign(self.compiled.model, plan)
            if fits or not origin.omitted:
                x = self.compiled.read() if fits else None
                result.append(Found(values, Solution.of(x, plan)))
        return result


def _surest(answers: Sequence[Answer], weights: np.ndarray) -> Answer:
    """Return the best point of answers that are not certain, and the weakest bound."""
    points = [(float(weights @ a.values), k) for k, a in enumerate(answers) if a.values is not None]
    best = answers[min(points)[1]] if points else answers[-1]
    return replace(best, status="unknown", bound=min(answer.bound for answer in answers))


def _is_least(answer: Answer, weights: np.ndarray, near: float, is_whole: bool) -> bool:
    """Whether a sum attains its bound, but for what is near and rounding, or none can."""
    if answer.status != "optimal" or answer.values is None:
        return answer.status == "infeasible"
    value, (absolute, relative) = float(weights @ answer.values), _BOUND_ROUNDING
    rounding = relative * abs(value) + (absolute if is_whole else 0.0)
    return value - answer.bound <= near + rounding
