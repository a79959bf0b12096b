"""Quick answers to edge-cloud instances: greedy, built under prices, and improved by a large neighbourhood search.

All of them minimise equation (1), w cost + (1 - w) latency_ms, for one weight w or for a spread of them.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from placeopt.core.budget import Budget
from placeopt.core.errors import UsageError
from placeopt.core.front import Front, Objective
from placeopt.core.task import Candidate, Task
from placeopt.edge_cloud.instance import EdgeCloud
from placeopt.edge_cloud.local_search.neighbourhoods import Builder
from placeopt.edge_cloud.local_search.prices import Prices, Relaxation, staircase
from placeopt.edge_cloud.local_search.state import MOST_REMOVED
from placeopt.edge_cloud.sequence import EdgeCloudSequence

#: Weights at the ends of a spread: almost all on one objective, so that the other still breaks ties.
_ENDS = (1e-3, 1 - 1e-3)
#: Steps of the prices for the first weight of a spread and for those that follow it.
_FIRST_STEPS, _NEXT_STEPS = 300, 50


def spread(
    problem: EdgeCloud, objectives: Sequence[Objective], weight: float | None, parts: int
) -> list[float]:
    """Return weights of the cost: the one asked for, the only one that a single objective needs, or `parts` from latency to cost.

    They are even in units of what a node makes a difference to either objective.

    Raises
    ------
    UsageError
        The weight is not within 0 and 1, or `parts` is not a whole number of at least 1.
    """
    if weight is not None:
        if not isinstance(weight, (int, float)) or not 0 <= weight <= 1:
            raise UsageError(f"weight is {weight!r}; legal: 0 (latency only) to 1 (cost only)")
        return [float(weight)]
    if not isinstance(parts, int) or parts < 1:
        raise UsageError(f"parts is {parts!r}; give a whole number of at least 1")
    if len(objectives) == 1:
        return [float(objectives[0].name == "cost")]
    relaxation = Relaxation(problem)
    cost, latency = relaxation.scale(1.0), relaxation.scale(0.0)
    share = np.linspace(0, 1, parts) if parts > 1 else np.array([0.5])
    weights = (share / cost) / (share / cost + (1 - share) / latency)
    return np.clip(weights, *_ENDS).tolist()


def greedy(
    task: Task[EdgeCloud],
    *,
    weight: float | None = None,
    order: str = "small-first",
    parts: int = 32,
) -> Front:
    """Return the front of the paper's best-fit heuristic: microservice after microservice on the node that adds least.

    Where the paper restarts an application whose later microservices find no node, a look-ahead here takes no node that leaves
    them none. Nothing is random; `start` changes nothing.

    Parameters
    ----------
    weight : float, optional
        w of equation (1); a spread of `parts` weights by default.
    order : {"small-first", "given"}
        Of the applications; the paper's is the given one.
    """
    plans = _greedy_plans(
        task.problem, task.budget, spread(task.problem, task.objectives, weight, parts), order
    )
    candidates = [Candidate(task.problem.plan(hosts)) for hosts in plans]
    return task.front(candidates, method="greedy", parameters=_facts(weight, order=order))


def _greedy_plans(
    problem: EdgeCloud, budget: Budget, weights: Sequence[float], order: str
) -> list[np.ndarray]:
    """Return a greedy plan for each weight, at least one."""
    face = EdgeCloudSequence(problem, problem.objectives, order)
    plans: list[np.ndarray] = []
    for w in weights:
        if plans and budget.exhausted:
            break
        state = face.reset()
        face.play_greedy(state, np.array([w, 1 - w]), face.decisions)
        if face.remaining(state):  # an application has no place: the others still may
            builder = Builder(Relaxation(problem), np.random.default_rng(0))
            plans.append(
                builder.build(Prices(w, np.zeros(problem.arrays.capacity.shape), 0.0), (0.0,))
            )
        else:
            plans.append(state.hosts)
        budget.spend(1)
    return plans


def price_guided(
    task: Task[EdgeCloud],
    *,
    weight: float | None = None,
    parts: int = 16,
) -> Front:
    """Return the front of plans built under the prices of the Lagrangian bound, application after application, each exactly.

    Every step of the prices counts as an evaluation. The front carries the bounds, and each point its gap. `start` changes nothing.
    """
    weights = spread(task.problem, task.objectives, weight, parts)
    return by_weights(
        replace(task, start=None),
        weights,
        method="price-guided",
        parameters=_facts(weight),
    )


def lns(
    task: Task[EdgeCloud],
    *,
    weight: float | None = None,
    parts: int = 17,
    most: int = 6,
    strength: float = 0.8,
) -> Front:
    """Return the front of a large neighbourhood search over a spread of weights, with bounds, and a gap for each point.

    Some related applications are taken out and put back one by one, each placed exactly, under prices of random strength that keep
    them off scarce nodes; what results is accepted by simulated annealing. Prices and plans of one weight start the next.

    Parameters
    ----------
    start : Front, optional
        Plans to improve.
    weight : float, optional
        w of equation (1), to spend the whole budget on; a spread of at most `parts` weights by default.
    most : int
        Most applications taken out at once.
    strength : float
        Largest share of the prices that rebuilding pays.
    """
    if not isinstance(most, int) or not 1 <= most <= MOST_REMOVED:
        raise UsageError(f"most is {most!r}; legal: 1 to {MOST_REMOVED}")
    if not 0 <= strength <= 10:
        raise UsageError(f"strength is {strength!r}; legal: 0 to 10")
    weights = spread(task.problem, task.objectives, weight, parts)
    if len(weights) > 1 and (count := _affordable(task.problem, task.budget, len(weights))) < len(
        weights
    ):
        weights = spread(task.problem, task.objectives, weight, count)
    facts = _facts(weight, most=most, strength=strength)
    return by_weights(
        task,
        weights,
        method="lns",
        parameters=facts,
        search=(most, strength),
    )


def _affordable(problem: EdgeCloud, budget: Budget, most: int) -> int:
    """Return how many weights a budget is enough for."""
    relaxation, begun = Relaxation(problem), time.perf_counter()
    if budget.seconds_limit is not None:
        for _ in range(2):  # the first time may compile
            begun = time.perf_counter()
            relaxation.bound(0.5, np.zeros(relaxation.table.capacity.shape))
    step = time.perf_counter() - begun
    by_time = (
        budget.seconds_left / max(1e-9, 2 * _NEXT_STEPS * step)
        if budget.seconds_limit is not None
        else most
    )
    return int(max(3, min(most, by_time, budget.evaluations_left / (10 * _NEXT_STEPS))))


def by_weights(
    task: Task[EdgeCloud],
    weights: Sequence[float],
    *,
    method: str,
    parameters: dict[str, Any],
    search: tuple[int, float] | None = None,
    steps: tuple[int, int] = (_FIRST_STEPS, _NEXT_STEPS),
) -> Front:
    """Return the front of the plans built, and with `search` improved, under the prices of one weight after another.

    Parameters
    ----------
    search : (int, float), optional
        `most` and `strength` of the large neighbourhood search.
    steps : (int, int)
        Steps of the prices for the first weight, and for those that begin with the prices of another.
    """
    problem, objectives, budget, start = task.problem, task.objectives, task.budget, task.start
    relaxation = Relaxation(problem)
    builder = Builder(relaxation, np.random.default_rng(task.seed), *(search or ()))
    known = [problem.hosts(point.plan) for point in start.points] if start is not None else []
    if search is not None and len(weights) > 1:
        known += _greedy_plans(
            problem, budget, spread(problem, objectives, None, 32), "small-first"
        )
    candidates = [Candidate(problem.plan(hosts)) for hosts in known]
    proofs: list[Prices] = []
    for k, weight in enumerate(weights):
        if budget.exhausted and candidates:
            break
        share = budget.share(1 / (len(weights) - k))
        proofs.append(
            relaxation.ascend(
                weight,
                share.share(0.45 if search else 0.7),
                steps[k > 0],
                proofs[-1].price if proofs else None,
            )
        )
        if budget.exhausted and candidates:
            break
        plans = _plans(builder, proofs[-1], known, share, search is not None)
        known += plans
        candidates += [_candidate(problem, builder, proofs[-1], hosts) for hosts in plans]
        budget.report(
            points=len(candidates), note=f"weight {weight:.3g}, proven {proofs[-1].bound:.6g}"
        )
    return task.front(
        candidates,
        method=method,
        completed=len(proofs) == len(weights),
        bounds=staircase(proofs, problem, objectives),
        parameters={
            **parameters,
            "weights": [p.weight for p in proofs],
            # Where nothing is feasible a bound is infinite, which JSON cannot hold.
            "weighted_bounds": [p.bound if np.isfinite(p.bound) else None for p in proofs],
        },
    )


def _plans(
    builder: Builder, prices: Prices, known: list[np.ndarray], share: Budget, improve: bool
) -> list[np.ndarray]:
    """Return a plan built under prices and, if asked for, the best plan known improved."""
    plans = [builder.build(prices, (1.0,) if improve or share.exhausted else (1.0, 0.8))]
    if improve:
        plans.append(builder.improve(prices, builder.least(prices.weight, [*known, *plans]), share))
    return plans


def _candidate(
    problem: EdgeCloud, builder: Builder, prices: Prices, hosts: np.ndarray
) -> Candidate:
    """Return a plan with its gap: the share of its weighted sum that might still be saved at this weight."""
    value = builder.value(prices.weight, hosts)
    gap = float(max(0.0, value - prices.bound) / value) if value > 0 else 0.0
    return (
        Candidate(problem.plan(hosts), "bounded", gap)
        if np.isfinite(gap)
        else Candidate(problem.plan(hosts))
    )


def _facts(weight: float | None, **more: Any) -> dict[str, Any]:
    return ({} if weight is None else {"weight": weight}) | more


def seeds(encoder: Any, rng: np.random.Generator) -> np.ndarray:
    """Return the vectors of greedy plans, and of plans built under prices, spread over the weights, shape (k, num_genes)."""
    problem = encoder.problem
    plans = _greedy_plans(
        problem, Budget(), spread(problem, encoder.objectives, None, 24), "small-first"
    )
    relaxation = Relaxation(problem)
    builder, start = Builder(relaxation, rng), None
    for weight in spread(problem, encoder.objectives, None, 8):
        prices = relaxation.ascend(weight, Budget(evaluations=_NEXT_STEPS), _NEXT_STEPS, start)
        plans.append(builder.build(prices, (0.8,)))
        start = prices.price
    return np.unique([encoder.vector(hosts) for hosts in plans], axis=0)
