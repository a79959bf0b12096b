"""What can be proven of edge-cloud plans without a solver: Lagrangian bounds over a spread of weights.

The capacities are priced; what is left splits into applications, each of which is placed exactly. See the page,
``models/edge_cloud/README.md``.
"""

from __future__ import annotations

from dataclasses import replace

from placeopt.core.budget import Budget
from placeopt.core.front import Front, Run, merge
from placeopt.core.task import Task
from placeopt.edge_cloud.heuristics import by_weights, spread
from placeopt.edge_cloud.instance import EdgeCloud
from placeopt.edge_cloud.local_search.prices import Prices, Relaxation, staircase

#: Steps of the prices for the first weight and for those that start from the prices of another.
_FIRST_STEPS, _NEXT_STEPS = 300, 120


def bound(
    task: Task[EdgeCloud],
    *,
    weight: float | None = None,
    parts: int = 33,
) -> Front:
    """Return Lagrangian lower bounds over a spread of weights, and the plans that their prices build, each with its gap.

    Every step of the prices counts as an evaluation. The gap of a point is the share of its weighted sum that might still be
    saved at the weight that it was built for. Nothing is random; the plans of `start` are kept.

    Parameters
    ----------
    weight : float, optional
        w of equation (1), to prove one bound only.
    parts : int
        Weights of the spread.
    """
    weights = spread(task.problem, task.objectives, weight, parts)
    return by_weights(
        task,
        weights,
        method="bound",
        parameters={},
        steps=(_FIRST_STEPS, _NEXT_STEPS),
    )


def certify(problem: EdgeCloud, front: Front, budget: Budget) -> Front:
    """Return the front with a lower-bound set: for any front, whichever method it came from.

    Takes what is left of the budget, or the usual number of steps if nothing is.
    """
    own = Budget(evaluations=10 * _FIRST_STEPS) if budget.exhausted else budget
    relaxation, proofs = Relaxation(problem), list[Prices]()
    weights = spread(problem, front.objectives, None, 17)
    for k, weight in enumerate(weights):
        if proofs and own.exhausted:
            break
        share = own.share(1 / (len(weights) - k))
        proofs.append(
            relaxation.ascend(
                weight,
                share,
                _NEXT_STEPS if proofs else _FIRST_STEPS,
                proofs[-1].price if proofs else None,
            )
        )
        own.report(points=len(front), note=f"bound at weight {weight:.3g}: {proofs[-1].bound:.6g}")
    bounds = tuple(map(tuple, staircase(proofs, problem, front.objectives)))
    proof = Front(
        front.instance,
        front.objectives,
        (),
        bounds,
        (Run("bound", None, own.seconds, own.evaluations),),
    )
    return replace(merge([front, proof]), rejected=front.rejected, reasons=front.reasons)
