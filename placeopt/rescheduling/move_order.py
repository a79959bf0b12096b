"""Orders of the moves from one deployment to another, each with room when it is made.

`arrange` is quick and compiled; `shortest` proves that there is no shorter order.
"""

from __future__ import annotations

import heapq

import numpy as np

from placeopt.core.kernels.compile import kernel
from placeopt.rescheduling.arrays import ReschedulingArrays
from placeopt.rescheduling.latency import fits

Moves = list[tuple[int, int, int]]
_Counts = tuple[tuple[int, ...], ...]

#: Replicas that step aside to a third node in one order of moves, at most.
MAX_HOPS = 4


@kernel
def arrange(instance, target, moves):
    """Write moves from home to a deployment `target` (S, N), each with room when it is made.

    Of the moves that have room the one comes first that leaves most cpu on its node. Where none has
    room, a replica that must leave steps aside to another node, `MAX_HOPS` times at most.

    Parameters
    ----------
    moves : int32 (k, 3)
        Takes (service, from, to).

    Returns
    -------
    int
        The number of moves; -1 where no order was found, or not one of at most k moves.
    """
    home, demand = instance.home, instance.demand
    free, replicas = instance.capacity.copy(), instance.replicas.sum()
    sources, targets = np.empty(replicas, np.int64), np.empty(replicas, np.int64)
    services = np.empty(replicas, np.int64)  # of the replicas that must arrive
    next_source = np.zeros(instance.replicas.size, np.int64)  # where `sources` of a service begin
    size = 0
    for service in range(home.shape[0]):
        next_source[service], last = size, size
        for node in range(home.shape[1]):
            for resource in range(2):
                free[node, resource] -= home[service, node] * demand[service, resource]
            for _ in range(home[service, node] - target[service, node]):
                sources[last] = node
                last += 1
            for _ in range(target[service, node] - home[service, node]):
                targets[size], services[size] = node, service
                size += 1
    done, pending, hops, count = np.zeros(size, np.bool_), size, 0, 0
    while pending:
        k = _roomiest(instance, free, targets, services, done)
        if k >= 0:
            service, goal = services[k], targets[k]
            source = sources[next_source[service]]
            next_source[service] += 1
            done[k] = True
            pending -= 1
        else:
            if hops == MAX_HOPS:
                return -1
            hops += 1
            service, source, goal = _aside(instance, free, sources, next_source, services, done)
        if service < 0 or count == moves.shape[0]:
            return -1
        moves[count, 0], moves[count, 1], moves[count, 2] = service, source, goal
        count += 1
        for resource in range(2):
            free[source, resource] += demand[service, resource]
            free[goal, resource] -= demand[service, resource]
    return count


@kernel
def _roomiest(instance, free, targets, services, done):
    """Return the pending arrival with room that leaves most cpu on its node, -1 for none."""
    found, best_cpu = -1, -1
    for k in range(done.size):
        if not done[k] and fits(instance, free, services[k], targets[k]):
            cpu = free[targets[k], 0] - instance.demand[services[k], 0]
            if cpu > best_cpu:
                found, best_cpu = k, cpu
    return found


@kernel
def _aside(instance, free, sources, next_source, services, done):
    """Return a move of a replica that must leave to a third node with room; service -1 for none.

    The node takes the place of the replica's own in `sources`.
    """
    for k in range(done.size):
        service = services[k]
        if not done[k]:
            source = sources[next_source[service]]
            for node in range(free.shape[0]):
                if node != source and fits(instance, free, service, node):
                    sources[next_source[service]] = node
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
    count = arrange(instance, target, moves)
    return None if count < 0 else [(int(i), int(u), int(v)) for i, u, v in moves[:count]]


def misplaced(counts: np.ndarray, target: np.ndarray) -> int:
    """Return how many replicas must move from one deployment to another, at least."""
    return int(np.maximum(target - counts, 0).sum())


def shortest(
    instance: ReschedulingArrays, target: np.ndarray, max_states: int = 20_000
) -> tuple[Moves | None, bool]:
    """Search the deployments on the way by A*; misplaced replicas are the lower bound.

    Parameters
    ----------
    target : ndarray of int, shape (S, N)
    max_states : int
        Deployments that are visited before the search gives up.

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
        if len(came) > max_states:
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
    found = []
    for service, counts in enumerate(state):
        room = np.flatnonzero((free >= instance.demand[service]).all(axis=1)).tolist()
        for source, count in enumerate(counts):
            for target in room if count else ():
                if target != source:
                    after = list(counts)
                    after[source] -= 1
                    after[target] += 1
                    changed = (*state[:service], tuple(after), *state[service + 1 :])
                    found.append(((service, source, target), changed))
    return found


def _trace(
    came: dict[_Counts, tuple[_Counts, tuple[int, int, int]] | None], state: _Counts
) -> Moves:
    """Return the moves that lead from home to a deployment."""
    moves = []
    while (step := came[state]) is not None:
        state, move = step
        moves.append(move)
    return moves[::-1]
