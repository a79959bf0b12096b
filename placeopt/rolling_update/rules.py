"""Rules between microservices and nodes as tables, and the kernels that read them.

A *counter* counts the copies of one group in each domain. A *check* is one rule as one microservice
sees it: a counter, a bound, and whether the counter counts its own copies. A copy may start where
its checks hold beside all that runs, and every check has to hold at the end. What rests, never
started, is forgiven the checks that it broke at the start.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from placeopt.core.kernels.compile import kernel
from placeopt.rolling_update.document import UpdateNode, UpdateRule

#: Kinds of checks.
APART, TOGETHER, SPREAD = 0, 1, 2
#: The skew of a counter over which no rule spreads anything.
_ANY_SKEW = 2**40


class RuleTables(NamedTuple):
    """Rules of M microservices on N nodes, with C counters and K checks.

    Kernels take all of it as one array, `packed`: every array handed on costs each call some time.
    """

    allowed: np.ndarray  # (node sets, N) whether a node is in a set
    node_set: np.ndarray  # (M,) set that new copies are restricted to, -1 none
    domain: np.ndarray  # (C, N) domain of a node as the counter numbers them, -1 none
    first: np.ndarray  # (C + 1,) where the counts of a counter begin; the last one is their sum
    floor: np.ndarray  # (C,) whether the fewest copies of a domain are taken as 0
    skew: np.ndarray  # (C,) the largest difference between domains that is legal
    add_first: np.ndarray  # (M + 1,) where each microservice begins in add
    add: np.ndarray  # (.,) counters that count it
    check_first: np.ndarray  # (M + 1,) where each microservice begins in checks
    checks: np.ndarray  # (K, 4) kind, counter, bound, whether its own copies count
    forgiven: np.ndarray  # (K,) whether it does not count for what rests
    need_first: np.ndarray  # (C + 1,) where each counter begins in needs
    needs: np.ndarray  # (., 2) counter of those that need its copies beside them, whether its own

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


# Places of the head of packed tables: where each begins, in the order of `RuleTables`; the sizes.
(
    _ALLOWED,
    _NODE_SET,
    _DOMAIN,
    _FIRST,
    _FLOOR,
    _SKEW,
    _ADD_FIRST,
    _ADD,
    _CHECK_FIRST,
    _CHECKS,
    _FORGIVEN,
    _NEED_FIRST,
    _NEEDS,
    _NODES,
    _COUNTS,
) = range(15)


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
    return rules[_FLOOR] - rules[_FIRST] - 1


@kernel
def counters_of(rules, m):
    """Return the counters that count microservice m or that its checks ask, repeated or not."""
    first, last = _get(rules, _ADD_FIRST, m), _get(rules, _ADD_FIRST, m + 1)
    low, high = _get(rules, _CHECK_FIRST, m), _get(rules, _CHECK_FIRST, m + 1)
    found = np.empty(last - first + high - low, np.int64)
    for k in range(first, last):
        found[k - first] = _get(rules, _ADD, k)
    for k in range(low, high):
        found[last - first + k - low] = _get(rules, _CHECKS, 4 * k + 1)
    return found


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
def _fewest(rules, count, c):
    """Return the least count of a domain of counter c."""
    if _get(rules, _FLOOR, c) > 0:
        return 0
    fewest = _ANY_SKEW
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
        most = max(most, count[at])
    return most - _fewest(rules, count, c)


@kernel
def _wide(rules, count, m):
    """Return by how much the counters of microservice m are spread more unevenly than is legal."""
    total = 0
    for k in range(_get(rules, _ADD_FIRST, m), _get(rules, _ADD_FIRST, m + 1)):
        c = _get(rules, _ADD, k)
        if _get(rules, _SKEW, c) < _ANY_SKEW:
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


@kernel
def counted(rules, node):
    """Return the counts of a deployment, the node of every microservice (M,), -1 for none."""
    count = np.zeros(rules[_COUNTS], np.int64)
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


@kernel
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
        for m in range(nodes.shape[1]):
            n, rest = nodes[k, m], rests[k, m]
            if not rest and not is_allowed(rules, m, n):
                broken[k] += 1
            for check in range(_get(rules, _CHECK_FIRST, m), _get(rules, _CHECK_FIRST, m + 1)):
                if not (rest and _get(rules, _FORGIVEN, check) > 0):
                    broken[k] += not _is_kept(rules, count, check, n)
    return broken


@kernel
def _broken_checks(rules, count, node):
    """Return which checks a deployment breaks, bool (checks,); `node` is (M,)."""
    found = np.zeros(_get(rules, _CHECK_FIRST, len(node)), np.bool_)
    for m in range(len(node)):
        for k in range(_get(rules, _CHECK_FIRST, m), _get(rules, _CHECK_FIRST, m + 1)):
            found[k] = not _is_kept(rules, count, k, node[m])
    return found


# -- from the document -----------------------------------------------------------------------------


class _Counters:
    """Counters, made when they are first asked for."""

    def __init__(
        self,
        domains: Mapping[str, np.ndarray],
        members: Mapping[str, np.ndarray],
        sets: Mapping[str, np.ndarray],
    ):
        self.domains, self.members, self.sets = domains, members, sets
        self.keys: dict[tuple[str, str, str | None, bool], int] = {}
        self.rows: list[np.ndarray] = []

    def number(self, group: str, rule: UpdateRule) -> int:
        """Return the counter of a group over the domains of a rule."""
        among = rule.among if rule.kind == "spread" else None
        domain = self.domains[rule.per]
        if among is not None:
            domain = np.where(self.sets[among], domain, -1)
        legal = domain[domain >= 0]
        floor = rule.kind == "spread" and len(np.unique(legal)) < rule.min_domains
        key = (group, rule.per, among, floor)
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
    found = {}
    for per in {rule.per for rule in rules}:
        numbers = np.full(len(cluster), -1)
        names: dict[str, int] = {}
        for n, node in enumerate(nodes):
            where = {"node": node.name, "cluster": node.cluster}.get(per, node.domains.get(per))
            if where is not None:
                numbers[n] = names.setdefault(where, len(names))
        found[per] = numbers
    return found


def tables(
    rules: Sequence[UpdateRule],
    *,
    groups: Sequence[Sequence[str]],
    allowed: Sequence[str | None],
    node_sets: Mapping[str, np.ndarray],
    domains: Mapping[str, np.ndarray],
    home: np.ndarray,
    num_nodes: int,
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
    home : int array (M,)
        The node of every microservice now.
    num_nodes : int
    """
    members: dict[str, list[int]] = {}
    for m, mine in enumerate(groups):
        for group in mine:
            members.setdefault(group, []).append(m)
    known = {name: np.array(who, dtype=np.int64) for name, who in members.items()}
    counters = _Counters(domains, known, node_sets)
    skew: dict[int, int] = {}
    needs: list[tuple[int, int, int]] = []
    # Of each part of the checks: who, kind, counter, bound, whether own copies count, mend.
    parts: list[tuple[np.ndarray, int, int, int, np.ndarray, bool]] = []

    def add(who: np.ndarray, kind: int, group: str, rule: UpdateRule, bound: int) -> int:
        c = counters.number(group, rule)
        parts.append((who, kind, c, bound, np.isin(who, known[group]), rule.mend))
        return c

    for rule in rules:
        toward = rule.toward or rule.group
        who = known[rule.group]
        if rule.kind == "spread":
            c = add(who, SPREAD, toward, rule, rule.max_skew)
            skew[c] = min(skew.get(c, _ANY_SKEW), rule.max_skew)
        elif rule.kind == "together":
            c = add(who, TOGETHER, toward, rule, 0)
            own = bool(np.isin(who, known[toward]).all())
            needs.append((c, counters.number(rule.group, rule), int(own)))
        else:
            add(who, APART, toward, rule, rule.max_copies - 1)
            if toward != rule.group:
                add(known[toward], APART, rule.group, rule, 0)
    names = list(node_sets)
    number = {name: k for k, name in enumerate(names)}
    found = RuleTables(
        allowed=np.array([node_sets[name] for name in names], dtype=bool).reshape(-1, num_nodes),
        node_set=np.array([-1 if a is None else number[a] for a in allowed], dtype=np.int64),
        **_counter_tables(counters, skew, needs, num_nodes, len(home)),
        **_check_tables(parts, len(home)),
    )
    packed = found.packed()
    broken = _broken_checks(packed, counted(packed, home), home)
    return found._replace(forgiven=broken & ~found.forgiven)


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
    who = [counters.members[group] for group, _, _, _ in keys]
    add_first, add = _lists(who, np.repeat(np.arange(size), [len(w) for w in who]), count)
    rows = np.array(sorted(needs), dtype=np.int64).reshape(-1, 3)
    return {
        "domain": domain,
        "first": np.concatenate(([0], np.cumsum(sizes, dtype=np.int64))),
        "floor": np.array([key[3] for key in keys], dtype=bool),
        "skew": np.array([skew.get(c, _ANY_SKEW) for c in range(size)], dtype=np.int64),
        "add_first": add_first,
        "add": add,
        "need_first": np.searchsorted(rows[:, 0], np.arange(size + 1)).astype(np.int64),
        "needs": np.ascontiguousarray(rows[:, 1:]),
    }


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
