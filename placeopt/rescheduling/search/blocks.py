"""Block search: whole services go to one half of the continuum, then moves of single replicas."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from placeopt.core.budget import Budget
from placeopt.core.fronts.trace import RunSnapshot
from placeopt.core.kernels.compile import allocating_kernel, kernel
from placeopt.rescheduling.arrays import ReschedulingArrays
from placeopt.rescheduling.encoder import (
    MAX_HOPS,
    LatencyScratch,
    Moves,
    RunningDeployment,
    arranged,
    latencies,
    latency,
    latency_scratch,
    mean_network,
    mean_own,
    misplaced,
    shortest,
)
from placeopt.rescheduling.problem import Rescheduling
from placeopt.rescheduling.search import descent
from placeopt.rescheduling.search import descent as eject
from placeopt.rescheduling.search.descent import plan_archive, search_state, zones

# -- beams -----------------------------------------------------------------------------------------

#: ms that every move counts in the comparison of deployments: of equals the one with fewer moves.
_MOVE_MS = 1e-4
#: What may become of a service: it stays, or goes to zone 1 or to zone 0. Of equals, the first.
_OPTIONS = (2, 1, 0)
_STAY = 2


class Beam(NamedTuple):
    """W deployments under construction, and room for as many more."""

    counts: np.ndarray  # int64 (2 W, S, N)
    free: np.ndarray  # int64 (2 W, N, 2)
    own: np.ndarray  # (2 W, S) as in `RunningDeployment`
    network: np.ndarray  # (2 W, calls) the same, with the processing of what is not placed yet
    moves: np.ndarray  # (2 W,) number of moves
    options: np.ndarray  # int64 (3 W, N) what may become of the next service
    values: np.ndarray  # (3 W,) ms of the options
    zone_of: np.ndarray  # int64 (N,) 0 or 1
    to_zone: np.ndarray  # (2, N) mean latency from a node to a zone
    below: np.ndarray  # (S, 2) estimated processing of a service, by its zone
    scratch: LatencyScratch


def _empty_beam(instance: ReschedulingArrays, zone_of: np.ndarray, width: int) -> Beam:
    """Return a beam whose first deployment is empty.

    Estimates are those of a service at the mean of a zone's nodes, weighted by their cpu.
    """
    services, nodes = instance.home.shape
    share = np.array([(zone_of == zone) * (instance.capacity[:, 0] + 1e-9) for zone in range(2)])
    share /= np.maximum(share.sum(axis=1, keepdims=True), 1e-9)
    to_zone = share @ instance.delay.T
    between = share @ to_zone.T  # from zone to zone
    below = np.zeros((services, 2))
    for i in instance.order:
        groups = [np.zeros(2)]
        for g in range(instance.group_first[i], instance.group_first[i + 1]):
            callees = instance.callee[instance.call_first[g] : instance.call_first[g + 1]]
            groups.append(sum(((between + below[j]).min(axis=1) for j in callees), np.zeros(2)))
        below[i] = share @ instance.own[i] + np.max(groups, axis=0)
    below[:, share.sum(axis=1) == 0] = np.inf  # a zone without nodes
    calls = len(instance.callee)
    return Beam(
        counts=np.zeros((2 * width, services, nodes), dtype=np.int64),
        free=np.repeat(instance.capacity[None], 2 * width, axis=0),
        own=np.zeros((2 * width, services)),
        network=np.zeros((2 * width, calls)),
        moves=np.zeros(2 * width),
        options=np.zeros((3 * width, nodes), dtype=np.int64),
        values=np.zeros(3 * width),
        zone_of=zone_of,
        to_zone=to_zone,
        below=below,
        scratch=latency_scratch(services, calls),
    )


@kernel
def _fill(instance, beam, k, service, zone, option):
    """Write places for a service's replicas in deployment k into `option` (N,).

    They stay at home if `zone` is `_STAY`. Otherwise, and where home has no room, each goes to its
    fastest node, in the zone while that has room. Return whether all replicas have a place.
    """
    home, left = instance.home[service], instance.replicas[service]
    demand, free = instance.demand[service], beam.free[k]
    option[:] = 0
    for node in range(option.size if zone == _STAY else 0):
        for _ in range(home[node]):
            if _one_more_fits(demand, free, node, option):
                option[node] += 1
                left -= 1
    while left:
        best, least = -1, np.inf
        for node in range(option.size):
            if _one_more_fits(demand, free, node, option):
                value = instance.own[service, node]
                value += 0.0 if zone == _STAY or beam.zone_of[node] == zone else 1e9
                value -= 1e-6 if option[node] < home[node] else 0.0
                if value < least:
                    best, least = node, value
        if best < 0:
            return False
        option[best] += 1
        left -= 1
    return True


@kernel
def _one_more_fits(demand, free, node, option):
    """Return whether a node has room for a replica besides those of `option`."""
    count = option[node] + 1
    return free[node, 0] >= demand[0] * count and free[node, 1] >= demand[1] * count


@allocating_kernel
def _place(instance, beam, k, service, option):
    """Write counts and mean times of a service in deployment k once it runs as in `option` (N,).

    Its callers are placed. Calls that it makes are estimated by zone.
    """
    counts, network = beam.counts[k], beam.network[k]
    counts[service] = option
    beam.own[k, service] = mean_own(instance, counts, service)
    to_zones = np.zeros(2)
    for node in range(option.size):
        for zone in range(2):
            to_zones[zone] += option[node] * beam.to_zone[zone, node] / instance.replicas[service]
    for t in range(instance.touch_first[service], instance.touch_first[service + 1]):
        call = instance.touch[t]
        if instance.callee[call] == service:
            network[call] = mean_network(instance, counts, call)
        else:
            below = beam.below[instance.callee[call]]
            network[call] = min(to_zones[0] + below[0], to_zones[1] + below[1])


@kernel
def _take(instance, beam, k, service, option):
    """Run a service in deployment k as in `option` (N,)."""
    _place(instance, beam, k, service, option)
    for node in range(option.size):
        beam.moves[k] += max(0, option[node] - instance.home[service, node])
        for resource in range(2):
            beam.free[k, node, resource] -= option[node] * instance.demand[service, resource]


@allocating_kernel
def _copy(beam, source, target):
    """Write deployment `source` over deployment `target`."""
    for part in (beam.counts, beam.free):
        part[target] = part[source]
    for part in (beam.own, beam.network):
        part[target] = part[source]
    beam.moves[target] = beam.moves[source]


@allocating_kernel
def _search(instance, beam):
    """Build deployments; return how many, in the first places of ``beam.counts``, best first."""
    width, alive = beam.moves.size // 2, 1
    reached = np.zeros(instance.replicas.size, np.bool_)
    for service in instance.order:
        reached[service] = True
    for service in range(instance.replicas.size):
        if not reached[service]:  # no request needs it: it stays
            _take(instance, beam, 0, service, instance.home[service])
    for k in range(instance.order.size - 1, -1, -1):
        service = instance.order[k]
        for d in range(alive):
            _expand(instance, beam, d, service)
        beam.values[3 * alive :] = np.inf
        best, kept = np.argsort(beam.values, kind="mergesort"), 0
        while kept < width and beam.values[best[kept]] < np.inf:
            _copy(beam, best[kept] // 3, width + kept)
            _take(instance, beam, width + kept, service, beam.options[best[kept]])
            kept += 1
        for d in range(kept):
            _copy(beam, width + d, d)
        alive = kept
    return alive


@allocating_kernel
def _expand(instance, beam, k, service):
    """Write what may become of a service in deployment k, and the latency then."""
    kept_own, kept_network = beam.own[k, service], beam.network[k].copy()
    deployment = RunningDeployment(beam.counts[k], beam.free[k], beam.own[k], beam.network[k])
    for o in range(3):
        place = 3 * k + o
        option = beam.options[place]
        beam.values[place] = np.inf
        if not _fill(instance, beam, k, service, _OPTIONS[o], option):
            continue
        twice = False
        for other in range(3 * k, place):
            known = beam.values[other] < np.inf
            twice = twice or (known and (beam.options[other] == option).all())
        if twice:
            continue
        _place(instance, beam, k, service, option)
        moves = beam.moves[k] + np.maximum(0, option - instance.home[service]).sum()
        beam.values[place] = latency(instance, deployment, beam.scratch) + _MOVE_MS * moves
        beam.counts[k, service] = 0
        beam.own[k, service] = kept_own
        beam.network[k] = kept_network


def deployments(instance: ReschedulingArrays, zone_of: np.ndarray, width: int) -> np.ndarray:
    """Return up to `width` deployments, shape (deployments, S, N), the fastest first.

    Parameters
    ----------
    zone_of : ndarray of int64, shape (N,)
        The zone of every node, 0 or 1.
    """
    beam = _empty_beam(instance, zone_of, width)
    return beam.counts[: _search(instance, beam)].copy()


# -- block search ----------------------------------------------------------------------------------

# The limits below keep a search of 200 services within a minute and one of 20 replicas within
# milliseconds.
#: Services of which every block vector is tried, 3**5 of them at most; in a time limit 3**10, which
#: took .3 to 1 s on 6 nodes.
_MAX_ENUMERATED, _MAX_IN_TIME = 5, 10
#: Block vectors, and moves of a descent, between two looks at the clock.
_CHUNK = 27
#: Cells (replicas times nodes) up to which pairs of moves are tried.
_MAX_CELLS_PAIRS = 2000
#: The same for triples, from every plan.
_MAX_CELLS_TRIPLES = 24
#: The same for triples from the plan without moves and the fastest, and for pairs from the others.
_MAX_CELLS_OUTER_TRIPLES = 48
#: Rounds of pairs and triples.
_MAX_ROUNDS = 20
#: Width of the beam, and how many of its deployments descents begin with.
_WIDTH, _STARTS = 16, 4


class BlockSearch:
    """A search from a running deployment for the best plan of every number of moves.

    Parameters
    ----------
    problem : Rescheduling
    budget : Budget
        An evaluation is a deployment whose latency is estimated or computed.
    max_moves : int, optional
        Moves of a plan, at most.
    """

    def __init__(self, problem: Rescheduling, budget: Budget, max_moves: int | None = None):
        self.instance, self.budget = problem.arrays, budget
        self.num_replicas = int(self.instance.replicas.sum())
        longest = self.num_replicas + MAX_HOPS
        self.state = search_state(self.instance)
        self.archive = plan_archive(longest if max_moves is None else min(max_moves, longest))
        self._spent = 0
        self._interim = RunSnapshot(
            values=lambda: np.array([(ms, k) for k, (ms, _) in self.plans().items()]),
            plan=lambda row: problem.plan(list(self.plans().values())[row][1].tolist()),
            minimal=True,
            names=("latency_ms", "moves"),
        )
        descent.load(self.instance, self.state, self.instance.home)
        now = descent.state_latency(self.instance, self.state)
        descent.offer(self.instance, self.state, self.archive, now)
        self._count()

    def improve(self) -> bool:
        """Descend from the running deployment; return whether the descent came to its end."""
        descent.load(self.instance, self.state, self.instance.home)
        return self._descend(offering=True, back=False)

    def run(self, in_time: bool = False) -> bool:
        """Search from blocks of services; return whether the search came to its end.

        Where a time limit ends it (`in_time`) every block vector of more services is tried.
        """
        instance = self.instance
        zone_of, services = zones(instance), len(instance.order)
        if services > _MAX_ENUMERATED:
            if not self.improve():
                return False
            result = deployments(instance, zone_of, _WIDTH)[:_STARTS]
            if not (self._polish(result) and self._try_pairs()):
                return False
            if services > _MAX_IN_TIME or not in_time:
                return True
        none = np.empty((0, *instance.home.shape), dtype=np.int64)
        return self._try_blocks(zone_of) and self._polish(none) and self._try_pairs()

    def _try_blocks(self, zone_of: np.ndarray) -> bool:
        """Descend from every vector of blocks; return whether there is budget left."""
        vectors = 3 ** len(self.instance.order)
        begun, ended = np.zeros((2, 1 << (2 * vectors).bit_length()), dtype=np.int64)
        for first in range(0, vectors, _CHUNK):
            last, arguments = min(first + _CHUNK, vectors), (self.state, self.archive, zone_of)
            descent.descend_from_blocks(self.instance, *arguments, first, last, begun, ended)
            if not self._go_on():
                return False
        return True

    def _descend(self, *, offering: bool, back: bool) -> bool:
        """Descend from the state's deployment; return whether the descent came to its end."""
        ended = False
        while not ended:
            arguments = (self.instance, self.state, self.archive, offering, back, _CHUNK)
            _, ended = descent.descend(*arguments)
            if not self._go_on():
                return False
        return True

    def _polish(self, starts: np.ndarray) -> bool:
        """Descend from deployments (n, S, N); from the best, try ejections and take moves back.

        Return whether it came to its end.
        """
        instance, state, archive = self.instance, self.state, self.archive
        least = float(archive.latency.min())
        best = self.end_of(int(archive.latency.argmin()))
        for counts in starts:
            descent.load(instance, state, counts)
            if not (self._go_on() and self._descend(offering=False, back=False)):
                return False
            latency = float(descent.state_latency(instance, state))
            if latency < least - descent.ROUNDING_MS:
                least, best = latency, state.deployment.counts.copy()
        descent.load(instance, state, best)
        return self._eject(least) and self._descend(offering=True, back=True)

    def _eject(self, least: float) -> bool:
        """Try ejections in the state while they help; return whether there is budget left."""
        instance, state, archive = self.instance, self.state, self.archive
        while (now := eject.improve(instance, state, archive)) < least - descent.MIN_GAIN_MS:
            least = now
            descent.offer(instance, state, archive, now)
            if not self._go_on():
                return False
        return True

    def end_of(self, num_moves: int) -> np.ndarray:
        """Return the deployment (S, N) that the archived plan of so many moves ends in."""
        descent.load_plan(self.instance, self.state, self.archive.moves[num_moves, :num_moves])
        return self.state.deployment.counts.copy()

    def _try_pairs(self) -> bool:
        """Try two moves at once from every archived plan, on small instances three, while it helps.

        From the plan without moves and from the fastest, every first move; from the others only
        those that undo a move of the plan, unless the instance is small. Return whether it came to
        its end.
        """
        latency, cells = self.archive.latency, self.num_replicas * len(self.instance.user)
        if cells > _MAX_CELLS_PAIRS:
            return True
        seen = np.full_like(latency, np.inf)
        for _ in range(_MAX_ROUNDS):
            changed = np.flatnonzero(latency < seen - descent.ROUNDING_MS)
            seen = latency.copy()
            for k in changed.tolist():
                outer, small = (
                    k == 0 or latency[k] == latency.min(),
                    cells <= _MAX_CELLS_OUTER_TRIPLES,
                )
                triples = cells <= _MAX_CELLS_TRIPLES or (outer and small)
                back = not outer and not small
                descent.try_pairs(self.instance, self.state, self.archive, k, triples, back)
                if not self._go_on():
                    return False
            if not len(changed):
                break
        return True

    def _go_on(self) -> bool:
        """Count the tried deployments, report, and return whether there is budget left."""
        self._count()
        self.budget.report("blocks", self._interim)
        return not self.budget.exhausted

    def _count(self) -> None:
        tries = int(self.archive.tries[0])
        self.budget.spend(tries - self._spent)
        self._spent = tries

    def plans(self) -> dict[int, tuple[float, np.ndarray]]:
        """Return latency and moves (k, 3) by number of moves; longer plans are always faster."""
        result, least = {}, np.inf
        for k, ms in enumerate(self.archive.latency.tolist()):
            if ms < least - descent.ROUNDING_MS:
                least = ms
                result[k] = (ms, self.archive.moves[k, :k])
        return result


