"""Replicas that are added or removed on the way: horizontal scaling.

An added replica is a microservice without a node now; a removed one has no place afterwards. Both
meet at one node that is nowhere: the added ones come from there, the removed ones go there and take
nothing. So most code sees moves, and need not know.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from placeopt.rolling_update.document import UpdateMicroservice


class ReplicaSet(NamedTuple):
    """Replicas of one name, of which some are added and some removed.

    Attributes
    ----------
    label : str
        How messages name it.
    added, removed : list of int
        The microservices.
    num_before, num_after : int
        Replicas that run now, and at the end.
    """

    label: str
    added: list[int]
    removed: list[int]
    num_before: int
    num_after: int

    @property
    def spare(self) -> int:
        """Replicas that may be removed before one is added: the rest has to be ready."""
        return self.num_before - min(self.num_before, self.num_after)


class Amounts(NamedTuple):
    """What orders of moves count: M microservices, N nodes, R resources and more."""

    old: np.ndarray  # (M, R)
    new: np.ndarray  # (M, R)
    capacity: np.ndarray  # (N, R)
    load: np.ndarray  # (N, R) before the first move


def replica_sets(
    names: Sequence[tuple[str, str]], microservices: Sequence[UpdateMicroservice]
) -> list[ReplicaSet]:
    """Return the replica sets that both grow and shrink; others never have too few replicas.

    Parameters
    ----------
    names : sequence of (application, microservice), length M
    microservices : sequence of UpdateMicroservice, length M
    """
    members: dict[tuple[str, str], list[int]] = {}
    for m, ((application, _), service) in enumerate(zip(names, microservices, strict=True)):
        if service.replica_of is not None:
            members.setdefault((application, service.replica_of), []).append(m)
    results = []
    for (application, name), own in members.items():
        added = [m for m in own if microservices[m].node is None]
        removed = [m for m in own if microservices[m].removed]
        if added and removed:
            label = f"the replicas of {name!r} of {application!r}"
            before, after = len(own) - len(added), len(own) - len(removed)
            results.append(ReplicaSet(label, added, removed, before, after))
    return results


def with_turns(amounts: Amounts, sets: Sequence[ReplicaSet], nowhere: int) -> Amounts:
    """Return amounts with a resource more for each replica set, so that enough stay ready.

    Only the node that is nowhere has any of it. What is to be added takes one there until it
    starts, and what is removed takes one from then on: there is room for the spare ones, and for
    one more with each that has started.
    """
    if not sets:
        return amounts
    old, new, capacity, load = (
        np.pad(x, ((0, 0), (0, len(sets))), mode="constant") for x in amounts
    )
    for k, one in enumerate(sets, start=amounts.old.shape[1]):
        old[one.added, k] = new[one.removed, k] = 1
        load[nowhere, k] = len(one.added)
        capacity[nowhere, k] = len(one.added) + one.spare
    return Amounts(old, new, capacity, load)
