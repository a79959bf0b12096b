"""NodePools of Karpenter as pods ask for them: by the label that their nodes have."""

from __future__ import annotations

from collections.abc import Iterable

from placeopt.kubernetes.replicas import Replica

#: Label of the nodes that a NodePool makes; its value is the name of the NodePool.
POOL = "karpenter.sh/nodepool"
_HARD = "requiredDuringSchedulingIgnoredDuringExecution"


def pools_asked(units: Iterable[Replica]) -> set[str]:
    """Return the names of NodePools that some replicas ask for.

    A new NodePool of another name would make nodes on which they may not run.
    """
    result = set[str]()
    for unit in units:
        if POOL in unit.spec.selector:
            result.add(unit.spec.selector[POOL])
        terms = unit.spec.affinity["nodeAffinity"][_HARD]["nodeSelectorTerms"].items()
        for term in (e for t in terms for e in t["matchExpressions"].items()):
            if term["key"].value == POOL and term["operator"].value == "In":
                result.update(value.text() for value in term["values"].items())
    return result
