"""A temporal instance cut into parts: its goals are sums over requests and machines.

Requests of one origin stand together, since they have the same near machines; in each part they
have all durations, so that reserved machines can be filled one request after another.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

import numpy as np

from placeopt.core.errors import UnsupportedError
from placeopt.core.fronts.values import Objective, Plan
from placeopt.temporal.exact.tables import seconds_of_tables
from placeopt.temporal.problem import Temporal

# -- parts -----------------------------------------------------------------------------------------


def divide(problem: Temporal, objectives: Sequence[Objective], size: int) -> Division:
    """Return the instance in parts of about `size` requests.

    Raises
    ------
    UnsupportedError
        Offers with ``max_instances``: their machines are shared out among all requests.
    """
    if any(offer.max_instances is not None for offer in problem.offers):
        raise UnsupportedError(
            "max_instances counts the machines of all requests together, so that they cannot be "
            "searched in parts; use method moead"
        )
    members = _members(problem, size)
    document = problem.to_document()
    requests = document["requests"]
    documents = [
        document | {"name": f"{problem.name}-{k}", "requests": [requests[i] for i in part]}
        for k, part in enumerate(members)
    ]
    share = np.array([len(part) for part in members]) / len(requests)
    factors = np.stack((share, np.ones(len(members)), share), axis=1)
    return Division(
        tuple(Temporal.from_document(part) for part in documents),
        factors[:, problem.columns(objectives)],
        members,
        problem,
    )


class Division:
    """Parts of an instance, each an instance, whose goals add up.

    A plan of the whole has the machines of the plans of all parts. Its goals are the sums of those
    of the parts, each times a factor. So the front of all such plans is the Minkowski sum of the
    fronts of the parts, and for weighted sums every part can be searched alone.

    Attributes
    ----------
    parts : tuple of Temporal
    factors : ndarray, shape (parts, objectives)
        Above 0: what a unit of a goal of a part counts in the whole.
    """

    def __init__(
        self,
        parts: tuple[Temporal, ...],
        factors: np.ndarray,
        members: list[np.ndarray],
        problem: Temporal,
    ):
        self.parts, self.factors = parts, factors
        first = problem.arrays.first + len(problem.requests)
        self._genes = [
            np.concatenate((part, *(np.arange(first[i], first[i + 1]) for i in part)))
            for part in members
        ]

    def join(self, vectors: Sequence[np.ndarray]) -> np.ndarray:
        """Return the vector of the whole; its requests keep their starts and pools."""
        genes = np.empty(sum(map(len, self._genes)), dtype=np.int64)
        for where, vector in zip(self._genes, vectors, strict=True):
            genes[where] = vector
        return genes

    def split(self, vector: np.ndarray) -> list[np.ndarray]:
        """Return the starts and pools of each part's requests."""
        return [vector[where] for where in self._genes]

    def compose(self, plans: Sequence[Plan]) -> Plan:
        """Return the plan of the whole; machines are those of the parts, not copies."""
        return {
            "starts": {name: start for plan in plans for name, start in plan["starts"].items()},
            "instances": [machine for plan in plans for machine in plan["instances"]],
        }


def _members(problem: Temporal, size: int) -> list[np.ndarray]:
    """Return the requests of each part."""
    requests = problem.requests
    order = sorted(
        range(len(requests)), key=lambda i: (requests[i].origin, requests[i].duration_slots)
    )
    parts: list[np.ndarray] = []
    block: list[int] = []
    for _, group in groupby(order, key=lambda i: requests[i].origin):
        block += group
        if len(block) >= size / 2:
            count = max(1, round(len(block) / size))
            parts += [np.array(block[k::count]) for k in range(count)]
            block = []
    if block:  # what is left is not worth a part of its own
        parts[-1:] = [np.concatenate((*parts[-1:], np.array(block)))]
    return parts


# -- what auto runs --------------------------------------------------------------------------------

#: Up to so many replicas the exact method ends within seconds.
FEW_REPLICAS = 10
#: Sizes from which MOEA/D starts from the search in parts (benchmarks/auto.md), and from
#: which that alone is better.
SOME_REQUESTS, MANY_REQUESTS = 20, 500
#: Share of the budget of the search in parts before MOEA/D (benchmarks/auto.md).
PARTS_SHARE = 0.2
#: Shares of what is left that a short search and then the exact method have under a time limit.
BEFORE_SHARE, EXACT_SHARE = 0.1, 0.65
#: Share of a time limit after which MOEA/D begins anew from its own front, where nothing else runs,
#: and the least limit: it may stay in a front that lacks points (benchmarks/auto.md).
AGAIN_SHARE, AGAIN_SECONDS = 0.5, 20.0
#: Share of what is left after which plans of small instances are retimed, and the least time limit
#: in seconds.
RETIMED_SHARE, RETIMED_SECONDS = 0.75, 2.0
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
