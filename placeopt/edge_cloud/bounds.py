"""Lower bounds of edge-cloud plans without a solver: Lagrangian bounds over a spread of weights.

The capacities are priced. What is left splits into applications, each of which is placed exactly;
see ``models/edge_cloud/README.md``.
"""

from __future__ import annotations

from placeopt.core.budget import Budget
from placeopt.core.fronts.front import Front, merge
from placeopt.core.fronts.values import Run
from placeopt.core.task import Task
from placeopt.edge_cloud.heuristics import CostWeight, SpreadSize, by_weights, spread
from placeopt.edge_cloud.instance import EdgeCloud
from placeopt.edge_cloud.local_search.prices import Prices, Relaxation, lower_bounds

#: Steps of the prices for the first weight, and for each that follows.
_STEPS = (300, 120)
#: Weights of the spread that certifies a front.
_CERTIFIED_WEIGHTS = 17
#: Evaluations that certify a front where none are left.
_CERTIFYING_EVALUATIONS = 3000


def bound(task: Task[EdgeCloud], *, weight: CostWeight = None, parts: SpreadSize = 33) -> Front:
    """Return Lagrangian lower bounds over a spread of weights, and plans built under their prices.

    Every step of the prices counts as an evaluation. The gap of a point is the share of its
    weighted sum that might still be saved at the weight that it was built for. Nothing is random;
    the plans of `start` are kept.
    """
    weights = spread(task.problem, task.objectives, weight, parts)
    return by_weights(task, weights, method="bound", parameters={}, steps=_STEPS)


def certify(problem: EdgeCloud, front: Front, budget: Budget) -> Front:
    """Return a front of any method with a lower-bound set.

    Takes what is left of the budget, or `_CERTIFYING_EVALUATIONS` steps if nothing is.
    """
    own = budget
    if budget.exhausted and not budget.out_of_time:
        seconds = None if budget.seconds_limit is None else budget.seconds_left
        own = budget.beside(_CERTIFYING_EVALUATIONS, seconds)
    began, spent = own.seconds, own.evaluations
    weights = spread(problem, front.objectives, None, _CERTIFIED_WEIGHTS)
    relaxation, proofs = Relaxation(problem), list[Prices]()
    for prices, _ in relaxation.ascents(weights, own, _STEPS):
        proofs.append(prices)
        own.report(f"bound at weight {prices.weight:.3g}: {prices.bound:.6g}")
    proof = Front(
        front.instance,
        front.objectives,
        bounds=tuple(map(tuple, lower_bounds(proofs, problem, front.objectives))),
        runs=(Run("bound", None, own.seconds - began, own.evaluations - spent),),
    )
    return merge([front, proof])
