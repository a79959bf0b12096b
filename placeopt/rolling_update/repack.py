"""``repack``: close nodes, then order the moves to the deployments that were met on the way."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import count as counted
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from placeopt.core.budget import Budget
from placeopt.core.fronts.front import Front
from placeopt.core.fronts.trace import RunSnapshot
from placeopt.core.fronts.values import Plan
from placeopt.core.goals import fewest
from placeopt.core.task import Candidate, Task
from placeopt.rolling_update.baselines import rolling_update_plan
from placeopt.rolling_update.bounds import bound_vectors, lower_bound
from placeopt.rolling_update.consolidators import started_plan
from placeopt.rolling_update.encoder import RollingUpdateEncoder
from placeopt.rolling_update.end_state import cheapest_end
from placeopt.rolling_update.instance import RollingUpdate
from placeopt.rolling_update.packing.consolidation import Consolidation, TargetDeployment
from placeopt.rolling_update.reach import plan_moves

#: Microservices that all descents of one run together place, to trade and for the cost alone, and
#: the largest number of descents.
_WORK, _WORK_FOR_COST, _MAX_DESCENTS = 40_000, 2500, 25
#: Deployments of one descent that are ordered, where starts are traded for cost.
_ORDERED = 36
#: Of a descent of few starts; the effort of all but the first one.
_OF_FEW_STARTS, _MORE_EFFORT = 100, 4
#: Descents in a row that meet no new deployment, after which no more are made.
_STALE = 25
#: Share of the time left that each program of the cheapest end may take.
_FOR_THE_END = 0.15
#: Share of the time left that a descent may take then.
_DESCENDING = 0.6

# Parameters that `repack` and `decomposition` share.
Restarts = Annotated[
    int | None,
    Field(
        ge=1,
        le=10_000,
        description="Descents from the running deployment; by default more for small instances.",
    ),
]
MaxHops = Annotated[
    int | None, Field(ge=0, le=10**9, description="Extra starts of one plan at most.")
]
MaxMoves = Annotated[int | None, Field(ge=0, le=10**9, description="Starts of one plan at most.")]
MinSaving = Annotated[
    float,
    Field(
        ge=0,
        le=1e12,
        description="What every move must save, in units of price, against plans with fewer.",
    ),
]


def repack(
    task: Task[RollingUpdate],
    *,
    restarts: Restarts = None,
    max_hops: MaxHops = None,
    max_moves: MaxMoves = None,
    min_saving_per_move: MinSaving = 0.0,
) -> Front:
    """Close node after node, and order the moves to the deployments met on the way.

    Every packing is repaired by shifts and swaps; nodes that resist, and all of large instances,
    are emptied by exchanges. Every order is direct if one is found, else has hops, else stops.
    Where no plan is feasible the one that breaks least is kept, with the reasons. The front carries
    the bounds of `bound_vectors`, so that its gap is known.
    """
    max_moves = fewest(max_moves, task.problem.goal_limits.get("starts"))
    limited = max_moves is not None or min_saving_per_move > 0
    trade = limited or [o.name for o in task.objectives] != ["node_cost"]
    wanted = task.problem, task.budget, task.seed, restarts, max_hops
    result, feasible = [], False
    for plan in plans(*wanted, trade=trade):
        result.append(plan)
        feasible |= task.judge(plan).feasible  # at once: a time limit is for the referee, too
    if not feasible:
        result += last_resorts(task.problem)
    kept = worthwhile(task, result, max_moves, min_saving_per_move)
    return task.front(
        map(Candidate, kept),
        method="repack",
        bounds=bound_vectors(task.problem, task.objectives).tolist(),
        completed=not task.budget.out_of_time,
        parameters={
            "restarts": restarts,
            "max_hops": max_hops,
            "max_moves": max_moves,
            "min_saving_per_move": min_saving_per_move,
        },
        libraries=("numba", "numpy"),
    )


def plans(
    problem: RollingUpdate,
    budget: Budget,
    seed: int,
    restarts: int | None = None,
    max_hops: int | None = None,
    *,
    trade: bool = True,
) -> Iterator[Plan]:
    """Yield the empty plan, those to the cheapest end, and of descents the cheapest of each first.

    Without `trade` only the cheapest deployment of each descent is ordered, and stops are used as a
    last resort only. The other parameters are those of `repack`.
    """
    made: list[dict[str, Any]] = [{"steps": []}]
    yield made[0]
    if problem.infeasibility():
        return
    end = cheapest_end(problem, _FOR_THE_END * budget.seconds_left).node
    if end is not None:
        for plan in _orders(problem, end, max_hops, seed, trade):
            budget.spend(1)
            made.append(plan)
            yield made[-1]
    if restarts is None:
        work = _WORK if trade else _WORK_FOR_COST
        restarts = max(1, min(_MAX_DESCENTS, work // len(problem.arrays.home)))
    views = _views(problem, trade)
    for k in range(-int(trade and restarts > 0), restarts):
        if made[1:] and budget.exhausted:
            return
        time = budget.share(_DESCENDING) if trade else budget
        for target in _descent(views, seed, k, time, trade):
            for plan in _orders(problem, target, max_hops, seed, trade):
                budget.spend(1)
                made.append(plan)
                yield made[-1]
            budget.report(f"descent {max(1, k + 1)} of {restarts}", RunSnapshot.of_plans(made))
            if budget.exhausted:
                return


def further_plans(
    problem: RollingUpdate, budget: Budget, seed: int, max_hops: int | None = None
) -> Iterator[Plan]:
    """Yield plans of few starts from more descents, until these meet nothing new or time ends."""
    views, met = _views(problem, trade=True), set[bytes]()
    fresh = first = 2 * _MAX_DESCENTS + 1
    for k in counted(first, 2):
        if k - fresh > 2 * _STALE:
            return
        for target in _descent(views, seed, k, budget, trade=True):
            if budget.exhausted:
                return
            if target.tobytes() in met:
                continue
            met.add(target.tobytes())
            fresh = k
            for plan in _orders(problem, target, max_hops, seed, trade=True):
                budget.spend(1)
                yield plan
        if budget.exhausted:
            return
        budget.report(f"descent {k}")


def last_resorts(problem: RollingUpdate) -> list[Plan]:
    """Return plans that may break less than doing nothing, where no descent found a legal one.

    What waits is started, and sizes change, where there is room: without moves, and as Kubernetes
    would.
    """
    return [started_plan(problem), rolling_update_plan(problem)]


def _descent(
    views: list[tuple[RollingUpdate, int]], seed: int, k: int, budget: Budget, trade: bool
) -> list[np.ndarray]:
    """Return the nodes of some deployments that descent k of each view meets.

    Those of odd numbers, which begin with -1, look for few starts.
    """
    chosen = []
    for view, lowest in views:
        few = trade and k % 2 != 0
        search = Consolidation(view, seed + 1000 * max(0, k), by_starts=few, lowest=lowest)
        if few:
            effort = 1 if k < 0 else _MORE_EFFORT
            met = list(search.targets_of_few_starts(budget, _OF_FEW_STARTS, effort))
            chosen += _chosen(met, _OF_FEW_STARTS)
        else:
            chosen += _chosen(list(search.targets(budget)), _ORDERED if trade else 1)
    return [target.node for target in chosen]


def _views(problem: RollingUpdate, trade: bool) -> list[tuple[RollingUpdate, int]]:
    """Return the instances whose deployments are looked for, with the lower bounds of their prices.

    They are with losses, and without where asked.

    A deployment that loses nothing costs more: without `trade` it is not looked for.
    """
    safe = problem.surviving if trade else None
    return [(view, lower_bound(view)) for view in (problem, safe) if view is not None]


def _chosen(targets: Sequence[TargetDeployment], count: int) -> list[TargetDeployment]:
    """Return at most `count` targets: the last, the first, the middle one, then the quarters.

    If time ends while they are ordered, the plans are still spread over the whole descent.
    """
    if not targets:
        return []
    picks = np.unique(np.linspace(len(targets) - 1, 0, num=count).round().astype(int))[::-1]
    end, levels = len(picks) - 1, len(picks).bit_length()
    turns = (round(end * k / 2**level) for level in range(levels + 1) for k in range(2**level + 1))
    return [targets[picks[turn]] for turn in dict.fromkeys(turns)]


def _orders(
    problem: RollingUpdate, target: np.ndarray, max_hops: int | None, seed: int, trade: bool
) -> list[dict[str, Any]]:
    """Return plans that reach a target: directly or with hops, and to trade, with stops instead."""
    tries = max(1, min(8, 1000 // len(target)))
    results = [plan_moves(problem, target, max_hops=max_hops, tries=tries, seed=seed)]
    if results[0].hops > 0 and trade:
        results.append(plan_moves(problem, target, states=0, max_hops=0, tries=tries, seed=seed))
    return [problem.plan(one.steps) for one in results]


def worthwhile(
    task: Task[RollingUpdate],
    candidates: list[Plan],
    max_moves: int | None,
    min_saving_per_move: float,
) -> list[Plan]:
    """Return the plans of at most `max_moves` starts whose every extra move saves enough.

    A plan stays if, against every feasible other with fewer starts and no more stops, it saves at
    least `min_saving_per_move` for each start more. So no part of its moves can be dropped at a
    smaller loss than that, as far as the candidates show. Plans that the referee rejects stay only
    where there are no others.
    """
    if max_moves is None and min_saving_per_move == 0:
        return candidates
    limit = math.inf if max_moves is None else max_moves
    verdicts = [(plan, task.judge(plan)) for plan in candidates]
    feasible = [(plan, verdict.values) for plan, verdict in verdicts if verdict.feasible]
    if not feasible:
        return candidates
    small = [(plan, values) for plan, values in feasible if values[1] <= limit]
    return [
        plan
        for plan, values in small
        if all(_pays(values, other, min_saving_per_move) for _, other in small)
    ]


def _pays(values: Sequence[float], other: Sequence[float], saving: float) -> bool:
    """Return whether a plan saves `saving` for each start more than another; values as judged."""
    cost, starts = values[:2]
    if other[1] >= starts or any(y > x for x, y in zip(values[2:], other[2:], strict=True)):
        return True
    return other[0] - cost >= saving * (starts - other[1]) - 1e-9


def seeds(
    encoder: RollingUpdateEncoder, rng: np.random.Generator, seconds: float | None = None
) -> np.ndarray:
    """Return the vectors of the deployments met on three descents, shape (k, num_genes)."""
    result, budget, views = [], Budget(seconds=seconds), _views(encoder.problem, trade=True)
    for descent in range(3):
        if descent and budget.out_of_time:
            break
        seed = int(rng.integers(2**31))
        result += [
            encoder.encode_target(target.node)
            for view, lowest in views
            for target in _chosen(
                list(Consolidation(view, seed, lowest=lowest).targets(budget)), _ORDERED
            )
        ]
    return np.unique(np.array(result, dtype=np.int64).reshape(-1, encoder.num_genes), axis=0)
