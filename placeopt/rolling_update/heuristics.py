"""Quick answers to rolling updates: `repack`, ours, and the schemes that the re-orchestration paper compares."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from placeopt.core.budget import Budget
from placeopt.core.front import Front, Objective
from placeopt.core.task import Candidate, Task
from placeopt.rolling_update import schemes
from placeopt.rolling_update.consolidation import Packer, Target, lower_bound
from placeopt.rolling_update.instance import RollingUpdate
from placeopt.rolling_update.reach import Reach, reach
from placeopt.rolling_update.trade import check_trade, worthwhile

if TYPE_CHECKING:
    from placeopt.rolling_update.encoder import RollingUpdateEncoder

#: Microservices packed, over all restarts, before `repack` is content.
_WORK = 2500
#: Targets of one descent that are ordered.
_ORDERED = 12


def repack(
    task: Task[RollingUpdate],
    *,
    restarts: int | None = None,
    max_hops: int | None = None,
    max_moves: int | None = None,
    min_saving_per_move: float = 0.0,
) -> Front:
    """Close node after node, and order the moves to the deployments met on the way.

    Every packing is repaired by shifts and swaps; every order is direct if one is found, else has hops, else stops. The front
    carries the bound of `lower_bound`, so that its gap is known.

    Parameters
    ----------
    restarts : int, optional
        Descents from the running deployment; by default many for small instances, one for large ones.
    max_hops : int, optional
        Most extra starts of one plan.
    max_moves : int, optional
        Most starts of a plan.
    min_saving_per_move : float
        What every move must save, in units of price, against plans with fewer.
    """
    check_trade(max_moves, min_saving_per_move)
    trade = (
        [o.name for o in task.objectives] != ["node_cost"]
        or max_moves is not None
        or min_saving_per_move > 0
    )
    candidates = [
        Candidate(plan)
        for plan in plans(task.problem, task.budget, task.seed, restarts, max_hops, trade=trade)
    ]
    kept = worthwhile(task.problem, candidates, max_moves, min_saving_per_move)
    parameters = {
        "restarts": restarts,
        "max_hops": max_hops,
        "max_moves": max_moves,
        "min_saving_per_move": min_saving_per_move,
    }
    return task.front(
        kept,
        method="repack",
        bounds=trivial_bounds(task.problem, task.objectives),
        completed=not task.budget.out_of_time,
        parameters=parameters,
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
) -> Iterator[dict[str, Any]]:
    """Yield doing nothing, then plans of several descents, the cheapest of each first; parameters as of `repack`.

    Without `trade` only the cheapest deployment of each descent is ordered, and stops are used as a last resort only.
    """
    yield {"steps": []}
    restarts = (
        max(1, min(25, _WORK // max(1, len(problem.arrays.home)))) if restarts is None else restarts
    )
    least = math.inf
    for k in range(restarts):
        packer = Packer(problem, seed + 1000 * k)
        for target in chosen(list(packer.targets(budget)), _ORDERED if trade else 1):
            for found in orders(problem, target.node, max_hops, seed, trade):
                budget.spend(1)
                yield problem.plan(found.steps)
            least = min(least, target.price)
            budget.report(
                (least / problem.arrays.price_scale,), k + 1, f"descent {k + 1} of {restarts}"
            )
            if budget.exhausted:
                return


def chosen(targets: Sequence[Target], count: int) -> list[Target]:
    """Return the last target, the first, and others spread evenly over the prices between; the last one first."""
    if not targets:
        return []
    picks = np.unique(np.linspace(len(targets) - 1, 0, num=count).round().astype(int))[::-1]
    return [targets[k] for k in picks.tolist()]


def orders(
    problem: RollingUpdate, target: np.ndarray, max_hops: int | None, seed: int, trade: bool = True
) -> list[Reach]:
    """Return how a target is reached: directly, or with hops, and then, to trade, also with stops in their place."""
    tries = max(1, min(8, 1000 // max(1, len(target))))
    found = reach(problem, target, max_hops=max_hops, tries=tries, seed=seed)
    if found.hops == 0 or not trade:
        return [found]
    return [found, reach(problem, target, states=0, max_hops=0, tries=tries, seed=seed)]


def trivial_bounds(problem: RollingUpdate, objectives: Sequence[Objective]) -> list[list[float]]:
    """Return the one vector that bounds every plan: the price that packing needs, and a start for all that must start."""
    a = problem.arrays
    if problem.infeasibility():
        return []
    least = (
        lower_bound(problem) / a.price_scale,
        float((a.mandatory | (a.movable & a.drain[a.home])).sum()),
        0.0,
    )
    return [[least[c] for c in problem.columns(objectives)]]


def seeds(encoder: RollingUpdateEncoder, rng: np.random.Generator) -> np.ndarray:
    """Return vectors of the deployments met on three descents."""
    found = []
    for _ in range(3):
        packer = Packer(encoder.problem, int(rng.integers(2**31)))
        found += [
            encoder.encode_target(t.node)
            for t in chosen(list(packer.targets(Budget())), 3 * _ORDERED)
        ]
    return np.unique(np.array(found, dtype=np.int64).reshape(-1, encoder.num_genes), axis=0)


def two_phase(
    task: Task[RollingUpdate],
    *,
    reading: str = "text",
    order: str = "paper",
) -> Front:
    """Run the paper's two-phase heuristic; see `placeopt.rolling_update.schemes.two_phase` for the parameters."""
    plan = schemes.two_phase(task.problem, np.random.default_rng(task.seed), reading, order)
    return _one(
        task,
        "two-phase",
        plan,
        {"reading": reading, "order": order},
    )


def rolling_update(
    task: Task[RollingUpdate],
) -> Front:
    """Replace every microservice in turn, where a Kubernetes scheduler would put it."""
    return _one(
        task,
        "rolling-update",
        schemes.rolling_update(task.problem),
        {},
    )


def recreate(
    task: Task[RollingUpdate],
) -> Front:
    """Stop every microservice, then start the new copies where a Kubernetes scheduler would put them."""
    return _one(
        task,
        "recreate",
        schemes.recreate(task.problem),
        {},
    )


def _one(
    task: Task[RollingUpdate], method: str, plan: dict[str, Any], parameters: dict[str, Any]
) -> Front:
    """Return the front of a single plan."""
    task.budget.spend(1)
    return task.front([Candidate(plan)], method=method, parameters=parameters, libraries=("numpy",))
