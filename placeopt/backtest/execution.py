"""Plans carried out step by step while events go on.

Steps are taken one after another, as an exported script takes them: the next one begins when the
copy that the last one started is ready. Evictions of one plan that a budget allows go on together.
A step that has become impossible is dropped and counted: its pod ended, or its target is full.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable
from typing import Any, Literal, NamedTuple

from placeopt.backtest.events import POD_READY, STEP
from placeopt.backtest.scheduler import tightest
from placeopt.backtest.state import CLOSED, OFF, READY, STARTING, give

#: Seconds after which an eviction that a budget forbids is tried again.
RETRY_S = 5.0


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


class Executor:
    """Carries out what a policy wants on a twin."""

    def __init__(self, twin: Any):
        self._twin = twin
        self._steps: deque[Action] = deque()
        self._moving: tuple[int, int, int] | None = None  # a pod, its old node, its old GPUs
        self._planned = False

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
            self._twin.plan(self._twin.now + seconds, STEP)

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
        down = Counter(int(twin.arrays.workload[q]) for q in twin.down)
        if down[workload] >= twin.arrays.budget[workload]:
            return RETRY_S
        twin.ledger.disturbed(workload)
        twin.ledger.stopped += 1
        twin.back_to_queue(p)
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
        self._moving = (p, old, int(twin.gpu_set[p]))
        twin.ledger.disturbed(int(twin.arrays.workload[p]))
        twin.put(p, n, int(tightest(twin.room, n, gpus, share)))
        twin.on_node[old].pop(p)
        if twin.arrays.work[p] != twin.arrays.work[p]:
            twin.plan(twin.now + twin.arrays.trace.pod_start_s, POD_READY, p, int(twin.life[p]))

    def ready(self, p: int) -> None:
        """A pod is ready: where it was moved, the old copy ends, and the next step begins."""
        if self._moving is not None and self._moving[0] == p:
            self._end_old()
            self._soon(0.0)

    def ended(self, p: int) -> None:
        """A pod ends: where it is being moved, both copies do."""
        if self._moving is not None and self._moving[0] == p:
            self._end_old()
            self._soon(0.0)

    def lost(self, n: int) -> None:
        """A node is lost: an old copy on it is gone."""
        if self._moving is not None and self._moving[1] == n:
            self._end_old()
            self._soon(0.0)

    def _end_old(self) -> None:
        assert self._moving is not None
        p, old, gpu_set = self._moving
        self._moving = None
        twin = self._twin
        cpu, memory, _, share, _, rules = twin.needs[p]
        give(twin.room, old, cpu, memory, share, gpu_set, rules)
        twin.ledger.cpu -= cpu
        twin.freed = True
        if twin.room.state[old] != OFF:
            twin.off_if_empty(old)
