"""Clusters in which everything happens at once that kube-scheduler's filters are about.

Beside what `made_clusters` has: nodes that are not ready, pods that are ending, have ended or are
static, DaemonSets that others count or keep away from, ports by protocol and address, volumes of a
driver with a limit, volumes that are not made yet, runtime classes, scheduling gates, rollouts,
resizes in place, quotas, budgets, several terms of affinity, pods that wait of each of these kinds,
and machines to buy. Every pod that runs was let in by the scheduler of `scheduler_filters`.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from made_clusters import POOLS, REGION, _container, _node, _pod, _volume, rules_of
from scheduler_filters import HARD, HOST, ZONE, Scheduler, key_of, requests

Json = dict[str, Any]
#: Kinds that are not of the core, and the version of their API.
API = {
    "ReplicaSet": "apps/v1",
    "StorageClass": "storage.k8s.io/v1",
    "CSINode": "storage.k8s.io/v1",
    "RuntimeClass": "node.k8s.io/v1",
    "PodDisruptionBudget": "policy/v1",
}
DRIVER = "blk.csi.example.com"
CANDIDATES = "machine_type,cpu,memory,zone,region,on_demand_usd_per_hour,count,labels,pods\n"


def wild_cluster(seed: int, nodes: int) -> list[Json]:
    """Return the objects of a cluster, drawn by a seed."""
    rng = np.random.default_rng([seed, nodes, 7])
    zones = ["a", "b", "c"][: int(rng.integers(2, 4))]
    objects = [_wild_node(f"n{k}", zones[k % len(zones)], rng) for k in range(nodes)]
    objects += [
        {"kind": "Namespace", "metadata": {"name": s, "labels": {"team": s[0]}}}
        for s in ("shop", "data")
    ]
    for zone in zones:
        objects += _volume(zone)
    objects += _storage(rng, nodes, zones)
    objects.append(_runtime(rng))
    state = Scheduler(objects)
    _start_daemons(rng, state)
    for k in range(2 * nodes):
        _start_workload(rng, state, k, zones)
    pods = [copy.deepcopy(pod) for pod in state.pods.values()]
    _happen(rng, pods)
    objects += [*_sets(pods), *pods, *_ended(rng, nodes), *_waiting(rng, state), *_fresh(rng)]
    _shut(rng, objects[:nodes])
    objects += [*_quotas(rng, objects), *_budgets(rng, nodes)]
    for thing in objects:
        thing.setdefault("apiVersion", API.get(thing["kind"], "v1"))
    return objects


def _wild_node(name: str, zone: str, rng: np.random.Generator) -> Json:
    node = _node(name, zone, rng)
    if rng.random() < 0.5:
        node["metadata"]["labels"]["kata"] = "true"
    if rng.random() < 0.05:
        del node["metadata"]["labels"][ZONE]
    return node


def _storage(rng: np.random.Generator, nodes: int, zones: list[str]) -> list[Json]:
    """Return classes, limits of nodes, and volumes of a driver, each with its claim."""
    found: list[Json] = []
    for name, mode in (("csi", "WaitForFirstConsumer"), ("now", "Immediate")):
        made: Json = {"kind": "StorageClass", "metadata": {"name": name}, "provisioner": DRIVER}
        made["volumeBindingMode"] = mode
        if rng.random() < 0.7:
            chosen = sorted({str(z) for z in rng.choice(zones, size=2)})
            expressions = [{"key": ZONE, "values": chosen}]
            made["allowedTopologies"] = [{"matchLabelExpressions": expressions}]
        found.append(made)
    for k in range(nodes):
        if rng.random() < 0.8:
            count = {"count": int(rng.integers(1, 4))}
            drivers = [{"name": DRIVER, "nodeID": f"n{k}", "allocatable": count}]
            about = {"name": f"n{k}"}
            found.append({"kind": "CSINode", "metadata": about, "spec": {"drivers": drivers}})
    for k in range(nodes):
        mode = "ReadWriteOnce" if k % 4 == 0 else "ReadWriteMany"
        spec: Json = {"accessModes": [mode], "capacity": {"storage": "1Gi"}}
        csi = {"driver": DRIVER, "volumeHandle": f"h{k}"}
        about = {"name": f"blk{k}"}
        found.append({"kind": "PersistentVolume", "metadata": about, "spec": {**spec, "csi": csi}})
        for space in ("shop", "data"):
            about = {"name": f"blk{k}", "namespace": space}
            claim = {"accessModes": [mode], "volumeName": f"blk{k}", "storageClassName": "csi"}
            found.append({"kind": "PersistentVolumeClaim", "metadata": about, "spec": claim})
    for name in ("csi", "now"):
        about = {"name": f"new-{name}", "namespace": "shop"}
        claim = {"accessModes": ["ReadWriteMany"], "storageClassName": name}
        claim["resources"] = {"requests": {"storage": "1Gi"}}
        found.append({"kind": "PersistentVolumeClaim", "metadata": about, "spec": claim})
    return found


def _runtime(rng: np.random.Generator) -> Json:
    return {
        "kind": "RuntimeClass",
        "metadata": {"name": "kata"},
        "handler": "kata",
        "overhead": {"podFixed": {"cpu": f"{int(rng.integers(1, 6))}00m", "memory": "128Mi"}},
        "scheduling": {"nodeSelector": {"kata": "true"}},
    }


def _start_daemons(rng: np.random.Generator, state: Scheduler) -> None:
    """Start a DaemonSet with ports on all nodes, and one that others count on some."""
    everywhere = [{"operator": "Exists"}]
    for name in state.nodes:
        agent = _pod(("shop", "agent"), name, "DaemonSet", {"cpu": "100m", "memory": "128Mi"}, {})
        agent["spec"]["containers"][0]["ports"] = [
            {"containerPort": 9, "hostPort": 9100},
            {"containerPort": 53, "hostPort": 53, "protocol": "UDP", "hostIP": "10.0.0.1"},
        ]
        agent["spec"]["tolerations"] = everywhere
        state.start(agent, name)
        if rng.random() < 0.3:
            asked = {"cpu": "50m", "memory": "64Mi"}
            noisy = _pod(("shop", "probe"), name, "DaemonSet", asked, {})
            noisy["spec"]["tolerations"] = everywhere
            noisy["metadata"]["labels"] |= {"app": f"app{int(rng.integers(6))}", "tier": "noisy"}
            if rng.random() < 0.4:
                chosen = {"matchLabels": {"app": f"app{int(rng.integers(6))}"}}
                term = {"labelSelector": chosen, "topologyKey": HOST}
                noisy["spec"]["affinity"] = {"podAntiAffinity": {HARD: [term]}}
            state.start(noisy, name)


def _wild_rules(rng: np.random.Generator, app: str, zones: list[str], k: int) -> tuple[Json, int]:
    """Return what a pod says, and at most so many replicas."""
    kind, mine = int(rng.integers(20)), {"matchLabels": {"app": app}}
    if kind < 12:
        return rules_of(rng, app, f"data-{rng.choice(zones)}")
    if kind == 12:
        return {"port": _port(rng)}, 2
    if kind in (13, 14):
        claim = {"claimName": f"blk{k % len(zones)}"}
        return {"volumes": [{"name": "v", "persistentVolumeClaim": claim}]}, 1 + kind % 2
    if kind == 15:
        return {"runtimeClassName": "kata"}, 3
    if kind == 16:
        terms = [
            {"labelSelector": mine, "topologyKey": str(rng.choice([ZONE, HOST]))},
            {
                "labelSelector": {"matchExpressions": [{"key": "app", "operator": "Exists"}]},
                "topologyKey": ZONE,
            },
        ]
        return {"affinity": {"podAffinity": {HARD: terms}}}, 4
    if kind == 17:
        keys = {"matchLabelKeys": ["pod-template-hash"], "whenUnsatisfiable": "DoNotSchedule"}
        return {"topologySpreadConstraints": _spreads(rng, mine, keys)}, 6
    if kind == 18:
        term = {"labelSelector": {"matchLabels": {"app": "app1"}}, "topologyKey": ZONE}
        return {"affinity": {"podAffinity": {HARD: [term]}}}, 2
    return {}, 8


def _spreads(rng: np.random.Generator, mine: Json, more: Json) -> list[Json]:
    """Return two spread constraints, per zone and per node."""
    found = []
    for key in (ZONE, HOST):
        term = {"maxSkew": int(rng.integers(1, 3)), "topologyKey": key, "labelSelector": mine}
        if rng.random() < 0.5:
            term["nodeAffinityPolicy"] = "Ignore"
        found.append(term | more)
    return found


def _port(rng: np.random.Generator) -> Json:
    made: Json = {"containerPort": 53, "hostPort": 53}
    made["protocol"] = str(rng.choice(["TCP", "UDP"]))
    return made | (
        {"hostIP": str(rng.choice(["10.0.0.1", "10.0.0.2"]))} if rng.random() < 0.6 else {}
    )


def _start_workload(rng: np.random.Generator, state: Scheduler, k: int, zones: list[str]) -> None:
    """Start the pods of a workload, each on a random node that the scheduler allows."""
    app = f"app{k}"
    extra, most = _wild_rules(rng, app, zones, k)
    asked = {"cpu": f"{int(rng.integers(1, 12)) * 100}m"}
    asked["memory"] = f"{int(rng.integers(1, 12)) * 128}Mi"
    asked |= extra.pop("asked", {})
    port = extra.pop("port", None)
    space = "data" if rng.random() < 0.3 else "shop"
    if space == "data":
        tolerated = {"key": "team", "operator": "Equal", "value": "data", "effect": "NoSchedule"}
        extra["tolerations"] = [*extra.get("tolerations", []), tolerated]
    for r in range(int(rng.integers(1, most + 1))):
        pod = _pod((space, app), str(r), "ReplicaSet", asked, extra)
        pod["metadata"]["labels"]["tier"] = "noisy" if k % 9 == 0 else "quiet"
        if port:
            pod["spec"]["containers"][0]["ports"] = [port]
        pod["spec"] = state.admitted(pod["spec"])
        if rng.random() < 0.05:  # its template asks for something else than it does
            pod["spec"] = copy.deepcopy(pod["spec"])
            more = {"cpu": f"{int(rng.integers(5, 25)) * 100}m", "memory": "128Mi"}
            pod["spec"]["containers"][0]["resources"]["requests"] |= more
        if rng.random() < 0.05:
            held = {"cpu": f"{int(rng.integers(5, 25)) * 100}m", "memory": "64Mi"}
            told = {"name": pod["spec"]["containers"][0]["name"], "allocatedResources": held}
            pod["status"]["containerStatuses"] = [told]
        for n in rng.permutation(list(state.nodes))[:60].tolist():
            if not state.refusals(pod, n):
                state.start(pod, n)
                break


def _sets(pods: list[Json]) -> list[Json]:
    """Return the ReplicaSets that own pods, with a template each."""
    found: dict[tuple[str, str], Json] = {}
    for pod in pods:
        owner = pod["metadata"]["ownerReferences"][0]
        if owner["kind"] == "ReplicaSet":
            about = {"name": owner["name"], "namespace": key_of(pod)[0]}
            above = {"kind": "Deployment", "name": owner["name"].rsplit("-", 1)[0]}
            about["ownerReferences"] = [above | {"controller": True}]
            spec = copy.deepcopy(pod["spec"])
            del spec["nodeName"]
            template = {"metadata": {"labels": pod["metadata"]["labels"]}, "spec": spec}
            key = key_of({"metadata": about})
            made = found.setdefault(
                key, {"kind": "ReplicaSet", "metadata": about, "spec": {"template": template}}
            )
            made["spec"]["replicas"] = made["spec"].get("replicas", 0) + 1
    return list(found.values())


def _happen(rng: np.random.Generator, pods: list[Json]) -> None:
    """Let pods end, be static, not be ready, or be of a new revision."""
    for pod in pods:
        if pod["metadata"]["ownerReferences"][0]["kind"] != "ReplicaSet":
            continue
        chance, about = rng.random(), pod["metadata"]
        if chance < 0.06:
            about["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        elif chance < 0.08:
            about["annotations"] = {"kubernetes.io/config.mirror": "x"}
            about["ownerReferences"] = [{"kind": "Node", "name": "n", "controller": True}]
        elif chance < 0.1:
            pod["status"]["conditions"][0]["status"] = "False"
        elif chance < 0.13:
            app = about["labels"]["app"]
            about["labels"]["pod-template-hash"] = "8e"
            about["ownerReferences"][0] |= {"name": f"{app}-8e"}
            about["name"] = about["name"].replace("-7d-", "-8e-")


def _ended(rng: np.random.Generator, nodes: int) -> list[Json]:
    """Return pods that have ended: they hold nothing."""
    found = []
    for k in range(3):
        pod = _pod(("shop", f"done{k}"), "0", "Job", {"cpu": "3", "memory": "8Gi"}, {})
        pod["metadata"]["labels"] |= {"app": f"app{k}", "tier": "noisy"}
        pod["spec"]["nodeName"] = f"n{int(rng.integers(nodes))}"
        pod["spec"]["containers"][0]["ports"] = [{"containerPort": 1, "hostPort": 8000 + k}]
        found.append(pod | {"status": {"phase": ["Succeeded", "Failed"][k % 2]}})
    return found


def _waiting(rng: np.random.Generator, state: Scheduler) -> list[Json]:
    """Return pods that wait: a plain one, and some of which each asks for something else."""
    new = [{"name": "v", "persistentVolumeClaim": {"claimName": "new-csi"}}]
    later = [{"name": "v", "persistentVolumeClaim": {"claimName": "new-now"}}]
    blk = [{"name": "v", "persistentVolumeClaim": {"claimName": "blk1"}}]
    kinds: list[Json] = [
        {"volumes": new},
        {"volumes": later},
        {"volumes": blk},
        {"schedulingGates": [{"name": "example.com/queue"}]},
        {"runtimeClassName": "kata"},
        {"port": _port(rng)},
        {"port": {"containerPort": 1, "hostPort": 8000}},
    ]
    chosen = [{}, *(kinds[k] for k in rng.choice(len(kinds), size=3, replace=False))]
    found = []
    for k, extra in enumerate(chosen):
        own = copy.deepcopy(extra)
        port = own.pop("port", None)
        asked = {"cpu": "200m", "memory": "128Mi"}
        pod = _pod(("shop", f"late{k}"), "0", "ReplicaSet", asked, own)
        if port:
            pod["spec"]["containers"][0]["ports"] = [port]
        pod["spec"] = state.admitted(pod["spec"])
        found.append(pod | {"status": {"phase": "Pending"}})
    return found


def _fresh(rng: np.random.Generator) -> list[Json]:
    """Return a workload without pods."""
    if rng.random() < 0.5:
        return []
    spec = {"containers": [_container({"cpu": "300m", "memory": "256Mi"})]}
    if rng.random() < 0.5:
        spec["runtimeClassName"] = "kata"
    template = {"metadata": {"labels": {"app": "fresh"}}, "spec": spec}
    about = {"name": "fresh", "namespace": "shop"}
    whole = {"replicas": 1, "template": template}
    return [{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": about, "spec": whole}]


def _shut(rng: np.random.Generator, nodes: list[Json]) -> None:
    """Cordon a node or two, and let one be not ready."""
    for k in rng.choice(len(nodes), size=2, replace=False)[: 1 + int(rng.integers(2))].tolist():
        nodes[k]["spec"]["unschedulable"] = True
        taint = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
        nodes[k]["spec"]["taints"].append(taint)
    if rng.random() < 0.5:
        node = nodes[int(rng.integers(len(nodes)))]
        node["status"]["conditions"] = [{"type": "Ready", "status": "Unknown"}]
        taint = {"key": "node.kubernetes.io/unreachable", "effect": "NoSchedule"}
        node["spec"]["taints"].append(taint)


def _quotas(rng: np.random.Generator, objects: list[Json]) -> list[Json]:
    """Return a quota of each namespace, with little room."""
    found = []
    for space in ("shop", "data"):
        pods = [o for o in objects if o["kind"] == "Pod" and key_of(o)[0] == space]
        pods = [p for p in pods if p["status"]["phase"] not in ("Succeeded", "Failed")]
        cpu = sum(requests(p["spec"])["cpu"] for p in pods)
        used = {"pods": str(len(pods)), "requests.cpu": f"{cpu}m"}
        hard = {"pods": str(len(pods) + int(rng.integers(0, 3)))}
        hard["requests.cpu"] = f"{cpu + int(rng.integers(0, 20)) * 100}m"
        if rng.random() < 0.75:
            hard = {"pods": "1000", "requests.cpu": "9000"}
        about = {"name": "q", "namespace": space}
        status = {"hard": hard, "used": used}
        found.append(
            {"kind": "ResourceQuota", "metadata": about, "spec": {"hard": hard}, "status": status}
        )
    return found


def _budgets(rng: np.random.Generator, nodes: int) -> list[Json]:
    found = []
    for k in range(0, 2 * nodes, 3):
        spec = {"selector": {"matchLabels": {"app": f"app{k}"}}}
        spec |= {"minAvailable": int(rng.integers(1, 4))}
        about = {"name": f"b{k}", "namespace": "shop"}
        found.append({"kind": "PodDisruptionBudget", "metadata": about, "spec": spec})
    return found


# -- machines to buy -------------------------------------------------------------------------------


def candidates(zones: list[str]) -> str:
    """Return machines that may be bought, as CSV."""
    cores, gib, pods, price = POOLS["big"]
    where = ";".join(zones)
    row = f"big.x,{cores},{gib}Gi,{where},{REGION},{price / 2},2,pool=big;kata=true,{pods}"
    return CANDIDATES + row + "\n"


def with_bought(objects: list[Json], steps: Json) -> list[Json]:
    """Return the objects of a cluster after what a plan buys was bought, with its agents."""
    cores, gib, pods, _ = POOLS["big"]
    found = list(objects)
    daemons = {
        p["metadata"]["ownerReferences"][0]["name"]: p
        for p in objects
        if p["kind"] == "Pod" and p["metadata"]["ownerReferences"][0]["kind"] == "DaemonSet"
    }
    for node in steps.get("buy", []):
        room = {"cpu": str(cores), "memory": f"{gib}Gi", "pods": str(pods)}
        room["ephemeral-storage"] = "20Gi"
        ready = [{"type": "Ready", "status": "True"}]
        about = {"name": node["name"], "labels": node["labels"]}
        status = {"allocatable": room, "conditions": ready}
        found.append({"kind": "Node", "metadata": about, "spec": {}, "status": status})
        for owner, daemon in daemons.items():
            pod = copy.deepcopy(daemon)
            pod["metadata"]["name"] = f"{owner}-{node['name']}"
            pod["spec"]["nodeName"] = node["name"]
            found.append(pod)
    return found
