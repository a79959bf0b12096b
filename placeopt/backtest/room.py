"""The cluster at one moment, in arrays, and where a pod is placed on it.

Pods are placed by the filters and two scores of kube-scheduler; one kernel goes through all nodes.
``least`` is LeastAllocated, the most room left, CPU and memory alike; ``most`` is MostAllocated,
the least room left. Of nodes with the same score one is drawn, as kube-scheduler does, or the first
in a fixed order is taken.

Room changes through `take` and `give` alone, which keep the books. Amounts are whole: thousandths
of a core, MiB, thousandths of a GPU. A node has up to `MOST_GPUS` GPUs; pods take whole ones, or a
share of a single one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placeopt.core.kernels.common import below
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
#: Scores of the scheduler.
LEAST, MOST = range(2)
RULES = {"least": LEAST, "most": MOST}
#: Arrays of a room that pods and nodes change.
_CHANGED = ("state", "cpu", "memory", "gpu", "pods", "beside", "fewest", "version")


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

    def copied(self) -> Room:
        """Return a copy of what pods and nodes change; what they do not is shared."""
        return self._replace(**{name: getattr(self, name).copy() for name in _CHANGED})


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
