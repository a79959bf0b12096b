"""The edge-cloud problem as a mixed-integer program.

Equations are those of P. Soumplis et al., SN Computer
Science, 2024. ``models/edge_cloud/README.md`` has the mathematics, the equation of each component,
and where the model departs from the paper and why.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from functools import partial
from typing import Any

import numpy as np
import pyomo.environ as pyo
from pyomo.core.expr import LinearExpression

from placeopt.core.errors import InfeasibleInstanceError
from placeopt.core.fronts.values import Plan
from placeopt.core.problem import Problem, of_kind
from placeopt.edge_cloud.arrays import EdgeCloudArrays, limited_flows, possible_nodes
from placeopt.edge_cloud.problem import EdgeCloud
from placeopt.exact.goals import declare, remember


def build(problem: Problem) -> pyo.ConcreteModel:
    """Return the model of an instance.

    Returns
    -------
    pyomo.environ.ConcreteModel
        ``cost`` and ``latency_ms`` are its Expressions; ``epsilon[name]`` bounds one of them.
        ``weighted_sum`` is equation (1) with the mutable ``weight``, an Objective that is inactive
        at first.

    Raises
    ------
    InfeasibleInstanceError
        No plan can exist; says why.
    """
    problem = of_kind(EdgeCloud, problem)
    if reasons := problem.infeasibility():
        raise InfeasibleInstanceError(reasons)
    model = pyo.ConcreteModel(name=problem.name)
    model.problem, model.arrays = problem, problem.arrays
    _add_placement(model)
    _add_flows(model)
    _add_latency(model)
    del model.row_of
    declare(model, {"cost": _cost(model), "latency_ms": _total(model.farthest.values())})
    model.weight = pyo.Param(
        mutable=True, initialize=0.5, within=pyo.PercentFraction, doc="w of equation (1)"
    )
    model.weighted_sum = pyo.Objective(
        expr=model.weight * model.cost + (1 - model.weight) * model.latency_ms, doc="(1)"
    )
    model.weighted_sum.deactivate()
    return remember(model, problem, extract, assign=assign)


def size(problem: EdgeCloud) -> int:
    """Return about how many coefficients the model has."""
    arrays = problem.arrays
    nodes, services, pairs = len(arrays.capacity), len(arrays.demand), len(arrays.flow_other) // 2
    return services * nodes * (4 + nodes // 2) + pairs * nodes**2


def minimise_weighted(model: pyo.ConcreteModel, weight: float) -> None:
    """Make equation (1) with this weight of the cost the active objective."""
    model.minimise.deactivate()
    model.weight = weight
    model.weighted_sum.activate()


def _add_placement(model: pyo.ConcreteModel) -> None:
    arrays: EdgeCloudArrays = model.arrays
    model.nodes_of = nodes_of = [np.flatnonzero(row).tolist() for row in possible_nodes(arrays)]
    model.NODES = pyo.Set(initialize=range(len(arrays.capacity)), doc="v in V")
    model.APPLICATIONS = pyo.Set(initialize=range(len(arrays.source)), doc="a in A")
    model.MICROSERVICES = pyo.Set(
        initialize=range(len(arrays.demand)), doc="i, counted through all applications"
    )
    fitting = pyo.Set(
        dimen=2,
        initialize=[(i, v) for i, nodes in enumerate(nodes_of) for v in nodes],
        doc="(i, v): fits alone, reachable",
    )
    model.PLACEMENTS = fitting
    model.place = pyo.Var(
        model.PLACEMENTS, domain=pyo.Binary, doc="x: the microservice runs on the node"
    )
    model.row_of = [{v: model.place[i, v] for v in nodes} for i, nodes in enumerate(nodes_of)]
    model.assign_once = pyo.Constraint(
        model.MICROSERVICES, rule=lambda m, i: _total(m.row_of[i].values()) == 1, doc="(2)"
    )
    hosted: list[list[int]] = [[] for _ in model.NODES]
    for i, v in model.PLACEMENTS:
        hosted[v].append(i)
    model.cpu_capacity = pyo.Constraint(
        model.NODES, rule=lambda m, v: _capacity(m, v, 0, hosted[v]), doc="(4)"
    )
    model.memory_capacity = pyo.Constraint(
        model.NODES, rule=lambda m, v: _capacity(m, v, 1, hosted[v]), doc="(5)"
    )


def _capacity(model: pyo.ConcreteModel, node: int, resource: int, hosted: list[int]) -> Any:
    """Return equation (4) or (5) of a node, in whole units."""
    arrays: EdgeCloudArrays = model.arrays
    demand, most = arrays.demand[hosted, resource].tolist(), int(arrays.capacity[node, resource])
    if sum(demand) <= most:
        return pyo.Constraint.Skip
    return _linear(demand, [model.place[i, node] for i in hosted]) <= most


def _add_flows(model: pyo.ConcreteModel) -> None:
    """Add equation (3) in sums: a microservice keeps the ends of its flows off all far nodes.

    The same constraints seen from the other end would be valid too. They raised no relaxation that
    was tried and double the model.
    """
    arrays: EdgeCloudArrays = model.arrays
    model.flow_delay = pyo.Constraint(pyo.Any, doc="(3)")
    for i, j, limit in limited_flows(arrays):
        others, here, there = np.array(model.nodes_of[j]), model.row_of[i], model.row_of[j]
        too_far = arrays.delay[:, others] > limit
        for v in np.flatnonzero(too_far.any(axis=1)).tolist():
            if v in here:
                model.flow_delay[i, j, v] = (
                    _total([here[v], *(there[w] for w in others[too_far[v]].tolist())]) <= 1
                )


def _members(model: pyo.ConcreteModel, application: int) -> range:
    return range(int(model.arrays.first[application]), int(model.arrays.first[application + 1]))


def _add_latency(model: pyo.ConcreteModel) -> None:
    """Add equation (7) by levels: a step for each distinct delay that some microservice reaches."""
    arrays: EdgeCloudArrays = model.arrays
    model.farthest = pyo.Var(
        model.APPLICATIONS,
        domain=pyo.NonNegativeReals,
        doc="theta: delay from the source to the farthest node, ms",
    )
    nodes_of = {
        a: sorted({v for i in _members(model, a) for v in model.nodes_of[i]})
        for a in model.APPLICATIONS
    }
    levels = {a: np.unique(arrays.delay[arrays.source[a], nodes]) for a, nodes in nodes_of.items()}
    model.levels = levels
    steps = [(a, k) for a, delays in levels.items() for k in range(1, len(delays))]
    model.STEPS = pyo.Set(
        dimen=2, initialize=steps, doc="(a, k): the k-th distinct delay from the source of a"
    )
    model.reaches = pyo.Var(
        model.STEPS, bounds=(0, 1), doc="tau: some microservice is as far as the k-th delay"
    )
    model.latency_covers = pyo.Constraint(pyo.Any, doc="(7)")
    for a, delays in levels.items():
        for i in _members(model, a):
            distance = arrays.delay[arrays.source[a]]
            nodes = sorted(model.nodes_of[i], key=distance.__getitem__, reverse=True)
            rank = np.searchsorted(delays, distance[nodes])
            farthest_first = [model.row_of[i][v] for v in nodes]
            for k in range(1, int(rank.max()) + 1):
                beyond = farthest_first[: int((rank >= k).sum())]
                model.latency_covers[a, i, k] = _total(beyond) <= model.reaches[a, k]
    model.latency_climbs = pyo.Constraint(
        model.APPLICATIONS, rule=lambda m, a: _climb(m, a, levels[a].tolist()), doc="(7)"
    )


def _climb(model: pyo.ConcreteModel, application: int, delays: list[float]) -> Any:
    steps = [model.reaches[application, k] for k in range(1, len(delays))]
    heights = [high - low for low, high in itertools.pairwise(delays)]
    return (
        _linear([1.0, *(-h for h in heights)], [model.farthest[application], *steps]) == delays[0]
    )


def _cost(model: pyo.ConcreteModel) -> Any:
    """Return equation (6), summed over the applications."""
    arrays: EdgeCloudArrays = model.arrays
    pairs = np.array(list(model.PLACEMENTS))
    price = arrays.operating[pairs[:, 1]] + arrays.network[pairs[:, 1]] * arrays.data[pairs[:, 0]]
    return _linear(price.tolist(), list(model.place.values()))


def _linear(coefficients: list[float], variables: list[Any]) -> Any:
    """Return a linear expression; this is ten times as fast as adding terms."""
    return LinearExpression(constant=0, linear_coefs=coefficients, linear_vars=variables)


def _total(variables: Iterable[Any]) -> Any:
    """Return a sum of variables."""
    return LinearExpression(list(variables))


def extract(model: pyo.ConcreteModel) -> Plan:
    """Return the plan of a solved model."""

    def share(i: int, node: int) -> float:
        return model.place[i, node].value or 0.0

    hosts = [max(nodes, key=partial(share, i)) for i, nodes in enumerate(model.nodes_of)]
    return model.problem.plan(np.array(hosts))


def assign(model: pyo.ConcreteModel, plan: Plan) -> bool:
    """Give the variables the values of a feasible plan.

    Returns
    -------
    bool
        False where the plan uses a placement that the model rules out; the values then stand for
        no plan.
    """
    arrays: EdgeCloudArrays = model.arrays
    hosts = model.problem.hosts(plan).tolist()
    for variable in model.component_data_objects(pyo.Var):
        variable.set_value(0, skip_validation=True)
    if any(placement not in model.place for placement in enumerate(hosts)):
        return False
    for i, v in enumerate(hosts):
        model.place[i, v].set_value(1)
    for a in model.APPLICATIONS:
        model.farthest[a].set_value(
            max(float(arrays.delay[arrays.source[a], hosts[i]]) for i in _members(model, a))
        )
    for (a, k), reached in model.reaches.items():
        reached.set_value(int(model.levels[a][k] <= model.farthest[a].value))
    return True
