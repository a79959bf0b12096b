"""The program of the cheapest end: who ends on which nodes or kinds of nodes, which are paid."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from importlib.util import find_spec
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from placeopt.rolling_update.end_classes import Check, PodClass, World
from placeopt.rolling_update.rules import APART, NO_LIMIT, TOGETHER

if TYPE_CHECKING:
    from scipy.sparse import csr_array

#: Nodes of branch and bound at most, and these times variables; a limit in seconds would not give
#: the same bound twice.
_MAX_BRANCHES, _BRANCHES, _FEW_BRANCHES = 2000, 400_000, 20_000
#: Nodes of branch and bound of an easy program, times variables.
EASY = 20_000
#: Levels of the fewest copies of a domain that are variables each.
_MOST_LEVELS = 12
#: What `scipy.optimize.milp` says.
_OPTIMAL, _INFEASIBLE = 0, 2
#: Of CP-SAT, in its own time, which does not depend on the machine.
_CP_SAT_TIME = 5.0

#: The least and most of a sum of variables.
Row = tuple[float, float, Mapping[int, int]]


class Solved(NamedTuple):
    """A solution, if there is one, a bound of the sum that was minimized, and what is proven."""

    x: np.ndarray | None
    bound: float
    optimal: bool
    infeasible: bool
    branches: int = 0


class EndProgram:
    """The program over bins, each one node or the nodes of one kind.

    HiGHS solves it; CP-SAT where that is asked for and installed.
    """

    def __init__(
        self,
        world: World,
        bins: Sequence[np.ndarray],
        seconds: float = math.inf,
        *,
        least_hosts: Mapping[int, int] | None = None,
        cp_sat: bool = False,
    ):
        self.world, self.bins, self.seconds = world, list(bins), seconds
        self.is_easy = False  #: Whether the last price was proven within few branches.
        self.by_cp_sat = cp_sat and find_spec("ortools") is not None
        self.lower: list[int] = []
        self.upper: list[int] = []
        self.rows: list[Row] = []
        a = world.a
        self.unit = math.gcd(*a.price.tolist()) or 1
        self.sunk = int(a.price[world.forced].sum())
        self.is_fixed = [bool(world.fixed[nodes[0]]) for nodes in self.bins]
        self.paid = {
            b: self._variable(len(nodes))
            for b, nodes in enumerate(self.bins)
            if not self.is_fixed[b]
        }
        self._bins_in: dict[int, dict[int, list[int]]] = {}
        self.most: dict[tuple[int, int], int] = {}  # of a class on one node of a bin
        self.at: dict[tuple[int, int], int] = {}
        self._add_classes()
        self._add_room()
        self._add_limits()
        self.anyway = self._variable(1)
        self.lower[self.anyway] = 1
        self.fewest: dict[int, int] = {}
        self.levels: dict[int, list[int]] = {}
        self.levels_on: dict[tuple[int, int], list[int]] = {}
        self.counts = [
            [c for c, one in enumerate(world.classes) if k in one.counters]
            for k in range(len(world.domain))
        ]
        self._add_rules()
        for k, least in (least_hosts or {}).items():
            self._row(dict.fromkeys(self._hosts(k), 1), least=least - self._always_there(k))

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
        world, sizes = self.world, [len(nodes) for nodes in self.bins]
        flat = np.concatenate([np.empty(0, dtype=np.int64), *self.bins])
        first = np.concatenate(([0], np.cumsum(sizes)))[:-1].astype(np.int64)
        room = world.left[flat]
        for c, one in enumerate(world.classes if sizes else ()):
            most = self._most_on_one(one, room, flat, first)
            resting = np.add.reduceat(one.home[flat], first)
            total = np.where(one.host[flat[first]], np.minimum(len(one), most * sizes), resting)
            for b in np.flatnonzero((most > 0) & (total > 0)).tolist():
                self.most[c, b] = int(most[b])
                self.at[c, b] = self._variable(min(len(one), int(total[b])))
        self.of_class: dict[int, list[int]] = defaultdict(list)
        self.of_bin: dict[int, list[int]] = defaultdict(list)
        for c, b in self.at:
            self.of_class[c].append(b)
            self.of_bin[b].append(c)
        for c, one in enumerate(world.classes):
            self._row({self.at[c, b]: 1 for b in self.of_class[c]}, len(one), len(one))

    def _most_on_one(
        self, one: PodClass, room: np.ndarray, flat: np.ndarray, first: np.ndarray
    ) -> np.ndarray:
        """Return how many of a class one node of each bin has room for, by itself, (bins,).

        The nodes of all bins are `flat`, their room is `room`, and each bin begins at `first`.
        """
        asked = one.size > 0
        fits = (room[:, asked] // one.size[asked]).min(axis=1, initial=len(one))
        most: np.ndarray = np.maximum.reduceat(fits, first)
        for check in one.checks:
            if check.kind == APART and check.own and self.world.fine[check.counter]:
                inside = np.minimum.reduceat(self.world.domain[check.counter, flat], first) >= 0
                most = np.where(inside, np.minimum(most, check.bound + 1), most)
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
        if k in self._bins_in:
            return self._bins_in[k]
        found = self._bins_in[k] = defaultdict[int, list[int]](list)
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
        inside = world.domain[k] >= 0
        always = set(world.domain[k, inside & (stays if shrinks else True)].tolist())
        most = world.total(k) // max(1, len(always))
        low = self.fewest[k] = self._variable(most)
        many = [b for b, own in enumerate(self.bins) if len(np.unique(world.domain[k, own])) > 1]
        for b in many:
            self._add_low(k, b, low)
        counted = (world.domain[k, self.bins[b]] for b in many)
        for d in always.difference(*counted):  # all whose copies are counted by themselves
            terms = dict.fromkeys(self._counted(k, domains.get(d, [])), -1)
            self._row({**terms, low: 1}, int(world.base[k][d]))
        for d, bins in domains.items():
            if d not in always and len(bins) == 1 and bins[0] in self.paid:  # left if not paid
                terms = dict.fromkeys(self._counted(k, bins), -1)
                row = {**terms, low: 1, self.paid[bins[0]]: most}
                self._row(row, int(world.base[k][d]) + most)
        return low

    def _add_low(self, k: int, b: int, low: int) -> None:
        """Add that all nodes of one kind, domains of a counter, have the fewest copies at least.

        Where they may be left, `low` is a sum of levels, and each level times the nodes a variable.
        """
        world, nodes, most = self.world, self.bins[b], self.upper[low]
        base = world.base[k][world.domain[k, nodes]]
        terms = dict.fromkeys(self._counted(k, [b]), -1)
        if b not in self.paid:
            if world.real[nodes].all() and self._has_domain(k, nodes):
                self._row({**terms, low: len(nodes)}, int(base.sum()))
            return
        if not world.a.rules.shrinks[k] or not 0 < most <= _MOST_LEVELS:
            return
        if k not in self.levels:
            self.levels[k] = [self._variable(1) for _ in range(most)]
            self._row({low: 1, **dict.fromkeys(self.levels[k], -1)}, 0, 0)
            for one, more in itertools.pairwise(self.levels[k]):
                self._row({more: 1, one: -1}, 0)
        paid, own = self.paid[b], [self._variable(len(nodes)) for _ in range(most)]
        for level, both in zip(self.levels[k], own, strict=True):
            self._row({both: 1, level: -len(nodes)}, 0)
            self._row({both: 1, paid: -1}, 0)
            self._row({paid: 1, level: len(nodes), both: -1}, len(nodes))
        self._row({**terms, **dict.fromkeys(own, 1), paid: -int(base[0])}, 0)
        self.levels_on[k, b] = own

    def spread_evenly(self, k: int, hosts: int) -> None:
        """Ask that no node, each a bin, has more of counter k than so many hosts share evenly."""
        each, more = divmod(self.world.total(k), hosts)
        fuller = []
        for bins in self._domains(k).values():
            terms = self._counted(k, bins)
            if terms:
                fuller.append(self._variable(1))
                self._row({**terms, fuller[-1]: -1}, each)
        self._row(dict.fromkeys(fuller, 1), more)

    def _hosts(self, k: int) -> list[int]:
        """Return the variables of nodes that may be left and may host what counter k counts."""
        return [self.paid[b] for b in self.paid if any((c, b) in self.at for c in self.counts[k])]

    def _always_there(self, k: int) -> int:
        """Return how many nodes may host what counter k counts besides those of `_hosts`."""
        world = self.world
        stuck = set(np.flatnonzero(world.base[k] > 0).tolist())
        hosts = {n for n, d in enumerate(world.domain[k].tolist()) if d in stuck}
        for b, nodes in enumerate(self.bins):
            if b not in self.paid and any((c, b) in self.at for c in self.counts[k]):
                hosts.update(nodes.tolist())
        return len(hosts)

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
            levels = self.levels_on.get((k, b), []) if low is not None else []
            most += 0 if low is None or levels else self.upper[low]
            room = np.maximum(0, most - base)
            terms = self._counted(k, [b])
            if b in self.paid:
                row = {**terms, self.paid[b]: -int(room.max())}
                self._row({**row, **dict.fromkeys(levels, -1)}, 0)
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
    def _prices(self) -> dict[int, int]:
        price = self.world.a.price
        return {j: int(price[self.bins[b][0]]) // self.unit for b, j in self.paid.items()}

    def _asked(
        self, cost: Mapping[int, float], rows: Sequence[Row] = (), branches: int = _BRANCHES
    ) -> Solved:
        """Minimize a sum under all rows, and some more."""
        from scipy.sparse import csr_array  # takes a third of a second

        rows, count = [*self.rows, *rows], len(self.lower)
        first = np.cumsum([0, *(len(terms) for _, _, terms in rows)])
        columns = np.array([j for *_, terms in rows for j in terms], dtype=np.int64)
        values = np.array([v for *_, terms in rows for v in terms.values()], dtype=float)
        matrix = csr_array((values, columns, first), shape=(len(rows), count))
        least, most = np.array([row[:2] for row in rows]).reshape(-1, 2).T
        goal = np.zeros(count)
        goal[list(cost)] = list(cost.values())
        if self.by_cp_sat:
            return self._by_cp_sat(goal, matrix, least, most)
        from scipy.optimize import Bounds, LinearConstraint, milp

        answer = milp(
            goal,
            constraints=[LinearConstraint(matrix, least, most)] if rows else (),
            integrality=np.ones(count),
            bounds=Bounds(np.array(self.lower), np.array(self.upper)),
            options={
                "node_limit": min(_MAX_BRANCHES, branches // count),
                "mip_rel_gap": 0.0,
                "time_limit": self.seconds,
            },
        )
        bound = -math.inf if answer.mip_dual_bound is None else answer.mip_dual_bound
        proven = answer.status == _OPTIMAL, answer.status == _INFEASIBLE
        return Solved(answer.x, bound, *proven, answer.get("mip_node_count") or 0)

    def _by_cp_sat(
        self, goal: np.ndarray, matrix: csr_array, least: np.ndarray, most: np.ndarray
    ) -> Solved:
        from placeopt.exact.program import Program
        from placeopt.exact.solvers import solve

        lower, upper = np.array(self.lower), np.array(self.upper)
        program = Program(goal, matrix, least, most, lower, upper, np.array(True))
        options = {"max_deterministic_time": _CP_SAT_TIME}
        found = solve(program, "cp-sat", seconds=self.seconds, options=options)
        return Solved(found.x, found.bound, found.status == "optimal", found.status == "infeasible")

    def solve(
        self, starts: float = math.inf, branches: int = _BRANCHES
    ) -> tuple[float, np.ndarray | None]:
        """Return a price that no end beats, infinite where there is none, and the best solution.

        Only ends that at most so many `starts` reach count.
        """
        rows = [] if math.isinf(starts) else [self._with_at_home(starts)]
        answer = self._asked(self._prices, rows, branches)
        bound = answer.bound
        self.is_easy = answer.optimal and answer.branches * len(self.lower) <= EASY
        if answer.infeasible:
            return math.inf, None
        if not np.isfinite(bound):
            return 0, answer.x
        return self.sunk + self.unit * math.ceil(bound - 1e-6 * max(1.0, abs(bound))), answer.x

    def cost(self, x: np.ndarray) -> int:
        """Return the price of a solution."""
        return self.sunk + self.unit * sum(v * round(x[j]) for j, v in self._prices.items())

    def paid_in(self, x: np.ndarray) -> dict[int, int]:
        """Return how many nodes of each kind that may be left are paid in a solution."""
        return {b: round(x[j]) for b, j in self.paid.items()}

    def with_most_room(self, price: int) -> np.ndarray | None:
        """Return the solution of at most this price whose nodes have most room."""
        a = self.world.a
        room = (a.capacity / np.maximum(1, a.capacity.max(axis=0)))[:, :2].sum(axis=1)
        cost = {j: -float(room[self.bins[b][0]]) for b, j in self.paid.items()}
        return self._asked(cost, self._at_most(price), _FEW_BRANCHES).x

    def _at_most(self, price: int) -> list[Row]:
        return [(-np.inf, (price - self.sunk) // self.unit, self._prices)]

    def ask_for_more(self, paid: Mapping[int, int]) -> None:
        """Cut off what pays at most so many nodes of some kinds."""
        more = {b: self._variable(1) for b in paid}
        for b, at_least in more.items():
            self._row({at_least: paid[b] + 1, self.paid[b]: -1}, 0)
        self._row(dict.fromkeys(more.values(), 1), least=1)

    def is_possible(self) -> bool | None:
        """Return whether there is any solution; None: not known."""
        answer = self._asked({})
        return False if answer.infeasible else None if answer.x is None else True

    # -- starts --------------------------------------------------------------------------------

    @cached_property
    def _at_home(self) -> list[int]:
        """The variables that count what stays at home; what does not start anew and is paid for.

        Of nodes that are alike at most what rests on so many of them as are paid.
        """
        stay: list[int] = []
        for b, nodes in enumerate(self.bins):
            rests = np.array([self.world.classes[c].home[nodes] for c in self.of_bin[b]])
            own = []
            for c, home in zip(self.of_bin[b], rests.reshape(-1, len(nodes)), strict=True):
                if home.any():
                    own.append(self._variable(min(int(home.sum()), self.upper[self.at[c, b]])))
                    self._row({own[-1]: 1, self.at[c, b]: -1}, 0)
            if own and b in self.paid:
                each = np.sort(rests.sum(axis=0))[::-1]
                for most in np.unique(each).tolist():  # the next node has no more than that
                    row = {**dict.fromkeys(own, 1), self.paid[b]: -most}
                    self._row(row, int((each - most)[each > most].sum()))
            stay += own
        return stay

    def _with_at_home(self, starts: float) -> Row:
        """Return the row of ends that at most so many starts reach."""
        return (self.world.most_starts - starts, np.inf, dict.fromkeys(self._at_home, 1))

    def starts(self, x: np.ndarray) -> int:
        """Return how many starts a solution takes at least."""
        return self.world.most_starts - sum(round(x[j]) for j in self._at_home)

    def of_few_starts(
        self, price: int, branches: int = _BRANCHES
    ) -> tuple[np.ndarray | None, bool]:
        """Return the solution of at most this price that fewest starts reach.

        And whether that is proven: none needs fewer, or there is none.
        """
        answer = self._asked(dict.fromkeys(self._at_home, -1), self._at_most(price), branches)
        return answer.x, answer.optimal or answer.infeasible

    def with_most_at_home(self, price: int) -> tuple[np.ndarray | None, bool]:
        """Return an end of at most this price that few starts reach, (M,); every bin is a node.

        And whether that is proven: no such end needs fewer, or there is none.
        """
        x, proven = self.of_few_starts(price)
        return None if x is None else self.decoded(x), proven

    def decoded(self, x: np.ndarray) -> np.ndarray:
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
