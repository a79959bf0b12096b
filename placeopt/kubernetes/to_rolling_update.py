"""A running cluster as a rolling-update instance: pods are microservices, namespaces applications.

What pods say about nodes and about each other is kept by node sets and rules
(`placeopt.kubernetes.rules`); what waits for a node is a microservice without one.
"""

from __future__ import annotations

from placeopt.kubernetes.architectures import keep_to_known
from placeopt.kubernetes.commitments import paid_shares
from placeopt.kubernetes.gathered import (
    Gathered,
    ImportedInstance,
    has_prices,
    node_origins,
    node_prices,
)
from placeopt.kubernetes.leases import SPOT, lease_of
from placeopt.kubernetes.node_pools import POOL, pools_asked
from placeopt.kubernetes.origin import NodeOrigin
from placeopt.kubernetes.prices import PriceBook
from placeopt.kubernetes.quantities import MIB
from placeopt.kubernetes.rolling_document import update_document


def build(g: Gathered) -> ImportedInstance:
    """Return the instance of a cluster.

    Raises
    ------
    DocumentError
        A node has no price, or there is nothing to place.
    InfeasibleInstanceError
        Replicas that do not run yet have no room.
    """
    prices = node_prices(g)
    if any(unit.node is None for unit in g.site.units):
        _place_waiting(g)
    paid = paid_shares(g.options.commitments, g.site, prices, g.options.region, g.notes)
    due = {name: round(price * (1 - paid.get(name, 0.0)), 9) for name, price in prices.items()}
    document, items = update_document(g, due)
    keep_to_known(
        document,
        g.site.units,
        g.site.nodes,
        g.cluster,
        g.notes,
        anywhere=g.options.any_architecture,
    )
    _note_rounding(g)
    return ImportedInstance(document, items, _priced_origins(g, prices, paid))


def _priced_origins(
    g: Gathered, prices: dict[str, float], paid: dict[str, float]
) -> dict[str, NodeOrigin]:
    """Return what the nodes are in the cluster, and what they cost."""
    book, asked = g.book or PriceBook(), pools_asked(g.site.units)
    return {
        name: known.model_copy(
            update={
                "price": prices[name] if has_prices(g) else None,
                "paid": paid.get(name, 0.0),
                "pool_asked": known.labels.get(POOL, "") in asked,
                "interruptions": book.interruptions(g.site.nodes[name], g.options.region)
                if lease_of(known.labels) == SPOT
                else None,
            }
        )
        for name, known in node_origins(g).items()
    }


def _place_waiting(g: Gathered) -> None:
    """Place the replicas of manifests; of those that wait beside a cluster, see that some node may.

    Compiled rules say where: half a second of loading that a cluster without them is spared.
    """
    from placeopt.kubernetes.placement import leave_out_unplaceable, place

    if g.cluster.pods:
        leave_out_unplaceable(g)
    else:
        place(g)


def _note_rounding(g: Gathered) -> None:
    for unit in g.site.units:
        if unit.size.memory % MIB:
            g.notes.add(
                "assumption",
                "memory requests are rounded up to whole MiB, capacities down",
                unit.label,
            )
