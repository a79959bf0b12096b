"""Edge-cloud heuristics: greedy, and large neighbourhood search.

All of them minimise equation (1), w cost + (1 - w) latency_ms, for one weight w or for a spread.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from placeopt.core.budget import Budget
from placeopt.core.fronts.dominance import nondominated
from placeopt.core.fronts.front import Front
from placeopt.core.fronts.trace import RunSnapshot
from placeopt.core.fronts.values import Objective
from placeopt.core.goals import window
from placeopt.core.task import Candidate, Task
from placeopt.edge_cloud.encoder import EdgeCloudEncoder
from placeopt.edge_cloud.problem import EdgeCloud
from placeopt.edge_cloud.search.closing import close, is_applicable, is_closed
from placeopt.edge_cloud.search.lns import PlanBuilder
from placeopt.edge_cloud.search.prices import Prices, Relaxation, lower_bounds, typical_differences
from placeopt.edge_cloud.sequence import EdgeCloudSequence

# -- chords ----------------------------------------------------------------------------------------

#: Shares of the cost in balanced sums, scaled to the ranges of a front, and in sums of chords.
_BALANCED, _MIDDLE = (0.5, 0.3, 0.7), (0.25, 0.75)


def weight_of(share: float, ranges: np.ndarray) -> float:
    """Return the weight of the cost by which it has a share of a sum of scaled goals.

    Parameters
    ----------
    ranges : ndarray, shape (2,)
        Of cost and latency, above 0.
    """
    cost, latency = share / ranges[0], (1 - share) / ranges[1]
    return float(cost / (cost + latency))


def balanced(values: np.ndarray) -> list[float]:
    """Return weights of the cost by which both goals count about alike; none without a range.

    Parameters
    ----------
    values : ndarray, shape (plans, 2)
        Cost and latency of plans, whose ranges goals are scaled to.
    """
    ranges = _ranges(values)
    return [weight_of(share, ranges) for share in _BALANCED] if (ranges > 0).all() else []


def longest_chord(values: np.ndarray, tried: set[float]) -> float | None:
    """Return the weight of the cost of a chord, None where none is left.

    It is the longest one, by the area of its box, of those in the middle whose weights were not
    `tried`.
    """
    ranges = _ranges(values)
    if not (ranges > 0).all():
        return None
    dx, dy = np.abs(np.diff(_hull(values / ranges), axis=0)).T
    shares = dy / (dx + dy)
    best, longest = None, 0.0
    for share, area in zip(shares.tolist(), (dx * dy).tolist(), strict=True):
        weight = round(weight_of(share, ranges), 9)
        if _MIDDLE[0] <= share <= _MIDDLE[1] and area > longest and weight not in tried:
            best, longest = weight, area
    return best


def _ranges(values: np.ndarray) -> np.ndarray:
    """Return the ranges of the plans that no other dominates."""
    ranges: np.ndarray = np.ptp(values[nondominated(values)], axis=0)
    return ranges


def _hull(values: np.ndarray) -> np.ndarray:
    """Return the corners of the lower convex hull of a front, by the first goal."""
    corners: list[np.ndarray] = []
    for point in np.unique(values[nondominated(values)], axis=0):
        while len(corners) > 1 and _turns_up(corners[-2], corners[-1], point) <= 1e-12:
            corners.pop()
        corners.append(point)
    return np.array(corners)


def _turns_up(one: np.ndarray, other: np.ndarray, third: np.ndarray) -> float:
    """Return a number above 0 where the way from one point by another to a third turns left."""
    (x, y), (u, v) = other - one, third - one
    return float(x * v - y * u)


# -- methods ---------------------------------------------------------------------------------------

#: Weights at the ends of a spread: almost all on one objective, so that the other breaks ties.
_ENDS = (1e-3, 1 - 1e-3)
#: Steps of the prices for the first weight of a spread, and for each that follows.
_FIRST_STEPS, _NEXT_STEPS = 100, 25
#: SpreadSize of a weight's share of the budget that the prices may use, with and without a search.
_PRICES_BEFORE_SEARCH, _PRICES_ALONE = 0.45, 0.7
#: Part of what the prices leave that a search may use before the gap is closed.
_SEARCH_BEFORE_CLOSING = 0.3
#: A sweep goes on to its middle where there is time for so many times its weights. Part of the time
#: that remains for that, and of what is left then for each chord.
_MIDDLE_FROM, _MIDDLE_SHARE, _CHORD_SHARE = 2, 0.3, 1 / 8
#: Seconds from which the gap of a weight of a sweep is closed where prices suffice.
_CLOSING_SECONDS = 0.15

CostWeight = Annotated[
    float | None,
    Field(ge=0, le=1, description="Weight of the cost, 0 to 1; a spread by default."),
]
SpreadSize = Annotated[int, Field(ge=1, le=1000, description="Weights of the spread.")]


def spread(
    problem: EdgeCloud, objectives: Sequence[Objective], weight: float | None, parts: int
) -> list[float]:
    """Return weights of the cost: the one asked for, or `parts` from latency to cost.

    A single objective needs one weight only. The weights are even in units of what the choice of a
    node typically changes either objective by.
    """
    if weight is not None:
        return [float(weight)]
    if len(objectives) == 1:
        return [float(objectives[0].name == "cost")]
    cost, latency = (difference or 1.0 for difference in typical_differences(problem.arrays))
    share = np.linspace(0, 1, parts) if parts > 1 else np.array([0.5])
    weights = (share / cost) / (share / cost + (1 - share) / latency)
    return np.clip(weights, *_ENDS).tolist()


def greedy(
    task: Task[EdgeCloud],
    *,
    weight: CostWeight = None,
    order: Annotated[
        Literal["small-first", "given"],
        Field(description="Order of the applications; the paper's is the given one."),
    ] = "small-first",
    parts: SpreadSize = 32,
) -> Front:
    """Return the front of the paper's best-fit heuristic.

    Each microservice goes to the node where it adds least to the weighted sum. Where the paper
    restarts an application whose later microservices find no node, a look-ahead takes no node that
    leaves them none. Nothing is random; `start` changes nothing.
    """
    weights = spread(task.problem, task.objectives, weight, parts)
    plans = _greedy_plans(task.problem, task.budget, weights, order)
    candidates = [Candidate(task.problem.plan(hosts)) for hosts in plans]
    facts = _facts(weight, order=order)
    return task.front(candidates, method="greedy", parameters=facts)


def _greedy_plans(
    problem: EdgeCloud,
    budget: Budget,
    weights: Sequence[float],
    order: str = "small-first",
) -> list[np.ndarray]:
    """Return the nodes of a greedy plan for each weight that the budget allows, at least one."""
    sequence = EdgeCloudSequence(problem, problem.objectives, order)
    plans: list[np.ndarray] = []
    for weight in weights:
        if plans and budget.exhausted:
            break
        state = sequence.reset()
        sequence.play_greedy(state, np.array([weight, 1 - weight]), sequence.decisions)
        hosts = state.hosts
        if sequence.remaining(state):  # an application has no place: the others still may
            builder = PlanBuilder(Relaxation(problem), np.random.default_rng(0))
            no_price = np.zeros(problem.arrays.capacity.shape)
            hosts = builder.build(Prices(weight, no_price, 0.0), (0.0,))
        plans.append(hosts)
        budget.spend(1)
    return plans


def lns(
    task: Task[EdgeCloud],
    *,
    weight: CostWeight = None,
    parts: SpreadSize = 17,
    max_removed: Annotated[
        int, Field(ge=1, le=16, description="Applications taken out at once, at most.")
    ] = 6,
    strength: Annotated[
        float, Field(ge=0, le=10, description="Largest share of the prices that rebuilding pays.")
    ] = 0.8,
) -> Front:
    """Return the front of a large neighbourhood search, with bounds, and a gap for each point.

    Related applications are taken out and put back one by one, each placed exactly, under prices of
    random strength that keep them off scarce nodes. The result is accepted by simulated annealing.
    Prices and plans of one weight start the next; plans of `start` are improved. A budget that is
    too small for all weights of the spread serves fewer; where a clock leaves time, the middle of
    the front gets more. A clock lets gaps of small instances be closed, for a single weight with
    more effort: see `placeopt.edge_cloud.search.closing`.
    """
    weights = spread(task.problem, task.objectives, weight, parts)
    middle = False
    if len(weights) > 1:
        count = _affordable(task.problem, task.budget, _MIDDLE_FROM * parts)
        timed, limited = task.budget.seconds_limit is not None, bool(task.problem.goal_limits)
        middle = count == _MIDDLE_FROM * parts and timed and not limited
        weights = spread(task.problem, task.objectives, weight, min(count, parts))
    return by_weights(
        task,
        weights,
        method="lns",
        parameters=_facts(weight, max_removed=max_removed, strength=strength),
        search=(max_removed, strength),
        middle=middle,
    )


def _affordable(problem: EdgeCloud, budget: Budget, wanted: int) -> int:
    """Return how many of the wanted weights a budget is enough for, at least 3."""
    by_time = np.inf
    if budget.seconds_limit is not None:
        relaxation = Relaxation(problem)
        for _ in range(2):  # the first time loads kernels
            begun = budget.seconds
            relaxation.bound(0.5, np.zeros(problem.arrays.capacity.shape))
        step = budget.seconds - begun
        by_time = budget.seconds_left / max(1e-9, 4 * _NEXT_STEPS * step)
    return int(max(3, min(wanted, by_time, budget.evaluations_left / (20 * _NEXT_STEPS))))


def by_weights(
    task: Task[EdgeCloud],
    weights: Sequence[float],
    *,
    method: str,
    parameters: dict[str, Any],
    search: tuple[int, float] | None = None,
    steps: tuple[int, int] = (_FIRST_STEPS, _NEXT_STEPS),
    middle: bool = False,
) -> Front:
    """Return the front of the plans built under the prices of one weight after another.

    Parameters
    ----------
    search : (int, float), optional
        `max_removed` and `strength` of a large neighbourhood search that improves the plans.
    steps : (int, int)
        Steps of the prices for the first weight, and for each that follows.
    middle : bool
        Whether a part of the time is for sums that weigh both goals about alike.
    """
    problem, budget = task.problem, task.budget
    sweep = _Sweep(task, search)
    if search and len(weights) > 1:
        some = spread(problem, task.objectives, None, 32)
        greedy_plans = _greedy_plans(problem, budget, some)
        sweep.plans += greedy_plans
        weights = _narrowed(task, weights, greedy_plans)
        sweep.candidates = [Candidate(problem.plan(hosts)) for hosts in greedy_plans]
    first = budget.share(1 - _MIDDLE_SHARE) if middle else budget
    sweep.serve(weights, first, steps, alone=len(weights) == 1)
    completed = len(sweep.proofs) == len(weights)
    if middle:
        sweep.fill(budget, steps)
    proofs = sorted(sweep.proofs, key=lambda prices: prices.weight)
    return task.front(
        _with_starts(sweep.candidates, task),
        method=method,
        completed=completed,
        bounds=lower_bounds(proofs, problem, task.objectives),
        parameters={
            **parameters,
            "weights": [p.weight for p in proofs],
            # Where nothing is feasible a bound is infinite, which JSON cannot hold.
            "weighted_bounds": [p.bound if np.isfinite(p.bound) else None for p in proofs],
        },
    )


def _with_starts(candidates: list[Candidate], task: Task[EdgeCloud]) -> Iterator[Candidate]:
    """Yield candidates, then the plans of the start until time is over; at least one of them all.

    To judge thousands of plans again may take longer than the whole limit.
    """
    yield from candidates
    for k, point in enumerate(task.start or ()):
        if task.budget.out_of_time and (candidates or k > 0):
            return
        yield Candidate(point.plan)


def _narrowed(
    task: Task[EdgeCloud], weights: Sequence[float], plans: Sequence[np.ndarray]
) -> Sequence[float]:
    """Return as many weights, of the part of the spread whose greedy plans keep the limits.

    Without limits they are all of them.
    """
    problem = task.problem
    if not problem.goal_limits:
        return weights
    columns = problem.columns(task.objectives)
    values = [problem.evaluate(problem.plan(hosts)).values for hosts in plans]
    low, high = window(np.array(values)[:, columns], task.most)
    at = np.linspace(low, high, len(weights))
    result: list[float] = np.interp(at, np.linspace(0, 1, len(weights)), weights).tolist()
    return result


class _Sweep:
    """Plans and proofs for one weight after another.

    Attributes
    ----------
    plans : list of ndarray, shape (microservices,)
        Their hosts; those of the task's start to begin with.
    candidates : list of Candidate
        The same, but for the start's.
    proofs : list of Prices
        Of the weights that are done.
    """

    def __init__(self, task: Task[EdgeCloud], search: tuple[int, float] | None):
        self._task, self._search = task, search
        self._relaxation = Relaxation(task.problem)
        rng = np.random.default_rng(task.seed)
        self._builder = PlanBuilder(self._relaxation, rng, *(search or ()))
        self.plans = [task.problem.hosts(point.plan) for point in task.start or ()]
        self._values: list[list[float]] = []
        self.candidates: list[Candidate] = []
        self.proofs: list[Prices] = []

    def fill(self, budget: Budget, steps: tuple[int, int]) -> None:
        """Serve sums that weigh both goals about alike, then those between their plans."""
        self.serve(balanced(self.values()), budget.share(0.5), steps)
        each, tried = _CHORD_SHARE * budget.seconds_left, set[float]()
        while budget.seconds_left > each and not budget.exhausted:
            weight = longest_chord(self.values(), tried)
            if weight is None:
                return
            tried.add(weight)
            self.serve([weight], budget.share(each / budget.seconds_left), steps)

    def values(self) -> np.ndarray:
        """Return cost and latency of all plans, (plans, 2)."""
        for hosts in self.plans[len(self._values) :]:
            self._values.append([self._builder.value(weight, hosts) for weight in (1.0, 0.0)])
        return np.array(self._values)

    def serve(
        self,
        weights: Sequence[float],
        budget: Budget,
        steps: tuple[int, int],
        alone: bool = False,
    ) -> None:
        """Add plans and proofs for weights, within a budget."""
        if len(weights) == 0:
            return
        problem, search = self._task.problem, self._search
        part = _PRICES_BEFORE_SEARCH if search else _PRICES_ALONE
        near = min(self.proofs, key=lambda p: abs(p.weight - weights[0]), default=None)
        start = None if near is None else near.price
        affordable = [] if self.plans and budget.exhausted else weights
        for prices, share in self._relaxation.ascents(affordable, budget, steps, part, start):
            self.proofs.append(prices)
            if not self.plans or not budget.exhausted:
                shares = (1.0,) if search or share.exhausted else (1.0, 0.8)
                built = [self._builder.build(prices, shares)]
                if search:
                    plans = self.plans + built + self._builder.dive(prices, share)
                    begin = self._builder.best(prices.weight, plans)
                    better, prices = self._searched(prices, begin, share, alone)
                    built, self.proofs[-1] = built + better, prices
                self.plans += built
                self.candidates.extend(
                    _candidate(problem, self._builder, prices, hosts) for hosts in built
                )
                note = f"weight {prices.weight:.3g}, proven {prices.bound:.6g}"
                budget.report(note, self._interim())

    def _searched(
        self, prices: Prices, begin: np.ndarray, budget: Budget, alone: bool
    ) -> tuple[list[np.ndarray], Prices]:
        """Return the plans of a search that begins with one, and prices with the bound then.

        The gap is closed after a part of the search, where that pays. For a weight that is not
        `alone` that takes little time.
        """
        relaxation, builder, plans = self._relaxation, self._builder, list[np.ndarray]()
        worth = alone or budget.seconds_left > _CLOSING_SECONDS
        if worth and is_applicable(relaxation, budget):
            if is_closed(builder.value(prices.weight, begin), prices.bound):
                return [begin], prices
            hosts = builder.improve(prices, begin, budget.share(_SEARCH_BEFORE_CLOSING))
            value = builder.value(prices.weight, hosts)
            closed = close(relaxation, prices, hosts, value, budget, charges=alone)
            begin, prices = closed.hosts, replace(prices, bound=closed.bound)
            plans.append(begin)
            if is_closed(closed.value, closed.bound):
                return plans, prices
        return [*plans, builder.improve(prices, begin, budget)], prices

    def _interim(self) -> RunSnapshot:
        """Return what reports show."""
        task, plans = self._task, [candidate.plan for candidate in self.candidates]
        return RunSnapshot.of_plans(
            plans,
            bounds=lambda: np.array(lower_bounds(self.proofs, task.problem, task.objectives)),
        )


def _candidate(
    problem: EdgeCloud, builder: PlanBuilder, prices: Prices, hosts: np.ndarray
) -> Candidate:
    """Return a plan with its gap: the share of its weighted sum that might still be saved."""
    value = builder.value(prices.weight, hosts)
    gap = float(max(0.0, value - prices.bound) / value) if value > 0 else 0.0
    if not np.isfinite(gap):
        return Candidate(problem.plan(hosts))
    return Candidate(problem.plan(hosts), "bounded", gap)


def _facts(weight: float | None, **others: Any) -> dict[str, Any]:
    return ({} if weight is None else {"weight": weight}) | others


def seeds(
    encoder: EdgeCloudEncoder, rng: np.random.Generator, seconds: float | None = None
) -> np.ndarray:
    """Return the vectors of greedy plans and of plans built under prices, (k, num_genes)."""
    problem, objectives = encoder.problem, encoder.objectives
    budget = Budget(seconds=seconds)
    plans = _greedy_plans(problem, budget, spread(problem, objectives, None, 24))
    relaxation, start = Relaxation(problem), None
    builder = PlanBuilder(relaxation, rng)
    weights = spread(problem, objectives, None, 8)
    for k, weight in enumerate(weights):
        if budget.out_of_time:
            break
        share = budget.share(1 / (len(weights) - k), evaluations=_NEXT_STEPS)
        prices = relaxation.ascend(weight, share, _NEXT_STEPS, start)
        plans.append(builder.build(prices, (0.8,)))
        start = prices.price
    return np.unique([encoder.vector(hosts) for hosts in plans], axis=0)
