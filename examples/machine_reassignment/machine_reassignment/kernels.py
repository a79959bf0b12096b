"""An assignment that changes process by process, with its costs and rules kept up to date.

Costs are those of the referee, to the unit. Rules are looked at in the order of what it takes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from machine_reassignment.arrays import Arrays
from placeopt.plugins import kernel


class State(NamedTuple):
    """An assignment; L locations, N neighbourhoods, other letters as in `Arrays`."""

    machine: np.ndarray  # (P,)
    used: np.ndarray  # (M, R)
    held: np.ndarray  # (M, R) with what moves, on the machine that it leaves
    load: np.ndarray  # (M,) cost of the load of each machine
    balance: np.ndarray  # (M,)
    there: np.ndarray  # (S, M) uint16, processes of a service on a machine
    in_location: np.ndarray  # (S, L) int32, processes of a service
    locations: np.ndarray  # (S,) locations in which a service is
    in_neighbourhood: np.ndarray  # (S, N) int32
    moved: np.ndarray  # (S,) processes of a service that are not at home
    services: np.ndarray  # (P + 1,) services by how many of their processes are not at home
    costs: np.ndarray  # (4,) load, balance, moves without services, most moves of a service
    members: np.ndarray  # (M, K) int32, processes on a machine
    count: np.ndarray  # (M,) how many
    slot: np.ndarray  # (P,) where a process stands among those of its machine
    row: np.ndarray  # (R,) scratch: what would be used of a machine


def begin(a: Arrays, machine: np.ndarray) -> State:
    """Return the state of an assignment, (P,), which may break rules."""
    machine = np.ascontiguousarray(machine, dtype=np.int64)
    processes, (machines, width), services = len(a.home), a.capacity.shape, len(a.spread)
    # A machine has one process of each service at most, but for what breaks that now, and for one
    # more within an exchange.
    most = max(len(np.unique(a.service)), int(np.bincount(machine).max())) + 1
    state = State(
        machine=machine.copy(),
        used=np.zeros((machines, width), dtype=np.int64),
        held=np.zeros((machines, width), dtype=np.int64),
        load=np.zeros(machines, dtype=np.int64),
        balance=np.zeros(machines, dtype=np.int64),
        there=np.zeros((services, machines), dtype=np.uint16),
        in_location=np.zeros((services, int(a.location.max()) + 1), dtype=np.int32),
        locations=np.zeros(services, dtype=np.int64),
        in_neighbourhood=np.zeros((services, int(a.neighbourhood.max()) + 1), dtype=np.int32),
        moved=np.zeros(services, dtype=np.int64),
        services=np.zeros(processes + 2, dtype=np.int64),
        costs=np.zeros(4, dtype=np.int64),
        members=np.zeros((machines, most), dtype=np.int32),
        count=np.zeros(machines, dtype=np.int64),
        slot=np.zeros(processes, dtype=np.int64),
        row=np.zeros(width, dtype=np.int64),
    )
    _place(a, state)
    return state


@kernel
def _place(a, s):
    """Count every process where ``s.machine`` has it."""
    for p in range(len(s.machine)):
        _count(a, s, p, s.machine[p], 1)
        s.moved[a.service[p]] += s.machine[p] != a.home[p]
        for r in range(a.capacity.shape[1]):
            s.held[a.home[p], r] += a.transient[r] * a.requirement[p, r]
    for service in range(len(a.spread)):
        s.services[s.moved[service]] += 1
        s.costs[3] = max(s.costs[3], s.moved[service])
    for m in range(len(a.location)):
        _recount(a, s, m)


@kernel
def _recount(a, s, m):
    """Bring the costs of machine m up to date."""
    s.costs[0] -= s.load[m]
    s.costs[1] -= s.balance[m]
    s.load[m], s.balance[m] = machine_costs(a, s, m, -1, -1)
    s.costs[0] += s.load[m]
    s.costs[1] += s.balance[m]


@kernel
def _count(a, s, p, m, sign):
    """Count process p on machine m, sign 1, or no longer there, -1."""
    service, place = a.service[p], a.location[m]
    for r in range(a.capacity.shape[1]):
        need = sign * a.requirement[p, r]
        s.used[m, r] += need
        if not (a.transient[r] and a.home[p] == m):
            s.held[m, r] += need
    s.locations[service] -= s.in_location[service, place] > 0
    s.in_location[service, place] += sign
    s.locations[service] += s.in_location[service, place] > 0
    s.in_neighbourhood[service, a.neighbourhood[m]] += sign
    s.there[service, m] += sign
    s.costs[2] += sign * move_cost(a, p, m)
    if sign > 0:
        s.machine[p], s.slot[p], s.members[m, s.count[m]] = m, s.count[m], p
    else:
        last = s.members[m, s.count[m] - 1]
        s.members[m, s.slot[p]], s.slot[last] = last, s.slot[p]
    s.count[m] += sign


@kernel
def machine_costs(a, s, m, arrives, leaves):
    """Return load and balance of machine m if a process arrives and one leaves; -1 for none."""
    for r in range(a.capacity.shape[1]):
        s.row[r] = s.used[m, r]
        if arrives >= 0:
            s.row[r] += a.requirement[arrives, r]
        if leaves >= 0:
            s.row[r] -= a.requirement[leaves, r]
    return row_costs(a, m, s.row)


@kernel
def row_costs(a, m, used):
    """Return load and balance of machine m if `used` (R,) is used there."""
    load, balance = 0, 0
    for r in range(len(used)):
        load += max(0, used[r] - a.safety[m, r]) * a.load_cost[r]
    for b in range(len(a.balance)):
        one, other = a.balance[b, 0], a.balance[b, 1]
        free, match = a.capacity[m, one] - used[one], a.capacity[m, other] - used[other]
        balance += max(0, a.balance[b, 2] * free - match) * a.balance[b, 3]
    return load, balance


@kernel
def fits(a, s, p, m, leaves):
    """Return whether process p, now elsewhere, fits on machine m once `leaves` has gone; or -1."""
    home = a.home[p] == m
    from_home = leaves >= 0 and a.home[leaves] == m
    for r in range(a.capacity.shape[1]):
        held = s.held[m, r]
        if not (home and a.transient[r]):
            held += a.requirement[p, r]
        if leaves >= 0 and not (from_home and a.transient[r]):
            held -= a.requirement[leaves, r]
        if held > a.capacity[m, r]:
            return False
    return True


@kernel
def move_cost(a, p, m):
    """Return the cost of having process p on machine m."""
    if a.home[p] == m:
        return 0
    return a.move_cost[p] + a.between[a.home[p], m]


@kernel
def at_home(a, p, before, after):
    """Return 1 if process p leaves home, -1 if it comes home, else 0."""
    return np.int64(before == a.home[p]) - np.int64(after == a.home[p])


@kernel
def most_moved(s, service, change, other, other_change):
    """Return the most moves of a service if the moves of one, and of another one or -1, change."""
    most, n = s.costs[3], s.moved[service]
    s.services[n] -= 1
    s.services[n + change] += 1
    most = max(most, n + change)
    if other >= 0:
        k = s.moved[other]
        s.services[k] -= 1
        s.services[k + other_change] += 1
        most = max(most, k + other_change)
    while most > 0 and s.services[most] == 0:
        most -= 1
    if other >= 0:
        s.services[k + other_change] -= 1
        s.services[k] += 1
    s.services[n + change] -= 1
    s.services[n] += 1
    return most


@kernel
def spread_kept(a, s, service, before, after):
    """Return whether a service stays in enough locations if a process changes its machine."""
    one, other = a.location[before], a.location[after]
    if one == other:
        return True
    count = s.locations[service]
    count -= s.in_location[service, one] == 1
    count += s.in_location[service, other] == 0
    return count >= a.spread[service]


@kernel
def _needs_met(a, s, service, n):
    """Return whether all that a service needs is in neighbourhood n."""
    for k in range(a.needs_at[service], a.needs_at[service + 1]):
        if s.in_neighbourhood[a.needs[k], n] == 0:
            return False
    return True


@kernel
def _not_needed(a, s, service, n):
    """Return whether a service is in neighbourhood n still, or nothing there needs it."""
    if s.in_neighbourhood[service, n] > 0:
        return True
    for k in range(a.needed_by_at[service], a.needed_by_at[service + 1]):
        if s.in_neighbourhood[a.needed_by[k], n] > 0:
            return False
    return True


@kernel
def dependencies_kept(a, s, service, before, after, other):
    """Return whether dependencies hold if a process moves, and one of `other` moves back; or -1."""
    n, k, there = a.neighbourhood[before], a.neighbourhood[after], s.in_neighbourhood
    if n == k:
        return True
    there[service, n] -= 1
    there[service, k] += 1
    if other >= 0:
        there[other, k] -= 1
        there[other, n] += 1
    kept = _needs_met(a, s, service, k) and _not_needed(a, s, service, n)
    if other >= 0:
        kept = kept and _needs_met(a, s, other, n) and _not_needed(a, s, other, k)
        there[other, k] += 1
        there[other, n] -= 1
    there[service, n] += 1
    there[service, k] -= 1
    return kept


@kernel
def rules_kept(a, s, p, before):
    """Return whether spread and dependencies hold for process p, which was on `before`."""
    service, n, k = a.service[p], a.neighbourhood[before], a.neighbourhood[s.machine[p]]
    if s.locations[service] < a.spread[service]:
        return False
    return _needs_met(a, s, service, k) and _not_needed(a, s, service, n)


@kernel
def change_of(a, s, p, m, q, change):
    """Write the change of load, balance and moves into `change` (3,) if p goes to machine m.

    q, which is on m, goes to p's machine then; -1 for none.
    """
    k, service, other, away, back = s.machine[p], a.service[p], -1, 0, 0
    load, balance = machine_costs(a, s, k, q, p)
    load_there, balance_there = machine_costs(a, s, m, p, q)
    change[2] = move_cost(a, p, m) - move_cost(a, p, k)
    away = at_home(a, p, k, m)
    if q >= 0:
        change[2] += move_cost(a, q, k) - move_cost(a, q, m)
        if a.service[q] == service:
            away += at_home(a, q, m, k)
        else:
            other, back = a.service[q], at_home(a, q, m, k)
    change[0] = load + load_there - s.load[k] - s.load[m]
    change[1] = balance + balance_there - s.balance[k] - s.balance[m]
    most = most_moved(s, service, away, other, back)
    change[2] += (most - s.costs[3]) * a.service_weight[0]


@kernel
def shift_kept(a, s, p, m):
    """Return whether p may go to m, another machine than its own."""
    service, before = a.service[p], s.machine[p]
    return (
        s.there[service, m] == 0
        and fits(a, s, p, m, -1)
        and spread_kept(a, s, service, before, m)
        and dependencies_kept(a, s, service, before, m, -1)
    )


@kernel
def move(a, s, p, m):
    """Move process p to machine m, another than its own, whatever that breaks."""
    before, service = s.machine[p], a.service[p]
    change = at_home(a, p, before, m)
    s.costs[3] = most_moved(s, service, change, -1, 0)
    s.services[s.moved[service]] -= 1
    s.moved[service] += change
    s.services[s.moved[service]] += 1
    _count(a, s, p, before, -1)
    _count(a, s, p, m, 1)
    _recount(a, s, before)
    _recount(a, s, m)
