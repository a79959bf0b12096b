"""Where a pod is placed: the filters and scores of kube-scheduler, and those of GPU schedulers.

One kernel goes through all nodes. Of nodes with the same score one is drawn, as kube-scheduler
does, or the first in a fixed order is taken.

============  =============================================================================
``least``     kube-scheduler's LeastAllocated: the most room left, CPU and memory alike
``most``      its MostAllocated: the least room left
``random``    any node, any GPU that has the room
``dotprod``   Tetris: the smallest product of what is asked for and what is free
``cluster``   Gandiva: nodes whose GPU pods ask for the same number of GPUs
``packing``   MLaaS: GPUs in use first, then nodes in use, then empty nodes
``bestfit``   the least left of CPU and GPUs, half and half
``fgd``       fragmentation gradient descent
``tight``     ours: as ``fgd``, and of nodes with the same score that with the least left
============  =============================================================================

The five of GPUs and FGD score as kubernetes-scheduler-simulator does (Weng et al., "Beware of
Fragmentation", USENIX ATC 2023), whose scores are whole numbers from 0 to 100.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from placeopt.backtest.state import (
    APART,
    COUNTED,
    MOST_GPUS,
    OFF,
    READY,
    SPREAD,
    STARTING,
    TOGETHER,
    WHOLE,
)
from placeopt.core.kernels.compile import kernel
from placeopt.core.kernels.random import below

LEAST, MOST, RANDOM, DOTPROD, CLUSTER, PACKING, BESTFIT, FGD, TIGHT = range(9)
RULES = {
    "least": LEAST,
    "most": MOST,
    "random": RANDOM,
    "dotprod": DOTPROD,
    "cluster": CLUSTER,
    "packing": PACKING,
    "bestfit": BESTFIT,
    "fgd": FGD,
    "tight": TIGHT,
}
#: Largest node of the published table: scores are scaled by it.
_CPU_SCALE, _GPU_SCALE = 128_000.0, 8_000.0


class Typical(NamedTuple):
    """What pods ask for as a rule, shape (kinds,): a fragment is room that such pods cannot use.

    Attributes
    ----------
    cpu, share, gpus, nodes : as in `Need`.
    weight : share of pods of a kind; they add up to 1.
    kept : (nodes, classes) scores of a node for a class of pods; `kept_gpus` which GPUs.
    kept_version : (nodes, classes) the version of the node that they hold for; -1: none.
    """

    cpu: np.ndarray
    share: np.ndarray
    gpus: np.ndarray
    nodes: np.ndarray
    weight: np.ndarray
    kept: np.ndarray
    kept_gpus: np.ndarray
    kept_version: np.ndarray


def typical(need, of_class: np.ndarray, nodes: int, popular: float = 0.95) -> Typical:
    """Return the most frequent kinds of pods that make up a share `popular` of all.

    Parameters
    ----------
    need : Need
        (pods,)
    of_class : ndarray
        (pods,) The class of a pod: pods of one class ask for the same.
    nodes : int
    popular : float
    """
    rows = np.column_stack([need.cpu, need.share, need.gpus, need.nodes])
    kinds, counts = np.unique(rows, axis=0, return_counts=True)
    order = np.lexsort((*kinds.T[::-1], counts))[::-1]
    kinds, counts = kinds[order], counts[order]
    last = int(np.searchsorted(np.cumsum(counts), popular * counts.sum() - 1e-9)) + 1
    kinds, counts = kinds[:last], counts[:last]
    classes = int(of_class.max(initial=0)) + 1
    columns = [np.ascontiguousarray(kinds[:, k]) for k in range(4)]
    return Typical(
        columns[0],
        columns[1],
        columns[2],
        columns[3],
        counts / counts.sum(),
        np.zeros((nodes, classes)),
        np.zeros((nodes, classes), np.int64),
        np.full((nodes, classes), -1, np.int64),
    )


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
    return gpus == 0 or _gpus_with(room, n, share) >= gpus


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
def _gpus_with(room, n, share):
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
def place(rule, room, cpu, memory, gpus, share, nodes, rules, of_class, kinds, rank, state, out):
    """Choose a node and its GPUs.

    Parameters
    ----------
    rule : int
        One of `RULES`.
    room : Room
    cpu, memory, gpus, share, nodes, rules : int
        What the pod asks for, as in `Need`.
    of_class : int
        Its class; pods of a class ask for the same.
    kinds : Typical
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
        if gpus > 0 and _gpus_with(room, n, share) < gpus:
            continue
        if rule <= MOST:
            left = (room.cpu[n] - cpu) / room.cpu_size[n]
            left += (room.memory[n] - memory) / max(room.memory_size[n], 1)
            score = np.floor(50 * left) if rule == LEAST else np.floor(50 * (2 - left))
        elif rule >= FGD:
            score = _kept_score(rule, room, n, cpu, gpus, share, of_class, kinds)
        else:
            score = _score(rule, room, n, cpu, gpus, share)
        if score > best:
            best, chosen, ties = score, n, 1
        elif score == best:
            ties += 1
            if len(rank) and rule != RANDOM:
                chosen = n if rank[n] < rank[chosen] else chosen
            elif below(state, ties) == 0:
                chosen = n
    if chosen >= 0:
        if rule >= FGD and gpus == 1 and share < WHOLE:
            out[0] = kinds.kept_gpus[chosen, of_class]
        elif rule == RANDOM and share < WHOLE:
            out[0] = _any_gpu(room, chosen, gpus, share, state)
        else:
            out[0] = tightest(room, chosen, gpus, share)
    return chosen


