"""Deployments in the middle of a rollout: their controller ends pods as it sees fit."""

from __future__ import annotations

from placeopt.kubernetes.manifests import ENDED, ClusterObjects

_REVISION = "deployment.kubernetes.io/revision"


def under_way(cluster: ClusterObjects) -> set[tuple[str, str, str]]:
    """Return (namespace, kind, name) of the Deployments with a rollout under way.

    Their pods are of two ReplicaSets, or two ReplicaSets want pods, or those of an old revision
    still have some, or their controller has not seen the newest template yet.
    """
    return _unseen(cluster) | _of_two_sets(cluster)


def _of_two_sets(cluster: ClusterObjects) -> set[tuple[str, str, str]]:
    sets: dict[tuple[str, str, str], set[str]] = {}
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
    return {
        owner for owner, names in sets.items() if len(names) > 1 or _is_old(cluster, owner, names)
    }


def _is_old(cluster: ClusterObjects, owner: tuple[str, str, str], names: set[str]) -> bool:
    """Return whether the ReplicaSets of a Deployment are of another revision than it."""
    workload = cluster.workloads.get(owner)
    wanted = None if workload is None else workload.meta.annotations.get(_REVISION)
    for name in names if wanted else ():
        view = cluster.sets.get((owner[0], name))
        has = None if view is None else view["metadata"]["annotations"].mapping().get(_REVISION)
        if has is not None and has != wanted:
            return True
    return False


def _unseen(cluster: ClusterObjects) -> set[tuple[str, str, str]]:
    """Return the Deployments whose controller has not seen what they ask for."""
    found = set()
    for owner, workload in cluster.workloads.items():
        view = workload.meta.view
        seen, newest = view["status"]["observedGeneration"], view["metadata"]["generation"]
        known = owner[1] == "Deployment" and seen and newest
        if known and seen.whole(0, maximum=2**53) < newest.whole(0, maximum=2**53):
            found.add(owner)
    return found
