"""Finished plans as machines with loads over time, compiled.

Vectors of starts and pools cannot say every plan: their decoder packs requests in the order in
which they start. Here each replica stands on a machine, and may leave it for another one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placeopt.core.kernels.compile import kernel
from placeopt.temporal.pools import PoolArrays, served


class Machines(NamedTuple):
    """A plan: n requests, R replicas, P pools, T slots, and R + 1 machines, leased or free.

    The leased machines of a pool are a list: `head`, then `after`. The free ones are the first
    `num_free` of `free`.
    """

    start: np.ndarray  # (n,) first slot of each request
    host: np.ndarray  # (R,) machine of each replica, -1 for none
    pool: np.ndarray  # (R + 1,) of each leased machine
    held: np.ndarray  # (R + 1,) replicas on each machine
    load: np.ndarray  # (R + 1, T, 3) vCPU, memory and replicas in each slot
    busy: np.ndarray  # (R + 1,) slots with a replica
    head: np.ndarray  # (P,) a machine of each pool, -1 for none
    after: np.ndarray  # (R + 1,) next machine of the pool, -1 for none
    before: np.ndarray  # (R + 1,) machine of the pool before, -1 for none
    free: np.ndarray  # (R + 1,) free machines
    place: np.ndarray  # (R + 1,) where each free machine stands in `free`
    num_free: np.ndarray  # (1,)
    leased: np.ndarray  # (O,) machines of each offer
    label: np.ndarray  # (R + 1,) number of each machine in its pool, in a vector
    cost: np.ndarray  # (1,) USD, the sum over machines


def new_machines(instance: PoolArrays) -> Machines:
    """Return the plan of no replica."""
    replicas, pools = len(instance.request), len(instance.offer)
    machines = replicas + 1

    def fill(value: int, *shape: int) -> np.ndarray:
        return np.full(shape, value, dtype=np.int64)

    return Machines(
        start=fill(0, len(instance.duration)),
        host=fill(-1, replicas),
        pool=fill(-1, machines),
        held=fill(0, machines),
        load=fill(0, machines, instance.horizon, 3),
        busy=fill(0, machines),
        head=fill(-1, pools),
        after=fill(-1, machines),
        before=fill(-1, machines),
        free=np.arange(machines),
        place=np.arange(machines),
        num_free=fill(machines, 1),
        leased=fill(0, len(instance.max_machines)),
        label=fill(0, machines),
        cost=np.zeros(1),
    )


@kernel
def lease(instance, plan, machine, pool):
    """Lease a free machine of a pool."""
    at, last = plan.place[machine], plan.num_free[0] - 1
    other = plan.free[last]
    plan.free[at], plan.place[other] = other, at
    plan.num_free[0] = last
    first = plan.head[pool]
    plan.pool[machine], plan.before[machine], plan.after[machine] = pool, -1, first
    if first >= 0:
        plan.before[first] = machine
    plan.head[pool] = machine
    plan.leased[instance.offer[pool]] += 1


@kernel
def _give_back(instance, plan, machine):
    """Make a machine without replicas free."""
    pool, after, before = plan.pool[machine], plan.after[machine], plan.before[machine]
    if before >= 0:
        plan.after[before] = after
    else:
        plan.head[pool] = after
    if after >= 0:
        plan.before[after] = before
    last = plan.num_free[0]
    plan.free[last], plan.place[machine] = machine, last
    plan.num_free[0] = last + 1
    plan.leased[instance.offer[pool]] -= 1


@kernel
def cost_of(instance, pool, busy):
    """Return the USD of a machine that is busy for so many slots."""
    return min(instance.price[pool, 0] * busy, instance.price[pool, 1])


@kernel
def put(instance, plan, replica, machine):
    """Put a replica on a leased machine, whether there is room or not."""
    request = instance.request[replica]
    cpu, memory = instance.demand[request, 0], instance.demand[request, 1]
    start, more = plan.start[request], 0
    for slot in range(start, start + instance.duration[request]):
        plan.load[machine, slot, 0] += cpu
        plan.load[machine, slot, 1] += memory
        more += plan.load[machine, slot, 2] == 0
        plan.load[machine, slot, 2] += 1
    pool, busy = plan.pool[machine], plan.busy[machine]
    plan.cost[0] += cost_of(instance, pool, busy + more) - cost_of(instance, pool, busy)
    plan.busy[machine] = busy + more
    plan.held[machine] += 1
    plan.host[replica] = machine


@kernel
def take(instance, plan, replica):
    """Take a replica from its machine, which is given back if that was the last one."""
    request, machine = instance.request[replica], plan.host[replica]
    cpu, memory = instance.demand[request, 0], instance.demand[request, 1]
    start, fewer = plan.start[request], 0
    for slot in range(start, start + instance.duration[request]):
        plan.load[machine, slot, 0] -= cpu
        plan.load[machine, slot, 1] -= memory
        plan.load[machine, slot, 2] -= 1
        fewer += plan.load[machine, slot, 2] == 0
    pool, busy = plan.pool[machine], plan.busy[machine]
    plan.cost[0] += cost_of(instance, pool, busy - fewer) - cost_of(instance, pool, busy)
    plan.busy[machine] = busy - fewer
    plan.held[machine] -= 1
    plan.host[replica] = -1
    if plan.held[machine] == 0:
        _give_back(instance, plan, machine)


@kernel
def _has_room(instance, plan, request, machine):
    """Return whether a machine has room for one more replica of a request."""
    pool, start, load = plan.pool[machine], plan.start[request], plan.load[machine]
    cpu = instance.capacity[pool, 0] - instance.demand[request, 0]
    memory = instance.capacity[pool, 1] - instance.demand[request, 1]
    for slot in range(start, start + instance.duration[request]):
        if load[slot, 0] > cpu or load[slot, 1] > memory:
            return False
    return True


@kernel
def _labelled(plan, pool, label):
    """Return the leased machine of a pool with a label, -1 for none."""
    machine = plan.head[pool]
    while machine >= 0 and plan.label[machine] != label:
        machine = plan.after[machine]
    return machine


@kernel
def clear(instance, plan):
    """Take all replicas from their machines."""
    for replica in range(len(plan.host)):
        if plan.host[replica] >= 0:
            take(instance, plan, replica)
    plan.cost[0] = 0.0


@kernel
def read(instance, plan, genes):
    """Build the plan of a vector, (n + 2 R,): starts, pools as indices of legal lists, labels.

    A replica for which its machine has no room gets one of its own.
    """
    clear(instance, plan)
    n, replicas = len(instance.duration), len(instance.request)
    for request in range(n):
        if not served(instance, request):
            continue
        plan.start[request] = genes[request]
        for replica in range(instance.first[request], instance.first[request + 1]):
            pool = instance.legal[instance.legal_first[request] + genes[n + replica]]
            label = genes[n + replicas + replica]
            machine = _labelled(plan, pool, label)
            if machine >= 0 and not _has_room(instance, plan, request, machine):
                machine, label = -1, -1
            if machine < 0:
                machine = plan.free[plan.num_free[0] - 1]
                lease(instance, plan, machine, pool)
                plan.label[machine] = label
            put(instance, plan, replica, machine)


@kernel
def write(instance, plan, genes):
    """Write the vector of a plan, (n + 2 R,): the machines of a pool are numbered by replicas."""
    n, replicas = len(instance.duration), len(instance.request)
    genes[:] = 0
    plan.label[:] = -1
    for request in range(n):
        if not served(instance, request):
            continue
        genes[request] = plan.start[request]
        low = instance.legal_first[request]
        for replica in range(instance.first[request], instance.first[request + 1]):
            machine = plan.host[replica]
            pool = plan.pool[machine]
            if plan.label[machine] < 0:
                plan.label[machine] = _next_label(plan, pool)
            index = 0
            while instance.legal[low + index] != pool:
                index += 1
            genes[n + replica] = index
            genes[n + replicas + replica] = plan.label[machine]


@kernel
def _next_label(plan, pool):
    """Return the first number that no machine of a pool has."""
    largest, machine = -1, plan.head[pool]
    while machine >= 0:
        largest = max(largest, plan.label[machine])
        machine = plan.after[machine]
    return largest + 1


@kernel
def evaluate_all(instance, plan, X, cost, excess):
    """Write the cost of vectors, (k, n + 2 R), in USD, and their excess machines; both (k,)."""
    for k in range(len(X)):
        read(instance, plan, X[k])
        cost[k], excess[k] = plan.cost[0], 0.0
        for offer in range(len(instance.max_machines)):
            limit = instance.max_machines[offer]
            if 0 <= limit < plan.leased[offer]:
                excess[k] += (plan.leased[offer] - limit) / max(1, limit)
