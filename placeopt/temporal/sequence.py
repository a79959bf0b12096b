"""The temporal problem, one decision at a time: for each request a start slot, then a pool for every replica.

A pool is an offer, firm or spot. Its machines are filled first-fit; whether a firm machine is reserved or on demand follows
from how long it is busy, ``min(on-demand x busy slots, reserved x T)``, so costs never fall as machines fill.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from placeopt.core.errors import UsageError
from placeopt.core.front import Objective
from placeopt.core.interfaces import DecisionSequence
from placeopt.core.kernels.compile import kernel
from placeopt.temporal.instance import Temporal

#: Entries of `State.now`.
POSITION, START, LEFT, ITEMS, MACHINES = range(5)


class Rules(NamedTuple):
    """What does not change: the instance in whole numbers, requests in the order of decision."""

    demand: np.ndarray  # (requests, 2) cpu, memory of one replica
    duration: np.ndarray  # (requests,)
    replicas: np.ndarray  # (requests,)
    legal: np.ndarray  # (requests, pools) bool
    latency: np.ndarray  # (requests, pools) ms
    frequency: np.ndarray  # (pools,) share of interruptions, 0 for firm pools
    offer: np.ndarray  # (pools,)
    capacity: np.ndarray  # (pools, 2)
    per_slot: np.ndarray  # (pools,) USD per busy slot, inf where not offered
    whole: np.ndarray  # (pools,) USD for the horizon, inf where not offered
    most: np.ndarray  # (offers,) machines that may be leased
    horizon: int


class State(NamedTuple):
    """What has been decided: replicas (items) in machines; the items of a machine are a linked list."""

    now: (
        np.ndarray
    )  # position of the request, its start (-1: to be decided), replicas left, items, machines
    worst: np.ndarray  # (1,) largest latency of the present request's replicas so far
    starts: np.ndarray  # (requests,)
    item_start: np.ndarray  # (replicas in all,)
    item_request: np.ndarray
    item_next: np.ndarray
    machine_pool: np.ndarray
    machine_first: np.ndarray
    machine_busy: np.ndarray
    leased: np.ndarray  # (offers,)


@kernel
def _fits(rules, state, machine, request, start):
    """Whether one more replica fits in a machine from `start` on: the load is checked where it can rise."""
    cpu, memory = rules.demand[request, 0], rules.demand[request, 1]
    pool = state.machine_pool[machine]
    end = start + rules.duration[request]
    moment, item = start, state.machine_first[machine]
    while True:
        if start <= moment < end:
            load_cpu, load_memory = cpu, memory
            other = state.machine_first[machine]
            while other >= 0:
                begin, what = state.item_start[other], state.item_request[other]
                if begin <= moment < begin + rules.duration[what]:
                    load_cpu += rules.demand[what, 0]
                    load_memory += rules.demand[what, 1]
                other = state.item_next[other]
            if load_cpu > rules.capacity[pool, 0] or load_memory > rules.capacity[pool, 1]:
                return False
        if item < 0:
            return True
        moment, item = state.item_start[item], state.item_next[item]


@kernel
def _newly_busy(rules, state, machine, start, end):
    """Slots of [start, end) in which the machine is idle now."""
    idle, moment = 0, start
    while moment < end:
        reach, following = moment, end
        item = state.machine_first[machine]
        while item >= 0:
            begin = state.item_start[item]
            finish = begin + rules.duration[state.item_request[item]]
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
def _price(rules, pool, busy):
    return min(rules.per_slot[pool] * busy if busy > 0 else 0.0, rules.whole[pool])


@kernel
def _first_fit(rules, state, pool):
    """The machine that takes the next replica in a pool: an open one, ``machines`` for a new one, -1 if there is none."""
    request, start, machines = state.now[POSITION], state.now[START], state.now[MACHINES]
    if not rules.legal[request, pool]:
        return -1
    for machine in range(machines):
        if state.machine_pool[machine] == pool and _fits(rules, state, machine, request, start):
            return machine
    return machines if state.leased[rules.offer[pool]] < rules.most[rules.offer[pool]] else -1


@kernel
def _cost(rules, state, pool, machine, cost):
    """Write the increments of mean latency (6), cost (7) and mean interruption (8)."""
    request, start = state.now[POSITION], state.now[START]
    n = len(rules.duration)
    cost[0] = max(0.0, rules.latency[request, pool] - state.worst[0]) / n
    busy, more = 0, rules.duration[request]
    if machine < state.now[MACHINES]:
        busy = state.machine_busy[machine]
        more = _newly_busy(rules, state, machine, start, start + rules.duration[request])
    cost[1] = _price(rules, pool, busy + more) - (_price(rules, pool, busy) if busy > 0 else 0.0)
    cost[2] = rules.frequency[pool] / (n * rules.replicas[request])
    return more


@kernel
def _mask(rules, state, mask):
    mask[:] = False
    request = state.now[POSITION]
    if request == len(rules.duration):
        return
    if state.now[START] < 0:
        mask[: max(0, rules.horizon - rules.duration[request] + 1)] = True
        return
    for pool in range(len(rules.frequency)):
        mask[pool] = _first_fit(rules, state, pool) >= 0


@kernel
def _costs(rules, state, costs):
    costs[:] = np.inf
    request = state.now[POSITION]
    if request == len(rules.duration):
        return
    if state.now[START] < 0:
        costs[: max(0, rules.horizon - rules.duration[request] + 1)] = 0.0
        return
    for pool in range(len(rules.frequency)):
        machine = _first_fit(rules, state, pool)
        if machine >= 0:
            _cost(rules, state, pool, machine, costs[pool])


@kernel
def _place(rules, state, pool, cost):
    request, start, item = state.now[POSITION], state.now[START], state.now[ITEMS]
    machine = _first_fit(rules, state, pool)
    if machine < 0:
        return False
    more = _cost(rules, state, pool, machine, cost)
    if machine == state.now[MACHINES]:
        state.now[MACHINES] += 1
        state.leased[rules.offer[pool]] += 1
        state.machine_pool[machine], state.machine_first[machine], state.machine_busy[machine] = (
            pool,
            -1,
            0,
        )
    state.item_start[item], state.item_request[item] = start, request
    state.item_next[item], state.machine_first[machine] = state.machine_first[machine], item
    state.machine_busy[machine] += more
    state.worst[0] = max(state.worst[0], rules.latency[request, pool])
    state.now[ITEMS] += 1
    state.now[LEFT] -= 1
    if state.now[LEFT] == 0:
        state.now[POSITION] += 1
        state.now[START] = -1
    return True


@kernel
def _take(rules, state, action, cost):
    """Decide a start or a pool; return whether that was legal."""
    request = state.now[POSITION]
    if request == len(rules.duration):
        return False
    if state.now[START] >= 0:
        return action < len(rules.frequency) and _place(rules, state, action, cost)
    if action + rules.duration[request] > rules.horizon:
        return False
    state.now[START], state.now[LEFT] = action, rules.replicas[request]
    state.starts[request] = action
    state.worst[0] = 0.0
    return True


class TemporalSequence(DecisionSequence):
    """Requests one by one, the largest (duration x size x replicas) first.

    Actions are slots while the start of a request is decided, then pools: ``2 x offer`` is firm, ``2 x offer + 1`` spot.
    """

    problem: Temporal

    #: Columns of `features`: the decision is a start, the decision is a pool; of a slot: itself over the horizon, the share of
    #: machines that host something then; of a pool: spot, interruption, latency, cost increment, an open machine fits; of the
    #: request: cpu, memory, duration, replicas left.
    num_features = 13
    costs_never_fall = True

    def __init__(self, problem: Temporal, objectives: Sequence[Objective]):
        self.problem, self.objectives = problem, tuple(objectives)
        self._columns = problem.columns(objectives)
        size = problem.demands / np.maximum(problem.capacities.max(axis=0), 1)
        volume = size.sum(axis=1) * [r.duration_slots * r.replicas for r in problem.requests]
        self.order = np.argsort(-volume, kind="stable")
        self.rules = self._rules()
        self.pools = 2 * len(problem.offers)
        self.num_actions = max(problem.horizon_slots, self.pools)
        self.decisions = int(len(self.order) + self.rules.replicas.sum())
        horizon_price = np.minimum(self.rules.per_slot * problem.horizon_slots, self.rules.whole)
        self._dearest = float(horizon_price[np.isfinite(horizon_price)].max(initial=0)) or 1.0

    def _rules(self) -> Rules:
        problem, order = self.problem, self.order
        firm = [
            (problem.slot_price(k, "on-demand"), problem.slot_price(k, "reserved"))
            for k in range(len(problem.offers))
        ]
        spot = [problem.slot_price(k, "spot") for k in range(len(problem.offers))]
        per_slot = np.array(
            [
                price
                for (demand, _), price in zip(firm, spot, strict=True)
                for price in (demand, price)
            ]
        )
        whole = np.array(
            [
                price
                for _, reserved in firm
                for price in (reserved * problem.horizon_slots, math.inf)
            ]
        )
        offered = np.isfinite(np.minimum(per_slot, whole))
        count = sum(r.replicas for r in problem.requests)
        return Rules(
            demand=problem.demands[order],
            duration=np.array([r.duration_slots for r in problem.requests])[order],
            replicas=np.array([r.replicas for r in problem.requests])[order],
            legal=np.repeat(problem.usable[order], 2, axis=1) & offered,
            latency=np.repeat(problem.latencies[order], 2, axis=1),
            frequency=np.array(
                [f for o in problem.offers for f in (0.0, o.spot_interruption or 0.0)]
            ),
            offer=np.repeat(np.arange(len(problem.offers)), 2),
            capacity=np.repeat(problem.capacities, 2, axis=0),
            per_slot=per_slot,
            whole=whole,
            most=np.array(
                [count if o.max_instances is None else o.max_instances for o in problem.offers]
            ),
            horizon=problem.horizon_slots,
        )

    def reset(self, rng: np.random.Generator | None = None) -> State:
        """Return the state before the first decision; episodes are not random."""
        count = int(self.rules.replicas.sum())
        item, machine = (np.zeros((3, count), dtype=np.int64) for _ in range(2))
        starts, leased = (
            np.full(len(self.order), -1),
            np.zeros(len(self.problem.offers), dtype=np.int64),
        )
        return State(
            np.array([0, -1, 0, 0, 0]),
            np.zeros(1),
            starts,
            item[0],
            item[1],
            item[2],
            machine[0],
            machine[1],
            machine[2],
            leased,
        )

    def copy(self, state: State) -> State:
        """Return a state that steps on its own."""
        return State(*(part.copy() for part in state))

    def remaining(self, state: State) -> int:
        """Return how many decisions are still to be made."""
        position = int(state.now[POSITION])
        if position == len(self.order):
            return 0
        later = int(self.rules.replicas[position + 1 :].sum()) + len(self.order) - position - 1
        return later + int(
            state.now[LEFT] if state.now[START] >= 0 else self.rules.replicas[position] + 1
        )

    def stage(self, state: State) -> int:
        """Return how many requests are complete."""
        return int(state.now[POSITION])

    def mask(self, state: State) -> np.ndarray:
        """Return the legal slots or pools."""
        mask = np.empty(self.num_actions, dtype=np.bool_)
        _mask(self.rules, state, mask)
        return mask

    def step(self, state: State, action: int) -> np.ndarray:
        """Decide a start or a pool; the cost is the increment of each objective."""
        cost = np.zeros(3)
        if not (0 <= action < self.num_actions and _take(self.rules, state, int(action), cost)):
            raise UsageError(f"action {action} is not legal here; ask mask(state)")
        return cost[self._columns]

    def costs(self, state: State) -> np.ndarray:
        """Return the increments that each action would have; inf where illegal."""
        costs = np.empty((self.num_actions, 3))
        _costs(self.rules, state, costs)
        return costs[:, self._columns]

    def features(self, state: State) -> np.ndarray:
        """Return what is known of every slot or pool; see `num_features`."""
        table = np.zeros((self.num_actions, self.num_features), dtype=np.float32)
        position = int(state.now[POSITION])
        if position == len(self.order):
            return table
        rules, mask = self.rules, self.mask(state)
        if state.now[START] < 0:
            table[mask, 0] = 1
            table[mask, 2] = np.flatnonzero(mask) / rules.horizon
            table[mask, 3] = (
                self._activity(state)[: len(mask)][mask[: rules.horizon]] if mask.any() else 0
            )
        else:
            costs = np.empty((self.num_actions, 3))
            _costs(rules, state, costs)
            pools = np.flatnonzero(mask)
            table[pools, 1] = 1
            table[pools, 4] = pools % 2
            table[pools, 5] = rules.frequency[pools]
            table[pools, 6] = rules.latency[position, pools] / max(
                1e-9, float(rules.latency[np.isfinite(rules.latency)].max(initial=0))
            )
            table[pools, 7] = costs[pools, 1] / self._dearest
            table[pools, 8] = [
                _first_fit(rules, state, pool) < state.now[MACHINES] for pool in pools
            ]
        left = state.now[LEFT] if state.now[START] >= 0 else rules.replicas[position]
        size = rules.demand[position] / np.maximum(rules.capacity.max(axis=0), 1)
        table[mask, 9:] = (
            *np.minimum(size, 1),
            rules.duration[position] / rules.horizon,
            left / rules.replicas.max(),
        )
        return np.clip(table, -1, 1)

    def _activity(self, state: State) -> np.ndarray:
        """Share of replicas placed so far that run in each slot, shape (horizon,)."""
        items = int(state.now[ITEMS])
        change = np.zeros(self.rules.horizon + 1)
        np.add.at(change, state.item_start[:items], 1)
        np.add.at(
            change,
            np.minimum(
                state.item_start[:items] + self.rules.duration[state.item_request[:items]],
                self.rules.horizon,
            ),
            -1,
        )
        return change.cumsum()[:-1] / max(1, items)

    def plan(self, state: State) -> dict[str, Any]:
        """Return starts and machines in the instance's own names."""
        requests, offers, rules = self.problem.requests, self.problem.offers, self.rules
        instances = []
        numbered = {int(k): 0 for k in range(len(self.order))}
        names = np.empty(int(state.now[ITEMS]), dtype=object)
        for item, position in enumerate(state.item_request[: len(names)].tolist()):
            names[item] = (requests[self.order[position]].name, numbered[position])
            numbered[position] += 1
        for machine in range(int(state.now[MACHINES])):
            pool, item = int(state.machine_pool[machine]), int(state.machine_first[machine])
            offer, hosted = offers[pool // 2], []
            while item >= 0:
                hosted.append(names[item])
                item = int(state.item_next[item])
            pricing = "spot" if pool % 2 else "on-demand"
            if (
                pool % 2 == 0
                and rules.whole[pool] < rules.per_slot[pool] * state.machine_busy[machine]
            ):
                pricing = "reserved"
            instances.append(
                {
                    "location": offer.location,
                    "size": offer.size,
                    "pricing": pricing,
                    "replicas": hosted[::-1],
                }
            )
        starts = {
            requests[self.order[k]].name: int(slot)
            for k, slot in enumerate(state.starts)
            if slot >= 0
        }
        return {"starts": starts, "instances": instances}


def build(problem: Temporal, objectives: Sequence[Objective]) -> TemporalSequence:
    """Return the temporal problem as a sequence of decisions."""
    return TemporalSequence(problem, objectives)
