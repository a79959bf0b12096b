"""Clusters with every kind of rule, filled by the scheduler of `scheduler_filters` pod by pod."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from scheduler_filters import HARD, HOST, ZONE, Scheduler, key_of

Json = dict[str, Any]
#: Pool -> (cores, GiB, most pods, USD per hour).
POOLS = {"small": (4, 16, 12, 0.19), "big": (8, 32, 24, 0.41), "gpu": (8, 32, 24, 1.2)}
REGION = "r1"


def prices() -> str:
    """Return the price table of the machine types as CSV."""
    rows = [f"{REGION},{pool}.x,{price}" for pool, (*_, price) in POOLS.items()]
    return "location,size,on_demand_usd_per_hour\n" + "\n".join(rows) + "\n"


def made_cluster(seed: int, nodes: int) -> list[Json]:
    """Return the objects of a cluster; about half of its room is in use.

    Beside what Deployments run there are a DaemonSet with a host port, StatefulSets, annotated
    pods, host ports, cordoned and tainted nodes, and a pod that waits.
    """
    rng = np.random.default_rng([seed, nodes])
    zones = ["a", "b", "c"][: int(rng.integers(2, 4))]
    objects = [_node(f"n{k}", zones[k % len(zones)], rng) for k in range(nodes)]
    objects[int(rng.integers(nodes))]["spec"]["unschedulable"] = True
    objects += [
        {"kind": "Namespace", "metadata": {"name": s, "labels": {"team": s[0]}}}
        for s in ("shop", "data")
    ]
    for zone in zones:
        objects += _volume(zone)
    state = Scheduler(objects)
    for name in state.nodes:
        agent = _pod(("shop", "agent"), name, "DaemonSet", {"cpu": "100m", "memory": "128Mi"}, {})
        agent["spec"]["containers"][0]["ports"] = [{"containerPort": 9, "hostPort": 9100}]
        agent["spec"]["tolerations"] = [{"operator": "Exists"}]
        state.start(agent, name)
    for k in range(2 * nodes):
        _start_workload(rng, state, k, zones)
    for thing in objects:
        thing["apiVersion"] = "v1"
    waiting = _pod(("shop", "late"), "0", "ReplicaSet", {"cpu": "200m", "memory": "128Mi"}, {})
    waiting["status"] = {"phase": "Pending"}
    return [*objects, *state.pods.values(), waiting]


def _node(name: str, zone: str, rng: np.random.Generator) -> Json:
    pool = str(rng.choice(["small", "small", "big", "big", "gpu"]))
    cores, gib, pods, _ = POOLS[pool]
    room = {"cpu": f"{cores}", "memory": f"{gib}Gi", "pods": f"{pods}", "ephemeral-storage": "20Gi"}
    labels = {HOST: name, ZONE: zone, "pool": pool, "kubernetes.io/os": "linux"}
    labels |= {"node.kubernetes.io/instance-type": f"{pool}.x"}
    labels |= {"topology.kubernetes.io/region": REGION}
    taints = []
    if pool == "gpu":
        room["nvidia.com/gpu"] = "2"
        taints.append({"key": "dedicated", "value": "gpu", "effect": "NoSchedule"})
    elif rng.random() < 0.1:
        taints.append({"key": "team", "value": "data", "effect": "NoSchedule"})
    ready = [{"type": "Ready", "status": "True"}]
    return {
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": {"taints": taints},
        "status": {"allocatable": room, "conditions": ready},
    }


def _volume(zone: str) -> list[Json]:
    term = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]}
    spec: Json = {"accessModes": ["ReadWriteMany"], "capacity": {"storage": "1Gi"}}
    volume = spec | {"nodeAffinity": {"required": {"nodeSelectorTerms": [term]}}}
    claim = {"accessModes": ["ReadWriteMany"], "volumeName": f"pv-{zone}"}
    return [
        {"kind": "PersistentVolume", "metadata": {"name": f"pv-{zone}"}, "spec": volume},
        *(
            {
                "kind": "PersistentVolumeClaim",
                "metadata": {"name": f"data-{zone}", "namespace": space},
                "spec": claim,
            }
            for space in ("shop", "data")
        ),
    ]


def _start_workload(rng: np.random.Generator, state: Scheduler, k: int, zones: list[str]) -> None:
    """Start the pods of a workload, each on a random node that the scheduler allows."""
    app = f"app{k}"
    extra, most = rules_of(rng, app, f"data-{rng.choice(zones)}")
    asked = {"cpu": f"{int(rng.integers(1, 12)) * 100}m"}
    asked["memory"] = f"{int(rng.integers(1, 12)) * 128}Mi"
    asked |= extra.pop("asked", {})
    kind = "StatefulSet" if rng.random() < 0.05 else "ReplicaSet"
    space = "data" if rng.random() < 0.3 else "shop"
    tier = "noisy" if rng.random() < 0.1 else "quiet"
    tolerated = [{"key": "team", "operator": "Equal", "value": "data", "effect": "NoSchedule"}]
    if space == "data":
        extra["tolerations"] = extra.get("tolerations", []) + tolerated
    for r in range(int(rng.integers(1, most + 1))):
        pod = _pod((space, app), str(r), kind, asked, extra)
        pod["metadata"]["labels"]["tier"] = tier
        if rng.random() < 0.02:
            safe = "cluster-autoscaler.kubernetes.io/safe-to-evict"
            pod["metadata"]["annotations"] = {safe: "false"}
        for n in rng.permutation(list(state.nodes))[:60].tolist():
            if not state.refusals(pod, n):
                state.start(pod, n)
                break


def rules_of(rng: np.random.Generator, app: str, volume: str) -> tuple[Json, int]:
    """Return what a pod of an application says of nodes and pods, and at most so many replicas."""
    kind = int(rng.integers(14))
    if kind in (0, 1, 2, 3, 4):
        return _between_pods(rng, kind, {"matchLabels": {"app": app}})
    if kind == 5:
        return {"nodeSelector": {"pool": str(rng.choice(["big", "small"]))}}, 6
    if kind == 6:
        gpu = {"key": "dedicated", "operator": "Exists"}
        return {"tolerations": [gpu], "asked": {"nvidia.com/gpu": "1"}}, 2
    if kind == 7:
        operator = str(rng.choice(["In", "NotIn"]))
        expressions = [{"key": ZONE, "operator": operator, "values": ["a"]}]
        terms = {"nodeSelectorTerms": [{"matchExpressions": expressions}]}
        return {"affinity": {"nodeAffinity": {HARD: terms}}}, 6
    if kind == 8:
        claim = {"claimName": volume}
        return {"volumes": [{"name": "v", "persistentVolumeClaim": claim}]}, 3
    if kind == 9:
        return {"asked": {"ephemeral-storage": "4Gi"}}, 5
    if kind == 10:
        return {"initContainers": [_container({"cpu": "1500m", "memory": "64Mi"})]}, 4
    if kind == 11 and rng.random() < 0.3:
        return {"ports": int(rng.integers(8000, 8003))}, 2
    return {}, 8


def _between_pods(rng: np.random.Generator, kind: int, mine: Json) -> tuple[Json, int]:
    key = str(rng.choice([ZONE, HOST]))
    if kind == 0:
        term = {"labelSelector": mine, "topologyKey": HOST}
        return {"affinity": {"podAntiAffinity": {HARD: [term]}}}, 6
    if kind == 1:
        noisy = {"matchExpressions": [{"key": "tier", "operator": "In", "values": ["noisy"]}]}
        term = {"labelSelector": noisy, "topologyKey": HOST, "namespaces": ["shop", "data"]}
        if rng.random() < 0.5:
            del term["namespaces"]
            term["namespaceSelector"] = {"matchLabels": {"team": "d"}}
        return {"affinity": {"podAntiAffinity": {HARD: [term]}}}, 3
    if kind == 2:
        term = {"labelSelector": mine, "topologyKey": ZONE}
        return {"affinity": {"podAffinity": {HARD: [term]}}}, 4
    term = {"maxSkew": 1 + kind % 2, "topologyKey": key, "labelSelector": mine}
    term["whenUnsatisfiable"] = "ScheduleAnyway" if rng.random() < 0.2 else "DoNotSchedule"
    if rng.random() < 0.3 and term["whenUnsatisfiable"] == "DoNotSchedule":
        term["minDomains"] = 2
    if rng.random() < 0.3:
        term["nodeTaintsPolicy"] = "Honor"
    return {"topologySpreadConstraints": [term]}, 9


def _container(asked: Json) -> Json:
    return {"name": f"c{len(asked)}", "image": "i", "resources": {"requests": asked}}


def _pod(workload: tuple[str, str], name: str, kind: str, asked: Json, extra: Json) -> Json:
    space, app = workload
    hashed = {"pod-template-hash": "7d"} if kind == "ReplicaSet" else {}
    owner = f"{app}-7d" if hashed else app
    extra = copy.deepcopy(extra)
    container = _container(asked)
    if port := extra.pop("ports", None):
        container["ports"] = [{"containerPort": port, "hostPort": port}]
    reference = {"apiVersion": "apps/v1", "kind": kind, "name": owner, "uid": "u"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{owner}-{name}",
            "namespace": space,
            "labels": {"app": app, **hashed},
            "ownerReferences": [reference | {"controller": True}],
        },
        "spec": {"containers": [container], **extra},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    }


def kinds_of_rules(objects: list[Json]) -> int:
    """Return how many pods say something of nodes or of other pods."""
    says = ("affinity", "topologySpreadConstraints", "nodeSelector", "tolerations", "volumes")
    return sum(o["kind"] == "Pod" and any(key in o["spec"] for key in says) for o in objects)


__all__ = ["key_of", "kinds_of_rules", "made_cluster", "prices"]
