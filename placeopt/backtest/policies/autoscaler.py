"""cluster-autoscaler: a node goes that was little used for a time, if its pods fit elsewhere.

As documented (FAQ, "How does scale-down work?"): a node is unneeded while the requests on it are
below a share of it (``--scale-down-utilization-threshold``, .5) and its pods fit on other nodes;
one that was unneeded for ``--scale-down-unneeded-time`` (10 min) goes, empty ones several at a time
(``--max-empty-bulk-delete``, 10), others one by one; none for ``--scale-down-delay-after-add`` (10
min) after nodes were added.
"""

from __future__ import annotations

import numpy as np

from placeopt.backtest.execution import Action
from placeopt.backtest.policies.base import ClusterView, Policy
from placeopt.backtest.state import READY, STARTING


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
