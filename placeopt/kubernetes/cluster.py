"""A cluster as an import reads it, before it is an instance of a problem."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from placeopt.kubernetes.calls import Latencies, WorkloadGraph
from placeopt.kubernetes.capacity import NodeCapacity
from placeopt.kubernetes.manifests import ClusterObjects
from placeopt.kubernetes.prices import PriceBook
from placeopt.kubernetes.replicas import Replica


@dataclass(frozen=True)
class ReadCluster:
    """Nodes and replicas, who calls whom, prices and latencies.

    Attributes
    ----------
    objects : ClusterObjects
    units : tuple of Replica
        All replicas.
    site : NodeCapacity
        The nodes that take part, and the replicas to place on them.
    calls : WorkloadGraph
    latencies : Latencies
    prices : PriceBook, optional
    """

    objects: ClusterObjects
    units: tuple[Replica, ...]
    site: NodeCapacity
    calls: WorkloadGraph
    latencies: Latencies
    prices: PriceBook | None = None

    def mapped(self, change: Callable[[Replica], Replica | None]) -> ReadCluster:
        """Return the cluster with changed replicas; those of which `change` makes None are gone."""
        made = {id(u): change(u) for u in self.units}
        units, here = (
            tuple(u for u in (made.get(id(old), old) for old in some) if u is not None)
            for some in (self.units, self.site.units)
        )
        listed = ((made.get(id(u), u), name) for u, name in self.site.residents)
        residents = tuple((u, name) for u, name in listed if u is not None)
        site = replace(self.site, units=here, residents=residents)
        return replace(self, units=units, site=site)

    def holding(self, why: Mapping[int, str]) -> ReadCluster:
        """Return the cluster with some replicas held where they are: id of a replica -> why."""
        if not why:
            return self
        return self.mapped(lambda u: replace(u, pins=(*u.pins, why[id(u)])) if id(u) in why else u)

    def with_replicas(self, here: tuple[Replica, ...]) -> ReadCluster:
        """Return the cluster with other replicas to place: those of now, moved or left out."""
        kept = {(u.namespace, u.name): u for u in here}
        gone = {id(u) for u in self.site.units}
        units = (kept.get((u.namespace, u.name)) if id(u) in gone else u for u in self.units)
        listed = tuple(u for u in units if u is not None)
        return replace(self, units=listed, site=replace(self.site, units=here))
