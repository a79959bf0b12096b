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
    beside : (groups, nodes), pods of groups that keep apart.
    kinds : (nodes, MOST_GPUS + 2), pods on it by what they take of GPUs: a share, 1, 2, ...
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
    beside: np.ndarray
    kinds: np.ndarray
    version: np.ndarray


class Need(NamedTuple):
    """What a pod asks for; shape (pods,) in a trace, numbers of one pod in a kernel.

    Attributes
    ----------
    cpu, memory : thousandths of a core, MiB.
    gpus, share : GPUs, and thousandths of each that it takes.
    nodes : row of `Room.allowed`.
    apart : row of `Room.beside`; -1 where it does not keep apart.
    """

    cpu: np.ndarray
    memory: np.ndarray
    gpus: np.ndarray
    share: np.ndarray
    nodes: np.ndarray
    apart: np.ndarray


def empty_room(
    cpu: np.ndarray, memory: np.ndarray, gpus: np.ndarray, allowed: np.ndarray, apart: int
) -> Room:
    """Return nodes that are off; `cpu`, `memory`, `gpus` (nodes,), `allowed` (sets, nodes)."""
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
        np.zeros((max(apart, 1), n), np.int64),
        np.zeros((n, MOST_GPUS + 2), np.int64),
        np.zeros(n, np.int64),
    )


@kernel
def take(room, n, cpu, memory, share, gpu_set, apart):
    """Put a pod on node `n`: `gpu_set` has a bit for each GPU that it takes `share` of."""
    _change(room, n, cpu, memory, share, gpu_set, apart, 1)


@kernel
def give(room, n, cpu, memory, share, gpu_set, apart):
    """Take a pod off node `n`: the reverse of `take`."""
    _change(room, n, cpu, memory, share, gpu_set, apart, -1)


@kernel
def _change(room, n, cpu, memory, share, gpu_set, apart, sign):
    room.cpu[n] -= sign * cpu
    room.memory[n] -= sign * memory
    taken = 0
    for g in range(MOST_GPUS):
        if (gpu_set >> g) & 1:
            room.gpu[n, g] -= sign * share
            taken += 1
    if taken:
        room.kinds[n, 0 if taken == 1 and share < WHOLE else taken] += sign
    if apart >= 0:
        room.beside[apart, n] += sign
    room.pods[n] += sign
    room.version[n] += 1
