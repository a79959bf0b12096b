"""Rules between microservices and nodes as tables, made from the document.

A *counter* counts the copies of one group in each domain. A *check* is one rule as one microservice
sees it: a counter, a bound, and whether the counter counts its own copies. A copy may start where
its checks hold beside all that runs, and every check has to hold at the end. A copy that is never
started may go on breaking the checks that it broke at the start. The kernels of
`placeopt.rolling_update.rules.kernels` read the tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from placeopt.rolling_update.document import UpdateNode, UpdateRule

#: Kinds of checks.
APART, TOGETHER, SPREAD = 0, 1, 2
#: The skew of a counter over which no rule spreads anything.
ANY_SKEW = 2**40


class RuleTables(NamedTuple):
    """Rules of M microservices on N nodes, with C counters and K checks.

    Kernels take all of it as one array, `packed`: every array handed on costs each call some time.
    """

    allowed: np.ndarray  # (node sets, N) whether a node is in a set
    node_set: np.ndarray  # (M,) set that new copies are restricted to, -1 none; nor what ends
    domain: np.ndarray  # (C, N) domain of a node as the counter numbers them, -1 none
    first: np.ndarray  # (C + 1,) where the counts of a counter begin; the last one is their sum
    base: np.ndarray  # (first[-1],) counts of what comes with the nodes
    floor: np.ndarray  # (C,) whether the fewest copies of a domain are taken as 0
    skew: np.ndarray  # (C,) the largest difference between domains that is legal
    add_first: np.ndarray  # (M + 1,) where each microservice begins in add
    add: np.ndarray  # (.,) counters that count it
    check_first: np.ndarray  # (M + 1,) where each microservice begins in checks
    checks: np.ndarray  # (K, 4) kind, counter, bound, whether its own copies count
    forgiven: np.ndarray  # (K,) whether it does not count for what rests
    need_first: np.ndarray  # (C + 1,) where each counter begins in needs
    needs: np.ndarray  # (., 2) counter of those that need its copies beside them, whether its own
    shrinks: np.ndarray  # (C,) whether nodes that are emptied for good are no domains
    priced: np.ndarray  # (N,) whether a node has a price: it is gone once it hosts nothing

    @property
    def any(self) -> bool:
        """Whether there is any rule, or any set of allowed nodes."""
        return len(self.checks) > 0 or len(self.allowed) > 0

    def are_ruled(self) -> np.ndarray:
        """Return about which microservices there is a rule, bool (M,)."""
        ruled: np.ndarray = (np.diff(self.add_first) > 0) | (np.diff(self.check_first) > 0)
        return ruled

    def packed(self) -> np.ndarray:
        """Return the tables behind each other; where each begins, and the sizes, come first."""
        head, parts = [], []
        at = len(self) + 2
        for part in self:
            head.append(at)
            parts.append(part.ravel().astype(np.int64))
            at += part.size
        sizes = [self.domain.shape[1], int(self.first[-1])]
        return np.concatenate([np.array([*head, *sizes], dtype=np.int64), *parts])


class _Counters:
    """Counters, made when they are first asked for."""

    def __init__(
        self,
        domains: Mapping[str, np.ndarray],
        members: Mapping[str, np.ndarray],
        residents: Mapping[str, np.ndarray],
        sets: Mapping[str, np.ndarray],
    ):
        self.domains, self.members, self.sets = domains, members, sets
        self.residents = residents
        self.keys: dict[tuple[str, str, str | None, bool, bool], int] = {}
        self.rows: list[np.ndarray] = []

    def number(self, group: str, rule: UpdateRule) -> int:
        """Return the counter of a group over the domains of a rule."""
        among = rule.among if rule.kind == "spread" else None
        domain = self.domains[rule.per]
        if among is not None:
            domain = np.where(self.sets[among], domain, -1)
        legal = domain[domain >= 0]
        floor = rule.kind == "spread" and len(np.unique(legal)) < rule.min_domains
        key = (group, rule.per, among, floor, rule.shrinks)
        if key not in self.keys:
            self.keys[key] = len(self.rows)
            numbered = np.full(len(domain), -1)
            numbered[domain >= 0] = np.unique(legal, return_inverse=True)[1]
            self.rows.append(numbered)
        return self.keys[key]


def domains_of(
    nodes: Sequence[UpdateNode], cluster: np.ndarray, rules: Iterable[UpdateRule]
) -> dict[str, np.ndarray]:
    """Return the domain of every node for each `per` of rules, -1 none, shape (N,).

    `cluster` has the clusters of the nodes, and of nodes of no domain behind them.
    """
    results = {}
    for per in {rule.per for rule in rules}:
        numbers = np.full(len(cluster), -1)
        names: dict[str, int] = {}
        for n, node in enumerate(nodes):
            where = {"node": node.name, "cluster": node.cluster}.get(per, node.domains.get(per))
            if where is not None:
                numbers[n] = names.setdefault(where, len(names))
        results[per] = numbers
    return results


def residents_of(nodes: Sequence[UpdateNode], count: int) -> dict[str, np.ndarray]:
    """Return the copies of each group that come with the nodes, shape (count,)."""
    results: dict[str, np.ndarray] = {}
    for n, node in enumerate(nodes):
        for group, copies in node.residents.items():
            results.setdefault(group, np.zeros(count, dtype=np.int64))[n] = copies
    return results


def tables(
    rules: Sequence[UpdateRule],
    *,
    groups: Sequence[Sequence[str]],
    allowed: Sequence[str | None],
    node_sets: Mapping[str, np.ndarray],
    domains: Mapping[str, np.ndarray],
    residents: Mapping[str, np.ndarray],
    home: np.ndarray,
    num_nodes: int,
    removed: np.ndarray | None = None,
    priced: np.ndarray | None = None,
) -> RuleTables:
    """Return rules as tables.

    Parameters
    ----------
    rules : sequence of UpdateRule
    groups : sequence of sequence of str, length M
        The groups of every microservice.
    allowed : sequence of str or None, length M
        The node set of every microservice.
    node_sets : mapping of str to bool array (N,)
    domains : mapping of str to int array (N,)
        From `domains_of`.
    residents : mapping of str to int array (N,)
        From `residents_of`.
    home : int array (M,)
        The node of every microservice now.
    num_nodes : int
    removed : bool array (M,), optional
        Counted while they run; none of them starts, so that neither rules nor allowed nodes bind
        them. None by default.
    priced : bool array (N,), optional
        Nodes that are deleted when they are emptied. None by default.
    """
    starts = np.ones(len(home), dtype=bool) if removed is None else ~removed
    members: dict[str, list[int]] = {group: [] for group in residents}
    for m, own_part in enumerate(groups):
        for group in own_part:
            members.setdefault(group, []).append(m)
    existing = {name: np.array(who, dtype=np.int64) for name, who in members.items()}
    counters = _Counters(domains, existing, residents, node_sets)
    skew: dict[int, int] = {}
    needs: list[tuple[int, int, int]] = []
    # Of each part of the checks: who, kind, counter, bound, whether own copies count, mend.
    parts: list[tuple[np.ndarray, int, int, int, np.ndarray, bool]] = []

    def add(who: np.ndarray, kind: int, group: str, rule: UpdateRule, bound: int) -> int:
        c, who = counters.number(group, rule), who[starts[who]]
        parts.append((who, kind, c, bound, np.isin(who, existing[group]), rule.mend))
        return c

    for rule in rules:
        toward = rule.toward or rule.group
        who = existing[rule.group]
        if rule.kind == "spread":
            c = add(who, SPREAD, toward, rule, rule.max_skew)
            skew[c] = min(skew.get(c, ANY_SKEW), rule.max_skew)
        elif rule.kind == "together":
            c = add(who, TOGETHER, toward, rule, 0)
            own = len(who) > 0 and bool(np.isin(who, existing[toward]).all())
            needs.append((c, counters.number(rule.group, rule), int(own)))
        else:
            add(who, APART, toward, rule, rule.max_copies - 1)
            if toward != rule.group:
                add(existing[toward], APART, rule.group, rule, 0)
    names = list(node_sets)
    number = {name: k for k, name in enumerate(names)}
    result = RuleTables(
        allowed=np.array([node_sets[name] for name in names], dtype=bool).reshape(-1, num_nodes),
        node_set=np.array(
            [
                number[own] if own is not None and new else -1
                for own, new in zip(allowed, starts.tolist(), strict=True)
            ],
            dtype=np.int64,
        ),
        **_counter_tables(counters, skew, needs, num_nodes, len(home)),
        **_check_tables(parts, len(home)),
        priced=np.zeros(num_nodes, dtype=bool) if priced is None else priced,
    )
    return result._replace(forgiven=_broken(result, home) & ~result.forgiven)


def _broken(found: RuleTables, home: np.ndarray) -> np.ndarray:
    """Return which checks the nodes of the microservices now, (M,), break: bool (K,)."""
    first, count = found.first, found.base.copy()
    who = np.repeat(np.arange(len(home)), np.diff(found.add_first))
    at = found.domain[found.add, home[who]]
    counter, at = found.add[at >= 0], at[at >= 0]
    np.add.at(count, first[counter] + at, 1)
    np.add.at(count, first[counter + 1] - 1, 1)
    fewest = [
        0 if floor else count[one : end - 1].min(initial=ANY_SKEW)
        for one, end, floor in zip(first[:-1], first[1:], found.floor, strict=True)
    ]
    kind, c, bound, own = found.checks.T
    owner = np.repeat(np.arange(len(home)), np.diff(found.check_first))
    where = found.domain[c, home[owner]]
    here = count[first[c] + np.maximum(where, 0)]
    company = (here > own) | ((own == 1) & (count[first[c + 1] - 1] == 1))
    even = (here <= bound) | (here - np.array(fewest, dtype=np.int64)[c] <= bound)
    kept = np.select([kind == APART, kind == TOGETHER], [here - own <= bound, company], even)
    broken: np.ndarray = ~np.where(where < 0, kind == APART, kept)
    return broken


def _counter_tables(
    counters: _Counters,
    skew: Mapping[int, int],
    needs: list[tuple[int, int, int]],
    num_nodes: int,
    count: int,
) -> dict[str, np.ndarray]:
    """Return the fields of `RuleTables` that are about counters, of `count` microservices."""
    keys, size = list(counters.keys), len(counters.rows)
    domain = np.array(counters.rows, dtype=np.int64).reshape(-1, num_nodes)
    sizes = [int(row.max(initial=-1)) + 2 for row in domain]
    who = [counters.members[group] for group, *_ in keys]
    base = [
        _base(counters.residents.get(group), row, length)
        for (group, *_), row, length in zip(keys, domain, sizes, strict=True)
    ]
    add_first, add = _lists(who, np.repeat(np.arange(size), [len(w) for w in who]), count)
    rows = np.array(sorted(needs), dtype=np.int64).reshape(-1, 3)
    return {
        "domain": domain,
        "first": np.concatenate(([0], np.cumsum(sizes, dtype=np.int64))),
        "base": np.concatenate([np.empty(0, dtype=np.int64), *base]),
        "floor": np.array([key[3] for key in keys], dtype=bool),
        "shrinks": np.array([key[4] for key in keys], dtype=bool),
        "skew": np.array([skew.get(c, ANY_SKEW) for c in range(size)], dtype=np.int64),
        "add_first": add_first,
        "add": add,
        "need_first": np.searchsorted(rows[:, 0], np.arange(size + 1)).astype(np.int64),
        "needs": np.ascontiguousarray(rows[:, 1:]),
    }


def _base(copies: np.ndarray | None, domain: np.ndarray, length: int) -> np.ndarray:
    """Return the counts (length,) of copies (N,) that come with nodes; their sum comes last."""
    count = np.zeros(length, dtype=np.int64)
    if copies is not None:
        np.add.at(count, domain[domain >= 0], copies[domain >= 0])
        count[-1] = count.sum()
    return count


def _check_tables(
    parts: Sequence[tuple[np.ndarray, int, int, int, np.ndarray, bool]], count: int
) -> dict[str, np.ndarray]:
    """Return the fields on checks; `forgiven` says for now which checks are to be mended."""
    rows = [
        np.column_stack(
            (
                np.full(len(who), kind),
                np.full(len(who), c),
                np.full(len(who), bound),
                own,
                np.full(len(who), mend),
            )
        )
        for who, kind, c, bound, own, mend in parts
    ]
    every = np.concatenate([*rows, np.empty((0, 5))]).astype(np.int64)
    first, checks = _lists([part[0] for part in parts], every, count)
    return {
        "check_first": first,
        "checks": np.ascontiguousarray(checks[:, :4]),
        "forgiven": checks[:, 4] > 0,
    }


def _lists(
    who: Sequence[np.ndarray], items: np.ndarray, count: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return where each of `count` microservices begins among `items`, and these sorted by it."""
    owner = np.concatenate([*who, np.empty(0, dtype=np.int64)]).astype(np.int64)
    order = np.argsort(owner, kind="stable")
    first = np.concatenate(([0], np.cumsum(np.bincount(owner, minlength=count))))
    return first.astype(np.int64), np.ascontiguousarray(items[order]).astype(np.int64)
