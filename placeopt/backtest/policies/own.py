"""placeopt: a plan from time to time, the cheapest that its limits allow, moved make before break.

Between plans, empty nodes go and pods are packed. A node for pods that wait is chosen with a view
to the pods that run, others like which will come: a larger one where that is the cheaper room for
them. A plan frees nodes, and replaces nodes by a cheaper one. It is sought by emptying nodes in
several orders, or by a method of the registry (`placeopt.backtest.policies.solved`); the best is
taken: dollars saved, less a price for each move. How long a saving lasts is not known. What has run
for an hour is taken to run for an hour more: a node that is freed saves its price for as long as
its oldest pod has run.
"""

from __future__ import annotations

import copy
import math

import numpy as np

from placeopt.backtest.execution import Action
from placeopt.backtest.policies.base import ClusterView, Policy
from placeopt.backtest.policies.peers import removes_empty
from placeopt.backtest.policies.solved import plan, require_method
from placeopt.backtest.room import CLOSED, OFF, WHOLE
from placeopt.core.errors import UsageError

OWN = "own"
#: Seconds for which a node that replaces others is paid beside them: it starts, then pods move.
_BESIDE_S = 90.0
#: Seconds after which a plan is sought again where there was none: what runs is older then.
_AGAIN_S = 86400.0
#: Nodes that a plan buys, at most.
_REPLACEMENTS = 4
#: Arrays of a room that pods and nodes change.
_CHANGED = ("state", "cpu", "memory", "gpu", "pods", "beside", "version")


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
    method : str
        A method for rolling updates that makes the plans; ``own``: what is written here.
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
        tries: float = 4.0,
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
        self.every, self.moves, self.weight, self.tries = interval, moves, weight, int(tries)
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
        if self.method != OWN:
            weight = self.weight / (self.every / 3600)
            return plan(view, self.method, self.evaluations, limit, weight, **self._more)
        nodes = [int(n) for n in view.nodes() if view.on_node[n] and view.copied(n)]
        rng = np.random.default_rng(int(view.now))
        value = np.array(
            [self._gain(view, n, view.price_of(n)) / len(view.on_node[n]) for n in nodes]
        )
        best: tuple[float, list[Action]] = (0.0, [])
        for k in range(self.tries):
            noise = np.exp(0.5 * rng.standard_normal(len(nodes))) if k else 1.0
            order = [nodes[i] for i in np.argsort(-value * noise)]
            best = max(best, _Trial(self, view, limit).emptied(order), key=lambda one: one[0])
        return best[1]

    def _there(self, view: ClusterView) -> int:
        """Return the pods that were there since the last plan: older ones that run, and all new."""
        begin = view.now - self.every
        old = sum(view.created[p] <= begin for pods in view.on_node for p in pods)
        return int(old) + int((view.created > begin).sum())

    def _gain(self, view: ClusterView, n: int, usd_per_hour: float) -> float:
        """Return what it saves to pay so much less for as long as the pods of a node run."""
        pods = view.on_node[n]
        return usd_per_hour * max(map(view.age, pods)) / 3600 - self.weight * len(pods)


