"""``retime``: cheaper starts and machines for the plans of a front; replicas stay in their pools.

The searches over vectors leave the machines of a pool to a decoder that takes requests in the order
in which they start. Here plans are finished: a vector says on which machine of its pool each
replica runs. Latency and interruption stay, cost falls. One round after another improves all plans
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


# -- moves -----------------------------------------------------------------------------------------

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


# -- the method ------------------------------------------------------------------------------------

#: Plans that are improved between two looks at the archive, where there is time enough.
BATCH = 32
#: Seconds of work between two looks at the clock, about.
LOOK_SECONDS = 0.05
#: Changes of a plan in one round, at most.
MOST_CHANGES = 10**6


class MachineEncoder(Encoder):
    """Genes of `TemporalEncoder`, then for every replica a number of a machine in its pool.

    A replica for which its machine has no room gets one of its own.
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
    rounds = _Rounds(search, encoder)
    changes = len(task.problem.requests)
    while not search.finished and rounds.improve_all(changes):
        changes = min(2 * changes, MOST_CHANGES)
    return search.conclude("retime", {})


class _Rounds:
    """Improves plans in pieces of work; with a time limit the clock is asked between them."""

    def __init__(self, search: VectorSearch, encoder: MachineEncoder):
        self._search, self._encoder = search, encoder
        self._random = search.rng.integers(0, 2**64, size=1, dtype=np.uint64)
        self._timed = search.budget.seconds_limit is not None
        self._affordable = 1  # changes of a piece; the first one loads kernels

    def improve_all(self, changes: int) -> bool:
        """Improve each plan of the archive by so many changes; return whether there are plans."""
        search = self._search
        search.archive.settle()
        X = search.archive.result()
        X = X[search.rng.permutation(len(X))]
        done = 0
        while done < len(X) and not search.finished:
            rows = max(1, min(BATCH, self._affordable // changes)) if self._timed else BATCH
            self._improve(X[done : done + rows], changes)
            done += rows
        return len(X) > 0

    def _improve(self, X: np.ndarray, changes: int) -> None:
        """Improve some plans by so many changes each, or as many as the budget allows."""
        search, size = self._search, len(X)
        left = min(changes, search.budget.allow(size * (changes + 1)) // size - 1)
        while left > 0 and not search.finished:
            piece = min(left, max(1, self._affordable // size)) if self._timed else left
            began = search.budget.seconds
            X = self._encoder.improve(X, piece, self._random)
            pace = (search.budget.seconds - began) / (piece * size)
            self._affordable = max(1, int(LOOK_SECONDS / max(pace, 1e-9)))
            search.budget.spend(piece * size)
            left -= piece
        search.evaluate(X)
