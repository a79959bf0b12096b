"""``retime``: cheaper starts and machines for the plans of a front; replicas stay in their pools.

The searches over vectors leave the machines of a pool to a decoder that takes requests in the order
in which they start. Here plans are finished: a vector says on which machine each replica
runs. Latency and interruption stay, cost falls. One round after another improves all plans
of the archive, each by twice as many changes as the round before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from placeopt.core.fronts.front import Front
from placeopt.core.fronts.values import Objective, Plan
from placeopt.core.interfaces import Encoder
from placeopt.core.kernels.common import below
from placeopt.core.kernels.compile import inlined_kernel, kernel
from placeopt.core.problem import Problem
from placeopt.core.task import Task
from placeopt.evolve.search import Variant, VectorSearch
from placeopt.temporal.encoder import TemporalEncoder
from placeopt.temporal.pools import PoolArrays, served
from placeopt.temporal.problem import Temporal
from placeopt.temporal.search import seeds

# -- machines --------------------------------------------------------------------------------------


class Machines(NamedTuple):
    """A plan: n requests, R replicas, T slots, and R + 1 machines, leased or free."""

    start: np.ndarray  # (n,) first slot of each request
    host: np.ndarray  # (R,) machine of each replica, -1 for none
    pool: np.ndarray  # (R + 1,) of each machine, -1 for those that are free
    held: np.ndarray  # (R + 1,) replicas on each machine
    load: np.ndarray  # (R + 1, T, 3) vCPU, memory and replicas in each slot
    busy: np.ndarray  # (R + 1,) slots with a replica
    leased: np.ndarray  # (O,) machines of each offer
    cost: np.ndarray  # (1,) USD, the sum over machines


def new_machines(instance: PoolArrays) -> Machines:
    """Return the plan of no replica."""
    replicas = len(instance.request)
    machines = replicas + 1
    return Machines(
        start=np.zeros(len(instance.duration), dtype=np.int64),
        host=np.full(replicas, -1),
        pool=np.full(machines, -1),
        held=np.zeros(machines, dtype=np.int64),
        load=np.zeros((machines, instance.horizon, 3), dtype=np.int64),
        busy=np.zeros(machines, dtype=np.int64),
        leased=np.zeros(len(instance.max_machines), dtype=np.int64),
        cost=np.zeros(1),
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
        plan.pool[machine] = -1
        plan.leased[instance.offer[pool]] -= 1


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
def clear(instance, plan):
    """Take all replicas from their machines."""
    for replica in range(len(plan.host)):
        if plan.host[replica] >= 0:
            take(instance, plan, replica)
    plan.cost[0] = 0.0


@kernel
def read(instance, plan, genes):
    """Build the plan of a vector, (n + 2 R,): starts, pools as indices of legal lists, machines.

    A replica whose machine is of another pool, or has no room for it, gets one of its own.
    """
    clear(instance, plan)
    n, replicas = len(instance.duration), len(instance.request)
    for request in range(n):
        if not served(instance, request):
            continue
        plan.start[request] = genes[request]
        for replica in range(instance.first[request], instance.first[request + 1]):
            pool = instance.legal[instance.legal_first[request] + genes[n + replica]]
            machine = genes[n + replicas + replica]
            known = plan.pool[machine]
            if known >= 0 and (known != pool or not _has_room(instance, plan, request, machine)):
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


# -- moves -----------------------------------------------------------------------------------------

#: Requests that leave together, at most.
TOGETHER = 3
#: Requests that are drawn to find one that shares a pool with a given one.
MAX_COMPANIONS = 12
#: Costs count as equal up to this part of them: sums are rounded.
EQUAL, LESS = 1e-12, 1e-9


class Retiming(NamedTuple):
    """Arrays that a change borrows: n requests, R replicas, T slots, R + 1 machines."""

    chosen: np.ndarray  # (TOGETHER,) requests that leave
    start: np.ndarray  # (n,) starts of those that left
    host: np.ndarray  # (R,) machines of their replicas
    pool: np.ndarray  # (R,) pools of their replicas
    among: np.ndarray  # (R + 1,) machines that the request at hand may go to: leased, then free
    among_pool: np.ndarray  # (R + 1,) the pools that these are of, or would be
    added: np.ndarray  # (R + 1, T) what each of them costs more for each start, USD
    room: np.ndarray  # (R + 1, T) replicas for which it has room
    level: np.ndarray  # (T,) replicas for which a machine has room in each slot
    queue: np.ndarray  # (T,) slots, for the least of a window
    used: np.ndarray  # (R + 1,) replicas that each machine gets
    more: np.ndarray  # (O,) machines of each offer that would be leased
    pick: np.ndarray  # (R,) machine of each replica at a start
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
        among_pool=zeros(machines),
        added=np.zeros((machines, slots)),
        room=zeros(machines, slots),
        level=zeros(slots),
        queue=zeros(slots),
        used=zeros(machines),
        more=zeros(len(instance.max_machines)),
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
def _tabulate(instance, plan, moves, request, machine, pool):
    """Write `added` and `room` of a machine of a pool for all starts of a request.

    The least room of a window is that of the first of a queue of slots whose rooms increase.
    """
    load, level, queue = plan.load[machine], moves.level, moves.queue
    busy, duration = plan.busy[machine], instance.duration[request]
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
    """Tabulate where a request that left may go; return to how many machines.

    These are the leased machines of its pools, and as many free ones as its replicas could need.
    """
    count, free, first, last = 0, 0, instance.first[request], instance.first[request + 1]
    for machine in range(len(plan.pool)):
        pool, own = plan.pool[machine], False
        for replica in range(first, last if pool >= 0 else first):
            own = own or moves.pool[replica] == pool
        if own:
            moves.among[count], moves.among_pool[count] = machine, pool
            count += 1
    for replica in range(first, last):
        pool, before = moves.pool[replica], 0
        for other in range(first, replica):
            before += moves.pool[other] == pool
        cpu, memory = instance.capacity[pool, 0], instance.capacity[pool, 1]
        if before % _rooms(instance, request, cpu, memory) == 0:
            while plan.pool[free] >= 0:
                free += 1
            moves.among[count], moves.among_pool[count] = free, pool
            free, count = free + 1, count + 1
    for k in range(count):
        _tabulate(instance, plan, moves, request, moves.among[k], moves.among_pool[k])
    return count


@inlined_kernel
def _pick(instance, plan, moves, count, start, replica):
    """Return what a replica adds on the best machine of its pool, and its place; inf for none."""
    pool, best, result = moves.pool[replica], np.inf, 0
    offer = instance.offer[pool]
    limit = instance.max_machines[offer]
    full = 0 <= limit <= plan.leased[offer] + moves.more[offer]
    for k in range(count):
        machine = moves.among[k]
        if moves.among_pool[k] != pool or moves.used[k] >= moves.room[machine, start]:
            continue
        if full and plan.pool[machine] < 0 and moves.used[k] == 0:
            continue
        more = 0.0 if moves.used[k] > 0 else moves.added[machine, start]
        if more < best:
            best, result = more, k
    return best, result


@inlined_kernel
def _fill(instance, plan, moves, count, request, start, most):
    """Pick a machine for each replica of a request, where it adds least from a start on.

    Returns what they add in all, in USD; inf where that is `most` or more.
    """
    total = 0.0
    for k in range(count):
        moves.used[k] = 0
        moves.more[instance.offer[moves.among_pool[k]]] = 0
    for replica in range(instance.first[request], instance.first[request + 1]):
        more, k = _pick(instance, plan, moves, count, start, replica)
        total += more
        if total >= most:
            return np.inf
        if plan.pool[moves.among[k]] < 0 and moves.used[k] == 0:
            moves.more[instance.offer[moves.among_pool[k]]] += 1
        moves.used[k] += 1
        moves.pick[replica] = moves.among[k]
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
        _put_all(instance, plan, moves, request, best_start, moves.best)
    return best_start >= 0


@kernel
def _leave(instance, plan, moves, request, for_good):
    """Take the replicas of a request out; where they were is kept, unless `for_good`."""
    if not for_good:
        moves.start[request] = plan.start[request]
    for replica in range(instance.first[request], instance.first[request + 1]):
        if not for_good:
            moves.host[replica] = plan.host[replica]
            moves.pool[replica] = plan.pool[plan.host[replica]]
        take(instance, plan, replica)


@kernel
def _put_all(instance, plan, moves, request, start, host):
    """Put the replicas of a request on machines of their pools, from a start on."""
    plan.start[request] = start
    for replica in range(instance.first[request], instance.first[request + 1]):
        put(instance, plan, replica, host[replica], moves.pool[replica])


@kernel
def _choose(instance, plan, moves, random):
    """Write which requests leave into `moves.chosen`; return how many.

    The others are likely to share a pool with the first.
    """
    n, request, count = len(instance.duration), below(random, len(instance.duration)), 1
    if not served(instance, request):
        return 0
    moves.chosen[0] = request
    for _ in range(below(random, TOGETHER)):
        first = instance.first[request]
        replica = first + below(random, instance.first[request + 1] - first)
        pool, other = plan.pool[plan.host[replica]], request
        for _ in range(MAX_COMPANIONS):
            other = below(random, n)
            host = plan.host[instance.first[other]]  # -1 where it is not served
            if other != request and host >= 0 and plan.pool[host] == pool:
                break
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
        _leave(instance, plan, moves, moves.chosen[k], False)
    while back < count and _come_back(instance, plan, moves, moves.chosen[back], random):
        back += 1
    if back < count or plan.cost[0] > most:
        for k in range(back):
            _leave(instance, plan, moves, moves.chosen[k], True)
        for k in range(count):
            request = moves.chosen[k]
            _put_all(instance, plan, moves, request, moves.start[request], moves.host)


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
            n, replicas = len(plan.start), len(plan.host)
            for request in range(n):
                X[k, request] = plan.start[request]
            for replica in range(replicas):
                X[k, n + replicas + replica] = max(0, plan.host[replica])


# -- the method ------------------------------------------------------------------------------------

#: Plans that are improved together, at most, and slots of replicas that are looked at between two
#: looks at the clock, about.
BATCH, WORK = 32, 3 * 10**6
#: Changes of a plan in one round, at most.
MOST_CHANGES = 10**6


class MachineEncoder(Encoder):
    """Genes of `TemporalEncoder`, then for every replica the number of its machine.

    A replica whose machine is of another pool, or has no room for it, gets one of its own.
    """

    problem: Temporal

    def __init__(self, problem: Temporal, objectives: Sequence[Objective]):
        super().__init__(problem, objectives)
        self.packed = TemporalEncoder(problem, problem.objectives)
        self.packed.trusted = True
        self.arrays = self.packed.arrays
        replicas = len(self.arrays.request)
        self.upper = np.concatenate((self.packed.upper, np.full(replicas, replicas)))
        self.lower = np.zeros_like(self.upper)
        self.num_genes, self.num_constraints = len(self.upper), self.packed.num_constraints
        self._plan, self._moves = new_machines(self.arrays), new_moves(self.arrays)

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

    def sample(self, rng: np.random.Generator, count: int) -> np.ndarray:
        """Return vectors of random starts and pools."""
        return self.placed(self.packed.sample(rng, count))

    def encode(self, plan: Plan) -> np.ndarray:
        """Return the vector of a plan."""
        with self.problem.reading(plan):
            return self.packed.with_machines(plan)

    def decode(self, genes: np.ndarray) -> Plan:
        """Return the plan of one vector."""
        plan, genes = self._plan, self.checked_one(genes)
        read(self.arrays, plan, genes)
        leased = np.flatnonzero(plan.held)
        rows = np.stack((leased, plan.pool[leased], plan.busy[leased]), axis=1)
        return self.packed.plan_of(genes.tolist(), plan.host.tolist(), rows.tolist())

    def improve(self, X: np.ndarray, changes: int, random: np.ndarray) -> np.ndarray:
        """Return the vectors X after so many random changes each; `random`, (1,), advances."""
        X = self.checked(X).copy()
        improve_all(self.arrays, self._plan, self._moves, X, changes, random)
        return X


@dataclass(frozen=True)
class _Finished(Variant):
    """The search over `MachineEncoder`; greedy plans come from `run`, without a plan each."""

    seeded: bool = False

    def encoder(self, problem: Problem, objectives: Sequence[Objective]) -> Encoder:
        assert isinstance(problem, Temporal)
        encoder = MachineEncoder(problem, objectives)
        encoder.trusted = True
        return encoder

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
    work = max(1, WORK // (len(encoder.arrays.request) * encoder.arrays.horizon))
    while not search.finished:
        search.archive.settle()
        X = search.archive.result()
        if len(X) == 0:
            break
        X, size = X[search.rng.permutation(len(X))], max(1, min(BATCH, work // changes))
        for k in range(0, len(X), size):
            _improve(search, encoder, X[k : k + size], changes, work, random)
        changes = min(2 * changes, MOST_CHANGES)
    return search.conclude("retime", {})


def _improve(
    search: VectorSearch,
    encoder: MachineEncoder,
    X: np.ndarray,
    changes: int,
    work: int,
    random: np.ndarray,
) -> None:
    """Improve plans by so many changes each, or as many as the budget allows.

    About `work` changes are tried between two looks at the clock.
    """
    left = min(changes, search.budget.allow(len(X) * (changes + 1)) // len(X) - 1)
    while left > 0 and not search.finished:
        piece = min(left, max(1, work // len(X)))
        X = encoder.improve(X, piece, random)
        search.budget.spend(piece * len(X))
        left -= piece
    search.evaluate(X)
