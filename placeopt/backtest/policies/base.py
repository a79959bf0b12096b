"""What a policy is: it looks at a cluster from time to time, and says what to do."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from placeopt.backtest.execution import Action
from placeopt.backtest.room import (
    CLOSED,
    MOST,
    OFF,
    READY,
    STARTING,
    WHOLE,
    Room,
    fits,
    give,
    place,
    take,
    tightest,
)

#: Pods that are counted, at most, where a machine is chosen; how cheap it is to be with company.
_COUNTED, _CHEAPER = 50, 0.9


@dataclass
class ClusterView:
    """A cluster as a policy sees it: a copy to try things on, and nothing of what is to come.

    Pods are those that have come, numbered in that order.

    Attributes
    ----------
    now : float
        s
    room : Room
        Nodes: `room.state` is OFF, STARTING, READY or CLOSED.
    machine : ndarray
        (nodes,) Type of each node; a node that is off may be bought.
    price : ndarray
        (machines,) USD an hour, now.
    on_node : list of list of int
        Pods of each node.
    waiting, down : list of int
        Pods without a place; pods that are down because they were evicted or lost.
    needs : list of tuple
        Of a pod: CPU, memory, GPUs, share of each, node set, group that keeps apart.
    fixed, alone, workload, gpu_set : ndarray
        (pods,) Whether nobody may move it; whether it can be evicted alone; what it is a replica
        of; a bit for each GPU it has.
    spare : ndarray
        (workloads,) How many more pods of a workload its budget lets be down.
    busy : bool
        Whether the last plan goes on.
    created : ndarray
        (pods,) When a pod came, s.
    """

    now: float
    room: Room
    machine: np.ndarray
    price: np.ndarray
    on_node: list[list[int]]
    waiting: list[int]
    down: list[int]
    needs: list[tuple[int, ...]]
    fixed: np.ndarray
    alone: np.ndarray
    gpu_set: np.ndarray
    workload: np.ndarray
    spare: np.ndarray
    busy: bool
    machines: Sequence[Any]
    created: np.ndarray

    def __post_init__(self) -> None:
        self._state = np.array([1], np.uint64)
        self._out = np.zeros(1, np.int64)
        self._rank = np.arange(len(self.machine))

    def trial(self) -> ClusterView:
        """Return a copy to try things on."""
        trial = copy.copy(self)
        trial.room, trial.gpu_set = self.room.copied(), self.gpu_set.copy()
        trial.on_node = list(self.on_node)
        return trial

    def nodes(self, state: int = READY) -> np.ndarray:
        """Return the nodes in a state."""
        return np.flatnonzero(self.room.state == state)

    def price_of(self, n: int) -> float:
        """Return what a node costs, USD an hour."""
        return float(self.price[self.machine[n]])

    def used(self, n: int) -> float:
        """Return the largest share of a resource of a node that is requested; of GPU nodes:
        GPUs."""
        room = self.room
        if room.gpus[n]:
            free = room.gpu[n, : room.gpus[n]].sum()
            return float(1 - free / (room.gpus[n] * WHOLE))
        memory = room.memory[n] / room.memory_size[n] if room.memory_size[n] else 1.0
        return float(1 - min(room.cpu[n] / room.cpu_size[n], memory))

    def evictable(self, p: int) -> bool:
        """Whether a pod may be evicted: nobody forbids it, and its budget lets one more be down."""
        return not self.fixed[p] and self.spare[self.workload[p]] > 0

    def movable(self, n: int) -> bool:
        """Whether every pod of a node may be evicted; not whether all may be at once."""
        return all(map(self.evictable, self.on_node[n]))

    def copied(self, n: int) -> bool:
        """Whether all pods of a node may be moved: a new copy runs before the old one ends."""
        return not any(self.fixed[p] or self.alone[p] for p in self.on_node[n])

    def age(self, p: int) -> float:
        """Return for how long a pod has been there, s."""
        return self.now - float(self.created[p])

    def asked(self, pods: Iterable[int]) -> tuple[int, int, int]:
        """Return what pods ask for: CPU, memory, thousandths of GPUs."""
        needs = [self.needs[p] for p in pods]
        cpu, memory = (sum(need[k] for need in needs) for k in (0, 1))
        return cpu, memory, sum(need[2] * need[3] for need in needs)

    def slot(self, machine: int) -> int:
        """Return a node of a machine that is not there yet; -1: none is left."""
        off = np.flatnonzero((self.room.state == OFF) & (self.machine == machine))
        return int(off[0]) if len(off) else -1

    def slots(self) -> np.ndarray:
        """Return for each machine a node of it that is not there yet; -1: none is left."""
        off = np.flatnonzero(self.room.state == OFF)[::-1]
        first = np.full(len(self.price), -1)
        first[self.machine[off]] = off
        return first

    def suits(self, n: int, pods: Iterable[int]) -> bool:
        """Whether all pods may be on a node, if they find room."""
        return all(self.room.allowed[self.needs[p][4], n] for p in pods)

    def settle(self, pods: Iterable[int], rule: int = MOST) -> list[tuple[int, int]] | None:
        """Put pods on nodes that take pods, the largest first; None and no change if one does not.

        Returns
        -------
        list of (pod, node)
        """
        placed: list[tuple[int, int]] = []
        for p in sorted(
            pods, key=lambda p: (-self.needs[p][2] * self.needs[p][3], -self.needs[p][0])
        ):
            n = int(place(rule, self.room, *self.needs[p], self._rank, self._state, self._out))
            if n < 0:
                for q, m in placed:
                    self._change(q, m, give)
                return None
            self.gpu_set[p] = self._out[0]
            self._change(p, n, take)
            placed.append((p, n))
        return placed

    def empty(self, n: int) -> list[tuple[int, int]] | None:
        """Close a node and settle its pods elsewhere; None and no change where they do not fit."""
        before = {p: int(self.gpu_set[p]) for p in self.on_node[n]}
        state = int(self.room.state[n])
        self.room.state[n] = CLOSED
        for p in before:
            self._change(p, n, give)
        placed = self.settle(before)
        if placed is None:
            self.room.state[n] = state
            for p, gpu_set in before.items():
                self.gpu_set[p] = gpu_set
                self._change(p, n, take)
            return None
        self.on_node[n] = []
        for p, m in placed:
            self.on_node[m] = [*self.on_node[m], p]  # copies of a view share lists
        return placed

    def move(self, p: int, old: int, n: int) -> bool:
        """Move a pod, make before break; False and no change where it does not fit."""
        if not fits(self.room, n, *self.needs[p]):
            return False
        before, self.gpu_set[p] = self.gpu_set[p], tightest(self.room, n, *self.needs[p][2:4])
        self._change(p, n, take)
        after, self.gpu_set[p] = self.gpu_set[p], before
        self._change(p, old, give)
        self.gpu_set[p] = after
        return True

    def _change(self, p: int, n: int, how: Any) -> None:
        cpu, memory, _, share, _, rules = self.needs[p]
        how(self.room, n, cpu, memory, share, int(self.gpu_set[p]), rules)

    def holds(self, machine: int, pods: list[int]) -> bool:
        """Whether a new node of a machine would hold all pods; it is not kept."""
        kind = self.machines[machine]
        cpu, memory, gpu = (sum(self.needs[p][k] for p in pods) for k in (0, 1, 2))
        if cpu > kind.cpu_millicores or memory > kind.memory_mib or (gpu and not kind.gpus):
            return False
        n = self.open_slot(machine)
        if n < 0:
            return False
        others = self.room.state == READY
        others[n] = False
        self.room.state[others] = CLOSED
        placed = self.settle(pods)
        for p, m in placed or ():
            self._change(p, m, give)
        self.room.state[others] = READY
        self.room.state[n] = OFF
        return placed is not None

    def open_slot(self, machine: int) -> int:
        """Try a node of a machine that is not there yet: it takes pods at once; -1: none is
        left."""
        n = self.slot(machine)
        if n >= 0:
            self.room.state[n] = READY
        return n


class Policy:
    """Looks at the cluster every `interval` seconds.

    Attributes
    ----------
    interval : float
        s; 0: never.
    rule : str
        How the scheduler scores nodes: one of `placeopt.backtest.room.RULES`.
    recorded : bool
        Whether nodes come and go as in the trace; otherwise they are bought for pods that wait.
    next_look : float
        What `decide` may set: before that second it need not look again unless something happens.
    """

    interval = 0.0
    next_look = -np.inf
    rule = "least"
    recorded = False

    def decide(self, view: ClusterView, now: float) -> list[Action]:
        """Return what to do, in order; nothing: a plan that goes on goes on."""
        return []

    def provision(self, view: ClusterView) -> list[Action]:
        """Return nodes to buy for pods that wait.

        Pods that fit on ordered nodes need none. For the others, first come first, the machine is
        bought that is cheapest per pod of those that wait, or with `company` beside them.
        """
        company = self.company(view)
        view.room.state[view.room.state == STARTING] = READY
        rest = [p for p in view.waiting if view.settle([p]) is None]
        bought = []
        while rest:
            machine = _cheapest(view, rest, company)
            if machine < 0:
                rest.pop(0)
                continue
            bought.append(Action("buy", machine))
            view.open_slot(machine)
            rest = [p for p in rest if view.settle([p]) is None]
        return bought

    def company(self, view: ClusterView) -> list[int]:
        """Return pods such as are expected beside those that wait; here none."""
        return []


class Nothing(Policy):
    """The cluster as it was recorded; the scheduler alone places pods."""

    recorded = True


def _cheapest(view: ClusterView, pods: list[int], company: list[int]) -> int:
    """Return the machine of least price per pod that it holds, the first pod among them; or -1.

    With company another one is chosen if it is that much cheaper for what it then holds.
    """
    alone, full = {}, {}
    everyone = [*pods, *company][:_COUNTED]
    worth = _worth(view, everyone) if company else np.zeros(0)
    for machine in range(len(view.price)):
        n = view.open_slot(machine)
        if n < 0:
            continue
        if fits(view.room, n, *view.needs[pods[0]]):
            price = float(view.price[machine])
            alone[machine] = price / max(len(_held(view, n, pods[:_COUNTED])), 1)
            if company:
                full[machine] = price / max(float(worth[_held(view, n, everyone)].sum()), 1e-9)
        view.room.state[n] = OFF
    chosen = min(alone, key=lambda machine: alone[machine], default=-1)
    filled = min(full, key=lambda machine: full[machine], default=chosen)
    return filled if full and full[filled] < _CHEAPER * full[chosen] else chosen


def _held(view: ClusterView, n: int, pods: list[int]) -> list[int]:
    """Return the positions of the pods that an empty node would hold, as they come."""
    cpu, memory, gpu = view.room.cpu[n], view.room.memory[n], view.room.gpus[n] * WHOLE
    held = []
    for k, p in enumerate(pods):
        need = view.needs[p]
        room = need[0] <= cpu and need[1] <= memory and need[2] * need[3] <= gpu
        if room and view.room.allowed[need[4], n]:
            cpu, memory, gpu = cpu - need[0], memory - need[1], gpu - need[2] * need[3]
            held.append(k)
    return held


def _worth(view: ClusterView, pods: list[int]) -> np.ndarray:
    """Return for each pod the least price of the part of a machine that it takes."""
    asked = np.array([view.asked([p]) for p in pods], float)
    sizes = np.array(
        [(m.cpu_millicores, m.memory_mib, m.gpus * WHOLE) for m in view.machines], float
    )
    share = (asked[:, None, :] / np.maximum(sizes, 1e-9)).max(axis=2)
    worth: np.ndarray = (share * view.price).min(axis=1)
    return worth
