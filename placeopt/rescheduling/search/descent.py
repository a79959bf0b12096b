"""Compiled local search: moves of one replica, blocks of services, pairs and triples of moves.

`instance` is a `ReschedulingArrays`, `state` a `SearchState`, throughout. A move changes the
critical path by the difference of two potentials. Other paths can only make that worse, so that
potentials bound the change of every move from below.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placeopt.core.kernels.common import copy_rows
from placeopt.core.kernels.compile import allocating_kernel, kernel
from placeopt.rescheduling.arrays import ReschedulingArrays
from placeopt.rescheduling.encoder import (
    LatencyScratch,
    Moves,
    RunningDeployment,
    arrange,
    critical_path,
    empty_deployment,
    fits,
    latency,
    latency_after,
    latency_scratch,
    refresh,
    relocate,
)

# -- states ----------------------------------------------------------------------------------------


class SearchState(NamedTuple):
    """A deployment, and what the search knows of it; S services, N nodes."""

    deployment: RunningDeployment
    scratch: LatencyScratch
    stale: np.ndarray  # bool (S,) services of which the mean times are out of date
    potential: np.ndarray  # (S, N) ms that a replica adds to the critical path
    linear: bool  # no service has two groups: potentials give changes exactly


class PlanArchive(NamedTuple):
    """The best plan of every number of moves, up to K."""

    latency: np.ndarray  # (K + 1,) ms, inf where there is none
    moves: np.ndarray  # int32 (K + 1, K, 3) service, from, to
    tries: np.ndarray  # int64 (1,) deployments that were evaluated


def search_state(instance: ReschedulingArrays) -> SearchState:
    """Return a state without replicas; `load` gives it a deployment."""
    services, nodes = instance.home.shape
    return SearchState(
        deployment=empty_deployment(instance),
        scratch=latency_scratch(services, len(instance.callee)),
        stale=np.ones(services, dtype=bool),
        potential=np.zeros((services, nodes)),
        linear=bool(np.diff(instance.group_first).max() <= 1),
    )


def plan_archive(max_moves: int) -> PlanArchive:
    """Return an empty archive for plans of at most `max_moves` moves."""
    return PlanArchive(
        latency=np.full(max_moves + 1, np.inf),
        moves=np.zeros((max_moves + 1, max_moves, 3), dtype=np.int32),
        tries=np.zeros(1, dtype=np.int64),
    )


def zones(instance: ReschedulingArrays) -> np.ndarray:
    """Return the zone of every node, 0 or 1, shape (N,).

    The two nodes that are farthest apart are the centres; a node belongs to the nearer one.
    """
    if len(instance.user) < 2:
        return np.zeros(len(instance.user), dtype=np.int64)
    between = instance.delay + instance.delay.T
    one, other = np.unravel_index(int(between.argmax()), between.shape)
    nearer = between[other] < between[one]
    nearer[other] = True  # with no delays at all, the zones still differ
    return nearer.astype(np.int64)


# -- descents --------------------------------------------------------------------------------------

#: Differences below this many ms are rounding.
ROUNDING_MS = 1e-9
#: A move of a descent must save more than this many ms.
MIN_GAIN_MS = 1e-6
#: The limit of descents that are to end by themselves.
UNLIMITED = 2**40


@kernel
def load(instance, state, counts):
    """Make a deployment (S, N) the state's own; what does not change is not computed again."""
    deployment, stale = state.deployment, state.stale
    for service in range(instance.replicas.size):
        for node in range(instance.user.size):
            change = counts[service, node] - deployment.counts[service, node]
            if change != 0:
                for resource in range(2):
                    used = change * instance.demand[service, resource]
                    deployment.free[node, resource] -= used
                deployment.counts[service, node] = counts[service, node]
                stale[service] = True
    for service in range(instance.replicas.size):
        if stale[service]:
            stale[service] = False
            refresh(instance, deployment, service)


@allocating_kernel
def load_plan(instance, state, moves):
    """Make the deployment after moves (k, 3) the state's own."""
    counts = instance.home.copy()
    for k in range(moves.shape[0]):
        service, source, target = moves[k]
        counts[service, source] -= 1
        counts[service, target] += 1
    load(instance, state, counts)


