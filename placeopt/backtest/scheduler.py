"""Where a pod is placed: the filters and two scores of kube-scheduler.

One kernel goes through all nodes. ``least`` is LeastAllocated, the most room left, CPU and memory
alike; ``most`` is MostAllocated, the least room left. Of nodes with the same score one is drawn, as
kube-scheduler does, or the first in a fixed order is taken.
"""

from __future__ import annotations

import numpy as np

from placeopt.backtest.state import (
    APART,
    COUNTED,
    OFF,
    READY,
    SPREAD,
    STARTING,
    TOGETHER,
    WHOLE,
)
from placeopt.core.kernels.compile import kernel
from placeopt.core.kernels.random import below

LEAST, MOST = range(2)
RULES = {"least": LEAST, "most": MOST}


@kernel
def fits(room, n, cpu, memory, gpus, share, nodes, rules):
    """Whether a pod may stand on node `n` and has the room; arrays of `room` are (nodes, ...)."""
    if room.state[n] != READY or room.cpu[n] < cpu or room.memory[n] < memory:
        return False
    if not room.allowed[nodes, n] or room.pods[n] >= room.most[n]:
        return False
    if rules >= 0:
        _measure(room, nodes, rules)
        if not _obeys(room, n, rules):
            return False
    return gpus == 0 or gpus_with(room, n, share) >= gpus


@kernel
def _measure(room, nodes, rules):
    """Note the fewest pods in a domain for each spread of a pod, and the pods of each company.

    Domains are those of the nodes that are there and on which the pod may stand.
    """
    at = 0
    for k in range(room.rule_from[rules], room.rule_from[rules + 1]):
        what, group = room.rule[k, 0], room.rule[k, 1]
        if what == SPREAD:
            least = -1
            for n in range(len(room.state)):
                if room.state[n] != OFF and room.state[n] != STARTING and room.allowed[nodes, n]:
                    here = room.beside[group, room.zone[n] if room.per_zone[group] else n]
                    if least < 0 or here < least:
                        least = here
            room.fewest[at] = max(least, 0)
            at += 1
        elif what == TOGETHER:
            total = 0
            for n in range(len(room.state)):
                total += room.beside[group, n]
            room.fewest[at] = total
            at += 1


@kernel
def _obeys(room, n, rules):
    """Whether a pod on node `n` keeps its rules about other pods."""
    at = 0
    for k in range(room.rule_from[rules], room.rule_from[rules + 1]):
        what, group = room.rule[k, 0], room.rule[k, 1]
        here = room.beside[group, room.zone[n] if room.per_zone[group] else n]
        if what == APART and here > 0:
            return False
        if what == SPREAD:
            if here + _counts(room, rules, group) - room.fewest[at] > room.rule[k, 2]:
                return False
            at += 1
        elif what == TOGETHER:
            if here == 0 and (room.fewest[at] > 0 or not _counts(room, rules, group)):
                return False
            at += 1
    return True


@kernel
def _counts(room, rules, group):
    """Return 1 where a pod is counted in a group, else 0."""
    for k in range(room.rule_from[rules], room.rule_from[rules + 1]):
        if room.rule[k, 0] == COUNTED and room.rule[k, 1] == group:
            return 1
    return 0


@kernel
def gpus_with(room, n, share):
    """Return how many GPUs of node `n` have the share free."""
    count = 0
    for g in range(room.gpus[n]):
        if room.gpu[n, g] >= share:
            count += 1
    return count


@kernel
def tightest(room, n, gpus, share):
    """Return a bit for each GPU of node `n` that a pod takes: the fullest, or the first whole."""
    result = 0
    if gpus == 0:
        return result
    if share < WHOLE:
        best = -1
        for g in range(room.gpus[n]):
            if room.gpu[n, g] >= share and (best < 0 or room.gpu[n, g] < room.gpu[n, best]):
                best = g
        return 1 << best
    for g in range(room.gpus[n]):
        if room.gpu[n, g] >= WHOLE and gpus > 0:
            result |= 1 << g
            gpus -= 1
    return result


@kernel
def place(rule, room, cpu, memory, gpus, share, nodes, rules, rank, state, out):
    """Choose a node and its GPUs.

    Parameters
    ----------
    rule : int
        One of `RULES`.
    room : Room
    cpu, memory, gpus, share, nodes, rules : int
        What the pod asks for, as in `Need`.
    rank : ndarray, shape (nodes,) or (0,)
        Of nodes with the same score that of the lowest rank is taken; without ranks one is drawn.
    state : ndarray of uint64, shape (1,)
        The generator.
    out : ndarray, shape (1,)
        Gets a bit for each GPU that the pod takes.

    Returns
    -------
    int
        The node, or -1 where no node has the room.
    """
    best, chosen, ties = -1.0e300, -1, 0
    if rules >= 0:
        _measure(room, nodes, rules)
    for n in range(len(room.state)):
        # What most pods need is written out: a call with all arrays takes longer than its work.
        if room.state[n] != READY or room.cpu[n] < cpu or room.memory[n] < memory:
            continue
        if not room.allowed[nodes, n] or room.pods[n] >= room.most[n]:
            continue
        if rules >= 0 and not _obeys(room, n, rules):
            continue
        if gpus > 0 and gpus_with(room, n, share) < gpus:
            continue
        left = (room.cpu[n] - cpu) / room.cpu_size[n]
        left += (room.memory[n] - memory) / max(room.memory_size[n], 1)
        score = np.floor(50 * left) if rule == LEAST else np.floor(50 * (2 - left))
        if score > best:
            best, chosen, ties = score, n, 1
        elif score == best:
            ties += 1
            if len(rank):
                chosen = n if rank[n] < rank[chosen] else chosen
            elif below(state, ties) == 0:
                chosen = n
    if chosen >= 0:
        out[0] = tightest(room, chosen, gpus, share)
    return chosen
