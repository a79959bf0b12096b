"""What the program of the cheapest end is about: classes of microservices and kinds of nodes."""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any, NamedTuple

import numpy as np

from placeopt.rolling_update.arrays import UpdateArrays
from placeopt.rolling_update.rules import APART, SPREAD, TOGETHER

#: Sets of counts that are looked at to tell how far a group can shrink.
_MOST_COUNTS = 6000


@cache
def fewest_hosts(counts: tuple[int, ...], skew: int) -> int:
    """Return the fewest nodes to which a group that is spread by nodes can shrink without a stop.

    A copy may start on a node that then has at most `skew` copies, or at most `skew` more than the
    node with fewest, the ending copy counted. Only the group is looked at, every node without it is
    taken for gone, and there is room for all: what is possible is more than what is.

    Parameters
    ----------
    counts : tuple of int
        The copies on each node that hosts some, in ascending order.
    """
    seen, todo, fewest = {counts}, deque([counts]), len(counts)
    while todo:
        state = todo.popleft()
        fewest = min(fewest, len(state))
        for after in _after_a_move(state, skew):
            if after not in seen:
                seen.add(after)
                todo.append(after)
        if len(seen) > _MOST_COUNTS:
            return _fewest_by_numbers(counts, skew)
    return fewest


def _after_a_move(state: tuple[int, ...], skew: int) -> set[tuple[int, ...]]:
    """Return the counts after one copy has moved; a node that has none yet takes one, too."""
    found = set()
    for i, left in enumerate(state):
        rest = [*state[:i], *state[i + 1 :]] + ([left - 1] if left > 1 else [])
        found.add(tuple(sorted([*rest, 1])))
        for j, here in enumerate(state):
            if j != i and here + 1 - state[0] <= skew:
                after = [*state]
                after[i], after[j] = left - 1, here + 1
                found.add(tuple(sorted(count for count in after if count)))
    return found


def _fewest_by_numbers(counts: tuple[int, ...], skew: int) -> int:
    """Return a bound of `fewest_hosts`.

    When a group first falls to so many nodes, a node with one copy loses it to one that then has at
    most ``skew + 1``; before, more nodes than so many shared all copies.
    """
    total = sum(counts)
    for nodes in range(1, len(counts)):
        if total <= skew + 1 + (nodes - 1) * max(counts[-1], skew + total // (nodes + 1)):
            return nodes
    return len(counts)


class Check(NamedTuple):
    """One rule as the microservices of a class see it: see `rules.tables`."""

    kind: int
    counter: int
    bound: int
    own: int


@dataclass(eq=False)
class PodClass:
    """Microservices of one new size that may start on the same nodes and obey the same checks."""

    size: np.ndarray  # (R,)
    host: np.ndarray  # (N,) where a copy may start
    counters: tuple[int, ...]  # that count it
    checks: tuple[Check, ...]  # that hold wherever it ends
    forgiven: tuple[Check, ...]  # that hold wherever it ends but at home; of a single member only
    home: np.ndarray  # (N,) how many may rest on each node
    resting: list[int] = field(default_factory=list)  # members that may
    others: list[int] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.resting) + len(self.others)


