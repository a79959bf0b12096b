"""Exact fronts by epsilon-constraints: enumerate what an oracle can reach that minimises one
objective within limits on the others.

The search keeps regions: local upper bounds on every objective but the main one. The answer for a
region is a point y, and the proof that nothing in the region has less of the main objective. What
may still be new there has one of the other values below that of y. So the region is replaced by one
smaller region for each of these objectives, less those that lie inside another region.

Every answer refutes a corner: no feasible vector lies strictly below it. A question whose limits
lie inside those of an earlier one costs no solve where the earlier answer settles it. The corners
also give the proven bounds at any moment, however early the search ends.

Regions begin at the worst limits, so that their answers lie close together at first. A search that
may be stopped therefore asks for weighted sums first, and in turn with the regions about the boxes
that hold most of what is unknown. Such a box is empty, which refutes it, or has a point amid what
is missing.

Several questions are on their way at once. Their answers count in the order of the questions, and
each makes room for the next question: which one that is does not depend on the number of workers,
nor do the points. A worker waits only where there is nothing to ask.

All values here are in units: multiples of an objective's `step`, whole numbers, or the values
themselves where there is no step.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from placeopt.core.budget import Budget
from placeopt.core.errors import SolverError
from placeopt.core.fronts.dominance import minimal
from placeopt.core.fronts.trace import RunSnapshot
from placeopt.core.fronts.values import Objective, Plan
from placeopt.exact.memory import (
    Answer,
    Box,
    Enumeration,
    Found,
    Precision,
    Question,
    SearchHistory,
    SearchRegion,
    Unknown,
    first_weights,
)

if TYPE_CHECKING:
    from placeopt.exact.oracles import Oracle

#: Limits of each constrained real-valued objective where nothing else is said.
DEFAULT_GRID = 20
#: Questions that are on their way, whatever the number of workers; more would waste solves.
WINDOW = 12
#: With so few questions on their way, those about boxes do not wait for their turn.
_BUSY = 4
#: Questions about regions to one about a box: while more than this share is unknown, and later.
_MUCH_UNKNOWN, _REGIONS_PER_BOX, _REGIONS_PER_LATE_BOX = 0.2, 1, 16
#: Seconds, and share of the limit, after which a search asks for more than regions: one that ends
#: before needs no good points on the way.
_QUICK_SECONDS, _QUICK_SHARE = 1.0, 0.02
#: A search with so few limits to ask about has its answers as soon by regions alone.
_FEW_LIMITS = 12
#: Differences between a value and its bound that no question can make smaller, and that are
#: rounding.
_EQUAL, _ROUNDING = 3, 10
#: Shortest time slice of one question, seconds.
_MIN_SLICE = 1.0


@dataclass(frozen=True)
class Rules:
    """How `enumerate_front` searches.

    Attributes
    ----------
    main : int, optional
        The objective to minimise within limits on the others; by default one without a step, or the
        one of most values.
    grid : int, optional
        Limits per constrained objective, spread evenly between ideal and nadir; `DEFAULT_GRID`
        where a constrained objective has neither a step nor a gap.
    gaps : sequence of float or None, optional
        Distance in units from a point's value to the next limit of the objective, instead of a
        grid: no feasible vector is better than all points by more than that.
    jobs : int
        Questions that are answered at the same time, in threads.
    coarse : bool, optional
        Ask for points that spread evenly too, which costs some more questions; by default where
        the budget has a time limit and the search takes more than a moment.
    max_points : int, optional
        Stop at so many non-dominated points.
    on_found : callable, optional
        Called with every point that no earlier one dominates.
    on_answer : callable, optional
        Called after every answer with what is known and the number of answers.
    present : callable, optional
        From vectors in units, shape (k, objectives), to the values that reports show.
    plan_of : callable, optional
        The plan of a point, for those who look at the front while it grows.
    precision : Precision, optional
        What values can be told apart.
    limits : ndarray, shape (objectives,), optional
        Largest values in units; only points within are looked for, and proofs hold for these.
    payoff_only : bool
        Stop when each objective was minimised, with the status ``payoff``, unless one point is the
        whole front.
    """

    main: int | None = None
    grid: int | None = None
    gaps: Sequence[float | None] | None = None
    jobs: int = 1
    coarse: bool | None = None
    max_points: int | None = None
    on_found: Callable[[Found], None] | None = None
    on_answer: Callable[[SearchHistory, int], None] | None = None
    present: Callable[[np.ndarray], np.ndarray] | None = None
    plan_of: Callable[[Found], Plan] | None = None
    precision: Precision | None = None
    limits: np.ndarray | None = None
    payoff_only: bool = False


def enumerate_front(
    oracle: Oracle,
    objectives: Sequence[Objective],
    budget: Budget,
    *,
    known: Sequence[Found] = (),
    proofs: Mapping[str, np.ndarray] | None = None,
    proven: np.ndarray | None = None,
    **rules: Any,
) -> Enumeration:
    """Enumerate the non-dominated points that an oracle can reach.

    All of them where every objective but the main one has a step, and neither `grid` nor `gaps` is
    given.

    Parameters
    ----------
    known : sequence of Found
        Feasible points to begin with.
    proofs : mapping, optional
        What an earlier search refuted: `SearchHistory.proofs`.
    proven : ndarray, shape (k, objectives), optional
        A bound set: every feasible vector is weakly dominated by a row.
    **rules
        Attributes of `Rules`.
    """
    search = _Search(oracle, tuple(objectives), budget, Rules(**rules))
    if proofs is not None:
        search.memory.take_up(proofs)
    if proven is not None:
        search.memory.take_up_bounds(proven)
    return search.run(known)


class _Search:
    def __init__(
        self, oracle: Oracle, objectives: tuple[Objective, ...], budget: Budget, rules: Rules
    ):
        self.oracle, self.objectives, self.budget, self.rules = oracle, objectives, budget, rules
        self.whole = np.array([o.step is not None for o in objectives])
        self.size = len(objectives)
        none = np.full(self.size, math.inf)
        self.limits = none if rules.limits is None else np.array(rules.limits, dtype=float)
        self.precision = rules.precision or Precision(self.whole)
        self.memory = SearchHistory(self.precision, oracle.floors)
        self.unresolved = np.zeros(self.size)  # how far values that count as least may be from it
        self.grid = rules.grid
        self.window: deque[Question] = deque()  # on their way, in the order of their answers
        self.later: list[np.ndarray] = []  # asked, and not answered in time
        self.unanswered = 0
        self.is_contradicted = False
        self.solves = self.failures = self.main = 0
        self.ideal = self.nadir = np.full(self.size, math.nan)
        self.spread_at = math.inf  # seconds from when on weighted sums and boxes are asked for
        self.weights: list[np.ndarray] = []  # of sums that are still to be asked for
        self.unknown: Unknown | None = None  # None where no boxes are asked about
        self.regions_since_box = 0
        present = rules.present or np.array
        self._interim = RunSnapshot(
            values=lambda: present(self.memory.values.all),
            best=lambda: present(self.memory.values.all.min(axis=0, keepdims=True))[0],
            plan=None if rules.plan_of is None else self._plan,
            bounds=lambda: present(minimal(self.memory.lower_bounds.all)),
            names=tuple(o.name for o in objectives),
        )

    def _plan(self, k: int) -> Plan:
        assert self.rules.plan_of is not None
        return self.rules.plan_of(self.memory.points[k])

    def run(self, known: Sequence[Found]) -> Enumeration:
        """Search until everything is settled or the budget ends."""
        for point in known:
            self.memory.add_point(point)
        pool = ThreadPoolExecutor(self.rules.jobs, "placeopt-enumerate")
        self.pool = pool if self.rules.jobs > 1 else None
        try:
            self._search()
        except BaseException:
            self.budget.cancel()  # the other workers stop as well
            raise
        finally:
            pool.shutdown(cancel_futures=True)
        if self.is_contradicted:
            self.memory.forget_proofs()  # the points are the referee's, and stay
        return Enumeration(
            points=self.memory.points,
            bounds=minimal(self.memory.lower_bounds.all),
            status=self._status(),
            main=self.main,
            solves=self.solves,
            failures=self.failures,
            unresolved=self.unresolved,
        )

    def _search(self) -> None:
        self.regions = SearchRegion(Box(self.ideal, self.nadir, self.whole, self.main))
        self.pending = True
        feasible = self._fill_payoff_table()
        self._choose_limits(feasible)
        if self.rules.payoff_only and feasible and not self._is_ideal_attained():
            return
        box = Box(self.ideal, self.nadir, self.whole, self.main)
        self.regions = SearchRegion(box)
        if feasible:
            self.regions.add(self._without(self.main), -math.inf, math.inf)
        if self.grid is None and self.size > 1:
            self.spread_at = self._time_to_spread()
        while self._has_regions() and not self._must_stop():
            self._fill_window()
            if self.window:
                self._settle(self.window.popleft())
        self.pending = self._has_regions()

    def _without(self, objective: int) -> np.ndarray:
        """Return the limits of all objectives but one, which is minimised."""
        limits = self.limits.copy()
        limits[objective] = math.inf
        return limits

    def _is_beyond(self, objective: int, lower: float) -> bool:
        """Whether a proven bound is above the limit of its objective."""
        return lower > self._reach(float(self.limits[objective]), objective)

    def _has_regions(self) -> bool:
        wanted = any(question.is_region for question in self.window)
        return bool(wanted or len(self.regions) or self.later)

    def _time_to_spread(self) -> float:
        limit, coarse = self.budget.seconds_limit, self.rules.coarse
        if coarse is not None:
            return 0.0 if coarse else math.inf
        if limit is None or self.regions.box.limits <= _FEW_LIMITS:
            return math.inf
        return min(_QUICK_SECONDS, _QUICK_SHARE * limit)

    def _begin_to_spread(self) -> None:
        """Ask for weighted sums and for boxes from now on."""
        self.spread_at = math.inf
        self.weights = first_weights(self.size)
        self.unknown = Unknown(self.regions.box, self.memory)

    def _choose_limits(self, feasible: bool) -> None:
        """Choose the main objective, and a grid where limits could not end otherwise."""
        self.main = self._choose_main() if self.rules.main is None else self.rules.main
        gaps = self.rules.gaps or [None] * self.size
        endless = [
            not whole and gap is None and k != self.main
            for k, (whole, gap) in enumerate(zip(self.whole, gaps, strict=True))
        ]
        if self.grid is None and any(endless) and feasible and not self._is_ideal_attained():
            self.grid = DEFAULT_GRID

    def _is_ideal_attained(self) -> bool:
        """Whether one point is the least in everything."""
        met = self.memory.values.all
        reach = [self._reach(lower, k) for k, lower in enumerate(self.ideal.tolist())]
        return bool((met <= reach).all(axis=1).any())

    def _choose_main(self) -> int:
        """Return the objective to minimise: a real-valued one, else the one of most values."""
        if not self.whole.all():
            return int(np.argmin(self.whole))
        spread = np.nan_to_num(self.nadir - self.ideal, nan=0.0, posinf=0.0, neginf=0.0)
        return int(np.argmax(spread))

    def _must_stop(self) -> bool:
        return self.budget.out_of_time or self._has_enough_points()

    def _has_enough_points(self) -> bool:
        enough = self.rules.max_points
        met = self.memory.values.all
        return enough is not None and len(met) >= enough and len(minimal(met)) >= enough

    def _status(self) -> str:
        if self.unanswered or self.is_contradicted:
            return "numerical"
        if self.pending:
            if self.budget.cancelled:
                return "cancelled"
            if self._has_enough_points():
                return "solution-limit"
            return "time-limit" if self.budget.out_of_time else "payoff"
        if not self.memory.points and not len(self.memory.lower_bounds.all):
            return "infeasible"
        limited = self.grid is not None or any(gap is not None for gap in self.rules.gaps or ())
        if limited and self.size > 1:
            return "grid"
        self._note_coarse_values()
        return "resolution" if self.unresolved.any() else "complete"

    def _note_coarse_values(self) -> None:
        """Remember the objectives of which only large differences can be told."""
        if len(met := self.memory.values.all):
            told = np.max([self.precision.of(values) for values in met], axis=0)
            told = np.where(told > self.precision.wanted, _ROUNDING * told, 0.0)
            self.unresolved = np.maximum(self.unresolved, told)

    # -- payoff table ------------------------------------------------------------------------------

    def _fill_payoff_table(self) -> bool:
        """Minimise the objectives lexicographically, each first once; False if infeasible."""
        # A row for each first objective.
        limits = np.array([self._without(k) for k in range(self.size)])
        open_ = list(range(self.size))
        for turn in range(self.size):
            wanted = []
            for first in open_:
                objective = (first, *(k for k in range(self.size) if k != first))[turn]
                within = limits[first].copy()
                within[objective] = math.inf  # it is minimised
                known = self._recall(objective, within)
                question = self._question(objective, within)
                wanted.append((first, objective, known or self._submit(question)))
            open_ = []
            for first, k, what in wanted:
                if self.budget.out_of_time:
                    break
                lower, point = self._answer(what) if isinstance(what, Question) else what
                if turn == 0 and (lower == math.inf or self._is_beyond(k, lower)):
                    return False
                if point is not None and point[k] <= self._reach(lower, k):
                    limits[first, k] = point[k]
                    open_.append(first)  # if not it is unsolved; what was found is kept
        self.ideal = np.array([self.memory.lower(k, self._without(k)) for k in range(self.size)])
        met = self.memory.values.all
        met = met[(met <= self.limits).all(axis=1)]
        unknown = met.max(axis=0) if len(met) else math.nan
        nadir = np.fmax.reduce(np.where(limits == math.inf, math.nan, limits))
        self.nadir = np.where(np.isnan(nadir), unknown, nadir)
        return True

    # -- what to ask -------------------------------------------------------------------------------

    def _fill_window(self) -> None:
        """Ask the next questions; what memory can answer is settled on the way."""
        while len(self.window) < WINDOW and (question := self._next_question()) is not None:
            self.window.append(self._submit(question))
        if not any(question.is_region for question in self.window):
            parts = max(1.0, len(self.later) / self.rules.jobs)
            while self.later and len(self.window) < WINDOW:
                again = self._region_question(self.later.pop(0), parts)
                self.window.extend([] if again is None else [self._submit(again)])

    def _next_question(self) -> Question | None:
        """Return the next question: weighted sums first, then boxes in turn with regions."""
        if self.budget.seconds >= self.spread_at:
            self._begin_to_spread()
        if self.weights:
            return self._sum_question(self.weights.pop(0), self.limits.copy())
        if self.regions_since_box >= self._regions_per_box:
            question = self._box_question()
            if question is not None:
                self.regions_since_box = 0
                return question
        while len(self.regions):
            question = self._region_question(self.regions.pop(), float(self.grid or 8))
            if question is not None:
                self.regions_since_box += 1
                return question
        idle = self._regions_per_box == _REGIONS_PER_BOX and len(self.window) < _BUSY
        return self._box_question() if idle else None

    @property
    def _regions_per_box(self) -> int:
        much = self.unknown is not None and self.unknown.share > _MUCH_UNKNOWN
        return _REGIONS_PER_BOX if much else _REGIONS_PER_LATE_BOX

    def _box_question(self) -> Question | None:
        """Return the question about the box that holds most of what is unknown."""
        if self.unknown is None:
            return None
        wanted = [question.limits for question in self.window if question.weights is not None]
        limits = self.unknown.largest_box(wanted)
        return None if limits is None else self._sum_question(np.ones(self.size), limits)

    def _sum_question(self, weights: np.ndarray, limits: np.ndarray) -> Question:
        question = self._question(self.main, limits, 8.0)
        spread = self.regions.box.spread
        question.weights = weights * (spread.max() / spread)
        return question

    def _region_question(self, limits: np.ndarray, parts: float) -> Question | None:
        """Return the question about a region; None where memory can settle it, and does."""
        known = self._recall(self.main, limits)
        if known is None:
            return self._question(self.main, limits, parts, is_region=True)
        if known[1] is not None:
            self._split(limits, known[1], known[0])
        return None

    def _settle(self, question: Question) -> None:
        """Learn an answer; replace the region that it is for by smaller ones."""
        if question.weights is not None:
            self._settle_sum(question)
            return
        limits = question.limits
        lower, point = self._answer(question)
        if question.answer is None:
            self.later.append(limits)
        elif lower < math.inf:
            if point is None or point[self.main] > self._reach(lower, self.main):
                if question.slow:
                    self.later.append(limits)
                else:
                    self.unanswered += 1  # it was not the time that lacked
            if point is not None:
                self._split(limits, point, lower)

    def _settle_sum(self, question: Question) -> None:
        """Learn from a weighted sum: a point, or that there is none within its limits."""
        self._wait(question)
        if question.answer is not None:
            self._learn_sum(question)
            self._tell()

    def _learn_sum(self, question: Question) -> None:
        answer, _ = self._remember(question)
        limits, main = question.limits, self.main
        if self.memory.best(main, limits) is not None or self.unknown is None:
            return
        if answer.bound < math.inf:
            self.unknown.give_up(limits)
            return
        others = limits.copy()
        others[main] = math.inf
        self.memory.exclude_below(main, others, limits[main] + (1 if self.whole[main] else 0))

    def _split(self, limits: np.ndarray, point: np.ndarray, lower: float) -> None:
        """Add the regions that hold whatever a region has and `point` does not dominate."""
        if self._is_beyond(self.main, lower):
            return
        point = np.minimum(point, limits)  # limits of real values are kept up to a tolerance
        met = self.memory.values.all
        for k in self.regions.box.others:
            smaller = limits.copy()
            smaller[k] = self._below(k, point[k])
            if (
                smaller[k] == -math.inf
                or self.regions.covers(smaller)
                or any((smaller <= q.limits).all() for q in self.window if q.is_region)
                or any((smaller == other).all() for other in self.later)
            ):
                continue
            inside = met[(met <= smaller).all(axis=1), self.main]
            self.regions.add(smaller, lower, float(inside.min(initial=math.inf)))

    def _below(self, k: int, value: float) -> float:
        """Return the next limit under a value, -inf where there is none."""
        gap = None if self.rules.gaps is None else self.rules.gaps[k]
        if gap is not None:
            return math.floor(value - gap) if self.whole[k] else value - gap
        if self.grid is None:
            return value - 1
        low, high = self.ideal[k], self.nadir[k]
        if not (math.isfinite(low) and math.isfinite(high) and low < high):
            return -math.inf
        width = (high - low) / max(1, self.grid - 1)
        line = min(math.ceil((value - low) / width - 1e-6) - 1, self.grid - 1)
        if line < 0:
            return -math.inf
        limit = low + line * width
        return min(math.floor(limit + 1e-6), value - 1) if self.whole[k] else limit

    # -- questions ---------------------------------------------------------------------------------

    def _question(
        self,
        objective: int,
        limits: np.ndarray,
        parts: float | None = None,
        *,
        is_region: bool = False,
    ) -> Question:
        best = self.memory.best(objective, limits)
        return Question(objective, limits.copy(), parts or 2.0 * self.size, best, is_region)

    def _submit(self, question: Question) -> Question:
        """Hand a question to the workers; one worker alone asks when the answer is wanted."""
        if self.pool is not None:
            question.job = self.pool.submit(self._put, question)
        return question

    def _answer(self, question: Question) -> tuple[float, np.ndarray | None]:
        """Return the bound that an answer proves and a vector to go on from; waits for it."""
        self._wait(question)
        learnt = self._learn(question)
        self._tell()
        return learnt

    def _tell(self) -> None:
        if self.rules.on_answer is not None:
            self.rules.on_answer(self.memory, self.solves)

    def _wait(self, question: Question) -> None:
        if question.job is None:
            self._put(question)
        else:
            question.job.result()

    def _recall(self, objective: int, limits: np.ndarray) -> tuple[float, np.ndarray | None] | None:
        """Return the proven bound within limits and the point that attains it, if known."""
        lower = self.memory.lower(objective, limits)
        if lower == math.inf:
            return lower, None
        best = self.memory.best(objective, limits)
        if best is not None:
            exact = self.whole[np.arange(self.size) != objective].all()
            most = _EQUAL if exact else self.precision.accepted  # limits on real values have slack
            if best.values[objective] - lower <= most * self._difference(lower, objective):
                return lower, np.array(best.values)
        return None

    def _put(self, question: Question, careful: bool = False) -> None:
        """Put a question to the oracle; runs in a worker's thread."""
        budget = self.budget
        if budget.out_of_time:
            return
        left = budget.seconds_left
        seconds = max(left / question.parts, min(left, _MIN_SLICE))
        payload = None if question.start is None else question.start.payload
        began = budget.seconds
        try:
            limits = question.limits.tolist()
            if question.weights is None:
                question.answer = self.oracle.minimise(
                    question.objective, limits, seconds=seconds, start=payload, careful=careful
                )
            else:
                question.answer = self.oracle.minimise_sum(
                    question.weights.tolist(), limits, seconds=seconds, start=payload
                )
        except SolverError:
            question.answer, question.failed = Answer("unknown"), True
        question.slow = budget.seconds - began >= 0.5 * seconds  # never without a limit

    def _learn(self, question: Question) -> tuple[float, np.ndarray | None]:
        """Remember an answer; return the bound that it proves and a vector to go on from."""
        objective, limits = question.objective, question.limits
        if question.answer is None:
            return -math.inf, None
        answer, proven = self._remember(question)
        best = self.memory.best(objective, limits)
        if best is not None and proven > self._reach(best.values[objective], objective):
            question.start, question.answer = best, Answer("unknown")
            self._put(question, careful=True)
            answer, proven = self._remember(question)
            best = self.memory.best(objective, limits) or best
            if proven > self._reach(best.values[objective], objective):
                # Asked twice, the solver says that a plan which the referee accepts cannot exist.
                self.is_contradicted = True
                return -math.inf, np.array(best.values)
        if best is not None and not self.whole[objective]:
            proven = min(proven, best.values[objective])
        self.memory.exclude_below(objective, limits, proven)
        lower = self.memory.lower(objective, limits)
        solved = best is not None and best.values[objective] <= self._reach(lower, objective)
        if solved and best is not None and not self.whole[objective]:
            apart = best.values[objective] - lower
            if apart > _ROUNDING * self._difference(lower, objective):
                self.unresolved[objective] = max(self.unresolved[objective], apart)
        use_claim = not solved and (answer.status == "optimal" or best is None)
        if answer.claimed is not None and use_claim:
            claimed = np.array(answer.claimed)
            return lower, np.where(self.whole, np.floor(claimed + 1e-4), claimed)
        return lower, None if best is None else np.array(best.values)

    def _remember(self, question: Question) -> tuple[Answer, float]:
        """Count a question, keep the point found; return the answer and what it proves."""
        self.solves += 1
        self.failures += question.failed
        answer = question.answer or Answer("unknown")
        if answer.values is not None:
            result = Found(answer.values, answer.payload)
            if self.memory.add_point(result):
                self.regions.add_point(np.array(result.values))
                if self.rules.on_found is not None:
                    self.rules.on_found(result)
        self._report()
        return answer, self._round(answer.bound, question.objective)

    def _report(self) -> None:
        if len(self.memory.values.all):
            self.budget.report(f"{self.solves} solves", self._interim)

    def _round(self, bound: float, objective: int) -> float:
        """Return a solver's bound as what it proves: the next whole unit, or a little less."""
        if not math.isfinite(bound):
            return bound
        if self.whole[objective]:
            return float(math.ceil(bound - min(0.05, max(1e-4, 1e-9 * abs(bound)))))
        return bound - self._difference(bound, objective)

    def _reach(self, lower: float, objective: int) -> float:
        """Return the largest value that counts as equal to a bound."""
        if self.whole[objective] or not math.isfinite(lower):
            return lower
        return lower + (self.precision.accepted - 1) * self._difference(lower, objective)

    def _difference(self, value: float, objective: int) -> float:
        """Return the smallest difference that can be told at a value of an objective."""
        return float(self.precision.of(np.full(self.size, value))[objective])
