"""Edge-cloud heuristics: greedy, built under prices, and large neighbourhood search.

All of them minimise equation (1), w cost + (1 - w) latency_ms, for one weight w or for a spread.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from placeopt.core.budget import Budget
from placeopt.core.fronts.front import Front
from placeopt.core.fronts.snapshots import RunSnapshot
from placeopt.core.fronts.values import Objective
from placeopt.core.limits import window
from placeopt.core.task import Candidate, Task
from placeopt.edge_cloud import restart
from placeopt.edge_cloud.encoder import EdgeCloudEncoder
from placeopt.edge_cloud.instance import EdgeCloud
from placeopt.edge_cloud.local_search.builder import PlanBuilder
from placeopt.edge_cloud.local_search.closing import close, is_applicable, is_closed
from placeopt.edge_cloud.local_search.prices import (
    Prices,
    Relaxation,
    lower_bounds,
    typical_differences,
)
from placeopt.edge_cloud.sequence import EdgeCloudSequence

#: Weights at the ends of a spread: almost all on one objective, so that the other breaks ties.
_ENDS = (1e-3, 1 - 1e-3)
#: Steps of the prices for the first weight of a spread, and for each that follows.
_FIRST_STEPS, _NEXT_STEPS = 100, 25
#: SpreadSize of a weight's share of the budget that the prices may use, with and without a search.
_PRICES_BEFORE_SEARCH, _PRICES_ALONE = 0.45, 0.7
#: Part of what the prices leave that a search may use before the gap is closed.
_SEARCH_BEFORE_CLOSING = 0.3

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
    rule: Annotated[
        Literal["look-ahead", "restart"],
        Field(description="Where an application finds no place: look ahead, or the paper's."),
    ] = "look-ahead",
) -> Front:
    """Return the front of the paper's best-fit heuristic.

    Each microservice goes to the node where it adds least to the weighted sum. Where the paper
    restarts an application whose later microservices find no node, a look-ahead takes no node that
    leaves them none; ``rule=restart`` is as printed. Nothing is random; `start` changes nothing.
    """
    weights = spread(task.problem, task.objectives, weight, parts)
    plans = _greedy_plans(task.problem, task.budget, weights, order, rule)
    candidates = [Candidate(task.problem.plan(hosts)) for hosts in plans]
    facts = _facts(weight, order=order, rule=rule)
    return task.front(candidates, method="greedy", parameters=facts)


def _greedy_plans(
    problem: EdgeCloud,
    budget: Budget,
    weights: Sequence[float],
    order: str = "small-first",
    rule: str = "look-ahead",
) -> list[np.ndarray]:
    """Return the nodes of a greedy plan for each weight that the budget allows, at least one."""
    sequence = EdgeCloudSequence(problem, problem.objectives, order)
    plans: list[np.ndarray] = []
    for weight in weights:
        if plans and budget.exhausted:
            break
        if rule == "restart":
            state, _ = restart.greedy(sequence, weight)
        else:
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


def price_guided(
    task: Task[EdgeCloud], *, weight: CostWeight = None, parts: SpreadSize = 16
) -> Front:
    """Return the front of plans built under the prices of the Lagrangian bound.

    Applications are placed one after another, each exactly. Every step of the prices counts as an
    evaluation. The front carries the bounds, and each point its gap. `start` changes nothing.
    """
    return by_weights(
        replace(task, start=None),
        spread(task.problem, task.objectives, weight, parts),
        method="price-guided",
        parameters=_facts(weight),
    )


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
    too small for all weights of the spread serves fewer. Where a clock ends the search for a single
    weight on a small instance, its gap is closed: see `placeopt.edge_cloud.local_search.closing`.
    """
    weights = spread(task.problem, task.objectives, weight, parts)
    if len(weights) > 1 and (count := _affordable(task.problem, task.budget, parts)) < parts:
        weights = spread(task.problem, task.objectives, weight, count)
    return by_weights(
        task,
        weights,
        method="lns",
        parameters=_facts(weight, max_removed=max_removed, strength=strength),
        search=(max_removed, strength),
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
) -> Front:
    """Return the front of the plans built under the prices of one weight after another.

    Parameters
    ----------
    search : (int, float), optional
        `max_removed` and `strength` of a large neighbourhood search that improves the plans.
    steps : (int, int)
        Steps of the prices for the first weight, and for each that follows.
    """
    problem, budget = task.problem, task.budget
    relaxation = Relaxation(problem)
    result = _Found(task)
    builder = PlanBuilder(relaxation, np.random.default_rng(task.seed), *(search or ()))
    result.plans = [problem.hosts(point.plan) for point in task.start or ()]
    if search and len(weights) > 1:
        some = spread(problem, task.objectives, None, 32)
        greedy_plans = _greedy_plans(problem, budget, some)
        result.plans += greedy_plans
        weights = _narrowed(task, weights, greedy_plans)
    result.candidates = [Candidate(problem.plan(hosts)) for hosts in result.plans]
    part = _PRICES_BEFORE_SEARCH if search else _PRICES_ALONE
    affordable = [] if result.plans and budget.exhausted else weights
    alone = len(weights) == 1
    ascents = relaxation.ascents(affordable, budget, steps, part)
    for prices, share in ascents:
        result.proofs.append(prices)
        if not result.plans or not budget.exhausted:
            built = [builder.build(prices, (1.0,) if search or share.exhausted else (1.0, 0.8))]
            if search:
                plans = result.plans + built + builder.dive(prices, share)
                begin = builder.best(prices.weight, plans)
                better, prices = _searched(relaxation, builder, prices, begin, share, alone)
                built, result.proofs[-1] = built + better, prices
            result.plans += built
            result.candidates.extend(_candidate(problem, builder, prices, hosts) for hosts in built)
            note = f"weight {prices.weight:.3g}, proven {prices.bound:.6g}"
            budget.report(note, result.interim())
    proofs = result.proofs
    return task.front(
        result.candidates,
        method=method,
        completed=len(proofs) == len(weights),
        bounds=lower_bounds(proofs, problem, task.objectives),
        parameters={
            **parameters,
            "weights": [p.weight for p in proofs],
            # Where nothing is feasible a bound is infinite, which JSON cannot hold.
            "weighted_bounds": [p.bound if np.isfinite(p.bound) else None for p in proofs],
        },
    )


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


