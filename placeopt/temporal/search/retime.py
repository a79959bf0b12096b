"""``retime``: cheaper starts and machines for the plans of a front; replicas stay in their pools.

The searches over vectors leave the machines of a pool to a decoder that takes requests in the order
in which they start. Here plans are finished: a vector says on which machine each replica
runs. Latency and interruption stay, cost falls. One round after another improves all plans
of the archive, each by twice as many changes as the round before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from placeopt.core.fronts.front import Front
from placeopt.core.fronts.values import Objective, Plan
from placeopt.core.interfaces import Encoder
from placeopt.core.kernels.common import below, copy_row
from placeopt.core.kernels.compile import kernel
from placeopt.core.task import Task
from placeopt.evolve.search import Variant, VectorSearch
from placeopt.temporal.encoder import TemporalEncoder
from placeopt.temporal.pools import PoolArrays, served
from placeopt.temporal.problem import Temporal
from placeopt.temporal.search import seeds

# -- machines --------------------------------------------------------------------------------------

#: Requests that leave together, at most.
TOGETHER = 3
#: Costs count as equal up to this part of them: sums are rounded.
EQUAL = 1e-12


class Machines(NamedTuple):
    """A plan: n requests, R replicas, T slots, and R + 1 machines, leased or free."""

    start: np.ndarray  # (n,) first slot of each request
    host: np.ndarray  # (R,) machine of each replica, -1 for none
    pool: np.ndarray  # (R + 1,) of each machine, -1 for those that are free
    load: np.ndarray  # (R + 1, T, 3) vCPU, memory and replicas in each slot
    busy: np.ndarray  # (R + 1,) slots with a replica
    leased: np.ndarray  # (O,) machines of each offer
    cost: np.ndarray  # (1,) USD, the sum over machines
    chosen: np.ndarray  # (TOGETHER,) scratch: requests that leave
    old: np.ndarray  # (n,) starts of those that left
    old_host: np.ndarray  # (R,) machines of their replicas
    old_pool: np.ndarray  # (R,) pools of their replicas
    best: np.ndarray  # (R,) machines of a request's replicas at its best start


def new_machines(instance: PoolArrays) -> Machines:
    """Return the plan of no replica."""
    n, replicas, slots = len(instance.duration), len(instance.request), instance.horizon
    zeros = partial(np.zeros, dtype=np.int64)
    return Machines(
        start=zeros(n),
        host=np.full(replicas, -1),
        pool=np.full(replicas + 1, -1),
        load=zeros((replicas + 1, slots, 3)),
        busy=zeros(replicas + 1),
        leased=zeros(len(instance.max_machines)),
        cost=np.zeros(1),
        chosen=zeros(TOGETHER),
        old=zeros(n),
        old_host=zeros(replicas),
        old_pool=zeros(replicas),
        best=zeros(replicas),
    )


@kernel
def _free(plan):
    """Return a free machine: there is one more than replicas."""
    machine = 0
    while plan.pool[machine] >= 0:
        machine += 1
    return machine


@kernel
def cost_of(instance, pool, busy):
    """Return the USD of a machine that is busy for so many slots."""
    return min(instance.price[pool, 0] * busy, instance.price[pool, 1])


@kernel
def put(instance, plan, replica, machine, pool):
    """Put a replica on a machine of a pool, whether there is room or not; it is leased if free."""
    if plan.pool[machine] < 0:
        plan.pool[machine] = pool
        plan.leased[instance.offer[pool]] += 1
    request = instance.request[replica]
    cpu, memory = instance.demand[request, 0], instance.demand[request, 1]
    start, more = plan.start[request], 0
    for slot in range(start, start + instance.duration[request]):
        plan.load[machine, slot, 0] += cpu
        plan.load[machine, slot, 1] += memory
        more += plan.load[machine, slot, 2] == 0
        plan.load[machine, slot, 2] += 1
    busy = plan.busy[machine]
    plan.cost[0] += cost_of(instance, pool, busy + more) - cost_of(instance, pool, busy)
    plan.busy[machine] = busy + more
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
    plan.host[replica] = -1
    if plan.busy[machine] == 0:
        plan.pool[machine] = -1
        plan.leased[instance.offer[pool]] -= 1


@kernel
def _added(instance, plan, request, machine, pool):
    """Return what one more replica of a request adds on a machine, in USD; inf for no room."""
    start, load, idle = plan.start[request], plan.load[machine], 0
    cpu = instance.capacity[pool, 0] - instance.demand[request, 0]
    memory = instance.capacity[pool, 1] - instance.demand[request, 1]
    for slot in range(start, start + instance.duration[request]):
        if load[slot, 0] > cpu or load[slot, 1] > memory:
            return np.inf
        idle += load[slot, 2] == 0
    busy = plan.busy[machine]
    return cost_of(instance, pool, busy + idle) - cost_of(instance, pool, busy)


@kernel
def _take_all(instance, plan, request):
    """Take those replicas of a request that are on machines from them."""
    for replica in range(instance.first[request], instance.first[request + 1]):
        if plan.host[replica] >= 0:
            take(instance, plan, replica)


@kernel
def read(instance, plan, genes):
    """Build the plan of a vector, (n + 2 R,): starts, pools as indices of legal lists, machines.

    A replica whose machine is of another pool, or has no room for it, gets one of its own.
    """
    n, replicas = len(instance.duration), len(instance.request)
    for request in range(n):
        _take_all(instance, plan, request)
    plan.cost[0] = 0.0
    for request in range(n):
        if not served(instance, request):
            continue
        plan.start[request] = genes[request]
        for replica in range(instance.first[request], instance.first[request + 1]):
            pool = instance.legal[instance.legal_first[request] + genes[n + replica]]
            machine = genes[n + replicas + replica]
            known = plan.pool[machine]
            if known >= 0 and (
                known != pool or _added(instance, plan, request, machine, pool) == np.inf
            ):
                machine = _free(plan)
            put(instance, plan, replica, machine, pool)


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


# -- changes ---------------------------------------------------------------------------------------


@kernel
def _cheapest(instance, plan, replica, pool):
    """Return the machine of a pool on which a replica adds least, and what, in USD; -1 for none.

    A free machine has room: the pools of a plan are legal.
    """
    request, best, found = instance.request[replica], np.inf, -1
    offer, duration = instance.offer[pool], instance.duration[request]
    for machine in range(len(plan.pool)):
        if plan.pool[machine] == pool:
            more = _added(instance, plan, request, machine, pool)
            if more < best:
                best, found = more, machine
    limit, more = instance.max_machines[offer], cost_of(instance, pool, duration)
    if more < best and not 0 <= limit <= plan.leased[offer]:
        return _free(plan), more
    return found, best


@kernel
def _come_back(instance, plan, request, random):
    """Put a request back at its cheapest start, on its pools; return whether there is one."""
    begin, end = instance.first[request], instance.first[request + 1]
    starts = instance.horizon - instance.duration[request] + 1
    first, before, best, best_start = below(random, starts), plan.cost[0], np.inf, -1
    for k in range(starts):
        plan.start[request] = (first + k) % starts
        total, replica = 0.0, begin
        while replica < end:
            machine, more = _cheapest(instance, plan, replica, plan.old_pool[replica])
            total += more
            if total >= best:
                break
            put(instance, plan, replica, machine, plan.old_pool[replica])
            replica += 1
        if replica == end:
            best, best_start = total, plan.start[request]
            copy_row(plan.host[begin:end], plan.best[begin:end])
        _take_all(instance, plan, request)
        plan.cost[0] = before  # without what rounding adds
    if best_start >= 0:
        _put_all(instance, plan, request, best_start, plan.best)
    return best_start >= 0


@kernel
def _put_all(instance, plan, request, start, host):
    """Put the replicas of a request on machines of their pools, from a start on."""
    plan.start[request] = start
    for replica in range(instance.first[request], instance.first[request + 1]):
        put(instance, plan, replica, host[replica], plan.old_pool[replica])


@kernel
def _choose(instance, plan, random):
    """Write which requests leave, and where they are, into `plan`; return how many."""
    count = 0
    for _ in range(1 + below(random, TOGETHER)):
        request = below(random, len(instance.duration))
        new = served(instance, request)
        for k in range(count):
            new = new and plan.chosen[k] != request
        if new:
            plan.chosen[count], plan.old[request] = request, plan.start[request]
            for replica in range(instance.first[request], instance.first[request + 1]):
                plan.old_host[replica] = plan.host[replica]
                plan.old_pool[replica] = plan.pool[plan.host[replica]]
            count += 1
    return count


@kernel
def _try_change(instance, plan, random):
    """Let some requests leave and come back, unless the plan becomes dearer."""
    most = plan.cost[0] * (1 + EQUAL)
    count, back = _choose(instance, plan, random), 0
    for k in range(count):
        _take_all(instance, plan, plan.chosen[k])
    while back < count and _come_back(instance, plan, plan.chosen[back], random):
        back += 1
    if back < count or plan.cost[0] > most:
        for k in range(back):
            _take_all(instance, plan, plan.chosen[k])
        for k in range(count):
            request = plan.chosen[k]
            _put_all(instance, plan, request, plan.old[request], plan.old_host)


@kernel
def improve_all(instance, plan, X, steps, random):
    """Improve vectors, shape (k, n + 2 R), in place, by so many random changes each.

    `random` is a uint64 array, shape (1,).
    """
    n, replicas = len(plan.start), len(plan.host)
    for k in range(len(X)):
        read(instance, plan, X[k])
        for _ in range(steps):
            _try_change(instance, plan, random)
        copy_row(plan.start, X[k])
        for replica in range(replicas):
            X[k, n + replicas + replica] = max(0, plan.host[replica])


# -- the method ------------------------------------------------------------------------------------

#: Plans that are improved together, at most, and slots of replicas that are looked at between two
#: looks at the clock, about.
BATCH, WORK = 32, 3 * 10**6


class MachineEncoder(Encoder):
    """Genes of `TemporalEncoder`, then for every replica the number of its machine: see `read`."""

    problem: Temporal
    trusted = True

    def __init__(self, problem: Temporal, objectives: Sequence[Objective]):
        super().__init__(problem, objectives)
        self.packed = TemporalEncoder(problem, problem.objectives)
        self.packed.trusted = True
        self.arrays = self.packed.arrays
        replicas = len(self.arrays.request)
        self.upper = np.concatenate((self.packed.upper, np.full(replicas, replicas)))
        self.lower = np.zeros_like(self.upper)
        self.num_genes, self.num_constraints = len(self.upper), self.packed.num_constraints
        self._plan = new_machines(self.arrays)

    def evaluate(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return F (n, objectives), and G as `TemporalEncoder.evaluate` does."""
        X = self.checked(X)
        F = self.packed.evaluate(X[:, : self.packed.num_genes])[0]
        cost, excess = np.empty(len(X)), np.empty(len(X))
        evaluate_all(self.arrays, self._plan, X, cost, excess)
        F[:, 1] = cost
        return F[:, self._columns], self.packed.violations(excess)

    def placed(self, X: np.ndarray) -> np.ndarray:
        """Return the vectors of the plans of vectors of `TemporalEncoder`."""
        bins = np.array([self.packed.bins_of(genes) for genes in X], dtype=np.int64)
        return np.hstack((X, bins.reshape(len(X), -1)))

    def encode(self, plan: Plan) -> np.ndarray:
        """Return the vector of a plan."""
        with self.problem.reading(plan):
            return self.packed.with_machines(plan)

    def decode(self, genes: np.ndarray) -> Plan:
        """Return the plan of one vector."""
        plan, genes = self._plan, self.checked_one(genes)
        read(self.arrays, plan, genes)
        leased = np.flatnonzero(plan.busy)
        rows = np.stack((leased, plan.pool[leased], plan.busy[leased]), axis=1)
        return self.packed.plan_of(genes.tolist(), plan.host.tolist(), rows.tolist())

    def improve(self, X: np.ndarray, changes: int, random: np.ndarray) -> np.ndarray:
        """Return the vectors X after so many random changes each; `random`, (1,), advances."""
        X = self.checked(X).copy()
        improve_all(self.arrays, self._plan, X, changes, random)
        return X


