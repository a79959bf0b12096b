"""Which method ``auto`` runs on a temporal instance."""

from __future__ import annotations

from placeopt.temporal.instance import Temporal

#: Up to so many replicas the exact method ends within seconds.
FEW_REPLICAS = 10


def method_for(problem: Temporal) -> str:
    """Return the exact method for small instances without limited offers, else MOEA/D."""
    unlimited = all(offer.max_instances is None for offer in problem.offers)
    few = sum(request.replicas for request in problem.requests) <= FEW_REPLICAS
    return "bin-plans" if few and unlimited else "moead"
