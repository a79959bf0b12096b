"""Orders of the moves from one deployment to another, each with room when it is made.

`arrange` is quick and compiled; `shortest` proves that there is no shorter order.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable

import numpy as np

from placeopt.core.kernels.compile import allocating_kernel, kernel
from placeopt.rescheduling.arrays import ReschedulingArrays
from placeopt.rescheduling.latency import fits

Moves = list[tuple[int, int, int]]
_Counts = tuple[tuple[int, ...], ...]

#: Replicas that step aside to a third node in one order of moves, at most.
MAX_HOPS = 4


@allocating_kernel
def arrange(instance, target, moves):
    """Write moves from home to a deployment `target` (S, N), each with room when it is made.

    Moves are made by service and node as soon as they have room. Where none has, a replica that
    must leave steps aside to another node, `MAX_HOPS` times at most, and never if the target is
    overloaded itself. Moves that still find no room are written last, as far as `moves` has a place
    for them.

    Parameters
    ----------
    moves : int32 (k, 3)
        Takes (service, from, to).

    Returns
    -------
    count : int
        The number of moves written.
    left : int
        The number of moves that find no room, or no place in `moves`.
    """
    home, demand = instance.home, instance.demand
    free, free_at_end = instance.capacity.copy(), instance.capacity.copy()
    replicas = instance.replicas.sum()
    sources, targets = np.empty(replicas, np.int64), np.empty(replicas, np.int64)
    services = np.empty(replicas, np.int64)  # of the replicas that must arrive
    next_source = np.zeros(instance.replicas.size, np.int64)  # where `sources` of a service begin
    size = 0
    for service in range(home.shape[0]):
        next_source[service], last = size, size
        for node in range(home.shape[1]):
            for resource in range(2):
                free[node, resource] -= home[service, node] * demand[service, resource]
                free_at_end[node, resource] -= target[service, node] * demand[service, resource]
            for _ in range(home[service, node] - target[service, node]):
                sources[last] = node
                last += 1
            for _ in range(target[service, node] - home[service, node]):
                targets[size], services[size] = node, service
                size += 1
    done, left, count = np.zeros(size, np.bool_), size, 0
    hops = MAX_HOPS if free_at_end.min() >= 0 else 0
    while left and count + left <= moves.shape[0]:
        before = left
        for k in range(size):
            service = services[k]
            if not done[k] and fits(instance.demand, free, service, targets[k]):
                source = sources[next_source[service]]
                _make(instance, free, moves[count], service, source, targets[k])
                next_source[service] += 1
                done[k] = True
                count += 1
                left -= 1
        if left == before:
            if hops == 0 or count + left == moves.shape[0]:
                break
            service, source, node = _aside(instance, free, sources, next_source, services, done)
            if service < 0:
                break
            _make(instance, free, moves[count], service, source, node)
            sources[next_source[service]] = node
            hops -= 1
            count += 1
    written = count
    for k in range(size):
        if not done[k] and written < moves.shape[0]:
            service = services[k]
            source = sources[next_source[service]]
            _make(instance, free, moves[written], service, source, targets[k])
            next_source[service] += 1
            written += 1
    return written, left


@kernel
def _make(instance, free, move, service, source, target):
    """Write a move (3,), and what nodes have free after it (N, 2)."""
    move[0], move[1], move[2] = service, source, target
    for resource in range(2):
        free[source, resource] += instance.demand[service, resource]
        free[target, resource] -= instance.demand[service, resource]


@kernel
def _aside(instance, free, sources, next_source, services, done):
    """Return a move of a replica that must leave to a third node with room; service -1 for none."""
    for k in range(done.size):
        service = services[k]
        if not done[k]:
            source = sources[next_source[service]]
            for node in range(free.shape[0]):
                if node != source and fits(instance.demand, free, service, node):
                    return service, source, node
    return -1, -1, -1


def arranged(instance: ReschedulingArrays, target: np.ndarray, max_moves: int) -> Moves | None:
    """Return the moves of `arrange` to a deployment; None where it finds no order.

    Parameters
    ----------
    target : ndarray of int64, shape (S, N)
    max_moves : int
        Longer orders count as none.
    """
    moves = np.empty((max_moves, 3), dtype=np.int32)
    count, left = arrange(instance, target, moves)
    return None if left else [(int(i), int(u), int(v)) for i, u, v in moves[:count]]


def misplaced(counts: np.ndarray, target: np.ndarray) -> int:
    """Return how many replicas must move from one deployment to another, at least."""
    return int(np.maximum(target - counts, 0).sum())


def shortest(
    instance: ReschedulingArrays,
    target: np.ndarray,
    max_states: int = 20_000,
    stop: Callable[[], bool] = lambda: False,
) -> tuple[Moves | None, bool]:
    """Search the deployments on the way by A*; misplaced replicas are the lower bound.

    Parameters
    ----------
    target : ndarray of int, shape (S, N)
    max_states : int
        Deployments that are visited before the search gives up.
    stop : callable
        Asked before each of them whether to give up.

    Returns
    -------
    moves : list of (service, from, to) or None
        None where no order was found.
    proven : bool
        Whether there is none, or none that is shorter.
    """
    goal, home = _frozen(target), _frozen(instance.home)
    came: dict[_Counts, tuple[_Counts, tuple[int, int, int]] | None] = {home: None}
    cost = {home: 0}
    queue = [(misplaced(instance.home, target), 0, home)]
    while queue:
        _, negative, state = heapq.heappop(queue)
        if state == goal:
            return _trace(came, state), True
        if -negative > cost[state]:
            continue
        if len(came) > max_states or stop():
            return None, False
        for move, after in _neighbours(instance, state):
            if cost[state] + 1 < cost.get(after, 1 << 60):
                cost[after] = cost[state] + 1
                came[after] = (state, move)
                bound = cost[after] + misplaced(np.array(after), target)
                heapq.heappush(queue, (bound, -cost[after], after))
    return None, True


def _frozen(counts: np.ndarray) -> _Counts:
    return tuple(map(tuple, counts.tolist()))


def _neighbours(
    instance: ReschedulingArrays, state: _Counts
) -> list[tuple[tuple[int, int, int], _Counts]]:
    """Return every move that has room, with the deployment after it."""
    free = instance.capacity - np.tensordot(np.array(state), instance.demand, axes=(0, 0))
    results = []
    for service, counts in enumerate(state):
        room = np.flatnonzero((free >= instance.demand[service]).all(axis=1)).tolist()
        for source, count in enumerate(counts):
            for target in room if count else ():
                if target != source:
                    after = list(counts)
                    after[source] -= 1
                    after[target] += 1
                    changed = (*state[:service], tuple(after), *state[service + 1 :])
                    results.append(((service, source, target), changed))
    return results


def _trace(
    came: dict[_Counts, tuple[_Counts, tuple[int, int, int]] | None], state: _Counts
) -> Moves:
    """Return the moves that lead from home to a deployment."""
    moves = []
    while (step := came[state]) is not None:
        state, move = step
        moves.append(move)
    return moves[::-1]
