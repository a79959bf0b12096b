"""Kernels that the encoder, the decision sequence and the local search share.

`instance` is an `EdgeCloudArrays`. `placement` is a `Placement`, or any record with its fields: two
arrays taken out of one make a call slower. To hand on `instance` costs more than to add a few of
its numbers, so that innermost loops do that themselves.
A `service` is the number of a microservice, counted through all applications.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placeopt.core.kernels.compile import kernel


class Placement(NamedTuple):
    """Where microservices are, and the room that they leave."""

    hosts: np.ndarray  # (microservices,) the node of each, -1 for none
    room: np.ndarray  # (nodes, 2) what is left of each node's capacity


@kernel
def fits(instance, placement, service, node):
    """Return whether a microservice may go to a node beside the microservices that are placed.

    The node needs room, a delay from the source, and delays to the ends of flows within the limits.
    """
    source = instance.source[instance.application_of[service]]
    if (
        instance.demand[service, 0] > placement.room[node, 0]
        or instance.demand[service, 1] > placement.room[node, 1]
        or instance.delay[source, node] == np.inf
    ):
        return False
    for flow in range(instance.flow_first[service], instance.flow_first[service + 1]):
        other = placement.hosts[instance.flow_other[flow]]
        if other >= 0 and instance.delay[other, node] > instance.flow_limit[flow]:
            return False
    return True


@kernel
def put(instance, placement, service, node):
    """Place a microservice on a node; changes `placement`."""
    placement.hosts[service] = node
    placement.room[node, 0] -= instance.demand[service, 0]
    placement.room[node, 1] -= instance.demand[service, 1]


@kernel
def take(instance, placement, service):
    """Take a placed microservice off its node; changes `placement`."""
    node = placement.hosts[service]
    placement.hosts[service] = -1
    placement.room[node, 0] += instance.demand[service, 0]
    placement.room[node, 1] += instance.demand[service, 1]


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
