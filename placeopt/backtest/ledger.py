"""What a run cost and whom it disturbed, kept while it happens; nothing is read off its end."""

from __future__ import annotations

from collections import Counter
from typing import Literal, get_args

import numpy as np

HOUR = 3600.0
#: Waits are counted in classes 1 % apart, from 1 s on: memory does not grow with pods.
_STEP = np.log(1.01)
FigureName = Literal[
    "usd",
    "node_hours",
    "moved",
    "stopped",
    "lost",
    "down_pod_hours",
    "placed",
    "unplaced",
    "wait_mean_s",
    "wait_median_s",
    "wait_99_s",
    "bought",
    "freed",
    "dropped_steps",
    "events",
]
SeriesName = Literal["usd", "nodes", "cores", "waiting", "moved"]


class Ledger:
    """Sums and hourly series of one run.

    Attributes
    ----------
    usd : float
        Node-hours times their prices.
    moved : int
        Pods that a policy moved or evicted.
    stopped : int
        Those of them that ended before another copy was ready.
    lost : int
        Pods that ended with their node.
    dropped : int
        Steps of plans that had become impossible.
    placed, unplaced : int
        Pods that got a node, and those that ended, or waited to the end, without one.
    series : dict of str to list of float
        Per hour: dollars, and means of nodes, of used CPU in cores, of waiting pods.
    """

    def __init__(self) -> None:
        self.usd = self.node_seconds = 0.0
        self.moved = self.stopped = self.lost = self.dropped = self.bought = self.freed = 0
        self.placed = self.unplaced = 0
        self.wait_sum = 0.0
        self.waits: Counter[int] = Counter()
        self.of_workload: Counter[int] = Counter()
        self.down_seconds = 0.0
        self.events = 0
        self.series: dict[SeriesName, list[float]] = {name: [] for name in get_args(SeriesName)}
        self._now = 0.0
        self.rate = 0.0
        self.nodes = self.cpu = self.waiting = 0

    def advance(self, now: float) -> None:
        """Let the clock go on: what holds now has held since the last call."""
        while self._now < now:
            hour = int(self._now // HOUR)
            end = min(now, (hour + 1) * HOUR)
            if end <= self._now:  # a boundary that rounding hides
                end = now
            span = end - self._now
            while len(self.series["usd"]) <= hour:
                for values in self.series.values():
                    values.append(0.0)
            usd = self.rate * span / HOUR
            self.usd += usd
            self.node_seconds += self.nodes * span
            self.series["usd"][hour] += usd
            self.series["nodes"][hour] += self.nodes * span / HOUR
            self.series["cores"][hour] += self.cpu * span / HOUR / 1000
            self.series["waiting"][hour] += self.waiting * span / HOUR
            self._now = end

    def waited(self, seconds: float, placed: bool) -> None:
        """Count a pod that waited so many seconds for its first node, and whether it got one."""
        self.placed += placed
        self.unplaced += not placed
        self.wait_sum += seconds
        self.waits[0 if seconds < 1 else 1 + int(np.log(seconds) / _STEP)] += 1

    def disturbed(self, workload: int) -> None:
        """Count a pod that a policy moves or evicts."""
        self.moved += 1
        self.of_workload[workload] += 1
        if self.series["moved"]:
            self.series["moved"][-1] += 1

    def wait(self, share: float) -> float:
        """Return the seconds that a share of pods waited at most, to 1 %."""
        total, of = 0, self.placed + self.unplaced
        for number in sorted(self.waits):
            total += self.waits[number]
            if total >= share * of:
                return 0.0 if number == 0 else float(np.exp((number - 1) * _STEP))
        return 0.0

    def figures(self) -> dict[FigureName, float]:
        """Return the sums."""
        return {
            "usd": self.usd,
            "node_hours": self.node_seconds / HOUR,
            "moved": self.moved,
            "stopped": self.stopped,
            "lost": self.lost,
            "down_pod_hours": self.down_seconds / HOUR,
            "placed": self.placed,
            "unplaced": self.unplaced,
            "wait_mean_s": self.wait_sum / max(self.placed + self.unplaced, 1),
            "wait_median_s": self.wait(0.5),
            "wait_99_s": self.wait(0.99),
            "bought": self.bought,
            "freed": self.freed,
            "dropped_steps": self.dropped,
            "events": self.events,
        }
