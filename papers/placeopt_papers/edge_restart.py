"""The greedy rule of the multi-agent rollout paper (Fig. 1), restarts as printed.

Microservice after microservice goes to the node of least weighted increment that fits. Where one
finds no node, its application begins again with the next best node for its first microservice.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from placeopt.core.kernels.compile import kernel
from placeopt.edge_cloud.arrays import put, take
from placeopt.edge_cloud.sequence import _next_node, next_service


@kernel
def _rest_placed(instance, state, weights, first, last):
    """Place microservices `first` to before `last` greedily; return whether all found nodes.

    Changes `state`; takes back what it placed where one finds none.
    """
    source = instance.source[instance.application_of[first]]
    farthest = instance.delay[source, state.hosts[first]]
    for service in range(first + 1, last):
        _, rank = _next_node(instance, state, weights, service, farthest, -1.0, -1)
        if rank < 0:
            for placed in range(first + 1, service):
                take(instance, state, placed)
            return False
        node = instance.near[source, rank]
        put(instance, state, service, node)
        farthest = max(farthest, instance.delay[source, node])
    return True


@kernel
def play(instance, order, state, weights):
    """Place application after application, in place; return those restarts that it took.

    Ends before the first application that finds no place: `state.decided` says where.
    """
    restarts = 0
    while True:
        first = next_service(order, state)
        if first < 0:
            return restarts
        application = instance.application_of[first]
        source, last = instance.source[application], instance.first[application + 1]
        value, rank, placed = -1.0, -1, False
        while not placed:
            value, rank = _next_node(instance, state, weights, first, 0.0, value, rank)
            if rank < 0:
                return restarts
            put(instance, state, first, instance.near[source, rank])
            placed = _rest_placed(instance, state, weights, first, last)
            if not placed:
                take(instance, state, first)
                restarts += 1
        state.decided[0] += last - first


def greedy(sequence: Any, weight: float) -> tuple[Any, int]:
    """Return the state after the printed rule, and how often it began an application again.

    Parameters
    ----------
    sequence : EdgeCloudSequence
    weight : float
        w of equation (1).
    """
    state = sequence.reset()
    weights = np.array([weight, 1 - weight])
    return state, int(play(sequence.instance, sequence.order, state, weights))