# -- plans of few moves ----------------------------------------------------------------------------

#: Combinations up to which all are compared. Equal moves count once: three are 4 combinations.
EXHAUSTIVE = 2**16
_PLANS_TOGETHER = 4096


class PlanPruning:
    """Leaves out moves that save too little.

    Parameters
    ----------
    problem : Rescheduling
    gain : float
        What every move must save, in ms.
    budget : Budget, optional
        Out of time, a plan is not finished: of 65,536 combinations one takes seconds.
    """

    def __init__(self, problem: Rescheduling, gain: float, budget: Budget | None = None):
        self.gain, self.instance = gain, problem.arrays
        self.budget = budget or Budget()
        self._state, self._archive = search_state(self.instance), plan_archive(1)

    def reduce(self, moves: Sequence[Sequence[int]]) -> tuple[Moves | None, bool]:
        """Return the plan that remains, and whether all combinations of its moves were compared.

        The plan is None where the time ended before.
        """
        if not len(moves):
            return [], True
        plan: Moves = [(int(i), int(u), int(v)) for i, u, v in moves]
        kinds, counts = np.unique(np.array(plan), axis=0, return_counts=True)
        if float(np.prod(counts + 1.0)) <= EXHAUSTIVE:
            return self._cheapest(plan, kinds, counts), True
        return self._stepwise(plan), False

    # -- all combinations --------------------------------------------------------------------------

    def _cheapest(self, moves: Moves, kinds: np.ndarray, counts: np.ndarray) -> Moves | None:
        """Return the cheapest plan among all combinations of the moves, None without the time.

        Parameters
        ----------
        kinds : ndarray of int64, shape (k, 3)
            The different moves.
        counts : ndarray of int64, shape (k,)
            How often each is in the plan.
        """
        home, demand = self.instance.home, self.instance.demand
        change = np.zeros((len(kinds), *home.shape), dtype=np.int64)
        for k, (service, source, target) in enumerate(kinds):
            change[k, service, source] -= 1
            change[k, service, target] += 1
        total = int(np.prod(counts + 1))
        costs, codes = [], []
        for first in range(0, total, _PLANS_TOGETHER):
            if first and self.budget.out_of_time:
                return None
            code = np.arange(first, min(first + _PLANS_TOGETHER, total))
            taken = np.stack(np.unravel_index(code, counts + 1), axis=1)
            ends = home + np.tensordot(taken, change, axes=1)
            load = np.tensordot(ends, demand, axes=(1, 0))
            possible = (ends >= 0).all(axis=(1, 2)) & (load <= self.instance.capacity).all((1, 2))
            network = latencies(self.instance, ends[possible])
            costs.append(network + self.gain * taken[possible].sum(axis=1))
            codes.append(code[possible])
        cost, code = np.concatenate(costs), np.concatenate(codes)
        whole = cost[code == total - 1].min(initial=np.inf)
        better = np.flatnonzero(cost < whole - descent.ROUNDING_MS)
        for k in better[np.argsort(cost[better], kind="stable")]:
            if self.budget.out_of_time:
                return None
            taken = np.array(np.unravel_index(code[k], counts + 1))
            end = home + np.tensordot(taken, change, axes=1)
            if (result := self._ordered(end, int(taken.sum()))) is not None:
                return result
        return moves

    def _ordered(self, target: np.ndarray, max_moves: int) -> Moves | None:
        """Return at most `max_moves` moves to a deployment (S, N), each with room, or None."""
        result = arranged(self.instance, target, max_moves + MAX_HOPS)
        if result is None or len(result) > max_moves:
            result, _ = shortest(self.instance, target, stop=self._is_out_of_time)
        return result if result is not None and len(result) <= max_moves else None

    def _is_out_of_time(self) -> bool:
        return self.budget.out_of_time

    # -- step by step ------------------------------------------------------------------------------

    def _stepwise(self, moves: Moves) -> Moves | None:
        """Return the plan after leaving out moves and services while that makes it cheaper.

        It is None where the time ends before.
        """
        instance, state = self.instance, self._state
        descent.load_plan(instance, state, np.array(moves, dtype=np.int32))
        while True:
            self._undo_single_moves()
            counts = state.deployment.counts.copy()
            cost = self._cost()
            for services in self._parts(counts):
                if self.budget.out_of_time:
                    return None
                other = counts.copy()
                other[services] = instance.home[services]
                descent.load(instance, state, other)
                cheaper = self._cost() < cost - descent.ROUNDING_MS
                if cheaper and (state.deployment.free >= 0).all():
                    break
            else:
                max_moves = misplaced(instance.home, counts) + MAX_HOPS
                result = arranged(instance, counts, max_moves)
                return moves if result is None else result

    def _cost(self) -> float:
        """Return latency plus `gain` per move of the state's deployment."""
        count = misplaced(self.instance.home, self._state.deployment.counts)
        return float(descent.state_latency(self.instance, self._state)) + self.gain * count

    def _undo_single_moves(self) -> None:
        """Undo the move whose loss is least while that is less than `gain`."""
        instance, state, limit = self.instance, self._state, self.gain - descent.ROUNDING_MS
        while not self.budget.out_of_time:
            now = descent.state_latency(instance, state)
            _, *result = descent.best_move(instance, state, self._archive, now, limit, True)
            if result[0] < 0:
                return
            descent.move(instance, state, *result)

    def _parts(self, counts: np.ndarray) -> Iterator[list[int]]:
        """Yield what is left out together: moved services, and moved callers with moved callees."""
        moved = (counts != self.instance.home).any(axis=1)
        yield from ([int(service)] for service in np.flatnonzero(moved))
        callers, callees = self.instance.caller.tolist(), self.instance.callee.tolist()
        for caller, callee in zip(callers, callees, strict=True):
            if moved[caller] and moved[callee]:
                yield [caller, callee]
