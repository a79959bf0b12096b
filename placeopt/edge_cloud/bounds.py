"""Lower bounds of edge-cloud plans without a solver: Lagrangian bounds over a spread of weights.

The capacities are priced. What is left splits into applications, each of which is placed exactly;
see ``models/edge_cloud/README.md``.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from placeopt.core.budget import Budget
from placeopt.core.fronts.certificate import Bounds
from placeopt.core.fronts.front import Front
from placeopt.core.task import Task
from placeopt.edge_cloud.problem import EdgeCloud
from placeopt.edge_cloud.search import CostWeight, SpreadSize, by_weights, spread
from placeopt.edge_cloud.search.prices import Prices, Relaxation, lower_bounds

#: Steps of the prices for the first weight, and for each that follows.
_STEPS = (300, 120)
#: Weights of the spread that certifies a front.
_CERTIFIED_WEIGHTS = 17


def bound(task: Task[EdgeCloud], *, weight: CostWeight = None, parts: SpreadSize = 33) -> Front:
    """Return Lagrangian lower bounds over a spread of weights, and plans built under their prices.

    Every step of the prices counts as an evaluation. The gap of a point is the share of its
    weighted sum that might still be saved at the weight that it was built for. Nothing is random;
    the plans of `start` are kept.
    """
    weights = spread(task.problem, task.objectives, weight, parts)
    return by_weights(task, weights, method="bound", parameters={}, steps=_STEPS)


def bounds(problem: EdgeCloud, front: Front, budget: Budget) -> Iterator[Bounds]:
    """Yield the bounds of a spread of weights, after every one of them."""
    weights = spread(problem, front.objectives, None, _CERTIFIED_WEIGHTS)
    proofs = list[Prices]()
    for prices, _ in Relaxation(problem).ascents(weights, budget, _STEPS):
        proofs.append(prices)
        budget.report(f"bound at weight {prices.weight:.3g}: {prices.bound:.6g}")
        yield Bounds(np.array(lower_bounds(proofs, problem, front.objectives)))