class _Trial:
    """A plan that is being made, on a copy of the cluster."""

    def __init__(self, policy: Consolidating, view: ClusterView, limit: float):
        self._policy, self._view, self._limit = policy, _copy(view), limit
        self._moved: set[int] = set()
        self._saved = 0.0
        self._buys: list[Action] = []
        self._moves: list[Action] = []

    def emptied(self, order: list[int]) -> tuple[float, list[Action]]:
        """Free nodes in an order, then replace some of those that stay.

        Returns
        -------
        dollars saved, the plan
        """
        view, gain = self._view, self._policy._gain
        stay = []
        for n in order:
            if self._may([n]) and (saved := gain(view, n, view.price_of(n))) > 0:
                if (placed := view.empty(n)) is None:
                    stay.append(n)
                else:
                    self._take(n, placed)
                    self._saved += saved
        for _ in range(_REPLACEMENTS):
            stay = [n for n in stay if self._may([n])]
            if not (stay and self._replace(stay)):
                break
        wait = [Action("await")] if self._buys else []
        return self._saved, [*self._buys, *wait, *self._moves]

    def _may(self, nodes: list[int]) -> bool:
        pods = [p for n in nodes for p in self._view.on_node[n]]
        few = len(self._moved) + len(pods) <= self._limit
        return bool(pods) and few and self._moved.isdisjoint(pods)

    def _take(self, n: int, placed: list[tuple[int, int]]) -> None:
        self._moved |= {p for p, _ in placed}
        self._moves += [Action("close", n), *(Action("move", p, m) for p, m in placed)]

    def _replace(self, nodes: list[int]) -> bool:
        """Replace the nodes by a new one that saves most, and return whether it does."""
        whole = [self._view.on_node[n] for n in nodes]
        rest = [self._rest(n) for n in nodes]
        ways = [*self._replacements(nodes, whole), *self._replacements(nodes, rest)]
        for saved, machine, chosen in sorted(ways, reverse=True):
            if not self._may(chosen):
                continue
            before, view = self._view, _copy(self._view)
            slot = view.open_slot(machine)
            placed = [view.empty(n) for n in chosen]
            if slot < 0 or any(one is None for one in placed):
                self._view = before
                continue
            self._view = view
            for n, one in zip(chosen, placed, strict=True):
                self._take(n, one or [])
            self._buys.append(Action("buy", machine))
            self._saved += saved
            return True
        return False

    def _rest(self, n: int) -> list[int]:
        """Return the pods of a node that find no room on other nodes."""
        trial = _copy(self._view)
        trial.room.state[n] = CLOSED
        return [p for p in trial.on_node[n] if trial.settle([p]) is None]

    def _replacements(
        self, nodes: list[int], held: list[list[int]]
    ) -> list[tuple[float, int, list[int]]]:
        """Return what may replace nodes: dollars saved, a machine, the nodes.

        Nodes are taken by their price for the share of the machine that their pods ask for, as
        many as its room holds; of these, as many as save most.

        Parameters
        ----------
        nodes : list of int
        held : list of list of int
            For each node the pods of it that the new one has to hold.
        """
        view, weight = self._view, self._policy.weight
        asked = np.array([view.asked(pods) for pods in held], float)
        price = np.array([view.price_of(n) for n in nodes])
        hours = np.array([max(map(view.age, view.on_node[n])) for n in nodes]) / 3600
        pods = np.array([len(view.on_node[n]) for n in nodes])
        results = []
        slots = view.slots()
        for machine, kind in enumerate(view.machines):
            usd, slot = float(view.price[machine]), int(slots[machine])
            if slot < 0 or price.sum() <= usd:
                continue
            size = np.array([kind.cpu_millicores, kind.memory_mib, kind.gpus * WHOLE], float)
            share = (asked / np.maximum(size, 1e-9)).max(axis=1)
            legal = [
                k for k in np.argsort(share / price) if share[k] <= 1 and view.suits(slot, held[k])
            ]
            left, chosen = size.copy(), []
            for k in legal:
                if (asked[k] <= left).all():
                    left -= asked[k]
                    chosen.append(k)
            if not chosen or price[chosen].sum() <= usd:
                continue
            saved = np.cumsum(price[chosen] * hours[chosen]) - weight * np.cumsum(pods[chosen])
            saved -= usd * (np.maximum.accumulate(hours[chosen]) + _BESIDE_S / 3600)
            best = int(np.argmax(saved))
            if saved[best] > 0:
                results.append(
                    (float(saved[best]), machine, [nodes[k] for k in chosen[: best + 1]])
                )
        return results


def _copy(view: ClusterView) -> ClusterView:
    """Return a copy to try things on; what no trial changes is shared."""
    trial, room = copy.copy(view), view.room
    trial.room = room._replace(**{name: getattr(room, name).copy() for name in _CHANGED})
    trial.gpu_set = view.gpu_set.copy()
    trial.on_node = list(view.on_node)
    return trial
