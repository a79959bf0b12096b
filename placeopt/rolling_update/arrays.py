"""A rolling-update instance as arrays: for the referee, the models and the kernels."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from placeopt.core.fronts.dominance import minimal
from placeopt.core.numbers import decimals, scaled_up, unit_digits
from placeopt.core.problem import latency_rows
from placeopt.rolling_update.document import (
    NodeLimit,
    UpdateApplication,
    UpdateMicroservice,
    UpdateNode,
    UpdateRule,
    UpdateSurvival,
)
from placeopt.rolling_update.rules import (
    NodeLimits,
    RuleTables,
    Survival,
    domains_of,
    residents_of,
    tables,
)

# -- replicas --------------------------------------------------------------------------------------


class ReplicaSet(NamedTuple):
    """Replicas of one name, of which some are added and some removed.

    Attributes
    ----------
    label : str
        How messages name it.
    added, removed : list of int
        The microservices.
    num_before, num_after : int
        Replicas that run now, and at the end.
    """

    label: str
    added: list[int]
    removed: list[int]
    num_before: int
    num_after: int

    @property
    def spare(self) -> int:
        """Replicas that may be removed before one is added: the rest has to be ready."""
        return self.num_before - min(self.num_before, self.num_after)


class Amounts(NamedTuple):
    """What orders of moves count: M microservices, N nodes, R resources and more."""

    old: np.ndarray  # (M, R)
    new: np.ndarray  # (M, R)
    capacity: np.ndarray  # (N, R)
    load: np.ndarray  # (N, R) before the first move


def replica_sets(
    names: Sequence[tuple[str, str]], microservices: Sequence[UpdateMicroservice]
) -> list[ReplicaSet]:
    """Return the replica sets that both grow and shrink; others never have too few replicas.

    Parameters
    ----------
    names : sequence of (application, microservice), length M
    microservices : sequence of UpdateMicroservice, length M
    """
    members: dict[tuple[str, str], list[int]] = {}
    for m, ((application, _), service) in enumerate(zip(names, microservices, strict=True)):
        if service.replica_of is not None:
            members.setdefault((application, service.replica_of), []).append(m)
    results = []
    for (application, name), own in members.items():
        added = [m for m in own if microservices[m].node is None]
        removed = [m for m in own if microservices[m].removed]
        if added and removed:
            label = f"the replicas of {name!r} of {application!r}"
            before, after = len(own) - len(added), len(own) - len(removed)
            results.append(ReplicaSet(label, added, removed, before, after))
    return results


def with_turns(amounts: Amounts, sets: Sequence[ReplicaSet], nowhere: int) -> Amounts:
    """Return amounts with a resource more for each replica set, so that enough stay ready.

    Only the node that is nowhere has any of it. What is to be added takes one there until it
    starts, and what is removed takes one from then on: there is room for the spare ones, and for
    one more with each that has started.
    """
    if not sets:
        return amounts
    old, new, capacity, load = (
        np.pad(x, ((0, 0), (0, len(sets))), mode="constant") for x in amounts
    )
    for k, one in enumerate(sets, start=amounts.old.shape[1]):
        old[one.added, k] = new[one.removed, k] = 1
        load[nowhere, k] = len(one.added)
        capacity[nowhere, k] = len(one.added) + one.spare
    return Amounts(old, new, capacity, load)


# -- fleets ----------------------------------------------------------------------------------------

#: The resources that every instance has; others come behind them by name.
RESOURCES = ("cpu", "memory")
#: The node of what runs nowhere, yet or any more: it comes last, has room for what waits, and is
#: drained.
WAITING = "(waiting)"


class FleetArrays:
    """M microservices, N nodes and R clusters by number, in document order.

    Parameters
    ----------
    nodes, applications, cluster_latency_ms
        As in the document.
    strict : bool
        Whether every reschedulable microservice is restarted.

    Attributes
    ----------
    names : list of (application, microservice)
    node_names : list of str
    resources : tuple of str
        The R resources: CPU, memory, and others by name.
    waiting : int
        The node of what runs nowhere yet, and of what is removed; -1 where there is neither. It
        counts as one of the N nodes.
    home : int array (M,)
        Node where each runs now.
    stays_on : int array (M,)
        Node where each ends unless it is moved: its home, or `waiting` for what is removed.
    old, new : int array (M, R)
        Milli-CPU, MiB and other resources of the running copy and of a new one; nothing of what
        is removed.
    removed, late : bool array (M,)
        Ends on the way; and only when others of its name have started.
    sets : list of ReplicaSet
        Replicas of one name of which some are added and some removed.
    fixed : bool array (M,)
        Of an application that is not reschedulable.
    movable : bool array (M,)
        Of a reschedulable application, and not removed.
    pinned : bool array (M,)
        Must keep its node.
    stuck : bool array (M,)
        Fixed or pinned, so that it ends on its node.
    mandatory : bool array (M,)
        Must be restarted: its size changes, or the semantics are strict.
    capacity : int array (N, R)
    price : int array (N,)
        In units of 1 / `price_scale`.
    cost_step : float or None
        All node costs are multiples of it.
    clusters : list of str
    cluster : int array (N,)
    drain : bool array (N,)
    candidate : bool array (N,)
        Not there yet: to be bought.
    shut : bool array (N,)
        Takes no new copy: to be drained, or closed.
    room : int array (N, R)
        The capacity; of a closed node only what its own copies take at their new sizes.
    latency : float array (R, R)
        In ms, inf where none is given; 0 inside a cluster unless given.
    flows : list of (microservice, microservice, limit in ms)
    tight_flows : list of (microservice, microservice, limit in ms)
        The flows that some pair of clusters breaks: the paper's locality constraints.
    tight : float array (flows, 3)
        The same.
    tight_peers : list of list of (microservice, bool array (R, R))
        For every microservice those that tight flows connect it to, and whether a flow allows its
        own cluster (row) with that of the peer (column).
    initial_load, fixed_load : int array (N, R)
        Of all running copies; of those that are fixed.
    ordered : Amounts
        Sizes, capacities and the first load as orders of moves count them.
    num_real : int
        The nodes of the document, which come first.
    """

    def __init__(
        self,
        nodes: Sequence[UpdateNode],
        applications: Sequence[UpdateApplication],
        cluster_latency_ms: Mapping[str, Mapping[str, float]],
        strict: bool,
    ):
        everything = [(a, m) for a in applications for m in a.microservices]
        waits = any(m.node is None or m.removed for _, m in everything)
        self.names = [(a.name, m.name) for a, m in everything]
        self._labels = [f"microservice {m.name!r} of {a.name!r}" for a, m in everything]
        self.node_names = [n.name for n in nodes] + [WAITING] * waits
        self.waiting = len(nodes) if waits else -1
        number: dict[str | None, int] = {n.name: k for k, n in enumerate(nodes)}
        number[None] = self.waiting
        self.home = np.array([number[m.node] for _, m in everything], dtype=np.int64)
        self._set_removed([m for _, m in everything])
        self._set_sizes(nodes, [m for _, m in everything])
        self.fixed = np.array([not a.reschedulable for a, _ in everything])
        self.movable = ~self.fixed & ~self.removed
        self.pinned = np.array([m.pinned for _, m in everything]) & ~self.removed
        self.stuck = self.fixed | self.pinned
        self.mandatory = self.movable & ((self.new != self.old).any(axis=1) | strict)
        self.drain = np.array([n.drain for n in nodes] + [True] * waits)
        self.candidate = np.array([n.candidate for n in nodes] + [False] * waits)
        self.shut = self.drain | np.array([n.closed for n in nodes] + [False] * waits)
        self._set_prices([n.price for n in nodes] + [0.0] * waits)
        self.clusters = list(dict.fromkeys(n.cluster for n in nodes))
        at = {name: k for k, name in enumerate(self.clusters)}
        self.cluster = np.array([at[n.cluster] for n in nodes] + [0] * waits, dtype=np.int64)
        delays = latency_rows(self.clusters, cluster_latency_ms, math.inf)
        self.latency = np.array(delays).reshape(2 * (len(self.clusters),))
        self._set_flows(applications)
        self.initial_load = self.load_of(np.ones_like(self.movable), self.old)
        self.fixed_load = self.load_of(self.fixed, self.old)
        closed = (self.shut & ~self.drain)[:, None]
        self.room = np.where(closed, self.load_of(~self.removed, self.new), self.capacity)
        amounts = Amounts(self.old, self.new, self.capacity, self.initial_load)
        self.ordered = with_turns(amounts, self.sets, self.waiting)
        self.num_real = len(nodes)

    def _set_removed(self, microservices: Sequence[UpdateMicroservice]) -> None:
        self.removed = np.array([m.removed for m in microservices])
        self.sets = replica_sets(self.names, microservices)
        self.late = np.zeros_like(self.removed)
        self.late[[m for one in self.sets for m in one.removed]] = True
        self.stays_on = np.where(self.removed, self.waiting, self.home)

    def _set_sizes(
        self, nodes: Sequence[UpdateNode], microservices: Sequence[UpdateMicroservice]
    ) -> None:
        others = {r for m in microservices for r in m.resources}
        self.resources = (*RESOURCES, *sorted(others))
        more = [[m.resources.get(r, 0) for r in self.resources[2:]] for m in microservices]
        self.old, self.new = (
            np.array([(*z, *x) for z, x in zip(sizes, more, strict=True)], dtype=np.int64)
            for sizes in ([m.old_size for m in microservices], [m.new_size for m in microservices])
        )
        self.new[self.removed] = 0
        rows = [
            (n.cpu_millicores, n.memory_mib, *(n.resources.get(r, 0) for r in self.resources[2:]))
            for n in nodes
        ]
        if self.waiting >= 0:
            rows.append(tuple(self.old[self.home == self.waiting].sum(axis=0).tolist()))
        self.capacity = np.array(rows, dtype=np.int64)

    def _set_prices(self, prices: list[float]) -> None:
        digits, kept = decimals(prices), unit_digits(prices, len(prices))
        self.price_scale = 10**kept
        self.price = scaled_up(prices, kept)
        step = math.gcd(*self.price.tolist()) or self.price_scale
        self.cost_step = None if digits > kept else step / self.price_scale

    def _set_flows(self, applications: Sequence[UpdateApplication]) -> None:
        index = {name: m for m, name in enumerate(self.names)}
        self.flows = [
            (index[a.name, f.source], index[a.name, f.target], f.max_latency_ms)
            for a in applications
            for f in a.flows
            if not (self.removed[index[a.name, f.source]] or self.removed[index[a.name, f.target]])
        ]
        self.tight_flows = [flow for flow in self.flows if (self.latency > flow[2]).any()]
        self.tight = np.array(self.tight_flows, dtype=float).reshape(-1, 3)
        self.tight_peers: list[list[tuple[int, np.ndarray]]] = [[] for _ in self.names]
        for m, peer, limit in self.tight_flows:
            legal = self.latency <= limit
            self.tight_peers[m].append((peer, legal))
            self.tight_peers[peer].append((m, legal.T))

    def load_of(self, which: np.ndarray, size: np.ndarray) -> np.ndarray:
        """Return the load of microservices at home, shape (N, R).

        Parameters
        ----------
        which : bool array (M,)
            The microservices that count.
        size : int array (M, R)
        """
        load = np.zeros_like(self.capacity)
        np.add.at(load, self.home[which], size[which])
        return load

    def hosting(self, which: np.ndarray) -> np.ndarray:
        """Return which nodes host some of the microservices `which` (bool, M) now, bool (N,)."""
        return np.bincount(self.home[which], minlength=len(self.price)) > 0

    def starts_of(self, target: np.ndarray) -> np.ndarray:
        """Return which microservices must start anew to reach a deployment, bool (M,).

        What is removed starts nothing.

        Parameters
        ----------
        target : int array (M,)
            The node of every microservice.
        """
        starts: np.ndarray = self.mandatory | (self.movable & (target != self.home))
        return starts

    def removals(self, *, late: bool) -> list[tuple[int, int]]:
        """Return the steps that remove what may go at once, or what has to wait for others."""
        own = np.flatnonzero(self.removed & (self.late == late))
        return [(m, self.waiting) for m in own.tolist()]

    def final_nodes(self, steps: Iterable[tuple[int, int]]) -> np.ndarray:
        """Return the node of every microservice after steps (microservice, node), shape (M,).

        A microservice that is left stopped has node -1, one that was removed `waiting`.
        """
        end = self.home.copy()
        for m, n in steps:
            end[m] = n
        return end

    def cost(self, nodes: np.ndarray) -> float:
        """Return the price of nodes that are given by number, repeated or not."""
        return int(self.price[np.unique(nodes)].sum()) / self.price_scale

    def label(self, m: int) -> str:
        """Return how messages name a microservice."""
        return self._labels[m]


# -- the instance ----------------------------------------------------------------------------------


class UpdateArrays(FleetArrays):
    """A fleet with the rules that its copies keep, what a loss leaves, and limits of nodes.

    Parameters
    ----------
    nodes, applications, cluster_latency_ms, strict
        As in `FleetArrays`.
    rules, node_sets, survival, limits
        As in the document.

    Attributes
    ----------
    rules : RuleTables
        The rules that must be kept, with the allowed nodes.
    free : bool array (M,)
        No rule that must be kept is about it, nor a set of allowed nodes.
    packed_rules, packed_wishes : int array
        These, and the soft ones, as kernels take them.
    survival : Survival
        What the loss of a node is to leave.
    limits : NodeLimits
        How much of some nodes may be used together.
    """

    def __init__(
        self,
        nodes: Sequence[UpdateNode],
        applications: Sequence[UpdateApplication],
        cluster_latency_ms: Mapping[str, Mapping[str, float]],
        strict: bool,
        rules: Sequence[UpdateRule] = (),
        node_sets: Mapping[str, Sequence[str]] | None = None,
        survival: UpdateSurvival | None = None,
        limits: Sequence[NodeLimit] = (),
    ):
        super().__init__(nodes, applications, cluster_latency_ms, strict)
        microservices = [m for a in applications for m in a.microservices]
        self._set_rules(nodes, microservices, rules, node_sets or {})
        standing = (self.price == 0) & ~self.drain
        groups = [() if m.removed else m.groups for m in microservices]
        self.survival = Survival(survival, groups, self.capacity[: len(nodes)], standing)
        used = np.bincount(self.home, minlength=len(self.price)) > 0
        self.limits = NodeLimits(limits, {n.name: k for k, n in enumerate(nodes)}, used)

    def _set_rules(
        self,
        nodes: Sequence[UpdateNode],
        microservices: Sequence[UpdateMicroservice],
        rules: Sequence[UpdateRule],
        node_sets: Mapping[str, Sequence[str]],
    ) -> None:
        number = {name: n for n, name in enumerate(self.node_names)}
        sets = {name: np.zeros(len(number), dtype=bool) for name in node_sets}
        for name, members in node_sets.items():
            sets[name][[number[n] for n in members]] = True
        domains = domains_of(nodes, self.cluster, rules)
        residents = residents_of(nodes, len(number))

        def made(soft: bool) -> RuleTables:
            return tables(
                [rule for rule in rules if rule.soft == soft],
                groups=[m.groups for m in microservices],
                allowed=[None if soft else m.allowed for m in microservices],
                node_sets=sets,
                domains=domains,
                residents=residents,
                home=self.home,
                num_nodes=len(number),
                removed=self.removed,
                priced=self.price > 0,
            )

        self.rules, wishes = made(False), made(True)
        wishes.forgiven[:] = False
        self.free: np.ndarray = (self.rules.node_set < 0) & ~self.rules.are_ruled()
        self.packed_rules, self.packed_wishes = self.rules.packed(), wishes.packed()

    def may_host(self, m: int | np.ndarray) -> np.ndarray:
        """Return on which nodes a new copy of microservice m has room by itself, bool (N,).

        Nodes that take nothing and those that it is not allowed on are none of them. Of several
        microservices, int array (k,), all rows, bool (k, N). What is removed goes nowhere.
        """
        size, own = self.new[m], self.rules.node_set[m]
        every = np.ones((1, len(self.shut)), dtype=bool)
        fits: np.ndarray = ~self.shut & np.concatenate((self.rules.allowed, every))[own]
        for r in range(size.shape[-1]):
            fits &= size[..., r, None] <= self.capacity[:, r]
        if self.removed.any():
            nowhere = np.arange(len(self.shut)) == self.waiting
            fits = np.where(self.removed[m][..., None], nowhere, fits)
        return fits

    def have_room(self) -> np.ndarray:
        """Return which microservices have some node as in `may_host`, bool (M,)."""
        result = np.zeros(len(self.home), dtype=bool)
        for s in np.unique(self.rules.node_set).tolist():
            legal = ~self.shut if s < 0 else ~self.shut & self.rules.allowed[s]
            largest = -minimal(-self.capacity[legal])
            own = np.flatnonzero(self.rules.node_set == s)
            result[own] = np.any(np.all(self.new[own, None] <= largest, axis=2), axis=1)
        return result


# -- timelines -------------------------------------------------------------------------------------

#: Heads of the columns in which a step is shown, but for whether it empties a node.
STEP_COLUMNS = (
    "step",
    "application",
    "microservice",
    "action",
    "from",
    "to",
    "target at its peak",
)


@dataclass(frozen=True, kw_only=True)
class TimelineStep:
    """One step of a plan.

    Attributes
    ----------
    number : int
        From 1.
    application, microservice : str
    action : str
        ``move``, ``restart`` (in place), ``hop`` (to a node that it leaves again), ``stop``,
        ``start`` (after a stop, or of what runs nowhere yet) or ``remove`` (for good).
    source, target : str or None
        Nodes before and after.
    peak : float
        Share of the scarcer resource of the target in use while both copies run; 0 without a
        target.
    empties : bool
        Whether this step leaves the source empty for good.
    """

    number: int
    application: str
    microservice: str
    action: str
    source: str | None
    target: str | None
    peak: float
    empties: bool


@dataclass(frozen=True)
class Timeline:
    """The course of a plan of S steps.

    Attributes
    ----------
    steps : list of TimelineStep
    nodes : list of int
        Nodes that the plan touches, in document order; without steps those that host something.
    load : int array (S + 1, nodes, R)
        Milli-CPU, MiB and other resources in use before the first step and after each.
    peak : int array (S + 1, nodes, R)
        The same with both copies of the step's microservice running.
    hosted : int array (S + 1, nodes)
        Number of microservices.
    """

    steps: list[TimelineStep]
    nodes: list[int]
    load: np.ndarray
    peak: np.ndarray
    hosted: np.ndarray

    @property
    def empties(self) -> np.ndarray:
        """Which nodes host something before the plan and nothing after it, bool (nodes,)."""
        return (self.hosted[0] > 0) & (self.hosted[-1] == 0)

    @property
    def opens(self) -> np.ndarray:
        """Which nodes host nothing before the plan and something after it, bool (nodes,)."""
        return (self.hosted[0] == 0) & (self.hosted[-1] > 0)


def timeline(arrays: UpdateArrays, steps: Sequence[tuple[int, int]]) -> Timeline:
    """Return the course of steps given as (microservice number, node number).

    The node is -1 for a stop, that of what runs nowhere for a removal.
    """
    steps = [(m, -1 if n == arrays.waiting else n) for m, n in steps]
    touched = {n for _, n in steps} | {int(arrays.home[m]) for m, _ in steps}
    nodes = sorted((touched if steps else set(arrays.home.tolist())) - {-1, arrays.waiting})
    lane = {n: k for k, n in enumerate(nodes)}
    load = np.zeros((len(steps) + 1, len(nodes), len(arrays.resources)), dtype=np.int64)
    hosted = np.zeros((len(steps) + 1, len(nodes)), dtype=np.int64)
    load[0] = arrays.initial_load[nodes]
    hosted[0] = np.bincount(arrays.home, minlength=len(arrays.price))[nodes]
    peak = load.copy()
    where = [-1 if n == arrays.waiting else n for n in arrays.home.tolist()]
    size, sources = arrays.old.copy(), []
    for k, (m, n) in enumerate(steps, start=1):
        load[k], hosted[k] = load[k - 1], hosted[k - 1]
        if n >= 0:
            load[k, lane[n]] += arrays.new[m]
            hosted[k, lane[n]] += 1
        peak[k] = load[k]
        if where[m] >= 0:
            load[k, lane[where[m]]] -= size[m]
            hosted[k, lane[where[m]]] -= 1
        if n < 0:
            peak[k] = load[k]
        else:
            size[m] = arrays.new[m]
        sources.append(where[m])
        where[m] = n
    return Timeline(_steps(arrays, steps, sources, lane, peak, hosted), nodes, load, peak, hosted)


def _steps(
    arrays: UpdateArrays,
    steps: Sequence[tuple[int, int]],
    sources: list[int],
    lane: dict[int, int],
    peak: np.ndarray,
    hosted: np.ndarray,
) -> list[TimelineStep]:
    """Return the steps in words; `lane` is the column of each node in `peak` and `hosted`."""
    results = []
    last = {m: k for k, (m, n) in enumerate(steps) if n >= 0}
    for k, ((m, n), source) in enumerate(zip(steps, sources, strict=True)):
        share = peak[k + 1, lane[n]] / np.maximum(arrays.capacity[n], 1) if n >= 0 else np.zeros(1)
        if n < 0:
            action = "remove" if arrays.removed[m] else "stop"
        elif source < 0:
            action = "start"
        elif last[m] != k:
            action = "hop"
        else:
            action = "restart" if n == source else "move"
        empties = source >= 0 and source != n and not hosted[k + 1 :, lane[source]].any()
        application, microservice = arrays.names[m]
        before, after = (None if x < 0 else arrays.node_names[x] for x in (source, n))
        results.append(
            TimelineStep(
                number=k + 1,
                application=application,
                microservice=microservice,
                action=action,
                source=before,
                target=after,
                peak=float(share.max()),
                empties=bool(empties),
            )
        )
    return results
