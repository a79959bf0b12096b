"""The temporal problem, one decision at a time: the start of a request, then a pool per replica.

A pool is an offer, firm or spot. Its machines are filled first-fit. A firm machine costs
``min(on-demand x busy slots, reserved x T)``, so that costs never fall as machines fill.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from placeopt.core.fronts.values import Objective
from placeopt.core.interfaces import DecisionSequence, illegal_action
from placeopt.core.kernels.compile import kernel
from placeopt.core.outside import checked_action
from placeopt.temporal.instance import Temporal

#: Entries of `SequenceState.now`.
POSITION, START, LEFT, ITEMS, MACHINES = range(5)


class SequenceArrays(NamedTuple):
    """The instance: n requests in the order of decision, P pools, O offers."""

    demand: np.ndarray  # (n, 2) vCPU, memory of one replica
    duration: np.ndarray  # (n,) slots
    replicas: np.ndarray  # (n,)
    legal: np.ndarray  # (n, P) bool
    latency: np.ndarray  # (n, P) ms
    frequency: np.ndarray  # (P,) share of interruptions, 0 for firm pools
    offer: np.ndarray  # (P,)
    capacity: np.ndarray  # (P, 2) vCPU, memory of one machine
    per_slot: np.ndarray  # (P,) USD per busy slot, inf where not offered
    whole: np.ndarray  # (P,) USD for the horizon, inf where not offered
    max_machines: np.ndarray  # (O,) machines that may be leased
    horizon: int


class SequenceState(NamedTuple):
    """What has been decided: R replicas, called items, on machines.

    The items of a machine are a linked list, the last one first.
    """

    now: np.ndarray  # (5,) position, start (-1: open), replicas left, items, machines
    worst_latency: np.ndarray  # (1,) of the present request's replicas so far, ms
    starts: np.ndarray  # (n,)
    item_start: np.ndarray  # (R,)
    item_request: np.ndarray  # (R,)
    item_next: np.ndarray  # (R,) next item of the machine, -1 for none
    machine_pool: np.ndarray  # (R,)
    machine_first: np.ndarray  # (R,) first item, -1 for none
    machine_busy: np.ndarray  # (R,) busy slots
    leased: np.ndarray  # (O,) machines


@kernel
def _fits_at(instance, state, machine, request, moment):
    """Return whether a machine has room for one more replica of a request in slot `moment`."""
    cpu, memory = instance.demand[request, 0], instance.demand[request, 1]
    pool, item = state.machine_pool[machine], state.machine_first[machine]
    while item >= 0:
        begin, other = state.item_start[item], state.item_request[item]
        if begin <= moment < begin + instance.duration[other]:
            cpu += instance.demand[other, 0]
            memory += instance.demand[other, 1]
        item = state.item_next[item]
    return cpu <= instance.capacity[pool, 0] and memory <= instance.capacity[pool, 1]


@kernel
def _fits(instance, state, machine, request, start):
    """Return whether one more replica fits in a machine from `start` to its end.

    The load rises where an item starts, so that only these slots and `start` are checked.
    """
    end = start + instance.duration[request]
    moment, item = start, state.machine_first[machine]
    while True:
        if start <= moment < end and not _fits_at(instance, state, machine, request, moment):
            return False
        if item < 0:
            return True
        moment, item = state.item_start[item], state.item_next[item]


@kernel
def _newly_busy(instance, state, machine, start, end):
    """Return the number of slots in [start, end) in which the machine is idle now."""
    idle, moment = 0, start
    while moment < end:
        reach, following = moment, end
        item = state.machine_first[machine]
        while item >= 0:
            begin = state.item_start[item]
            finish = begin + instance.duration[state.item_request[item]]
            if begin <= moment < finish:
                reach = max(reach, finish)
            elif begin > moment:
                following = min(following, begin)
            item = state.item_next[item]
        if reach > moment:
            moment = reach
        else:
            idle += following - moment
            moment = following
    return idle


@kernel
def _price(instance, pool, busy):
    """Return what a machine that is busy for some slots costs, USD."""
    per_slot = instance.per_slot[pool] * busy if busy > 0 else 0.0
    return min(per_slot, instance.whole[pool])


@kernel
def _first_fit(instance, state, pool):
    """Return the machine that takes the next replica in a pool, -1 if there is none.

    It is an open machine, or the next new one.
    """
    request, start, machines = state.now[POSITION], state.now[START], state.now[MACHINES]
    if not instance.legal[request, pool]:
        return -1
    for machine in range(machines):
        in_pool = state.machine_pool[machine] == pool
        if in_pool and _fits(instance, state, machine, request, start):
            return machine
    offer = instance.offer[pool]
    return machines if state.leased[offer] < instance.max_machines[offer] else -1


@kernel
def _cost(instance, state, pool, machine, cost):
    """Write what the next replica adds to (6), (7) and (8) into `cost`, shape (3,).

    Returns by how many slots the machine is busy for longer.
    """
    request, start = state.now[POSITION], state.now[START]
    n, duration = len(instance.duration), instance.duration[request]
    cost[0] = max(0.0, instance.latency[request, pool] - state.worst_latency[0]) / n
    busy, more = 0, duration
    if machine < state.now[MACHINES]:
        busy = state.machine_busy[machine]
        more = _newly_busy(instance, state, machine, start, start + duration)
    paid = _price(instance, pool, busy) if busy > 0 else 0.0
    cost[1] = _price(instance, pool, busy + more) - paid
    cost[2] = instance.frequency[pool] / (n * instance.replicas[request])
    return more


@kernel
def _starts(instance, request):
    """Return how many start slots a request can have."""
    return max(0, instance.horizon - instance.duration[request] + 1)


@kernel
def _mask(instance, state, mask):
    """Write which actions are legal into `mask`, bool of shape (num_actions,)."""
    mask[:] = False
    request = state.now[POSITION]
    if request == len(instance.duration):
        return
    if state.now[START] < 0:
        mask[: _starts(instance, request)] = True
        return
    for pool in range(len(instance.frequency)):
        mask[pool] = _first_fit(instance, state, pool) >= 0


@kernel
def _costs(instance, state, costs):
    """Write what each action adds into `costs`, shape (num_actions, 3); inf if it is illegal."""
    costs[:] = np.inf
    request = state.now[POSITION]
    if request == len(instance.duration):
        return
    if state.now[START] < 0:
        costs[: _starts(instance, request)] = 0.0
        return
    for pool in range(len(instance.frequency)):
        machine = _first_fit(instance, state, pool)
        if machine >= 0:
            _cost(instance, state, pool, machine, costs[pool])


@kernel
def _place(instance, state, pool, cost):
    """Place the next replica in a pool, in place in `state` and `cost`; False if illegal."""
    request, start, item = state.now[POSITION], state.now[START], state.now[ITEMS]
    machine = _first_fit(instance, state, pool)
    if machine < 0:
        return False
    more = _cost(instance, state, pool, machine, cost)
    if machine == state.now[MACHINES]:
        state.now[MACHINES] += 1
        state.leased[instance.offer[pool]] += 1
        state.machine_pool[machine], state.machine_first[machine] = pool, -1
        state.machine_busy[machine] = 0
    state.item_start[item], state.item_request[item] = start, request
    state.item_next[item], state.machine_first[machine] = state.machine_first[machine], item
    state.machine_busy[machine] += more
    state.worst_latency[0] = max(state.worst_latency[0], instance.latency[request, pool])
    state.now[ITEMS] += 1
    state.now[LEFT] -= 1
    if state.now[LEFT] == 0:
        state.now[POSITION] += 1
        state.now[START] = -1
    return True


@kernel
def _take(instance, state, action, cost):
    """Decide a start or a pool, in place in `state` and `cost`; return whether it was legal."""
    request = state.now[POSITION]
    if request == len(instance.duration):
        return False
    if state.now[START] >= 0:
        return action < len(instance.frequency) and _place(instance, state, action, cost)
    if action + instance.duration[request] > instance.horizon:
        return False
    state.now[START], state.now[LEFT] = action, instance.replicas[request]
    state.starts[request] = action
    state.worst_latency[0] = 0.0
    return True


class TemporalSequence(DecisionSequence):
    """Requests one by one, the largest (duration x size x replicas) first.

    Actions are slots while the start of a request is decided, then pools: ``2 x offer`` is firm,
    ``2 x offer + 1`` spot.
    """

    problem: Temporal

    #: Columns of `features`: 0 the decision is a start, 1 it is a pool; of a slot, 2 itself over
    #: the horizon, 3 the share of replicas that run then; of a pool, 4 spot, 5 interruption,
    #: 6 latency, 7 added cost, 8 whether an open machine fits; of the request, 9 vCPU, 10 memory,
    #: 11 duration, 12 replicas left.
    num_features = 13
    costs_never_fall = True

    def __init__(self, problem: Temporal, objectives: Sequence[Objective]):
        super().__init__(problem, objectives)
        self._sizes = problem.arrays.demands / np.maximum(problem.arrays.capacities.max(axis=0), 1)
        work = problem.arrays.durations * problem.arrays.replicas
        self.order = np.argsort(-self._sizes.sum(axis=1) * work, kind="stable")
        self.arrays = self._arrays()
        self.num_actions = max(problem.horizon_slots, 2 * len(problem.offers))
        self.decisions = int(len(self.order) + self.arrays.replicas.sum())
        whole = np.minimum(self.arrays.per_slot * problem.horizon_slots, self.arrays.whole)
        self._max_price = float(whole[np.isfinite(whole)].max(initial=0)) or 1.0
        latency = self.arrays.latency
        self._max_latency = max(1e-9, float(latency[np.isfinite(latency)].max(initial=0)))

    def _arrays(self) -> SequenceArrays:
        problem, numbers, order = self.problem, self.problem.arrays, self.order
        offers = range(len(problem.offers))
        per_slot = np.array(
            [problem.slot_price(k, p) for k in offers for p in ("on-demand", "spot")]
        )
        reserved = [problem.slot_price(k, "reserved") * problem.horizon_slots for k in offers]
        whole = np.array([price for usd in reserved for price in (usd, math.inf)])
        limits = numbers.max_machines
        return SequenceArrays(
            demand=numbers.demands[order],
            duration=numbers.durations[order],
            replicas=numbers.replicas[order],
            legal=np.repeat(numbers.usable[order], 2, axis=1)
            & np.isfinite(np.minimum(per_slot, whole)),
            latency=np.repeat(numbers.latencies[order], 2, axis=1),
            frequency=np.array([f for o in problem.offers for f in (0.0, o.frequency("spot"))]),
            offer=np.repeat(np.arange(len(offers)), 2),
            capacity=np.repeat(numbers.capacities, 2, axis=0),
            per_slot=per_slot,
            whole=whole,
            max_machines=np.where(limits < 0, numbers.first[-1], limits),
            horizon=problem.horizon_slots,
        )

    def reset(self, rng: np.random.Generator | None = None) -> SequenceState:
        """Return the state before the first decision; episodes are not random."""
        item, machine = np.zeros((2, 3, int(self.arrays.replicas.sum())), dtype=np.int64)
        return SequenceState(
            now=np.array([0, -1, 0, 0, 0]),
            worst_latency=np.zeros(1),
            starts=np.full(len(self.order), -1),
            item_start=item[0],
            item_request=item[1],
            item_next=item[2],
            machine_pool=machine[0],
            machine_first=machine[1],
            machine_busy=machine[2],
            leased=np.zeros(len(self.problem.offers), dtype=np.int64),
        )

    def remaining(self, state: SequenceState) -> int:
        """Return how many decisions are still to be made."""
        position = int(state.now[POSITION])
        if position == len(self.order):
            return 0
        replicas = self.arrays.replicas
        later = int(replicas[position + 1 :].sum()) + len(self.order) - position - 1
        return later + int(state.now[LEFT] if state.now[START] >= 0 else replicas[position] + 1)

    def stage(self, state: SequenceState) -> int:
        """Return how many requests are complete."""
        return int(state.now[POSITION])

    def mask(self, state: SequenceState) -> np.ndarray:
        """Return the legal slots or pools."""
        mask = np.empty(self.num_actions, dtype=np.bool_)
        _mask(self.arrays, state, mask)
        return mask

    def step(self, state: SequenceState, action: int) -> np.ndarray:
        """Decide a start or a pool; the cost is the increment of each objective."""
        cost = np.zeros(3)
        number = checked_action(action, self.num_actions)
        if not _take(self.arrays, state, number, cost):
            raise illegal_action(number)
        return cost[self._columns]

    def costs(self, state: SequenceState) -> np.ndarray:
        """Return the increments that each action would have; inf where illegal."""
        costs = np.empty((self.num_actions, 3))
        _costs(self.arrays, state, costs)
        return costs[:, self._columns]

    def features(self, state: SequenceState) -> np.ndarray:
        """Return what is known of every slot or pool; see `num_features`."""
        table = np.zeros((self.num_actions, self.num_features), dtype=np.float32)
        position = int(state.now[POSITION])
        if position == len(self.order):
            return table
        arrays, mask = self.arrays, self.mask(state)
        legal = np.flatnonzero(mask)
        if state.now[START] < 0:
            table[legal, 0] = 1
            table[legal, 2] = legal / arrays.horizon
            table[legal, 3] = self._activity(state)[legal]
            left = arrays.replicas[position]
        else:
            costs = np.empty((self.num_actions, 3))
            _costs(arrays, state, costs)
            table[legal, 1] = 1
            table[legal, 4] = legal % 2
            table[legal, 5] = arrays.frequency[legal]
            table[legal, 6] = arrays.latency[position, legal] / self._max_latency
            table[legal, 7] = costs[legal, 1] / self._max_price
            machines = state.now[MACHINES]
            table[legal, 8] = [_first_fit(arrays, state, pool) < machines for pool in legal]
            left = state.now[LEFT]
        table[legal, 9:11] = np.minimum(self._sizes[self.order[position]], 1)
        table[legal, 11] = arrays.duration[position] / arrays.horizon
        table[legal, 12] = left / arrays.replicas.max()
        return np.clip(table, -1, 1)

    def _activity(self, state: SequenceState) -> np.ndarray:
        """Return the share of the replicas placed so far that run in each slot, (horizon,)."""
        items, horizon = int(state.now[ITEMS]), self.arrays.horizon
        begin = state.item_start[:items]
        end = begin + self.arrays.duration[state.item_request[:items]]
        change = np.zeros(horizon + 1)
        np.add.at(change, begin, 1)
        np.add.at(change, np.minimum(end, horizon), -1)
        return change.cumsum()[:-1] / max(1, items)

    def plan(self, state: SequenceState) -> dict[str, Any]:
        """Return starts and machines in the instance's own names."""
        names = [self.problem.requests[k].name for k in self.order]
        placed = [0] * len(names)
        replicas = []
        for position in state.item_request[: state.now[ITEMS]].tolist():
            replicas.append((names[position], placed[position]))
            placed[position] += 1
        starts = zip(names, state.starts.tolist(), strict=True)
        return {
            "starts": {name: slot for name, slot in starts if slot >= 0},
            "instances": [
                self._machine(state, machine, replicas) for machine in range(state.now[MACHINES])
            ],
        }

    def _machine(
        self, state: SequenceState, machine: int, replicas: list[tuple[str, int]]
    ) -> dict[str, Any]:
        """Return a machine of the plan; `replicas` are those of all items."""
        pool, item = int(state.machine_pool[machine]), int(state.machine_first[machine])
        hosted = []
        while item >= 0:
            hosted.append(replicas[item])
            item = int(state.item_next[item])
        pricing = "spot" if pool % 2 else "on-demand"
        hourly = self.arrays.per_slot[pool] * state.machine_busy[machine]
        if pool % 2 == 0 and self.arrays.whole[pool] < hourly:
            pricing = "reserved"
        offer = self.problem.offers[pool // 2]
        return {
            "location": offer.location,
            "size": offer.size,
            "pricing": pricing,
            "replicas": hosted[::-1],
        }