@kernel
def state_latency(instance, state):
    """Return the latency of the state's deployment; writes the processing times."""
    return latency(instance, state.deployment, state.scratch)


@kernel
def move(instance, state, service, source, target):
    """Move a replica; return the latency."""
    relocate(instance, state.deployment, service, source, target)
    refresh(instance, state.deployment, service)
    return state_latency(instance, state)


@kernel
def update_potentials(instance, state):
    """Write what a replica of each service adds to the critical path on every node.

    `state_latency` comes before; weights of services and calls on the critical path are written.
    """
    deployment, scratch, potential = state.deployment, state.scratch, state.potential
    critical_path(instance, deployment, scratch)
    for service in range(instance.replicas.size):
        weight = scratch.service_weight[service]
        for node in range(instance.user.size):
            own = weight * instance.own[service, node]
            potential[service, node] = own / instance.replicas[service]
    for call in range(instance.callee.size):
        if scratch.call_weight[call] > 0.0:
            caller, callee = instance.caller[call], instance.callee[call]
            pairs = instance.replicas[caller] * instance.replicas[callee]
            share = scratch.call_weight[call] / pairs
            for node in range(instance.user.size):
                callers = share * deployment.counts[caller, node]
                callees = share * deployment.counts[callee, node]
                if callers > 0.0:
                    for other in range(instance.user.size):
                        potential[callee, other] += callers * instance.delay[node, other]
                if callees > 0.0:
                    for other in range(instance.user.size):
                        potential[caller, other] += callees * instance.delay[other, node]


@kernel
def _leaves(counts, home, service, source, back):
    """Return whether a replica may leave a node; with `back` only one that came there."""
    return counts[service, source] > (home[service, source] if back else 0)


@kernel
def _enters(counts, home, free, demand, service, source, target, back):
    """Return whether a node is another and has room; with `back` only where one has left."""
    if source == target or (back and counts[service, target] >= home[service, target]):
        return False
    return fits(demand, free, service, target)


@kernel
def best_move(instance, state, archive, now, limit, back):
    """Return the move with room that changes the latency least: change, service, from, to.

    Moves whose potentials do not promise a change below the least so far are not tried. The service
    is -1 where no change is below `limit`. With `back`, moves only undo what differs from home.
    Counts the tried moves in ``archive.tries``; `now` is the latency, `state_latency` comes before.
    """
    update_potentials(instance, state)
    deployment, scratch = state.deployment, state.scratch
    potential, weight = state.potential, scratch.service_weight
    services, nodes = instance.replicas.size, instance.user.size
    counts, home, free, demand = deployment.counts, instance.home, deployment.free, instance.demand
    least, best = limit, (-1, -1, -1)
    # The first sweep goes by potentials, the second by latencies. It begins with the service of the
    # first sweep's best: then few others are tried.
    for sweep in range(1 if state.linear else 2):
        begin = max(0, best[0])
        least, best = limit, (-1, -1, -1)
        for k in range(services):
            service = (begin + k) % services
            for source in range(nodes if weight[service] > 0.0 or back else 0):
                if not _leaves(counts, home, service, source, back):
                    continue
                for target in range(nodes):
                    change = potential[service, target] - potential[service, source]
                    if change >= least - ROUNDING_MS:
                        continue
                    if not _enters(counts, home, free, demand, service, source, target, back):
                        continue
                    archive.tries[0] += 1
                    if sweep == 1:
                        after = latency_after(
                            instance, deployment, scratch, service, source, target
                        )
                        change = after - now
                    if change < least - ROUNDING_MS:
                        least, best = change, (service, source, target)
        if best[0] < 0:
            break
    return least, best[0], best[1], best[2]


@kernel
def descend(instance, state, archive, offering, back, max_moves):
    """Make the best move until none makes requests faster, at most `max_moves`.

    With `back`, moves are taken back one by one, always the one whose loss is least. The last
    deployment is offered to the archive, with `offering` every one.

    Returns
    -------
    latency : float
    ended : bool
        Whether no move is left.
    """
    now = state_latency(instance, state)
    limit = np.inf if back else -MIN_GAIN_MS
    for _ in range(max_moves):
        _, service, source, target = best_move(instance, state, archive, now, limit, back)
        if service >= 0:
            now = move(instance, state, service, source, target)
        if offering or service < 0:
            offer(instance, state, archive, now)
        if service < 0:
            return now, True
    return now, False


