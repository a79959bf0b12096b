"""What others do: Karpenter, cluster-autoscaler, the descheduler, as documented.

Karpenter (Disruption, consolidationPolicy WhenEmptyOrUnderutilized): candidates are sorted by what
their disruption costs, fewest pods first. Empty nodes are deleted. Multi-node consolidation looks
by bisection for the longest run of candidates whose pods fit on the other nodes and at most one
new, cheaper node. Single-node consolidation deletes or replaces one. A new node is ready before the
old ones are drained. A budget (10 % of the nodes) limits how many are disrupted at a time; the next
command waits for the last one.

cluster-autoscaler (FAQ, "How does scale-down work?"): a node is unneeded while the requests on it
are below a share of it (``--scale-down-utilization-threshold``, .5) and its pods fit on other
nodes; one that was unneeded for ``--scale-down-unneeded-time`` (10 min) goes, empty ones several at
a time (``--max-empty-bulk-delete``, 10), others one by one; none for
``--scale-down-delay-after-add`` (10 min) after nodes were added.

HighNodeUtilization of the descheduler evicts the pods of nodes below all thresholds (20 %), so that
a scheduler that packs (MostAllocated) puts them elsewhere. Nodes are removed by the rule of
cluster-autoscaler for empty ones.
"""

from __future__ import annotations

import math

import numpy as np

from placeopt.backtest.execution import Action
from placeopt.backtest.policies.base import ClusterView, Policy
from placeopt.backtest.room import CLOSED, OFF, READY, STARTING

#: Candidates that multi-node consolidation looks at.
_MANY = 100


class Karpenter(Policy):
    """Consolidation of Karpenter.

    Parameters
    ----------
    budget : float
        Share of nodes that may be disrupted at a time.
    after : float
        s that a node must have had no pod come or go (``consolidateAfter``).
    interval : float
        s between two looks; the real one looks every 10 s.
    rule : str
        Score of the scheduler.
    """

    def __init__(
        self,
        *,
        budget: float = 0.1,
        after: float = 0.0,
        interval: float = 60.0,
        rule: str = "least",
    ):
        self.budget, self.after, self.interval, self.rule = budget, after, interval, rule
        self._version: np.ndarray | None = None
        self._since: np.ndarray = np.zeros(0)

    def decide(self, view: ClusterView, now: float) -> list[Action]:
        """Return one command."""
        version = view.room.version
        if self._version is None:
            self._version, self._since = version, np.zeros(len(version))
        self._since[version != self._version] = now
        self._version = version.copy()
        there = int((view.room.state != OFF).sum())
        allowed = math.ceil(self.budget * there) - int((view.room.state == CLOSED).sum())
        if view.busy or view.waiting or allowed <= 0:
            return []
        nodes = [int(n) for n in view.nodes() if now - self._since[n] >= self.after]
        empty = [n for n in nodes if not view.on_node[n]]
        if empty:
            return [Action("close", n) for n in empty[:allowed]]
        candidates = [n for n in nodes if view.movable(n)]
        candidates.sort(key=lambda n: (len(view.on_node[n]), n))
        command = self._several(view, candidates[: min(_MANY, allowed)]) or self._one(
            view, candidates
        )
        if not command and len(nodes) == len(view.nodes()):
            self.next_look = np.inf  # nothing to do until something changes
        return command

    def _several(self, view: ClusterView, candidates: list[int]) -> list[Action]:
        low, high, best = 2, len(candidates), []
        while low <= high:
            middle = (low + high) // 2
            command = self._replaced(view, candidates[:middle])
            if command:
                best, low = command, middle + 1
            else:
                high = middle - 1
        return best

    def _one(self, view: ClusterView, candidates: list[int]) -> list[Action]:
        for n in candidates:
            command = self._replaced(view, [n])
            if command:
                return command
        return []

    def _replaced(self, view: ClusterView, nodes: list[int]) -> list[Action]:
        """Return a command that frees the nodes, with at most one new, cheaper node."""
        price = sum(view.price_of(n) for n in nodes)
        drains = [Action("drain", n) for n in nodes]
        trial = view.trial()
        for n in nodes:
            trial.room.state[n] = CLOSED
        pods = [p for n in nodes for p in view.on_node[n]]
        rest = [p for p in pods if trial.settle([p]) is None]
        if not rest:
            return drains
        for machine in np.argsort(view.price, kind="stable"):
            if view.price[machine] >= price:
                break
            if trial.holds(int(machine), rest):
                return [Action("buy", int(machine)), Action("await"), *drains]
        return []


