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
from placeopt.core.interfaces import Division
from placeopt.temporal.instance import Temporal


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
    return TemporalDivision(
        tuple(Temporal.from_document(part) for part in documents),
        factors[:, problem.columns(objectives)],
        members,
        problem,
    )


class TemporalDivision(Division):
    """Parts of an instance; a plan of the whole has the machines of the plans of all parts."""

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
