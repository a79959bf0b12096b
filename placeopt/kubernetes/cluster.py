"""A cluster as an import reads it, before it is an instance of a problem."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from placeopt.kubernetes.edges import WorkloadGraph
from placeopt.kubernetes.latency import Latencies
from placeopt.kubernetes.manifests import ClusterObjects
from placeopt.kubernetes.prices import PriceBook
from placeopt.kubernetes.sites import Site
from placeopt.kubernetes.units import Unit


@dataclass(frozen=True)
class ReadCluster:
    """Nodes and replicas, who calls whom, prices and latencies.

    Attributes
    ----------
    objects : ClusterObjects
    units : tuple of Unit
        All replicas.
    site : Site
        The nodes that take part, and the replicas to place on them.
    calls : WorkloadGraph
    latencies : Latencies
    prices : PriceBook, optional
    """

    objects: ClusterObjects
    units: tuple[Unit, ...]
    site: Site
    calls: WorkloadGraph
    latencies: Latencies
    prices: PriceBook | None = None

    def holding(self, why: Mapping[int, str]) -> ReadCluster:
        """Return the cluster with some replicas held where they are: id of a replica -> why."""
        held = {id(u): replace(u, stays=u.stays or why[id(u)]) for u in self.units if id(u) in why}
        units = tuple(held.get(id(u), u) for u in self.units)
        here = tuple(held.get(id(u), u) for u in self.site.units)
        return replace(self, units=units, site=replace(self.site, units=here))

    def with_replicas(self, here: tuple[Unit, ...]) -> ReadCluster:
        """Return the cluster with other replicas to place: those of now, moved or left out."""
        kept = {(u.namespace, u.name): u for u in here}
        gone = {id(u) for u in self.site.units}
        units = (kept.get((u.namespace, u.name)) if id(u) in gone else u for u in self.units)
        listed = tuple(u for u in units if u is not None)
        return replace(self, units=listed, site=replace(self.site, units=here))
