"""Deployments that change: their controller makes and ends pods as it sees fit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from placeopt.kubernetes.manifests import ENDED, ClusterObjects
from placeopt.kubernetes.reading import View

_REVISION = "deployment.kubernetes.io/revision"
#: Namespace, kind and name of a workload.
_Owner = tuple[str, str, str]


class Changing(NamedTuple):
    """What a Deployment is, in words; and whether pods of it that wait are still wanted."""

    text: str
    wanted: bool = False


_DELETED = Changing("of a Deployment that is being deleted")
_ROLLOUT = Changing("of a Deployment in the middle of a rollout")
_SHRINKS = Changing("of a Deployment that has more pods than it wants")
_GROWS = Changing("of a Deployment that has fewer pods than it wants", wanted=True)


def under_way(cluster: ClusterObjects) -> dict[_Owner, Changing]:
    """Return the Deployments that change, and how.

    One is being deleted, or its ReplicaSet. Of a rollout pods are of two ReplicaSets, or two
    ReplicaSets want pods, or those of an old revision still have some, or the controller has not
    seen the newest template yet. A Deployment with another number of pods than it wants is making
    or ending some; copies of a plan would be counted among them.
    """
    sets = _sets(cluster)
    result = _of_other_numbers(cluster)
    rolling = {o for o, names in sets.items() if len(names) > 1 or _is_old(cluster, o, names)}
    result |= dict.fromkeys(rolling | _unseen(cluster), _ROLLOUT)
    return result | dict.fromkeys(_deleted(cluster, sets), _DELETED)


def _sets(cluster: ClusterObjects) -> dict[_Owner, set[str]]:
    """Return the ReplicaSets of each Deployment that have pods or want some."""
    sets: dict[_Owner, set[str]] = {}
    for pod in cluster.pods:
        owner = pod.meta.owner
        if owner is not None and owner[0] == "ReplicaSet" and not pod.leaving:
            kind, name = cluster.owner(pod)
            if kind == "Deployment" and pod.phase not in ENDED:
                sets.setdefault((pod.meta.namespace, kind, name), set()).add(owner[1])
    for (space, name), view in cluster.sets.items():
        kind, above = cluster.owners[space, "ReplicaSet", name]
        if kind == "Deployment" and view["spec"]["replicas"].whole(0):
            sets.setdefault((space, kind, above), set()).add(name)
    return sets


def _is_old(cluster: ClusterObjects, owner: _Owner, names: set[str]) -> bool:
    """Return whether the ReplicaSets of a Deployment are of another revision than it."""
    workload = cluster.workloads.get(owner)
    wanted = None if workload is None else workload.meta.annotations.get(_REVISION)
    for name in names if wanted else ():
        view = cluster.sets.get((owner[0], name))
        has = None if view is None else view["metadata"]["annotations"].mapping().get(_REVISION)
        if has is not None and has != wanted:
            return True
    return False


def _unseen(cluster: ClusterObjects) -> set[_Owner]:
    """Return the Deployments whose controller has not seen what they ask for."""
    results = set()
    for owner, workload in cluster.workloads.items():
        view = workload.meta.view
        seen, newest = view["status"]["observedGeneration"], view["metadata"]["generation"]
        known = owner[1] == "Deployment" and seen and newest
        if known and seen.whole(0, maximum=2**53) < newest.whole(0, maximum=2**53):
            results.add(owner)
    return results


def _deleted(cluster: ClusterObjects, sets: dict[_Owner, set[str]]) -> Iterable[_Owner]:
    """Yield the Deployments that are being deleted, or whose ReplicaSet is."""
    for owner, workload in cluster.workloads.items():
        if owner[1] == "Deployment" and _is_leaving(workload.meta.view):
            yield owner
    for owner, names in sets.items():
        known = (cluster.sets.get((owner[0], name)) for name in names)
        if any(view is not None and _is_leaving(view) for view in known):
            yield owner


def _is_leaving(view: View) -> bool:
    return bool(view["metadata"]["deletionTimestamp"])


def _of_other_numbers(cluster: ClusterObjects) -> dict[_Owner, Changing]:
    """Return the Deployments with pods, but with another number of them than they want."""
    there = Counter(
        (pod.meta.namespace, *cluster.owner(pod))
        for pod in cluster.pods
        if not pod.leaving and pod.phase not in ENDED
    )
    results = {}
    for owner, workload in cluster.workloads.items():
        if owner[1] == "Deployment" and there[owner] not in (0, workload.replicas):
            results[owner] = _GROWS if there[owner] < workload.replicas else _SHRINKS
    return results