@allocating_kernel
def offer(instance, state, archive, latency_ms):
    """Keep the state's deployment if it is the best of its number of moves and can be reached."""
    counts, count = state.deployment.counts, 0
    for service in range(instance.replicas.size):
        for node in range(instance.user.size):
            count += max(0, counts[service, node] - instance.home[service, node])
    archive.tries[0] += 1
    if count >= archive.latency.size:
        return
    if archive.latency[: count + 1].min() <= latency_ms + ROUNDING_MS:
        return
    moves = np.empty((archive.moves.shape[1], 3), np.int32)
    result, left = arrange(instance, counts, moves)
    if left == 0 and archive.latency[: result + 1].min() > latency_ms + ROUNDING_MS:
        archive.latency[result] = latency_ms
        copy_rows(moves[:result], archive.moves[result])


# -- blocks of services ----------------------------------------------------------------------------


@kernel
def _move_block(instance, state, zone_of, service, zone):
    """Move the replicas of a service to a zone while there is room, each to its fastest node."""
    deployment = state.deployment
    for source in range(instance.user.size):
        while deployment.counts[service, source] > 0 and zone_of[source] != zone:
            best = -1
            for target in range(instance.user.size):
                faster = best < 0 or instance.own[service, target] < instance.own[service, best]
                room = fits(instance.demand, deployment.free, service, target)
                if zone_of[target] == zone and faster and room:
                    best = target
            if best < 0:
                break
            relocate(instance, deployment, service, source, best)
    refresh(instance, deployment, service)


@allocating_kernel
def descend_from_blocks(instance, state, archive, zone_of, first, last, begun, ended):
    """Descend from the block vectors numbered `first` to `last`.

    In a block vector every service stays, goes to zone 0 or goes to zone 1; `zone_of` is (N,).
    `begun` and `ended` are hash sets (see `_met`) of the deployments where descents began and
    ended. A deployment that is met again is left alone.
    """
    for code in range(first, last):
        load(instance, state, instance.home)
        rest = code
        for k in range(instance.order.size - 1, -1, -1):
            if rest % 3:
                _move_block(instance, state, zone_of, instance.order[k], rest % 3 - 1)
            rest //= 3
        if _met(begun, _hash(state.deployment.counts)):
            continue
        descend(instance, state, archive, code == 0, False, UNLIMITED)
        if not _met(ended, _hash(state.deployment.counts)):
            descend(instance, state, archive, True, True, UNLIMITED)


@kernel
def _met(seen, key):
    """Return whether a hash set has a key, and put the key in.

    `seen`, int64, has a power of two for its length, at least one place more than keys, and 0 where
    a place is free.
    """
    key = key if key != 0 else 1
    place = key & (seen.size - 1)
    while seen[place] != 0 and seen[place] != key:
        place = (place + 1) & (seen.size - 1)
    met = seen[place] == key
    seen[place] = key
    return met


@kernel
def _hash(counts):
    """Return a hash of a deployment (S, N): FNV-1a."""
    result = 1469598103934665603
    for service in range(counts.shape[0]):
        for node in range(counts.shape[1]):
            result = (result ^ (counts[service, node] + 7)) * 1099511628211
    return result


# -- two and three moves at once -------------------------------------------------------------------


@kernel
def try_pairs(instance, state, archive, num_moves, triples, back):
    """Try every move from an archived plan, each with the best move that follows.

    With `back`, the first move undoes one of the plan's. With `triples`, every two moves are tried
    with the best that follows.
    """
    load_plan(instance, state, archive.moves[num_moves, :num_moves])
    _try_pairs_from(instance, state, archive, 0, back)
    nodes, counts, home = instance.user.size, state.deployment.counts, instance.home
    free, demand = state.deployment.free, instance.demand
    for cell in range(home.size if triples else 0):
        service, source = cell // nodes, cell % nodes
        for target in range(nodes):
            # counts are those of the plan again after every turn
            if counts[service, source] == 0:
                break
            if _enters(counts, home, free, demand, service, source, target, False):
                relocate(instance, state.deployment, service, source, target)
                refresh(instance, state.deployment, service)
                _try_pairs_from(instance, state, archive, cell, back)
                relocate(instance, state.deployment, service, target, source)
                refresh(instance, state.deployment, service)


