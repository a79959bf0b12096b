"""Rules between microservices and nodes as tables, made from the document.

A *counter* counts the copies of one group in each domain. A *check* is one rule as one microservice
sees it: a counter, a bound, and whether the counter counts its own copies. A copy may start where
its checks hold beside all that runs, and every check has to hold at the end. A copy that is never
started may go on breaking the checks that it broke at the start. The kernels of
`placeopt.rolling_update.rules` read the tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from placeopt.core.kernels.compile import allocating_kernel, kernel
from placeopt.rolling_update.document import NodeLimit, UpdateNode, UpdateRule, UpdateSurvival

# -- tables of rules -------------------------------------------------------------------------------

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


# -- kernels of rules ------------------------------------------------------------------------------

# Places of the head of packed tables: where each begins, in the order of `RuleTables`; the sizes.
(
    _ALLOWED,
    _NODE_SET,
    _DOMAIN,
    _FIRST,
    _BASE,
    _FLOOR,
    _SKEW,
    _ADD_FIRST,
    _ADD,
    _CHECK_FIRST,
    _CHECKS,
    _FORGIVEN,
    _NEED_FIRST,
    _NEEDS,
    _SHRINKS,
    _PRICED,
    _NODES,
    _COUNTS,
) = range(18)
#: What is added to the count of a node that is no domain any more: it is not the one with fewest.
_GONE = 2**30


@kernel
def _get(rules, table, k):
    """Return entry k of a table."""
    return rules[rules[table] + k]


@kernel
def _domain(rules, c, n):
    """Return the domain of node n as counter c numbers them, -1 for none."""
    return rules[rules[_DOMAIN] + c * rules[_NODES] + n]


@kernel
def is_ruled(rules, m):
    """Return whether any rule but allowed nodes is about microservice m."""
    adds = _get(rules, _ADD_FIRST, m) < _get(rules, _ADD_FIRST, m + 1)
    return adds or _get(rules, _CHECK_FIRST, m) < _get(rules, _CHECK_FIRST, m + 1)


@kernel
def num_counters(rules):
    """Return the number of counters."""
    return rules[_BASE] - rules[_FIRST] - 1


@allocating_kernel
def counters_of(rules, m):
    """Return the counters that count microservice m or that its checks ask, repeated or not."""
    first, last = _get(rules, _ADD_FIRST, m), _get(rules, _ADD_FIRST, m + 1)
    low, high = _get(rules, _CHECK_FIRST, m), _get(rules, _CHECK_FIRST, m + 1)
    result = np.empty(last - first + high - low, np.int64)
    for k in range(first, last):
        result[k - first] = _get(rules, _ADD, k)
    for k in range(low, high):
        result[last - first + k - low] = _get(rules, _CHECKS, 4 * k + 1)
    return result


@kernel
def is_allowed(rules, m, n):
    """Return whether node n is one of those that new copies of microservice m may start on."""
    which = _get(rules, _NODE_SET, m)
    return which < 0 or rules[rules[_ALLOWED] + which * rules[_NODES] + n] > 0


@kernel
def tally(rules, count, m, n, sign):
    """Add a copy of microservice m on node n to the counts (sign 1), or remove it (-1).

    Changes `count`, shape (first[-1],).
    """
    for k in range(_get(rules, _ADD_FIRST, m), _get(rules, _ADD_FIRST, m + 1)):
        c = _get(rules, _ADD, k)
        d = _domain(rules, c, n)
        if d >= 0:
            count[_get(rules, _FIRST, c) + d] += sign
            count[_get(rules, _FIRST, c + 1) - 1] += sign


@kernel
def may_go(rules, n):
    """Return whether node n has a price, and is no domain of some rule while nothing uses it."""
    result = False
    if _get(rules, _PRICED, n) > 0:
        for c in range(num_counters(rules)):
            result = result or (shrinks(rules, c) and _domain(rules, c, n) >= 0)
    return result


@kernel
def shrinks(rules, c):
    """Return whether nodes that are emptied for good are no domains of counter c."""
    return _get(rules, _SHRINKS, c) > 0


@kernel
def leave(rules, count, n, sign):
    """Take node n out of the domains that shrink (sign 1), or put it back (-1); changes `count`."""
    for c in range(num_counters(rules)):
        if shrinks(rules, c):
            d = _domain(rules, c, n)
            if d >= 0:
                count[_get(rules, _FIRST, c) + d] += sign * _GONE


@kernel
def _fewest(rules, count, c):
    """Return the least count of a domain of counter c."""
    if _get(rules, _FLOOR, c) > 0:
        return 0
    fewest = ANY_SKEW
    for at in range(_get(rules, _FIRST, c), _get(rules, _FIRST, c + 1) - 1):
        fewest = min(fewest, count[at])
    return fewest


@kernel
def _is_kept(rules, count, k, n):
    """Return whether check k holds for a copy on node n that is counted already."""
    kind, c = _get(rules, _CHECKS, 4 * k), _get(rules, _CHECKS, 4 * k + 1)
    bound, own = _get(rules, _CHECKS, 4 * k + 2), _get(rules, _CHECKS, 4 * k + 3)
    d = _domain(rules, c, n)
    if d < 0:
        return kind == APART
    here = count[_get(rules, _FIRST, c) + d]
    if kind == APART:
        return here - own <= bound
    if kind == TOGETHER:
        return here > own or (own == 1 and count[_get(rules, _FIRST, c + 1) - 1] == 1)
    return here <= bound or here - _fewest(rules, count, c) <= bound


@kernel
def holds(rules, count, m, n, rests):
    """Return whether microservice m may be on node n, where it is counted already.

    `rests` says that it was never started.
    """
    if not rests and not is_allowed(rules, m, n):
        return False
    for k in range(_get(rules, _CHECK_FIRST, m), _get(rules, _CHECK_FIRST, m + 1)):
        if not (rests and _get(rules, _FORGIVEN, k) > 0) and not _is_kept(rules, count, k, n):
            return False
    return True


@kernel
def may_start(rules, count, m, n):
    """Return whether a copy of microservice m may start on node n beside all that is counted."""
    if not is_allowed(rules, m, n):
        return False
    if _get(rules, _CHECK_FIRST, m) == _get(rules, _CHECK_FIRST, m + 1):
        return True
    tally(rules, count, m, n, 1)
    fine = holds(rules, count, m, n, False)
    tally(rules, count, m, n, -1)
    return fine


@kernel
def _gap(rules, count, c):
    """Return the most copies that a domain of counter c has more than another."""
    most = 0
    for at in range(_get(rules, _FIRST, c), _get(rules, _FIRST, c + 1) - 1):
        if count[at] < _GONE:
            most = max(most, count[at])
    return most - _fewest(rules, count, c)


@kernel
def _wide(rules, count, m):
    """Return by how much the counters of microservice m are spread more unevenly than is legal."""
    total = 0
    for k in range(_get(rules, _ADD_FIRST, m), _get(rules, _ADD_FIRST, m + 1)):
        c = _get(rules, _ADD, k)
        if _get(rules, _SKEW, c) < ANY_SKEW:
            total += max(0, _gap(rules, count, c) - _get(rules, _SKEW, c))
    return total


@kernel
def _is_missed(rules, count, m, o):
    """Return whether some copy in a domain of node o, which m has left, needed its company."""
    for k in range(_get(rules, _ADD_FIRST, m), _get(rules, _ADD_FIRST, m + 1)):
        c = _get(rules, _ADD, k)
        d = _domain(rules, c, o)
        for r in range(_get(rules, _NEED_FIRST, c), _get(rules, _NEED_FIRST, c + 1)):
            other, own = _get(rules, _NEEDS, 2 * r + 0), _get(rules, _NEEDS, 2 * r + 1)
            if d >= 0 and count[_get(rules, _FIRST, other) + d] > 0:
                alone = own == 1 and count[_get(rules, _FIRST, c + 1) - 1] == 1
                if count[_get(rules, _FIRST, c) + d] <= own and not alone:
                    return True
    return False


@kernel
def may_move(rules, count, m, o, n, rests):
    """Return whether the rules allow microservice m, counted on node o, on node n instead.

    No rule that holds may be broken by that, of m or of others; `count` is as before afterwards.
    """
    if not rests and not is_allowed(rules, m, n):
        return False
    if not is_ruled(rules, m):
        return True
    tally(rules, count, m, o, -1)
    tally(rules, count, m, n, 1)
    fine = holds(rules, count, m, n, rests) and not _is_missed(rules, count, m, o)
    wide = _wide(rules, count, m) if fine else 0
    tally(rules, count, m, n, -1)
    tally(rules, count, m, o, 1)
    return fine and (wide == 0 or wide < _wide(rules, count, m))


@kernel
def may_swap(rules, count, m, o, rests_there, p, n, rests_here):
    """Return whether m of node o and p of node n may swap places; see `may_move`."""
    if not (rests_there or is_allowed(rules, m, n)) or not (rests_here or is_allowed(rules, p, o)):
        return False
    if not is_ruled(rules, m) and not is_ruled(rules, p):
        return True
    before = _wide(rules, count, m) + _wide(rules, count, p)
    _exchange(rules, count, m, o, p, n)
    fine = holds(rules, count, m, n, rests_there) and holds(rules, count, p, o, rests_here)
    fine = fine and not _is_missed(rules, count, m, o) and not _is_missed(rules, count, p, n)
    wide = _wide(rules, count, m) + _wide(rules, count, p)
    _exchange(rules, count, m, n, p, o)
    return fine and (wide == 0 or wide < before)


@kernel
def _exchange(rules, count, m, o, p, n):
    """Count m on node n instead of o, and p on o instead of n; changes `count`."""
    tally(rules, count, m, o, -1)
    tally(rules, count, p, n, -1)
    tally(rules, count, m, n, 1)
    tally(rules, count, p, o, 1)


@kernel
def meets_itself(rules, m, o, n):
    """Return whether copies of m on nodes o and n, both running, would break a rule of m."""
    for k in range(_get(rules, _CHECK_FIRST, m), _get(rules, _CHECK_FIRST, m + 1)):
        kind, c = _get(rules, _CHECKS, 4 * k), _get(rules, _CHECKS, 4 * k + 1)
        bound, own = _get(rules, _CHECKS, 4 * k + 2), _get(rules, _CHECKS, 4 * k + 3)
        if kind == APART and own == 1 and bound == 0:
            d = _domain(rules, c, n)
            if d >= 0 and d == _domain(rules, c, o):
                return True
    return False


@allocating_kernel
def counted(rules, node):
    """Return the counts of a deployment, the node of every microservice (M,), -1 for none.

    What comes with the nodes is counted, too.
    """
    count = rules[rules[_BASE] : rules[_BASE] + rules[_COUNTS]].copy()
    for m in range(len(node)):
        if node[m] >= 0:
            tally(rules, count, m, node[m], 1)
    return count


@kernel
def num_broken_by(rules, count, m, n):
    """Return how many checks of microservice m on node n, counted there, do not hold."""
    broken = 0
    for k in range(_get(rules, _CHECK_FIRST, m), _get(rules, _CHECK_FIRST, m + 1)):
        broken += not _is_kept(rules, count, k, n)
    return broken


@allocating_kernel
def _leave_empty(rules, count, node):
    """Take nodes that a deployment, (M,), empties out of the domains that shrink."""
    used = np.zeros(rules[_NODES], np.bool_)
    for m in range(len(node)):
        if node[m] >= 0:
            used[node[m]] = True
    for n in range(len(used)):
        if not used[n] and may_go(rules, n):
            leave(rules, count, n, 1)


@allocating_kernel
def num_broken(rules, nodes, rests):
    """Return how many checks each of some deployments breaks, shape (K,).

    Parameters
    ----------
    rules : int array
        Packed tables.
    nodes : int array (K, M)
        The node of every microservice.
    rests : bool array (K, M)
        Whether a microservice was never started.
    """
    broken = np.zeros(len(nodes), np.int64)
    for k in range(len(nodes)):
        count = counted(rules, nodes[k])
        _leave_empty(rules, count, nodes[k])
        for m in range(nodes.shape[1]):
            n, rest = nodes[k, m], rests[k, m]
            if not rest and not is_allowed(rules, m, n):
                broken[k] += 1
            for check in range(_get(rules, _CHECK_FIRST, m), _get(rules, _CHECK_FIRST, m + 1)):
                if not (rest and _get(rules, _FORGIVEN, check) > 0):
                    broken[k] += not _is_kept(rules, count, check, n)
    return broken


# -- the loss of a node ----------------------------------------------------------------------------


class Survival:
    """What is asked, as arrays, of N nodes and G groups that need copies.

    Parameters
    ----------
    survival : UpdateSurvival or None
        None asks for nothing.
    groups : sequence of sequence of str, length M
        The groups of every microservice.
    capacity : int array (N, R)
        Of the nodes of the document.
    standing : bool array (N or more,)
        Nodes that are there whether or not they host something.

    Attributes
    ----------
    names : tuple of str, length G
    spare : int array (G,)
        Copies of a group that may be missing.
    member, group : int array (E,)
        The microservices of the groups, and the group of each.
    room : bool
        Whether what any one node hosts must find a place on the others in use.
    """

    def __init__(
        self,
        survival: UpdateSurvival | None,
        groups: Sequence[Sequence[str]],
        capacity: np.ndarray,
        standing: np.ndarray,
    ):
        wanted = survival or UpdateSurvival()
        self.names, self.room = tuple(wanted.needs), wanted.room
        self.capacity, self.standing = capacity, standing[: len(capacity)]
        number = {name: g for g, name in enumerate(self.names)}
        pairs = [(m, number[x]) for m, own in enumerate(groups) for x in own if x in number]
        self.member, self.group = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
        sizes = np.bincount(self.group, minlength=len(number))
        self.spare: np.ndarray = sizes - np.array(list(wanted.needs.values()), dtype=np.int64)

    @property
    def asked(self) -> bool:
        """Whether copies are needed, so that what is lost at worst is an objective."""
        return len(self.names) > 0

    def lost(self, targets: np.ndarray) -> np.ndarray:
        """Return the copies that are needed and lost with the worst node, shape (K,).

        Parameters
        ----------
        targets : int array (K, M)
            The node of every microservice in K deployments; what is on none of the nodes of the
            document is not counted.
        """
        return self._per_node(targets).max(axis=1)  # type: ignore[no-any-return]

    def _per_node(self, targets: np.ndarray) -> np.ndarray:
        """Return what is lost with each node, shape (K, N)."""
        nodes, count = len(self.capacity), len(targets)
        at = targets[:, self.member]
        there = (at >= 0) & (at < nodes)
        row = np.arange(count)[:, None] * len(self.spare) + self.group
        keys, copies = np.unique(row[there] * nodes + at[there], return_counts=True)
        rows, n = np.divmod(keys, nodes)
        which, g = np.divmod(rows, max(1, len(self.spare)))
        lost = np.maximum(0, copies - self.spare[g])
        result: np.ndarray = np.bincount(which * nodes + n, lost, count * nodes)
        return result.reshape(count, nodes)

    def added(self, where: np.ndarray, m: int, *, first: bool) -> np.ndarray:
        """Return by how much the objective grows if microservice m goes to each node, (N,).

        Parameters
        ----------
        where : int array (M,)
            The node of every microservice, -1 for those that are not decided, m among them.
        m : int
        first : bool
            Whether what is there already is added, too.
        """
        now = self._per_node(where[None])[0]
        after = now.copy()
        for g in self.group[self.member == m]:
            at = where[self.member[self.group == g]]
            there = np.bincount(at[(at >= 0) & (at < len(now))], minlength=len(now))
            after += there >= self.spare[g]
        return np.maximum(after, now.max()) - (0.0 if first else now.max())

    def largest_first(self, size: np.ndarray) -> np.ndarray:
        """Return microservices of some sizes, (M, R), the largest share of a node first, (M,)."""
        share = (size / np.maximum(1, self.capacity.max(axis=0))).max(axis=1)
        return np.argsort(-share, kind="stable")

    def lacking(self, used: np.ndarray, need: np.ndarray) -> np.ndarray:
        """Return by what share of what is needed the room of others falls short, shape (K,).

        Room together is necessary, and quickly asked; `losses.num_unplaceable` asks copy by copy.

        Parameters
        ----------
        used : bool array (K, N or more)
            The nodes that host something, in K deployments.
        need : int array (R,)
            What all that runs asks for together.
        """
        there = used[:, : len(self.capacity)] | self.standing
        largest = (there[:, :, None] * self.capacity).max(axis=1)
        short = need - (there @ self.capacity - largest)
        total: np.ndarray = (np.maximum(0, short) / np.maximum(1, need)).sum(axis=1)
        return total

    def rules(self, home: np.ndarray, stuck: np.ndarray) -> list[UpdateRule]:
        """Return rules that lose no copy, of the groups that can do so.

        What rests has to obey them, too, unless what cannot move breaks them.

        Parameters
        ----------
        home : int array (M,)
        stuck : bool array (M,)
        """
        results = []
        for g in np.flatnonzero(self.spare > 0).tolist():
            own, most = self.member[self.group == g], int(self.spare[g])
            held = int(np.bincount(home[own[stuck[own]]], minlength=1).max())
            rule = {"kind": "apart", "group": self.names[g], "max_copies": most}
            results.append(UpdateRule.model_validate(rule | {"mend": held <= most}))
        return results


# -- limits ----------------------------------------------------------------------------------------

#: Stands for no limit of an amount.
NO_LIMIT = np.iinfo(np.int64).max // 4


class NodeLimits:
    """L limits of N nodes as arrays.

    Parameters
    ----------
    limits : sequence of NodeLimit
    number : mapping of str to int
        Node -> its number.
    now : bool array (N,)
        Nodes that host something now.

    Attributes
    ----------
    amount : int array (L, N)
    most : int array (L,)
        The largest sum of amounts; very large where there is none.
    share : float array (L,)
        The largest share of the nodes in use; 1 where there is none.
    bought : bool array (N,)
        Nodes that host nothing now and count towards some largest sum.
    """

    def __init__(self, limits: Sequence[NodeLimit], number: Mapping[str, int], now: np.ndarray):
        self.now = now
        self.amount = np.zeros((len(limits), len(now)), dtype=np.int64)
        for k, limit in enumerate(limits):
            self.amount[k, [number[name] for name in limit.amounts]] = list(limit.amounts.values())
        self.most = np.array([NO_LIMIT if x.most is None else x.most for x in limits], np.int64)
        self.share = np.array([1.0 if x.share is None else x.share for x in limits])
        self.bought: np.ndarray = (self.amount[self.most < NO_LIMIT] > 0).any(axis=0) & ~now

    @property
    def any(self) -> bool:
        """Whether there are limits."""
        return len(self.most) > 0

    def excess(self, used: np.ndarray, real: int) -> np.ndarray:
        """Return by how much deployments break the limits, as shares, shape (K,); 0 is legal.

        Parameters
        ----------
        used : bool array (K, N)
            The nodes that host something at the end.
        real : int
            The nodes of the document come first, so many.
        """
        member = (self.amount > 0).astype(np.int64)
        total, count = used @ self.amount.T, used @ member.T
        adds = (used & ~self.now) @ member.T > 0
        in_use = used[:, :real].sum(axis=1)
        few = np.maximum(1, np.floor(in_use[:, None] * self.share + 1e-9))
        over = np.maximum(0, total - self.most) / np.maximum(1, self.most)
        over += np.where(self.share < 1, np.maximum(0, count - few) / few, 0)
        result: np.ndarray = np.where(adds, over, 0).sum(axis=1)
        return result

    def within(self, used: np.ndarray, real: int) -> bool:
        """Return whether a deployment, the nodes in use as bool (N,), keeps all limits."""
        return not self.any or bool(self.excess(used[None], real)[0] == 0)

    def open_to(self, used: np.ndarray) -> np.ndarray:
        """Return the nodes that may be used beside others, bool (N,), as far as sums tell.

        Those that are used already may be. Another one may if no sum gets too large, or if no node
        of that sum is newly used.

        Parameters
        ----------
        used : bool array (N,)
        """
        if not self.any:
            return np.ones_like(used)
        total = self.amount @ used
        adds = ((self.amount > 0) & used & ~self.now).any(axis=1)
        over = (total[:, None] + self.amount > self.most[:, None]) & (self.amount > 0)
        result: np.ndarray = used | ~(over & (adds[:, None] | ~self.now)).any(axis=0)
        return result

    def opened(self, used: np.ndarray, order: np.ndarray) -> np.ndarray:
        """Return the nodes `used`, bool (N,), and as many more as sums allow all together.

        Parameters
        ----------
        used : bool array (N,)
        order : int array
            The nodes to add, the first before the others.
        """
        result = used.copy()
        for n in order.tolist():
            result[n] = self.open_to(result)[n]
        return result
