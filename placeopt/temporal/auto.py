"""Which methods ``auto`` runs on a temporal instance."""

from __future__ import annotations

from placeopt.temporal.exact.sets import seconds_of_tables
from placeopt.temporal.instance import Temporal

#: Up to so many replicas the exact method ends within seconds.
FEW_REPLICAS = 10
#: Sizes from which MOEA/D starts from the search in parts (benchmarks/auto.md), and from
#: which that alone is better (benchmarks/scale.md).
SOME_REQUESTS, MANY_REQUESTS = 20, 500
#: Share of the budget of the search in parts before MOEA/D (benchmarks/auto.md).
PARTS_SHARE = 0.2
#: Shares of what is left that a short search and then the exact method have under a time limit.
BEFORE_SHARE, EXACT_SHARE = 0.1, 0.65
#: Share of a time limit after which MOEA/D begins anew from its own front, where nothing else runs,
#: and the least limit: it may stay in a front that lacks points (benchmarks/auto.md).
AGAIN_SHARE, AGAIN_SECONDS = 0.5, 20.0
#: Share of what is left after which plans of small instances are retimed, and the least time limit
#: in seconds: benchmarks/retime.md.
RETIMED_SHARE, RETIMED_SECONDS = 0.9, 2.0
#: Time that the exact method takes in all, in the time of its tables: 8 and 9 were measured on
#: instances of 10 requests with 15 and 17 replicas.
_TABLES = 9
#: Part of a time limit that is left when the choice is made: the clock runs.
RUNNING = 1 - 1e-2


def method_for(
    problem: Temporal, *, seconds: float | None = None
) -> str | tuple[tuple[str, float], ...]:
    """Return the exact method for small instances, the search in parts for large ones, or MOEA/D.

    Between them both searches run in turn. Where the exact method is likely to end in its share of
    a time limit of `seconds`, it runs between two searches: the plans of the first save it work.
    Where it is not, MOEA/D runs twice within a long time limit. On small instances plans are
    retimed at the end of a time limit. Where offers are limited it is always MOEA/D.
    """
    if any(offer.max_instances is not None for offer in problem.offers):
        return "moead"
    if sum(request.replicas for request in problem.requests) <= FEW_REPLICAS:
        return "bin-plans"
    if len(problem.requests) >= MANY_REQUESTS:
        return "sharded"
    stages: list[tuple[str, float]] = [("moead", 1.0)]
    few = len(problem.requests) < SOME_REQUESTS
    if seconds is not None and _ends_within(problem, (1 - BEFORE_SHARE) * EXACT_SHARE * seconds):
        stages[:0] = [("moead", BEFORE_SHARE), ("bin-plans", EXACT_SHARE)]
    elif not few:
        stages[:0] = [("sharded", PARTS_SHARE)]
    elif seconds is not None and seconds >= AGAIN_SECONDS * RUNNING:
        stages[:0] = [("moead", AGAIN_SHARE)]
    if seconds is not None and seconds >= RETIMED_SECONDS * RUNNING and few:
        stages[-1:] = [("moead", RETIMED_SHARE), ("retime", 1.0)]
    return tuple(stages) if len(stages) > 1 else "moead"


def _ends_within(problem: Temporal, seconds: float) -> bool:
    """Return whether the exact method is likely to end in so many seconds."""
    return _TABLES * seconds_of_tables(r.replicas for r in problem.requests) <= seconds
