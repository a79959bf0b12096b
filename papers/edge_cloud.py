"""What the measures of the edge-cloud paper share: instances and methods, in CPU seconds."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from placeopt_papers import edge_restart

from placeopt.core.budget import Budget
from placeopt.core.task import Task
from placeopt.edge_cloud import search as heuristics
from placeopt.edge_cloud.generator import TOPOLOGIES
from placeopt.edge_cloud.problem import EdgeCloud
from placeopt.edge_cloud.sequence import EdgeCloudSequence

#: Weight of the cost in Table 4, and the parameters of the rollout there.
WEIGHT, BETA, GAMMA = 0.01, 0.9, 0.8
#: Beta is a share of the nodes; the horizon of the paper is all applications.
ALL = 10**6


class CpuBudget(Budget):
    """A budget of CPU seconds: a busy machine does not change what a method finds."""

    def __init__(self, **limits: Any):
        super().__init__(**limits)
        self._cpu = time.process_time()

    @property
    def seconds(self) -> float:
        return time.process_time() - self._cpu


def instance(
    seed: int, topology: str, applications: int, demand: float, profile: str = "stated"
) -> EdgeCloud:
    """Return an instance in which all applications together ask for `demand`, its arrays made."""
    sizes = TOPOLOGIES[topology] | {"applications": applications, "demand": demand}
    problem = EdgeCloud.generate(seed, **sizes, profile=profile)
    assert problem.arrays is not None
    return problem


def value(problem: EdgeCloud, plan: dict[str, Any], weight: float = WEIGHT) -> float | None:
    """Return the referee's weighted sum of a feasible plan, None for another."""
    verdict = problem.evaluate(plan)
    return float(np.dot(verdict.values, (weight, 1 - weight))) if verdict.feasible else None


def greedy(problem: EdgeCloud, rule: str) -> tuple[float | None, float]:
    """Return value and CPU seconds of the greedy rule in the given order."""
    sequence = EdgeCloudSequence(problem, problem.objectives, "given")
    began = time.process_time()
    if rule == "restart":
        state, _ = edge_restart.greedy(sequence, WEIGHT)
    else:
        state = sequence.reset()
        sequence.play_greedy(state, np.array([WEIGHT, 1 - WEIGHT]), sequence.decisions)
    seconds = time.process_time() - began
    return value(problem, sequence.plan(state)), seconds


def rollout(
    problem: EdgeCloud, beta: float = BETA, gamma: float = GAMMA, horizon: int = ALL
) -> tuple[float | None, float]:
    """Return value and CPU seconds of the rollout in the given order."""
    sequence = EdgeCloudSequence(problem, problem.objectives, "given")
    state, weights = sequence.reset(), np.array([WEIGHT, 1 - WEIGHT])
    began = time.process_time()
    sequence.play_rollout(state, weights, beta, gamma, horizon, sequence.decisions)
    seconds = time.process_time() - began
    return value(problem, sequence.plan(state)), seconds


def search(problem: EdgeCloud, seconds: float, weight: float = WEIGHT) -> tuple[float, float]:
    """Return the best value of ``lns`` in so many CPU seconds, and the bound that it proves."""
    front = heuristics.lns(Task(problem, budget=CpuBudget(seconds=seconds)), weight=weight)
    best = float((front.values @ [weight, 1 - weight]).min())
    return best, float(max(front.runs[0].parameters["weighted_bounds"]))


def methods_of(problem: EdgeCloud, seconds: float) -> dict[str, Any]:
    """Return values and CPU seconds of greedy (both rules) and rollout, best known and bound."""
    found = {
        "greedy": greedy(problem, "look-ahead"),
        "greedy, restart": greedy(problem, "restart"),
        "rollout": rollout(problem),
    }
    best, bound = search(problem, seconds)
    known = [v for v, _ in found.values() if v is not None]
    return {"methods": found, "best": min([best, *known]), "bound": bound}


def gaps(rows: list[dict[str, Any]], name: str) -> list[float]:
    """Return how far a method is above the best known, instance by instance where it has a plan."""
    pairs = [(row["methods"][name][0], row["best"]) for row in rows]
    return [v / best - 1 for v, best in pairs if v is not None]


def warm_up() -> None:
    """Compile everything once."""
    methods_of(instance(0, "basic", 4, 1.0), 1.0)
