"""The twin of a cluster in time: discrete events on a heap.

Events of one instant are taken in the order of their kinds: what frees room comes before what takes
it, and a policy sees the instant when all else has happened. Pods that wait are
served first come first served, before the policy is asked.

A node costs from its order to its end. A pod that is evicted stops at once and waits for a place; a
pod that is moved goes on until its new copy is ready, if the target has the room for both.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from placeopt.backtest.arrays import TraceArrays
from placeopt.backtest.execution import Executor
from placeopt.backtest.ledger import FigureName, Ledger
from placeopt.backtest.policies.base import ClusterView, Policy
from placeopt.backtest.room import CLOSED, OFF, READY, RULES, STARTING, fits, give, place, take
from placeopt.backtest.trace import ClusterTrace, RolloutStrategy, TracePod

#: Kinds of events, in the order in which those of one instant are taken.
END, NODE_READY, POD_READY, NODE_GONE, LOST, NODE_COMES, PRICE, ARRIVAL, STEP, BUY, TICK = range(11)
#: Where a pod is that has no node: not there yet, waiting, gone.
AHEAD, WAITING, GONE = -3, -1, -2
#: Seconds that a provisioner collects waiting pods for, as Karpenter's batch.
BATCH_S = 10.0


class Twin:
    """One run of one policy.

    Parameters
    ----------
    arrays : TraceArrays
    policy : Policy
    seed : int
        Ties of the scheduler are drawn with it.
    check : callable, optional
        Called with the twin after every event: for tests.
    """

    def __init__(
        self,
        arrays: TraceArrays,
        policy: Policy,
        seed: int = 1,
        check: Callable[[Twin], None] | None = None,
    ):
        self.arrays, self.policy, self.check = arrays, policy, check
        self.room = arrays.room()
        self.ledger = Ledger()
        self.price = arrays.price.copy()
        pods = len(arrays.created)
        self.node_of = np.full(pods, AHEAD, np.int64)
        self.gpu_set = np.zeros(pods, np.int64)
        #: The copy of each pod that runs, 0: none; so that events of former copies are known.
        self.life = np.zeros(pods, np.int64)
        self._copies = 0
        self.on_since = np.zeros(len(arrays.machine), np.int64)  # orders of a slot, likewise
        self.on_node: list[dict[int, None]] = [{} for _ in arrays.machine]
        self.waiting: dict[int, float] = {}
        self.down: dict[int, float] = {}
        self.now = 0.0
        self._ticks = 0
        self._seen = -1
        self.freed = False  # whether room was freed since pods that wait were served
        self._heap: list[tuple[float, int, int, int]] = []
        self._arrival = 0
        self._buying = False
        self._state = np.random.default_rng(seed).integers(0, 2**63, 1).astype(np.uint64)
        self._out = np.zeros(1, np.int64)
        self._rank = np.zeros(0, np.int64)
        self._rule = RULES[policy.rule]
        #: What a pod asks for, as plain numbers: faster than single elements of arrays.
        self.needs = list(zip(*(column.tolist() for column in arrays.need), strict=True))
        self._class = arrays.of_class.tolist()
        self._created = arrays.created.tolist()
        self._came: list[tuple[int, ...]] = []  # needs of pods that have come
        self.rollouts = rollouts_of(arrays.trace)
        self.executor = Executor(self)
        self._begin()

    # -- clock -------------------------------------------------------------------------------------

    def plan(self, at: float, kind: int, one: int = 0, version: int = 0) -> None:
        """Let an event happen."""
        heapq.heappush(self._heap, (at, kind, one, version))

    def plan_step(self, seconds: float) -> None:
        """Let the plan that goes on take its next step so much later."""
        self.plan(self.now + seconds, STEP)

    def _begin(self) -> None:
        trace, arrays = self.arrays.trace, self.arrays
        for n in range(len(trace.nodes)):
            if arrays.begins[n] == 0:
                self._switch_on(n, at_once=True)
            elif self.policy.recorded:
                self.plan(float(arrays.begins[n]), NODE_COMES, n)
            if self.policy.recorded and arrays.ends[n] < np.inf:
                self.plan(float(arrays.ends[n]), NODE_GONE, n)
        numbers = {name: k for k, name in enumerate(arrays.names)}
        for loss in trace.losses:
            self.plan(loss.at_s, LOST, numbers[loss.node])
        for k, change in enumerate(trace.prices):
            self.plan(change.at_s, PRICE, k)
        if self.policy.interval:
            self.plan(self.policy.interval, TICK)

    def run(self) -> Ledger:
        """Let the clock run to the end of the trace."""
        end = self.arrays.trace.seconds
        heap, created = self._heap, self._created
        pods = len(created)
        while True:
            at = heap[0][0] if heap else np.inf
            k = self._arrival
            comes = created[k] if k < pods else np.inf
            arrives = comes < at or (comes == at < np.inf and heap[0][1] > ARRIVAL)
            at = comes if arrives else at
            kind = ARRIVAL if arrives else (heap[0][1] if heap else TICK)
            if self.freed and self.waiting and (at > self.now or kind >= ARRIVAL):
                self._serve()
                continue
            if at > end or at == np.inf:
                break
            if at > self.now:
                self.ledger.advance(at)
                self.now = at
            self.ledger.events += 1
            if arrives:
                self._arrival += 1
                self._came.append(self.needs[k])
                self._arrive(k)
            else:
                _, kind, one, version = heapq.heappop(heap)
                self._happen(kind, one, version)
            if self.check is not None:
                self.check(self)
        self.ledger.advance(end)
        self.now = end
        for p, since in self.waiting.items():  # who waits still has waited until now
            if p not in self.down:
                self.ledger.waited(end - since, placed=False)
        for since in self.down.values():
            self.ledger.down_seconds += end - since
        return self.ledger

    def _happen(self, kind: int, one: int, version: int) -> None:
        if kind == END:
            if version < 0 or self._runs(one, version):
                self._end(one)
        elif kind == POD_READY:
            if self._runs(one, version):
                self._pod_ready(one, version)
        elif kind == NODE_READY:
            if version == self.on_since[one] and self.room.state[one] == STARTING:
                self.set_ready(one)
        elif kind == NODE_COMES:
            self._switch_on(one, at_once=True)
        elif kind in (LOST, NODE_GONE):
            self._lose(one)
        elif kind == PRICE:
            self._reprice(one)
        elif kind == STEP:
            self.executor.step()
        elif kind == BUY:
            self._buying = False
            self.executor.at_once(self.policy.provision(self.view()))
        elif kind == TICK:
            self.plan(self.now + self.policy.interval, TICK)
            self._look()

    def _runs(self, p: int, copy: int) -> bool:
        """Whether a copy of a pod is there: its own, or the old one while it is moved."""
        return copy in (self.life[p], self.executor.old_copy(p))

    def _look(self) -> None:
        """Ask the policy, unless nothing has happened and it waits for nothing."""
        self._ticks += 1
        happened = self.ledger.events - self._ticks
        if happened == self._seen and self.now < self.policy.next_look:
            return
        self._seen = happened
        self.policy.next_look = -np.inf
        self.executor.take_up(self.policy.decide(self.view(), self.now))

    # -- pods --------------------------------------------------------------------------------------

    def _arrive(self, p: int) -> None:
        deleted = float(self.arrays.deleted[p])
        if deleted < np.inf:
            self.plan(deleted, END, p, -1)
        if self.rollouts.may_come(p):
            self._make(p)

    def _make(self, p: int) -> None:
        self.node_of[p] = WAITING
        self.waiting[p] = self.now
        self.ledger.waiting += 1
        if not self._try(p):
            self._ask_for_nodes()

    def find(self, p: int) -> int:
        """Return a node for a pod, or -1; its GPUs are in the scheduler's own place."""
        return int(place(self._rule, self.room, *self.needs[p], self._rank, self._state, self._out))

    def _try(self, p: int) -> bool:
        n = self.find(p)
        if n < 0:
            return False
        self.put(p, n, int(self._out[0]))
        since = self.waiting.pop(p)
        self.ledger.waiting -= 1
        if p not in self.down:
            self.ledger.waited(self.now - since, placed=True)
        return True

    def put(self, p: int, n: int, gpu_set: int, moved: bool = False) -> None:
        """Let a copy of a pod start on a node."""
        cpu, memory, _, share, _, rules = self.needs[p]
        take(self.room, n, cpu, memory, share, gpu_set, rules)
        self.node_of[p], self.gpu_set[p] = n, gpu_set
        self.on_node[n][p] = None
        self._copies += 1
        self.life[p] = self._copies
        self.ledger.cpu += cpu
        ready = self.now + self.arrays.trace.pod_start_s
        job = self.arrays.work[p] == self.arrays.work[p]
        if moved or job or p in self.down or p in self.rollouts.makes:
            self.plan(ready, POD_READY, p, int(self.life[p]))

    def remove(self, p: int) -> int:
        """Take a pod off its node, return the node; one that is closed goes when it is empty."""
        n = int(self.node_of[p])
        cpu, memory, _, share, _, rules = self.needs[p]
        give(self.room, n, cpu, memory, share, int(self.gpu_set[p]), rules)
        del self.on_node[n][p]
        self.ledger.cpu -= cpu
        self.life[p] = 0
        self.freed = True
        self.off_if_empty(n)
        return n

    def off_if_empty(self, n: int) -> None:
        """Let a node go that is closed and empty."""
        if self.room.state[n] == CLOSED and self.room.pods[n] == 0:
            self.switch_off(n)

    def _pod_ready(self, p: int, copy: int) -> None:
        if p in self.down:
            self.ledger.down_seconds += self.now - self.down.pop(p)
        work = float(self.arrays.work[p])
        if work == work:
            self.plan(self.now + work, END, p, copy)
        if copy == self.life[p]:
            self.executor.ready(p)
        for old in self.rollouts.note_ready(p):
            self._end(old)

    def _end(self, p: int) -> None:
        if not self.rollouts.may_end(p):
            return
        if self.node_of[p] >= 0:
            self.executor.ended(p)
            self.remove(p)
        elif self.node_of[p] == WAITING:
            since = self.waiting.pop(p)
            self.ledger.waiting -= 1
            if p not in self.down:
                self.ledger.waited(self.now - since, placed=False)
        if p in self.down:
            self.ledger.down_seconds += self.now - self.down.pop(p)
        self.node_of[p] = GONE
        for old in self.rollouts.note_ready(p):
            self._end(old)
        for new in self.rollouts.note_ended(p):
            self._make(new)

    def back_to_queue(self, p: int) -> None:
        """Stop a pod: another copy waits for a place, behind all that wait."""
        self.executor.ended(p)
        self.remove(p)
        self.node_of[p] = WAITING
        self.down.setdefault(p, self.now)
        self.waiting[p] = self.now
        self.ledger.waiting += 1
        self.freed = True

    def _serve(self) -> None:
        """Place pods that wait, first come first served; of a class that does not fit only one."""
        self.freed = False
        failed: set[int] = set()
        for p in list(self.waiting):
            if self._class[p] not in failed and not self._try(p):
                failed.add(self._class[p])
        if self.waiting:
            self._ask_for_nodes()

    def _ask_for_nodes(self) -> None:
        if not self._buying and not self.policy.recorded:
            self._buying = True
            self.plan(self.now + BATCH_S, BUY)

    # -- nodes -------------------------------------------------------------------------------------

    def _switch_on(self, n: int, at_once: bool = False) -> None:
        if self.room.state[n] != OFF:
            return
        self.on_since[n] += 1
        self.ledger.nodes += 1
        self.ledger.rate += float(self.price[self.arrays.machine[n]])
        self.room.state[n] = STARTING
        if at_once:
            self.set_ready(n)
        else:
            self.ledger.bought += 1
            at = self.now + self.arrays.trace.node_start_s
            self.plan(at, NODE_READY, n, int(self.on_since[n]))

    def buy(self, machine: int) -> bool:
        """Order a node of a machine type, if there may be another one."""
        off = np.flatnonzero((self.room.state == OFF) & (self.arrays.machine == machine))
        if len(off):
            self._switch_on(int(off[0]))
        return len(off) > 0

    def set_ready(self, n: int) -> None:
        """Let a node take pods."""
        self.room.state[n] = READY
        self.freed = True

    def switch_off(self, n: int) -> None:
        """Let an empty node go."""
        self.room.state[n] = OFF
        self.ledger.freed += 1
        self._pay_less(n)

    def _pay_less(self, n: int) -> None:
        self.ledger.nodes -= 1
        self.ledger.rate -= float(self.price[self.arrays.machine[n]])
        if self.ledger.nodes == 0:
            self.ledger.rate = 0.0

    def _lose(self, n: int) -> None:
        if self.room.state[n] == OFF:
            return
        self.room.state[n] = OFF
        self.executor.lost(n)
        for p in list(self.on_node[n]):
            self.ledger.lost += 1
            self.back_to_queue(p)
        self._pay_less(n)

    def _reprice(self, k: int) -> None:
        change = self.arrays.trace.prices[k]
        machine = next(
            i for i, m in enumerate(self.arrays.trace.machines) if m.name == change.machine
        )
        there = int(((self.room.state != OFF) & (self.arrays.machine == machine)).sum())
        self.ledger.rate += there * (change.usd_per_hour - float(self.price[machine]))
        self.price[machine] = change.usd_per_hour

    # -- policies ----------------------------------------------------------------------------------

    def view(self) -> ClusterView:
        """Return what a policy may see: copies, and nothing of what is to come."""
        arrays, came = self.arrays, self._arrival
        on_node: list[list[int]] = [[] for _ in self.on_node]
        for n in np.flatnonzero(self.room.pods).tolist():
            on_node[n] = list(self.on_node[n])
        return ClusterView(
            now=self.now,
            room=self.room.copied(),
            machine=arrays.machine,
            price=self.price.copy(),
            on_node=on_node,
            waiting=list(self.waiting),
            needs=self._came,
            fixed=arrays.fixed[:came],
            alone=arrays.alone[:came],
            gpu_set=self.gpu_set[:came].copy(),
            workload=arrays.workload[:came],
            busy=self.executor.busy,
            machines=arrays.trace.machines,
            down=list(self.down),
            spare=self.spare(),
            created=arrays.created[:came],
        )

    def spare(self) -> np.ndarray:
        """Return for each workload how many more of its pods may be down, (workloads,)."""
        who = np.fromiter(self.down, np.int64, len(self.down))
        down = np.bincount(self.arrays.workload[who], minlength=len(self.arrays.budget))
        return np.maximum(self.arrays.budget - down, 0)

    def can_take(self, p: int, n: int) -> bool:
        """Whether a pod could start on a node now."""
        return bool(fits(self.room, n, *self.needs[p]))


