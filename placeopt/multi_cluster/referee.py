"""The referee of the multi-cluster problem: replays a trace in plain Python."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import NamedTuple

from placeopt.core.fronts.values import Evaluation, Violation
from placeopt.multi_cluster.arrays import MultiClusterArrays

#: Highest latency, ms.
MAX_MS = 1000.0
RESOURCES = ("cpu", "memory")


class DecisionOutcome(NamedTuple):
    """What a decision leads to.

    Attributes
    ----------
    accepted : bool
    latency_ms, cost : float
        Means over replicas; NaN for a refused request.
    gini : float
        NaN for a refused request.
    load : tuple of int
        Replicas that run on every cluster after the decision.
    """

    accepted: bool
    latency_ms: float
    cost: float
    gini: float
    load: tuple[int, ...]


def gini(loads: Sequence[int]) -> float:
    """Return equation (10): 0 where all loads are equal or none, towards 1 where one has all.

    Examples
    --------
    >>> gini([4, 0, 0, 0]), gini([1, 1, 1, 1])
    (0.75, 0.0)
    """
    total = sum(loads)
    differences = sum([abs(a - b) for a, b in combinations(loads, 2)])  # each pair once
    return differences / (len(loads) * total) if total else 0.0


@dataclass
class _Replay:
    """What a replay changes from request to request."""

    used: list[list[int]]
    load: list[int]  # replicas that run on every cluster
    running: list[tuple[int, dict[int, int]]] = field(default_factory=list)
    violations: list[Violation] = field(default_factory=list)


class MultiClusterReferee:
    """Judges the plans of one instance: requests depart when they are over.

    Attributes
    ----------
    worst : tuple of float
        The values where no request is accepted.
    """

    def __init__(self, arrays: MultiClusterArrays, names: Sequence[str]):
        self._names = names
        self._capacity, self._used = arrays.capacity.tolist(), arrays.used.tolist()
        self._price, self._base = arrays.price.tolist(), arrays.base.tolist()
        self._demand, self._asked = arrays.demand.tolist(), arrays.replicas.tolist()
        self._arrival, self._departure = arrays.arrival.tolist(), arrays.departure.tolist()
        self._increase = arrays.increase.tolist()
        self.worst = (MAX_MS, max(self._price), 1 - 1 / len(self._price), 1.0)

    def judge(self, decisions: Sequence[Mapping[int, int]]) -> Evaluation:
        """Return the values and violations of decisions, replicas by the number of the cluster."""
        outcomes, violations = self.replay(decisions)
        accepted = [outcome for outcome in outcomes if outcome.accepted]
        if not accepted:
            return Evaluation(self.worst, tuple(violations))
        means = (
            math.fsum(column) / len(accepted)
            for column in zip(*((o.latency_ms, o.cost, o.gini) for o in accepted), strict=True)
        )
        rejected = (len(outcomes) - len(accepted)) / len(outcomes)
        return Evaluation((*means, rejected), tuple(violations))

    def replay(
        self, decisions: Sequence[Mapping[int, int]]
    ) -> tuple[list[DecisionOutcome], list[Violation]]:
        """Return the outcome of every decision, and what they violate."""
        state = _Replay([list(row) for row in self._used], [0] * len(self._price))
        outcomes = []
        for t, decision in enumerate(decisions):
            self._depart(state, t)
            placed = {c: n for c, n in decision.items() if n > 0}
            if placed:
                self._check(state, t, placed)
                outcomes.append(self._accept(state, t, placed))
            else:
                nothing = DecisionOutcome(False, math.nan, math.nan, math.nan, tuple(state.load))
                outcomes.append(nothing)
        return outcomes, state.violations

    def _check(self, state: _Replay, t: int, placed: Mapping[int, int]) -> None:
        """Note the violations of a decision: not all replicas, too many, capacity exceeded."""
        total, wanted = sum(placed.values()), self._asked[t]
        if total != wanted:
            text = (
                f"decisions[{t}] places {total} of {wanted} replicas; "
                "a request is placed whole or refused"
            )
            state.violations.append(Violation("replicas", abs(total - wanted) / wanted, text))
        for c, n in placed.items():
            for r, resource in enumerate(RESOURCES):
                need, capacity = state.used[c][r] + n * self._demand[t][r], self._capacity[c][r]
                if need > capacity:
                    text = f"decisions[{t}] needs more {resource} than {self._names[c]!r} has free"
                    state.violations.append(
                        Violation(f"{resource}-capacity", need / capacity - 1, text)
                    )

    def _mean(
        self, t: int, placed: Mapping[int, int], values: Mapping[int, float] | Sequence[float]
    ) -> float:
        """Return the mean over the replicas of a request of a value of their clusters."""
        return sum(values[c] * n for c, n in sorted(placed.items())) / self._asked[t]

    def _depart(self, state: _Replay, t: int) -> None:
        """Remove the requests that end by the arrival of request t."""
        now, still = self._arrival[t], []
        for k, placed in state.running:
            if self._departure[k] <= now:
                self._use(state, k, placed, -1)
            else:
                still.append((k, placed))
        state.running = still

    def _use(self, state: _Replay, t: int, placed: Mapping[int, int], sign: int) -> None:
        for c, n in placed.items():
            state.load[c] += sign * n
            for r in range(2):
                state.used[c][r] += sign * n * self._demand[t][r]

    def _latency(self, state: _Replay, c: int) -> float:
        """Return a cluster's latency: each running request multiplies it by 1 + u times its share.

        The share is that of the request's replicas which run there.
        """
        latency = self._base[c]
        for k, placed in state.running:
            if c in placed:
                latency *= 1 + self._increase[k] * (placed[c] / self._asked[k])
        return min(MAX_MS, latency)

    def _accept(self, state: _Replay, t: int, placed: dict[int, int]) -> DecisionOutcome:
        """Place a request; return the outcome after the placement."""
        state.running.append((t, placed))
        self._use(state, t, placed, 1)
        latency = self._mean(t, placed, {c: self._latency(state, c) for c in placed})
        load = tuple(state.load)
        return DecisionOutcome(True, latency, self._mean(t, placed, self._price), gini(load), load)
