"""An edge-cloud instance as arrays of numbers, for kernels, models and drawings."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from placeopt.core.errors import require_known
from placeopt.core.kernels.compile import kernel
from placeopt.core.numbers import begins, ragged, resources

#: Orders in which applications may be placed.
ORDERS = ("small-first", "given")


class EdgeCloudArrays(NamedTuple):
    """An instance as arrays.

    Nodes and applications are counted in the order of the document, microservices through all
    applications. Resources are (cpu, memory) in whole units, delays are in ms. Each flow with a
    limit stands twice, at both its ends.
    """

    capacity: np.ndarray  # (nodes, 2) int64
    operating: np.ndarray  # (nodes,) cost of a microservice
    network: np.ndarray  # (nodes,) cost of a unit of data
    delay: np.ndarray  # (nodes, nodes) symmetric, inf where unknown
    near: np.ndarray  # (nodes, nodes) row v: all nodes by their delay from node v
    source: np.ndarray  # (applications,) node where the data come from
    first: np.ndarray  # (applications + 1,) first microservice of an application
    application_of: np.ndarray  # (microservices,)
    demand: np.ndarray  # (microservices, 2) int64
    data: np.ndarray  # (microservices,)
    least_cost: np.ndarray  # (microservices,) cost on the cheapest node
    flow_first: np.ndarray  # (microservices + 1,) first flow of a microservice
    flow_other: np.ndarray  # (2 flows,) the microservice at the other end
    flow_limit: np.ndarray  # (2 flows,) ms


def build_arrays(
    nodes: Sequence[Any],
    delay_ms: Mapping[str, Mapping[str, float]],
    applications: Sequence[Any],
) -> EdgeCloudArrays:
    """Return the arrays of an instance; demands are rounded up and capacities down."""
    number = {node.name: k for k, node in enumerate(nodes)}
    services = [m for a in applications for m in a.microservices]
    demand, capacity = resources(services, nodes, len(nodes) + len(services))
    operating = np.array([n.operating_cost for n in nodes])
    network = np.array([n.network_cost for n in nodes])
    data = np.array([m.data for m in services])
    counts = [len(a.microservices) for a in applications]
    first = begins(counts)
    delay = _delays(number, delay_ms)
    flow_first, flow_other, flow_limit = _flows(applications, first)
    return EdgeCloudArrays(
        capacity=capacity,
        operating=operating,
        network=network,
        delay=delay,
        near=np.argsort(delay, axis=1, kind="stable"),
        source=np.array([number[a.source] for a in applications]),
        first=first,
        application_of=np.repeat(np.arange(len(counts)), counts),
        demand=demand,
        data=data,
        least_cost=np.array([(operating + network * amount).min() for amount in data]),
        flow_first=flow_first,
        flow_other=flow_other,
        flow_limit=flow_limit,
    )


def _delays(number: Mapping[str, int], delay_ms: Mapping[str, Mapping[str, float]]) -> np.ndarray:
    """Return the delays between nodes, shape (nodes, nodes)."""
    delay = np.full((len(number), len(number)), math.inf)
    np.fill_diagonal(delay, 0.0)
    for one, row in delay_ms.items():
        if one in number:
            existing = [(number[other], ms) for other, ms in row.items() if other in number]
            if existing:
                columns, values = zip(*existing, strict=True)
                delay[number[one], list(columns)] = values
                delay[list(columns), number[one]] = values
    return delay


def _flows(
    applications: Sequence[Any], first: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return flow_first, flow_other and flow_limit; the tightest of flows between the same two."""
    ends: list[dict[int, float]] = [{} for _ in range(int(first[-1]))]
    for k, application in enumerate(applications):
        number = {m.name: int(first[k]) + i for i, m in enumerate(application.microservices)}
        for flow in application.flows:
            if flow.max_delay_ms is not None:
                i, j = number[flow.source], number[flow.target]
                ends[i][j] = ends[j][i] = min(flow.max_delay_ms, ends[i].get(j, math.inf))
    start, other = ragged([sorted(e) for e in ends])
    return start, other, np.array([e[j] for e in ends for j in sorted(e)], dtype=float)


def possible_nodes(instance: EdgeCloudArrays) -> np.ndarray:
    """Return whether each node can host each microservice alone, shape (microservices, nodes).

    The node must be large enough and have a delay from the source.
    """
    large = (instance.demand[:, None, :] <= instance.capacity[None, :, :]).all(axis=2)
    return large & np.isfinite(instance.delay[instance.source[instance.application_of]])


def limited_flows(instance: EdgeCloudArrays) -> Iterator[tuple[int, int, float]]:
    """Yield the flows that have a limit, each once: two microservices and ms."""
    end = np.repeat(np.arange(len(instance.demand)), np.diff(instance.flow_first))
    for i, j, limit in zip(
        end.tolist(), instance.flow_other.tolist(), instance.flow_limit.tolist(), strict=True
    ):
        if i < j:
            yield i, j, limit


def node_loads(instance: EdgeCloudArrays, hosts: np.ndarray) -> np.ndarray:
    """Return the demand placed on each node, shape (nodes, 2).

    Parameters
    ----------
    hosts : ndarray of int64, shape (microservices,)
        The node of each microservice, -1 for none.
    """
    loads = np.zeros_like(instance.capacity)
    np.add.at(loads, hosts[hosts >= 0], instance.demand[hosts >= 0])
    return loads


def application_order(instance: EdgeCloudArrays, order: str) -> np.ndarray:
    """Return the applications in one of `ORDERS`, shape (applications,).

    The size of an application is its cpu over the mean cpu of a microservice, plus its memory over
    the mean memory.

    Raises
    ------
    UsageError
        There is no such order.
    """
    require_known("order", order, ORDERS)
    if order == "given":
        return np.arange(len(instance.source))
    size = (instance.demand / np.maximum(instance.demand.mean(axis=0), 1e-9)).sum(axis=1)
    return np.argsort(np.add.reduceat(size, instance.first[:-1]), kind="stable")


# -- kernels ---------------------------------------------------------------------------------------


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
