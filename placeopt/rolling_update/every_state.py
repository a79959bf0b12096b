"""Every state that moves reach without a stop, where these are few.

A small cluster that is nearly full allows few moves. The search makes all of them, one state after
another, so that the cheapest end that it meets is proven. Two states are one where microservices
that are alike have only changed places.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from placeopt.core.kernels.compile import allocating_kernel, kernel
from placeopt.rolling_update import rules
from placeopt.rolling_update.arrays import UpdateArrays
from placeopt.rolling_update.packing.loads import fits

#: States at most, and these times microservices and nodes.
_MOST, _WORK = 100_000, 6_000_000
#: A prime number that spreads states over the table that finds them.
_SPREAD = 1_000_003


class Reached(NamedTuple):
    """An end that moves reach without a stop.

    Attributes
    ----------
    price : int
        In units of ``1 / price_scale``.
    starts : int
    node : int array (M,)
    steps : list of (microservice, node)
    """

    price: int
    starts: int
    node: np.ndarray
    steps: list[tuple[int, int]]


class _Fleet(NamedTuple):
    """What the search reads, the microservices sorted so that those alike are beside each other."""

    number: np.ndarray  # (M,) of the microservices, as the rules number them
    alike: np.ndarray  # (M,) class of each
    simple: np.ndarray  # (M,) whether it does not matter if it was started
    fixed: np.ndarray  # (M,) never starts
    pinned: np.ndarray  # (M,) starts on its own node alone
    home: np.ndarray  # (M,)
    old: np.ndarray  # (M, R)
    new: np.ndarray  # (M, R)
    capacity: np.ndarray  # (N, R)
    shut: np.ndarray  # (N,)
    leaves: np.ndarray  # (N,) is no domain any more once it is left for good


def reached(a: UpdateArrays) -> list[Reached]:
    """Return the front of price and starts that moves reach without a stop, the cheapest first.

    It is empty where that is not known: nodes to buy, limits, losses, latencies and replicas that
    go are not looked at. It is empty, too, where no end is reached.
    """
    odd = a.candidate.any() or a.limits.any or a.survival.asked or a.survival.room or a.tight_flows
    pairs = len(a.home) * len(a.price)
    if odd or a.removed.any() or pairs == 0 or pairs * len(a.home) > _WORK:
        return []
    fleet = _fleet(a)
    most = min(_MOST, _WORK // pairs)
    states, starts, before, made, met = _meet(fleet, a.packed_rules, most)
    if met > most:
        return []
    count = len(a.home)
    places = np.empty((met, count), dtype=np.int64)
    started = np.empty((met, count), dtype=bool)
    places[:, fleet.number] = states[:met, :count]
    started[:, fleet.number] = states[:met, count : 2 * count]
    found = []
    for price, k in _front(a, places, started, starts[:met]):
        slots, at = [], k
        while before[at] >= 0:
            if made[at, 0] >= 0:
                slots.append(made[at].tolist())
            at = int(before[at])
        node, steps = _followed(a, fleet, slots[::-1])
        found.append(Reached(price, int(starts[k]), node, steps))
    return found


def _front(
    a: UpdateArrays, places: np.ndarray, started: np.ndarray, starts: np.ndarray
) -> Iterator[tuple[int, int]]:
    """Yield each price of a legal end that takes fewer starts than cheaper ones, and its state."""
    used = np.zeros((len(places), len(a.price)), dtype=bool)
    np.put_along_axis(used, places, True, axis=1)
    price, least = used @ a.price, np.inf
    away = a.drain[places]
    due = away.any(axis=1) | (a.mandatory & ~started).any(axis=1)
    for value in np.unique(price[~due]).tolist():
        own = np.flatnonzero(~due & (price == value) & (starts < least))
        own = own[rules.num_broken(a.packed_rules, places[own], ~started[own]) == 0]
        for k in own[np.argsort(starts[own], kind="stable")].tolist():
            load = np.zeros_like(a.capacity)
            np.add.at(load, places[k], a.new)
            if (load <= a.capacity)[: a.num_real].all():
                least = starts[k]
                yield value, k
                break


def _followed(
    a: UpdateArrays, fleet: _Fleet, slots: list[tuple[int, int, int]]
) -> tuple[np.ndarray, list[tuple[int, int]]]:
    """Return the end, (M,), and the steps, of moves from a node to a node.

    Each moves a microservice, or one like it.
    """
    node, steps = a.home.copy(), list[tuple[int, int]]()
    for slot, source, to in slots:
        like = fleet.number[fleet.alike == fleet.alike[slot]]
        m = int(like[node[like] == source][0])
        steps.append((m, to))
        node[m] = to
    return node, steps


def _fleet(a: UpdateArrays) -> _Fleet:
    tables, keys = a.rules, list[tuple[object, ...]]()
    alone = a.mandatory | a.stuck
    for m in range(len(a.home)):
        rows = slice(tables.check_first[m], tables.check_first[m + 1])
        own = tables.add[tables.add_first[m] : tables.add_first[m + 1]]
        alone[m] |= tables.forgiven[rows].any()
        told = (np.sort(own).tobytes(), np.unique(tables.checks[rows], axis=0).tobytes())
        key = (a.new[m].tobytes(), int(tables.node_set[m]), *told)
        keys.append((*key, m if alone[m] else -1))
    number = {key: k for k, key in enumerate(dict.fromkeys(keys))}
    alike = np.array([number[key] for key in keys], dtype=np.int64)
    order = np.lexsort((a.home, alike))
    nodes = range(len(a.price))
    return _Fleet(
        number=order,
        alike=alike[order],
        simple=~alone[order],
        fixed=a.fixed[order],
        pinned=a.pinned[order],
        home=a.home[order],
        old=a.old[order],
        new=a.new[order],
        capacity=a.capacity,
        shut=a.shut,
        leaves=np.array([rules.may_go(a.packed_rules, n) for n in nodes], dtype=bool),
    )


@allocating_kernel
def _meet(fleet, packed, most):
    """Return all states, (most + 1, 2 M + N), and how many there are.

    And the fewest starts to each, from which and by which move it is met so. A state is the node of
    every microservice, whether it was started, and which nodes are left for good. One more than
    `most` says that there are more.
    """
    count, nodes = len(fleet.home), len(fleet.shut)
    states = np.zeros((most + 1, 2 * count + nodes), np.int16)
    starts, before = np.full(most + 1, 2**30, np.int64), np.full(most + 1, -1, np.int64)
    made = np.full((most + 1, 3), -1, np.int64)
    todo, later = np.empty(2 * most + 2, np.int64), np.empty(2 * most + 2, np.int64)
    size = 1
    while size < 4 * most:
        size *= 2
    table = np.full(size, -1, np.int64)
    for slot in range(count):
        states[0, slot] = fleet.home[slot]
    met = _find(states, table, 0) + 1
    starts[0], todo[0], waiting, level = 0, 0, 1, -1
    place, load = np.empty(count, np.int64), np.empty(fleet.capacity.shape, np.int64)
    while waiting and met <= most:
        level, more = level + 1, 0
        while waiting and met <= most:
            waiting -= 1
            k = todo[waiting]
            if starts[k] < level:
                continue
            counts = _read(fleet, packed, states, k, place, load)
            for n in range(nodes):
                if met <= most and fleet.leaves[n] and _is_unused(states, k, count, n):
                    _copy(states, k, met)
                    states[met, 2 * count + n] = 1
                    one = _find(states, table, met)
                    met += one == met
                    if starts[one] > level:
                        starts[one], before[one], made[one, 0] = level, k, -1
                        todo[waiting] = one
                        waiting += 1
            for slot in range(count):
                for n in range(nodes):
                    if met <= most and _may_start(fleet, packed, counts, load, states, k, slot, n):
                        _copy(states, k, met)
                        _move(fleet, states, met, slot, n)
                        one = _find(states, table, met)
                        met += one == met
                        if starts[one] > level + 1:
                            starts[one], before[one] = level + 1, k
                            made[one, 0], made[one, 1], made[one, 2] = slot, states[k, slot], n
                            later[more] = one
                            more += 1
        todo, later = later, todo
        waiting = more
    return states, starts, before, made, met


@allocating_kernel
def _read(fleet, packed, states, k, place, load):
    """Return the counts of the rules in state k; overwrite places (M,) and loads (N, R)."""
    count = len(fleet.home)
    load[:] = 0
    for slot in range(count):
        n, started = states[k, slot], states[k, count + slot] > 0
        place[fleet.number[slot]] = n
        for r in range(load.shape[1]):
            load[n, r] += fleet.new[slot, r] if started else fleet.old[slot, r]
    counts = rules.counted(packed, place)
    for n in range(len(fleet.shut)):
        if states[k, 2 * count + n]:
            rules.leave(packed, counts, n, 1)
    return counts


@kernel
def _copy(states, k, to):
    """Overwrite a state by another one."""
    for x in range(states.shape[1]):
        states[to, x] = states[k, x]


@kernel
def _is_unused(states, k, count, n):
    """Return whether node n hosts nothing in state k, and is not left for good yet."""
    empty = states[k, 2 * count + n] == 0
    for slot in range(count):
        empty = empty and states[k, slot] != n
    return empty


@kernel
def _may_start(fleet, packed, counts, load, states, k, slot, n):
    """Return whether a slot may start on node n in state k, and whether that is worth a state."""
    count = len(fleet.home)
    if fleet.fixed[slot] or fleet.shut[n] or states[k, 2 * count + n]:
        return False
    if fleet.pinned[slot] and n != fleet.home[slot]:
        return False
    if n == states[k, slot] and (fleet.simple[slot] or states[k, count + slot]):
        return False
    if (
        slot
        and fleet.alike[slot - 1] == fleet.alike[slot]
        and states[k, slot - 1] == states[k, slot]
    ):
        return False  # one like it has been tried
    return fits(fleet.capacity, load, fleet.new, slot, n) and rules.may_start(
        packed, counts, fleet.number[slot], n
    )


@kernel
def _move(fleet, states, k, slot, n):
    """Move a slot of state k to node n, and sort those like it by nodes; changes `states`."""
    count = len(fleet.home)
    if not fleet.simple[slot]:
        states[k, slot], states[k, count + slot] = n, 1
        return
    at = slot
    while at and fleet.alike[at - 1] == fleet.alike[slot] and states[k, at - 1] > n:
        states[k, at] = states[k, at - 1]
        at -= 1
    while at + 1 < count and fleet.alike[at + 1] == fleet.alike[slot] and states[k, at + 1] < n:
        states[k, at] = states[k, at + 1]
        at += 1
    states[k, at] = n


@kernel
def _find(states, table, k):
    """Return the state that is like state k: an earlier one, or k, which then joins the table."""
    width, code = states.shape[1], np.uint64(0)
    for x in range(width):
        code = code * np.uint64(_SPREAD) + np.uint64(states[k, x])
    code ^= code >> np.uint64(29)
    at = np.int64(code % np.uint64(len(table)))
    while table[at] >= 0:
        same = True
        for x in range(width):
            same = same and states[table[at], x] == states[k, x]
        if same:
            return table[at]
        at = (at + 1) % len(table)
    table[at] = k
    return np.int64(k)
