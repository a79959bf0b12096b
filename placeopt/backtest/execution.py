"""Plans carried out step by step while events go on.

Steps are taken one after another, as an exported script takes them: the next one begins when the
copy that the last one started is ready. Evictions of one plan that a budget allows go on together.
A step that has become impossible is dropped and counted: its pod ended, its target is full, or a
budget has forbidden its eviction for two minutes. A node that is drained takes pods again then.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any, Literal, NamedTuple

from placeopt.backtest.room import CLOSED, OFF, READY, STARTING, give, tightest

#: Seconds after which a step that has to wait is tried again; for which an eviction that a budget
#: forbids is tried (cluster-autoscaler's ``--max-pod-eviction-time``).
RETRY_S, PATIENCE_S = 5.0, 120.0


class Action(NamedTuple):
    """What a policy wants done.

    Attributes
    ----------
    do : str
        ``buy`` a node of machine `which`; ``close`` node `which` to new pods, which goes when it is
        empty; ``open`` it again; ``drain`` it: close it, evict its pods; ``evict`` pod `which`;
        ``move`` pod `which` to node `to`; ``await`` that all ordered nodes are ready.
    which, to : int
    """

    do: Literal["buy", "close", "open", "drain", "evict", "move", "await"]
    which: int = -1
    to: int = -1


class Move(NamedTuple):
    """A pod that is being moved; its old node, what it has of its GPUs, its old copy."""

    pod: int
    old: int
    gpu_set: int
    copy: int


class Executor:
    """Carries out what a policy wants on a twin."""

    def __init__(self, twin: Any):
        self._twin = twin
        self._steps: deque[Action] = deque()
        self._moving: Move | None = None
        self._planned = False
        self._refused: tuple[int, float] = (-1, 0.0)  # a pod that cannot be evicted, and since when

    @property
    def busy(self) -> bool:
        """Whether a plan goes on."""
        return bool(self._steps) or self._moving is not None

    def at_once(self, actions: Iterable[Action]) -> None:
        """Buy, whatever else goes on."""
        for action in actions:
            self._twin.buy(action.which)

    def take_up(self, actions: Iterable[Action]) -> None:
        """Begin a plan, which ends one that goes on; nodes that go beside it are no plan."""
        steps = deque(actions)
        if self.busy and all(action.do == "close" for action in steps):
            for action in steps:
                self._take(action)
            return
        if not steps:
            return
        self._twin.ledger.dropped += len(self._steps)
        self._steps = steps
        self._soon(0.0)

    def _soon(self, seconds: float) -> None:
        if not self._planned:
            self._planned = True
            self._twin.plan_step(seconds)

    def step(self) -> None:
        """Take steps until one has to wait."""
        self._planned = False
        while self._steps and self._moving is None:
            wait = self._take(self._steps[0])
            if wait > 0:
                self._soon(wait)
                return
            self._steps.popleft()

    def _take(self, action: Action) -> float:
        """Take a step; return after how many seconds it has to be tried again, 0: it is done."""
        twin, room = self._twin, self._twin.room
        if action.do == "buy":
            twin.ledger.dropped += not twin.buy(action.which)
        elif action.do == "close":
            if room.state[action.which] == READY:
                room.state[action.which] = CLOSED
                twin.off_if_empty(action.which)
        elif action.do == "open":
            if room.state[action.which] == CLOSED:
                twin.set_ready(action.which)
        elif action.do == "await":
            return RETRY_S if (room.state == STARTING).any() else 0.0
        elif action.do == "drain":
            self._drain(action.which)
        elif action.do == "evict":
            return self._evict(action.which)
        else:
            self._move(action.which, action.to)
        return 0.0

    def _drain(self, n: int) -> None:
        self._take(Action("close", n))
        pods = [Action("evict", p) for p in self._twin.on_node[n]]
        first = self._steps.popleft()
        self._steps.extendleft(reversed([first, *pods]))

    def _evict(self, p: int) -> float:
        twin = self._twin
        if twin.node_of[p] < 0 or twin.arrays.fixed[p]:
            twin.ledger.dropped += 1
            return 0.0
        workload = int(twin.arrays.workload[p])
        if twin.spare()[workload] == 0:
            return self._refuse(p)
        twin.ledger.disturbed(workload)
        twin.ledger.stopped += 1
        twin.back_to_queue(p)
        return 0.0

    def _refuse(self, p: int) -> float:
        """Wait with an eviction for a time; then let its node take pods again."""
        twin = self._twin
        if self._refused[0] != p:
            self._refused = p, twin.now
        if twin.now - self._refused[1] < PATIENCE_S:
            return RETRY_S
        self._refused = -1, 0.0
        n = int(twin.node_of[p])
        there = twin.on_node[n]
        rest = deque(s for s in self._steps if not (s.do == "evict" and s.which in there))
        rest.appendleft(self._steps[0])  # the present step, which the caller ends
        twin.ledger.dropped += 1 + len(self._steps) - len(rest)
        self._steps = rest
        self._take(Action("open", n))
        return 0.0

    def _move(self, p: int, n: int) -> None:
        """Start a copy of a pod on a node; the old one ends when the new one is ready."""
        twin = self._twin
        old = int(twin.node_of[p])
        stays = twin.arrays.fixed[p] or twin.arrays.alone[p]
        if old < 0 or old == n or stays or not twin.can_take(p, n):
            twin.ledger.dropped += 1
            return
        _, _, gpus, share, _, _ = twin.needs[p]
        self._moving = Move(p, old, int(twin.gpu_set[p]), int(twin.life[p]))
        twin.ledger.disturbed(int(twin.arrays.workload[p]))
        twin.put(p, n, int(tightest(twin.room, n, gpus, share)), moved=True)
        twin.on_node[old].pop(p)

    def old_copy(self, p: int) -> int:
        """Return the copy of a pod that runs on while another one starts; -1: there is none."""
        return self._moving.copy if self._moving is not None and self._moving.pod == p else -1

    def ready(self, p: int) -> None:
        """A pod is ready: where it was moved, the old copy ends, and the next step begins."""
        if self.old_copy(p) >= 0:
            self._end_old()
            self._soon(0.0)

    def ended(self, p: int) -> None:
        """A pod ends: where it is being moved, both copies do."""
        self.ready(p)

    def lost(self, n: int) -> None:
        """A node is lost: of a pod that is being moved one copy is gone, the other one stays."""
        if self._moving is None:
            return
        p, old, gpu_set, copy = self._moving
        twin = self._twin
        if old == n:  # the new copy is not ready yet
            twin.ledger.lost += 1
            twin.down.setdefault(p, twin.now)
            self._end_old()
        elif int(twin.node_of[p]) == n:
            self._moving = None
            twin.ledger.dropped += 1
            twin.remove(p)
            twin.node_of[p], twin.gpu_set[p], twin.life[p] = old, gpu_set, copy
            twin.on_node[old][p] = None
        else:
            return
        self._soon(0.0)

    def _end_old(self) -> None:
        assert self._moving is not None
        p, old, gpu_set, _ = self._moving
        self._moving = None
        twin = self._twin
        cpu, memory, _, share, _, rules = twin.needs[p]
        give(twin.room, old, cpu, memory, share, gpu_set, rules)
        twin.ledger.cpu -= cpu
        twin.freed = True
        if twin.room.state[old] != OFF:
            twin.off_if_empty(old)
