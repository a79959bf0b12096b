"""Which method ``auto`` runs on a temporal instance."""

from __future__ import annotations

from placeopt.temporal.instance import Temporal

#: Up to so many replicas the exact method ends within seconds.
FEW_REPLICAS = 10
#: Least size at which the search in parts was measured to be better: benchmarks/scale/results.md.
MANY_REQUESTS = 500


def method_for(problem: Temporal) -> str:
    """Return the exact method for small instances, the search in parts for large ones, or MOEA/D.

    Where offers are limited it is always MOEA/D.
    """
    if any(offer.max_instances is not None for offer in problem.offers):
        return "moead"
    if sum(request.replicas for request in problem.requests) <= FEW_REPLICAS:
        return "bin-plans"
    return "sharded" if len(problem.requests) >= MANY_REQUESTS else "moead"