@dataclass(frozen=True)
class _Finished(Variant):
    """The search over `MachineEncoder`; greedy plans come from `run`, without a plan each."""

    seeded: bool = False

    def encoder(self, problem: Any, objectives: Sequence[Objective]) -> Encoder:
        return MachineEncoder(problem, objectives)

    def parameters(self) -> dict[str, Any]:
        return {}


def run(task: Task[Temporal]) -> Front:
    """Make the plans of `start` cheaper, or greedy ones, by changes of one to three requests each.

    Requests leave their machines and come back at the start, and on the machines, at which they
    cost least. A change that is tried counts as an evaluation.
    """
    search = VectorSearch(task, _Finished())
    encoder = search.encoder
    assert isinstance(encoder, MachineEncoder)
    X = search.first(0)
    if len(X) == 0:
        X = encoder.placed(seeds(encoder.packed, search.rng, search.seconds_to_seed))
    search.evaluate(X)
    random = search.rng.integers(0, 2**64, size=1, dtype=np.uint64)
    changes = len(task.problem.requests)
    most = max(changes, WORK // (len(encoder.arrays.request) * encoder.arrays.horizon))
    while not search.finished:
        search.archive.settle()
        X = search.archive.result()
        X, size = X[search.rng.permutation(len(X))], min(BATCH, most // changes)
        for part in (X[k : k + size] for k in range(0, len(X), size)):
            tried = search.budget.allow(len(part) * (changes + 1)) // len(part) - 1
            if tried > 0:
                part = encoder.improve(part, tried, random)
                search.budget.spend(tried * len(part))
            search.evaluate(part)
            if search.finished:
                break
        if len(X) == 0:
            break
        changes = min(2 * changes, most)
    return search.conclude("retime", {})
