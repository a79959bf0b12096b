"""Equations (2) to (9) of the re-orchestration paper as they are printed.

M. Zambianco, S. Cretti, D. Siracusa, "Cost Minimization in Multi-cloud Systems with Runtime
Microservice Re-orchestration". They have no solution on most instances;
``models/rolling_update/README.md`` says why. `placeopt.rolling_update.model` corrects them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyomo.environ as pyo

from placeopt.core.errors import UnsupportedError
from placeopt.rolling_update.problem import RollingUpdate


def build_printed(problem: RollingUpdate, *, one_sum: bool = False) -> pyo.ConcreteModel:
    """Return the printed program, with the price of a node in (2).

    Of (5), whose quantifiers are missing, this is the reading that its text gives: the load of a
    node before every slot.

    Parameters
    ----------
    problem : RollingUpdate
    one_sum : bool
        Whether (7) is one sum over all applications for each slot, as must be meant. As printed it
        has one for each application, so that with (6) there is no solution for two or more.

    Returns
    -------
    pyomo.environ.ConcreteModel
        ``move[m, n, t]`` is x, ``used[n]`` is y; `node_cost` is the objective (2).

    Raises
    ------
    UnsupportedError
        Something runs nowhere yet, or is to be removed; or nodes have limits.
    """
    a = problem.arrays
    if a.waiting >= 0:
        raise UnsupportedError("the printed program knows no replicas that are added or removed")
    if a.limits.any:
        raise UnsupportedError("the printed program knows no limits of nodes")
    model = pyo.ConcreteModel(name=f"{problem.name}-as-printed")
    moving = np.flatnonzero(a.movable).tolist()
    model.MICROSERVICES = pyo.Set(initialize=moving, doc="m in M^")
    model.NODES = pyo.Set(initialize=range(len(a.price)))
    model.RESOURCES = pyo.Set(initialize=range(len(a.resources)))
    model.SLOTS = pyo.RangeSet(1, len(moving), doc="T")
    model.move = pyo.Var(model.MICROSERVICES, model.NODES, model.SLOTS, domain=pyo.Binary)
    model.used = pyo.Var(model.NODES, domain=pyo.Binary)
    free = a.capacity - a.initial_load
    _add_room(model, a, free)
    model.once = pyo.Constraint(
        model.MICROSERVICES, rule=lambda k, m: pyo.quicksum(k.move[m, :, :]) == 1, doc="(6)"
    )
    groups: dict[str, list[int]] = {}
    for m in moving:
        groups.setdefault("all" if one_sum else a.names[m][0], []).append(m)
    model.one_per_slot = pyo.Constraint(
        model.SLOTS,
        list(groups),
        rule=lambda k, t, g: pyo.quicksum(k.move[m, n, t] for m in groups[g] for n in k.NODES) == 1,
        doc="(7)",
    )
    for n in np.flatnonzero(a.hosting(a.fixed)).tolist():
        model.used[n].fix(1)  # (8)
    _add_locality(model, a)
    cost = pyo.quicksum(int(a.price[n]) * model.used[n] for n in model.NODES) / a.price_scale
    model.node_cost = pyo.Objective(expr=cost, doc="(2)")
    return model


def _add_room(model: pyo.ConcreteModel, a: Any, free: np.ndarray) -> None:
    """Add (3) and (5)."""

    def arrived(k: Any, n: int, r: int, slots: Any) -> Any:
        return pyo.quicksum(
            int(a.new[m, r]) * k.move[m, n, t] for m in k.MICROSERVICES for t in slots
        )

    def left(k: Any, n: int, r: int, slots: Any) -> Any:
        leavers = [m for m in k.MICROSERVICES if a.home[m] == n]
        return pyo.quicksum(
            int(a.old[m, r]) * k.move[m, other, t]
            for m in leavers
            for other in k.NODES
            for t in slots
        )

    model.final_load = pyo.Constraint(
        model.NODES,
        model.RESOURCES,
        rule=lambda k, n, r: arrived(k, n, r, k.SLOTS) <= int(free[n, r]) * k.used[n],
        doc="(3): with every old copy still there",
    )
    model.slot_load = pyo.Constraint(
        model.NODES,
        model.RESOURCES,
        [t for t in model.SLOTS if t > 1],
        rule=lambda k, n, r, t: (
            arrived(k, n, r, range(1, t)) - left(k, n, r, range(1, t)) <= int(free[n, r])
        ),
        doc="(5)",
    )


def _add_locality(model: pyo.ConcreteModel, a: Any) -> None:
    """Add (4) for pairs that a limit forbids."""
    model.locality = pyo.ConstraintList(doc="(4)")
    for one, other, limit in a.tight_flows:
        if one not in model.MICROSERVICES or other not in model.MICROSERVICES:
            continue
        for n in model.NODES:
            for k in model.NODES:
                if a.latency[a.cluster[n], a.cluster[k]] > limit:
                    both = pyo.quicksum(model.move[one, n, :]) + pyo.quicksum(
                        model.move[other, k, :]
                    )
                    model.locality.add(both <= 1)
