"""The referee of edge-cloud plans: equations (2) to (7) in whole numbers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from placeopt.core.numbers import MAX_DECIMALS, decimals
from placeopt.core.problem import Evaluation, Violation, require_name
from placeopt.edge_cloud.arrays import EdgeCloudArrays, node_loads

#: Decimals that costs are computed with.
_COST_DECIMALS = 12


class _Checked(NamedTuple):
    """What is checked of one application; microservices are counted within it."""

    name: str
    source: int
    services: dict[str, int]  # name -> number
    data: list[float]
    flows: list[tuple[int, int, float]]  # two microservices, largest delay in ms


class EdgeCloudReferee:
    """Judges the plans of one instance.

    Attributes
    ----------
    cost_step, latency_step : float or None
        What the values of plans are multiples of, None where they have too many decimals.
    """

    def __init__(
        self,
        nodes: Sequence[Any],
        delay_ms: Mapping[str, Mapping[str, float]],
        applications: Sequence[Any],
        instance: EdgeCloudArrays,
    ):
        self._nodes, self._instance = nodes, instance
        self._delay = [memoryview(row) for row in instance.delay]  # floats, made when looked up
        self._number = {node.name: k for k, node in enumerate(nodes)}
        self._applications = {
            a.name: _checked(a, source)
            for a, source in zip(applications, instance.source.tolist(), strict=True)
        }
        cost_digits = max(
            decimals(n.operating_cost for n in nodes),
            decimals(n.network_cost for n in nodes)
            + decimals(m.data for a in applications for m in a.microservices),
        )
        delay_digits = decimals(ms for row in delay_ms.values() for ms in row.values())
        self.cost_step = 10.0**-cost_digits if cost_digits <= MAX_DECIMALS else None
        self.latency_step = 10.0**-delay_digits if delay_digits <= MAX_DECIMALS else None
        self._cost_scale = 10 ** min(cost_digits, _COST_DECIMALS)
        self._delay_scale = 10 ** min(delay_digits, MAX_DECIMALS)
        self._scaled_cost = cache(self._compute_cost)

    def judge(self, placement: Mapping[str, Mapping[str, str]]) -> Evaluation:
        """Return values and violations of a placement; see `EdgeCloud.evaluate`."""
        for name in placement.keys() - self._applications.keys():
            require_name("application", name, self._applications, "placement")
        violations: list[Violation] = []
        all_hosts: list[int] = []
        cost = latency = 0
        for application in self._applications.values():
            hosts = self._hosts(application, placement.get(application.name, {}))
            all_hosts += hosts
            for node, amount in zip(hosts, application.data, strict=True):
                cost += self._scaled_cost(node, amount)  # (6)
            distance = self._delay[application.source]
            delays = [distance[node] for node in hosts if node >= 0]
            existing = [delay for delay in delays if delay < math.inf]
            latency += round(max(existing, default=0.0) * self._delay_scale)  # (7)
            if len(existing) < len(hosts):
                violations += self._unplaced(application, hosts)
            violations += self._late(application, hosts)
        violations += self._overloads(np.array(all_hosts))
        return Evaluation((cost / self._cost_scale, latency / self._delay_scale), tuple(violations))

    def _hosts(self, application: _Checked, row: Mapping[str, str]) -> list[int]:
        """Return the node of every microservice of an application, -1 for none."""
        number, hosts = self._number, [-1] * len(application.services)
        path = f"placement.{application.name}"
        for service, name in row.items():
            require_name("microservice", service, application.services, path)
            require_name("node", name, number, f"{path}.{service}")
            hosts[application.services[service]] = number[name]
        return hosts

    def _compute_cost(self, node: int, data: float) -> int:
        """Return the cost of one microservice (6) in scaled units; 0 on no node."""
        if node < 0:
            return 0
        at = self._nodes[node]
        exact = Decimal(repr(at.operating_cost)) + Decimal(repr(at.network_cost)) * Decimal(
            repr(data)
        )
        return int((exact * self._cost_scale).to_integral_value())

    def _unplaced(self, application: _Checked, hosts: list[int]) -> Iterator[Violation]:
        """Yield what is on no node (2), and the nodes without a delay from the source."""
        for service, k in application.services.items():
            if hosts[k] < 0:
                message = f"microservice {service!r} of {application.name!r} is on no node"
                yield Violation("not-placed", 1.0, message)
        distance, source = self._delay[application.source], self._nodes[application.source].name
        for node in sorted({v for v in hosts if v >= 0 and distance[v] == math.inf}):
            used = f"application {application.name!r} uses {self._nodes[node].name}"
            yield Violation("unreachable", 1.0, f"{used}, to which {source} has no delay")

    def _late(self, application: _Checked, hosts: list[int]) -> Iterator[Violation]:
        """Yield the flows whose delay is above the limit (3)."""
        for i, j, limit in application.flows:
            delay = self._delay[hosts[i]][hosts[j]]
            if hosts[i] < 0 or hosts[j] < 0 or delay <= limit:
                continue
            services = list(application.services)
            one, other = (f"{services[k]} on {self._nodes[hosts[k]].name}" for k in (i, j))
            over = min(1e6, (delay - limit) / max(limit, 1e-9)) if delay < math.inf else 1.0
            shown = f"{delay:g} ms" if delay < math.inf else "no delay is known"
            message = (
                f"{application.name!r}: {one} to {other}: {shown}; legal: at most {limit:g} ms"
            )
            yield Violation("flow-delay", over, message)

    def _overloads(self, hosts: np.ndarray) -> Iterator[Violation]:
        """Yield the nodes whose load is above the capacity (4), (5)."""
        loads, capacity = node_loads(self._instance, hosts), self._instance.capacity
        for node, resource in np.argwhere(loads > capacity):
            share = float(loads[node, resource] / max(capacity[node, resource], 1))
            kind = ("cpu", "memory")[resource]
            message = f"node {self._nodes[node].name} is at {share:.1%} of its {kind}"
            yield Violation(f"{kind}-capacity", max(share - 1, 1e-9), message)


def _checked(application: Any, source: int) -> _Checked:
    services = {m.name: k for k, m in enumerate(application.microservices)}
    return _Checked(
        name=application.name,
        source=source,
        services=services,
        data=[m.data for m in application.microservices],
        flows=[
            (services[f.source], services[f.target], f.max_delay_ms)
            for f in application.flows
            if f.max_delay_ms is not None
        ],
    )
