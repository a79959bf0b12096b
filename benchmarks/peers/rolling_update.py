"""Rolling update: a packing with locality; the order of the moves is placeopt's own."""

from __future__ import annotations

from typing import Any

import numpy as np
from ortools.sat.python import cp_model

from peers.cp import solved, weighted
from placeopt.rolling_update.order import plan_moves


def best(instance: Any, weights: Any, refused_cap: float | None, limits: Any, seed: int) -> Any:
    """Return plans of packings of least ``weights @ (node_cost, starts)``, one a limit.

    Rules, limits of nodes and survival are not in the model: for generated instances.
    """
    a, model = instance.arrays, cp_model.CpModel()
    nodes, movable = range(len(a.price)), np.flatnonzero(a.movable).tolist()
    x = {(m, n): model.new_bool_var("") for m in movable for n in nodes}
    is_open = [model.new_bool_var("") for _ in nodes]
    for m in movable:
        model.add_exactly_one(x[m, n] for n in nodes)
    for n in nodes:
        for r in range(a.capacity.shape[1]):
            load = sum(int(a.new[m, r]) * x[m, n] for m in movable)
            room = int(a.capacity[n, r] - a.fixed_load[n, r])
            model.add(load <= room * is_open[n] if room > 0 else load <= max(room, 0))
        if a.fixed_load[n].any():
            model.add(is_open[n] == 1)
        for m in movable:
            model.add_implication(x[m, n], is_open[n])
    _add_locality(model, a, x)
    moved = [1 if a.mandatory[m] else 1 - x[m, int(a.stays_on[m])] for m in movable]
    cost = sum(float(a.price[n]) / a.price_scale * is_open[n] for n in nodes)
    model.minimize(weighted(weights, cost, sum(moved)))

    def plan(solution: Any) -> Any:
        target = a.stays_on.copy()
        for (m, n), literal in x.items():
            if solution.boolean_value(literal):
                target[m] = n
        return instance.plan(plan_moves(instance, target, tries=4, seed=seed).steps)

    return solved(model, limits, seed, plan)


def _add_locality(model: cp_model.CpModel, a: Any, x: Any) -> None:
    """Keep peers of a tight flow in clusters that are near enough."""
    clusters = range(len(a.clusters))

    def within(m: int, c: int) -> Any:
        if not a.movable[m]:
            return int(a.cluster[a.stays_on[m]] == c)
        return sum(x[m, n] for n in np.flatnonzero(a.cluster == c).tolist())

    for m, other, limit in a.tight_flows:
        for c in clusters:
            far = [d for d in clusters if a.latency[c, d] > limit]
            if far:
                model.add(within(m, c) + sum(within(other, d) for d in far) <= 1)
