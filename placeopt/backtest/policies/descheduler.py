"""The descheduler's HighNodeUtilization and LowNodeUtilization.

HighNodeUtilization evicts the pods of nodes below all thresholds (20 %), so that a scheduler that
packs (MostAllocated) puts them elsewhere. LowNodeUtilization evicts pods of nodes above a target
(50 %) while there are nodes below the thresholds. Nodes are removed by cluster-autoscaler's rule
for empty ones.
"""

from __future__ import annotations

import numpy as np

from placeopt.backtest.execution import Action
from placeopt.backtest.policies.autoscaler import removes_empty
from placeopt.backtest.policies.base import ClusterView, Policy


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
            pods = [p for p in view.on_node[n] if not view.fixed[p]]
            if view.movable(n) and view.empty(n) is not None:
                evicted += [Action("evict", p) for p in pods]
        return gone + evicted


class LowNodeUtilization(Policy):
    """Evicts pods of much used nodes while others are little used.

    Parameters
    ----------
    threshold, target : float
        A node is little used below the first, much used above the second.
    interval : float
        s between two looks.
    unneeded : float
        s until an empty node goes.
    """

    def __init__(
        self,
        *,
        threshold: float = 0.2,
        target: float = 0.5,
        interval: float = 300.0,
        unneeded: float = 600.0,
    ):
        self.threshold, self.target, self.interval = threshold, target, interval
        self.unneeded = unneeded
        self._since: dict[int, float] = {}

    def decide(self, view: ClusterView, now: float) -> list[Action]:
        """Return evictions, and empty nodes that go."""
        gone = removes_empty(view, self._since, self.unneeded)
        if view.busy:
            return []
        if not gone:
            self.next_look = min(self._since.values(), default=np.inf) + self.unneeded
        used = {int(n): view.used(n) for n in view.nodes()}
        low = [n for n, share in used.items() if share < self.threshold]
        high = [n for n, share in used.items() if share > self.target]
        room = sum(self.target - used[n] for n in low)  # in nodes: what the little used may take
        evicted = []
        for n in sorted(high, key=lambda n: -used[n]):
            over = used[n] - self.target
            for p in [p for p in view.on_node[n] if not view.fixed[p]]:
                if over <= 0 or room <= 0 or len(view.on_node[n]) == 1:
                    break
                size = _share(view, p, n)
                over, room = over - size, room - size
                evicted.append(Action("evict", p))
        return gone + evicted


def _share(view: ClusterView, p: int, n: int) -> float:
    need, room = view.needs[p], view.room
    if room.gpus[n]:
        return max(need[2] * need[3] / (room.gpus[n] * 1000), 1e-3)
    return float(max(need[0] / room.cpu_size[n], need[1] / max(room.memory_size[n], 1), 1e-3))
