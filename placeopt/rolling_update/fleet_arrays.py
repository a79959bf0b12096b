"""Nodes and microservices of a rolling update as arrays; rules are not among them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from placeopt.core.numbers import decimals, scaled_up, unit_digits
from placeopt.rolling_update.document import UpdateApplication, UpdateMicroservice, UpdateNode
from placeopt.rolling_update.replicas import Amounts, replica_sets, with_turns

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
        self.latency = _latency_matrix(cluster_latency_ms, self.clusters)
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


def _latency_matrix(
    given: Mapping[str, Mapping[str, float]], clusters: Sequence[str]
) -> np.ndarray:
    """Return the latency between clusters, shape (R, R); one direction stands for both."""

    def between(a: str, b: str) -> float:
        back = given.get(b, {}).get(a, 0.0 if a == b else math.inf)
        return given.get(a, {}).get(b, back)

    return np.array([[between(a, b) for b in clusters] for a in clusters])
