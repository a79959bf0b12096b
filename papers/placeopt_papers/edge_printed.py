"""Equations (3) and (7) of the multi-agent rollout paper as printed, in place of placeopt's forms.

They have the same integer solutions, more rows, and a weaker relaxation.
"""

from __future__ import annotations

import math

import pyomo.environ as pyo

from placeopt import models
from placeopt.edge_cloud.arrays import limited_flows
from placeopt.edge_cloud.problem import EdgeCloud


def build(problem: EdgeCloud, *, flows: bool = True, latency: bool = True) -> pyo.ConcreteModel:
    """Return the model of an instance with (3), with (7), or with both as printed."""
    model = models.edge_cloud.build(problem)
    if flows:
        _print_flows(model)
    if latency:
        _print_latency(model)
    return model


def _print_flows(model: pyo.ConcreteModel) -> None:
    """Write (3) for every pair of nodes; one without a delay has delay 1 and limit 0."""
    arrays = model.arrays
    model.del_component(model.flow_delay)
    model.flow_delay = pyo.Constraint(pyo.Any, doc="(3)")
    limited = list(limited_flows(arrays))
    for i, j, limit in (*limited, *((j, i, limit) for i, j, limit in limited)):
        for v in model.nodes_of[i]:
            for w in model.nodes_of[j]:
                delay = float(arrays.delay[v, w])
                delay, most = (delay, limit) if delay < math.inf else (1.0, 0.0)
                both = model.place[i, v] + model.place[j, w]
                model.flow_delay[i, j, v, w] = delay * both <= most + delay


def _print_latency(model: pyo.ConcreteModel) -> None:
    """Write (7) for each placement."""
    arrays = model.arrays
    for name in ("latency_climbs", "latency_covers", "reaches", "STEPS"):
        model.del_component(name)
    model.latency_covers = pyo.Constraint(pyo.Any, doc="(7)")
    for a in model.APPLICATIONS:
        distance = arrays.delay[arrays.source[a]].tolist()
        for i in range(int(arrays.first[a]), int(arrays.first[a + 1])):
            for v in model.nodes_of[i]:
                model.latency_covers[a, i, v] = model.farthest[a] >= distance[v] * model.place[i, v]
