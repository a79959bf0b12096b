"""Rolling updates one microservice at a time: each decision is the node of a new copy.

The copy starts there at once. An action is legal if the copy fits now, beside the old one, and at
the end, beside all that is decided, and if no rule that holds is broken by it, neither while both
copies run nor after the old one has ended. Staying is no move where nothing changes. So a complete
episode is a plan without hops and without stops that breaks nothing, but for rules to mend that are
broken at the start. An episode that finds no room ends early.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from placeopt.core.errors import require_known
from placeopt.core.fronts.values import Objective
from placeopt.core.interfaces import DecisionSequence
from placeopt.rolling_update.instance import RollingUpdate
from placeopt.rolling_update.packing.loads import all_fit
from placeopt.rolling_update.rules import kernels as rules

#: Orders of the decisions.
ORDERS = ("emptiest-first", "given")


class UpdateSequenceState(NamedTuple):
    """The decisions of an episode so far, and what they change."""

    now: np.ndarray  # (1,) decisions taken
    choice: np.ndarray  # (Q,) nodes decided on, -1 not yet
    load: np.ndarray  # (N, R) of the running copies
    counts: np.ndarray  # of the rules for the running copies
    settled: np.ndarray  # (N, R) of what is decided or cannot move, at its final size
    hosts: np.ndarray  # (N,) microservices that are decided or cannot move
    waiting: np.ndarray  # (N,) movable microservices that run there now and are undecided


def order_of(problem: RollingUpdate, name: str) -> np.ndarray:
    """Return the reschedulable microservices in an order of `ORDERS`, shape (Q,).

    ``emptiest-first`` begins with those that must be restarted, while there is most room. The
    others follow node by node, sorted by load for the price. Each microservice is followed by those
    that tight flows tie it to. What is removed comes first, or last where it waits for others.
    """
    require_known("order", name, ORDERS)
    a = problem.arrays
    first, last = (np.flatnonzero(a.removed & (a.late == late)) for late in (False, True))
    return np.concatenate((first, _order_of_moves(problem, name), last))


def _order_of_moves(problem: RollingUpdate, name: str) -> np.ndarray:
    """Return what may be moved in an order of `ORDERS`."""
    a = problem.arrays
    moving = np.flatnonzero(a.movable)
    if name == "given":
        return moving
    share = (a.initial_load / np.maximum(a.capacity, 1)).max(axis=1)
    keep = (a.hosting(a.fixed) | (a.price == 0)) & ~a.drain
    position = np.argsort(np.lexsort((share / np.maximum(a.price, 1), keep)))
    size = (a.new / np.maximum(a.capacity.max(axis=0), 1)).max(axis=1)
    ranked = moving[
        np.lexsort((-size[moving], position[a.home[moving]], ~a.mandatory[moving]))
    ].tolist()
    tied = groups(problem)
    return np.array(list(dict.fromkeys(p for m in ranked for p in tied[m])), dtype=np.int64)


def groups(problem: RollingUpdate) -> list[list[int]]:
    """Return for every microservice itself and the movable ones that tight flows tie it to."""
    a = problem.arrays
    results: list[list[int]] = []
    for m in range(len(a.home)):
        reached, waiting = {m: None}, [m]
        while waiting:
            for peer, _ in a.tight_peers[waiting.pop()]:
                if peer not in reached and a.movable[peer]:
                    reached[peer] = None
                    waiting.append(peer)
        results.append(list(reached))
    return results


class _Known(NamedTuple):
    """Mask and increments of a state after `now` decisions; the sequence keeps the latest."""

    state: UpdateSequenceState
    now: int
    mask: np.ndarray  # bool (N,)
    increments: np.ndarray  # (N, objectives of the problem)


class RollingUpdateSequence(DecisionSequence):
    """Microservice after microservice; action n is node n.

    A node of which nothing is decided counts towards the cost by the share of its first residents
    that are still undecided. So leaving a node pays at every step, and the sum is what the nodes
    cost at the end.

    Parameters
    ----------
    order : {"emptiest-first", "given"}
        The order of the decisions.
    """

    problem: RollingUpdate

    #: Columns of `features`. Of the node: free share now and at the end, of the scarcer resource;
    #: price; whether something is settled there; share of its residents undecided; whether it is
    #: home; peers in its cluster. Increments of cost and starts. Of the microservice: its two
    #: sizes. Of the episode: the share still to do.
    num_features = 12

    def __init__(
        self,
        problem: RollingUpdate,
        objectives: Sequence[Objective],
        *,
        order: str = "emptiest-first",
    ):
        super().__init__(problem, objectives)
        self._arrays = a = problem.arrays
        self.order = order_of(problem, order)
        self._position = np.full(len(a.home), -1)
        self._position[self.order] = np.arange(len(self.order))
        self.num_actions, self.decisions = len(a.price), len(self.order)
        self._tied = [np.array(tied) for tied in groups(problem)]
        self._residents = np.bincount(a.home[~a.fixed], minlength=len(a.price))
        self._scale = np.maximum(a.capacity, 1)
        self._open = [np.flatnonzero((a.cluster == c) & ~a.shut) for c in range(len(a.clusters))]
        self._goals = len(problem.objectives)
        self._known: _Known | None = None

    def reset(self, rng: np.random.Generator | None = None) -> UpdateSequenceState:
        """Return the state before the first decision; episodes are not random."""
        a = self._arrays
        return UpdateSequenceState(
            now=np.zeros(1, dtype=np.int64),
            choice=np.full(self.decisions, -1),
            load=a.initial_load.copy(),
            counts=rules.counted(a.packed_rules, a.home),
            settled=a.fixed_load.copy(),
            hosts=np.bincount(a.home[a.fixed], minlength=self.num_actions),
            waiting=self._residents.copy(),
        )

    def remaining(self, state: UpdateSequenceState) -> int:
        """Return how many microservices are still to be decided."""
        return self.decisions - int(state.now[0])

    def mask(self, state: UpdateSequenceState) -> np.ndarray:
        """Return the nodes on which the next copy may start now and stay."""
        return self._at(state).mask.copy()

    def _at(self, state: UpdateSequenceState) -> _Known:
        """Return mask and increments of a state.

        A policy asks for them to choose an action, and `step` asks again to take it.
        """
        known, now = self._known, int(state.now[0])
        if known is None or known.state is not state or known.now != now:
            mask = self._mask(state)
            increments = self._increments(state) if mask.any() else np.zeros((0, self._goals))
            known = self._known = _Known(state, now, mask, increments)
        return known

    def _mask(self, state: UpdateSequenceState) -> np.ndarray:
        """Return the mask of a state of which nothing is kept."""
        if self.remaining(state) == 0:
            return np.zeros(self.num_actions, dtype=bool)
        a, m = self._arrays, int(self.order[state.now[0]])
        if a.removed[m]:
            return a.may_host(m)
        fits_now = (state.load + a.new[m] <= a.capacity).all(axis=1)
        if not a.mandatory[m]:
            fits_now[a.home[m]] = True
        fits_later = (state.settled + a.new[m] <= a.capacity).all(axis=1)
        legal = self._obeying(state, m) & fits_now & fits_later & ~a.shut
        if a.limits.any:
            legal &= a.limits.open_to((state.hosts > 0) | (state.waiting > 0))
        if a.pinned[m]:
            legal &= np.arange(self.num_actions) == a.home[m]
        for peer, table in a.tight_peers[m]:
            where = self._where(state, peer)
            if where >= 0:
                legal &= table[a.cluster, a.cluster[where]]
        return legal & self._can_follow(state, m)[a.cluster]

    def _obeying(self, state: UpdateSequenceState, m: int) -> np.ndarray:
        """Return on which nodes the next copy keeps the rules, now and when the old one has ended.

        Shape (N,).
        """
        a = self._arrays
        home = int(a.home[m])
        legal: np.ndarray = np.ones(self.num_actions, dtype=bool)
        if not rules.is_ruled(a.packed_rules, m) and a.rules.node_set[m] < 0:
            return legal
        for n in range(self.num_actions):
            rests = n == home and not a.mandatory[m]
            legal[n] = rests or (
                rules.may_start(a.packed_rules, state.counts, m, n)
                and rules.may_move(a.packed_rules, state.counts, m, home, n, False)
            )
        return legal

    def _can_follow(self, state: UpdateSequenceState, m: int) -> np.ndarray:
        """Return in which clusters m and the undecided microservices tied to it fit, bool (R,).

        They are placed first fit. The cluster of the home of m always counts as fitting.
        """
        a = self._arrays
        fine = np.ones(len(a.clusters), dtype=bool)
        undecided = self._tied[m][state.choice[self._position[self._tied[m]]] < 0]
        if len(undecided) > 1:
            size, home = a.new[undecided], a.cluster[a.home[m]]
            stays = a.pinned[undecided].any()
            load = np.maximum(state.load, state.settled)
            for c in range(len(fine)):
                fits = not stays and all_fit(a.capacity, load, size, self._open[c])
                fine[c] = c == home or fits
        return fine

    def _where(self, state: UpdateSequenceState, m: int) -> int:
        """Return the node on which a microservice is settled, -1 if it is not."""
        k = self._position[m]
        return int(self._arrays.home[m]) if k < 0 else int(state.choice[k])

    def _increments(self, state: UpdateSequenceState) -> np.ndarray:
        """Return what every node would add to each objective, legal or not, shape (N, objectives).

        The first decision pays for the nodes in use, and for what they lose at worst.
        """
        a, m = self._arrays, int(self.order[state.now[0]])
        home, empty = a.home[m], state.hosts == 0
        share = np.where(empty, state.waiting / np.maximum(self._residents, 1), 1.0)
        result = np.zeros((self.num_actions, self._goals))
        # What is left undecided at home counts less from now on, unless home is where it settles.
        leaving = a.price[home] / max(1, self._residents[home]) if empty[home] else 0.0
        result[:, 0] = np.where(empty, a.price * (1 - share), 0.0) - leaving
        result[home, 0] = a.price[home] * (1 - share[home])
        if state.now[0] == 0:
            result[:, 0] += a.price @ share
        result[:, 0] /= a.price_scale
        result[:, 1] = not a.removed[m]
        if not a.mandatory[m]:
            result[home, 1] = 0.0
        if a.survival.asked:
            settled = a.home.copy()
            settled[self.order] = state.choice
            grows = a.survival.added(settled, m, first=state.now[0] == 0)
            result[: len(self.problem.nodes), 3] = grows
            if a.removed[m]:  # wherever it goes: it is not counted
                result[:, 3] = grows[0]
        return result

    def step(self, state: UpdateSequenceState, action: int) -> np.ndarray:
        """Start the next copy on a node and end the old one, in place; return the increments."""
        action = self.legal_action(state, action)
        cost = self._at(state).increments[action]
        a, m = self._arrays, int(self.order[state.now[0]])
        home = int(a.home[m])
        if action != home or a.mandatory[m]:
            state.load[action] += a.new[m]
            state.load[home] -= a.old[m]
            rules.tally(a.packed_rules, state.counts, m, home, -1)
            rules.tally(a.packed_rules, state.counts, m, action, 1)
        state.settled[action] += a.new[m]
        state.hosts[action] += 1
        state.waiting[home] -= 1
        state.choice[state.now[0]] = action
        state.now[0] += 1
        return cost[self._columns]

    def costs(self, state: UpdateSequenceState) -> np.ndarray:
        """Return the increments that each node would have; inf where illegal."""
        known = self._at(state)
        if not known.mask.any():
            return np.full((self.num_actions, len(self.objectives)), np.inf)
        return np.where(known.mask[:, None], known.increments[:, self._columns], np.inf)

    def features(self, state: UpdateSequenceState) -> np.ndarray:
        """Return what is known of every node; see `num_features`."""
        features = np.zeros((self.num_actions, self.num_features), dtype=np.float32)
        _, _, mask, increments = self._at(state)
        if not mask.any():
            return features
        a, m = self._arrays, int(self.order[state.now[0]])
        dearest = max(1.0, float(a.price.max()))
        features[:, 0] = ((a.capacity - state.load - a.new[m]) / self._scale).min(axis=1)
        features[:, 1] = ((a.capacity - state.settled - a.new[m]) / self._scale).min(axis=1)
        features[:, 2] = a.price / dearest
        features[:, 3] = state.hosts > 0
        features[:, 4] = state.waiting / np.maximum(self._residents, 1)
        features[a.home[m], 5] = 1
        peers = [a.cluster[w] for p, _ in a.tight_peers[m] if (w := self._where(state, p)) >= 0]
        features[:, 6] = np.isin(a.cluster, peers)
        paid = dearest * (1 if state.now[0] else max(1, self.num_actions))
        features[:, 7] = increments[:, 0] * a.price_scale / paid
        features[:, 8] = increments[:, 1]
        features[:, 9:11] = a.new[m, :2] / np.maximum(a.new[:, :2].max(axis=0), 1)
        features[:, 11] = self.remaining(state) / self.decisions
        features[~mask] = 0
        return np.clip(features, -1, 1)

    def plan(self, state: UpdateSequenceState) -> dict[str, Any]:
        """Return the moves so far, in the order in which they were decided."""
        a, taken = self._arrays, int(state.now[0])
        steps = zip(self.order[:taken].tolist(), state.choice[:taken].tolist(), strict=True)
        return self.problem.plan([(m, n) for m, n in steps if n != a.home[m] or a.mandatory[m]])
