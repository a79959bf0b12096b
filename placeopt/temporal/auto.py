"""Which methods ``auto`` runs on a temporal instance."""

from __future__ import annotations

from placeopt.temporal.instance import Temporal

#: Up to so many replicas the exact method ends within seconds.
FEW_REPLICAS = 10
#: From so many requests MOEA/D starts from the search in parts, which gets a share of the budget
#: (benchmarks/auto_stages.md).
PARTS_SHARES = ((100, 0.5), (20, 0.2))
#: Size from which the search in parts alone is better (benchmarks/scale/results.md).
MANY_REQUESTS = 500


def method_for(problem: Temporal) -> str | tuple[tuple[str, float], ...]:
    """Return the exact method for small instances, the search in parts for large ones, or MOEA/D.

    Between them both searches run in turn. Where offers are limited it is always MOEA/D.
    """
    if any(offer.max_instances is not None for offer in problem.offers):
        return "moead"
    if sum(request.replicas for request in problem.requests) <= FEW_REPLICAS:
        return "bin-plans"
    if len(problem.requests) >= MANY_REQUESTS:
        return "sharded"
    for requests, share in PARTS_SHARES:
        if len(problem.requests) >= requests:
            return (("sharded", share), ("moead", 1.0))
    return "moead"