@kernel
def _try_pairs_from(instance, state, archive, first, back):
    """Try every move, each with the best that follows.

    Moves are of replicas in the cells (service times N + node) from `first` on.
    """
    deployment, nodes = state.deployment, instance.user.size
    counts, home, demand = deployment.counts, instance.home, instance.demand
    for cell in range(first, home.size):
        service, source = cell // nodes, cell % nodes
        if not _leaves(counts, home, service, source, back):
            continue
        for target in range(nodes):
            if not _enters(counts, home, deployment.free, demand, service, source, target, back):
                continue
            now = move(instance, state, service, source, target)
            change, other, here, there = best_move(instance, state, archive, now, np.inf, False)
            if other >= 0:
                relocate(instance, deployment, other, here, there)
                offer(instance, state, archive, now + change)
                relocate(instance, deployment, other, there, here)
            relocate(instance, deployment, service, target, source)
            refresh(instance, deployment, service)


# -- ejections -------------------------------------------------------------------------------------

#: Replicas that a pass tries to bring; replicas that leave for one of them, at most.
_MAX_TRIED, _MAX_LEAVING = 12, 3


def improve(instance: ReschedulingArrays, state: SearchState, archive: PlanArchive) -> float:
    """Descend, make one ejection if any of the most promising helps, descend again.

    The state is a local optimum of single moves afterwards.

    Returns
    -------
    float
        The latency in ms.
    """
    now = _descend(instance, state, archive)
    # Potentials and weights are those of this deployment: the descent ends when no move helps.
    potential, deployment = state.potential, state.deployment
    here = np.where(deployment.counts > 0, potential, -np.inf)
    source = here.argmax(axis=1)
    on_path = state.scratch.service_weight[:, None] > 0
    change = np.where(on_path, potential - here.max(axis=1, keepdims=True), 0.0)
    room = (deployment.free[None] >= instance.demand[:, None]).all(axis=2)
    too_small = (instance.capacity[None] < instance.demand[:, None]).any(axis=2)
    change[room | too_small] = 0.0
    likely = np.argsort(change, axis=None, kind="stable")[:_MAX_TRIED]
    for service, target in (divmod(int(cell), change.shape[1]) for cell in likely):
        if change[service, target] >= -MIN_GAIN_MS:
            break
        moves = _make_room(instance, state, service, target)
        if moves is None:
            continue
        moves.append((service, int(source[service]), target))
        if move(instance, state, *moves[-1]) < now - MIN_GAIN_MS:
            return _descend(instance, state, archive)
        _undo(instance, state, moves)
    return now


def _descend(instance: ReschedulingArrays, state: SearchState, archive: PlanArchive) -> float:
    result, _ = descend(instance, state, archive, False, False, UNLIMITED)
    return float(result)


def _undo(instance: ReschedulingArrays, state: SearchState, moves: Moves) -> None:
    for service, source, target in reversed(moves):
        move(instance, state, service, target, source)


def _make_room(
    instance: ReschedulingArrays, state: SearchState, service: int, node: int
) -> Moves | None:
    """Move replicas off a node until one of a service fits, those first that cost least elsewhere.

    Returns
    -------
    list of (service, from, to), or None
        The moves made; None where that fails and nothing has changed.
    """
    demand, deployment = instance.demand, state.deployment
    moves: Moves = []
    while (deployment.free[node] < demand[service]).any():
        others = np.flatnonzero(deployment.counts[:, node])
        others = others[(others != service) & (demand[others] > 0).any(axis=1)]
        room = (deployment.free[None] >= demand[others][:, None]).all(axis=2)
        cost = np.where(room, state.potential[others], np.inf)
        cost[:, node] = np.inf
        if len(moves) == _MAX_LEAVING or not np.isfinite(cost).any():
            _undo(instance, state, moves)
            return None
        change = cost - state.potential[others, node][:, None]
        k, target = divmod(int(change.argmin()), cost.shape[1])
        moves.append((int(others[k]), node, target))
        move(instance, state, *moves[-1])
    return moves
