"""Kernels that the encoder, the decision sequence and the local search share.

`instance` is an `EdgeCloudArrays`. `room`, shape (nodes, 2), is what is left of each node's
capacity. `hosts`, shape (microservices,), is the node of each microservice, -1 for none. A
`service` is the number of a microservice, counted through all applications.
"""

from __future__ import annotations

import numpy as np

from placeopt.core.kernels.compile import kernel


@kernel
def has_room(instance, room, service, node):
    """Return whether a node has cpu and memory left for a microservice."""
    return (
        instance.demand[service, 0] <= room[node, 0]
        and instance.demand[service, 1] <= room[node, 1]
    )


@kernel
def fits(instance, room, hosts, service, node):
    """Return whether a microservice may go to a node beside the microservices that are placed.

    The node needs room, a delay from the source, and delays to the ends of flows within the limits.
    """
    source = instance.source[instance.application_of[service]]
    if not has_room(instance, room, service, node) or instance.delay[source, node] == np.inf:
        return False
    for flow in range(instance.flow_first[service], instance.flow_first[service + 1]):
        other = hosts[instance.flow_other[flow]]
        if other >= 0 and instance.delay[other, node] > instance.flow_limit[flow]:
            return False
    return True


@kernel
def put(instance, room, hosts, service, node):
    """Place a microservice on a node; changes `room` and `hosts`."""
    hosts[service] = node
    room[node, 0] -= instance.demand[service, 0]
    room[node, 1] -= instance.demand[service, 1]


@kernel
def take(instance, room, hosts, service):
    """Take a placed microservice off its node; changes `room` and `hosts`."""
    node = hosts[service]
    hosts[service] = -1
    room[node, 0] += instance.demand[service, 0]
    room[node, 1] += instance.demand[service, 1]


@kernel
def cost(instance, service, node):
    """Return the cost of a microservice on a node: a summand of equation (6)."""
    return instance.operating[node] + instance.network[node] * instance.data[service]


@kernel
def latency(instance, hosts, application):
    """Return the latency of what is placed of an application, ms: a summand of equation (7)."""
    farthest, source = 0.0, instance.source[application]
    for service in range(instance.first[application], instance.first[application + 1]):
        if hosts[service] >= 0:
            farthest = max(farthest, instance.delay[source, hosts[service]])
    return farthest
