"""Rescheduling as a mixed-integer program.

It is exact although the latency is bilinear in the numbers of replicas. Equation numbers are those
of X. Bai et al., "REACH". ``models/rescheduling/README.md`` has the maths and says which component
is which equation. Deployments know no order of moves: `cuts` charge those that cannot be reached
in as many moves as the model counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyomo.environ as pyo

from placeopt.core.fronts.values import Plan
from placeopt.core.problem import Problem, of_kind
from placeopt.exact.compiled_model import Cut
from placeopt.exact.goals import declare, remember
from placeopt.rescheduling.encoder import Moves, shortest
from placeopt.rescheduling.problem import Rescheduling


def build(problem: Problem) -> pyo.ConcreteModel:
    """Return the model of an instance.

    Returns
    -------
    pyomo.environ.ConcreteModel
        ``latency_ms`` and ``moves`` are its Expressions; ``epsilon[name]`` bounds one of them.
    """
    problem = of_kind(Rescheduling, problem)
    t = problem.arrays
    model = pyo.ConcreteModel(name=problem.name)
    model.problem, model.order_found = problem, None
    model.SERVICES = pyo.Set(initialize=range(len(t.replicas)), doc="i in beta")
    model.NODES = pyo.Set(initialize=range(len(t.user)), doc="u in tau")
    model.levels = [range(1, count + 1) for count in problem.graph.replicas]  # k, by service
    _add_counts(model, problem)
    _add_moves(model, problem)
    _add_pairs(model, problem)
    _add_latency(model, problem)
    g = int(t.order[-1])
    total = sum(float(t.user[u]) * model.count[g, u] for u in model.NODES)
    user = total / problem.graph.replicas[g]  # (8)
    moves = sum(model.arrives.values()) + model.hops
    declare(model, {"latency_ms": user + model.processing[g], "moves": moves})
    return remember(model, problem, extract, cuts)


def size(problem: Rescheduling) -> int:
    """Return about how many coefficients the model has."""
    nodes, replicas = len(problem.nodes), problem.graph.replicas
    pairs = sum(replicas[i] * (5 * nodes**2 + replicas[j] * nodes) for i, j in _pairs(problem))
    return pairs + 6 * nodes * sum(replicas)


def _pairs(problem: Rescheduling) -> list[tuple[int, int]]:
    """Return who calls whom, each pair once."""
    graph = problem.graph
    return sorted({(i, j) for i in graph.order for group in graph.groups[i] for j in group})


def _add_counts(model: pyo.ConcreteModel, problem: Rescheduling) -> None:
    """Add replicas per service and node in unary, within capacity (1)."""
    levels = [(i, u, k) for i in model.SERVICES for u in model.NODES for k in model.levels[i]]
    model.LEVELS = pyo.Set(dimen=3, initialize=levels, doc="(i, u, k), k = 1 .. replicas of i")
    model.hosts = pyo.Var(
        model.LEVELS, domain=pyo.Binary, doc="b: at least k replicas of i run on u"
    )
    model.count = pyo.Expression(
        model.SERVICES,
        model.NODES,
        rule=lambda m, i, u: sum(m.hosts[i, u, k] for k in m.levels[i]),
    )
    model.one_by_one = pyo.Constraint(
        [x for x in levels if x[2] > 1],
        rule=lambda m, i, u, k: m.hosts[i, u, k] <= m.hosts[i, u, k - 1],
        doc="unary",
    )
    model.all_run = pyo.Constraint(
        model.SERVICES,
        rule=lambda m, i: sum(m.count[i, u] for u in m.NODES) == problem.graph.replicas[i],
    )
    model.capacity = pyo.Constraint(
        model.NODES, (0, 1), rule=lambda m, u, r: _fits(m, problem, u, r), doc="(1)"
    )


def _fits(model: pyo.ConcreteModel, problem: Rescheduling, u: int, r: int) -> Any:
    t = problem.arrays
    if int((t.demand[:, r] * t.replicas).sum()) <= int(t.capacity[u, r]):
        return pyo.Constraint.Skip
    return sum(int(t.demand[i, r]) * model.count[i, u] for i in model.SERVICES) <= int(
        t.capacity[u, r]
    )


def _add_moves(model: pyo.ConcreteModel, problem: Rescheduling) -> None:
    """Add moves: replicas that arrive, and the hops that an order of the moves needs besides."""
    home = problem.arrays.home
    model.arrives = pyo.Var(
        model.SERVICES,
        model.NODES,
        domain=pyo.NonNegativeReals,
        doc="replicas of i more than now on u",
    )
    model.hops = pyo.Var(domain=pyo.NonNegativeReals, doc="moves beyond those, see cuts")
    model.arrivals = pyo.Constraint(
        model.SERVICES,
        model.NODES,
        rule=lambda m, i, u: m.arrives[i, u] >= m.count[i, u] - int(home[i, u]),
    )


def _add_pairs(model: pyo.ConcreteModel, problem: Rescheduling) -> None:
    """Add products of counts: where b is 1, z is the callee's count; where it is 0, z is 0."""
    pairs, replicas, nodes = _pairs(problem), problem.graph.replicas, list(model.NODES)
    cells = [(i, j, u, k) for i, j in pairs for u in nodes for k in model.levels[i]]
    both = [(*cell, v) for cell in cells for v in nodes]
    model.pairs = pyo.Var(
        both, domain=pyo.NonNegativeReals, doc="z: replicas of j on v, if at least k of i are on u"
    )
    model.pair_counts = pyo.Constraint(
        both,
        rule=lambda m, i, j, u, k, v: (
            m.pairs[i, j, u, k, v] >= m.count[j, v] - replicas[j] * (1 - m.hosts[i, u, k])
        ),
    )
    model.pair_sums = pyo.Constraint(
        cells,
        rule=lambda m, i, j, u, k: (
            sum(m.pairs[i, j, u, k, v] for v in nodes) == replicas[j] * m.hosts[i, u, k]
        ),
    )
    model.pair_shares = pyo.Constraint(
        [(i, j, v) for i, j in pairs for v in nodes],
        rule=lambda m, i, j, v: (
            sum(m.pairs[i, j, u, k, v] for u in nodes for k in m.levels[i])
            == replicas[i] * m.count[j, v]
        ),
        doc="implied; sharpens the relaxation",
    )