def run(
    arrays: TraceArrays, policy: Policy, seed: int = 1
) -> tuple[Ledger, dict[FigureName, float]]:
    """Return the ledger of a run and its figures."""
    ledger = Twin(arrays, policy, seed).run()
    return ledger, ledger.figures()


# -- rollouts: pods of a revision follow those of the one before -----------------------------------


@dataclass
class Rollouts:
    """The rollouts of a trace, and how far each is.

    Attributes
    ----------
    makes, ends : dict of int to (int, int)
        A new pod -> its rollout, and the old pods that have to have ended before it is made; an old
        pod -> its rollout, and the new pods that have to be ready before it ends.
    ended, ready : list of int
        Per rollout: old pods that have ended, new pods that are ready, or gone.
    to_come, to_end : list of list of int
        Per rollout: pods that are held back.
    """

    makes: dict[int, tuple[int, int]]
    ends: dict[int, tuple[int, int]]
    ended: list[int] = field(default_factory=list)
    ready: list[int] = field(default_factory=list)
    to_come: list[list[int]] = field(default_factory=list)
    to_end: list[list[int]] = field(default_factory=list)
    _seen: set[int] = field(default_factory=set)

    def may_come(self, p: int) -> bool:
        """Whether a pod may be made now; otherwise it is held back."""
        rollout, need = self.makes.get(p, (-1, 0))
        if rollout < 0 or self.ended[rollout] >= need:
            return True
        self.to_come[rollout].append(p)
        return False

    def may_end(self, p: int) -> bool:
        """Whether a pod may end now; otherwise it is held back."""
        rollout, need = self.ends.get(p, (-1, 0))
        if rollout < 0 or self.ready[rollout] >= need:
            return True
        if p not in self.to_end[rollout]:
            self.to_end[rollout].append(p)
        return False

    def note_ready(self, p: int) -> list[int]:
        """Note that a new pod is ready, or gone for good; return old ones that may end now."""
        rollout, _ = self.makes.get(p, (-1, 0))
        if rollout < 0 or p in self._seen:
            return []
        self._seen.add(p)
        self.ready[rollout] += 1
        if p in self.to_come[rollout]:
            self.to_come[rollout].remove(p)
        return self._released(self.to_end[rollout], self.ends, self.ready[rollout])

    def note_ended(self, p: int) -> list[int]:
        """Note that an old pod has ended; return new ones that may be made now."""
        rollout, _ = self.ends.get(p, (-1, 0))
        if rollout < 0:
            return []
        self.ended[rollout] += 1
        return self._released(self.to_come[rollout], self.makes, self.ended[rollout])

    @staticmethod
    def _released(held: list[int], needs: dict[int, tuple[int, int]], count: int) -> list[int]:
        free = [p for p in held if needs[p][1] <= count]
        held[:] = [p for p in held if needs[p][1] > count]
        return free


