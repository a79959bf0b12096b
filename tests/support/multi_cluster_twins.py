"""The fixed rules of models/multi_cluster/README.md in slow, plain Python."""

from __future__ import annotations

from fractions import Fraction
from typing import Any


def fits(free: tuple[int, int], demand: tuple[int, int], replicas: int) -> bool:
    return all(replicas * d <= f for f, d in zip(free, demand, strict=True))


def first_fit(free: list[tuple[int, int]], demand: tuple[int, int], asked: int, decreasing: bool):
    """FFD or FFI: replicas per cluster; None where not all find a place, or one cluster has all."""
    threshold = min(f // d for room in free for f, d in zip(room, demand, strict=True))
    threshold = max(1, min(threshold, asked - 1))
    order = sorted(range(len(free)), key=lambda c: free[c][0], reverse=decreasing)
    split, left = [0] * len(free), asked
    while left:
        before = left
        for c in order:
            for take in (threshold, 1):
                if left >= take and fits(free[c], demand, split[c] + take):
                    split[c] += take
                    left -= take
                    break
        if left == before:
            return None
    return split if sum(n > 0 for n in split) > 1 else None


def best_fit(
    free: list[tuple[int, int]],
    capacity: list[tuple[int, int]],
    demand: tuple[int, int],
    asked: int,
):
    """BF1B1: replicas per cluster, by exact shares of cpu, then of memory, that remain."""
    split = [0] * len(free)
    for _ in range(asked):
        room = [c for c in range(len(free)) if fits(free[c], demand, split[c] + 1)]
        if not room:
            return None

        def remaining(c: int) -> list[Fraction]:
            return [
                Fraction(free[c][r] - (split[c] + 1) * demand[r], capacity[c][r]) for r in range(2)
            ]

        split[min(room, key=remaining)] += 1
    return split if sum(n > 0 for n in split) > 1 else None


class FixedEpisode:
    """One environment by the fixed rules: history is kept whole and replayed for every question."""

    def __init__(self, traces: Any, used: list[list[int]], k: int):
        self.capacity = [tuple(row) for row in traces.capacity[k].tolist()]
        self.background = used
        self.price, self.base = traces.price[k].tolist(), traces.base[k].tolist()
        self.cheapest, self.dearest = traces.scale.tolist()
        names = ("demand", "replicas", "arrival", "departure", "increase")
        columns = (getattr(traces, name)[k].tolist() for name in names)
        self.requests = [
            dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)
        ]
        self.history: list[list[int]] = []  # replicas per cluster of every decided request

    @property
    def request(self) -> dict[str, Any]:
        return self.requests[len(self.history)]

    def running(self) -> list[tuple[dict[str, Any], list[int]]]:
        """Placed requests that have not departed by the arrival of the one at hand."""
        now = self.request["arrival"]
        decided = zip(self.requests, self.history, strict=False)
        return [(r, placed) for r, placed in decided if any(placed) and r["departure"] > now]

    def free(self) -> list[tuple[int, int]]:
        running = self.running()
        return [
            tuple(
                room - self.background[c][r] - sum(p[c] * q["demand"][r] for q, p in running)
                for r, room in enumerate(capacity)
            )
            for c, capacity in enumerate(self.capacity)
        ]

    def latency(self, c: int, running: list[tuple[dict[str, Any], list[int]]]) -> float:
        latency = self.base[c]
        for request, placed in running:
            latency *= 1 + request["increase"] * placed[c] / request["replicas"]
        return min(1000.0, latency)

    def placement(self, action: int) -> list[int] | None:
        """Replicas per cluster of an action; None where it does not place the request."""
        clusters, free, request = len(self.price), self.free(), self.request
        demand, asked = request["demand"], request["replicas"]
        if action < clusters:
            whole = [asked if c == action else 0 for c in range(clusters)]
            return whole if fits(free[action], demand, asked) else None
        if action == clusters + 3 or asked == 1:
            return None
        if action == clusters + 2:
            return best_fit(free, self.capacity, demand, asked)
        return first_fit(free, demand, asked, decreasing=action == clusters)

    def outcome(self, placed: list[int]) -> tuple[float, float, float]:
        """Latency (9), cost (8) and Gini coefficient (10) after a placement."""
        running, asked = [*self.running(), (self.request, placed)], self.request["replicas"]
        latency = sum(n * self.latency(c, running) for c, n in enumerate(placed)) / asked
        cost = sum(n * price for n, price in zip(placed, self.price, strict=True)) / asked
        loads = [sum(p[c] for _, p in running) for c in range(len(placed))]
        apart = sum(abs(a - b) for a in loads for b in loads)
        return latency, cost, apart / (2 * len(loads) * sum(loads))

    def parts(self, outcome: tuple[float, float, float]) -> tuple[float, float, float]:
        """Reward parts (5) to (7)."""
        latency, cost, gini = outcome
        spread = self.dearest - self.cheapest
        return 1 - (latency - 1) / 999, 1 - (cost - self.cheapest) / spread, 1 - gini