@kernel
def _any_gpu(room, n, gpus, share, state):
    chosen, seen = -1, 0
    if gpus == 0:
        return 0
    for g in range(room.gpus[n]):
        if room.gpu[n, g] >= share:
            seen += 1
            if below(state, seen) == 0:
                chosen = g
    return 1 << chosen


@kernel
def _score(rule, room, n, cpu, gpus, share):
    if rule == RANDOM:
        return 0.0
    free = 0
    for g in range(room.gpus[n]):
        free += room.gpu[n, g]
    if rule == DOTPROD:
        product = room.cpu[n] / _CPU_SCALE * (cpu / _CPU_SCALE)
        product += free / _GPU_SCALE * (gpus * share / _GPU_SCALE)
        return np.floor(100 * (1 - product / 2))
    if rule == BESTFIT:
        left = (room.cpu[n] - cpu) / _CPU_SCALE / 2 + (free - gpus * share) / _GPU_SCALE / 2
        return np.floor(100 * (1 - left))
    if gpus == 0:
        return 0.0
    if rule == CLUSTER:
        return _cluster_score(room, n, gpus, share, free)
    return _packing_score(room, n, gpus, share)


@kernel
def _cluster_score(room, n, gpus, share, free):
    own = 0 if gpus == 1 and share < WHOLE else gpus
    kinds = 0
    for k in range(MOST_GPUS + 2):
        kinds += room.kinds[n, k] > 0
    score = np.floor(25 * (_GPU_SCALE - free) / _GPU_SCALE)
    if room.kinds[n, own] > 0:
        return score + (75 if kinds == 1 else 50)
    return score + (25 if kinds == 0 else 0)


@kernel
def _packing_score(room, n, gpus, share):
    whole = _gpus_with(room, n, WHOLE)
    if whole == room.gpus[n]:
        return np.float64(max(33 - whole, whole))
    if share == WHOLE:
        return np.float64(max(50 - gpus, 33))
    least = WHOLE
    for g in range(room.gpus[n]):
        if share <= room.gpu[n, g] < least:
            least = room.gpu[n, g]
    if least == WHOLE:
        return 49.0
    return np.float64(max(100 - (least // 10) // 10, 50))


@kernel
def fragments(room, n, cpu, changed, amount, kinds):
    """Return the expected thousandths of GPUs of node `n` that typical pods cannot use.

    The node is seen with `cpu` less CPU, and `amount` less of each GPU of the bits `changed`;
    `kinds` is a `Typical`.
    """
    free, total = room.cpu[n] - cpu, 0
    for g in range(room.gpus[n]):
        total += room.gpu[n, g] - (amount if (changed >> g) & 1 else 0)
    lost = 0.0
    for k in range(len(kinds.weight)):
        part = total
        if kinds.gpus[k] and free >= kinds.cpu[k] and room.allowed[kinds.nodes[k], n]:
            count, rest = 0, 0
            for g in range(room.gpus[n]):
                left = room.gpu[n, g] - (amount if (changed >> g) & 1 else 0)
                if left >= kinds.share[k]:
                    count += 1
                else:
                    rest += left
            if count >= kinds.gpus[k]:
                part = rest
        lost += kinds.weight[k] * part
    return lost


@kernel
def _kept_score(rule, room, n, cpu, gpus, share, of_class, kinds):
    """Return the score of a node, anew only where the node has changed since."""
    if kinds.kept_version[n, of_class] == room.version[n]:
        return kinds.kept[n, of_class]
    before, best, chosen = fragments(room, n, 0, 0, 0, kinds), -1.0e300, 0
    if gpus == 1 and share < WHOLE:
        for g in range(room.gpus[n]):
            same = False  # as a GPU before it
            for h in range(g):
                same = same or room.gpu[n, h] == room.gpu[n, g]
            if room.gpu[n, g] >= share and not same:
                score = _gain(before, fragments(room, n, cpu, 1 << g, share, kinds))
                if rule == TIGHT:
                    score -= _left(room, n, cpu, gpus * share)
                if score > best:
                    best, chosen = score, 1 << g
    else:
        chosen = tightest(room, n, gpus, share)
        best = _gain(before, fragments(room, n, cpu, chosen, share, kinds))
        if rule == TIGHT:
            best -= _left(room, n, cpu, gpus * share)
    kinds.kept[n, of_class], kinds.kept_gpus[n, of_class] = best, chosen
    kinds.kept_version[n, of_class] = room.version[n]
    return best


@kernel
def _gain(before, after):
    return np.floor(100 / (1 + math.exp((after - before) / 1000)))


@kernel
def _left(room, n, cpu, taken):
    """Return what is left of a node, a little: it decides between nodes of the same fragments."""
    free = -taken
    for g in range(room.gpus[n]):
        free += room.gpu[n, g]
    return 1e-4 * ((room.cpu[n] - cpu) / _CPU_SCALE + free / _GPU_SCALE)
