"""The descheduler's HighNodeUtilization.

It evicts the pods of nodes below all thresholds (20 %), so that a scheduler that packs
(MostAllocated) puts them elsewhere. Nodes are removed by cluster-autoscaler's rule for empty ones.
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
            pods = list(view.on_node[n])
            if view.movable(n) and view.empty(n) is not None:
                evicted += [Action("evict", p) for p in pods]
        return gone + evicted
