"""Plans for one weight of the cost: built under prices, then improved by the search."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from placeopt.core.budget import Budget
from placeopt.core.kernels.compile import kernel
from placeopt.edge_cloud.arrays import ORDERS, EdgeCloudArrays, Placement, application_order
from placeopt.edge_cloud.search import placement as neighbourhoods
from placeopt.edge_cloud.search import prices as columns
from placeopt.edge_cloud.search.placement import construct, plan_value, relax
from placeopt.edge_cloud.search.prices import (
    KEPT,
    Columns,
    Prices,
    Relaxation,
    climb,
    new_ascent,
    no_homes,
    put_all,
)

# -- plans from columns ----------------------------------------------------------------------------

#: Before applications are fixed, those that wait are placed anew, and steps of the prices choose
#: among their columns; this is done so often, each time with more steps: while few columns are
#: known, many steps only lead prices astray.
STEPS = (13, 32, 80, 200)
#: The first of these steps, in units of `Relaxation.typical_difference`.
_LENGTH = 0.01
#: Share of the applications that is fixed at a time, at least, and what counts as decided.
_FIXED, _DECIDED = 0.15, 0.999


@kernel
def fix(instance, placement, known, order, decided, wanted, fixed):
    """Place applications where they still fit, in place; mark them in `fixed`, (applications,).

    `order` are indices into all columns by decreasing share. Those of `decided` or more are tried,
    and others until the number `wanted` is fixed.
    """
    count = 0
    for index in order:
        application, k = index // KEPT, index % KEPT
        share = known.share[application, k]
        if share <= 0 or (share < decided and count >= wanted):
            return
        if not fixed[application] and put_all(
            instance, placement, application, known.nodes[application, k]
        ):
            fixed[application] = True
            count += 1


def dive(relaxation: Relaxation, prices: Prices, budget: Budget) -> np.ndarray:
    """Return the hosts of a plan, -1 throughout an application without a place.

    Every time the waiting applications are placed anew counts as an evaluation. Nothing is random.
    """
    instance, known = relaxation.instance, columns.no_columns(relaxation.instance)
    placement = Placement(np.full(len(instance.demand), -1), instance.capacity.copy())
    waiting, price = np.arange(len(instance.source)), prices.price
    steps: Sequence[int] = 2 * STEPS
    while len(waiting) and not budget.exhausted:
        left = instance._replace(capacity=placement.room.copy())
        columns.discard(instance, placement, waiting, known)
        price = _mix(relaxation, left, replace(prices, price=price), waiting, known, steps, budget)
        steps = STEPS
        fixed = np.zeros(len(instance.source), dtype=np.bool_)
        order = np.argsort(-known.share, axis=None, kind="stable")
        whole = known.share.sum(axis=1).max()  # below 1, as shares begin at 0
        wanted = int(_FIXED * len(waiting)) + 1
        fix(instance, placement, known, order, _DECIDED * whole, wanted, fixed)
        if not fixed.any():
            break
        waiting = waiting[~fixed[waiting]]
    return placement.hosts


def _mix(
    relaxation: Relaxation,
    left: EdgeCloudArrays,
    prices: Prices,
    waiting: np.ndarray,
    known: Columns,
    steps: Sequence[int],
    budget: Budget,
) -> np.ndarray:
    """Let steps of the prices choose among the columns of the waiting applications, in place.

    `left` has the room that is left. Returns the prices of the last step.
    """
    weight, price, unit = prices.weight, prices.price, relaxation.unit
    length = _LENGTH * relaxation.typical_difference(weight)
    hosts, values = np.full(len(left.demand), -1), np.zeros(len(left.source))
    charge = np.zeros((len(left.source), 1))
    for count in steps:
        columns.place(left, price, charge, waiting, known, hosts)
        relax(
            left,
            weight,
            price,
            charge,
            relaxation.search,
            hosts,
            waiting,
            values,
            _SEARCH_LIMIT,
        )
        columns.remember(left, weight, hosts, waiting, known)
        budget.spend(1)
        if budget.out_of_time:
            break
        known.share[:] = 0
        ascents = new_ascent(price * unit), new_ascent(charge)
        climb(left, unit, waiting, known, no_homes(), *ascents, count, length)
        price = ascents[0].price / unit
    return price


# -- annealing -------------------------------------------------------------------------------------

#: Nodes of the search for the best placement of one application.
_SEARCH_LIMIT = 300
#: Annealing begins at the temperature `_HOT`, in parts of the mean value of an application, and
#: ends at a share `_COLD` of that. A search of fewer than `_MANY_STEPS` steps for each application
#: has no time to mend what heat breaks: it begins colder, at `_COOL` or above. The values were
#: chosen with 1,000 and 10,000 applications (models/edge_cloud/README.md).
_HOT, _COLD, _MANY_STEPS, _COOL = 0.06, 1 / 15, 300, 0.002
#: A dive takes the time of 40 to 90 steps of the prices. It begins where so many are left,
#: and so many evaluations, which are enough for a first part of it.
_DIVE_STEPS, _DIVE_EVALUATIONS = 80, 50
#: Steps between two looks at the budget.
_CHUNK = 200


class PlanBuilder:
    """Builds and improves plans of one instance; a plan is the node of every microservice.

    All nodes of an application without a place are -1.

    Parameters
    ----------
    max_removed : int
        Applications that are taken out at once, at most.
    strength : float
        Largest share of the prices that rebuilding pays.
    """

    def __init__(
        self,
        relaxation: Relaxation,
        rng: np.random.Generator,
        max_removed: int = 6,
        strength: float = 0.8,
    ):
        self._relaxation, self._rng = relaxation, rng
        self._instance = instance = relaxation.instance
        self._max_removed, self._strength = max_removed, float(strength)
        self._orders = [application_order(instance, order) for order in ORDERS]
        farthest = instance.delay[np.isfinite(instance.delay)].max(initial=0.0)
        dearest = instance.operating.max() + instance.network.max() * instance.data.max()
        self._unplaced = float(10 * (1 + farthest + dearest * np.diff(instance.first).max()))

    def value(self, weight: float, hosts: np.ndarray) -> float:
        """Return equation (1) of a plan.

        An application without a place counts more than any other could.
        """
        return float(plan_value(self._instance, weight, hosts, self._unplaced))

    def best(self, weight: float, plans: list[np.ndarray]) -> np.ndarray:
        """Return the plan of least value."""
        return min(plans, key=lambda hosts: self.value(weight, hosts))

    def build(self, prices: Prices, shares: Iterable[float] = (1.0, 0.8)) -> np.ndarray:
        """Return the best plan of those built in every order at these shares of the prices."""
        results = [
            construct(
                self._instance,
                prices.weight,
                share * prices.price,
                self._relaxation.search,
                order,
                _SEARCH_LIMIT,
            )
            for share in shares
            for order in self._orders
        ]
        return self.best(prices.weight, results)

    def dive(self, prices: Prices, budget: Budget) -> list[np.ndarray]:
        """Return the plan of a dive where enough is left, else none.

        See `placeopt.edge_cloud.search.lns`.
        """
        if budget.out_of_time or budget.evaluations_left < _DIVE_EVALUATIONS:
            return []
        began = budget.seconds
        self._relaxation.costs_alone(prices.weight, prices.price)
        step = budget.seconds - began
        if budget.seconds_left < _DIVE_STEPS * step:
            return []
        return [dive(self._relaxation, prices, budget)]

    def improve(self, prices: Prices, hosts: np.ndarray, budget: Budget) -> np.ndarray:
        """Return the best plan of a large neighbourhood search from a plan.

        The search uses up the budget; every step is an evaluation.
        """
        if budget.exhausted:
            return hosts
        task = neighbourhoods.lns_task(
            self._instance,
            self._rng,
            weight=prices.weight,
            price=prices.price,
            alone=self._relaxation.costs_alone(prices.weight, prices.price),
            unplaced=self._unplaced,
            max_removed=self._max_removed,
            strength=self._strength,
        )
        state = neighbourhoods.lns_state(task, hosts, self._rng)
        applications, left = len(self._instance.source), budget.share()
        scale = max(prices.bound / applications, 0.1 * state.totals[0] / applications, 1e-9)
        search, heat = self._relaxation.search, _COOL
        while not budget.exhausted:
            steps = max(1, budget.allow(_CHUNK))
            temperature = scale * heat * _COLD**left.progress
            neighbourhoods.improve(task, state, search, steps, temperature, _SEARCH_LIMIT)
            left.spend(steps)
            if left.evaluations == steps:  # the pace is known now
                heat = _heat(_steps_left(left) / applications)
        return state.best.copy()


def _steps_left(budget: Budget) -> float:
    """Return how many steps are left of a budget, at the pace so far."""
    pace = budget.evaluations / max(budget.seconds, 1e-9)
    by_time = np.inf if budget.seconds_limit is None else pace * budget.seconds_left
    return float(min(by_time, budget.evaluations_left))


def _heat(steps: float) -> float:
    """Return the first temperature of the annealing by the steps that an application has."""
    return max(_COOL, _HOT * min(1.0, steps / _MANY_STEPS) ** 2)
