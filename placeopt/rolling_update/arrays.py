"""A rolling-update instance as arrays: for the referee, the models and the kernels."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from placeopt.core.problem import decimals, scaled_up, unit_digits
from placeopt.rolling_update.document import UpdateApplication, UpdateNode

RESOURCES = ("cpu", "memory")


class UpdateArrays:
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
    home : int array (M,)
        Node where each runs now.
    old, new : int array (M, 2)
        Milli-CPU and MiB of the running copy and of a new one.
    movable : bool array (M,)
        Of a reschedulable application.
    pinned : bool array (M,)
        Must keep its node.
    stuck : bool array (M,)
        Not movable or pinned, so that it ends on its node.
    mandatory : bool array (M,)
        Must be restarted: its size changes, or the semantics are strict.
    capacity : int array (N, 2)
    price : int array (N,)
        In units of 1 / `price_scale`.
    cost_step : float or None
        All node costs are multiples of it.
    clusters : list of str
    cluster : int array (N,)
    drain : bool array (N,)
    latency : float array (R, R)
        In ms, inf where none is given; 0 inside a cluster unless given.
    flows : list of (microservice, microservice, limit in ms)
    tight_flows : list of (microservice, microservice, limit in ms)
        The flows that some pair of clusters breaks: the paper's locality constraints.
    tight_peers : list of list of (microservice, bool array (R, R))
        For every microservice those that tight flows connect it to, and whether a flow allows its
        own cluster (row) with that of the peer (column).
    initial_load, fixed_load : int array (N, 2)
        Of all running copies; of those that are not movable.
    """

    def __init__(
        self,
        nodes: Sequence[UpdateNode],
        applications: Sequence[UpdateApplication],
        cluster_latency_ms: Mapping[str, Mapping[str, float]],
        strict: bool,
    ):
        everything = [(a, m) for a in applications for m in a.microservices]
        self.names = [(a.name, m.name) for a, m in everything]
        self.node_names = [n.name for n in nodes]
        number = {name: k for k, name in enumerate(self.node_names)}
        self.home = np.array([number[m.node] for _, m in everything], dtype=np.int64)
        self.old = np.array([m.old_size for _, m in everything], dtype=np.int64)
        self.new = np.array([m.new_size for _, m in everything], dtype=np.int64)
        self.movable = np.array([a.reschedulable for a, _ in everything])
        self.pinned = np.array([m.pinned for _, m in everything])
        self.stuck = ~self.movable | self.pinned
        self.mandatory = self.movable & ((self.new != self.old).any(axis=1) | strict)
        self.capacity = np.array([(n.cpu_millicores, n.memory_mib) for n in nodes], dtype=np.int64)
        self.drain = np.array([n.drain for n in nodes])
        self._set_prices([n.price for n in nodes])
        self.clusters = list(dict.fromkeys(n.cluster for n in nodes))
        self.cluster = np.array([self.clusters.index(n.cluster) for n in nodes], dtype=np.int64)
        self.latency = _latency_matrix(cluster_latency_ms, self.clusters)
        self._set_flows(applications)
        self.initial_load = self.load_of(np.ones_like(self.movable), self.old)
        self.fixed_load = self.load_of(~self.movable, self.old)

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
        ]
        self.tight_flows = [flow for flow in self.flows if (self.latency > flow[2]).any()]
        self.tight_peers: list[list[tuple[int, np.ndarray]]] = [[] for _ in self.names]
        for m, peer, limit in self.tight_flows:
            legal = self.latency <= limit
            self.tight_peers[m].append((peer, legal))
            self.tight_peers[peer].append((m, legal.T))

    def load_of(self, which: np.ndarray, size: np.ndarray) -> np.ndarray:
        """Return the load of microservices at home, shape (N, 2).

        Parameters
        ----------
        which : bool array (M,)
            The microservices that count.
        size : int array (M, 2)
        """
        load = np.zeros_like(self.capacity)
        np.add.at(load, self.home[which], size[which])
        return load

    def hosting(self, which: np.ndarray) -> np.ndarray:
        """Return which nodes host some of the microservices `which` (bool, M) now, bool (N,)."""
        return np.bincount(self.home[which], minlength=len(self.price)) > 0

    def starts_of(self, target: np.ndarray) -> np.ndarray:
        """Return which microservices must start anew to reach a deployment, bool (M,).

        Parameters
        ----------
        target : int array (M,)
            The node of every microservice.
        """
        starts: np.ndarray = self.mandatory | (self.movable & (target != self.home))
        return starts

    def final_nodes(self, steps: Iterable[tuple[int, int]]) -> np.ndarray:
        """Return the node of every microservice after steps (microservice, node), shape (M,).

        A microservice that is left stopped has node -1.
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
        return f"microservice {self.names[m][1]!r} of {self.names[m][0]!r}"


def _latency_matrix(
    given: Mapping[str, Mapping[str, float]], clusters: Sequence[str]
) -> np.ndarray:
    """Return the latency between clusters, shape (R, R); one direction stands for both."""

    def between(a: str, b: str) -> float:
        back = given.get(b, {}).get(a, 0.0 if a == b else math.inf)
        return given.get(a, {}).get(b, back)

    return np.array([[between(a, b) for b in clusters] for a in clusters])
