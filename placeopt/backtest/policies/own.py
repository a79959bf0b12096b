"""placeopt: a plan from time to time, the cheapest that its limits allow, moved make before break.

Between plans, empty nodes go after a while and pods are packed. A plan frees nodes: it is sought by
emptying nodes in several orders, and the best is taken: dollars saved over the horizon, less a
price for each move.
"""

from __future__ import annotations

import copy

import numpy as np

from placeopt.backtest.execution import Action
from placeopt.backtest.policies.autoscaler import removes_empty
from placeopt.backtest.policies.base import ClusterView, Policy
from placeopt.core.errors import UsageError


class Consolidating(Policy):
    """placeopt by itself.

    Parameters
    ----------
    interval : float
        s between two plans.
    moves : float
        Pods that a plan moves, at most; below 1: a share of the pods that run.
    weight : float
        USD that a move has to save over the interval.
    tries : float
        Orders in which nodes are emptied; more find better plans.
    unneeded : float
        s until an empty node goes.
    keep : float
        Empty nodes that stay, as room for what comes.
    look : float
        s between two looks at empty nodes.
    rule : str
        Score of the scheduler.
    """

    def __init__(
        self,
        *,
        interval: float = 86400.0,
        moves: float = float("inf"),
        weight: float = 0.0,
        tries: float = 8.0,
        unneeded: float = 60.0,
        keep: float = 0.0,
        look: float = 60.0,
        rule: str = "most",
    ):
        if interval <= 0:
            raise UsageError("interval is 0; legal: more than 0, such as 24h")
        self.every, self.moves, self.weight, self.tries = interval, moves, weight, int(tries)
        self.interval = min(interval, look)
        self.unneeded, self.keep, self.rule = unneeded, int(keep), rule
        self._since: dict[int, float] = {}
        self._next = interval

    def decide(self, view: ClusterView, now: float) -> list[Action]:
        """Return empty nodes that go, and a plan where it is time for one."""
        if view.busy:
            return []
        gone = removes_empty(view, self._since, self.unneeded)
        gone = gone[: max(0, len(self._since) - self.keep)]
        if now < self._next or view.waiting:
            if not gone:
                empty = sorted(self._since.values())[: max(0, len(self._since) - self.keep)]
                self.next_look = min([self._next, *(since + self.unneeded for since in empty)])
            return gone
        self._next = now + self.every
        for action in gone:
            view.room.state[action.which] = 0
        return gone + self._plan(view)

    def _plan(self, view: ClusterView) -> list[Action]:
        running = sum(map(len, view.on_node))
        limit = self.moves if self.moves >= 1 or self.moves == 0 else self.moves * running
        nodes = [int(n) for n in view.nodes() if view.on_node[n] and view.movable(n)]
        rng = np.random.default_rng(int(view.now))
        value = {n: view.price_of(n) / len(view.on_node[n]) for n in nodes}
        best: tuple[float, list[Action]] = (0.0, [])
        for k in range(self.tries):
            noise = np.exp(0.5 * rng.standard_normal(len(nodes))) if k else np.ones(len(nodes))
            order = [
                nodes[i] for i in np.argsort([-value[n] * noise[j] for j, n in enumerate(nodes)])
            ]
            best = max(best, self._try(_copy(view), order, limit), key=lambda one: one[0])
        return best[1]

    def _try(self, view: ClusterView, order: list[int], limit: float) -> tuple[float, list[Action]]:
        """Empty nodes in an order; return dollars saved over the interval, and the plan."""
        saved, actions, moved = 0.0, [], set[int]()
        hours = self.every / 3600
        for n in order:
            pods = list(view.on_node[n])
            if not pods or moved & set(pods) or len(moved) + len(pods) > limit:
                continue
            gain = view.price_of(n) * hours - self.weight * len(pods)
            if gain <= 0:
                continue
            placed = view.empty(n)
            if placed is None:
                continue
            saved += gain
            moved |= set(pods)
            actions += [Action("close", n), *(Action("move", p, m) for p, m in placed)]
        return saved, actions


def _copy(view: ClusterView) -> ClusterView:
    trial = copy.copy(view)
    trial.room = type(view.room)(*(array.copy() for array in view.room))
    trial.gpu_set = view.gpu_set.copy()
    trial.on_node = [list(pods) for pods in view.on_node]
    return trial
