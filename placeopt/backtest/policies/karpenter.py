"""Karpenter: empty nodes go, then several at once, then one by one, within a budget.

As documented (Disruption, consolidationPolicy WhenEmptyOrUnderutilized): candidates are sorted by
what their disruption costs, fewest pods first. Empty nodes are deleted. Multi-node consolidation
looks by bisection for the longest run of candidates whose pods fit on the other nodes and at most
one new, cheaper node. Single-node consolidation deletes or replaces one. A new node is ready before
the old ones are drained. A budget (10 % of the nodes) limits how many are disrupted at a time; the
next command waits for the last one.
"""

from __future__ import annotations

import copy
import math

import numpy as np

from placeopt.backtest.execution import Action
from placeopt.backtest.policies.base import ClusterView, Policy
from placeopt.backtest.state import CLOSED, OFF

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
        trial = copy.copy(view)
        trial.room = type(view.room)(*(array.copy() for array in view.room))
        trial.gpu_set = view.gpu_set.copy()
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
