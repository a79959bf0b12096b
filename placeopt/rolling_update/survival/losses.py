"""The loss of any one node, copy by copy, compiled for searches.

`placeopt.rolling_update.survival.referee` says what is asked; this is tested against it.
"""

from __future__ import annotations

import numpy as np

from placeopt.core.kernels.compile import allocating_kernel, kernel
from placeopt.rolling_update.fleet_arrays import FleetArrays
from placeopt.rolling_update.rules.kernels import counted, may_start, tally
from placeopt.rolling_update.survival.tables import Survival


def num_unplaceable(
    a: FleetArrays, survival: Survival, packed_rules: np.ndarray, targets: np.ndarray
) -> np.ndarray:
    """Return how many microservices find no place when their node is lost, shape (K,).

    Every node is lost by itself.

    Parameters
    ----------
    a : FleetArrays
    survival : Survival
    packed_rules : int array
        Packed tables of the rules that must be kept.
    targets : int array (K, M)
        The node of every microservice in K deployments.
    """
    order, standing = survival.largest_first(a.new), np.zeros(len(a.price), dtype=np.bool_)
    standing[: len(survival.standing)] = survival.standing
    result = np.zeros(len(targets), dtype=np.int64)
    for k, final in enumerate(targets):
        used = standing.copy()
        used[final] = True
        hosts, lost = np.flatnonzero(used & ~a.shut), len(survival.standing)
        result[k] = _num_homeless(packed_rules, final, order, a.new, a.capacity, hosts, lost)
    return result


@allocating_kernel
def _num_homeless(rules, final, order, new, capacity, hosts, nodes):
    """Return how many of M microservices on N nodes are homeless when a node is lost.

    Of each of the first `nodes` nodes.

    Parameters
    ----------
    rules : int array
        Packed tables.
    final, order : int array (M,)
        The node of each; all of them, the largest first.
    new, capacity : int array (M, R), (N, R)
    hosts : int array
        The nodes that copies may start on.
    """
    free, count = capacity.copy(), counted(rules, final)
    for m in range(len(final)):
        free[final[m]] -= new[m]
    first, member = _by_node(final, order, len(capacity))
    to, homeless = np.full(len(final), -1), 0
    for n in range(nodes):
        lost = member[first[n] : first[n + 1]]
        for m in lost:
            tally(rules, count, m, n, -1)
        for m in lost:
            to[m] = _place(rules, count, m, n, new, free, capacity, hosts)
            if to[m] < 0:
                homeless += 1
            else:
                free[to[m]] -= new[m]
                tally(rules, count, m, to[m], 1)
        for m in lost:
            if to[m] >= 0:
                free[to[m]] += new[m]
                tally(rules, count, m, to[m], -1)
            tally(rules, count, m, n, 1)
    return homeless


@allocating_kernel
def _by_node(final, order, nodes):
    """Return where each node begins among its microservices, and these as `order` has them."""
    first = np.zeros(nodes + 1, np.int64)
    for n in final:
        first[n + 1] += 1
    first = np.cumsum(first)
    member, at = np.empty(len(final), np.int64), first.copy()
    for m in order:
        member[at[final[m]]] = m
        at[final[m]] += 1
    return first, member


@kernel
def _place(rules, count, m, lost, new, free, capacity, hosts):
    """Return the host where most is left of the scarcest resource beside m, -1 for none."""
    best, most = -1, -1.0
    for n in hosts:
        if n == lost:
            continue
        left = np.inf
        for r in range(new.shape[1]):
            after = free[n, r] - new[m, r]
            if after < 0 and new[m, r] > 0:
                left = -1.0
                break
            left = min(left, max(0.0, after / max(1, capacity[n, r])))
        if left > most and may_start(rules, count, m, n):
            best, most = n, left
    return best
