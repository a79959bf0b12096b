"""What pods say that a problem does not know: named in the report of the import."""

from __future__ import annotations

from collections.abc import Sequence

from placeopt.kubernetes.notes import note
from placeopt.kubernetes.replicas import Replica


def name_preferences(unit: Replica) -> None:
    """Name what a pod says that no model knows: preferences, priorities, schedulers, claims."""
    view = unit.spec.view
    if not unit.bound and unit.node is None and view["resourceClaims"]:
        text = "resource claims of pods that wait: which nodes have the devices is not known"
        note("not-expressed", text, unit.label)
    if not unit.bound and not unit.stays:
        if view["priority"].value or view["priorityClassName"]:
            note("not-expressed", "priorities: no pod is evicted for another", unit.label)
        if view["schedulerName"].text("default-scheduler") != "default-scheduler":
            text = "pods of other schedulers: what these ask beside kube-scheduler's filters"
            note("not-expressed", text, unit.label)
    affinity = unit.spec.affinity["nodeAffinity"]
    if not unit.bound and affinity["preferredDuringSchedulingIgnoredDuringExecution"].value:
        note("not-expressed", "preferred node affinity", unit.label)


def name_dropped_rules(found: Sequence[Replica], problem: str) -> None:
    """Name the replicas with rules and resources that a problem cannot say, and does not pin."""
    placed_anew = problem in ("temporal", "edge-cloud")
    for unit in found:
        spec = unit.spec
        spread = spec.view["topologySpreadConstraints"].value
        affinity = [spec.affinity[kind].value for kind in ("podAffinity", "podAntiAffinity")]
        others = sorted(set(unit.further) - {"pods"})
        says = (
            (spread or any(affinity), "affinity to other pods and topology spread"),
            (others, f"further resources ({', '.join(others)[:100]})"),
            (
                problem == "temporal" and (spec.selector or spec.affinity["nodeAffinity"].value),
                "node selectors and required node affinity",
            ),
        )
        for said, what in says:
            if said and not unit.bound and (placed_anew or not unit.stays):
                note("not-expressed", what, unit.label)
    if problem in ("rescheduling", "edge-cloud"):
        note("not-expressed", "the largest number of pods of a node")
