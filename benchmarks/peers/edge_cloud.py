"""Edge-cloud: a literal for every microservice and node, levels of latency by application."""

from __future__ import annotations

from typing import Any

import numpy as np
from ortools.sat.python import cp_model

from peers.cp import solved, weighted


def best(instance: Any, weights: Any, refused_cap: float | None, limits: Any, seed: int) -> Any:
    """Return plans of least ``weights @ (cost, latency_ms)``, one a limit."""
    a, model = instance.arrays, cp_model.CpModel()
    fits = (a.demand[:, None, :] <= a.capacity[None]).all(axis=2)
    fits &= np.isfinite(a.delay[a.source[a.application_of]])
    x = {(m, v): model.new_bool_var("") for m, v in np.argwhere(fits).tolist()}
    for m in range(len(fits)):
        model.add_exactly_one(x[m, v] for v in np.flatnonzero(fits[m]).tolist())
    for v, capacity in enumerate(a.capacity.tolist()):
        for r, most in enumerate(capacity):
            on = [int(a.demand[m, r]) * x[m, v] for m in range(len(fits)) if fits[m, v]]
            model.add(sum(on) <= most)
    _add_flows(model, a, x, fits)
    cost = sum(
        float(a.operating[v] + a.network[v] * a.data[m]) * literal for (m, v), literal in x.items()
    )
    model.minimize(weighted(weights, cost, _latency(model, a, x, fits)))

    def plan(solution: Any) -> Any:
        hosts = np.full(len(fits), -1)
        for (m, v), literal in x.items():
            if solution.boolean_value(literal):
                hosts[m] = v
        return instance.plan(hosts)

    return solved(model, limits, seed, plan)


def _add_flows(model: cp_model.CpModel, a: Any, x: Any, fits: np.ndarray) -> None:
    """Keep microservices that talk within the delay that they allow."""
    for m in range(len(fits)):
        for f in range(a.flow_first[m], a.flow_first[m + 1]):
            other, limit = int(a.flow_other[f]), a.flow_limit[f]
            for v in np.flatnonzero(fits[m]).tolist():
                far = np.flatnonzero(fits[other] & (a.delay[v] > limit)).tolist()
                if far:
                    model.add_at_most_one([x[m, v], *(x[other, w] for w in far)])


def _latency(model: cp_model.CpModel, a: Any, x: Any, fits: np.ndarray) -> Any:
    """Return the sum over applications of the largest delay from the source, by levels."""
    terms: list[Any] = []
    for k, source in enumerate(a.source.tolist()):
        inside = range(a.first[k], a.first[k + 1])
        levels = np.unique(a.delay[source][fits[list(inside)].any(axis=0)])
        terms.append(float(levels[0]))
        reached = [model.new_bool_var("") for _ in levels[1:]]
        for literal, below, level in zip(reached, levels[:-1], levels[1:], strict=True):
            terms.append(float(level - below) * literal)
            for m in inside:
                for v in np.flatnonzero(fits[m] & (a.delay[source] >= level)).tolist():
                    model.add_implication(x[m, v], literal)
        for high, low in zip(reached[1:], reached, strict=False):
            model.add_implication(high, low)
    return sum(terms)