class World:
    """What the program is about: classes, nodes, and what counts in the domains in any case."""

    def __init__(self, a: UpdateArrays):
        self.a, rules = a, a.rules
        self.forced = a.hosting(a.stuck)
        self.real = (np.arange(len(a.price)) != a.waiting) & ~a.drain
        self.fixed = (self.forced | (a.price == 0)) & self.real
        self.left = np.maximum(0, a.capacity - a.load_of(a.stuck, a.new))
        self.domain, self.first = rules.domain, rules.first
        sizes = np.diff(self.first) - 1
        self.base = [
            rules.base[at : at + size].copy()
            for at, size in zip(self.first[:-1], sizes, strict=True)
        ]
        self.counters = np.split(rules.add, rules.add_first[1:-1])
        for m in np.flatnonzero(a.stuck).tolist():
            for k in set(self.counters[m].tolist()):
                if self.domain[k, a.home[m]] >= 0:
                    self.base[k][self.domain[k, a.home[m]]] += 1
        free = np.flatnonzero(~a.stuck & ~a.removed)
        self.movable = np.zeros(len(self.domain), dtype=np.int64)
        for m in free.tolist():
            self.movable[list(set(self.counters[m].tolist()))] += 1
        #: Where each node is a domain by itself.
        self.fine = [len(np.unique(d[d >= 0])) == (d >= 0).sum() for d in self.domain]
        self.classes = self._classes(free)
        self.stuck = self._stuck_checks()
        #: Starts where nothing stays at home that may leave it.
        self.most_starts = len(free) + int(a.mandatory[a.stuck].sum())

    def total(self, k: int) -> int:
        """Return how many copies counter k counts at most."""
        return int(self.movable[k] + self.base[k].sum())

    def _checks_of(self, m: int) -> tuple[list[Check], list[Check]]:
        """Return the checks that hold wherever m ends, and those that do unless it rests."""
        rules = self.a.rules
        rows = range(rules.check_first[m], rules.check_first[m + 1])
        always, unless = list[Check](), list[Check]()
        for row in rows:
            check = Check(*rules.checks[row].tolist())
            forgiven = rules.forgiven[row] and not self.a.mandatory[m]
            (unless if forgiven else always).append(check)
        return always, unless

    def _can_bite(self, check: Check) -> bool:
        """Return whether a check can ever be broken by the number of copies."""
        if check.kind == TOGETHER:
            return True
        more = self.total(check.counter) - (check.own if check.kind == APART else 0)
        return more > check.bound

    def _classes(self, free: np.ndarray) -> list[PodClass]:
        a, found = self.a, dict[tuple[Any, ...], PodClass]()
        hosts = a.may_host(free)
        for m, host in zip(free.tolist(), hosts, strict=True):
            always, unless = self._checks_of(m)
            home, host = a.home[m], host & self.real
            rests = not a.mandatory[m] and self.real[home] and (a.new[m] <= a.capacity[home]).all()
            for check in always + unless:
                if check.kind != APART:  # it needs a domain
                    host = host & (self.domain[check.counter] >= 0)
                    if check in always and self.domain[check.counter, home] < 0:
                        rests = False
            if not rests:
                always, unless = always + unless, []
            checks, forgiven = (
                tuple(sorted({c for c in own if self._can_bite(c)})) for own in (always, unless)
            )
            counters = tuple(sorted(set(self.counters[m].tolist())))
            alone = (m,) if forgiven else ()
            key = (*a.new[m].tolist(), host.tobytes(), counters, checks, forgiven, alone)
            one = found.get(key)
            if one is None:
                none = np.zeros(len(a.price), dtype=np.int64)
                one = found[key] = PodClass(a.new[m], host, counters, checks, forgiven, none)
            (one.resting if rests else one.others).append(m)
            one.home[home] += rests
        return list(found.values())

    def _stuck_checks(self) -> list[tuple[Check, int]]:
        """Return the checks of what cannot move, and the domain of each."""
        a, found = self.a, dict[tuple[Check, int], None]()
        for m in np.flatnonzero(a.stuck).tolist():
            for check in self._checks_of(m)[0]:
                d = int(self.domain[check.counter, a.home[m]])
                if d >= 0 and self._can_bite(check):
                    found[check, d] = None
        return list(found)

    @cached_property
    def least_hosts(self) -> dict[int, int]:
        """The counters whose copies need several nodes after moves that stop nothing: how many."""
        found = {k: self._least_hosts(k) for k in range(len(self.domain))}
        return {k: least for k, least in found.items() if least > 1}

    def _least_hosts(self, k: int) -> int:
        """Return the fewest nodes that host what counter k counts, after moves that stop nothing.

        0 where nothing is known: copies come or go, or not all of them are spread by nodes that may
        be left.
        """
        a, rules = self.a, self.a.rules
        with_nodes = rules.base[rules.first[k] : rules.first[k + 1]].any()
        if with_nodes or rules.floor[k] or not (rules.shrinks[k] and self.fine[k]):
            return 0
        members = [m for m in range(len(a.home)) if k in self.counters[m].tolist()]
        skew = 0
        for m in members:
            homeless = a.home[m] == a.waiting or self.domain[k, a.home[m]] < 0
            always, unless = self._checks_of(m)
            own = [c.bound for c in (*always, *unless) if c[:2] == (SPREAD, k)]
            if homeless or a.mandatory[m] or a.removed[m] or not (own or a.stuck[m]):
                return 0
            skew = max(skew, 0 if a.stuck[m] else min(own))
        now = np.bincount(self.domain[k, a.home[members]])
        return fewest_hosts(tuple(sorted(now[now > 0].tolist())), skew)

    def kinds(self) -> list[np.ndarray]:
        """Return nodes that are alike, of each kind: what may be left, by all that counts."""
        a, groups = self.a, defaultdict[tuple[Any, ...], list[int]](list)
        hosts = np.array([one.host for one in self.classes], dtype=bool).reshape(-1, len(a.price))
        fine = np.array(self.fine, dtype=bool)
        for n in np.flatnonzero(self.real).tolist():
            key: tuple[Any, ...] = (bool(self.fixed[n]), hosts[:, n].tobytes())
            key += (self.domain[~fine, n].tobytes(), (self.domain[fine, n] < 0).tobytes())
            if not self.fixed[n]:
                key += (n if self._is_special(n) else -1,)
                own = [(k, self.domain[k, n]) for k in np.flatnonzero(fine).tolist()]
                held = [int(self.base[k][d]) if d >= 0 else -1 for k, d in own]
                key += (int(a.price[n]), self.left[n].tobytes(), tuple(held))
                key += (a.limits.amount[:, n].tobytes(), bool(a.limits.now[n]))
            groups[key].append(n)
        return [np.array(nodes) for nodes in groups.values()]

    def widest_kinds(self) -> list[np.ndarray]:
        """Return kinds of nodes, each with those to buy that are no better, which come last.

        Such nodes cost no less, have no more room, may host no more, and are in the same place. As
        many of the first of a kind would do in their place: for a bound that is enough.
        """
        a, found, others = self.a, list[list[np.ndarray]](), defaultdict[bytes, list[int]](list)
        hosts = np.array([one.host for one in self.classes], dtype=bool).reshape(-1, len(a.price))
        fine = np.array(self.fine, dtype=bool)
        kinds = self.kinds()
        room = [int(self.left[nodes[0]].sum()) for nodes in kinds]
        for k in sorted(range(len(kinds)), key=lambda k: (a.price[kinds[k][0]], -room[k], k)):
            n = kinds[k][0]
            where = self.domain[:, n]
            held = any(self.base[c][where[c]] for c in np.flatnonzero(fine & (where >= 0)).tolist())
            if a.candidate[n] and not self.fixed[n] and not held:
                key = (
                    where[~fine].tobytes(),
                    (where < 0).tobytes(),
                    a.limits.amount[:, n].tobytes(),
                )
                better = others[b"".join(key)]
                first = [found[j][0][0] for j in better]
                fits = (self.left[first] >= self.left[n]).all(axis=1)
                fits &= (hosts[:, first] >= hosts[:, [n]]).all(axis=0)
                if fits.any():
                    found[better[np.flatnonzero(fits)[-1]]].append(kinds[k])
                    continue
                better.append(len(found))
            found.append([kinds[k]])
        return [np.concatenate(nodes) for nodes in found]

    def are_alike(self, nodes: np.ndarray) -> bool:
        """Return whether some nodes of a kind cost the same and have the same room."""
        alike = (self.a.price[nodes] == self.a.price[nodes[:1]]).all()
        return bool(alike and (self.left[nodes] == self.left[nodes[:1]]).all())

    def _is_special(self, n: int) -> bool:
        """Return whether something may be on node n that could not start there."""
        return any(one.home[n] and (one.forgiven or not one.host[n]) for one in self.classes)

    def fullest_first(self, nodes: np.ndarray) -> np.ndarray:
        """Return nodes by what runs there now, the fullest first."""
        full = (self.a.initial_load[nodes] / np.maximum(1, self.a.capacity[nodes])).sum(axis=1)
        order: np.ndarray = nodes[np.argsort(-full, kind="stable")]
        return order

    def most_resting_first(self, nodes: np.ndarray) -> np.ndarray:
        """Return nodes by how much may rest there, most first."""
        order: np.ndarray = nodes[np.argsort(-self._resting[nodes], kind="stable")]
        return order

    @cached_property
    def _resting(self) -> np.ndarray:
        """How many microservices may rest on each node, (N,)."""
        none = np.zeros(len(self.a.price), dtype=np.int64)
        return sum((one.home for one in self.classes), none)
