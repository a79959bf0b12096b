"""``decomposition``: deployments by packing, moves by ordering, proofs by both.

The packing without time is a relaxation of every plan. A deployment that it finds and that has a
direct order is as good as any plan. One without is cut off. What such a deployment still allows, a
plan with a hop (one start more) or with a stop, joins the proven bounds.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import numpy as np
from pydantic import Field

from placeopt.core.budget import Budget
from placeopt.core.fronts.certificate import Bounds, graded
from placeopt.core.fronts.dominance import all_reached, minimal
from placeopt.core.fronts.front import Front
from placeopt.core.fronts.values import Plan, names_of
from placeopt.core.goals import fewest, upper_limits
from placeopt.core.task import Candidate, Task
from placeopt.exact.epsilon_constraint import too_short_to_load
from placeopt.exact.memory import Enumeration, Found
from placeopt.exact.oracles import Oracle, Solution
from placeopt.rolling_update.bounds import bound_vectors
from placeopt.rolling_update.end_state import EndState, cheapest_end, floors
from placeopt.rolling_update.model import static_size
from placeopt.rolling_update.order import Reach, plan_moves
from placeopt.rolling_update.problem import RollingUpdate
from placeopt.rolling_update.repack import (
    MaxHops,
    MaxMoves,
    MinSaving,
    Restarts,
    further_plans,
    last_resorts,
    plans,
    worthwhile,
)

if TYPE_CHECKING:
    from placeopt.exact.compiled_model import Cut

#: Coefficients of the largest packing model that is given to a solver. 50 microservices on 16 nodes
#: have about 6,000.
MAX_COEFFICIENTS = 60_000
#: Share of a time limit's rest for the packing model; what it leaves open then, more quick plans
#: may reach.
_ENUMERATING = 0.8
#: Share of the time left for each program of the cheapest end.
_END_SHARE = 0.15
#: Deployments without a direct order that are cut off before hops are accepted.
MAX_CUTS = 100


def decomposition(
    task: Task[RollingUpdate],
    *,
    solver: Annotated[
        Literal["highs", "scip"], Field(description="Solver of the packing model.")
    ] = "highs",
    max_hops: MaxHops = None,
    max_moves: MaxMoves = None,
    min_saving_per_move: MinSaving = 0.0,
    restarts: Restarts = None,
    max_coefficients: Annotated[
        int,
        Field(ge=0, le=10**9, description="Size up to which the packing model is enumerated."),
    ] = MAX_COEFFICIENTS,
) -> Front:
    """Return the front of cost and starts, and of what is lost at worst, with proofs.

    Quick plans come from the compiled packing. They end the search where they reach every bound
    that needs no solver. Otherwise, up to `max_coefficients`, the packing model is enumerated and
    every deployment ordered. Plans with stops come from the quick plans alone. Without the
    objective `disruptions` they are left out while there are others. With `max_hops` 0 all orders
    are direct, which is the paper's problem; the bounds hold for all plans.
    """
    max_moves = fewest(max_moves, task.problem.goal_limits.get("starts"))
    limited = max_moves is not None or min_saving_per_move > 0
    level = math.inf if max_moves is None else max_moves
    search = _Decomposition(task, solver=solver, max_hops=max_hops, limited=limited, level=level)
    search.run(restarts, task.start, max_coefficients)
    kept = worthwhile(task, search.choice(), max_moves, min_saving_per_move)
    front = task.front(
        map(Candidate, kept),
        method="decomposition",
        bounds=search.bounds.tolist(),
        solver_calls=search.solves,
        completed=search.status in ("complete", "infeasible"),
        parameters={
            "solver": solver,
            "max_hops": max_hops,
            "max_moves": max_moves,
            "min_saving_per_move": min_saving_per_move,
            "cuts": len(search.excluded),
            "status": search.status,
        },
        libraries=("highspy" if solver == "highs" else "pyscipopt", "pyomo", "numba"),
    )
    return graded(front, front.objectives[search.main].name)


def bounds(problem: RollingUpdate, front: Front, budget: Budget) -> Iterator[Bounds]:
    """Yield the lower-bound set that needs no solver, then that of `decomposition`."""
    yield Bounds(bound_vectors(problem, front.objectives))
    search = _Decomposition(Task(problem, front.objectives, budget, seed=0), further=False)
    enumerable = static_size(problem) <= MAX_COEFFICIENTS
    search.run(None if enumerable else 0, front, MAX_COEFFICIENTS)  # other plans prove nothing
    complete = search.status in ("complete", "infeasible")
    yield Bounds(search.bounds, search.solves, complete, libraries=["highspy", "pyomo"])


class _Excluded(NamedTuple):
    """A deployment that was cut off; `proven`: it is known to have no direct order."""

    claim: list[float]  # the values that it would have with one
    proven: bool
    target: np.ndarray  # (M,)


@dataclass
class _Decomposition:
    """Plans and proofs of one run."""

    task: Task[RollingUpdate]
    solver: str = "highs"
    max_hops: int | None = None
    limited: bool = False
    #: Starts of which the cheapest plan is asked for.
    level: float = math.inf
    #: Whether time that is left after a share of it is for more quick plans.
    further: bool = True
    plans: list[Plan] = field(default_factory=list)
    settled: bool = False
    #: Deployments that were cut off.
    excluded: list[_Excluded] = field(default_factory=list)
    search: Enumeration | None = None
    #: What the enumeration proved, in the values of all objectives.
    enumerated: np.ndarray | None = None
    _reached: dict[bytes, Reach] = field(default_factory=dict)
    #: What direct orders are worth, and their plans.
    _direct: list[tuple[Sequence[float], Plan]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.problem, self.objectives = self.task.problem, self.task.objectives
        self.budget, self.seed = self.task.budget, self.task.seed

    def run(self, restarts: int | None, start: Front | None, max_coefficients: int) -> None:
        """Make plans and proofs, as far as size and time allow."""
        self._make_quick_plans(restarts, start)
        if (
            not self.budget.out_of_time
            and not too_short_to_load(self.budget)
            and static_size(self.problem) <= max_coefficients
            and not self.settled
            and not self.problem.infeasibility()
        ):
            timed = self.budget.seconds_limit is not None
            self._enumerate(self.budget.share(_ENUMERATING) if timed else self.budget)
            if timed and self.further and self._is_open():
                more = further_plans(self.problem, self.budget, self.seed, self.max_hops)
                self.plans += [plan for plan in more if self._values(plan) is not None]

    @cached_property
    def end(self) -> EndState:
        """The cheapest end, and what no plan costs less than."""
        return cheapest_end(self.problem, _END_SHARE * self.budget.seconds_left)

    @cached_property
    def floors(self) -> np.ndarray:
        """The bounds that need no enumeration, in the objectives asked for."""
        seconds = _END_SHARE * self.budget.seconds_left
        return floors(self.problem, self.objectives, seconds, self.level)

    def _is_open(self) -> bool:
        """Return whether the front of a trade-off lacks proofs, and there is time left."""
        proven = self.search is not None and self.search.status == "complete"
        return not (proven or self.budget.exhausted) and len(self.goals) > 1

    def _make_quick_plans(self, restarts: int | None, start: Front | None) -> None:
        """Pack and order; for the cost alone, until a direct plan reaches its bound.

        The search is settled where plans reach all bounds that need no solver.
        """
        trade = self.limited or [o.name for o in self.objectives] != ["node_cost"]
        lowest = self.end.lowest / self.problem.arrays.price_scale
        enough = None if trade else lowest
        self.plans = [p.plan for p in start.points] if start is not None else []
        wanted = self.problem, self.budget, self.seed, restarts, self.max_hops
        for plan in plans(*wanted, trade=trade, level=self.level):
            self.plans.append(plan)
            values = self._values(plan)  # at once: a time limit is for the referee, too
            if values is not None and (values[0], values[2]) == (enough, 0.0):
                self.settled = True
                if self._is_direct(plan):
                    return
        if not (self.settled or self.limited or self.budget.out_of_time):
            self.settled = self._reach_all_floors()

    def _reach_all_floors(self) -> bool:
        """Return whether plans without stops reach every bound that needs no solver."""
        columns = self.problem.columns(self.objectives)
        existing = [v for plan in self.plans if (v := self._values(plan)) is not None and v[2] == 0]
        values = np.array(existing).reshape(-1, len(self.problem.objectives))[:, columns]
        return all_reached(self.floors, values)

    def _values(self, plan: Plan) -> tuple[float, ...] | None:
        verdict = self.task.judge(plan)
        return verdict.values if verdict.feasible else None

    def _enumerate(self, budget: Budget) -> None:
        """Enumerate the packing model, cutting off what has no direct order.

        Its goals are cost, starts and what is lost at worst, of those that are asked for.
        """
        from placeopt.exact.goals import own_goals, remember
        from placeopt.exact.model_front import ModelSearch
        from placeopt.rolling_update import model as models

        wanted = {o.name for o in self.objectives} | ({"starts"} if self.limited else set())
        timeless = tuple(o for o in self.problem.objectives if o.name != "disruptions")
        goals = tuple(o for o in timeless if o.name in wanted) or timeless[:1]
        model = models.build_static(self.problem)
        remember(model, self.problem, self._extract, self._cut)
        search = ModelSearch(model, own_goals(model, names_of(goals)), budget, judged=True)
        compiled, origin, known = search.compiled, search.origin, list[Found]()
        oracle = Oracle(compiled, budget, self.solver, self.seed, origin=origin, judged=True)
        for plan in self.plans:
            values = self._values(plan)
            if values is None or not self._is_direct(plan):
                continue
            self._direct.append((values, plan))
            models.assign_target(model, self.problem.arrays.final_nodes(self.problem.steps(plan)))
            units = oracle.judge(plan)
            assert units is not None
            known.append(Found(units, Solution.of(compiled.read(), plan)))
        most = compiled.limits_in_units(upper_limits(self.problem.goal_limits, goals))
        self.search = search.ask(oracle, known=known, limits=most)
        self.goals = goals
        self.enumerated = np.zeros((len(self.search.bounds), len(self.problem.objectives)))
        self.enumerated[:, self.problem.columns(goals)] = search.bounds(self.search)
        self.plans += [point.payload.plan for point in self.search.points]

    def _is_direct(self, plan: Plan) -> bool:
        """Return whether a plan makes every necessary move once, no other, and stops nothing."""
        a, steps = self.problem.arrays, self.problem.steps(plan)
        return len({m for m, _ in steps}) == len(steps) and all(
            n >= 0 and (a.mandatory[m] or n != a.home[m]) for m, n in steps
        )

    def _reach(self, target: np.ndarray) -> Reach:
        key = target.tobytes()
        if key not in self._reached:
            result = plan_moves(
                self.problem, target, max_hops=self.max_hops, tries=4, seed=self.seed
            )
            self._reached[key] = result
            if result.direct:
                self._direct.append((self._claim(target), self.problem.plan(result.steps)))
        return self._reached[key]

    def _claim(self, target: np.ndarray) -> list[float]:
        """Return the values of a deployment that has a direct order."""
        a = self.problem.arrays
        claim = [a.cost(target), float(a.starts_of(target).sum()), 0.0]
        return claim + (a.survival.lost(target[None]).tolist() if a.survival.asked else [])

    def _as_good(self, target: np.ndarray) -> Plan | None:
        """Return a known direct plan that is no worse than a direct order of `target` would be."""
        claim = self._claim(target)
        known = ((np.less_equal(values, claim).all(), plan) for values, plan in self._direct)
        return next((plan for is_as_good, plan in known if is_as_good), None)

    def _extract(self, model: Any) -> Plan:
        from placeopt.rolling_update import model as models

        target = models.target(model)
        return self._as_good(target) or self.problem.plan(self._reach(target).steps)

    def _cut(self, model: Any, problem: Any, plan: Plan) -> Sequence[Any]:
        """Return a constraint that excludes a deployment without a direct order.

        What a plan may still reach there is recorded in `excluded`. So is a deployment excluded
        that the loss of a node leaves with copies without a place: no plan may end there.
        """
        from placeopt.rolling_update import model as models

        target = models.target(model)
        if not self.problem.has_places(target.tolist()):  # however it is reached
            return (self._cut_of(model, target),)
        if self._as_good(target) or (self.max_hops != 0 and len(self.excluded) >= MAX_CUTS):
            return ()
        proven = self._reach(target).direct is False
        self.excluded.append(_Excluded(self._claim(target), proven, target))
        self.plans.append(plan)
        return (self._cut_of(model, target),)

    def _cut_of(self, model: Any, target: np.ndarray) -> Cut:
        """Return the constraint that excludes a deployment."""
        from pyomo.common.collections import ComponentMap

        from placeopt.exact.compiled_model import Cut

        chosen = ComponentMap((model.at[m, n], 1.0) for m, n in model.PLACEMENTS if target[m] == n)
        return Cut(chosen, len(chosen) - 1)

    def choice(self) -> list[Plan]:
        """Return the plans that the run may offer.

        Plans with more stops than others are left out unless stops are an objective. Where no plan
        is feasible, all are returned, and what is tried last.
        """
        unique = list({repr(plan): plan for plan in self.plans}.values())
        feasible = [(plan, values) for plan in unique if (values := self._values(plan)) is not None]
        if not feasible:
            return [*unique, *last_resorts(self.problem)]
        # Of plans of equal cost and stops a direct one comes first, then that of fewer starts.
        feasible.sort(
            key=lambda item: (item[1][0], item[1][2], not self._is_direct(item[0]), item[1][1])
        )
        if "disruptions" in {o.name for o in self.objectives}:
            return [plan for plan, _ in feasible]
        stops = min(values[2] for _, values in feasible)
        return [plan for plan, values in feasible if values[2] == stops]

    @property
    def status(self) -> str:
        """How the search ended, as one of `placeopt.exact.memory.STATUSES`."""
        unsettled = "time-limit" if self.search is None else self.search.status
        return "complete" if self.settled else unsettled

    @property
    def solves(self) -> int:
        """Questions put to the solver."""
        return 0 if self.search is None else self.search.solves

    @property
    def main(self) -> int:
        """The objective of which points tell the gap."""
        return next((k for k, o in enumerate(self.objectives) if o.name == "node_cost"), 0)

    @property
    def bounds(self) -> np.ndarray:
        """Vectors that together bound every plan, in the objectives asked for."""
        return minimal(self._bounds())

    def _bounds(self) -> np.ndarray:
        """Return vectors that together bound every plan, in the objectives asked for."""
        columns = self.problem.columns(self.objectives)
        floors = self.floors
        if self.enumerated is None:
            return floors
        every = self.enumerated.tolist()
        for claim, proven, _ in self.excluded:
            hop, stop = [x + (k == 1) for k, x in enumerate(claim)], [*claim[:2], 1.0, *claim[3:]]
            every += [hop, stop] if proven else [claim]
        proofs = np.array(every).reshape(-1, len(self.problem.objectives))[:, columns]
        return np.maximum(proofs[:, None], floors[None]).reshape(-1, len(columns))
