"""kube-scheduler's filters over plain JSON objects, and clusters with every kind of rule.

Written from the documentation of the scheduler; it shares nothing with the package. Quantities are
those that `made_cluster` writes: milli-CPU as ``100m``, memory as ``128Mi``, whole numbers else.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

Json = dict[str, Any]
ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
HARD = "requiredDuringSchedulingIgnoredDuringExecution"


def amount(text: Any) -> int:
    return int(str(text).removesuffix("m").removesuffix("Mi"))


def matches(selector: Json | None, labels: Json) -> bool:
    if selector is None:
        return False
    return all(labels.get(k) == v for k, v in selector.get("matchLabels", {}).items())


class Scheduler:
    """Nodes, volumes and the pods that run."""

    def __init__(self, objects: list[Json]):
        self.nodes = {o["metadata"]["name"]: o for o in objects if o["kind"] == "Node"}
        self.volumes = {
            o["metadata"]["name"]: o for o in objects if o["kind"] == "PersistentVolume"
        }
        self.claims = {
            o["metadata"]["name"]: o["spec"]["volumeName"]
            for o in objects
            if o["kind"] == "PersistentVolumeClaim"
        }
        self.pods: dict[str, Json] = {
            o["metadata"]["name"]: o
            for o in objects
            if o["kind"] == "Pod" and o["spec"].get("nodeName")
        }

    def labels(self, node: str) -> Json:
        labels: Json = self.nodes[node]["metadata"]["labels"]
        return labels

    def refusals(self, pod: Json, node: str) -> list[str]:
        """Return the filters that keep a pod from a node now."""
        found, spec = [], pod["spec"]
        if self.nodes[node]["spec"].get("unschedulable"):
            found.append("NodeUnschedulable")
        for taint in self.nodes[node]["spec"].get("taints", []):
            if taint["effect"] in ("NoSchedule", "NoExecute") and not any(
                t["key"] == taint["key"] for t in spec.get("tolerations", [])
            ):
                found.append("TaintToleration")
        if not self._wants(spec, node):
            found.append("NodeAffinity")
        found += [f"NodeResourcesFit {r}" for r in self._lacking(pod, node)]
        for volume in spec.get("volumes", []):
            claim = volume.get("persistentVolumeClaim", {}).get("claimName")
            if claim and not self._reaches(self.volumes[self.claims[claim]], node):
                found.append("VolumeBinding")
        found += self._apart(pod, node)
        found += self._spread(pod, node)
        return found

    def _wants(self, spec: Json, node: str) -> bool:
        labels = self.labels(node)
        if any(labels.get(k) != v for k, v in spec.get("nodeSelector", {}).items()):
            return False
        terms = (
            spec.get("affinity", {})
            .get("nodeAffinity", {})
            .get(HARD, {})
            .get("nodeSelectorTerms", [])
        )
        return not terms or any(
            all(labels.get(e["key"]) in e["values"] for e in t["matchExpressions"]) for t in terms
        )

    def _reaches(self, volume: Json, node: str) -> bool:
        terms = volume["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
        return any(
            all(self.labels(node).get(e["key"]) in e["values"] for e in t["matchExpressions"])
            for t in terms
        )

    def _lacking(self, pod: Json, node: str) -> list[str]:
        room, used = self.nodes[node]["status"]["allocatable"], {"pods": 1}
        for key, value in pod["spec"]["containers"][0]["resources"]["requests"].items():
            used[key] = amount(value)
        asked = list(used)
        for other in self.pods.values():
            if other["spec"]["nodeName"] == node:
                used["pods"] += 1
                for key, value in other["spec"]["containers"][0]["resources"]["requests"].items():
                    used[key] = used.get(key, 0) + amount(value)
        return [r for r in asked if used[r] > amount(room.get(r, 0))]

    def _near(self, selector: Json, key: str, node: str) -> int:
        where = self.labels(node).get(key)
        return sum(
            matches(selector, p["metadata"]["labels"])
            and self.labels(p["spec"]["nodeName"]).get(key) == where
            for p in self.pods.values()
        )

    def _apart(self, pod: Json, node: str) -> list[str]:
        found, labels = [], pod["metadata"]["labels"]
        affinity = pod["spec"].get("affinity", {})
        for term in affinity.get("podAntiAffinity", {}).get(HARD, []):
            if self._near(term["labelSelector"], term["topologyKey"], node):
                found.append("InterPodAffinity: anti-affinity")
        for other in self.pods.values():
            theirs = other["spec"].get("affinity", {}).get("podAntiAffinity", {}).get(HARD, [])
            for term in theirs:
                key = term["topologyKey"]
                same = self.labels(node).get(key) == self.labels(other["spec"]["nodeName"]).get(key)
                if same and matches(term["labelSelector"], labels):
                    found.append("InterPodAffinity: anti-affinity of another pod")
        for term in affinity.get("podAffinity", {}).get(HARD, []):
            anywhere = any(
                matches(term["labelSelector"], p["metadata"]["labels"]) for p in self.pods.values()
            )
            alone = not anywhere and matches(term["labelSelector"], labels)
            if not alone and not self._near(term["labelSelector"], term["topologyKey"], node):
                found.append("InterPodAffinity: affinity")
        return found

    def _spread(self, pod: Json, node: str) -> list[str]:
        found = []
        for term in pod["spec"].get("topologySpreadConstraints", []):
            if term["whenUnsatisfiable"] == "DoNotSchedule" and self.skew(pod, term, node) > 0:
                found.append("PodTopologySpread")
        return found

    def skew(self, pod: Json, term: Json, node: str) -> int:
        """Return by how much a new pod on a node would exceed the largest skew."""
        key, count = term["topologyKey"], dict[str, int]()
        legal = [n for n in self.nodes if self._wants(pod["spec"], n)]
        for n in legal:
            count[self.labels(n)[key]] = 0
        for p in self.pods.values():
            if p["spec"]["nodeName"] in legal:
                where = self.labels(p["spec"]["nodeName"])[key]
                count[where] += matches(term["labelSelector"], p["metadata"]["labels"])
        fewest = 0 if len(count) < term.get("minDomains", 1) else min(count.values())
        own = int(matches(term["labelSelector"], pod["metadata"]["labels"]))
        return count.get(self.labels(node)[key], 0) + own - fewest - int(term["maxSkew"])

    def start(self, pod: Json, node: str) -> None:
        placed = copy.deepcopy(pod)
        placed["spec"]["nodeName"] = node
        self.pods[placed["metadata"]["name"]] = placed


def replay(objects: list[Json], steps: Json) -> list[str]:
    """Make the steps of a steps document; return what the scheduler refuses, and broken ends."""
    state, found = Scheduler(objects), []
    for step in steps["steps"]:
        old = state.pods[step["pod"]] if step["pod"] else None
        assert old is not None
        if step["to"] is not None:
            copied = copy.deepcopy(old)
            copied["metadata"]["name"] = step["new_pod"]
            refused = state.refusals(copied, step["to"])
            found += [f"step {step['number']} on {step['to']}: {why}" for why in refused]
        del state.pods[step["pod"]]
        if step["to"] is not None:
            state.start(copied, step["to"])
    moved = {s["new_pod"] for s in steps["steps"] if s["to"] is not None}
    for name in moved & set(state.pods):  # at the end, as if each were the last to start
        pod = state.pods.pop(name)
        refused = state.refusals(pod, pod["spec"]["nodeName"])
        found += [f"at the end, {name}: {why}" for why in refused]
        state.pods[name] = pod
    return found


# -- clusters --------------------------------------------------------------------------------------


def node(name: str, zone: str, rng: np.random.Generator, kind: str) -> Json:
    gpu = {"nvidia.com/gpu": "2"} if kind == "gpu" else {}
    pods = str(int(rng.integers(6, 16)))
    room = {"cpu": "8000m", "memory": "16384Mi", "pods": pods, "ephemeral-storage": "20480Mi"}
    labels = {HOST: name, ZONE: zone, "pool": kind, "kubernetes.io/os": "linux"}
    taints = [{"key": "dedicated", "value": "gpu", "effect": "NoSchedule"}] if gpu else []
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": {"taints": taints},
        "status": {
            "allocatable": room | gpu,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def rules_of(rng: np.random.Generator, app: str, volume: str) -> tuple[Json, int]:
    """Return what a pod of an application says of nodes and pods, and at most so many replicas."""
    mine = {"matchLabels": {"app": app}}
    kind = int(rng.integers(12))
    key = str(rng.choice([ZONE, HOST]))
    if kind == 0:
        terms = [{"labelSelector": mine, "topologyKey": HOST}]
        return {"affinity": {"podAntiAffinity": {HARD: terms}}}, 6
    if kind == 1:
        other = {"matchLabels": {"tier": "noisy"}}
        terms = [{"labelSelector": other, "topologyKey": HOST}]
        return {"affinity": {"podAntiAffinity": {HARD: terms}}}, 3
    if kind == 2:
        terms = [{"labelSelector": mine, "topologyKey": ZONE}]
        return {"affinity": {"podAffinity": {HARD: terms}}}, 4
    if kind in (3, 4):
        term = {"maxSkew": 1 + kind % 2, "topologyKey": key, "labelSelector": mine}
        term["whenUnsatisfiable"] = "DoNotSchedule"
        if rng.random() < 0.3:
            term["minDomains"] = 2
        return {"topologySpreadConstraints": [term]}, 9
    if kind == 5:
        return {"nodeSelector": {"pool": str(rng.choice(["big", "small"]))}}, 6
    if kind == 6:
        return {"tolerations": [{"key": "dedicated", "operator": "Exists"}], "gpu": 1}, 2
    if kind == 7:
        expressions = [{"key": ZONE, "operator": "In", "values": ["a", "b"]}]
        terms = {"nodeSelectorTerms": [{"matchExpressions": expressions}]}
        return {"affinity": {"nodeAffinity": {HARD: terms}}}, 6
    if kind == 8:
        claim = {"claimName": volume}
        return {"volumes": [{"name": "v", "persistentVolumeClaim": claim}]}, 3
    if kind == 9:
        return {"ephemeral": 4096}, 5
    return {}, 8


def made_cluster(seed: int, nodes: int) -> list[Json]:
    """Return the objects of a cluster whose pods the scheduler accepted one after another."""
    rng = np.random.default_rng([seed, nodes])
    zones, kinds = ["a", "b", "c"][: int(rng.integers(2, 4))], ["big", "small", "big", "gpu"]
    objects = [
        node(f"n{k}", zones[k % len(zones)], rng, kinds[int(rng.integers(4))]) for k in range(nodes)
    ]
    for zone in zones:
        terms = [{"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]}]
        spec: Json = {"accessModes": ["ReadWriteMany"], "capacity": {"storage": "1Gi"}}
        required = {"required": {"nodeSelectorTerms": terms}}
        objects.append(
            {
                "apiVersion": "v1",
                "kind": "PersistentVolume",
                "metadata": {"name": f"pv-{zone}"},
                "spec": spec | {"nodeAffinity": required},
            }
        )
        objects.append(
            {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "metadata": {"name": f"data-{zone}", "namespace": "shop"},
                "spec": {"accessModes": ["ReadWriteMany"], "volumeName": f"pv-{zone}"},
            }
        )
    state = Scheduler(objects)
    for k in range(2 * nodes):
        extra, most = rules_of(rng, f"app{k}", f"data-{rng.choice(zones)}")
        requests = {"cpu": f"{int(rng.integers(1, 15)) * 100}m"}
        requests["memory"] = f"{int(rng.integers(1, 12)) * 128}Mi"
        if gpus := extra.pop("gpu", 0):
            requests["nvidia.com/gpu"] = str(gpus)
        if storage := extra.pop("ephemeral", 0):
            requests["ephemeral-storage"] = f"{storage}Mi"
        tier = "noisy" if rng.random() < 0.1 else "quiet"
        for r in range(int(rng.integers(1, most + 1))):
            pod = _pod(f"app{k}", r, tier, requests, extra)
            choice = [n for n in rng.permutation(list(state.nodes)) if not state.refusals(pod, n)]
            if choice:
                state.start(pod, str(choice[0]))
    return objects + list(state.pods.values())


def _pod(app: str, number: int, tier: str, requests: Json, extra: Json) -> Json:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": f"{app}-7d", "uid": "u"}
    labels = {"app": app, "tier": tier, "pod-template-hash": "7d"}
    container = {"name": "c", "image": "i", "resources": {"requests": requests}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{app}-7d-{number}",
            "namespace": "shop",
            "labels": labels,
            "ownerReferences": [owner | {"controller": True}],
        },
        "spec": {"containers": [container], **copy.deepcopy(extra)},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    }
