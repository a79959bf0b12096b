"""Lower bounds of rolling updates that need no solver."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from placeopt.core.front import Objective
from placeopt.rolling_update.instance import RollingUpdate


def lower_bound(problem: RollingUpdate) -> int:
    """Return a price, in units of ``1 / price_scale``, that no deployment at the new sizes beats.

    Nodes with a microservice that cannot leave are paid in any case. What does not fit into their
    room and into free nodes is covered at the least price per unit of capacity, each resource by
    itself. So are the places of a group that may not share nodes. The sum is rounded up to what
    prices can add up to.
    """
    a = problem.arrays
    forced = a.hosting(a.stuck)
    free = (forced | (a.price == 0)) & ~a.drain
    optional = ~forced & (a.price > 0) & ~a.drain
    unit = math.gcd(*a.price[optional].tolist())
    demand, capacity = _with_places(problem)
    rest = demand - capacity[free].sum(axis=0)
    costs = [
        _cover(int(rest[r]), a.price[optional], capacity[optional, r], unit)
        for r in np.unique([*range(len(a.resources)), *np.flatnonzero(rest > 0)])
    ]
    return int(a.price[forced].sum()) + max(costs)


def _with_places(problem: RollingUpdate) -> tuple[np.ndarray, np.ndarray]:
    """Return demand (R + P,) and capacity (N, R + P): resources, and places of P groups.

    Of a group that is kept apart by nodes, every node has so many places. What breaks the rule at
    the start may go on doing so: then a node has as many places as it has members now, where those
    are more.
    """
    a, count = problem.arrays, len(problem.arrays.price)
    rules = [
        rule
        for rule in problem.rules
        if rule.kind == "apart" and rule.per == "node" and not rule.soft
        if rule.toward in (None, rule.group)
    ]
    groups = [m.groups for application in problem.applications for m in application.microservices]
    demand, places = [a.new.sum(axis=0)], [a.capacity]
    for rule in rules:
        mine = np.array([rule.group in known for known in groups])
        now = np.bincount(a.home[mine], minlength=count)
        demand.append(np.array([mine.sum()]))
        places.append(np.maximum(now, rule.max_copies)[:, None])
    return np.concatenate(demand), np.hstack(places)


def _cover(rest: int, prices: np.ndarray, capacities: np.ndarray, unit: int) -> int:
    """Return the least price at which fractions of nodes cover `rest`.

    It is rounded up to a multiple of `unit`. Where all nodes do not suffice, it is their price.
    """
    total = 0
    for n in np.argsort(prices / np.maximum(capacities, 1e-9), kind="stable").tolist():
        if rest <= 0:
            break
        price, capacity = int(prices[n]), int(capacities[n])
        total += price if capacity < rest else -(-price * rest // capacity)
        rest -= capacity
    return total if rest > 0 or unit == 0 else -(-total // unit) * unit


def bound_vector(problem: RollingUpdate, objectives: Sequence[Objective]) -> list[list[float]]:
    """Return the one vector that bounds every plan; nothing where no plan exists.

    Its values are the price of `lower_bound`, a start for all that must start, and no stop.
    """
    if problem.infeasibility():
        return []
    a = problem.arrays
    starts = (a.mandatory | (a.movable & a.drain[a.home])).sum()
    values = (lower_bound(problem) / a.price_scale, float(starts), 0.0)
    return [[values[c] for c in problem.columns(objectives)]]
