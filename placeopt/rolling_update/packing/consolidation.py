"""Cheaper deployments to aim at: which nodes to close."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from placeopt.core.budget import Budget
from placeopt.core.kernels.common import join, root
from placeopt.rolling_update import rules
from placeopt.rolling_update.arrays import UpdateArrays
from placeopt.rolling_update.bounds import lower_bound
from placeopt.rolling_update.encoder import may_end, num_unplaceable
from placeopt.rolling_update.packing import kernels
from placeopt.rolling_update.packing.emptying import empty_node
from placeopt.rolling_update.packing.returning import return_home
from placeopt.rolling_update.problem import RollingUpdate

#: First and last temperature of the repair, as shares of a node's capacity. Set by hand.
_HOTTEST, _COLDEST = 0.03, 0.001
#: Up to so many nodes every target is made easy to reach, not only the first; of more nodes only
#: targets that cost less by such a share are looked at, and the last.
_MAX_EASED_NODES, _SHARE_APART = 2000, 0.01
#: Larger fleets are emptied by exchanges first.
_MAX_REPAIRED_NODES = 1000
#: Nodes that may resist in an exchange where there are many to buy.
_EXCHANGE_PATIENCE = 2
#: Rounds that bring microservices home, a microservice, and at least and at most at a time.
_RETURNS_EACH, _RETURNS = 200, (20_000, 400_000)
#: First and last temperature there, in starts, and weight of an overflow of one node, in starts.
_STARTS_HEAT, _OVERFLOW_WEIGHT = (0.5, 0.05), (20.0, 600.0)
#: By which factor there are more rounds and weight at most, where something stays overloaded.
_MOST_EFFORT = 16
#: Size of the random term in the choice of the next node to close, and what a microservice that
#: starts anyway counts there beside one that need not.
_CHOICE_NOISE, _STARTS_ANYWAY = 0.02, 0.1


class TargetDeployment(NamedTuple):
    """The node of every microservice, (M,), and the price in units of ``1 / price_scale``."""

    price: int
    node: np.ndarray


def packing_instance(problem: RollingUpdate) -> tuple[kernels.PackingInstance, np.ndarray]:
    """Return the packing problem, and the numbers of the microservices that it moves, (Q,)."""
    a = problem.arrays
    own_part = np.flatnonzero(~a.stuck & ~a.removed)
    count = len(own_part)
    number = np.full(len(a.home), -1)
    number[own_part] = np.arange(count)
    ends = [(number[m], peer, legal) for m in own_part for peer, legal in a.tight_peers[m]]
    own, peers = (np.array([end[k] for end in ends], dtype=np.int64) for k in range(2))
    peer = np.where(number[peers] >= 0, number[peers], -1 - a.cluster[a.home[peers]])
    inside = peer >= 0
    group = _components(own[inside], peer[inside], count)
    clusters = len(a.clusters)
    home_first, home_members = _grouped(a.home[own_part], len(a.price))
    group_first, group_members = _grouped(group, count)
    instance = kernels.PackingInstance(
        size=a.new[own_part],
        weight=(a.new[own_part] / np.maximum(1, a.capacity.mean(axis=0))).sum(axis=1),
        number=own_part,
        free=~a.rules.are_ruled()[own_part],
        node_set=a.rules.node_set[own_part],
        allowed=a.rules.allowed,
        rules=a.packed_rules,
        base_counts=_counts_of_stuck(a, a.packed_rules),
        leaves=_leaving(a),
        paid=a.hosting(a.stuck) | ((a.price == 0) & ~a.limits.bought),
        home=a.home[own_part],
        old=a.old[own_part],
        now=a.initial_load - a.load_of(a.removed, a.old),
        home_first=home_first,
        home_members=home_members,
        rests=~a.mandatory[own_part],
        base=a.load_of(a.stuck, a.new),
        capacity=a.capacity,
        cluster=a.cluster,
        peer_first=_grouped(own, count)[0],
        peer=peer,
        legal=np.array([end[2] for end in ends], dtype=bool).reshape(-1, clusters, clusters),
        group=group,
        group_first=group_first,
        group_members=group_members,
    )
    return instance, own_part


def _components(one: np.ndarray, other: np.ndarray, count: int) -> np.ndarray:
    """Return the component of each of ``range(count)``, ``one[k]`` linked to ``other[k]``.

    Components are numbered in the order of their first members.
    """
    parent = np.arange(count)
    for ends in zip(one, other, strict=True):
        join(parent, *ends)
    roots = np.array([root(parent, k) for k in range(count)], dtype=np.int64)
    _, first, component = np.unique(roots, return_index=True, return_inverse=True)
    order: np.ndarray = np.argsort(np.argsort(first))[component].astype(np.int64)
    return order


def _counts_of_stuck(a: UpdateArrays, packed: np.ndarray) -> np.ndarray:
    """Return the counts of rules for what cannot move, shape (first[-1],)."""
    count: np.ndarray = rules.counted(packed, np.where(a.stuck, a.home, -1))
    return count


def _leaving(a: UpdateArrays) -> np.ndarray:
    """Return which nodes are no domain of some rule any more once they are emptied, bool (N,)."""
    fixed, nodes = a.hosting(a.stuck), range(len(a.price))
    return np.array([not fixed[n] and rules.may_go(a.packed_rules, n) for n in nodes], dtype=bool)


def _grouped(labels: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return where each label of ``range(count)`` begins among the items sorted by label.

    Returns
    -------
    first : int array (count + 1,)
    members : int array (items,)
        The items, by number.
    """
    first = np.concatenate(([0], np.cumsum(np.bincount(labels, minlength=count))))
    return first.astype(np.int64), np.argsort(labels, kind="stable").astype(np.int64)


