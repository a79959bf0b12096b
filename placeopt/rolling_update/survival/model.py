"""The loss of any one node in the models of rolling updates.

``models/rolling_update/README.md`` has the maths.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyomo.environ as pyo

from placeopt.rolling_update.rules.model import add_row


def add_survival(model: pyo.ConcreteModel) -> None:
    """Add what is lost with each node, and that the others have room; needs ``at``, ``used``."""
    a = model.problem.arrays
    if a.survival.asked:
        _add_lost(model)
    if a.survival.room:
        _add_room(model)


def survival_goal(model: pyo.ConcreteModel) -> dict[str, Any]:
    """Return name -> expression of the objective; nothing where it is not asked for."""
    return {"lost_at_worst": model.lost} if model.problem.arrays.survival.asked else {}


def assign_survival(model: pyo.ConcreteModel, end: np.ndarray) -> None:
    """Give the variables the values of a deployment, int array (M,) of nodes."""
    s = model.problem.arrays.survival
    if not s.asked:
        return
    model.lost.set_value(int(s.lost(end[None])[0]))
    for g, n in model.short:
        count = int((end[s.member[s.group == g]] == n).sum())
        model.short[g, n].set_value(max(0, count - int(s.spare[g])))


def _add_lost(model: pyo.ConcreteModel) -> None:
    a = model.problem.arrays
    s = a.survival
    members = [s.member[s.group == g].tolist() for g in range(len(s.spare))]
    model.lost = pyo.Var(domain=pyo.NonNegativeIntegers, doc="w: copies lost at worst")
    model.short = pyo.Var(
        range(len(members)),
        range(len(s.capacity)),
        domain=pyo.NonNegativeReals,
        doc="v: copies of g that the loss of n takes and that g needs",
    )
    model.short_rows = pyo.ConstraintList(doc="v >= copies of g on n less those that may miss")
    for g, n in model.short:
        there = pyo.quicksum([_on(model, a.home, m, n) for m in members[g]])
        model.short_rows.add(there - model.short[g, n] <= int(s.spare[g]))
    model.lost_rows = pyo.Constraint(
        range(len(s.capacity)),
        rule=lambda k, n: pyo.quicksum(k.short[g, n] for g in range(len(members))) <= k.lost,
        doc="w >= sum of v on n",
    )


def _on(model: pyo.ConcreteModel, home: np.ndarray, m: int, n: int) -> Any:
    """Return whether microservice m ends on node n."""
    if m not in model.nodes_of:
        return int(home[m] == n)
    return model.at[m, n] if n in model.nodes_of[m] else 0


def _add_room(model: pyo.ConcreteModel) -> None:
    """Add that the nodes in use have room for all without any one of them: necessary, not enough.

    The search's cuts exclude deployments whose copies find no place one by one.
    """
    a = model.problem.arrays
    s, need = a.survival, a.new.sum(axis=0).tolist()
    nodes = range(len(s.capacity))

    def in_use(n: int) -> Any:
        return 1 if s.standing[n] or n not in model.CLOSABLE else model.used[n]

    priced = [n for n in model.CLOSABLE if n in nodes and not s.standing[n]]
    model.hosts = pyo.Constraint(
        priced,
        rule=lambda k, n: k.used[n] <= pyo.quicksum([k.at[m, n] for m in k.arrivals[n]]),
        doc="a node without anything is not in use",
    )
    model.room_left = pyo.ConstraintList(doc="room without n")
    for r, wanted in enumerate(need):
        total = pyo.quicksum([int(s.capacity[n, r]) * in_use(n) for n in nodes])
        for n in nodes if wanted else ():
            left = total - int(s.capacity[n, r]) * in_use(n)
            add_row(model, model.room_left, left >= wanted)
