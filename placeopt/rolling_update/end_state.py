"""The cheapest end of a rolling update: which nodes are paid, whatever the way there.

Microservices that are alike are one *class*. A program in whole numbers says how many of each class
end on each *kind* of nodes, and how many nodes of the kind are paid. Where every node is a kind by
itself it asks for room, for all rules and for limits of nodes; where nodes that are alike are one
kind it asks for less, so that its value is a bound. Latencies, and what a loss of nodes needs, are
left out, so that it is a bound there, too. ``models/rolling_update/README.md`` has the maths.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from placeopt.rolling_update.arrays import UpdateArrays
from placeopt.rolling_update.bounds import lower_bound
from placeopt.rolling_update.instance import RollingUpdate
from placeopt.rolling_update.limits.tables import NO_LIMIT
from placeopt.rolling_update.rules import kernels
from placeopt.rolling_update.rules.tables import APART, TOGETHER

#: Products of classes and nodes up to which every node is a kind by itself, and of classes and
#: kinds up to which there is a program at all.
_EACH_NODE, _LARGEST = 1500, 12_000
#: Nodes of branch and bound at most, and these times variables; a limit in seconds would not give
#: the same bound twice.
_MAX_BRANCHES, _BRANCHES = 2000, 100_000


#: Seconds below which nothing but the quick bound is asked for.
_LEAST_SECONDS = 0.5


class EndState(NamedTuple):
    """What is proven of the cheapest end, and an end.

    Attributes
    ----------
    lowest : int
        A price, in units of ``1 / price_scale``, that no plan beats, with stops or without.
    node : int array (M,) or None
        The node of every microservice in a cheap legal end, reached or not; None where none was
        found.
    exact : bool
        Whether no end is cheaper, nor reached by fewer starts at that price.
    """

    lowest: int
    node: np.ndarray | None
    exact: bool = False


class Check(NamedTuple):
    """One rule as the microservices of a class see it: see `rules.tables`."""

    kind: int
    counter: int
    bound: int
    own: int


@dataclass(eq=False)
class _Class:
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


#: What is known of instances, by their arrays.
_KNOWN: WeakKeyDictionary[UpdateArrays, EndState] = WeakKeyDictionary()


def cheapest_end(problem: RollingUpdate, seconds: float = math.inf) -> EndState:
    """Return the cheapest end that is found, and the price that no plan beats.

    A limit of `seconds` is a last resort: the same call may then answer differently.
    """
    known = _KNOWN.get(problem.arrays)
    if known is None:
        known = _cheapest_end(problem, seconds)
        if seconds == math.inf:
            _KNOWN[problem.arrays] = known
    return known


def _cheapest_end(problem: RollingUpdate, seconds: float) -> EndState:
    lowest = lower_bound(problem)
    if problem.infeasibility() or seconds < _LEAST_SECONDS:
        return EndState(lowest, None)
    a = problem.arrays
    world = _World(a)
    each = [np.array([n]) for n in np.flatnonzero(world.real).tolist()]
    small = len(world.classes) * len(each) <= _EACH_NODE
    bins = each if small else world.kinds()
    if len(world.classes) * len(bins) > _LARGEST:
        return EndState(lowest, None)
    program = _Program(world, bins, seconds)
    bound, x = program.solve()
    lowest = max(lowest, bound)
    if x is None:
        return EndState(lowest, None)
    cost = program.cost(x)
    if not small:
        paid = world.chosen(program, x)
        if len(world.classes) * len(paid) > _EACH_NODE:
            return EndState(lowest, None)
        program = _Program(world, paid, seconds)
    node, proven = program.with_most_at_home(cost)
    if node is None or not world.is_legal(problem, node):
        return EndState(lowest, None)
    return EndState(lowest, node, small and proven and cost == lowest)


class _World:
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

    def _classes(self, free: np.ndarray) -> list[_Class]:
        a, found = self.a, dict[tuple[Any, ...], _Class]()
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
                one = found[key] = _Class(a.new[m], host, counters, checks, forgiven, none)
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

    def kinds(self) -> list[np.ndarray]:
        """Return nodes that are alike, of each kind: what may be left, by all that counts."""
        a, groups = self.a, defaultdict[tuple[Any, ...], list[int]](list)
        hosts = np.array([one.host for one in self.classes], dtype=bool).reshape(-1, len(a.price))
        fine = np.array(self.fine, dtype=bool)
        for n in np.flatnonzero(self.real).tolist():
            key: tuple[Any, ...] = (bool(self.fixed[n]), hosts[:, n].tobytes())
            key += (self.domain[~fine, n].tobytes(), self.domain[fine, n].min(initial=0) < 0)
            if not self.fixed[n]:
                own = [(k, self.domain[k, n]) for k in np.flatnonzero(fine).tolist()]
                held = [int(self.base[k][d]) if d >= 0 else -1 for k, d in own]
                key += (int(a.price[n]), self.left[n].tobytes(), tuple(held))
                key += (a.limits.amount[:, n].tobytes(), bool(a.limits.now[n]))
            groups[key].append(n)
        return [np.array(nodes) for nodes in groups.values()]

    def chosen(self, program: _Program, x: np.ndarray) -> list[np.ndarray]:
        """Return every node that is paid in a solution, those that host most now of each kind."""
        full = (self.a.initial_load / np.maximum(1, self.a.capacity)).sum(axis=1)
        result: list[np.ndarray] = []
        for b, nodes in enumerate(program.bins):
            count = len(nodes) if b not in program.paid else round(x[program.paid[b]])
            order = nodes[np.argsort(-full[nodes], kind="stable")][:count]
            result += [np.array([n]) for n in order.tolist()]
        return result

    def is_legal(self, problem: RollingUpdate, node: np.ndarray) -> bool:
        """Return whether a plan may end so, by room, rules, limits, latencies and losses."""
        a, real = self.a, node != self.a.waiting
        load = np.zeros_like(a.capacity)
        np.add.at(load, node[real], a.new[real])
        used = np.bincount(node[real], minlength=len(a.price)) > 0
        rests = ~a.starts_of(node)
        return bool(
            (load <= a.capacity)[: a.num_real].all()
            and not kernels.num_broken(a.packed_rules, node[None], rests[None])[0]
            and a.limits.within(used, a.num_real)
            and all(
                a.latency[a.cluster[node[m]], a.cluster[node[p]]] <= ms
                for m, p, ms in a.tight_flows
            )
            and problem.has_places(node.tolist())
        )


class _Program:
    """The program over bins, each one node or the nodes of one kind."""

    def __init__(self, world: _World, bins: Sequence[np.ndarray], seconds: float):
        self.world, self.bins, self.seconds = world, list(bins), seconds
        self.lower: list[int] = []
        self.upper: list[int] = []
        self.rows: list[tuple[float, float, dict[int, int]]] = []
        a = world.a
        self.unit = math.gcd(*a.price.tolist()) or 1
        self.sunk = int(a.price[world.forced].sum())
        self.is_fixed = [bool(world.fixed[nodes[0]]) for nodes in self.bins]
        self.paid = {
            b: self._variable(len(nodes))
            for b, nodes in enumerate(self.bins)
            if not self.is_fixed[b]
        }
        self.most: dict[tuple[int, int], int] = {}  # of a class on one node of a bin
        self.at: dict[tuple[int, int], int] = {}
        self._add_classes()
        self._add_room()
        self._add_limits()
        self.anyway = self._variable(1)
        self.lower[self.anyway] = 1
        self.fewest: dict[int, int] = {}
        self.counts = [
            [c for c, one in enumerate(world.classes) if k in one.counters]
            for k in range(len(world.domain))
        ]
        self._add_rules()

    # -- variables and rows --------------------------------------------------------------------

    def _variable(self, most: int) -> int:
        self.lower.append(0)
        self.upper.append(most)
        return len(self.lower) - 1

    def _row(self, terms: dict[int, int], most: float = np.inf, least: float = -np.inf) -> None:
        self.rows.append((least, most, terms))

    def _sum_most(self, terms: Iterable[int]) -> int:
        return sum(self.upper[j] for j in terms)

    # -- room ----------------------------------------------------------------------------------

    def _add_classes(self) -> None:
        world = self.world
        for c, one in enumerate(world.classes):
            for b, nodes in enumerate(self.bins):
                most = self._most_on_one(one, nodes)
                resting = int(one.home[nodes].sum())
                total = min(len(one), most * len(nodes) if one.host[nodes[0]] else resting)
                if most > 0 and total > 0:
                    self.most[c, b], self.at[c, b] = most, self._variable(total)
        self.of_class: dict[int, list[int]] = defaultdict(list)
        self.of_bin: dict[int, list[int]] = defaultdict(list)
        for c, b in self.at:
            self.of_class[c].append(b)
            self.of_bin[b].append(c)
        for c, one in enumerate(world.classes):
            self._row({self.at[c, b]: 1 for b in self.of_class[c]}, len(one), len(one))

    def _most_on_one(self, one: _Class, nodes: np.ndarray) -> int:
        """Return how many of a class one node of a bin has room for, by itself."""
        asked = one.size > 0
        fits = (self.world.left[nodes][:, asked] // one.size[asked]).min(axis=1, initial=len(one))
        most = int(fits.max())
        for check in one.checks:
            inside = self.world.fine[check.counter] and self._has_domain(check.counter, nodes)
            if check.kind == APART and check.own and inside:
                most = min(most, check.bound + 1)
        return most

    def _has_domain(self, k: int, nodes: np.ndarray) -> bool:
        """Return whether all of some nodes are in domains of a counter."""
        return bool((self.world.domain[k, nodes] >= 0).all())

    def _add_room(self) -> None:
        world = self.world
        for b, nodes in enumerate(self.bins):
            for r in range(world.left.shape[1]):
                sizes = {self.at[c, b]: int(world.classes[c].size[r]) for c in self.of_bin[b]}
                terms = {j: size for j, size in sizes.items() if size}
                if not terms:
                    continue
                if b in self.paid:
                    self._row({**terms, self.paid[b]: -int(world.left[nodes[0], r])}, 0)
                else:
                    self._row(terms, int(world.left[nodes, r].sum()))
            for c in self.of_bin[b] if b in self.paid else ():
                self._row({self.at[c, b]: 1, self.paid[b]: -self.most[c, b]}, 0)

    def _add_limits(self) -> None:
        """Add the largest sums of nodes that a limit allows, where one of them is newly used."""
        limits, forced = self.world.a.limits, self.world.forced
        for k in np.flatnonzero(limits.most < NO_LIMIT).tolist():
            amount = {b: int(limits.amount[k, self.bins[b][0]]) for b in self.paid}
            own = {b: value for b, value in amount.items() if value > 0}
            added = self._variable(1)
            for b in own:
                if not limits.now[self.bins[b][0]]:
                    self._row({self.paid[b]: 1, added: -len(self.bins[b])}, 0)
            held = int(limits.amount[k, forced].sum())
            total = sum(value * len(self.bins[b]) for b, value in own.items())
            slack = max(0, held + total - int(limits.most[k]))
            terms = {self.paid[b]: value for b, value in own.items()}
            self._row({**terms, added: slack}, int(limits.most[k]) - held + slack)

    # -- rules ---------------------------------------------------------------------------------

    def _add_rules(self) -> None:
        world, always = self.world, defaultdict[Check, list[int]](list)
        for c, one in enumerate(world.classes):
            for check in one.checks:
                always[check].append(c)
            for check in one.forgiven:
                for d, bins in self._domains(check.counter).items():
                    away = [b for b in bins if not one.home[self.bins[b]].any()]
                    self._ask(check, d, bins, self._is_there([c], away))
        for check, classes in always.items():
            whole = set(self.counts[check.counter]) <= set(classes)
            for d, bins in self._domains(check.counter).items():
                self._add_check(check, d, bins, classes, whole=whole)
            for b in self._mixed(check.counter):
                self._add_mixed(check, b, classes, whole=whole)
        for check, d in world.stuck:
            inside = self._domains(check.counter)
            if d in inside:  # else its node is one of several that are one bin
                self._ask(check, d, inside[d], self.anyway)

    def _domains(self, k: int) -> dict[int, list[int]]:
        """Return the bins in each domain of a counter, of those that lie in one."""
        found = defaultdict[int, list[int]](list)
        for b, nodes in enumerate(self.bins):
            where = np.unique(self.world.domain[k, nodes])
            if len(where) == 1 and where[0] >= 0:
                found[int(where[0])].append(b)
        return found

    def _mixed(self, k: int) -> list[int]:
        """Return the bins of several nodes, each of which is a domain of a counter."""
        domains = self.world.domain[k]
        return [
            b
            for b, nodes in enumerate(self.bins)
            if len(np.unique(domains[nodes])) > 1 and self._has_domain(k, nodes)
        ]

    def _counted(self, k: int, bins: Iterable[int]) -> dict[int, int]:
        """Return the copies that a counter counts on some bins, as terms."""
        return {self.at[c, b]: 1 for b in bins for c in self.counts[k] if (c, b) in self.at}

    def _is_there(self, classes: Sequence[int], bins: Iterable[int]) -> int | None:
        """Return a variable that is 1 where some of the classes are on the bins, None if never."""
        own = [self.at[c, b] for b in bins for c in classes if (c, b) in self.at]
        if not own:
            return None
        there = self._variable(1)
        for j in own:
            self._row({j: 1, there: -self.upper[j]}, 0)
        return there

    def _add_check(
        self, check: Check, d: int, bins: list[int], classes: Sequence[int], *, whole: bool
    ) -> None:
        """Add a check in one domain; `whole`: all that is counted obeys it."""
        terms, base = self._counted(check.counter, bins), int(self.world.base[check.counter][d])
        if check.kind == TOGETHER:
            for c in classes:
                self._ask(check, d, bins, self._is_there([c], bins))
        elif whole and (check.own or check.kind != APART) and base <= check.bound:
            low = self._low(check) if check.kind != APART else None
            most = check.bound + (check.own if check.kind == APART else 0) - base
            self._row(terms if low is None else {**terms, low: -1}, most)
        else:
            self._ask(check, d, bins, self._is_there(classes, bins))

    def _ask(self, check: Check, d: int, bins: Iterable[int], there: int | None) -> None:
        """Add that a check holds in a domain where the variable `there` is 1; None: it never is."""
        k, base = check.counter, int(self.world.base[check.counter][d])
        terms = self._counted(k, bins)
        if there is None or (check.kind == TOGETHER and check.own and not self._has_company(k)):
            return
        if check.kind == TOGETHER:
            self._row({**terms, there: -1 - check.own}, least=-base)
            return
        most = check.bound + (check.own if check.kind == APART else 0) - base
        slack = max(0, self._sum_most(terms) - most)
        low = self._low(check) if check.kind != APART else None
        self._row({**terms, **({} if low is None else {low: -1}), there: slack}, most + slack)

    def _has_company(self, k: int) -> bool:
        """Return whether a counter counts several copies at every end."""
        inside = self.world.domain[k] >= 0
        nodes = (self.bins[b] for c in self.counts[k] for b in self.of_class[c])
        return self.world.total(k) > 1 and all(inside[own].all() for own in nodes)

    def _low(self, check: Check) -> int | None:
        """Return a variable for the fewest copies of a domain, None where they count as none."""
        k, world, rules = check.counter, self.world, self.world.a.rules
        if rules.floor[k]:
            return None
        if k in self.fewest:
            return self.fewest[k]
        domains, shrinks = self._domains(k), bool(rules.shrinks[k])
        stays = world.fixed | (world.a.price == 0)
        nodes = np.flatnonzero((world.domain[k] >= 0) & (stays if shrinks else True))
        always = set(world.domain[k, nodes].tolist())
        most = world.total(k) // max(1, len(always))
        low = self.fewest[k] = self._variable(most)
        many = [x for x in (world.domain[k, own] for own in self.bins) if len(np.unique(x)) > 1]
        for d in always.difference(*many):  # all whose copies are counted by themselves
            terms = dict.fromkeys(self._counted(k, domains.get(d, [])), -1)
            self._row({**terms, low: 1}, int(world.base[k][d]))
        for d, bins in domains.items():
            if d not in always and len(bins) == 1 and bins[0] in self.paid:  # left if not paid
                terms = dict.fromkeys(self._counted(k, bins), -1)
                row = {**terms, low: 1, self.paid[bins[0]]: most}
                self._row(row, int(world.base[k][d]) + most)
        return low

    def _add_mixed(self, check: Check, b: int, classes: Sequence[int], *, whole: bool) -> None:
        """Add what a check means for nodes of one kind, each of which is a domain."""
        k, nodes = check.counter, self.bins[b]
        base = self.world.base[k][self.world.domain[k, nodes]]
        own = {c for c in classes if (c, b) in self.at}
        if not own or check.kind == TOGETHER:
            return
        if whole and (check.own or check.kind != APART):
            low = self._low(check) if check.kind != APART else None
            most = check.bound + (check.own if check.kind == APART else 0)
            most += 0 if low is None else self.upper[low]
            room = np.maximum(0, most - base)
            terms = self._counted(k, [b])
            if b in self.paid:
                self._row({**terms, self.paid[b]: -int(room.max())}, 0)
            else:
                self._row(terms, int(room.sum()))
        elif check.kind == APART and not check.own and check.bound == 0 and b in self.paid:
            for c in own:
                for other in self.of_bin[b]:
                    if k in self.world.classes[other].counters and other != c:
                        one, two = self.most[c, b], self.most[other, b]
                        row = {self.at[c, b]: two, self.at[other, b]: one}
                        self._row({**row, self.paid[b]: -one * two}, 0)

    # -- answers -------------------------------------------------------------------------------

    @cached_property
    def _prices(self) -> np.ndarray:
        cost = np.zeros(len(self.lower))
        for b, j in self.paid.items():
            cost[j] = int(self.world.a.price[self.bins[b][0]]) // self.unit
        return cost

    def _asked(self, cost: np.ndarray) -> Any:
        from scipy.optimize import Bounds, LinearConstraint, milp  # takes a third of a second
        from scipy.sparse import csr_array

        first = np.cumsum([0, *(len(terms) for _, _, terms in self.rows)])
        columns = np.array([j for *_, terms in self.rows for j in terms], dtype=np.int64)
        values = np.array([v for *_, terms in self.rows for v in terms.values()], dtype=float)
        matrix = csr_array((values, columns, first), shape=(len(self.rows), len(self.lower)))
        least, most = np.array([row[:2] for row in self.rows]).reshape(-1, 2).T
        return milp(
            cost,
            constraints=[LinearConstraint(matrix, least, most)] if self.rows else (),
            integrality=np.ones(len(cost)),
            bounds=Bounds(np.array(self.lower), np.array(self.upper)),
            options={
                "node_limit": min(_MAX_BRANCHES, _BRANCHES // len(cost)),
                "mip_rel_gap": 0.0,
                "time_limit": self.seconds,
            },
        )

    def solve(self) -> tuple[int, np.ndarray | None]:
        """Return a price that no end beats, 0 where none is known, and the best solution."""
        if not self.lower:  # nothing is left to choose
            return self.sunk, np.empty(0)
        answer = self._asked(self._prices)
        bound = answer.mip_dual_bound
        if bound is None or not np.isfinite(bound):
            return 0, answer.x
        return self.sunk + self.unit * math.ceil(bound - 1e-6 * max(1.0, abs(bound))), answer.x

    def cost(self, x: np.ndarray) -> int:
        """Return the price of a solution."""
        return self.sunk + self.unit * round(float(self._prices @ x))

    def with_most_at_home(self, price: int) -> tuple[np.ndarray | None, bool]:
        """Return an end of at most this price that few starts reach, (M,); every bin is a node.

        And whether no such end needs fewer.
        """
        prices = self._prices
        cheap = {j: int(prices[j]) for j in self.paid.values() if prices[j]}
        if cheap:
            self._row(cheap, (price - self.sunk) // self.unit)
        stay: list[int] = []
        for (c, b), j in self.at.items():
            home = int(self.world.classes[c].home[self.bins[b]].sum())
            if home:
                here = self._variable(min(home, self.upper[j]))
                self._row({here: 1, j: -1}, 0)
                stay.append(here)
        if not self.lower:
            return self._decoded(np.empty(0)), True
        cost = np.zeros(len(self.lower))
        cost[stay] = -1
        answer = self._asked(cost)
        return None if answer.x is None else self._decoded(answer.x), answer.status == 0

    def _decoded(self, x: np.ndarray) -> np.ndarray:
        """Return the node of every microservice in a solution; what can stay at home does."""
        node = self.world.a.stays_on.copy()
        for c, one in enumerate(self.world.classes):
            free = {int(self.bins[b][0]): round(x[self.at[c, b]]) for b in self.of_class[c]}
            away = list(one.others)
            for m in one.resting:
                home = int(self.world.a.home[m])
                if free.get(home, 0) > 0:
                    free[home] -= 1
                else:
                    away.append(m)
            places = [n for n, count in free.items() for _ in range(count)]
            node[away] = places
        return node
