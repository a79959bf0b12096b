"""Kernels that read the rules between microservices and nodes.

The tables, and what counters and checks are: `placeopt.rolling_update.rules.tables`.
"""

from __future__ import annotations

import numpy as np

from placeopt.core.kernels.compile import allocating_kernel, kernel
from placeopt.rolling_update.rules.tables import ANY_SKEW, APART, TOGETHER

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
