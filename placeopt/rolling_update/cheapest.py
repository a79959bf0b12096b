"""The cheapest plan by itself: where every pod keeps running, and where some may stop."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from placeopt.core.budget import Budget
from placeopt.core.front import Plan
from placeopt.rolling_update.bounds import lower_bound
from placeopt.rolling_update.consolidation import Consolidation, TargetDeployment
from placeopt.rolling_update.instance import RollingUpdate
from placeopt.rolling_update.reach import reach
from placeopt.rolling_update.repack import last_resorts

#: Takes a plan, keeps it if it is better; says whether it is legal.
Offer = Callable[[Plan], bool]
#: Microservices that all descents together place; descents at most.
WORK, _MOST = 30_000, 24
#: Descents after which a plan that costs no more than the bound is good enough; one may be cheaper
#: by its starts.
_ENOUGH = 3


def cheapest_plan(
    problem: RollingUpdate,
    *,
    stops: bool = False,
    starts: Sequence[np.ndarray] = (),
    work: int = WORK,
    seed: int = 1,
) -> Plan:
    """Return the cheapest plan that is found; of equal ones that with fewest starts.

    Parameters
    ----------
    problem : RollingUpdate
    stops : bool
        Whether a pod may end before its new copy runs.
    starts : sequence of int arrays, shape (M,)
        Deployments to begin with, besides the running one: the node of every microservice.
    work : int
        Microservices that all searches from the running deployment together place: of small
        instances there are more.
    seed : int

    Returns
    -------
    dict
        A plan that the referee accepts, if there is one that stops nothing or stops are allowed.
        Else the plan that the referee likes best.
    """
    descents = max(1, min(_MOST, work // len(problem.arrays.home)))
    best: tuple[tuple[float, ...], Plan] | None = None

    def offer(plan: Plan) -> bool:
        nonlocal best
        rank = _rank(problem, plan, stops)
        if best is None or rank < best[0]:
            best = rank, plan
        return rank[0] == 0

    offer({"steps": []})
    if not problem.infeasibility():
        lowest = lower_bound(problem) / problem.arrays.price_scale
        for k, targets in enumerate(_descents(problem, starts, descents, seed)):
            _offer_cheapest(problem, targets, offer, stops, seed)
            if k + 1 >= _ENOUGH and best is not None and best[0][:2] <= (0, lowest):
                break
    assert best is not None
    if best[0][0]:
        for plan in last_resorts(problem):
            offer(plan)
    return best[1]


def _rank(problem: RollingUpdate, plan: Plan, stops: bool) -> tuple[float, ...]:
    """Return what is smaller for the better of two plans; 0 comes first where it is legal."""
    verdict = problem.evaluate(plan)
    cost, starts, stopped = verdict.values[:3]
    broken = len(verdict.violations) + (0 if stops else stopped)
    return float(broken), cost, stopped, starts


def _descents(
    problem: RollingUpdate, starts: Sequence[np.ndarray], count: int, seed: int
) -> Iterator[list[TargetDeployment]]:
    """Yield the deployments that each of several searches meets, the cheapest last."""
    for k, start in enumerate(starts):
        yield list(Consolidation(problem, seed + k, start=start).targets(Budget()))
    for k in range(count):
        search = Consolidation(problem, seed + 1000 * k, by_starts=k % 2 == 1)
        yield list(search.targets(Budget()))


def _offer_cheapest(
    problem: RollingUpdate,
    targets: Sequence[TargetDeployment],
    offer: Offer,
    stops: bool,
    seed: int,
) -> None:
    """Offer the plan to the cheapest deployment that can be reached.

    Back from the cheapest one in steps that double, then between what is reached and what is not.
    """
    low, high, step = -1, len(targets), 1
    k = high - 1
    while k >= 0:
        if _offer_plan(problem, targets[k], offer, stops, seed):
            low = k
            break
        high, k, step = k, k - step, 2 * step
    while 0 <= low < high - 1:
        k = (low + high) // 2
        low, high = (k, high) if _offer_plan(problem, targets[k], offer, stops, seed) else (low, k)


def _offer_plan(
    problem: RollingUpdate, target: TargetDeployment, offer: Offer, stops: bool, seed: int
) -> bool:
    """Offer the plan that reaches a deployment; return whether it is legal."""
    tries = max(1, min(8, 1000 // len(target.node)))
    limit = None if stops else 0
    found = reach(problem, target.node, max_stops=limit, tries=tries, seed=seed)
    return bool(offer(problem.plan(found.steps))) and found.complete
