"""The methods `bound` and `certify`: proven lower-bound sets for instances of any size."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Annotated

import numpy as np
from pydantic import Field

from placeopt.core.budget import Budget
from placeopt.core.errors import InfeasibleInstanceError
from placeopt.core.fronts.certificate import Bounds, graded
from placeopt.core.fronts.front import Front
from placeopt.core.task import Task
from placeopt.temporal.document import PRICINGS
from placeopt.temporal.exact.completion import Completion
from placeopt.temporal.exact.configuration_lp import ConfigurationLP
from placeopt.temporal.exact.grid import Grid
from placeopt.temporal.exact.numbers import Numbers, numbers
from placeopt.temporal.exact.patterns import build_patterns
from placeopt.temporal.exact.price_cuts import price_cuts
from placeopt.temporal.exact.relaxed_front import relaxed_front, states_fit
from placeopt.temporal.exact.sets import count_sets
from placeopt.temporal.exact.staircase import staircase
from placeopt.temporal.heuristics import plans_at, until_time
from placeopt.temporal.instance import Temporal

#: Sets of replicas up to which a certificate tries the relaxed front before the linear program.
_MAX_SETS = 3_000
#: Share of a certificate's seconds for the bounds; then points are compared with them.
_BOUND_SHARE = 0.75
#: Limits where no clock ends the work, lines of a certificate and of a bound alone, and the share
#: of the latter's seconds before plans are built.
_CELLS, _LINES, _MORE_LINES, _PLANS_AFTER = 120, 96, 200, 0.9
#: Requests up to which the configuration program is solved too; it grows with them.
_MAX_PROGRAM = 100

Lines = Annotated[
    int,
    Field(
        ge=2,
        le=1000,
        description="Lines of the bound set in latency and in interruption; it has about "
        "lines ** 2 vectors.",
    ),
]


def lower_bounds(
    numbers: Numbers,
    budget: Budget,
    cells: int | None = None,
    lines: int = _LINES,
) -> tuple[np.ndarray, np.ndarray, int]:
    """Return a lower-bound set in whole numbers, shape (k, 3).

    It comes from prices of demands and, for few requests, from the configuration program, which
    prices every request apart. The cuts, shape (c, 3), and the number of linear programs solved are
    returned too. There are none where cost is no objective. Without `cells` the program is solved
    at 120 limits, or for as long as there is time.
    """
    if cells is None:
        cells = _CELLS if budget.seconds_limit is None else sys.maxsize
    low = least_values(numbers)
    if all(lease.price == 0 for lease in numbers.leases):
        return low[None, :], np.empty((0, 3)), 0
    cuts, high, solves = price_cuts(numbers, budget)
    if len(numbers.replicas) <= _MAX_PROGRAM:
        program = ConfigurationLP(numbers)
        grid = Grid(program, low[[0, 2]], budget)
        grid.refine(cells)
        cuts = np.concatenate((cuts, np.array(program.cuts).reshape(-1, 3)))
        high = np.maximum(high, grid.high)
        solves += program.solves
    bounds = staircase(cuts, low[[0, 2]], np.maximum(high, low[[0, 2]]), lines)
    return np.maximum(bounds, low), cuts, solves


def least_values(numbers: Numbers) -> np.ndarray:
    """Return lower bounds on each objective alone, shape (3,).

    Latency and interruption are the sums of the least values of each request; cost is 0.
    """
    usable = numbers.problem.arrays.usable
    places = np.array([numbers.places.index(offer.location) for offer in numbers.problem.offers])
    latency = np.where(usable, numbers.latency[:, places], 2**60).min(axis=1).sum()
    frequency = np.full(usable.shape, 2**60)
    for lease in numbers.leases:
        frequency[:, lease.offer] = np.minimum(frequency[:, lease.offer], lease.frequency)
    interruption = (
        np.where(usable, frequency, 2**60).min(axis=1) * numbers.share * numbers.replicas
    ).sum()
    return np.array([latency, 0, interruption], dtype=np.int64)


def least_alone(problem: Temporal) -> np.ndarray:
    """Return lower bounds on latency, cost and interruption alone, shape (3,), of any numbers.

    Each request pays its nearest place and its safest price. What a replica takes of a machine for
    a slot costs at least the same share of its price, where that is least.
    """
    a, leases = problem.arrays, list[tuple[int, float, float]]()
    for k, offer in enumerate(problem.offers):
        for pricing in PRICINGS:
            if offer.price(pricing) is not None and offer.max_instances != 0:
                lost = a.frequencies[k] if pricing == "spot" else 0
                leases.append((k, a.slot_costs[k, pricing] / a.cost_scale, float(lost)))
    own = np.array([lease[0] for lease in leases])
    price, rates = np.array([lease[1:] for lease in leases]).T
    usable = a.usable[:, own]
    taken = (a.demands[:, None] / np.maximum(1, a.capacities[own])).max(axis=2)
    cost = np.where(usable, taken * price, np.inf).min(axis=1) * a.replicas * a.durations
    latency = np.where(a.usable, a.latencies, np.inf).min(axis=1)
    rate = np.where(usable, rates, np.inf).min(axis=1)
    rate /= a.interruption_scale // a.replica_shares
    return np.array([latency.mean(), cost.sum(), rate.mean()]) * (1 - 1e-9)


def bound(
    task: Task[Temporal],
    *,
    cells: Annotated[
        int | None,
        Field(
            ge=1,
            le=100_000,
            description="Limits on latency and interruption at which the configuration program "
            "is solved, chosen where the bound is loose; 120 by default, with a time limit as many "
            "as there is time for.",
        ),
    ] = None,
    lines: Lines = _MORE_LINES,
) -> Front:
    """Return a proven lower-bound set, and plans built greedily at the dual prices that prove it.

    Nothing is random, and ``task.start`` is not used.

    Raises
    ------
    UnsupportedError
        Not a temporal instance, or numbers too wide for exact sums.
    InfeasibleInstanceError
        A request that nothing can serve.
    """
    data = numbers(task.problem, task.objectives)
    budget = task.budget.share(_PLANS_AFTER)
    result, cuts, solves = lower_bounds(data, budget, cells, lines)
    bounds = data.values(result)
    prices = cuts[:, 1:] * (np.array([data.units[0], data.units[2]]) / data.units[1])
    plans = plans_at(
        data.problem, task.objectives, prices[: 2 if task.budget.out_of_time else None]
    )
    front = task.front(
        until_time(plans, task.budget),
        method="bound",
        bounds=bounds.tolist(),
        solver_calls=solves,
        completed=not budget.out_of_time,
        parameters={"cells": cells, "lines": lines},
        libraries=["highspy"],
    )
    return graded(front, "cost_usd")


def bounds(problem: Temporal, front: Front, budget: Budget) -> Iterator[Bounds]:
    """Yield the least value of each objective alone, then bounds of their trade-offs.

    Those of a small instance are the front of the relaxed problem; those of others come from
    programs (`lower_bounds`).

    Raises
    ------
    UnsupportedError
        Numbers too wide for exact sums.
    """
    if reasons := problem.infeasibility():
        raise InfeasibleInstanceError(reasons)
    yield Bounds(least_alone(problem)[None, problem.columns(front.objectives)])
    data = numbers(problem, front.objectives)
    if not data.limited and count_sets(data.replicas) <= _MAX_SETS:
        relaxed = _relaxed_values(data, front, budget)
        if relaxed is not None:
            yield Bounds(data.values(relaxed), facts={"bounds": "bin-plans"})
            return
    result, _, solves = lower_bounds(data, budget.share(_BOUND_SHARE))
    ended = not budget.out_of_time
    yield Bounds(data.values(result), solves, ended, (), ["highspy"], {"bounds": "bound"})


def _relaxed_values(data: Numbers, front: Front, budget: Budget) -> np.ndarray | None:
    """Return the front of the relaxed problem, None where it is out of reach."""
    patterns = build_patterns(data)
    if not states_fit(patterns):
        return None
    known = data.all_whole(point.plan for point in front.points)
    relaxed = relaxed_front(patterns, Completion(patterns), budget, known)
    return relaxed.values if relaxed.complete else None
