"""A gap is closed, or nearly: patterns of small nodes are charged, then placements are listed.

What charges of patterns prove leaves most placements out: a better plan cannot have them. HiGHS
chooses among those that are left, within the most that the patterns of each node are charged. Where
they are too many, it chooses among the best of them, and the bound says what the others may bring.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from placeopt.core.budget import Budget
from placeopt.core.errors import SolverError
from placeopt.edge_cloud.arrays import node_loads
from placeopt.edge_cloud.search.lists import (
    Charging,
    Lists,
    climb,
    complete,
    forgone_everywhere,
    hosts_of,
    list_all,
    loads,
    new_charging,
    new_fill,
    new_listing,
    no_lists,
    program,
    with_plan,
)
from placeopt.edge_cloud.search.placement import Shapes
from placeopt.edge_cloud.search.prices import Prices, Relaxation

if TYPE_CHECKING:
    from placeopt.exact.solvers import Outcome

#: Charges of an instance, and loads of a node times applications, beyond which nothing is tried.
_MOST_CHARGES, _MOST_LAYERS = 500_000, 2_000_000
#: Placements of an application that are listed at once, at most.
_ROOM = 60_000
#: Placements among which charges ascend first, and the part of the gap that their costs span.
_FIRST_LISTED, _FIRST_PART = 15_000, 0.15
#: Steps among these, and among all placements; the first and last of each in typical differences.
_LIST_STEPS, _ALL_STEPS = (300, 0.02, 0.0005), (160, 0.008, 0.0005)
#: Parts of what patterns forgo, one of which is charged for shapes that were not listed.
_PARTS, _TRIAL_STEPS = (0.7, 0.8, 0.9), 15
#: Steps between two looks at the clock, at most, and seconds, about; all steps.
_CHUNK, _LOOK_SECONDS, _STEPS = 10, 0.05, 505
#: Placements that HiGHS chooses among, one search after another, and parts of what is left of the
#: time for each: what remains is for a search from its plan. So many may be a whole list, which has
#: all the time in the end; a better plan makes it shorter before.
_SEARCHES, _WHOLE = ((2500, 0.4), (5000, 0.4)), 12_000
#: Nodes of its tree where no clock ends it.
_TREE_NODES = 200
#: A list is made shorter by this factor of its span until it is short enough; the least is this
#: share of the value.
_SHORTER, _SHORTEST = 0.85, 1e-4
#: Values of HiGHS may be off by this share.
_TOLERANCE = 1e-7
#: A gap up to this share of the bound is closed; from this one on charges pay.
_CLOSED, _SMALL_GAP = 1e-6, 2e-3


@dataclass
class Closing:
    """The best plan for one weight and what is proven of it.

    Attributes
    ----------
    bound, value : float
        No plan has a smaller weighted sum than the bound; the best known has this value.
    hosts : ndarray of int64, shape (microservices,)
        Its nodes.
    placements : int
        Those that HiGHS chose among last.
    """

    bound: float
    value: float
    hosts: np.ndarray
    placements: int = 0


def close(
    relaxation: Relaxation,
    prices: Prices,
    hosts: np.ndarray,
    value: float,
    budget: Budget,
    charges: bool = True,
) -> Closing:
    """Return a better bound, and a better plan if one is found; nothing where it would not pay.

    Parameters
    ----------
    hosts : ndarray of int64, shape (microservices,)
        A feasible plan.
    value : float
        Its weighted sum.
    budget : Budget
        Every step of the charges is an evaluation.
    charges : bool
        Whether to charge patterns where prices leave too many placements.
    """
    state = Closing(prices.bound, value, hosts)
    work = None if (hosts < 0).any() else _new_work(relaxation, prices, state, budget)
    if work is not None and work.search_by_prices(last=not charges) and charges and work.charge():
        work.search()
    return state


def is_closed(value: float, bound: float) -> bool:
    """Return whether a plan of this value is optimal, as far as solvers can tell."""
    return bool(np.isfinite(bound) and value <= bound * (1 + _CLOSED))


def is_applicable(relaxation: Relaxation, budget: Budget) -> bool:
    """Return whether `close` does anything: an instance must be small, and a clock must run.

    Charges take a few seconds, which count as few evaluations.
    """
    instance = relaxation.instance
    if budget.seconds_limit is None or np.diagonal(instance.delay).any():  # listing takes it as 0
        return False
    if len(instance.source) * len(instance.capacity) > _MOST_CHARGES:  # each has a shape
        return False
    known = relaxation.shapes
    return known is not None and _is_small(known)


def _new_work(
    relaxation: Relaxation, prices: Prices, state: Closing, budget: Budget
) -> _Work | None:
    """Return the work on one weight, None where there is nothing to do or it would be too much."""
    known = relaxation.shapes
    if known is None or not _is_small(known) or not np.isfinite(prices.bound):
        return None
    if (
        is_closed(state.value, prices.bound)
        or budget.evaluations_left < _STEPS
        or budget.out_of_time
    ):
        return None
    return _Work(relaxation, known, prices, state, budget)


def _is_small(known: Shapes) -> bool:
    """Return whether the charges of an instance are few enough, and it has any."""
    if not len(known.small):
        return False
    few = len(known.demand) * len(known.capacity) <= _MOST_CHARGES
    return few and loads(known) * len(known.of) <= _MOST_LAYERS


class _Work:
    """Charges and programs of one weight; what is found goes into `state`."""

    def __init__(
        self,
        relaxation: Relaxation,
        known: Shapes,
        prices: Prices,
        state: Closing,
        budget: Budget,
    ):
        self._instance, self._known = relaxation.instance, known
        self._weight, self._state, self._budget = prices.weight, state, budget
        self._scale = relaxation.typical_difference(prices.weight)
        self._listing, self._fill = new_listing(self._instance, _ROOM), new_fill(known)
        price, at_home = prices.charged or (prices.price, None)
        self._price = price * known.unit  # of the shapes' units
        charge = self._price @ known.demand.T
        if at_home is not None:
            source, all_of_it = self._instance.source, (1 << np.diff(self._instance.first)) - 1
            charge[source, known.of[np.arange(len(source)), all_of_it]] += at_home[:, 0]
        self._charging = self._begin(charge, self._price)

    def _begin(self, charge: np.ndarray, price: np.ndarray) -> Charging:
        """Return charges that begin with these; prices are of a unit."""
        return new_charging(self._instance, self._known, charge, price)

    def _climb(self, charging: Charging, lists: Lists, lengths: np.ndarray, ahead: int = 0) -> bool:
        """Let charges ascend by steps of these lengths; return whether time sufficed for all.

        Stops early where it would not suffice for these and for the steps `ahead`.
        """
        arguments = self._instance, self._known, self._weight, lists, self._listing, self._fill
        done, chunk = 0, 1
        while done < len(lengths):
            began, part = self._budget.seconds, lengths[done : done + chunk]
            climb(*arguments, charging, part)
            self._budget.spend(len(part))
            each = (self._budget.seconds - began) / len(part)
            done += len(part)
            left = ahead + len(lengths) - done
            if self._budget.out_of_time or (chunk > 1 and each * left > self._budget.seconds_left):
                return False
            chunk = int(np.clip(_LOOK_SECONDS / max(each, 1e-9), 1, _CHUNK))
        return True

    def _lengths(self, steps: int, first: float, last: float) -> np.ndarray:
        """Return so many lengths of steps, from the first down to the last."""
        return self._scale * first * (last / first) ** (np.arange(steps) / steps)

    def search_by_prices(self, last: bool) -> bool:
        """Find the best plan where prices leave few placements; return whether it is still open.

        That takes a tenth of a second where the gap is some hundredths of a percent. Where nothing
        comes after, the `last`, HiGHS has all the time, and larger gaps are tried.
        """
        alone, state = self._begin(self._charging.charge.price, self._price), self._state
        if not last and state.value > state.bound * (1 + _SMALL_GAP):
            return True
        if not self._climb(alone, no_lists(self._listing), np.zeros(1)):
            return False
        self._charging, proven = alone, float(alone.best[0])
        if not np.isfinite(proven):
            return False
        state.bound = max(state.bound, proven)
        lists = self._spanned(alone.best_charge, state.value - proven, _WHOLE)
        if lists is not None:
            self._solve(lists, state.value, 1.0 if last else _SEARCHES[0][1])
        return not (self._budget.out_of_time or is_closed(state.value, state.bound))

    def charge(self) -> bool:
        """Raise the bound by charges of patterns; return whether there was time to."""
        nothing, known = no_lists(self._listing), self._known
        lists = self._first_lists()
        if lists is None:
            return False
        used = lists.nodes >= 0
        charge = np.zeros_like(self._charging.charge.price)
        pairs = lists.nodes[used], lists.shapes[used]
        charge[pairs] = self._charging.charge.price[pairs]
        first = self._begin(charge, self._price)
        if not self._climb(first, lists, self._lengths(*_LIST_STEPS), _STEPS - _LIST_STEPS[0]):
            return False
        complete(known, first.best_charge)
        forgone = forgone_everywhere(known, self._fill, first.best_charge)
        trials, lengths = [], self._lengths(_TRIAL_STEPS, *_ALL_STEPS[1:])
        for part in _PARTS:
            trials.append(self._extended(first, part * forgone))
            if not self._climb(trials[-1], nothing, lengths):
                break
        self._charging = best = max(trials, key=lambda trial: float(trial.best[0]))
        again = self._begin(best.best_charge, best.best_price / best.unit)
        if not self._budget.out_of_time:
            self._climb(again, nothing, self._lengths(*_ALL_STEPS))
        self._charging = max(best, again, key=lambda one: float(one.best[0]))
        self._state.bound = max(self._state.bound, float(self._charging.best[0]))
        return not self._budget.out_of_time

    def _first_lists(self) -> Lists | None:
        """Return the placements that cost least under prices."""
        alone = self._begin(self._charging.charge.price, self._price)
        if not self._climb(alone, no_lists(self._listing), np.zeros(1)):
            return None
        if not np.isfinite(alone.best[0]):
            return None
        span = _FIRST_PART * (self._state.value - self._state.bound)
        while self._may_shorten(span):
            limits = alone.best_alone + span
            lists = self._listed(alone.best_charge, limits, _FIRST_LISTED)
            if lists is not None:
                return lists
            span *= _SHORTER
        return None

    def _listed(self, charge: np.ndarray, limits: np.ndarray, most: int) -> Lists | None:
        """Return the placements within limits, (applications,); None if they are too many."""
        fixed = self._instance, self._known, self._weight, charge, self._listing
        return list_all(*fixed, limits, most, self._budget)

    def _extended(self, first: Charging, others: np.ndarray) -> Charging:
        """Return charges of all shapes, (nodes, shapes): those not listed pay what `others` do."""
        small, charge = self._known.small, first.best_charge.copy()
        fits = (self._known.demand <= self._known.capacity[small, None]).all(axis=2)
        charge[small] = np.where(fits, np.maximum(charge[small], others[small]), 0.0)
        return self._begin(charge, first.best_price / first.unit)

    def search(self) -> None:
        """Find better plans among lists, and prove that there is none where a list is whole.

        Where no clock ends the program of HiGHS, only whole lists are tried.
        """
        charged, budget = self._charging, self._budget
        forgone = forgone_everywhere(self._known, self._fill, charged.best_charge)
        proven = float(charged.best[0])  # by these charges: prices may prove more, but not of lists
        if not np.isfinite(proven):
            return
        for most, part in _SEARCHES:
            span = self._state.value - proven
            lists = self._spanned(forgone, span, max(most, _WHOLE))
            whole = lists is not None
            while lists is None and self._may_shorten(span):
                span *= _SHORTER
                lists = self._spanned(forgone, span, most)
            untimed = budget.seconds_limit is None and not whole
            if lists is None or untimed or budget.out_of_time:
                return
            last = most == _SEARCHES[-1][0]
            self._solve(lists, proven + span, 1.0 if whole and last else part)
            if is_closed(self._state.value, self._state.bound):
                return

    def _may_shorten(self, span: float) -> bool:
        """Return whether a shorter list may still be wanted, and there is time for one."""
        return span > _SHORTEST * self._state.value and not self._budget.out_of_time

    def _spanned(self, forgone: np.ndarray, span: float, most: int) -> Lists | None:
        """Return the placements without which a plan is at least `span` above what is proven."""
        rounding = 1e-9 * abs(self._state.value)
        return self._listed(forgone, self._charging.best_alone + span + rounding, most)

    def _solve(self, lists: Lists, others: float, part: float) -> None:
        """Let HiGHS choose among lists; plans that are not of these have at least `others`."""
        state = self._state
        lists, start = with_plan(self._instance, self._known, self._weight, lists, state.hosts)
        state.placements = len(lists.plain)
        outcome = self._chosen(lists, start, part)
        if outcome is None or outcome.x is None:
            return  # HiGHS failed, or did not come as far as to take over the start
        hosts = hosts_of(self._instance, lists, np.flatnonzero(outcome.x > 0.5))
        fits = (node_loads(self._instance, hosts) <= self._instance.capacity).all()
        if fits and outcome.objective < state.value - _TOLERANCE * abs(state.value):
            state.value, state.hosts = outcome.objective, hosts
        known = outcome.bound - _TOLERANCE * abs(outcome.bound)
        state.bound = max(state.bound, min(known, others, state.value))

    def _chosen(self, lists: Lists, start: np.ndarray, part: float) -> Outcome | None:
        """Return what HiGHS chooses among lists in a part of the time, None where it fails."""
        from placeopt.exact import solvers  # takes a while

        budget = self._budget
        try:
            return solvers.solve(
                program(self._known, self._fill, self._charging.best_charge, lists),
                seconds=budget.seconds_left * part,
                budget=budget,
                start=start,
                relative_gap=_TOLERANCE,
                options={} if budget.seconds_limit else {"mip_max_nodes": _TREE_NODES},
                # With a start HiGHS 1.16.0 may lose the offset that its presolve finds: it then
                # takes a part of the value for the whole, and ends.
                careful=True,
            )
        except SolverError:
            return None
