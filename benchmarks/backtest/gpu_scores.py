"""Scores of GPU schedulers, and how full they make a cluster whose pods never end.

============  =============================================================================
``random``    any node, any GPU that has the room
``dotprod``   Tetris: the smallest product of what is asked for and what is free
``cluster``   Gandiva: nodes whose GPU pods ask for the same number of GPUs
``packing``   MLaaS: GPUs in use first, then nodes in use, then empty nodes
``bestfit``   the least left of CPU and GPUs, half and half
``fgd``       fragmentation gradient descent
``tight``     ours: as ``fgd``, and of nodes with the same score that with the least left
============  =============================================================================

They score as kubernetes-scheduler-simulator does (Weng et al., "Beware of Fragmentation", USENIX
ATC 2023): whole numbers from 0 to 100.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from placeopt.backtest.room import (
    MOST_GPUS,
    READY,
    WHOLE,
    Need,
    Room,
    fits,
    gpus_with,
    take,
    tightest,
)
from placeopt.core.kernels.common import below
from placeopt.core.kernels.compile import kernel

RULES = ("random", "dotprod", "cluster", "packing", "bestfit", "fgd", "tight")
RANDOM, DOTPROD, CLUSTER, PACKING, BESTFIT, FGD, TIGHT = range(len(RULES))
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
    on_node : (nodes, MOST_GPUS + 2) pods on a node by what they take of GPUs: a share, 1, 2, ...
    """

    cpu: np.ndarray
    share: np.ndarray
    gpus: np.ndarray
    nodes: np.ndarray
    weight: np.ndarray
    kept: np.ndarray
    kept_gpus: np.ndarray
    kept_version: np.ndarray
    on_node: np.ndarray


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
        np.zeros((nodes, MOST_GPUS + 2), np.int64),
    )


@kernel
def place(rule, room, cpu, gpus, share, memory, nodes, of_class, kinds, rank, state, out):
    """Choose a node and its GPUs, or return -1; as `placeopt.backtest.room.place`.

    `of_class` is the class of the pod; pods of a class ask for the same.
    """
    best, chosen, ties = -1.0e300, -1, 0
    for n in range(len(room.state)):
        if not fits(room, n, cpu, memory, gpus, share, nodes, -1):
            continue
        if rule >= FGD:
            score = _kept_score(rule, room, n, cpu, gpus, share, of_class, kinds)
        else:
            score = _score(rule, room, n, cpu, gpus, share, kinds)
        if score > best:
            best, chosen, ties = score, n, 1
        elif score == best:
            ties += 1
            if rule != RANDOM:
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
def _score(rule, room, n, cpu, gpus, share, kinds):
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
        return _cluster_score(kinds.on_node, n, gpus, share, free)
    return _packing_score(room, n, gpus, share)


@kernel
def _cluster_score(on_node, n, gpus, share, free):
    own = 0 if gpus == 1 and share < WHOLE else gpus
    kinds = 0
    for k in range(MOST_GPUS + 2):
        kinds += on_node[n, k] > 0
    score = np.floor(25 * (_GPU_SCALE - free) / _GPU_SCALE)
    if on_node[n, own] > 0:
        return score + (75 if kinds == 1 else 50)
    return score + (25 if kinds == 0 else 0)


@kernel
def _packing_score(room, n, gpus, share):
    whole = gpus_with(room, n, WHOLE)
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


@kernel
def _fill(rule, room, need, of_class, order, kinds, rank, state, out, arrived, held):
    """Place pods by `order` (arrivals,); `arrived` and `held`, as long, get thousandths of GPUs."""
    asked, taken = 0, 0
    for k in range(len(order)):
        p = order[k]
        wanted = need.gpus[p] * need.share[p]
        asked += wanted
        cpu, gpus, share = need.cpu[p], need.gpus[p], need.share[p]
        one = of_class[p]
        n = place(
            rule,
            room,
            cpu,
            gpus,
            share,
            need.memory[p],
            need.nodes[p],
            one,
            kinds,
            rank,
            state,
            out,
        )
        if n >= 0:
            take(room, n, cpu, need.memory[p], share, out[0], need.rules[p])
            if gpus:
                kinds.on_node[n, 0 if gpus == 1 and share < WHOLE else gpus] += 1
            taken += wanted
        arrived[k], held[k] = asked, taken
    return taken


def fill(
    rule: str, room: Room, need: Need, of_class: np.ndarray, kinds: Typical, seed: int, ratio: float
) -> tuple[np.ndarray, np.ndarray]:
    """Let pods arrive in a drawn order until they ask for `ratio` of all GPUs.

    All pods come once, then pods drawn with repetition. Nodes stand in a drawn order, which decides
    between nodes of the same score. Both are as in the published experiments.

    Returns
    -------
    arrived, held : ndarray
        (arrivals,) Share of all GPUs that arrived pods ask for, and share that is allocated.
    """
    rng = np.random.default_rng(seed)
    size = int(room.gpus.sum()) * 1000
    order = rng.permutation(len(need.cpu))
    wanted = need.gpus * need.share
    more = rng.integers(0, len(need.cpu), 2 * len(need.cpu))
    sums = wanted.sum() + np.cumsum(wanted[more])
    order = np.concatenate([order, more[: np.searchsorted(sums, ratio * size, side="right")]])
    arrived, held = np.zeros(len(order), np.int64), np.zeros(len(order), np.int64)
    room.state[:] = READY
    state = rng.integers(0, 2**63, 1).astype(np.uint64)
    out = np.zeros(1, np.int64)
    rank = rng.permutation(len(room.state))
    _fill(RULES.index(rule), room, need, of_class, order, kinds, rank, state, out, arrived, held)
    return arrived / size, held / size
