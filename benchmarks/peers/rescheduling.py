"""Rescheduling: counts by service and node, products of counts, the longest path of calls."""

from __future__ import annotations

from typing import Any

import numpy as np
from ortools.sat.python import cp_model

from peers.cp import solved, weighted
from placeopt.rescheduling.encoder import shortest

#: Parts of a millisecond in which times are whole numbers.
PARTS = 1000


def best(instance: Any, weights: Any, refused_cap: float | None, limits: Any, seed: int) -> Any:
    """Return plans of deployments of least ``weights @ (latency_ms, moves)``, one a limit."""
    a, model = instance.arrays, cp_model.CpModel()
    services, nodes = range(len(a.replicas)), range(len(a.user))
    n = [[model.new_int_var(0, int(a.replicas[i]), "") for _ in nodes] for i in services]
    for i in services:
        model.add(sum(n[i]) == int(a.replicas[i]))
    for u in nodes:
        for r in range(2):
            load = sum(int(a.demand[i, r]) * n[i][u] for i in services)
            model.add(load <= int(a.capacity[u, r]))
    arrives = [model.new_int_var(0, int(a.replicas[i]), "") for i in services for u in nodes]
    for k, (i, u) in enumerate((i, u) for i in services for u in nodes):
        model.add(arrives[k] >= n[i][u] - int(a.home[i, u]))
    latency = _latency(model, instance, n)
    model.minimize(weighted(weights, latency * (1 / PARTS), sum(arrives)))

    def plan(solution: Any) -> Any:
        counts = np.array([[solution.value(count) for count in row] for row in n])
        ordered, _ = shortest(instance.arrays, counts)
        return None if ordered is None else instance.plan(ordered)

    return solved(model, limits, seed, plan)


def _latency(model: cp_model.CpModel, instance: Any, n: Any) -> Any:
    """Return the latency in parts, rounded up by less than a part a term."""
    a, graph = instance.arrays, instance.graph
    nodes, horizon = range(len(a.user)), 10**9
    takes = {i: model.new_int_var(0, horizon, "") for i in graph.order}
    between: dict[tuple[int, int], Any] = {}

    def way(i: int, j: int) -> Any:
        if (i, j) not in between:
            pairs = a.replicas[i] * a.replicas[j]
            terms = []
            for u in nodes:
                for v in nodes:
                    if a.delay[u, v] > 0:
                        both = model.new_int_var(0, int(pairs), "")
                        model.add_multiplication_equality(both, [n[i][u], n[j][v]])
                        terms.append(round(PARTS * a.delay[u, v] / pairs) * both)
            between[i, j] = sum(terms)
        return between[i, j]

    for i in graph.order:
        own = sum(round(PARTS * a.own[i, u] / a.replicas[i]) * n[i][u] for u in nodes)
        for group in graph.groups[i] or [[]]:
            model.add(takes[i] >= own + sum(way(i, j) + takes[j] for j in group))
    return takes[int(a.order[-1])]
