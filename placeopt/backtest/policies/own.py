"""placeopt: a plan from time to time, the cheapest that its limits allow, moved make before break.

Between plans, empty nodes go and pods are packed. A node for pods that wait is chosen with a view
to the pods that run, others like which will come: a larger one where that is the cheaper room for
them. A plan frees nodes, and replaces nodes by a cheaper one. The searches of
``placeopt consolidate`` find it, or a method of the registry: `placeopt.backtest.policies.solved`.
How long a saving lasts is not known. What has run for an hour is taken to run for an hour more: a
node that is freed saves its price for as long as its oldest pod has run.
"""

from __future__ import annotations

import math
from collections import defaultdict
from functools import partial

from placeopt.backtest.execution import Action
from placeopt.backtest.policies.base import ClusterView, Policy
from placeopt.backtest.policies.peers import removes_empty
from placeopt.backtest.policies.solved import BESIDE_S, cheapest, plan, require_method
from placeopt.backtest.room import CLOSED, OFF
from placeopt.core.errors import UsageError

OWN = "own"
#: Groups of nodes that are tried for a plan: the first has as many as its moves allow.
_ROUNDS = 4
#: Seconds after which a plan is sought again where there was none: what runs is older then.
_AGAIN_S = 86400.0


class Consolidating(Policy):
    """placeopt by itself.

    Parameters
    ----------
    interval : float
        s between two plans.
    moves : float
        Pods that a plan moves, at most; below 1: a share of those that run or came since the last
        plan.
    weight : float
        USD that a move has to save.
    unneeded : float
        s until an empty node goes.
    keep : float
        Empty nodes that stay, as room for what comes.
    look : float
        s between two looks at empty nodes.
    rule : str
        Score of the scheduler.
    method : str
        A method for rolling updates that makes the plans; ``own``: the searches of
        ``placeopt consolidate``.
    evaluations : float
        Budget of the method for a plan.
    policy : str
        File of a trained policy, of the method ``policy``.
    """

    def __init__(
        self,
        *,
        interval: float = 86400.0,
        moves: float = math.inf,
        weight: float = 0.0,
        unneeded: float = 0.0,
        keep: float = 0.0,
        look: float = 60.0,
        rule: str = "most",
        method: str = OWN,
        evaluations: float = 2000.0,
        policy: str = "",
    ):
        if interval <= 0:
            raise UsageError("interval is 0; legal: more than 0, such as 24h")
        self.every, self.moves, self.weight = interval, moves, weight
        self.interval = min(interval, look)
        self.unneeded, self.keep, self.rule = unneeded, int(keep), rule
        self._since: dict[int, float] = {}
        self._next = interval
        self._nothing: tuple[float, ...] = ()  # where no plan was found last, and until when
        self._targets: set[int] = set()
        self.method, self.evaluations = method, int(evaluations)
        self._more = {"policy": policy} if policy else {}
        if method != OWN or policy:
            require_method(method, policy)

    def decide(self, view: ClusterView, now: float) -> list[Action]:
        """Return empty nodes that go, and a plan where it is time for one."""
        gone = removes_empty(view, self._since, self.unneeded)
        gone = gone[: max(0, len(self._since) - self.keep)]
        if view.busy:
            return [action for action in gone if action.which not in self._targets]
        self._targets = set()
        gone += [Action("open", int(n)) for n in view.nodes(CLOSED)]  # a move was dropped
        if now < self._next or view.waiting:
            if not gone:
                empty = sorted(self._since.values())[: max(0, len(self._since) - self.keep)]
                self.next_look = min([self._next, *(since + self.unneeded for since in empty)])
            return gone
        self._next = now + self.every
        for action in gone:
            if action.do == "close":
                view.room.state[action.which] = OFF
        actions = self._plan(view)
        self._targets = {action.to for action in actions}
        return gone + actions

    def company(self, view: ClusterView) -> list[int]:
        """Return the pods that run, the newest first: others like them will come."""
        return sorted((p for pods in view.on_node for p in pods), reverse=True)

    def _plan(self, view: ClusterView) -> list[Action]:
        """Return a plan. After a search without one, wait for a change of the cluster or a day."""
        room = view.room
        limit = self.moves if self.moves >= 1 else math.floor(self.moves * self._there(view))
        here = (float(room.version.sum()), float(room.state.sum()), float(view.price.sum()), limit)
        if self._nothing[:-1] == here and view.now < self._nothing[-1]:
            return []
        actions = self._sought(view, limit)
        self._nothing = () if actions else (*here, view.now + _AGAIN_S)
        return actions

    def _sought(self, view: ClusterView, limit: float) -> list[Action]:
        """Return the plan that saves most, of these one of fewest moves."""
        ways: list[list[Action]] = [[]]
        if self.method != OWN:
            weight = self.weight / (self.every / 3600)
            ways = plan(view, self.method, self.evaluations, limit, weight, **self._more)
            return max(ways, key=partial(self._worth, view), default=[])
        nodes = [int(n) for n in view.nodes() if view.on_node[n] and view.copied(n)]
        left = [n for n in nodes if self._gain(view, n) > 0]
        left.sort(key=lambda n: -self._gain(view, n) / len(view.on_node[n]))
        for _ in range(_ROUNDS):
            hours, moves = dict[int, float](), 0
            for n in left:
                pods = view.on_node[n]
                if moves + len(pods) <= limit:
                    hours[n], moves = max(map(view.age, pods)) / 3600, moves + len(pods)
            ways += cheapest(view, hours, limit)
            left = [n for n in left if n not in hours]
        return max(ways, key=partial(self._worth, view))

    def _worth(self, view: ClusterView, actions: list[Action]) -> tuple[float, int]:
        return self._saves(view, actions), -len(actions)

    def _saves(self, view: ClusterView, actions: list[Action]) -> float:
        """Return what a plan saves, in USD, less the price of its moves."""
        to = defaultdict[int, list[int]](list)
        for action in actions:
            if action.do == "move":
                to[action.to].append(action.which)
        freed = [action.which for action in actions if action.do == "close"]
        saved = sum(self._gain(view, n) for n in freed)
        others = sum(map(len, to.values())) - sum(len(view.on_node[n]) for n in freed)
        for n, pods in to.items():
            if view.room.state[n] == OFF:
                saved -= view.price_of(n) * (max(map(view.age, pods)) + BESIDE_S) / 3600
        return saved - self.weight * others

    def _there(self, view: ClusterView) -> int:
        """Return the pods that were there since the last plan: older ones that run, and all new."""
        begin = view.now - self.every
        old = sum(view.created[p] <= begin for pods in view.on_node for p in pods)
        return int(old) + int((view.created > begin).sum())

    def _gain(self, view: ClusterView, n: int) -> float:
        """Return what it saves to free a node for as long as its pods run."""
        pods = view.on_node[n]
        hours = max(map(view.age, pods)) / 3600
        return view.price_of(n) * hours - self.weight * len(pods)
