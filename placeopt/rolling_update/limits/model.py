"""Limits of nodes in the models of rolling updates.

``models/rolling_update/README.md`` has the maths.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyomo.environ as pyo


def add_limits(model: pyo.ConcreteModel) -> None:
    """Add the limits of nodes; needs ``used`` and ``at``."""
    a = model.problem.arrays
    if not a.limits.any:
        return
    model.use_hosts = pyo.Constraint(
        [n for n in model.CLOSABLE if n < a.num_real],
        rule=lambda k, n: k.used[n] <= pyo.quicksum([k.at[m, n] for m in k.arrivals[n]]),
        doc="a node without anything is not in use",
    )
    count = len(a.limits.most)
    model.adds = pyo.Var(range(count), domain=pyo.Binary, doc="z: a node of it is newly used")
    model.few = pyo.Var(range(count), domain=pyo.Binary, doc="w: one node of the limit at most")
    model.limit_rows = pyo.ConstraintList(doc="limits of nodes")
    for k in range(count):
        _add_limit(model, k)


def _add_limit(model: pyo.ConcreteModel, k: int) -> None:
    a, limits = model.problem.arrays, model.problem.arrays.limits
    own = np.flatnonzero(limits.amount[k]).tolist()
    for n in own:
        if not limits.now[n] and n in model.CLOSABLE:
            model.limit_rows.add(model.used[n] <= model.adds[k])
    slack = int(limits.amount[k].sum()) - int(limits.most[k])
    if slack > 0:
        total = pyo.quicksum([int(limits.amount[k, n]) * _used(model, n) for n in own])
        model.limit_rows.add(total <= int(limits.most[k]) + slack * (1 - model.adds[k]))
    if limits.share[k] < 1:
        there = pyo.quicksum([_used(model, n) for n in own])
        every = pyo.quicksum([_used(model, n) for n in range(a.num_real)])
        loose = len(own) * (1 - model.adds[k])
        model.limit_rows.add(there <= 1 + len(own) * (1 - model.few[k]) + loose)
        share = float(limits.share[k])
        model.limit_rows.add(there <= share * every + 1e-9 + len(own) * model.few[k] + loose)


def assign_limits(model: pyo.ConcreteModel, end: np.ndarray) -> None:
    """Give the variables the values of a deployment, int array (M,) of nodes."""
    a = model.problem.arrays
    if not a.limits.any:
        return
    used = np.bincount(end[end >= 0], minlength=len(a.price)) > 0
    for k in model.adds:
        own = used & (a.limits.amount[k] > 0)
        model.adds[k].set_value(int((own & ~a.limits.now).any()))
        model.few[k].set_value(int(own.sum() <= 1))


def _used(model: pyo.ConcreteModel, n: int) -> Any:
    return model.used[n] if n in model.CLOSABLE else 1
