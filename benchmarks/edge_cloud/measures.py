"""Clocks and methods that the edge-cloud tables share; times are CPU seconds of this process."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from placeopt.core.budget import Budget
from placeopt.core.task import Task
from placeopt.edge_cloud import heuristics
from placeopt.edge_cloud.generator import TOPOLOGIES
from placeopt.edge_cloud.instance import EdgeCloud
from placeopt.edge_cloud.local_search.prices import Relaxation
from placeopt.edge_cloud.sequence import EdgeCloudSequence

#: Weight of the cost in the paper's Table 4: latency first.
WEIGHT = 0.01


class CpuBudget(Budget):
    """A budget of CPU seconds: a busy machine does not change what a method finds."""

    def __init__(self, **limits: Any):
        super().__init__(**limits)
        self._cpu = time.process_time()

    @property
    def seconds(self) -> float:
        return time.process_time() - self._cpu


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """Return a result and its CPU seconds."""
    begun = time.process_time()
    return work(), time.process_time() - begun


def instance(seed: int, topology: str, applications: int, load: float) -> EdgeCloud:
    """Return an instance with its arrays made."""
    problem = EdgeCloud.generate(seed, applications=applications, load=load, **TOPOLOGIES[topology])
    assert problem.arrays is not None
    return problem


def value(problem: EdgeCloud, plan: dict[str, Any], weight: float = WEIGHT) -> float:
    """Return the referee's weighted sum of a feasible plan, inf of another."""
    verdict = problem.evaluate(plan)
    return float(np.dot(verdict.values, (weight, 1 - weight))) if verdict.feasible else float("inf")


def bound(problem: EdgeCloud, weight: float = WEIGHT, steps: int = 400) -> float:
    """Return the Lagrangian bound."""
    return Relaxation(problem).ascend(weight, Budget(evaluations=10**9), steps).bound


def sequential(
    problem: EdgeCloud,
    order: str,
    kind: str,
    beta: float = 1.0,
    gamma: float = 1.0,
    horizon: int = 0,
) -> tuple[float, float]:
    """Return value and CPU seconds of a greedy or rollout plan."""
    sequence, weights = (
        EdgeCloudSequence(problem, problem.objectives, order),
        np.array([WEIGHT, 1 - WEIGHT]),
    )
    state = sequence.reset()
    if kind == "greedy":
        _, seconds = timed(lambda: sequence.play_greedy(state, weights, sequence.decisions))
    else:
        _, seconds = timed(
            lambda: sequence.play_rollout(state, weights, beta, gamma, horizon, sequence.decisions)
        )
    return value(problem, sequence.plan(state)), seconds


def lns(problem: EdgeCloud, seconds: float, weight: float = WEIGHT) -> tuple[float, float]:
    """Return the value, and the bound proven, of a search of so many CPU seconds in all."""
    front = heuristics.lns(Task(problem, budget=CpuBudget(seconds=seconds)), weight=weight)
    return float((front.values @ [weight, 1 - weight]).min()), max(
        front.runs[0].parameters["weighted_bounds"]
    )


def lns_of(
    problem: EdgeCloud, steps: int, evaluations: int, weight: float = WEIGHT
) -> tuple[float, float]:
    """Return value and bound of a search of so many price steps, and evaluations in all.

    No clock is asked.
    """
    front = heuristics.by_weights(
        Task(problem, budget=Budget(evaluations=evaluations)),
        [weight],
        method="lns",
        parameters={},
        search=(6, 0.8),
        steps=(steps, steps),
    )
    return float((front.values @ [weight, 1 - weight]).min()), max(
        front.runs[0].parameters["weighted_bounds"]
    )


def best_plan(
    problem: EdgeCloud, seconds: float, weight: float = WEIGHT
) -> tuple[float, dict[str, Any]]:
    """Return value and plan of a search of so many CPU seconds."""
    front = heuristics.lns(Task(problem, budget=CpuBudget(seconds=seconds)), weight=weight)
    point = min(front.points, key=lambda p: np.dot(p.values, (weight, 1 - weight)))
    return value(problem, point.plan, weight), point.plan


def by_model(
    problem: EdgeCloud, plan: dict[str, Any], seconds: float, weight: float = WEIGHT
) -> tuple[float, float, str]:
    """Return the referee's value of HiGHS's best plan, its bound and the status.

    HiGHS solves the level model and starts from `plan`.
    """
    from placeopt import models
    from placeopt.exact import solvers
    from placeopt.exact.compiled_model import CompiledModel

    model = models.edge_cloud.build(problem)
    compiled = CompiledModel(model, problem.objectives)
    units = [o.step or 1.0 for o in compiled.objectives]
    c = weight * units[0] * compiled.costs[0] + (1 - weight) * units[1] * compiled.costs[1]
    assert models.edge_cloud.assign(model, plan)
    program = solvers.Program(**{**vars(compiled.program), "c": c})
    outcome = solvers.solve(
        program, "highs", seconds=seconds, start=compiled.read(), relative_gap=1e-6
    )
    if outcome.x is None:
        return value(problem, plan, weight), outcome.bound, outcome.status
    compiled.load(outcome.x)
    return (
        min(value(problem, models.edge_cloud.extract(model), weight), value(problem, plan, weight)),
        outcome.bound,
        outcome.status,
    )


def warm_up() -> None:
    """Compile everything once."""
    problem = instance(0, "basic", 4, 0.4)
    lns(problem, 1.0)
    for kind in ("greedy", "rollout"):
        sequential(problem, "given", kind, 0.9, 0.8, 1)


def percent(found: float, proven: float) -> str:
    """Return the share of a value that might still be saved."""
    return "no plan" if found == float("inf") else f"{(found - proven) / found:.2%}"
