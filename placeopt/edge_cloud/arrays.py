"""An edge-cloud instance as plain arrays, and why an instance can have no plan."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from placeopt.core.errors import UsageError, did_you_mean
from placeopt.core.problem import scaled_down, scaled_up, unit_digits

if TYPE_CHECKING:
    from placeopt.edge_cloud.instance import EdgeCloud

#: Orders in which applications may be placed.
ORDERS = ("small-first", "given")


class Arrays(NamedTuple):
    """Nodes v, applications a, microservices i counted through all applications; resources are (cpu, memory) in whole units."""

    capacity: np.ndarray  # (nodes, 2) int64
    operating: np.ndarray  # (nodes,)
    network: np.ndarray  # (nodes,)
    delay: np.ndarray  # (nodes, nodes) ms, symmetric, inf where unknown
    first: np.ndarray  # (applications + 1,) where the microservices of an application begin
    source: np.ndarray  # (applications,)
    demand: np.ndarray  # (microservices, 2) int64
    data: np.ndarray  # (microservices,)
    flow_first: np.ndarray  # (microservices + 1,) where the flows of a microservice begin; a flow stands at both its ends
    flow_other: np.ndarray  # (2 flows,) the microservice at the other end
    flow_limit: np.ndarray  # (2 flows,) ms


def arrays(problem: EdgeCloud) -> Arrays:
    """Return the arrays of an instance."""
    nodes, applications = problem.nodes, problem.applications
    services = [m for a in applications for m in a.microservices]
    cores, gib = [n.cpu_cores for n in nodes], [n.memory_gib for n in nodes]
    needed_cores, needed_gib = [m.cpu_cores for m in services], [m.memory_gib for m in services]
    copies = len(nodes) + len(services)
    cpu, memory = unit_digits(cores + needed_cores, copies), unit_digits(gib + needed_gib, copies)
    first = np.concatenate(([0], np.cumsum([len(a.microservices) for a in applications])))
    flow_first, flow_other, flow_limit = _flows(problem, first)
    return Arrays(
        capacity=np.stack([scaled_down(cores, cpu), scaled_down(gib, memory)], axis=1),
        operating=np.array([n.operating_cost for n in nodes]),
        network=np.array([n.network_cost for n in nodes]),
        delay=_delays(problem),
        first=first,
        source=np.array([problem.node_number[a.source] for a in applications]),
        demand=np.stack([scaled_up(needed_cores, cpu), scaled_up(needed_gib, memory)], axis=1),
        data=np.array([m.data for m in services]),
        flow_first=flow_first,
        flow_other=flow_other,
        flow_limit=flow_limit,
    )


def _delays(problem: EdgeCloud) -> np.ndarray:
    number = problem.node_number
    delay = np.full((len(number), len(number)), math.inf)
    np.fill_diagonal(delay, 0.0)
    for one, row in problem.delay_ms.items():
        if one in number:
            known = [(number[other], ms) for other, ms in row.items() if other in number]
            if known:
                columns, values = zip(*known, strict=True)
                delay[number[one], list(columns)] = values
                delay[list(columns), number[one]] = values
    return delay


def _flows(problem: EdgeCloud, first: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the flows with a limit, at both their ends; of several between the same two the tightest."""
    ends: list[dict[int, float]] = [{} for _ in range(int(first[-1]))]
    for k, application in enumerate(problem.applications):
        number = {m.name: int(first[k]) + i for i, m in enumerate(application.microservices)}
        for flow in application.flows:
            if flow.max_delay_ms is not None:
                i, j = number[flow.source], number[flow.target]
                ends[i][j] = ends[j][i] = min(flow.max_delay_ms, ends[i].get(j, math.inf))
    start = np.concatenate(([0], np.cumsum([len(e) for e in ends])))
    other = np.array([j for e in ends for j in sorted(e)], dtype=np.int64)
    return start, other, np.array([e[j] for e in ends for j in sorted(e)], dtype=float)


def fits(table: Arrays) -> np.ndarray:
    """Return whether a node can host a microservice alone: large enough and reachable; shape (microservices, nodes)."""
    large = (table.demand[:, None, :] <= table.capacity[None, :, :]).all(axis=2)
    source = np.repeat(table.source, np.diff(table.first))
    return large & np.isfinite(table.delay[source])


def order_of(table: Arrays, name: str) -> np.ndarray:
    """Return the applications in an order of `ORDERS`; the size is the share of the mean demand, cpu and memory together.

    Raises
    ------
    UsageError
        There is no such order.
    """
    if name not in ORDERS:
        raise UsageError(f"order is {name!r}; {did_you_mean(str(name), ORDERS)}")
    if name == "given":
        return np.arange(len(table.source))
    size = (table.demand / np.maximum(table.demand.mean(axis=0), 1e-9)).sum(axis=1)
    return np.argsort(np.add.reduceat(size, table.first[:-1]), kind="stable")


def reasons(problem: EdgeCloud) -> tuple[str, ...]:
    """Say why no plan can exist, a sentence each; empty where no reason is known."""
    table = problem.arrays
    names = [(a.name, m) for a in problem.applications for m in a.microservices]
    possible = fits(table)
    some = [bool(row.any()) for row in possible]
    found = []
    for i in (k for k, any_node in enumerate(some) if not any_node):
        application, service = names[i]
        need = f"microservice {service.name!r} of {application!r} needs {service.cpu_cores:g} cores and {service.memory_gib:g} GiB"
        large = (table.demand[i] <= table.capacity).all(axis=1).any()
        found.append(
            f"{need}; "
            + (
                "no node that is large enough has a delay from the source"
                if large
                else "no node is large enough"
            )
        )
    owner = np.repeat(np.arange(len(names)), np.diff(table.flow_first)).tolist()
    for i, j, limit in zip(
        owner, table.flow_other.tolist(), table.flow_limit.tolist(), strict=True
    ):
        if i < j and some[i] and some[j] and not _pair_exists(table, possible, i, j, limit):
            ends = f"{names[i][1].name!r} and {names[j][1].name!r} of {names[i][0]!r}"
            found.append(f"no two nodes can host {ends} within {limit:g} ms of each other")
    for label, need, have in zip(
        ("cpu", "memory"),
        table.demand.sum(axis=0).tolist(),
        table.capacity.sum(axis=0).tolist(),
        strict=True,
    ):
        if need > have:
            found.append(
                f"all microservices together need {need / max(have, 1):.1%} of the {label} of all nodes"
            )
    return tuple(found)


def _pair_exists(table: Arrays, possible: np.ndarray, i: int, j: int, limit: float) -> bool:
    together = (
        possible[i]
        & possible[j]
        & (table.demand[i] + table.demand[j] <= table.capacity).all(axis=1)
    )
    if (together & (table.delay.diagonal() <= limit)).any():
        return True
    apart = table.delay[np.ix_(possible[i], possible[j])] <= limit
    same = np.flatnonzero(possible[i])[:, None] == np.flatnonzero(possible[j])[None, :]
    return bool((apart & ~same).any())