def _add_latency(model: pyo.ConcreteModel, problem: Rescheduling) -> None:
    """Add processing times: equations (2) to (7), a constraint for every group."""
    t, graph = problem.arrays, problem.graph
    replicas = graph.replicas
    model.processing = pyo.Var(list(graph.order), domain=pyo.NonNegativeReals, doc="T_S, ms")

    def own(i: int) -> Any:
        total = sum(float(t.execution[i, u]) * model.count[i, u] for u in model.NODES)
        return total / replicas[i]

    def delay(i: int, j: int) -> Any:
        total = sum(
            float(t.delay[u, v]) * model.pairs[i, j, u, k, v]
            for u in model.NODES
            for k in model.levels[i]
            for v in model.NODES
            if t.delay[u, v] > 0
        )
        return total / (replicas[i] * replicas[j])

    def rule(m: pyo.ConcreteModel, i: int, g: int) -> Any:
        group = graph.groups[i][g] if graph.groups[i] else []
        return m.processing[i] >= own(i) + sum(delay(i, j) + m.processing[j] for j in group)

    groups = [(i, g) for i in graph.order for g in range(max(1, len(graph.groups[i])))]
    model.takes = pyo.Constraint(groups, rule=rule, doc="(2)-(7)")


# -- plans -----------------------------------------------------------------------------------------


def extract(model: pyo.ConcreteModel) -> Plan:
    """Return the shortest plan to the deployment of a solved model.

    Where no order of moves is found, they are in any order.
    """
    problem: Rescheduling = model.problem
    target = np.zeros_like(problem.arrays.home)
    for i, u, k in model.LEVELS:
        target[i, u] += round(model.hosts[i, u, k].value or 0.0)
    moves, proven = shortest(problem.arrays, target)
    direct = _unordered(problem.arrays.home, target)
    model.order_found = (len(direct), None if moves is None else len(moves), proven)
    return problem.plan(direct if moves is None else moves)


def _unordered(home: np.ndarray, target: np.ndarray) -> Moves:
    """Return the moves between two deployments (S, N), whether they have room or not."""
    moves: Moves = []
    for i, change in enumerate(target - home):
        sources = np.repeat(np.arange(len(change)), np.maximum(-change, 0)).tolist()
        targets = np.repeat(np.arange(len(change)), np.maximum(change, 0)).tolist()
        moves += [(i, u, v) for u, v in zip(sources, targets, strict=True)]
    return moves


def cuts(model: pyo.ConcreteModel, problem: Rescheduling, plan: Plan) -> Sequence[Cut]:
    """Return the cut that charges the present deployment for its hops.

    Where no order of moves leads there, the cut excludes it.
    """
    direct, needed, proven = model.order_found
    if not proven or (needed is not None and needed - direct <= (model.hops.value or 0.0) + 0.5):
        return ()
    extra = 1 if needed is None else needed - direct
    terms = pyo.ComponentMap()  # extra * (deployments' distance) + hops >= extra
    ones = 0
    for variable in model.hosts.values():
        chosen = round(variable.value or 0.0)
        ones += chosen
        terms[variable] = float(extra if chosen else -extra)
    if needed is not None:
        terms[model.hops] = -1.0
    return (Cut(terms, float(extra * ones - extra)),)
