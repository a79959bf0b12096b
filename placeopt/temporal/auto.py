"""Which methods ``auto`` runs on a temporal instance."""

from __future__ import annotations

from placeopt.temporal.instance import Temporal

#: Up to so many replicas the exact method ends within seconds.
FEW_REPLICAS = 10
#: Sizes from which MOEA/D starts from the search in parts (benchmarks/auto_stages.md), and from
#: which that alone is better (benchmarks/scale.md).
SOME_REQUESTS, MANY_REQUESTS = 20, 500
#: Share of the budget of the search in parts before MOEA/D (benchmarks/auto_stages.md).
PARTS_SHARE = 0.2


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
    if len(problem.requests) >= SOME_REQUESTS:
        return (("sharded", PARTS_SHARE), ("moead", 1.0))
    return "moead"
