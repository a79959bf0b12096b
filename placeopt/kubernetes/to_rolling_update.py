"""A running cluster as a rolling-update instance: pods are microservices, namespaces applications.

What pods say about nodes and about each other is kept by node sets and rules
(`placeopt.kubernetes.rules`); what waits for a node is a microservice without one.
"""

from __future__ import annotations

from collections.abc import Iterable

from placeopt.core.errors import DocumentError
from placeopt.kubernetes.capacity import is_control_plane
from placeopt.kubernetes.cluster import (
    ImportedInstance,
    ReadCluster,
    has_prices,
    node_origins,
    node_prices,
)
from placeopt.kubernetes.given import paid_shares
from placeopt.kubernetes.instance import update_document
from placeopt.kubernetes.machines import keep_to_known
from placeopt.kubernetes.names import POOL, SPOT, lease_of
from placeopt.kubernetes.notes import note
from placeopt.kubernetes.options import ImportOptions
from placeopt.kubernetes.origin import NodeOrigin
from placeopt.kubernetes.pinned import keeps_its_node
from placeopt.kubernetes.prices import PriceBook
from placeopt.kubernetes.replicas import Replica
from placeopt.kubernetes.values import MIB


def rolling_update(cluster: ReadCluster, options: ImportOptions) -> ImportedInstance:
    """Return the instance of a cluster.

    Raises
    ------
    DocumentError
        A node has no price, or there is nothing to place.
    InfeasibleInstanceError
        Replicas that do not run yet have no room.
    """
    prices = node_prices(cluster, options)
    cluster = _with_places(cluster, options)
    if not cluster.site.units:
        raise DocumentError(
            "nothing to place: no node takes any of the pods",
            file=", ".join(cluster.objects.files),
            path="line 1",
            remedy="see what is left out, and the nodes that take part (--cordoned)",
        )
    paid = paid_shares(options.commitments, cluster.site, prices, options.region)
    paid |= _paid_anyway(cluster)
    due = {name: round(price * (1 - paid.get(name, 0.0)), 9) for name, price in prices.items()}
    document, items = update_document(cluster, options, due)
    keep_to_known(
        document,
        cluster.site.units,
        cluster.site.nodes,
        cluster.objects,
        anywhere=options.any_architecture,
    )
    _note_rounding(cluster)
    return ImportedInstance(document, items, _priced_origins(cluster, options, prices, paid))


def _paid_anyway(cluster: ReadCluster) -> dict[str, float]:
    """Return the whole share of each node that no plan can remove.

    Those of the control plane, and those that host nothing and are annotated to be left alone.
    """
    results, hosting = {}, {unit.node for unit in cluster.site.units}
    for name, node in cluster.site.nodes.items():
        if is_control_plane(node):
            results[name] = 1.0
            note("assumption", "nodes of the control plane: freeing one saves nothing", name)
        elif keeps_its_node(node) and name not in hosting:
            results[name] = 1.0
    return results


def _priced_origins(
    cluster: ReadCluster, options: ImportOptions, prices: dict[str, float], paid: dict[str, float]
) -> dict[str, NodeOrigin]:
    """Return what the nodes are in the cluster, and what they cost."""
    book, wanted = cluster.prices or PriceBook(), _pools_asked(cluster.site.units)
    priced = has_prices(cluster, options)
    return {
        name: known.model_copy(
            update={
                "price": prices[name] if priced else None,
                "paid": paid.get(name, 0.0),
                "pool_asked": known.labels.get(POOL, "") in wanted,
                "interruptions": book.interruptions(cluster.site.nodes[name], options.region)
                if lease_of(known.labels) == SPOT
                else None,
            }
        )
        for name, known in node_origins(cluster).items()
    }


def _with_places(cluster: ReadCluster, options: ImportOptions) -> ReadCluster:
    """Place the replicas of manifests; of those that wait beside a cluster, see that some node may.

    Compiled rules say where: half a second of loading that a cluster without them is spared.
    """
    if all(unit.node is not None for unit in cluster.site.units):
        return cluster
    from placeopt.kubernetes.placement import leave_out_unplaceable, place

    return (leave_out_unplaceable if cluster.objects.pods else place)(cluster, options)


def _note_rounding(cluster: ReadCluster) -> None:
    for unit in cluster.site.units:
        if unit.size.memory % MIB:
            note(
                "assumption",
                "memory requests are rounded up to whole MiB, capacities down",
                unit.label,
            )


def _pools_asked(units: Iterable[Replica]) -> set[str]:
    """Return the names of NodePools that some replicas ask for.

    A new NodePool of another name would make nodes on which they may not run.
    """
    result = set[str]()
    for unit in units:
        if POOL in unit.spec.selector:
            result.add(unit.spec.selector[POOL])
        for term in unit.spec.affinity.nodes.required.requirements:
            if term.key == POOL and term.operator == "In":
                result.update(term.values)
    return result