class Consolidation:
    """A search that closes one priced node after another.

    Parameters
    ----------
    problem : RollingUpdate
    seed : int
    rounds : int
        Shifts and swaps of one repair.
    patience : int
        Nodes in a row that may resist before the search ends.
    by_starts : bool
        Nodes that take few starts to empty are closed first, instead of nodes of little load.
    start : int array (M,), optional
        Deployment to begin with; by default the running one.
    lowest : int, optional
        The lower bound of the price, where several searches share it.
    """

    def __init__(
        self,
        problem: RollingUpdate,
        seed: int = 0,
        rounds: int = 20_000,
        patience: int = 6,
        by_starts: bool = False,
        start: np.ndarray | None = None,
        lowest: int | None = None,
    ):
        a = problem.arrays
        self.begin = a.home if start is None else start
        self.problem, self.rounds, self.patience = problem, rounds, patience
        self.by_starts = by_starts
        self.instance, self.mine = packing_instance(problem)
        self.rng = np.random.default_rng(seed)
        self.forced = a.hosting(a.stuck)
        used = np.bincount(self.begin, minlength=len(a.price)) > 0
        self.open = ((a.price == 0) | used) & ~a.shut
        self.open &= used | ~a.limits.bought  # each of these is opened with a look at its limits
        self.lowest = lower_bound(problem) if lowest is None else lowest
        self.ruled = a.rules.any
        self.buys = any(n.candidate for n in problem.nodes)
        self.wished = any(rule.soft for rule in problem.rules)
        self.wish_count = _counts_of_stuck(a, a.packed_wishes)
        self.need = a.new.sum(axis=0)
        self.set_need = self._need_of_sets()

    def targets(self, budget: Budget) -> Iterator[TargetDeployment]:
        """Yield ever cheaper deployments, each within all capacities, rules and latency limits.

        What any one node hosts has a place on the others, where that is asked for.
        """
        yield from self._checked(self._targets(budget))

    def targets_of_few_starts(
        self, budget: Budget, count: int, effort: int = 1
    ) -> Iterator[TargetDeployment]:
        """Yield about `count` ever cheaper deployments that few starts reach, legal as `targets`.

        Nodes that take few starts to empty are closed, and what overloads the others is mended by
        few changes, in rounds in proportion to `effort`. Where that fails fewer nodes are closed at
        once, then there are more rounds.
        """
        yield from self._checked(self._returning(budget, count, effort))

    def _checked(self, targets: Iterator[TargetDeployment]) -> Iterator[TargetDeployment]:
        """Yield the deployments that a plan may end with."""
        return (target for target in targets if may_end(self.problem.arrays, target.node))

    def _excess(self, node: np.ndarray) -> float:
        """Return by how much the nodes of a deployment, (M,), break the limits of nodes."""
        a = self.problem.arrays
        if not a.limits.any:
            return 0.0
        used = np.bincount(node, minlength=len(a.price)) > 0
        return float(a.limits.excess(used[None], a.num_real)[0])

    def _has_spare(self, node: np.ndarray) -> bool:
        """Return whether what each node of a deployment, (M,), hosts has a place on the others.

        Only where that is asked for; that there is room together is asked first.
        """
        a = self.problem.arrays
        if not a.survival.room:
            return True
        used = np.bincount(node, minlength=len(a.price)) > 0
        if a.survival.lacking(used[None], self.need)[0] > 0:
            return False
        return bool(num_unplaceable(a, a.survival, a.packed_rules, node[None])[0] == 0)

    def _nodes(self, state: kernels.PackingState) -> np.ndarray:
        """Return the node of every microservice in a state, shape (M,)."""
        node = self.problem.arrays.stays_on.copy()
        node[self.mine] = state.node
        return node

    def _spares(self, state: kernels.PackingState, closed: Iterable[int]) -> bool:
        """Put nodes to use until there is room without any one of them; return whether there is.

        A node that is used hosts something: of the fullest one what is smallest. Open nodes come
        first, then those of `closed`, which are opened.
        """
        limits = self.problem.arrays.limits
        legal = (n for n in closed if limits.open_to(state.head >= 0)[n])
        idle = iter([*np.flatnonzero(state.open & (state.head < 0)).tolist(), *legal])
        while not self._has_spare(self._nodes(state)):
            n = next(idle, None)
            if n is None:
                return False
            movable = self._movable_to(state, n)
            if len(movable):
                node, is_open = state.node.copy(), state.open.copy()
                node[movable[0]], is_open[n] = n, True
                self._restore(state, node, is_open)
        return True

    def _movable_to(self, state: kernels.PackingState, n: int) -> np.ndarray:
        """Return what may start on the empty node n and leaves company behind, the smallest first.

        Of the rules only the allowed nodes are looked at, and nothing with latency limits goes.
        """
        a, instance = self.problem.arrays, self.instance
        company = np.bincount(state.node, minlength=len(a.price))[state.node] > 1
        bound = np.diff(instance.peer_first) > 0
        fits = (instance.size <= a.capacity[n]).all(axis=1)
        sets = np.append(a.rules.allowed[:, n], True)  # the last one: of those without a set
        choice = np.flatnonzero(company & ~bound & fits & sets[instance.node_set])
        order = np.lexsort((instance.size[choice, 0], ~instance.free[choice]))
        return choice[order]

    def _targets(self, budget: Budget) -> Iterator[TargetDeployment]:
        state = self._first(budget)
        if state is None:
            return
        yield self._target(state, first=True)
        for _ in self._apart(self._improve(state, budget)):
            yield self._target(state)

    def _returning(self, budget: Budget, count: int, effort: int) -> Iterator[TargetDeployment]:
        state, a = self._first(budget), self.problem.arrays
        if state is None:
            return
        now, priced = self._price(state), max(1, int(((a.price > 0) & state.open).sum()))
        wanted = (now - self.lowest) * priced // max(1, now)
        step = max(1, wanted // count)
        while self._price(state) > self.lowest and not budget.out_of_time:
            node, is_open = state.node.copy(), state.open.copy()
            if self._close_by_return(state, step, effort):
                yield self._target(state)
                continue
            self._restore(state, node, is_open)
            if step == 1 and effort >= _MOST_EFFORT:
                return
            step, effort = (step // 2, effort) if step > 1 else (1, 4 * effort)

    def _close_by_return(self, state: kernels.PackingState, count: int, effort: int) -> bool:
        """Close nodes in place that take few starts to empty, and mend; return whether all fits."""
        for _ in range(count):
            n = self._next(state, set())
            if n is None:
                return False
            self._set_open(state, n, False)
            if not kernels.evacuate(self.instance, state, n):
                return False
        rounds = effort * int(np.clip(_RETURNS_EACH * len(self.mine), *_RETURNS))
        weights, best = (effort * weight for weight in _OVERFLOW_WEIGHT), np.empty_like(state.node)
        if return_home(self.instance, state, rounds, *_STARTS_HEAT, *weights, best) < 0:
            return False
        self._restore(state, best, state.open.copy())
        return True

    def _apart(self, prices: Iterator[int]) -> Iterator[int]:
        """Yield falling prices, where nodes are many those that are well apart, and the last."""
        price, said = None, np.inf
        share = 0.0 if len(self.forced) <= _MAX_EASED_NODES else _SHARE_APART
        for price in prices:
            if price <= (1 - share) * said:
                said = price
                yield price
        if price is not None and price < said:
            yield price

    def _improve(self, state: kernels.PackingState, budget: Budget) -> Iterator[int]:
        """Close nodes and exchange some in place, yielding the price after each change."""
        while True:
            yield from self._descend(state, budget)
            if not self._exchange(state, budget):
                return
            yield self._price(state)

    def _descend(
        self, state: kernels.PackingState, budget: Budget, keep: int | None = None
    ) -> Iterator[int]:
        """Close node after node in place, yielding the price after each.

        It ends when in both ways of closing `patience` nodes in a row resist. The node `keep` is
        not closed.
        """
        ways = (self._close_by_repair, self._close_by_exchanges)
        if len(self.forced) > _MAX_REPAIRED_NODES:
            ways = ways[::-1]
        patience = self.patience if keep is None or not self.buys else _EXCHANGE_PATIENCE
        for close in ways:
            resisting = set() if keep is None else {keep}
            failures = 0
            while (
                failures < patience and self._price(state) > self.lowest and not budget.out_of_time
            ):
                n = self._next(state, resisting)
                if n is None:
                    break
                if close(state, n, self.rounds * (1 + failures)):
                    failures = 0
                    yield self._price(state)
                else:
                    failures += 1
                    resisting.add(n)

    def _exchange(self, state: kernels.PackingState, budget: Budget) -> bool:
        """Open one node and close others that cost more together; return whether that was possible.

        Of closed nodes of one price, size, cluster and set of what may run there one is tried.
        Where all nodes are of one price and size no exchange can pay.
        """
        a = self.problem.arrays
        kinds = np.column_stack((a.price, a.capacity))
        alike = len(np.unique(kinds[(a.price > 0) & ~a.shut], axis=0)) < 2
        if alike or self._price(state) <= self.lowest:
            return False
        closed = np.flatnonzero(~state.open & ~a.shut)
        every = np.column_stack((kinds, a.cluster, a.rules.allowed.T))
        _, first = np.unique(every[closed], axis=0, return_index=True)
        for n in closed[first].tolist():
            before, node, is_open = self._price(state), state.node.copy(), state.open.copy()
            self._set_open(state, n, True)
            if any(
                price < before and self._excess(self._nodes(state)) == 0
                for price in self._descend(state, budget, keep=n)
            ):
                return True
            self._restore(state, node, is_open)
        return False

    def _first(self, budget: Budget) -> kernels.PackingState | None:
        """Return a state without overload, None where there is none.

        It is the running deployment, repaired, with more nodes opened where that is necessary.
        """
        a = self.problem.arrays
        if self.problem.infeasibility():
            return None
        state = self._start(self.begin[self.mine], self.open)
        spare = np.flatnonzero(~self.open & ~a.shut)
        by_price = a.price[spare] / np.maximum(1, a.capacity[spare, 0])
        waiting = iter(spare[np.argsort(by_price, kind="stable")].tolist())
        if not kernels.mend(self.instance, state):
            return None
        while not self._is_mended(state):
            opened = next(waiting, None)
            if opened is None or budget.out_of_time:
                return None
            if a.limits.open_to(state.open)[opened]:
                self._set_open(state, opened, True)
        return state if self._spares(state, waiting) else None

    def _is_mended(self, state: kernels.PackingState) -> bool:
        """Empty the nodes to drain and mend rules and overload; return whether all is well then."""
        for n in np.flatnonzero(self.problem.arrays.drain).tolist():
            if not kernels.evacuate(self.instance, state, n):
                return False
        obeys = not self.ruled or bool(kernels.repair_rules(self.instance, state))
        return self._repair(state, self.rounds) and obeys

    def _start(self, node: np.ndarray, is_open: np.ndarray) -> kernels.PackingState:
        return kernels.start(self.instance, node, is_open, int(self.rng.integers(2**31)))

    def _repair(self, state: kernels.PackingState, rounds: int) -> bool:
        return bool(kernels.repair(self.instance, state, rounds, _HOTTEST, _COLDEST))

    def _set_open(self, state: kernels.PackingState, n: int, is_open: bool) -> None:
        kernels.set_open(self.instance, state, n, is_open)

    def _price(self, state: kernels.PackingState) -> int:
        return int(self.problem.arrays.price[(state.head >= 0) | self.forced].sum())

    def _target(self, state: kernels.PackingState, first: bool = False) -> TargetDeployment:
        """Return the deployment of a state, after changes that make it easier to reach."""
        kernels.move_back_home(self.instance, state)
        if first or len(self.forced) <= _MAX_EASED_NODES:
            kernels.evict_unrestartable(self.instance, state)
        if self.wished:
            kernels.satisfy_soft_rules(
                self.instance, state, self.problem.arrays.packed_wishes, self.wish_count
            )
        self._spares(state, ())  # what went home may have left a node empty
        return TargetDeployment(self._price(state), self._nodes(state))

    def _next(self, state: kernels.PackingState, resisting: set[int]) -> int | None:
        """Return the open priced node that saves most for what has to move."""
        a = self.problem.arrays
        may = state.open & ~self.forced & (a.price > 0)
        may[list(resisting)] = False
        choice = np.flatnonzero(may)
        if len(choice) == 0:
            return None
        effort = self._starts(state)[choice] if self.by_starts else self._fullness(state, choice)
        noise = _CHOICE_NOISE * self.rng.random(len(choice))
        return int(choice[(effort / a.price[choice] * a.price_scale + noise).argmin()])

    def _fullness(self, state: kernels.PackingState, nodes: np.ndarray) -> np.ndarray:
        """Return the share of each node that is used, of the resource that is used most."""
        capacity = np.maximum(self.problem.arrays.capacity[nodes], 1)
        share: np.ndarray = (state.load[nodes] / capacity).max(axis=1)
        return share

    def _starts(self, state: kernels.PackingState) -> np.ndarray:
        """Return the starts that it takes to empty each node, as a share of the most, (N,)."""
        rests = self.instance.rests & (state.node == self.instance.home)
        weights = np.where(rests, 1.0, _STARTS_ANYWAY)
        starts = np.bincount(state.node, weights, minlength=len(self.forced))
        share: np.ndarray = starts / starts.max()
        return share

    def _close_by_repair(self, state: kernels.PackingState, n: int, rounds: int) -> bool:
        """Close node n in place; where that overloads others for good, restore the state."""
        node, is_open, before = state.node.copy(), state.open.copy(), self._nodes(state)
        self._set_open(state, n, False)
        if (
            self._has_room(state, n)
            and kernels.evacuate(self.instance, state, n)
            and self._repair(state, rounds)
            and self._is_kept(state, self._excess(before))
        ):
            return True
        self._restore(state, node, is_open)
        return False

    def _close_by_exchanges(self, state: kernels.PackingState, n: int, rounds: int) -> bool:
        """Close node n in place where exchanges with other nodes empty it.

        Exchanges that did not empty it stay: they bring together on it what is free elsewhere.
        """
        node, is_open, before = state.node.copy(), state.open.copy(), self._nodes(state)
        self._set_open(state, n, False)
        emptied = self._has_room(state, n) and bool(empty_node(self.instance, state, n, rounds))
        if not self._is_kept(state, self._excess(before)):
            self._restore(state, node, is_open)
            return False
        self._set_open(state, n, not emptied)
        return emptied

    def _is_kept(self, state: kernels.PackingState, excess: float) -> bool:
        """Return whether a state keeps the limits of nodes as well as before, and has spare room.

        A node that is closed may make the share of others too large.
        """
        node = self._nodes(state)
        return self._has_spare(node) and self._excess(node) <= excess

    def _has_room(self, state: kernels.PackingState, n: int) -> bool:
        """Return whether the open nodes together have room for their load and that of node n.

        Of each set of allowed nodes those that are open have room for what may end there only.
        Without it no repair can succeed, and a repair in vain goes through all its rounds.
        """
        capacity, load = self.instance.capacity, state.load
        if (load[state.open].sum(axis=0) + load[n] > capacity[state.open].sum(axis=0)).any():
            return False
        if len(self.set_need) == 0:
            return True
        free = np.maximum(0, capacity - self.instance.base) * state.open[:, None]
        return bool((self.set_need <= self.instance.allowed @ free).all())

    def _need_of_sets(self) -> np.ndarray:
        """Return what can end on the nodes of each set of allowed ones only, (node sets, R)."""
        instance = self.instance
        need = np.zeros((len(instance.allowed), instance.size.shape[1]), dtype=np.int64)
        for s, legal in enumerate(instance.allowed):
            inside = np.append(~(instance.allowed & ~legal).any(axis=1), False)
            may_rest = instance.rests & ~legal[instance.home]
            need[s] = instance.size[inside[instance.node_set] & ~may_rest].sum(axis=0)
        return need

    def _restore(self, state: kernels.PackingState, node: np.ndarray, is_open: np.ndarray) -> None:
        for old, new in zip(state, self._start(node, is_open), strict=True):
            old[...] = new