class ClusterAutoscaler(Policy):
    """Scale-down of cluster-autoscaler.

    Parameters
    ----------
    threshold : float
        A node is unneeded while a smaller share of it is requested.
    unneeded : float
        s until an unneeded node goes.
    delay : float
        s without scale-down after nodes were added.
    interval : float
        s between two looks; the real one looks every 10 s.
    """

    def __init__(
        self,
        *,
        threshold: float = 0.5,
        unneeded: float = 600.0,
        delay: float = 600.0,
        interval: float = 60.0,
    ):
        self.threshold, self.unneeded, self.delay = threshold, unneeded, delay
        self.interval = interval
        self._since: dict[int, float] = {}
        self._added = -float("inf")

    def decide(self, view: ClusterView, now: float) -> list[Action]:
        """Return nodes to drain."""
        if (view.room.state == STARTING).any():
            self._added = now
        low = [int(n) for n in view.nodes() if view.used(n) < self.threshold]
        since = {n: self._since.get(n, now) for n in low}
        due = [n for n in low if now - since[n] >= self.unneeded]
        self._since = since
        if not due and not view.busy:
            ahead = min(since.values(), default=np.inf) + self.unneeded
            self.next_look = ahead
        if view.busy or now - self._added < self.delay or not due:
            return []
        empty = [n for n in due if not view.on_node[n]][:10]
        if empty:
            return [Action("close", n) for n in empty]
        for n in sorted(due, key=view.used):
            if view.movable(n) and view.empty(n) is not None:
                return [Action("drain", n)]
            self._since[n] = now  # its pods fit nowhere: not unneeded
        return []


def removes_empty(view: ClusterView, since: dict[int, float], seconds: float) -> list[Action]:
    """Return actions that let nodes go that were empty for some seconds; `since` is kept."""
    empty = {int(n) for n in np.flatnonzero((view.room.state == READY) & (view.room.pods == 0))}
    for n in list(since):
        if n not in empty:
            del since[n]
    for n in empty:
        since.setdefault(n, view.now)
    return [Action("close", n) for n in sorted(empty) if view.now - since[n] >= seconds]


class HighNodeUtilization(Policy):
    """Evicts the pods of little used nodes.

    Parameters
    ----------
    threshold : float
        A node is little used below this share.
    interval : float
        s between two looks.
    unneeded : float
        s until an empty node goes.
    """

    rule = "most"

    def __init__(self, *, threshold: float = 0.2, interval: float = 300.0, unneeded: float = 600.0):
        self.threshold, self.interval, self.unneeded = threshold, interval, unneeded
        self._since: dict[int, float] = {}

    def decide(self, view: ClusterView, now: float) -> list[Action]:
        """Return evictions, and empty nodes that go."""
        gone = removes_empty(view, self._since, self.unneeded)
        if view.busy:
            return []
        if not gone:
            self.next_look = min(self._since.values(), default=np.inf) + self.unneeded
        low = [int(n) for n in view.nodes() if view.on_node[n] and view.used(n) < self.threshold]
        if len(low) == len(view.nodes()):
            return gone
        evicted = []
        for n in sorted(low, key=view.used):
            pods = list(view.on_node[n])
            if view.movable(n) and view.empty(n) is not None:
                evicted += [Action("evict", p) for p in pods]
        return gone + evicted