def _searched(
    relaxation: Relaxation,
    builder: PlanBuilder,
    prices: Prices,
    begin: np.ndarray,
    budget: Budget,
    alone: bool,
) -> tuple[list[np.ndarray], Prices]:
    """Return the plans of a search that begins with one, and prices with the bound then.

    For a weight that is `alone` the gap is closed after a part of the search, where that pays.
    """
    plans: list[np.ndarray] = []
    if alone and is_applicable(relaxation, budget):
        hosts = builder.improve(prices, begin, budget.share(_SEARCH_BEFORE_CLOSING))
        closed = close(relaxation, prices, hosts, builder.value(prices.weight, hosts), budget)
        begin, prices = closed.hosts, replace(prices, bound=closed.bound)
        plans.append(begin)
        if is_closed(closed.value, closed.bound):
            return plans, prices
    return [*plans, builder.improve(prices, begin, budget)], prices


class _Found:
    """What a run has found for one weight after another.

    Attributes
    ----------
    candidates : list of Candidate
    plans : list of ndarray, shape (microservices,)
        Their hosts.
    proofs : list of Prices
        Of the weights that are done.
    """

    def __init__(self, task: Task[EdgeCloud]):
        self._task = task
        self.candidates: list[Candidate] = []
        self.plans: list[np.ndarray] = []
        self.proofs: list[Prices] = []

    def interim(self) -> RunSnapshot:
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
