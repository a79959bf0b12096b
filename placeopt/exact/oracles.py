"""Answers of a solver for a compiled Pyomo model: what every oracle over a model shares, and the
oracle of models that are no placeopt problem."""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from placeopt.core.budget import Budget
from placeopt.core.calls import Call
from placeopt.core.cluster import Cluster
from placeopt.core.errors import UsageError
from placeopt.exact.answers import Answer
from placeopt.exact.memory import TOLERANCE
from placeopt.exact.program import Program
from placeopt.exact.solvers import Outcome, solve

if TYPE_CHECKING:
    from placeopt.exact.compiled_model import CompiledModel

#: Values that are so near to a whole number of units are that number.
_WHOLE_TOLERANCE = 1e-3
#: Relative gap at which a weighted sum counts as least: it only has to give a good point.
_SUM_GAP = 1e-4


class SolverOracle(ABC):
    """Minimises an objective of a compiled model by a solver.

    Parameters
    ----------
    compiled : CompiledModel
    budget : Budget
        Its cancellation stops the solver.
    solver : {"highs", "scip"}
    seed : int
    options : mapping, optional
        The solver's own options.
    """

    def __init__(
        self,
        compiled: CompiledModel,
        budget: Budget,
        solver: str,
        seed: int = 0,
        options: Mapping[str, Any] | None = None,
    ):
        self.compiled, self.budget, self.solver, self.seed = compiled, budget, solver, seed
        self.options = options or {}
        self.floors: Sequence[float] = compiled.floors
        self.cluster: Cluster | None = None  # where questions are answered, instead of here
        self.lock = threading.Lock()  # the Pyomo model holds one solution at a time

    @abstractmethod
    def read(self, outcome: Outcome) -> Answer | None:
        """Return what a solution stands for; None where rows were added that exclude it.

        Several workers call it: who needs the Pyomo model holds `lock`.
        """

    def start(self, payload: Any) -> np.ndarray | None:
        """Return the vector that a solver may start from."""
        return None if payload is None else payload.x

    def minimise(
        self,
        objective: int,
        limits: Sequence[float],
        *,
        seconds: float,
        start: Any,
        careful: bool,
    ) -> Answer:
        """Minimise one objective within limits on the others, in units."""
        whole = self.compiled.objectives[objective].step is not None
        answer = self._ask(
            lambda: self.compiled.within(objective, limits),
            seconds,
            start,
            relative_gap=0.0 if whole else TOLERANCE / 2,
            absolute_gap=0.9 if whole else 0.0,
            careful=careful,
        )
        if answer.status == "unbounded":
            raise UsageError(self._unbounded(objective))
        return answer

    def minimise_sum(
        self, weights: Sequence[float], limits: Sequence[float], *, seconds: float, start: Any
    ) -> Answer:
        """Minimise a weighted sum of the objectives within limits, in units."""
        return self._ask(
            lambda: self.compiled.within_sum(weights, limits),
            seconds,
            start,
            relative_gap=_SUM_GAP,
            absolute_gap=0.0,
        )

    def _ask(
        self, program: Callable[[], Program], seconds: float, start: Any, **settings: Any
    ) -> Answer:
        """Solve a program, made anew for every try: rows may be added in between."""
        deadline = time.perf_counter() + seconds
        first = self.start(start)
        while True:
            left = deadline - time.perf_counter()
            outcome = self._solve(program(), {"seconds": left, "start": first, **settings})
            if outcome.x is None:
                return Answer(outcome.status, outcome.bound)
            answer = self.read(outcome)
            if answer is not None:
                return answer
            first = None
            if self.budget.out_of_time or time.perf_counter() >= deadline:
                return Answer("unknown", outcome.bound)

    def _solve(self, program: Program, settings: dict[str, Any]) -> Outcome:
        settings |= {"seed": self.seed, "options": self.options}
        if self.cluster is None:
            return solve(program, self.solver, budget=self.budget, **settings)
        call = Call(_solve_elsewhere, (program, self.solver, settings))
        found: Outcome | None = self.cluster.ask(call, self.budget)
        return found or Outcome("unknown")

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


def _solve_elsewhere(
    budget: Budget, program: Program, solver: str, settings: dict[str, Any]
) -> Outcome:
    """Solve a program on a worker."""
    return solve(program, solver, budget=budget, **settings)


@dataclass(frozen=True, eq=False)
class SparseSolution:
    """The variables of a solution that are not zero."""

    indices: np.ndarray
    amounts: np.ndarray
    size: int

    @classmethod
    def of(cls, x: np.ndarray) -> SparseSolution:
        """Return a solution without its zeros."""
        indices = np.flatnonzero(x).astype(np.int32)
        return cls(indices, x[indices], len(x))

    @property
    def x(self) -> np.ndarray:
        """The solution, shape (columns,)."""
        x = np.zeros(self.size)
        x[self.indices] = self.amounts
        return x


class VariablesOracle(SolverOracle):
    """Answers with values of variables; objective values are computed from them.

    Parameters
    ----------
    cuts : callable, optional
        ``cuts()`` returns rows that exclude the solution which the model holds, if it is none.
    """

    def __init__(self, *arguments: Any, cuts: Any = None, **options: Any):
        super().__init__(*arguments, **options)
        self.cuts = cuts

    def read(self, outcome: Outcome) -> Answer | None:
        """Return the solution, its real-valued terms as low as its whole numbers allow."""
        assert outcome.x is not None
        if self.cuts is not None:
            with self.lock:
                self.compiled.load(outcome.x)
                if rows := self.cuts():
                    self.compiled.add(rows)
                    return None
        if (x := self._tightened(outcome.x)) is None:
            return Answer("unknown", outcome.bound)
        values = self.compiled.values(x)
        return Answer(
            outcome.status, outcome.bound, self._units(values), values, SparseSolution.of(x)
        )

    def _tightened(self, x: np.ndarray) -> np.ndarray | None:
        """Return x with its real-valued terms as low as they can be; None when time is over."""
        if not self.compiled.has_real_terms:
            return x
        lowest = solve(self.compiled.tightened(x), "highs", budget=self.budget)
        return None if lowest.x is None else np.where(self.compiled.integrality, x, lowest.x)

    def _units(self, values: Sequence[float]) -> tuple[float, ...]:
        """Return values as whole numbers of units where an objective has a step."""
        units = []
        for objective, value in zip(self.compiled.objectives, values, strict=True):
            whole = round(value) if objective.step is not None else value
            if abs(whole - value) > _WHOLE_TOLERANCE:
                raise UsageError(
                    f"the step of goal {objective.name!r} is {objective.step:g}, but a solution "
                    f"lies {abs(whole - value) * (objective.step or 1.0):.6g} between two "
                    "multiples of it; give a smaller step, or a gap instead"
                )
            units.append(float(whole))
        return tuple(units)
