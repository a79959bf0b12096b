"""Changes of finished plans, compiled: requests leave their machines and come back elsewhere.

A request comes back at the start, and on the machines, at which it adds least cost. Replicas stay
in their pools, so that latency and interruption stay as they are.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placeopt.core.kernels.compile import inlined_kernel, kernel
from placeopt.core.kernels.random import below
from placeopt.temporal.machines import cost_of, lease, put, read, take, write
from placeopt.temporal.pools import PoolArrays, served

#: Requests that leave together, at most.
TOGETHER = 3
#: Requests that are drawn to find one that shares a pool with a given one.
MAX_COMPANIONS = 12
#: Costs count as equal up to this part of them: sums are rounded.
EQUAL, LESS = 1e-12, 1e-9


class Retiming(NamedTuple):
    """Arrays that a change borrows: n requests, R replicas, T slots, R + 1 machines.

    A *pick* is a machine for a replica: a leased one, or -1 - k for the k-th new one.
    """

    chosen: np.ndarray  # (TOGETHER,) requests that leave
    start: np.ndarray  # (n,) starts of those that left
    host: np.ndarray  # (R,) machines of their replicas
    pool: np.ndarray  # (R,) pools of their replicas
    among: np.ndarray  # (R + 1,) leased machines of the pools of the request at hand
    added: np.ndarray  # (R + 1, T) what each of them costs more for each start, USD
    room: np.ndarray  # (R + 1, T) replicas for which it has room
    level: np.ndarray  # (T,) replicas for which a machine has room in each slot
    queue: np.ndarray  # (T,) slots, for the least of a window
    used: np.ndarray  # (R + 1,) replicas that each leased machine gets
    new_pool: np.ndarray  # (R + 1,) of each new machine
    new_room: np.ndarray  # (R + 1,) replicas for which it still has room
    pick: np.ndarray  # (R,) of each replica at a start
    best: np.ndarray  # (R,) the same at the best start


def new_moves(instance: PoolArrays) -> Retiming:
    """Return the arrays that changes of an instance borrow."""
    n, replicas, slots = len(instance.duration), len(instance.request), instance.horizon
    machines = replicas + 1

    def zeros(*shape: int) -> np.ndarray:
        return np.zeros(shape, dtype=np.int64)

    return Retiming(
        chosen=zeros(TOGETHER),
        start=zeros(n),
        host=zeros(replicas),
        pool=zeros(replicas),
        among=zeros(machines),
        added=np.zeros((machines, slots)),
        room=zeros(machines, slots),
        level=zeros(slots),
        queue=zeros(slots),
        used=zeros(machines),
        new_pool=zeros(machines),
        new_room=zeros(machines),
        pick=zeros(replicas),
        best=zeros(replicas),
    )


@inlined_kernel
def _rooms(instance, request, free_cpu, free_memory):
    """Return how many replicas of a request fit into what is free; no more than there are."""
    result = instance.first[request + 1] - instance.first[request]
    cpu, memory = instance.demand[request, 0], instance.demand[request, 1]
    if free_cpu < cpu or free_memory < memory:
        return 0
    if free_cpu < result * cpu:
        result = free_cpu // cpu
    if free_memory < result * memory:
        result = free_memory // memory
    return result


@inlined_kernel
def _tabulate(instance, plan, moves, request, machine):
    """Write `added` and `room` of a machine for all starts of a request.

    The least room of a window is that of the first of a queue of slots whose rooms increase.
    """
    load, level, queue = plan.load[machine], moves.level, moves.queue
    pool, busy, duration = plan.pool[machine], plan.busy[machine], instance.duration[request]
    cpu, memory = instance.capacity[pool, 0], instance.capacity[pool, 1]
    head = tail = idle = 0
    before = cost_of(instance, pool, busy)
    for slot in range(instance.horizon):
        level[slot] = _rooms(instance, request, cpu - load[slot, 0], memory - load[slot, 1])
        while tail > head and level[queue[tail - 1]] >= level[slot]:
            tail -= 1
        queue[tail] = slot
        tail += 1
        idle += load[slot, 2] == 0
        start = slot - duration + 1
        if start >= 0:
            if queue[head] < start:
                head += 1
            moves.room[machine, start] = level[queue[head]]
            moves.added[machine, start] = cost_of(instance, pool, busy + idle) - before
            idle -= load[start, 2] == 0


@kernel
def _look(instance, plan, moves, request):
    """Tabulate the leased machines of the pools of a request that left; return how many."""
    count, first = 0, instance.first[request]
    for replica in range(first, instance.first[request + 1]):
        pool, new = moves.pool[replica], True
        for other in range(first, replica):
            new = new and moves.pool[other] != pool
        machine = plan.head[pool] if new else -1
        while machine >= 0:
            _tabulate(instance, plan, moves, request, machine)
            moves.among[count] = machine
            count += 1
            machine = plan.after[machine]
    return count


@inlined_kernel
def _may_lease(instance, plan, moves, new, pool):
    """Return whether one more machine of a pool may be leased beside `new` new ones."""
    offer = instance.offer[pool]
    leased, limit = plan.leased[offer], instance.max_machines[offer]
    for k in range(new):
        leased += instance.offer[moves.new_pool[k]] == offer
    return limit < 0 or leased < limit


@inlined_kernel
def _pick(instance, plan, moves, count, new, start, replica):
    """Return what a replica adds on the best machine of its pool, and the pick; inf for none."""
    pool, best, result = moves.pool[replica], np.inf, 0
    for k in range(count):
        machine = moves.among[k]
        if plan.pool[machine] == pool and moves.used[machine] < moves.room[machine, start]:
            more = 0.0 if moves.used[machine] > 0 else moves.added[machine, start]
            if more < best:
                best, result = more, machine
    for k in range(new):
        if moves.new_pool[k] == pool and moves.new_room[k] > 0 and best > 0:
            best, result = 0.0, -1 - k
    more = cost_of(instance, pool, instance.duration[instance.request[replica]])
    if more < best and _may_lease(instance, plan, moves, new, pool):
        best, result = more, -1 - new
    return best, result


@inlined_kernel
def _fill(instance, plan, moves, count, request, start, most):
    """Pick a machine for each replica of a request, where it adds least from a start on.

    Returns what they add in all, in USD; inf where that is `most` or more.
    """
    total, new = 0.0, 0
    for k in range(count):
        moves.used[moves.among[k]] = 0
    for replica in range(instance.first[request], instance.first[request + 1]):
        more, pick = _pick(instance, plan, moves, count, new, start, replica)
        total += more
        if total >= most:
            return np.inf
        if pick == -1 - new:
            pool = moves.pool[replica]
            cpu, memory = instance.capacity[pool, 0], instance.capacity[pool, 1]
            moves.new_pool[new] = pool
            moves.new_room[new] = _rooms(instance, request, cpu, memory)
            new += 1
        if pick >= 0:
            moves.used[pick] += 1
        else:
            moves.new_room[-1 - pick] -= 1
        moves.pick[replica] = pick
    return total


@kernel
def _come_back(instance, plan, moves, request, random):
    """Put a request back at its cheapest start; return whether there is one."""
    count = _look(instance, plan, moves, request)
    starts = instance.horizon - instance.duration[request] + 1
    first, best, best_start = below(random, starts), np.inf, -1
    for k in range(starts):
        start = (first + k) % starts
        total = _fill(instance, plan, moves, count, request, start, best)
        if total < best:
            best, best_start = total, start
            for replica in range(instance.first[request], instance.first[request + 1]):
                moves.best[replica] = moves.pick[replica]
    if best_start >= 0:
        _put_all(instance, plan, moves, request, best_start)
    return best_start >= 0


@kernel
def _put_all(instance, plan, moves, request, start):
    """Put the replicas of a request on their best picks; new machines are leased."""
    plan.start[request] = start
    leased = 0
    for replica in range(instance.first[request], instance.first[request + 1]):
        machine = moves.best[replica]
        if machine < 0:
            k = -1 - machine
            if k == leased:  # new ones are picked in the order of their numbers
                moves.among[k] = plan.free[plan.num_free[0] - 1]
                lease(instance, plan, moves.among[k], moves.pool[replica])
                leased += 1
            machine = moves.among[k]
        put(instance, plan, replica, machine)


@kernel
def _leave(instance, plan, moves, request):
    """Take a request out; its start, machines and pools are kept."""
    moves.start[request] = plan.start[request]
    for replica in range(instance.first[request], instance.first[request + 1]):
        moves.host[replica] = plan.host[replica]
        moves.pool[replica] = plan.pool[plan.host[replica]]
    _clear(instance, plan, request)


@kernel
def _clear(instance, plan, request):
    """Take the replicas of a request from their machines."""
    for replica in range(instance.first[request], instance.first[request + 1]):
        take(instance, plan, replica)


@kernel
def _restore(instance, plan, moves, request):
    """Put a request back where it was."""
    plan.start[request] = moves.start[request]
    for replica in range(instance.first[request], instance.first[request + 1]):
        machine = moves.host[replica]
        if plan.held[machine] == 0:
            lease(instance, plan, machine, moves.pool[replica])
        put(instance, plan, replica, machine)


@kernel
def _companion(instance, plan, request, random):
    """Return a random request, likely one that shares a pool with a given one."""
    n, first = len(instance.duration), instance.first[request]
    replica = first + below(random, instance.first[request + 1] - first)
    pool, other = plan.pool[plan.host[replica]], request
    for _ in range(MAX_COMPANIONS):
        other = below(random, n)
        host = plan.host[instance.first[other]]  # -1 where it is not served
        if other != request and host >= 0 and plan.pool[host] == pool:
            break
    return other


@kernel
def _choose(instance, plan, moves, random):
    """Write which requests leave into `moves.chosen`; return how many."""
    request = below(random, len(instance.duration))
    if not served(instance, request):
        return 0
    moves.chosen[0] = request
    count = 1
    for _ in range(below(random, TOGETHER)):
        other = _companion(instance, plan, request, random)
        new = served(instance, other)
        for k in range(count):
            new = new and moves.chosen[k] != other
        if new:
            moves.chosen[count] = other
            count += 1
    return count


@kernel
def _try_change(instance, plan, moves, random):
    """Let some requests leave and come back, unless the plan becomes dearer."""
    most = plan.cost[0] * (1 + EQUAL)
    count, back = _choose(instance, plan, moves, random), 0
    for k in range(count):
        _leave(instance, plan, moves, moves.chosen[k])
    while back < count and _come_back(instance, plan, moves, moves.chosen[back], random):
        back += 1
    if back < count or plan.cost[0] > most:
        for k in range(back):
            _clear(instance, plan, moves.chosen[k])
        for k in range(count):
            _restore(instance, plan, moves, moves.chosen[k])


@kernel
def improve_all(instance, plan, moves, X, steps, random):
    """Improve vectors, shape (k, n + 2 R), in place, by so many random changes each.

    `random` is a uint64 array, shape (1,).
    """
    for k in range(len(X)):
        read(instance, plan, X[k])
        least = plan.cost[0]
        for _ in range(steps):
            _try_change(instance, plan, moves, random)
        if plan.cost[0] < least * (1 - LESS):
            write(instance, plan, X[k])
