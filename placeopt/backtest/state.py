"""The cluster at one moment, in arrays: room of nodes, where pods stand.

Room changes through `take` and `give` alone, which keep the books. Amounts are whole: thousandths
of a core, MiB, thousandths of a GPU. A node has up to `MOST_GPUS` GPUs; pods take whole ones, or a
share of a single one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placeopt.core.kernels.compile import kernel

#: GPUs of a node, at most; thousandths of one.
MOST_GPUS, WHOLE = 16, 1000
#: What a node is: not there, ordered, taking pods, taking no more.
OFF, STARTING, READY, CLOSED = 0, 1, 2, 3
#: What a pod has to do with a group: it is counted; it stands where none, where some of it stand;
#: it is spread with it.
COUNTED, APART, TOGETHER, SPREAD = 0, 1, 2, 3
#: Spreads that one pod keeps, at most.
MOST_SPREADS = 8


class Room(NamedTuple):
    """Nodes, shape (nodes,) where nothing else is said; whole numbers.

    Attributes
    ----------
    state : OFF, STARTING, READY or CLOSED.
    cpu, memory : what is free, in thousandths of a core and MiB.
    gpu : (nodes, MOST_GPUS), what is free of each GPU.
    cpu_size, memory_size, gpus : what a node has.
    pods : pods on it.
    allowed : (sets, nodes), 1 where a pod of a node set may stand.
    most : pods that a node takes.
    zone : number of the zone of a node, below the number of nodes.
    per_zone : (groups,), 1 where a group is counted per zone, 0 per node.
    beside : (groups, nodes), pods of a group, per node or per number of a zone.
    rule_from : (rules + 1,), where the rules of a row begin in `rule`.
    rule : (entries, 3), what it has to do with a group, the group, the skew of a spread.
    fewest : (MOST_SPREADS,), where kernels note what the rules of a pod are measured by.
    version : changes of a node, counted.
    """

    state: np.ndarray
    cpu: np.ndarray
    memory: np.ndarray
    gpu: np.ndarray
    cpu_size: np.ndarray
    memory_size: np.ndarray
    gpus: np.ndarray
    pods: np.ndarray
    allowed: np.ndarray
    most: np.ndarray
    zone: np.ndarray
    per_zone: np.ndarray
    beside: np.ndarray
    rule_from: np.ndarray
    rule: np.ndarray
    fewest: np.ndarray
    version: np.ndarray


class Need(NamedTuple):
    """What a pod asks for; shape (pods,) in a trace, numbers of one pod in a kernel.

    Attributes
    ----------
    cpu, memory : thousandths of a core, MiB.
    gpus, share : GPUs, and thousandths of each that it takes.
    nodes : row of `Room.allowed`.
    rules : row of `Room.rule_from`; -1 where it has nothing to do with other pods.
    """

    cpu: np.ndarray
    memory: np.ndarray
    gpus: np.ndarray
    share: np.ndarray
    nodes: np.ndarray
    rules: np.ndarray


class PodGroups(NamedTuple):
    """What pods have to do with each other; as in `Room`."""

    per_zone: np.ndarray
    rule_from: np.ndarray
    rule: np.ndarray


def empty_room(
    cpu: np.ndarray,
    memory: np.ndarray,
    gpus: np.ndarray,
    most: np.ndarray,
    zone: np.ndarray,
    allowed: np.ndarray,
    rules: PodGroups,
) -> Room:
    """Return nodes that are off; arrays are (nodes,), but for `allowed` (sets, nodes)."""
    n = len(cpu)
    gpu = np.where(np.arange(MOST_GPUS) < gpus[:, None], WHOLE, 0)
    return Room(
        np.zeros(n, np.int64),
        cpu.astype(np.int64),
        memory.astype(np.int64),
        gpu.astype(np.int64),
        cpu.astype(np.int64),
        memory.astype(np.int64),
        gpus.astype(np.int64),
        np.zeros(n, np.int64),
        allowed.astype(np.int64),
        most.astype(np.int64),
        zone.astype(np.int64),
        rules.per_zone,
        np.zeros((len(rules.per_zone), n), np.int64),
        rules.rule_from,
        rules.rule,
        np.zeros(MOST_SPREADS, np.int64),
        np.zeros(n, np.int64),
    )


@kernel
def take(room, n, cpu, memory, share, gpu_set, rules):
    """Put a pod on node `n`: `gpu_set` has a bit for each GPU that it takes `share` of."""
    _change(room, n, cpu, memory, share, gpu_set, rules, 1)


@kernel
def give(room, n, cpu, memory, share, gpu_set, rules):
    """Take a pod off node `n`: the reverse of `take`."""
    _change(room, n, cpu, memory, share, gpu_set, rules, -1)


@kernel
def _change(room, n, cpu, memory, share, gpu_set, rules, sign):
    room.cpu[n] -= sign * cpu
    room.memory[n] -= sign * memory
    for g in range(MOST_GPUS):
        if (gpu_set >> g) & 1:
            room.gpu[n, g] -= sign * share
    if rules >= 0:
        for k in range(room.rule_from[rules], room.rule_from[rules + 1]):
            if room.rule[k, 0] == COUNTED:
                group = room.rule[k, 1]
                room.beside[group, room.zone[n] if room.per_zone[group] else n] += sign
    room.pods[n] += sign
    room.version[n] += 1
