"""Lower bounds of rolling updates: what has to be paid for and started, whoever goes where."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from placeopt.core.fronts.dominance import minimal
from placeopt.core.fronts.values import Objective
from placeopt.rolling_update.arrays import UpdateArrays
from placeopt.rolling_update.problem import RollingUpdate

#: Nodes of branch and bound in which numbers of nodes are counted; a limit in seconds would not
#: give the same bound twice.
_MAX_BRANCHES = 500
#: Prices at which starts are bounded, at most.
_MAX_STEPS = 500


def lower_bound(problem: RollingUpdate) -> int:
    """Return a price, in units of ``1 / price_scale``, that no deployment at the new sizes beats.

    Nodes with a microservice that cannot leave are paid in any case. What does not fit into their
    room and into free nodes is covered at the least price per unit of capacity, each resource by
    itself. So are the places of a group that may not share nodes. The sum is rounded up to what
    prices can add up to. Where machines differ, whole nodes of each kind are counted, too.
    """
    a = problem.arrays
    forced = a.hosting(a.stuck)
    free = (forced | (a.price == 0)) & ~a.drain
    optional = ~forced & (a.price > 0) & ~a.drain
    unit = math.gcd(*a.price[optional].tolist())
    demand, capacity = _with_places(problem)
    demand[: len(a.resources)] += _least_spare(a)
    rest = demand - capacity[free].sum(axis=0)
    costs = [
        _cover(int(rest[r]), a.price[optional], capacity[optional, r], unit)
        for r in np.unique([*range(len(a.resources)), *np.flatnonzero(rest > 0)])
    ]
    return int(a.price[forced].sum()) + max(*costs, _counted(a, free, optional))


def _counted(a: UpdateArrays, free: np.ndarray, optional: np.ndarray) -> int:
    """Return the least price of whole nodes with room for all; 0 where nothing is known.

    What may only be on some nodes needs room there. Nodes of one price, capacity and set of what
    may run there are one kind, and each resource is counted by itself.

    Parameters
    ----------
    free, optional : bool array (N,)
        Nodes that cost nothing more, and those that are paid when they are used.
    """
    views = np.vstack((np.ones((1, len(a.price)), dtype=bool), a.rules.allowed))
    rows = np.column_stack((a.price, a.room, views.T))[optional]
    kinds, count = np.unique(rows, axis=0, return_counts=True)
    if len(kinds) < 2:
        return 0
    from scipy.optimize import Bounds, LinearConstraint, milp  # takes a third of a second

    size = len(a.resources)
    price, capacity, inside = kinds[:, 0], kinds[:, 1 : size + 1], kinds[:, size + 1 :]
    room = [capacity.T * inside[:, s] for s in range(len(views))]
    need = np.concatenate([_demand(a, view) - a.room[free & view].sum(axis=0) for view in views])
    need[:size] += _least_spare(a)
    answer = milp(
        price.astype(float),
        constraints=[LinearConstraint(np.vstack(room), need, np.inf)],
        integrality=np.ones(len(kinds)),
        bounds=Bounds(0, count),
        options={"node_limit": _MAX_BRANCHES, "mip_rel_gap": 0.0},
    )
    bound = answer.mip_dual_bound
    return 0 if bound is None or not np.isfinite(bound) else math.ceil(bound - 1e-6 * abs(bound))


def _least_spare(a: UpdateArrays) -> np.ndarray:
    """Return the room that nodes in use have at least beside what runs, (R,).

    Without any one of them there is room, so without the smallest.
    """
    nodes = a.room[~a.drain]
    least: np.ndarray = nodes.min(axis=0) if a.survival.room and len(nodes) else 0 * a.room[0]
    return least


def _demand(a: UpdateArrays, view: np.ndarray) -> np.ndarray:
    """Return what microservices need that can end on nodes of `view` (bool, N) only, (R,)."""
    within = [not (legal & ~view).any() for legal in a.rules.allowed]
    set_inside = np.array([*within, bool(view.all())])[a.rules.node_set]
    there: np.ndarray = (a.home == a.waiting) | view[a.home]
    own = np.where(a.stuck, view[a.home], set_inside & there)
    total: np.ndarray = a.new[own].sum(axis=0)
    return total


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
    demand, places = [a.new.sum(axis=0)], [a.room]
    for rule in rules:
        own = np.array([rule.group in known for known in groups]) & ~a.removed
        now = np.bincount(a.home[own], minlength=count)
        demand.append(np.array([own.sum()]))
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


def bound_vectors(
    problem: RollingUpdate,
    objectives: Sequence[Objective],
    lowest: int | None = None,
    unstopped: int | None = None,
) -> np.ndarray:
    """Return a lower-bound set: every plan is weakly dominated by one of its vectors.

    Each vector has a price, from `lowest` upwards, by default that of `lower_bound`, and the starts
    that a plan needs between this price and the next one. It has no stops, and the loss of what
    cannot move. Where plans that stop nothing cost `unstopped` at least, cheaper ones have a stop.

    Returns
    -------
    float array (k, objectives)
        Sorted; no vector dominates another. It is empty where no plan exists.
    """
    columns = problem.columns(objectives)
    if problem.infeasibility():
        return np.zeros((0, len(columns)))
    a = problem.arrays
    lowest = lower_bound(problem) if lowest is None else lowest
    unstopped = lowest if unstopped is None else max(lowest, unstopped)
    price, starts = _steps(a, unstopped)
    stops = 0 * starts
    if unstopped > lowest:
        more = _steps(a, lowest)
        price, starts = np.concatenate((price, more[0])), np.concatenate((starts, more[1]))
        stops = np.concatenate((stops, np.ones_like(more[1])))
    values = [price / a.price_scale, starts, stops]
    if a.survival.asked:
        lost = a.survival.lost(np.where(a.stuck, a.home, -1)[None])
        values.append(np.repeat(lost.astype(float), len(starts)))
    return minimal(np.column_stack(values)[:, columns])


def _steps(a: UpdateArrays, lowest: int) -> tuple[np.ndarray, np.ndarray]:
    """Return prices from `lowest` upwards, and the starts that a plan needs below the next, (k,).

    A plan that costs less than the running deployment empties paid nodes. What runs on an emptied
    node starts elsewhere. The fewest starts come from nodes with few starts for their price; part
    of the last node is enough, as this is a bound.
    """
    hosts = a.hosting(np.ones_like(a.movable))
    left = hosts & ~a.hosting(a.stuck) & (a.price > 0) & ~a.drain
    now = int(a.price[left | a.hosting(a.stuck)].sum())
    must = a.mandatory | (a.movable & a.drain[a.home])
    stays = np.bincount(a.home[a.movable & ~must], minlength=len(a.price))[left]
    order = np.argsort(stays / a.price[left], kind="stable")
    saved = np.concatenate(([0], np.cumsum(a.price[left][order])))
    starts = np.concatenate(([0], np.cumsum(stays[order])))
    unit = math.gcd(*a.price.tolist()) or 1  # all prices are multiples of it
    lowest = -(-lowest // unit) * unit
    step = unit * max(1, math.ceil((now - lowest) / (unit * _MAX_STEPS)))
    price = np.arange(lowest, max(lowest, now) + step, step)
    fewest = np.interp(now - (price + step - unit), saved, starts)
    return price, must.sum() + np.ceil(fewest - 1e-9)
