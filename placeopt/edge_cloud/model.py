"""The edge-cloud problem as a mixed-integer program, as the paper prints it or in a compact form with the same integer solutions.

Equations are those of P. Soumplis et al., SN Computer Science, 2024. ``models/edge_cloud/README.md`` has the maths, says which
component is which equation, and where the model departs from the paper and why.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
import pyomo.environ as pyo
from pyomo.core.expr import LinearExpression

from placeopt.core.errors import InfeasibleInstanceError, UsageError, did_you_mean
from placeopt.edge_cloud.arrays import Arrays, fits
from placeopt.edge_cloud.instance import EdgeCloud
from placeopt.exact.objectives import declare

#: How equation (3) is written, and how equation (7) is.
FLOWS = ("compact", "printed")
LATENCIES = ("levels", "printed")


def build(
    problem: EdgeCloud, *, flows: str = "compact", latency: str = "levels"
) -> pyo.ConcreteModel:
    """Return the model of an instance.

    Parameters
    ----------
    flows : {"compact", "printed"}
        Equation (3): one row for each end of a flow and node, or one for every pair of nodes.
    latency : {"levels", "printed"}
        Equation (7): cumulative rows over the distinct delays, which are sharp, or one row for each placement.

    Returns
    -------
    pyomo.environ.ConcreteModel
        ``cost`` and ``latency_ms`` are its Expressions; ``epsilon[name]`` bounds one of them; ``weighted_sum`` is equation (1)
        with the mutable ``weight``, an Objective that is not active at first.

    Raises
    ------
    InfeasibleInstanceError
        A microservice fits no node, a flow no pair of nodes, or the demand is too large in all.
    """
    if reasons := problem.infeasibility():
        raise InfeasibleInstanceError(reasons)
    for name, value, legal in (("flows", flows, FLOWS), ("latency", latency, LATENCIES)):
        if value not in legal:
            raise UsageError(f"{name} is {value!r}; {did_you_mean(str(value), legal)}")
    model = pyo.ConcreteModel(name=problem.name)
    model.problem, model.table = problem, problem.arrays
    _add_placement(model)
    (_add_flows_compact if flows == "compact" else _add_flows_printed)(model)
    (_add_latency_levels if latency == "levels" else _add_latency_printed)(model)
    del model.row_of
    declare(model, {"cost": _cost(model), "latency_ms": _total(model.farthest.values())})
    model.weight = pyo.Param(
        mutable=True, initialize=0.5, within=pyo.PercentFraction, doc="w of equation (1)"
    )
    model.weighted_sum = pyo.Objective(
        expr=model.weight * model.cost + (1 - model.weight) * model.latency_ms, doc="(1)"
    )
    model.weighted_sum.deactivate()
    return model


def size(problem: EdgeCloud, *, flows: str = "compact", latency: str = "levels") -> int:
    """Return about how many coefficients the model has."""
    table = problem.arrays
    nodes, services, pairs = len(table.capacity), len(table.demand), len(table.flow_other) // 2
    per_flow = nodes**2 if flows == "compact" else 4 * nodes**2
    return services * nodes * (4 + (nodes // 2 if latency == "levels" else 2)) + pairs * per_flow


def minimise_weighted(model: pyo.ConcreteModel, weight: float) -> None:
    """Make equation (1) with this weight of the cost the active objective."""
    model.minimise.deactivate()
    model.weight = weight
    model.weighted_sum.activate()


# -- placement and capacity ------------------------------------------------------------------------------------------


def _add_placement(model: pyo.ConcreteModel) -> None:
    table: Arrays = model.table
    model.nodes_of = nodes_of = [np.flatnonzero(row).tolist() for row in fits(table)]
    model.NODES = pyo.Set(initialize=range(len(table.capacity)), doc="v in V")
    model.APPLICATIONS = pyo.Set(initialize=range(len(table.source)), doc="a in A")
    model.MICROSERVICES = pyo.Set(
        initialize=range(len(table.demand)), doc="i, counted through all applications"
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
    """What runs on a node fits into it: equations (4) and (5), in whole units."""
    table: Arrays = model.table
    demand, most = table.demand[hosted, resource].tolist(), int(table.capacity[node, resource])
    if sum(demand) <= most:
        return pyo.Constraint.Skip
    return _linear(demand, [model.place[i, node] for i in hosted]) <= most


# -- flows -----------------------------------------------------------------------------------------------------------


def _add_flows_compact(model: pyo.ConcreteModel) -> None:
    """A microservice on a node keeps the other end of its flow off all nodes too far away: equation (3) in sums.

    The same rows seen from the other end would be valid too; they raised no relaxation that was tried and double the model.
    """
    table: Arrays = model.table
    model.flow_delay = pyo.Constraint(pyo.Any, doc="(3)")
    for i, j, limit in _pairs(table):
        others, here, there = np.array(model.nodes_of[j]), model.row_of[i], model.row_of[j]
        too_far = table.delay[:, others] > limit
        for v in np.flatnonzero(too_far.any(axis=1)).tolist():
            if v in here:
                model.flow_delay[i, j, v] = (
                    _total([here[v], *(there[w] for w in others[too_far[v]].tolist())]) <= 1
                )


def _pairs(table: Arrays) -> Iterator[tuple[int, int, float]]:
    """Yield the flows that have a limit, each once."""
    end = np.repeat(np.arange(len(table.demand)), np.diff(table.flow_first))
    for i, j, limit in zip(
        end.tolist(), table.flow_other.tolist(), table.flow_limit.tolist(), strict=True
    ):
        if i < j:
            yield i, j, limit


def _add_flows_printed(model: pyo.ConcreteModel) -> None:
    """Equation (3) for every pair of nodes; a pair without a delay is kept apart by the same row with 1 for the delay, 0 as limit."""
    table: Arrays = model.table
    model.flow_delay = pyo.Constraint(pyo.Any, doc="(3)")
    for i, j, limit in (*_pairs(table), *((j, i, limit) for i, j, limit in _pairs(table))):
        for v in model.nodes_of[i]:
            for w in model.nodes_of[j]:
                delay = float(table.delay[v, w])
                delay, most = (delay, limit) if delay < math.inf else (1.0, 0.0)
                model.flow_delay[i, j, v, w] = (
                    _linear([delay, delay], [model.place[i, v], model.place[j, w]]) <= most + delay
                )


# -- latency ---------------------------------------------------------------------------------------------------------


def _add_farthest(model: pyo.ConcreteModel) -> None:
    model.farthest = pyo.Var(
        model.APPLICATIONS,
        domain=pyo.NonNegativeReals,
        doc="theta: delay from the source to the farthest node, ms",
    )


def _members(model: pyo.ConcreteModel, application: int) -> range:
    return range(int(model.table.first[application]), int(model.table.first[application + 1]))


def _add_latency_printed(model: pyo.ConcreteModel) -> None:
    """Equation (7): a row for each placement."""
    table: Arrays = model.table
    _add_farthest(model)
    model.latency_covers = pyo.Constraint(pyo.Any, doc="(7)")
    for a in model.APPLICATIONS:
        for i in _members(model, a):
            for v in model.nodes_of[i]:
                model.latency_covers[a, i, v] = (
                    model.farthest[a] >= float(table.delay[table.source[a], v]) * model.place[i, v]
                )


def _add_latency_levels(model: pyo.ConcreteModel) -> None:
    """Equation (7) by levels: the latency climbs a step for each distinct delay that some microservice reaches."""
    table: Arrays = model.table
    _add_farthest(model)
    nodes_of = {
        a: sorted({v for i in _members(model, a) for v in model.nodes_of[i]})
        for a in model.APPLICATIONS
    }
    levels = {a: np.unique(table.delay[table.source[a], nodes]) for a, nodes in nodes_of.items()}
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
            nodes = sorted(model.nodes_of[i], key=lambda v, a=a: -table.delay[table.source[a], v])  # type: ignore[misc]
            rank = np.searchsorted(delays, table.delay[table.source[a], nodes])
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


# -- objectives ------------------------------------------------------------------------------------------------------


def _cost(model: pyo.ConcreteModel) -> Any:
    """Operating cost, and network cost for the data taken in: equation (6), summed over the applications."""
    table: Arrays = model.table
    pairs = np.array(list(model.PLACEMENTS))
    price = table.operating[pairs[:, 1]] + table.network[pairs[:, 1]] * table.data[pairs[:, 0]]
    return _linear(price.tolist(), list(model.place.values()))


def _linear(coefficients: list[float], variables: list[Any]) -> Any:
    """Return a linear expression, an order of magnitude quicker than by adding terms."""
    return LinearExpression(constant=0, linear_coefs=coefficients, linear_vars=variables)


def _total(variables: Iterable[Any]) -> Any:
    """Return a plain sum; it holds nothing but the variables themselves."""
    return LinearExpression(list(variables))


# -- plans -----------------------------------------------------------------------------------------------------------


def extract(model: pyo.ConcreteModel) -> dict[str, Any]:
    """Return the plan that the values of a solved model stand for."""

    def share(i: int, node: int) -> float:
        return model.place[i, node].value or 0.0

    hosts = [max(nodes, key=partial(share, i)) for i, nodes in enumerate(model.nodes_of)]
    return model.problem.plan(np.array(hosts))


def assign(model: pyo.ConcreteModel, plan: Mapping[str, Any]) -> bool:
    """Give the variables the values of a feasible plan.

    Returns
    -------
    bool
        False where the plan uses a placement that the model rules out; the values then stand for no plan.
    """
    table: Arrays = model.table
    hosts = model.problem.hosts(plan).tolist()
    for variable in model.component_data_objects(pyo.Var):
        variable.set_value(0, skip_validation=True)
    if any(placement not in model.place for placement in enumerate(hosts)):
        return False
    for i, v in enumerate(hosts):
        model.place[i, v].set_value(1)
    for a in model.APPLICATIONS:
        model.farthest[a].set_value(
            max(float(table.delay[table.source[a], hosts[i]]) for i in _members(model, a))
        )
    if hasattr(model, "STEPS"):
        for a, k in model.STEPS:
            model.reaches[a, k].set_value(int(model.levels[a][k] <= model.farthest[a].value))
    return True
