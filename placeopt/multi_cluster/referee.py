"""The referee of the multi-cluster problem: lives through a trace, plainly, in both semantics."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from placeopt.core.front import Evaluation, Violation

if TYPE_CHECKING:
    from placeopt.multi_cluster.instance import MultiCluster

#: Latencies stay within these, ms.
LEAST_MS, MOST_MS = 1.0, 1000.0
RESOURCES = ("cpu", "memory")
#: By what the published semantics multiplies latencies on arrival, and divides them on departure: one cluster, a spread.
ALONE, SPREAD, SPREAD_LEAVES = 1.15, 1.05, 1.10


@dataclass(frozen=True)
class Outcome:
    """What a decision came to; latency in ms and cost are means over replicas, NaN for a refused request.

    Attributes
    ----------
    load : tuple of int
        Replicas that run on every cluster after the decision.
    """

    accepted: bool
    latency_ms: float
    cost: float
    gini: float
    load: tuple[int, ...]


def gini(loads: Sequence[int]) -> float:
    """Return equation (10): 0 where all loads are equal or none, towards 1 where one cluster has all.

    Examples
    --------
    >>> gini([4, 0, 0, 0]), gini([1, 1, 1, 1])
    (0.75, 0.0)
    """
    total = sum(loads)
    return (
        sum(abs(a - b) for a in loads for b in loads) / (2 * len(loads) * total) if total else 0.0
    )


@dataclass
class _State:
    """What runs; published, the latencies between clusters and all that was ever placed too."""

    used: list[list[int]]
    matrix: list[list[float]]
    ever: list[int]
    running: list[tuple[int, dict[int, int]]] = field(default_factory=list)
    violations: list[Violation] = field(default_factory=list)


class Referee:
    """Judges the plans of one instance."""

    def __init__(self, problem: MultiCluster):
        self.problem = problem
        t = problem.arrays
        self._capacity, self._used, self._demand = (
            t.capacity.tolist(),
            t.used.tolist(),
            t.demand.tolist(),
        )
        self._arrival, self._departure = t.arrival.tolist(), t.departure.tolist()
        self._price, self._base, self._matrix, self._increase = (
            t.price.tolist(),
            t.base.tolist(),
            t.matrix.tolist(),
            t.increase.tolist(),
        )
        self._asked = t.replicas.tolist()

    def judge(self, decisions: Sequence[Mapping[int, int]]) -> Evaluation:
        """Return the values and violations of decisions, replicas by the number of the cluster."""
        outcomes, violations = self.live(decisions)
        accepted = [o for o in outcomes if o.accepted]
        rejected = 1 - len(accepted) / len(outcomes)
        clusters = len(self._price)
        if not accepted:
            return Evaluation((MOST_MS, max(self._price), 1 - 1 / clusters, 1.0), tuple(violations))
        means = (
            math.fsum(getattr(o, what) for o in accepted) / len(accepted)
            for what in ("latency_ms", "cost", "gini")
        )
        return Evaluation((*means, rejected), tuple(violations))

    def live(self, decisions: Sequence[Mapping[int, int]]) -> tuple[list[Outcome], list[Violation]]:
        """Return what every decision came to, and what they break."""
        published = self.problem.semantics == "published"
        state = _State(
            [list(row) for row in self._used],
            [list(row) for row in self._matrix],
            [0] * len(self._price),
        )
        outcomes = []
        for t, decision in enumerate(decisions):
            if not published:
                self._depart(state, t)
            placed = {c: n for c, n in decision.items() if n > 0}
            spread = (
                published and len(decision) > 1
            )  # a published spread may place nothing and still be accepted
            if placed or spread:
                self._check(state, t, placed, spread)
                outcomes.append(
                    self._accept_published(state, t, placed, spread)
                    if published
                    else self._accept(state, t, placed)
                )
            else:
                outcomes.append(Outcome(False, math.nan, math.nan, math.nan, self._load(state)))
        return outcomes, state.violations

    # -- both semantics ------------------------------------------------------------------------------------------

    def _check(self, state: _State, t: int, placed: Mapping[int, int], spread: bool) -> None:
        """Note what a decision breaks: not all replicas, too many, a cluster over its capacity."""
        total, asked = sum(placed.values()), self._asked[t]
        if total > asked or (total < asked and not spread):
            text = f"decisions[{t}] places {total} of {asked} replicas; a request is placed whole or refused"
            state.violations.append(Violation("replicas", abs(total - asked) / asked, text))
        for c, n in placed.items():
            for r in range(2):
                need, most = state.used[c][r] + n * self._demand[t][r], self._capacity[c][r]
                if need > most:
                    name = self.problem.clusters[c].name
                    text = f"decisions[{t}] needs more {RESOURCES[r]} than {name!r} has free"
                    state.violations.append(
                        Violation(f"{RESOURCES[r]}-capacity", need / most - 1, text)
                    )

    def _mean(self, t: int, placed: Mapping[int, int], values: Mapping[int, float]) -> float:
        return sum(values[c] * n for c, n in sorted(placed.items())) / self._asked[t]

    def _load(self, state: _State) -> tuple[int, ...]:
        return tuple(
            sum(placed.get(c, 0) for _, placed in state.running) for c in range(len(self._price))
        )

    # -- fixed semantics: real departures --------------------------------------------------------------------------

    def _depart(self, state: _State, t: int) -> None:
        """Let go what ends by the arrival of request t."""
        now = self._arrival[t]
        for k, placed in state.running:
            if self._departure[k] <= now:
                for c, n in placed.items():
                    for r in range(2):
                        state.used[c][r] -= n * self._demand[k][r]
        state.running = [(k, placed) for k, placed in state.running if self._departure[k] > now]

    def _latency(self, state: _State, c: int) -> float:
        """Return the latency of a cluster: every running request on it multiplies by 1 + u times its share of the replicas."""
        latency = self._base[c]
        for k, placed in state.running:
            if c in placed:
                latency *= 1 + self._increase[k] * (placed[c] / self._asked[k])
        return min(MOST_MS, latency)

    def _accept(self, state: _State, t: int, placed: dict[int, int]) -> Outcome:
        state.running.append((t, placed))
        for c, n in placed.items():
            for r in range(2):
                state.used[c][r] += n * self._demand[t][r]
        latency = self._mean(t, placed, {c: self._latency(state, c) for c in placed})
        cost = self._mean(t, placed, dict(enumerate(self._price)))
        load = self._load(state)
        return Outcome(True, latency, cost, gini(load), load)

    # -- published semantics: gone before the next request ---------------------------------------------------------

    def _accept_published(
        self, state: _State, t: int, placed: dict[int, int], spread: bool
    ) -> Outcome:
        """Place and let go; cluster after cluster, a spread is charged before the latencies of that cluster grow."""
        clusters = len(self._price)
        seen: dict[int, float] = {}
        for c in range(clusters):
            if spread:
                seen[c] = sum(state.matrix[c]) / clusters
                self._scale(state.matrix, c, SPREAD)
            elif c in placed:
                self._scale(state.matrix, c, ALONE)
                seen[c] = sum(state.matrix[c]) / clusters
            state.ever[c] += placed.get(c, 0)
        for c in sorted(placed):
            self._scale(state.matrix, c, SPREAD_LEAVES if spread else ALONE, grows=False)
        latency, cost = (
            self._mean(t, placed, seen),
            self._mean(t, placed, dict(enumerate(self._price))),
        )
        return Outcome(
            True, latency, cost, gini(state.ever), tuple(placed.get(c, 0) for c in range(clusters))
        )

    @staticmethod
    def _scale(matrix: list[list[float]], c: int, factor: float, grows: bool = True) -> None:
        """Scale the latencies from a cluster within bounds; those to it become the same."""
        for b in range(len(matrix)):
            if b != c:
                here = matrix[c][b] * factor if grows else matrix[c][b] / factor
                matrix[c][b] = matrix[b][c] = max(min(here, MOST_MS), LEAST_MS)
