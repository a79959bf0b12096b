"""A rolling-update instance as arrays: what the referee, the models and the kernels count with."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from placeopt.core.problem import decimals, scaled_up, unit_digits

if TYPE_CHECKING:
    from placeopt.rolling_update.instance import RollingUpdate

RESOURCES = ("cpu", "memory")


class Arrays:
    """The instance by numbers. M microservices, N nodes, R clusters, all in document order.

    Attributes
    ----------
    names : list of (application, microservice)
    home : int array (M,)
        Node where each runs now.
    old, new : int array (M, 2)
        Milli-CPU and MiB of the running copy and of a new one.
    movable, pinned, mandatory : bool array (M,)
        Of a reschedulable application; must keep its node; must be restarted (its size changes, or the semantics are strict).
    capacity : int array (N, 2)
    price : int array (N,)
        In units of 1 / `price_scale`.
    cluster : int array (N,)
    drain : bool array (N,)
    latency : float array (R, R)
        In ms, inf where none is given; 0 inside a cluster unless given.
    flows : list of (microservice, microservice, limit in ms)
    tight_flows : list of int
        The flows that some pair of clusters breaks: the paper's locality constraints.
    tight_peers : list of list of int
        For every microservice those that tight flows connect it to.
    initial_load, fixed_load : int array (N, 2)
        Of everything now; of the applications that are not reschedulable.
    """

    def __init__(self, problem: RollingUpdate):
        nodes, apps = problem.nodes, problem.applications
        everything = [(a, m) for a in apps for m in a.microservices]
        self.names = [(a.name, m.name) for a, m in everything]
        number = {n.name: k for k, n in enumerate(nodes)}
        self.home = np.array([number[m.node] for _, m in everything], dtype=np.int64)
        self.old = np.array([m.old_size for _, m in everything], dtype=np.int64)
        self.new = np.array([m.new_size for _, m in everything], dtype=np.int64)
        self.movable = np.array([a.reschedulable for a, _ in everything])
        self.pinned = np.array([m.pinned for _, m in everything])
        self.mandatory = self.movable & (
            (self.new != self.old).any(axis=1) | (problem.semantics == "strict")
        )
        self.capacity = np.array([(n.cpu_millicores, n.memory_mib) for n in nodes], dtype=np.int64)
        self.drain = np.array([n.drain for n in nodes])
        prices = [n.price for n in nodes]
        digits = unit_digits(prices, len(nodes))
        self.price_scale = 10**digits
        self.price = scaled_up(prices, digits)
        self.cost_step = (
            None
            if digits < decimals(prices)
            else (math.gcd(*self.price.tolist()) or self.price_scale) / self.price_scale
        )
        self.clusters = list(dict.fromkeys(n.cluster for n in nodes))
        self.cluster = np.array([self.clusters.index(n.cluster) for n in nodes], dtype=np.int64)
        self.latency = _latency_matrix(problem.cluster_latency_ms, self.clusters)
        index = {name: k for k, name in enumerate(self.names)}
        self.flows = [
            (index[a.name, f.source], index[a.name, f.target], f.max_latency_ms)
            for a in apps
            for f in a.flows
        ]
        self.tight_flows = [
            k for k, (_, _, limit) in enumerate(self.flows) if (self.latency > limit).any()
        ]
        self.tight_peers: list[list[int]] = [[] for _ in self.names]
        for k in self.tight_flows:
            m, peer, _ = self.flows[k]
            self.tight_peers[m].append(peer)
            self.tight_peers[peer].append(m)
        self.initial_load = np.zeros_like(self.capacity)
        np.add.at(self.initial_load, self.home, self.old)
        self.fixed_load = np.zeros_like(self.capacity)
        np.add.at(self.fixed_load, self.home[~self.movable], self.old[~self.movable])

    def label(self, m: int) -> str:
        """Return how messages name a microservice."""
        return f"microservice {self.names[m][1]!r} of {self.names[m][0]!r}"


def _latency_matrix(
    given: Mapping[str, Mapping[str, float]], clusters: Sequence[str]
) -> np.ndarray:
    def between(a: str, b: str) -> float:
        forth, back = given.get(a, {}).get(b), given.get(b, {}).get(a)
        if forth is None and back is None:
            return 0.0 if a == b else math.inf
        return back if forth is None else forth  # type: ignore[return-value]

    return np.array([[between(a, b) for b in clusters] for a in clusters])
