"""The cheapest plan by itself: where every pod keeps running, and where some may stop."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from placeopt.core.budget import Budget
from placeopt.core.fronts.values import Plan
from placeopt.rolling_update.end_state import EndState, cheapest_end, reached_end, wider_end
from placeopt.rolling_update.instance import RollingUpdate
from placeopt.rolling_update.packing.consolidation import Consolidation, TargetDeployment
from placeopt.rolling_update.reach import STATES, plan_moves
from placeopt.rolling_update.repack import last_resorts

#: Microservices that all descents together place; descents at most.
WORK, _MOST = 30_000, 24
#: Descents after which a plan that costs no more than the bound is good enough; one may be cheaper
#: by its starts.
_ENOUGH = 3
#: States of the search for an order, and orders that are tried, times microservices; the latter at
#: most.
_STATES, _TRIES, TRIES = 2_000_000, 8000, 8
#: Ends that are tried, where the cheapest one is not reached.
_ENDS = 8
#: Searches from the end of the best plan, at most; of large instances there are none. They end
#: where so many in a row gain nothing.
_FURTHER, _RESISTING = 8, 3


def cheapest_plan(
    problem: RollingUpdate,
    *,
    stops: bool = False,
    starts: Sequence[np.ndarray] = (),
    plans: Sequence[Plan] = (),
    work: int = WORK,
    tries: int = TRIES,
    seed: int = 1,
    aims: bool = True,
) -> Plan:
    """Return the cheapest plan that is found; of equal ones that with fewest starts.

    Parameters
    ----------
    problem : RollingUpdate
    stops : bool
        Whether a pod may end before its new copy runs.
    starts : sequence of int arrays, shape (M,)
        Deployments to begin with, besides the running one: the node of every microservice.
    plans : sequence of plans
        One of them is the answer where no search finds a better one.
    work : int
        Microservices that all searches from the running deployment together place: of small
        instances there are more. One search at least, unless `starts` are given.
    tries : int
        Orders that are tried of the moves to a deployment, at most.
    seed : int
    aims : bool
        Whether the program of the cheapest end is solved, whose plan is then tried first. It takes
        tenths of a second of some hundred pods: too long for each of many small changes.

    Returns
    -------
    dict
        A plan that the referee accepts, if there is one that stops nothing or stops are allowed.
        Else the plan that the referee likes best.
    """
    search = _Search(problem, stops, tries, seed, aims)
    for plan in ({"steps": []}, *plans):
        search.offer(plan)
    if not problem.infeasibility():
        search.offer_cheapest([search.target(node) for node in starts])
    if not problem.infeasibility() and not search.offer_end():
        count = max(int(not starts), min(_MOST, work // len(problem.arrays.home)))
        for k, targets in enumerate(_descents(search, starts, count)):
            search.offer_cheapest(targets)
            if k + 1 >= _ENOUGH and search.is_legal and search.price <= search.lowest:
                break
        search.go_on(min(_FURTHER, work // (4 * len(problem.arrays.home))))
    if not search.is_legal:
        for plan in last_resorts(problem):
            search.offer(plan)
    return search.plan


def _descents(
    search: _Search, starts: Sequence[np.ndarray], count: int
) -> Iterator[list[TargetDeployment]]:
    """Yield the deployments that each of several searches meets, the cheapest last."""
    for k, start in enumerate(starts):
        yield search.descent(search.seed + k, start=start)
    for k in range(count):
        yield search.descent(search.seed + 1000 * k, by_starts=k % 2 == 1)


class _Search:
    """The best plan so far: one that the referee accepts, cheap, with few stops and starts."""

    def __init__(self, problem: RollingUpdate, stops: bool, tries: int, seed: int, aims: bool):
        self.problem, self.stops, self.tries, self.seed = problem, stops, tries, seed
        self.aims = aims
        self.plan: Plan = {}
        self.rank: tuple[float, ...] = (np.inf,)

    @property
    def is_legal(self) -> bool:
        """Whether the referee accepts the plan, and it stops nothing unless it may."""
        return self.rank[0] == 0

    @property
    def price(self) -> int:
        """The cost of the plan, in units of ``1 / price_scale``."""
        return round(self.rank[1] * self.problem.arrays.price_scale)

    @cached_property
    def end(self) -> EndState:
        """The cheapest end, and what no plan costs less than."""
        return cheapest_end(self.problem, math.inf if self.aims else 0.0, stops=self.stops)

    @property
    def lowest(self) -> int:
        """What no plan costs less than, in units of ``1 / price_scale``."""
        return self.end.lowest

    def descent(self, seed: int, **options: Any) -> list[TargetDeployment]:
        """Return the deployments that one search meets, the cheapest last."""
        search = Consolidation(self.problem, seed, lowest=self.lowest, **options)
        return list(search.targets(Budget()))

    def offer(self, plan: Plan) -> bool:
        """Take a plan if it is better; return whether it is legal."""
        verdict = self.problem.evaluate(plan)
        cost, starts, stopped = verdict.values[:3]
        broken = len(verdict.violations) + (0 if self.stops else stopped)
        rank = (float(broken), cost, stopped, starts)
        if rank < self.rank:
            self.rank, self.plan = rank, plan
        return broken == 0

    def offer_end(self) -> bool:
        """Offer the plan to the cheapest end; return whether none is cheaper or has fewer stops."""
        node, more = self.end.node, dict[int, int]()
        for _ in range(_ENDS):
            if node is None or not self._is_better(target := self.target(node)):
                break
            _, left = self._offer_moves(target)
            node = wider_end(self.problem, more, node, left) if len(left) else None
        if not (self._is_proven or self.stops):
            self.end = reached_end(self.problem)
            if self.end.steps is not None:
                self.offer(self.problem.plan(self.end.steps))
        return self._is_proven

    @property
    def _is_proven(self) -> bool:
        return self.is_legal and self.price <= self.lowest and self.rank[2] == 0

    def target(self, node: np.ndarray) -> TargetDeployment:
        """Return a deployment with its price."""
        a = self.problem.arrays
        return TargetDeployment(round(a.cost(node) * a.price_scale), node)

    def offer_cheapest(self, targets: Sequence[TargetDeployment]) -> None:
        """Offer the plan to the cheapest deployment that can be reached, where it is better.

        Back from the cheapest one in steps that double, then between what is reached and what not.
        """
        low, high, step = -1, len(targets), 1
        k = high - 1
        while k >= 0 and self._is_better(targets[k]):
            if self._offer_plan(targets[k]):
                low = k
                break
            high, k, step = k, k - step, 2 * step
        while 0 <= low < high - 1:
            k = (low + high) // 2
            low, high = (k, high) if self._offer_plan(targets[k]) else (low, k)

    def go_on(self, times: int) -> None:
        """Search from where the best plan ends, as long as that finds a better one.

        Where few pods did not get to where they should, others close the nodes that these hold.
        """
        failures = 0
        for k in range(times if self.is_legal else 0):
            before, end = self.rank, self.problem.arrays.final_nodes(self.problem.steps(self.plan))
            self.offer_cheapest(self.descent(self.seed + k, start=end))
            failures = failures + 1 if self.rank[:2] == before[:2] else 0
            if failures == _RESISTING:
                break

    def _is_better(self, target: TargetDeployment) -> bool:
        """Return whether a plan to a deployment could be better."""
        if not self.is_legal or target.price != self.price:
            return not self.is_legal or target.price < self.price
        starts = int(self.problem.arrays.starts_of(target.node).sum())
        return starts < self.rank[3] or self.rank[2] > 0

    def _offer_plan(self, target: TargetDeployment) -> bool:
        """Offer the plan that reaches a deployment; return whether it is legal."""
        legal, left = self._offer_moves(target)
        return legal and len(left) == 0

    def _offer_moves(self, target: TargetDeployment) -> tuple[bool, np.ndarray]:
        """Offer the plan that comes nearest to a deployment.

        Return whether it is legal, and the microservices that do not get there.
        """
        tries = max(1, min(self.tries, _TRIES // len(target.node)))
        limit = None if self.stops else 0
        states = min(STATES, _STATES // len(target.node))
        result = plan_moves(
            self.problem, target.node, states=states, max_stops=limit, tries=tries, seed=self.seed
        )
        end = self.problem.arrays.final_nodes(result.steps)
        legal = self.offer(self.problem.plan(result.steps))
        return legal, np.flatnonzero(end != target.node)