def rollouts_of(trace: ClusterTrace) -> Rollouts:
    """Return the rollouts of a trace, all of them ahead."""
    found = Rollouts({}, {})
    revisions: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for k, pod in enumerate(trace.pods):
        if pod.workload in trace.rollouts and pod.revision is not None:
            revisions[pod.workload][pod.revision].append(k)
    for workload, by_revision in revisions.items():
        strategy = trace.rollouts[workload]
        for before, after in pairwise(by_revision.values()):
            _add(found, trace.pods, before, after, strategy, trace.pod_start_s)
    return found


def _add(
    found: Rollouts,
    pods: tuple[TracePod, ...],
    before: list[int],
    after: list[int],
    strategy: RolloutStrategy,
    start: float,
) -> None:
    """Add the rollout from the pods of a revision to those of the next one."""
    begin = pods[after[0]].from_s
    old = [p for p in before if (to := pods[p].to_s) is not None and to >= begin]
    old.sort(key=lambda p: pods[p].to_s or 0.0)
    ends = [pods[p].to_s or 0.0 for p in old]
    new = [p for p in after if ends and pods[p].from_s <= ends[-1]]
    comes = [pods[p].from_s for p in new]
    number = len(found.ended)
    for k, p in enumerate(new):
        need = min(max(0, k + 1 - strategy.max_surge), bisect_right(ends, comes[k]))
        found.makes[p] = number, need
    for k, p in enumerate(old):
        was_ready = bisect_left(comes, ends[k] - start)
        found.ends[p] = number, min(max(0, k + 1 - strategy.max_unavailable), was_ready)
    found.ended.append(0)
    found.ready.append(0)
    found.to_come.append([])
    found.to_end.append([])
