"""Why an edge-cloud instance can have no plan."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from placeopt.edge_cloud.arrays import EdgeCloudArrays, limited_flows, possible_nodes
from placeopt.edge_cloud.document import EdgeApplication


def reasons(applications: Sequence[EdgeApplication], instance: EdgeCloudArrays) -> Iterator[str]:
    """Yield the reasons why no plan can exist, a sentence each; nothing where none is known."""
    services = [(a.name, m) for a in applications for m in a.microservices]
    possible = possible_nodes(instance)
    has_node: np.ndarray = np.any(possible, axis=1)
    for i in np.flatnonzero(~has_node).tolist():
        application, service = services[i]
        why = "no node is large enough"
        if np.all(instance.demand[i] <= instance.capacity, axis=1).any():
            why = "no node that is large enough has a delay from the source"
        yield (
            f"microservice {service.name!r} of {application!r} needs {service.cpu_cores:g} cores "
            f"and {service.memory_gib:g} GiB; {why}"
        )
    for i, j, limit in limited_flows(instance):
        if has_node[i] and has_node[j] and not _pair_exists(instance, possible, i, j, limit):
            ends = f"{services[i][1].name!r} and {services[j][1].name!r} of {services[i][0]!r}"
            yield f"no two nodes can host {ends} within {limit:g} ms of each other"
    demand, capacity = instance.demand.sum(axis=0), instance.capacity.sum(axis=0)
    for kind, need, have in zip(("cpu", "memory"), demand.tolist(), capacity.tolist(), strict=True):
        if need > have:
            share = f"{need / max(have, 1):.1%} of the {kind} of all nodes"
            yield f"all microservices together need {share}"


def _pair_exists(
    instance: EdgeCloudArrays, possible: np.ndarray, i: int, j: int, limit: float
) -> bool:
    """Return whether one node or two can host microservices i and j within a delay."""
    together = (instance.demand[i] + instance.demand[j] <= instance.capacity).all(axis=1)
    if (possible[i] & possible[j] & together & (instance.delay.diagonal() <= limit)).any():
        return True
    one, other = np.flatnonzero(possible[i]), np.flatnonzero(possible[j])
    near = instance.delay[np.ix_(one, other)] <= limit
    return bool((near & (one[:, None] != other)).any())
