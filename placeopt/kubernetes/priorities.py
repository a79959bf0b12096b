"""Priorities of pods, and pods that a lower one makes expendable."""

from __future__ import annotations

from placeopt.kubernetes.manifests import ClusterObjects
from placeopt.kubernetes.objects import PodSpec
from placeopt.kubernetes.reading import View

#: Priorities that users may give: system classes are above.
LEAST, MOST = -(2**31), 2**31 - 1


def priority_of(cluster: ClusterObjects, spec: PodSpec) -> int:
    """Return the priority of a pod: its own, that of its class, of the default class, 0."""
    if spec.view["priority"]:
        return _integer(spec.view["priority"])
    name = spec.view["priorityClassName"].text()
    if name:
        found = cluster.priorities.get(name)
        return 0 if found is None else _integer(found["value"])
    default = (view for view in cluster.priorities.values() if view["globalDefault"].flag())
    return max((_integer(view["value"]) for view in default), default=0)


def is_expendable(cluster: ClusterObjects, spec: PodSpec, below: int | None) -> bool:
    """Return whether a pod's priority is lower than `below`; None lets no pod be expendable."""
    return below is not None and priority_of(cluster, spec) < below


def _integer(view: View) -> int:
    value = view.value
    if isinstance(value, bool) or not isinstance(value, int) or not LEAST <= value <= MOST:
        raise view.fault("a priority that is no number", f"legal: a whole number from {LEAST:,}")
    return value
