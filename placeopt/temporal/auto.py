"""Which methods ``auto`` runs on a temporal instance."""

from __future__ import annotations

from placeopt.temporal.exact.sets import seconds_of_tables
from placeopt.temporal.instance import Temporal

#: Up to so many replicas the exact method ends within seconds.
FEW_REPLICAS = 10
#: Sizes from which MOEA/D starts from the search in parts (benchmarks/auto_stages.md), and from
#: which that alone is better (benchmarks/scale.md).
SOME_REQUESTS, MANY_REQUESTS = 20, 500
#: Share of the budget of the search in parts before MOEA/D (benchmarks/auto_stages.md).
PARTS_SHARE = 0.2
#: Shares of what is left that a short search and then the exact method have under a time limit.
BEFORE_SHARE, EXACT_SHARE = 0.1, 0.65
#: Share of a time limit after which MOEA/D begins anew from its own front, where nothing else runs,
#: and the least limit: it may stay in a front that lacks points (benchmarks/ten_requests.md).
AGAIN_SHARE, AGAIN_SECONDS = 0.5, 20.0
#: Time that the exact method takes in all, in the time of its tables: 8 and 9 were measured on
#: instances of 10 requests with 15 and 17 replicas.
_TABLES = 9


def method_for(
    problem: Temporal, *, seconds: float | None = None
) -> str | tuple[tuple[str, float], ...]:
    """Return the exact method for small instances, the search in parts for large ones, or MOEA/D.

    Between them both searches run in turn. Where the exact method is likely to end in its share of
    a time limit of `seconds`, it runs between two searches: the plans of the first save it work.
    Where it is not, MOEA/D runs twice within a long time limit.
    Where offers are limited it is always MOEA/D.
    """
    if any(offer.max_instances is not None for offer in problem.offers):
        return "moead"
    if sum(request.replicas for request in problem.requests) <= FEW_REPLICAS:
        return "bin-plans"
    needed = _TABLES * seconds_of_tables(request.replicas for request in problem.requests)
    if seconds is not None and needed <= (1 - BEFORE_SHARE) * EXACT_SHARE * seconds:
        return (("moead", BEFORE_SHARE), ("bin-plans", EXACT_SHARE), ("moead", 1.0))
    if len(problem.requests) >= MANY_REQUESTS:
        return "sharded"
    if len(problem.requests) >= SOME_REQUESTS:
        return (("sharded", PARTS_SHARE), ("moead", 1.0))
    if seconds is not None and seconds >= AGAIN_SECONDS * (1 - 1e-2):  # the clock runs
        return (("moead", AGAIN_SHARE), ("moead", 1.0))
    return "moead"
