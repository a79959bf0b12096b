"""``repack``: close nodes, then order the moves to the deployments that were met on the way."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import chain
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
from placeopt.rolling_update.bounds import lower_bound
from placeopt.rolling_update.encoder import RollingUpdateEncoder
from placeopt.rolling_update.end_state import (
    EndState,
    cheapest_end,
    end_front,
    floors,
    reached_end,
    wider_end,
)
from placeopt.rolling_update.order import STATES, plan_moves
from placeopt.rolling_update.packing.consolidation import Consolidation, TargetDeployment
from placeopt.rolling_update.problem import RollingUpdate
from placeopt.rolling_update.schemes import rolling_update_plan, started_plan

# -- the method ------------------------------------------------------------------------------------

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
#: Share of it that the corners of cost and starts may take.
_FOR_CORNERS = 0.3
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
    the bounds of `end_state.floors`, so that its gap is known.
    """
    max_moves = fewest(max_moves, task.problem.goal_limits.get("starts"))
    limited = max_moves is not None or min_saving_per_move > 0
    trade = limited or [o.name for o in task.objectives] != ["node_cost"]
    wanted = task.problem, task.budget, task.seed, restarts, max_hops
    result, feasible = [], False
    level = math.inf if max_moves is None else max_moves
    for plan in plans(*wanted, trade=trade, level=level):
        result.append(plan)
        feasible |= task.judge(plan).feasible  # at once: a time limit is for the referee, too
    if not feasible:
        result += last_resorts(task.problem)
    kept = worthwhile(task, result, max_moves, min_saving_per_move)
    seconds = _FOR_THE_END * task.budget.seconds_left
    return task.front(
        map(Candidate, kept),
        method="repack",
        bounds=floors(task.problem, task.objectives, seconds, level).tolist(),
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
    level: float = math.inf,
) -> Iterator[Plan]:
    """Yield the empty plan, those to the cheapest end, and of descents the cheapest of each first.

    To trade, those to the cheapest ends of few starts come before descents, that of at most `level`
    starts among them. Without `trade` only the cheapest deployment of each descent is ordered, and
    stops are used as a last resort only. The other parameters are those of `repack`.
    """
    made: list[Plan] = [{"steps": []}]
    yield made[0]
    if problem.infeasibility():
        return
    first = [_to_the_end(problem, max_hops, seed, trade, _FOR_THE_END * budget.seconds_left)]
    if trade:
        first.append(_to_the_corners(problem, max_hops, seed, budget, level))
    for plan in chain.from_iterable(first):
        if plan not in made:
            budget.spend(1)
            made.append(plan)
            yield plan
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


def _to_the_end(
    problem: RollingUpdate, max_hops: int | None, seed: int, trade: bool, seconds: float
) -> Iterator[Plan]:
    """Yield the plan of the planner that stops nothing, then those to the cheapest end."""
    if max_hops is None:
        search = _Search(problem, False, TRIES, seed, seconds)
        search.offer({"steps": []})
        search.offer_ends()
        yield search.plan
    end = cheapest_end(problem, seconds).node
    if end is not None:
        yield from _orders(problem, end, max_hops, seed, trade)


def _to_the_corners(
    problem: RollingUpdate, max_hops: int | None, seed: int, budget: Budget, level: float
) -> Iterator[Plan]:
    """Yield plans to the corners of the front of cost and starts that the program knows."""
    for stops in (False, True):
        time = _FOR_CORNERS * budget.seconds_left
        for node, steps in end_front(problem, time, stops=stops, level=level).ends:
            if budget.exhausted:
                return
            if steps is not None and max_hops is None:
                yield problem.plan(steps)
            else:
                yield from _orders(problem, node, max_hops, seed, trade=True)


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


# -- the cheapest plan -----------------------------------------------------------------------------

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
    seconds: float = math.inf,
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
    plans : sequence of plans
        One of them is the answer where no search finds a better one.
    work : int
        Microservices that all searches from the running deployment together place: of small
        instances there are more. One search at least, unless `starts` are given.
    tries : int
        Orders that are tried of the moves to a deployment, at most.
    seconds : float
        For each program of the cheapest end; 0: searches alone.
    seed : int

    Returns
    -------
    dict
        A plan that the referee accepts, if there is one that stops nothing or stops are allowed.
        Else the plan that the referee likes best.
    """
    search = _Search(problem, stops, tries, seed, seconds)
    for plan in ({"steps": []}, *plans):
        search.offer(plan)
    if not problem.infeasibility():
        search.offer_cheapest([search.target(node) for node in starts])
    if not problem.infeasibility() and not search.offer_ends():
        count = max(int(not starts), min(_MOST, work // len(problem.arrays.home)))
        for k, targets in enumerate(() if search.is_at_end else _descents(search, starts, count)):
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

    def __init__(
        self,
        problem: RollingUpdate,
        stops: bool,
        tries: int,
        seed: int,
        seconds: float = math.inf,
    ):
        self.problem, self.stops, self.tries, self.seed = problem, stops, tries, seed
        self.seconds = seconds  # of each program
        #: Whether the plan reaches an end of the program: descents find nothing better then.
        self.is_at_end = False
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
        return cheapest_end(self.problem, self.seconds, stops=self.stops, below=self._wanted)

    @property
    def _wanted(self) -> float:
        """What an end is to cost less than: of equal price one may need fewer stops or starts."""
        return self.price + any(self.rank[2:]) if self.is_legal else math.inf

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

    def offer_ends(self) -> bool:
        """Offer plans to cheap ends; return whether none is cheaper or has fewer stops."""
        node, more = self.end.node, dict[int, int]()
        for _ in range(_ENDS):
            if node is None or not self._is_better(target := self.target(node)):
                break
            self.is_at_end, left = self._offer_moves(target)
            if self.is_at_end:
                break
            node = wider_end(self.problem, more, node, left, self._wanted, self.seconds)
        hops = node is not None and self.rank[3] > self.problem.arrays.starts_of(node).sum()
        if not self.stops and (hops or not self._is_proven):
            self.end = reached_end(self.problem, self.seconds)
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
            if self._offer_moves(targets[k])[0]:
                low = k
                break
            high, k, step = k, k - step, 2 * step
        while 0 <= low < high - 1:
            k = (low + high) // 2
            low, high = (k, high) if self._offer_moves(targets[k])[0] else (low, k)

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

    def _offer_moves(self, target: TargetDeployment) -> tuple[bool, np.ndarray]:
        """Offer the plan that comes nearest to a deployment.

        Return whether that is legal and gets there, and the microservices that do not.
        """
        tries = max(1, min(self.tries, _TRIES // len(target.node)))
        limit = None if self.stops else 0
        states = min(STATES, _STATES // len(target.node))
        result = plan_moves(
            self.problem, target.node, states=states, max_stops=limit, tries=tries, seed=self.seed
        )
        end = self.problem.arrays.final_nodes(result.steps)
        left = np.flatnonzero(end != target.node)
        if len(left) and self.is_legal and result.price > self.price:
            return False, left  # it is of no use: to judge it would take longer than to find it
        legal = self.offer(self.problem.plan(result.steps))
        return legal and len(left) == 0, left
