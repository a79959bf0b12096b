"""``decomposition``: where everything ends by packing, how to get there by ordering, and what the two prove together.

The packing without time is a relaxation of every plan. A deployment that it finds and that has a direct order is as good as any
plan. One without is cut off; what is left of it for a plan with a hop (one start more) or a stop joins the proven bounds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from placeopt.core.budget import Budget
from placeopt.core.front import Front, Objective, Run, minimal
from placeopt.core.task import Candidate, Task, versions
from placeopt.exact.enumeration import Enumeration, Found, enumerate_front
from placeopt.exact.epsilon_constraint import Hooks, ModelOracle, Solution
from placeopt.exact.fronts import front_of, in_units, in_values
from placeopt.rolling_update import model as models
from placeopt.rolling_update.consolidation import lower_bound
from placeopt.rolling_update.heuristics import plans, trivial_bounds
from placeopt.rolling_update.instance import RollingUpdate
from placeopt.rolling_update.reach import Reach, reach
from placeopt.rolling_update.trade import check_trade, worthwhile

#: Coefficients of the largest packing model that is given to a solver: 50 microservices on 16 nodes have about 6,000.
MOST_COEFFICIENTS = 60_000
#: Deployments without a direct order that are cut off before hops are accepted.
MOST_CUTS = 100


def decomposition(
    task: Task[RollingUpdate],
    *,
    solver: str = "highs",
    max_hops: int | None = None,
    max_moves: int | None = None,
    min_saving_per_move: float = 0.0,
    restarts: int | None = None,
    most_coefficients: int = MOST_COEFFICIENTS,
) -> Front:
    """Return the front of cost and starts, with proofs.

    Quick plans come from the compiled packing, and end the search where only the cost is asked for and they reach its bound.
    Otherwise, up to `most_coefficients`, the packing model is enumerated and every deployment ordered. Plans with stops come from
    the quick plans alone; without the objective `disruptions` they are left out while there are others.

    Parameters
    ----------
    solver : {"highs", "scip"}
    max_hops : int, optional
        Most extra starts of one plan; 0 for direct orders only, which is the paper's problem. The bounds hold for all plans.
    max_moves : int, optional
        Most starts of a plan.
    min_saving_per_move : float
        What every move must save, in units of price, against plans with fewer.
    restarts : int, optional
        Descents of the quick packing.
    most_coefficients : int
        Size up to which the packing model is enumerated.
    """
    check_trade(max_moves, min_saving_per_move)
    limited = max_moves is not None or min_saving_per_move > 0
    search = _Search(
        task.problem, task.objectives, task.budget, task.seed, solver, max_hops, limited
    )
    search.run(restarts, task.start, most_coefficients)
    kept = worthwhile(
        task.problem, [Candidate(plan) for plan in search.choice()], max_moves, min_saving_per_move
    )
    found = search.result([c.plan for c in kept])
    parameters = {
        "solver": solver,
        "max_hops": max_hops,
        "max_moves": max_moves,
        "min_saving_per_move": min_saving_per_move,
        "cuts": search.cuts,
    }
    return front_of(
        task,
        found,
        lambda plan: plan,
        method="decomposition",
        parameters=parameters,
        libraries=("highspy" if solver == "highs" else "pyscipopt", "pyomo", "numba"),
    )


def certify(problem: RollingUpdate, front: Front, budget: Budget) -> Front:
    """Return a front with the lower-bound set of `decomposition`, and the status that it gives to each point."""
    search = _Search(problem, front.objectives, budget, 0, "highs", None, False)
    search.run(None, front, MOST_COEFFICIENTS)
    proof = search.result([])
    whole = [o.step is not None for o in front.objectives]
    points = []
    for point in front.points:
        gap = proof.gap(in_units(point.values, front.objectives), whole)
        points.append(replace(point, status="optimal" if gap is None else "bounded", gap=gap))
    run = Run(
        "certificate",
        None,
        budget.seconds,
        0,
        proof.solves,
        proof.complete,
        {},
        versions(("highspy", "pyomo")),
    )
    bounds = tuple(map(tuple, in_values(proof.bounds, front.objectives).tolist()))
    return replace(front, points=tuple(points), bounds=bounds, runs=(*front.runs, run))


@dataclass
class _Search:
    """Plans and proofs of one run."""

    problem: RollingUpdate
    objectives: tuple[Objective, ...]
    budget: Budget
    seed: int
    solver: str
    max_hops: int | None
    limited: bool
    plans: list[dict[str, Any]] = field(default_factory=list)
    settled: bool = False
    cuts: int = 0
    excluded: list[tuple[float, float, bool]] = field(
        default_factory=list
    )  # cost, starts, whether no direct order is proven
    search: Enumeration | None = None
    _reached: dict[bytes, Reach] = field(default_factory=dict)
    _direct: list[tuple[float, float, dict[str, Any]]] = field(
        default_factory=list
    )  # cost, starts, plan

    def run(self, restarts: int | None, start: Front | None, most_coefficients: int) -> None:
        """Make plans and proofs, as far as size and time allow."""
        self.quick(restarts, start)
        small = models.static_size(self.problem) <= most_coefficients
        if (
            small
            and not self.settled
            and not self.problem.infeasibility()
            and not self.budget.out_of_time
        ):
            self.enumerate()

    def quick(self, restarts: int | None, start: Front | None) -> None:
        """Pack and order; where the cost alone is asked for, until a direct plan reaches its bound."""
        trade = self.limited or [o.name for o in self.objectives] != ["node_cost"]
        enough = None if trade else lower_bound(self.problem) / self.problem.arrays.price_scale
        self.plans = [p.plan for p in start.points] if start is not None else []
        for plan in plans(
            self.problem, self.budget, self.seed, restarts, self.max_hops, trade=trade
        ):
            self.plans.append(plan)
            values = self._values(plan)
            if (
                enough is not None
                and values is not None
                and (values[0], values[2]) == (enough, 0.0)
            ):
                self.settled = True
                if self._is_direct(plan):
                    return

    def _values(self, plan: dict[str, Any]) -> tuple[float, ...] | None:
        verdict = self.problem.evaluate(plan)
        return verdict.values if verdict.feasible else None

    # -- the packing model ---------------------------------------------------------------------------------------

    def enumerate(self) -> None:
        """Enumerate cost and starts of the packing model, cutting off what has no direct order."""
        from placeopt.exact.compiled_model import CompiledModel

        wanted = {o.name for o in self.objectives} | ({"starts"} if self.limited else set())
        pair = (
            tuple(o for o in self.problem.objectives[:2] if o.name in wanted)
            or self.problem.objectives[:1]
        )
        model = models.build_static(self.problem)
        compiled = CompiledModel(model, pair)
        oracle = ModelOracle(
            self.problem,
            compiled,
            Hooks(self._extract, cuts=self._cut),
            self.budget,
            self.solver,
            self.seed,
        )
        columns, known = self.problem.columns(pair), []
        for plan in self.plans:
            if (values := self._values(plan)) is not None and self._is_direct(plan):
                self._direct.append((values[0], values[1], plan))
                models.assign_target(model, self._end(plan))
                known.append(
                    Found(
                        in_units([values[c] for c in columns], pair),
                        Solution(plan, compiled.read()),
                    )
                )
        self.search = enumerate_front(oracle, pair, self.budget, known=known)
        self.pair = pair
        self.plans += [point.payload.plan for point in self.search.points]

    def _end(self, plan: dict[str, Any]) -> np.ndarray:
        end = self.problem.arrays.home.copy()
        for m, n in self.problem.steps(plan):
            end[m] = n
        return end

    def _is_direct(self, plan: dict[str, Any]) -> bool:
        """Whether a plan makes every move once and stops nothing, and makes no move that it need not make."""
        a, steps = self.problem.arrays, self.problem.steps(plan)
        return len({m for m, _ in steps}) == len(steps) and all(
            n >= 0 and (a.mandatory[m] or n != a.home[m]) for m, n in steps
        )

    def _reach(self, target: np.ndarray) -> Reach:
        key = target.tobytes()
        if key not in self._reached:
            found = reach(self.problem, target, max_hops=self.max_hops, tries=4, seed=self.seed)
            self._reached[key] = found
            if found.direct:
                self._direct.append((*self._claim(target), self.problem.plan(found.steps)))
        return self._reached[key]

    def _claim(self, target: np.ndarray) -> tuple[float, float]:
        """Return cost and starts of a deployment that has a direct order."""
        a = self.problem.arrays
        return int(a.price[np.unique(target)].sum()) / a.price_scale, float(
            (a.mandatory | (a.movable & (target != a.home))).sum()
        )

    def _as_good(self, target: np.ndarray) -> dict[str, Any] | None:
        """Return a direct plan that is no worse than a direct order of `target` would be, if one is known."""
        cost, starts = self._claim(target)
        return next((plan for c, s, plan in self._direct if c <= cost and s <= starts), None)

    def _extract(self, model: Any) -> dict[str, Any]:
        target = models.target(model)
        return self._as_good(target) or self.problem.plan(self._reach(target).steps)

    def _cut(self, model: Any, problem: Any, plan: dict[str, Any]) -> Sequence[Any]:
        """Return a row that excludes a deployment without a direct order, and remember what may still be reached there."""
        from pyomo.common.collections import ComponentMap

        from placeopt.exact.compiled_model import Cut

        target = models.target(model)
        if self._as_good(target) or (self.max_hops != 0 and self.cuts >= MOST_CUTS):
            return ()
        chosen = ComponentMap((model.at[m, n], 1.0) for m, n in model.PLACEMENTS if target[m] == n)
        cost, starts = self._claim(target)
        found = self._reach(target)
        self.cuts += 1
        self.excluded.append((cost, starts, found.direct is False))
        self.plans.append(plan)
        return (Cut(chosen, len(chosen) - 1),)

    # -- what came of it -----------------------------------------------------------------------------------------

    def choice(self) -> list[dict[str, Any]]:
        """Return the plans that the run may offer: complete, within its limit on hops, and without stops unless they are counted."""
        unique = list({repr(plan): plan for plan in self.plans}.values())
        feasible = [(plan, values) for plan in unique if (values := self._values(plan)) is not None]
        if not feasible:
            return unique
        # Of plans that look the same a direct one comes first, then that of fewest starts.
        feasible.sort(
            key=lambda item: (item[1][0], item[1][2], not self._is_direct(item[0]), item[1][1])
        )
        if "disruptions" in {o.name for o in self.objectives}:
            return [plan for plan, _ in feasible]
        least = min(values[2] for _, values in feasible)
        return [plan for plan, values in feasible if values[2] == least]

    def result(self, kept: Sequence[dict[str, Any]]) -> Enumeration:
        """Return plans and proven bounds in the objectives asked for."""
        points = []
        columns = self.problem.columns(self.objectives)
        for plan in kept:
            values = self.problem.evaluate(plan).values
            points.append(Found(in_units([values[c] for c in columns], self.objectives), plan))
        bounds = np.array([in_units(b, self.objectives) for b in self._bounds()]).reshape(
            -1, len(self.objectives)
        )
        main = next((k for k, o in enumerate(self.objectives) if o.name == "node_cost"), 0)
        complete = self.settled or (self.search is not None and self.search.complete)
        nothing = np.full(len(self.objectives), math.nan)
        solves = 0 if self.search is None else self.search.solves
        return Enumeration(points, minimal(bounds), complete, main, nothing, nothing, solves, 0)

    def _bounds(self) -> list[list[float]]:
        """Return vectors that together bound every plan, in the objectives asked for."""
        columns = self.problem.columns(self.objectives)
        trivial = trivial_bounds(self.problem, self.objectives)
        if self.search is None:
            return trivial
        every: list[tuple[float, ...]] = []
        for row in self.search.bounds:
            values = [0.0, 0.0, 0.0]
            for unit, objective in zip(row, self.pair, strict=True):
                values[self.problem.columns([objective])[0]] = unit * (objective.step or 1.0)
            every.append(tuple(values))
        for cost, starts, proven in self.excluded:
            every += (
                [(cost, starts + 1, 0.0), (cost, starts, 1.0)] if proven else [(cost, starts, 0.0)]
            )
        floor = np.array(trivial[0]) if trivial else np.zeros(len(columns))
        return [np.maximum(np.array(v)[columns], floor).tolist() for v in every]
