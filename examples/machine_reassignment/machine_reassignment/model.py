"""Machine reassignment as a mixed-integer program; for small instances."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyomo.environ as pyo

from machine_reassignment.arrays import Arrays
from machine_reassignment.instance import MachineReassignment
from placeopt.plugins import Plan, declare, remember


def build(problem: MachineReassignment) -> pyo.ConcreteModel:
    """Return the model of an instance; its Expressions are named as the objectives."""
    a = problem.arrays
    model = pyo.ConcreteModel(name=problem.name)
    model.PROCESSES, model.MACHINES = pyo.RangeSet(0, len(a.home) - 1), _range(len(a.location))
    model.RESOURCES, model.SERVICES = _range(len(a.load_cost)), _range(len(a.spread))
    model.on = pyo.Var(model.PROCESSES, model.MACHINES, domain=pyo.Binary, doc="p runs on m")
    model.somewhere = pyo.Constraint(
        model.PROCESSES, rule=lambda m, p: sum(m.on[p, k] for k in m.MACHINES) == 1
    )
    _add_capacity(model, a)
    members = [np.flatnonzero(a.service == s).tolist() for s in model.SERVICES]
    model.conflicts = pyo.Constraint(
        [s for s in model.SERVICES if len(members[s]) > 1],
        model.MACHINES,
        rule=lambda m, s, k: sum(m.on[p, k] for p in members[s]) <= 1,
    )
    _add_places(model, a, members)
    moves = _add_moves(model, a, members)
    declare(
        model,
        {"load_cost": _load(model, a), "balance_cost": _balance(model, a), "move_cost": moves},
    )
    return remember(model, problem, extract)


def _range(count: int) -> pyo.RangeSet:
    return pyo.RangeSet(0, count - 1)


def _add_capacity(model: pyo.ConcreteModel, a: Arrays) -> None:
    """Add what is used of every machine, and rows that keep it within capacity."""
    need, homes = a.requirement.tolist(), a.home.tolist()

    def held(m: Any, k: int, r: int) -> Any:
        staying = sum(need[p][r] for p, home in enumerate(homes) if home == k)
        moving = [p for p, home in enumerate(homes) if home != k and need[p][r]]
        arriving = sum(need[p][r] * m.on[p, k] for p in moving)
        if a.transient[r]:
            if not moving:
                return pyo.Constraint.Feasible
            return arriving + staying <= int(a.capacity[k, r])
        return m.used[k, r] <= int(a.capacity[k, r])

    model.used = pyo.Expression(
        model.MACHINES,
        model.RESOURCES,
        rule=lambda m, k, r: sum(need[p][r] * m.on[p, k] for p in m.PROCESSES if need[p][r]),
    )
    model.capacity = pyo.Constraint(model.MACHINES, model.RESOURCES, rule=_skipping(held))


def _skipping(rule: Any) -> Any:
    """Return a rule whose rows without variables are left out: they hold at the start."""

    def row(m: Any, *index: int) -> Any:
        result = rule(m, *index)
        return pyo.Constraint.Skip if isinstance(result, bool) else result

    return row


def _add_places(model: pyo.ConcreteModel, a: Arrays, members: list[list[int]]) -> None:
    """Add spread over locations, and dependencies within neighbourhoods."""
    inside = _inside(a.location)
    near = _inside(a.neighbourhood)
    spread = [s for s in model.SERVICES if a.spread[s] > 1]
    model.in_location = pyo.Var(spread, list(inside), domain=pyo.Binary)
    model.location_used = pyo.Constraint(
        spread,
        list(inside),
        rule=lambda m, s, place: (
            m.in_location[s, place] <= sum(m.on[p, k] for p in members[s] for k in inside[place])
        ),
    )
    model.spread = pyo.Constraint(
        spread,
        rule=lambda m, s: sum(m.in_location[s, place] for place in inside) >= int(a.spread[s]),
    )
    needs = [
        (int(p), int(t), n)
        for s in model.SERVICES
        for t in a.needs[a.needs_at[s] : a.needs_at[s + 1]]
        for p in members[s]
        for n in near
    ]
    model.dependencies = pyo.Constraint(
        needs,
        rule=lambda m, p, t, n: (
            sum(m.on[p, k] for k in near[n]) <= sum(m.on[q, k] for q in members[t] for k in near[n])
        ),
    )


def _inside(places: np.ndarray) -> dict[int, list[int]]:
    """Return the machines in every place."""
    return {n: np.flatnonzero(places == n).tolist() for n in np.unique(places).tolist()}


def _add_moves(model: pyo.ConcreteModel, a: Arrays, members: list[list[int]]) -> Any:
    """Return the cost of moves; it has the largest number of moves of a service."""
    homes = a.home.tolist()
    model.most = pyo.Var(bounds=(0, max(map(len, members))), domain=pyo.Integers)
    model.most_moved = pyo.Constraint(
        [s for s in model.SERVICES if members[s]],
        rule=lambda m, s: m.most >= sum(1 - m.on[p, homes[p]] for p in members[s]),
    )
    return int(a.service_weight[0]) * model.most + sum(
        int(a.move_cost[p] + a.between[homes[p], k]) * model.on[p, k]
        for p in model.PROCESSES
        for k in model.MACHINES
        if k != homes[p]
    )


def _load(model: pyo.ConcreteModel, a: Arrays) -> Any:
    most = a.capacity.max(axis=0)
    model.over = pyo.Var(
        model.MACHINES,
        model.RESOURCES,
        bounds=lambda m, k, r: (0, int(most[r])),
        domain=pyo.Integers,
    )
    model.above_safety = pyo.Constraint(
        model.MACHINES,
        model.RESOURCES,
        rule=lambda m, k, r: m.over[k, r] >= m.used[k, r] - int(a.safety[k, r]),
    )
    return sum(
        int(a.load_cost[r]) * model.over[k, r] for k in model.MACHINES for r in model.RESOURCES
    )


def _balance(model: pyo.ConcreteModel, a: Arrays) -> Any:
    rows = a.balance.tolist()
    model.BALANCES = _range(len(rows)) if rows else pyo.Set(initialize=[])
    model.lack = pyo.Var(
        model.BALANCES,
        model.MACHINES,
        bounds=lambda m, b, k: (0, rows[b][2] * int(a.capacity[k, rows[b][0]])),
        domain=pyo.Integers,
    )

    def balanced(m: Any, b: int, k: int) -> Any:
        one, other, target, _ = rows[b]
        free = int(a.capacity[k, one]) - m.used[k, one]
        return m.lack[b, k] >= target * free - (int(a.capacity[k, other]) - m.used[k, other])

    model.balanced = pyo.Constraint(model.BALANCES, model.MACHINES, rule=balanced)
    return sum(rows[b][3] * model.lack[b, k] for b in model.BALANCES for k in model.MACHINES)


def extract(model: pyo.ConcreteModel) -> Plan:
    """Return the plan of a solution."""
    machines = [
        max(model.MACHINES, key=lambda k: pyo.value(model.on[p, k])) for p in model.PROCESSES
    ]
    return {"machines": machines}


def size(problem: MachineReassignment) -> int:
    """Return about how many coefficients the model has."""
    a = problem.arrays
    each = 4 + 3 * len(a.load_cost) + 2 * len(a.needs) / max(1, len(a.spread))
    return int(len(a.home) * len(a.location) * each)
