"""The multi-cluster environment in plain Python, one step at a time, written from the rules: to
check the compiled core, and to time it.

Steps, masks, rewards, and observations: the ten columns of the paper, and those of the core with
the reward that every action would
earn. Lists, dictionaries and whole numbers, no arrays.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

FFD, FFI, BF1B1, REJECT = range(4)


def gini(loads: list[int]) -> float:
    """Return equation (10) of the paper."""
    total = sum(loads)
    return (
        sum(abs(a - b) for a in loads for b in loads) / (2 * len(loads) * total) if total else 0.0
    )


class Plain:
    """One environment.

    Parameters
    ----------
    stream : `placeopt.multi_cluster.episodes.stream.Stream`
        Just reset; its random clusters and requests are copied.
    k : int
        Number of the environment that is copied.
    """

    def __init__(self, stream: Any, k: int):
        w = SimpleNamespace(**stream.traces._asdict(), **stream.state._asdict())
        self.published = hasattr(stream, "first_spread")  # of placeopt_papers.hephaestus
        self.C, self.T = stream.clusters, stream.steps
        fill = 95 if self.published else 100
        self.unit, self.scale = w.unit.tolist(), w.scale.tolist()
        self.capacity, self.limit, self.used = (
            w.capacity[k].tolist(),
            [[x * fill // 100 for x in row] for row in w.capacity[k].tolist()],
            w.used[k].tolist(),
        )
        self.price, self.matrix = w.price[k].tolist(), w.matrix[k].tolist()
        self.base = [sum(row) / (self.C - 1) for row in self.matrix]
        names = ("demand", "replicas", "arrival", "departure", "threshold", "increase")
        self.requests = [
            dict(zip(names, values, strict=True))
            for values in zip(*(getattr(w, n)[k].tolist() for n in names), strict=True)
        ]
        self.believed = [
            [self.capacity[c][r] - self.used[c][r] for r in range(2)] for c in range(self.C)
        ]
        self.ever, self.running, self.t = [0] * self.C, [], 0
        self.most, self.last = stream.replicas[1], 0.0

    # -- spreads -----------------------------------------------------------------------------------

    def spread(self, kind: int) -> tuple[list[int], bool]:
        """Return what a spread places where, and whether that is the placement of the request."""
        if self.published:
            split = self.published_best_fit() if kind == BF1B1 else self.published_first_fit()
            return split, self.asked > 1 and all(self.fits(c, n) for c, n in enumerate(split))
        split = self.best_fit() if kind == BF1B1 else self.first_fit(kind == FFD)
        return split, self.asked > 1 and sum(split) == self.asked and sum(n > 0 for n in split) > 1

    def first_fit(self, decreasing: bool) -> list[int]:
        """Return algorithm 1 of the paper, whole replicas, clusters filled to 100 per cent."""
        free = [[self.capacity[c][r] - self.used[c][r] for r in range(2)] for c in range(self.C)]
        most = min(
            self.asked, *(free[c][r] // self.demand[r] for c in range(self.C) for r in range(2))
        )
        most = max(1, min(most, self.asked - 1))
        split, left = [0] * self.C, self.asked
        order = sorted(range(self.C), key=lambda c: free[c][0], reverse=decreasing)
        while True:
            before = left
            for c in order:
                for take in (most, 1):
                    if 0 < take <= left and all(
                        (split[c] + take) * self.demand[r] <= free[c][r] for r in range(2)
                    ):
                        split[c] += take
                        left -= take
                        break
            if left in (0, before):
                return split

    def best_fit(self) -> list[int]:
        """Return where replicas go one by one: least remaining share of cpu, then of memory."""
        split = [0] * self.C
        for _ in range(self.asked):
            left = {}
            for c in range(self.C):
                rest = [
                    self.capacity[c][r] - self.used[c][r] - (split[c] + 1) * self.demand[r]
                    for r in range(2)
                ]
                if min(rest) >= 0:
                    left[c] = (rest[0] / self.capacity[c][0], rest[1] / self.capacity[c][1])
            if not left:
                break
            split[min(left, key=lambda c: left[c])] += 1
        return split

    def published_first_fit(self) -> list[int]:
        """Return the published FFD, which FFI calls too."""
        free, (cpu, memory) = self.believed, self.demand
        most = min(min(-(-free[c][r] // self.demand[r]) for r in range(2)) for c in range(self.C))
        most, left, split = min(most, self.asked - 1), self.asked, [0] * self.C
        for c in sorted(range(self.C), key=lambda c: free[c][0], reverse=True):
            if left and most < left and most * cpu < free[c][0] and most * memory < free[c][1]:
                split[c] += most
                left -= most
            elif left and cpu < free[c][0] and memory < free[c][1]:
                split[c] += 1
                left -= 1
        for c in range(self.C):
            if left and cpu < free[c][0] and memory < free[c][1]:
                split[c] += 1
                left -= 1
        return split

    def published_best_fit(self) -> list[int]:
        """Return the published BF1B1."""
        split, free = [0] * self.C, [row[:] for row in self.believed]
        for _ in range(self.asked):
            best, least = None, float("inf")
            for c in sorted(range(self.C), key=lambda c: free[c][0]):
                rest = [free[c][r] - self.demand[r] for r in range(2)]
                if min(rest) >= 0 and rest[0] * self.unit[0] + rest[1] * self.unit[1] < least:
                    best, least = c, rest[0] * self.unit[0] + rest[1] * self.unit[1]
            if best is not None:
                split[best] += 1
                free[best] = [free[best][r] - self.demand[r] for r in range(2)]
        return split

    # -- the contract ------------------------------------------------------------------------------

    @property
    def asked(self) -> int:
        """Replicas of the request at hand."""
        return self.requests[self.t]["replicas"]

    @property
    def demand(self) -> list[int]:
        """Cpu and memory of a replica of the request at hand."""
        return self.requests[self.t]["demand"]

    def fits(self, c: int, replicas: int) -> bool:
        """Return whether replicas of the request at hand have room on a cluster."""
        return all(
            self.used[c][r] + replicas * self.demand[r] <= self.limit[c][r] for r in range(2)
        )

    def mask(self) -> list[bool]:
        """Return which actions are legal."""
        spreads = [True] * 3 if self.published else [self.spread(s)[1] for s in range(3)]
        return [*(self.fits(c, self.asked) for c in range(self.C)), *spreads, True]

    def latency(self, c: int) -> float:
        """Return the latency of a cluster now."""
        if self.published:
            return sum(self.matrix[c]) / self.C
        latency = self.base[c]
        for request, placed in self.running:
            if placed[c]:
                latency *= 1 + request["increase"] * (placed[c] / request["replicas"])
        return min(1000.0, latency)

    def observation(self) -> list[list[float]]:
        """Return the rows of the paper: cpu and memory in use and in all, latency; the request."""
        request = self.requests[self.t]
        lasts = request["departure"] - request["arrival"]
        own = [
            self.asked,
            *(d * u for d, u in zip(self.demand, self.unit, strict=False)),
            request["threshold"],
            lasts,
        ]
        rows = []
        for c in range(self.C):
            sizes = [x[c][r] * self.unit[r] for r in range(2) for x in (self.used, self.capacity)]
            rows.append([*sizes, self.latency(c), *own])
        return rows + [[-1.0] * 5 + own for _ in range(4)]

    def foretold(self, action: int) -> tuple[list[int], tuple[float, float, float]] | None:
        """Return what an action would place where and earn.

        None where it would not place the request.
        """
        split, places = ([0] * self.C, True) if action < self.C else self.spread(action - self.C)
        if action < self.C:
            split[action], places = self.asked, self.fits(action, self.asked)
        if not places:
            return None
        tables = ([row[:] for row in table] for table in (self.matrix, self.used, self.believed))
        kept = (*tables, self.ever[:], self.running[:], self.last)
        reward = self.place(split, action < self.C)
        self.matrix, self.used, self.believed, self.ever, self.running, self.last = kept
        return split, reward

    def rows(self) -> list[list[float]]:
        """Return the columns of the core; see `placeopt.multi_cluster.episodes.stream`."""
        request, mask, refusal = self.requests[self.t], self.mask(), self.refusal()[0]
        lasts, asked = (request["departure"] - request["arrival"]) * self.unit[2], self.asked
        loads = (
            self.ever[:]
            if self.published
            else [sum(p[c] for _, p in self.running) for c in range(self.C)]
        )
        left = [[self.capacity[c][r] - self.used[c][r] for r in range(2)] for c in range(self.C)]
        free = [
            sum(row[r] for row in left) / sum(row[r] for row in self.capacity) for r in range(2)
        ]
        rate = (self.t + 1) / max(request["arrival"] * self.unit[2], 1e-9)
        amounts = [asked * d * u for d, u in zip(self.demand, self.unit, strict=False)]
        shared = [
            asked / self.most,
            amounts[0] / 4,
            amounts[1] / 8,
            request["threshold"] / 1000,
            lasts / (1 + lasts),
            request["increase"] * 5,
        ]
        shared += [1 - self.t / self.T, *free, self.last, rate / (rate + 20), refusal]
        rows, total = [], sum(loads)
        for action, legal in enumerate(mask):
            row = [0.0] * 31
            if legal:
                row[19:] = shared
                row[max(action - self.C + 1, 0)] = 1.0
                found = self.foretold(action) if action < self.C + REJECT else None
                row[8] = 0.0 if found else refusal
                row[5:8] = found[1] if found else (0.0,) * 3
                for c, n in enumerate(found[0] if found else ()):
                    if n:
                        own = [left[c][r] / self.capacity[c][r] for r in range(2)]
                        own += [
                            (left[c][r] - n * self.demand[r]) / self.capacity[c][r]
                            for r in range(2)
                        ]
                        own += [
                            min(1, self.capacity[c][0] * self.unit[0] / 8),
                            min(1, self.capacity[c][1] * self.unit[1] / 32),
                        ]
                        share = loads[c] / total if total else 0.0
                        own += [self.latency(c) / 1000, share, 0.25 * self.C * share]
                        row[9:18] = [a + b * n / asked for a, b in zip(row[9:18], own, strict=True)]
                        row[18] += 1 / self.C
            rows.append([max(-1.0, min(1.0, x)) for x in row])
        return rows

    def step(self, action: int) -> tuple[float, float, float]:
        """Take an action and go on; return the three reward parts."""
        reward = self.refusal()
        if action < self.C:
            if self.fits(action, self.asked):
                reward = self.place([self.asked if c == action else 0 for c in range(self.C)], True)
        elif action < self.C + REJECT:
            split, places = self.spread(action - self.C)
            if places:
                reward = self.place(split, False)
            elif self.published and action == self.C + BF1B1 and self.asked > 1:
                self.believed = [
                    [self.believed[c][r] - split[c] * self.demand[r] for r in range(2)]
                    for c in range(self.C)
                ]
        self.t += 1
        if self.t < self.T and not self.published:
            self.depart()
        return reward

    def refusal(self) -> tuple[float, float, float]:
        """Return the reward of a request that is not placed."""
        if self.published:
            value = -1.0 if any(self.fits(c, self.asked) for c in range(self.C)) else 1.0
        else:
            value = -1.0 if any(self.mask()[:-1]) else 0.0
        return value, value, value

    def place(self, placed: list[int], alone: bool) -> tuple[float, float, float]:
        """Place the request; return its rewards."""
        if self.published:
            latency, loads = self.published_latency(placed, alone), self.ever
        else:
            self.running.append((self.requests[self.t], placed))
            for c, n in enumerate(placed):
                self.used[c] = [self.used[c][r] + n * self.demand[r] for r in range(2)]
            latency = sum(self.latency(c) * n for c, n in enumerate(placed) if n) / self.asked
            loads = [sum(p[c] for _, p in self.running) for c in range(self.C)]
        cost = sum(self.price[c] * n for c, n in enumerate(placed)) / self.asked
        least, most = self.scale
        self.last = gini(loads)
        return 1 - (latency - 1) / 999, 1 - (cost - least) / (most - least), 1 - self.last

    def published_latency(self, placed: list[int], alone: bool) -> float:
        """Place and let go; return the latency that is rewarded."""
        total = 0.0
        for c, n in enumerate(placed):
            if not alone:
                total += self.latency(c) * n / self.asked
                self.change(c, lambda x: x * 1.05)
            elif n:
                self.change(c, lambda x: x * 1.15)
                total = self.latency(c)
            if n or not alone:
                self.believed[c] = [self.capacity[c][r] - self.used[c][r] for r in range(2)]
            self.ever[c] += n
        for c, n in enumerate(placed):
            if n:
                self.change(c, (lambda x: x / 1.15) if alone else (lambda x: x / 1.10))
        return total

    def change(self, c: int, how: Any) -> None:
        """Change the latencies from a cluster, and make those to it the same."""
        for b in range(self.C):
            if b != c:
                self.matrix[c][b] = self.matrix[b][c] = max(
                    min(how(self.matrix[c][b]), 1000.0), 1.0
                )

    def depart(self) -> None:
        """Let go what ends by the arrival of the request at hand."""
        now, still = self.requests[self.t]["arrival"], []
        for request, placed in self.running:
            if request["departure"] <= now:
                for c, n in enumerate(placed):
                    self.used[c] = [self.used[c][r] - n * request["demand"][r] for r in range(2)]
            else:
                still.append((request, placed))
        self.running = still
