"""Write the bundled cluster: the shop of examples/data as it runs, as `kubectl get` prints it.

    python benchmarks/make_shop.py [FOLDER]

FOLDER is ``instances`` unless given. ``clusters/shop/cluster.json`` has eight nodes of three
machine types, the Deployments and Services of ``examples/data/shop.yaml`` with their ReplicaSets
and pods, a disruption budget, and a DaemonSet in kube-system. Each pod runs where the largest share
of cpu was free when it came. ``prices.csv`` beside it has the prices of the machine types. The
instance ``rolling-update/shop.json`` and its origin are what ``placeopt import kubernetes shop
--prices shop --to rolling-update`` makes of them.
"""

from __future__ import annotations

import copy
import json
import sys
from hashlib import sha256
from pathlib import Path
from typing import Any

import yaml

from placeopt.core.files.documents import layout, write_text
from placeopt.kubernetes import origin
from placeopt.kubernetes.importing import import_files
from placeopt.kubernetes.moving import MovingRules
from placeopt.kubernetes.options import ImportOptions
from placeopt.kubernetes.values import millicores

ROOT = Path(__file__).resolve().parents[1]
MANIFESTS = ROOT / "examples" / "data" / "shop.yaml"
REGION, STAMP = "us-east-1", "2026-01-05T10:00:00Z"
#: machine type -> (milli-CPU and MiB that its kubelet leaves to pods, USD per hour)
TYPES = {
    "m5.large": (1930, 7100, 0.096),
    "m5.xlarge": (3920, 15100, 0.192),
    "c5.large": (1930, 3300, 0.085),
}
#: node -> (machine type, zone)
NODES = {
    "node-1": ("m5.large", "a"),
    "node-2": ("m5.large", "b"),
    "node-3": ("m5.large", "a"),
    "node-4": ("m5.large", "b"),
    "node-5": ("m5.xlarge", "a"),
    "node-6": ("m5.xlarge", "b"),
    "node-7": ("c5.large", "a"),
    "node-8": ("c5.large", "b"),
}
#: What runs on every node: cpu, memory.
DAEMON = ("kube-proxy", "100m", "64Mi")
Thing = dict[str, Any]


def identity(*words: str) -> str:
    """Return a UID that is the same every time."""
    digits = sha256("/".join(words).encode()).hexdigest()
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-a{digits[17:20]}-{digits[20:32]}"


def about(kind: str, name: str, space: str | None, **more: Any) -> Thing:
    """Return metadata."""
    found = {"name": name, "uid": identity(kind, space or "", name), "creationTimestamp": STAMP}
    return found | ({} if space is None else {"namespace": space}) | more


def owned_by(version: str, kind: str, name: str, space: str) -> list[Thing]:
    reference = {"apiVersion": version, "kind": kind, "name": name}
    return [reference | {"uid": identity(kind, space, name), "controller": True}]


def node(name: str) -> Thing:
    machine, zone = NODES[name]
    cpu, memory, _ = TYPES[machine]
    labels = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "node.kubernetes.io/instance-type": machine,
        "topology.kubernetes.io/region": REGION,
        "topology.kubernetes.io/zone": REGION + zone,
    }
    room = {"cpu": f"{cpu}m", "memory": f"{memory}Mi", "pods": "29"}
    status = {"allocatable": room, "conditions": [{"type": "Ready", "status": "True"}]}
    spec = {"providerID": f"aws:///{REGION}{zone}/i-{name}"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": about("Node", name, None, labels=labels),
        "spec": spec,
        "status": status,
    }


def pod(name: str, space: str, spec: Thing, labels: dict[str, str], owner: list[Thing]) -> Thing:
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": about("Pod", name, space, labels=labels, ownerReferences=owner),
        "spec": spec,
        "status": status,
    }


def daemons() -> list[Thing]:
    """Return the DaemonSet and its pod on each node."""
    name, cpu, memory = DAEMON
    labels = {"app": name}
    requests = {"requests": {"cpu": cpu, "memory": memory}}
    spec = {"containers": [{"name": name, "image": f"example.org/{name}:1", "resources": requests}]}
    template = {"metadata": {"labels": labels}, "spec": spec}
    owner = owned_by("apps/v1", "DaemonSet", name, "kube-system")
    pods = [
        pod(f"{name}-{k}", "kube-system", spec | {"nodeName": where}, labels, owner)
        for k, where in enumerate(NODES, 1)
    ]
    found = {"selector": {"matchLabels": labels}, "template": template}
    head = about("DaemonSet", name, "kube-system", labels=labels)
    return [{"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": head, "spec": found}, *pods]


def running(deployment: Thing, free: dict[str, int]) -> list[Thing]:
    """Return a Deployment with its ReplicaSet and pods; each runs where most of the cpu is free."""
    head, spec = deployment["metadata"], deployment["spec"]
    name, space = head["name"], head["namespace"]
    digest = sha256(json.dumps(spec, sort_keys=True).encode()).hexdigest()[:10]
    labels = spec["template"]["metadata"]["labels"] | {"pod-template-hash": digest}
    found = copy.deepcopy(deployment)
    found["metadata"] = about("Deployment", name, space, labels=head["labels"], generation=1)
    counts = {"replicas": spec["replicas"], "readyReplicas": spec["replicas"]}
    found["status"] = counts | {"updatedReplicas": spec["replicas"], "observedGeneration": 1}
    replica_set = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": about(
            "ReplicaSet",
            f"{name}-{digest}",
            space,
            labels=labels,
            annotations={"deployment.kubernetes.io/revision": "1"},
            ownerReferences=owned_by("apps/v1", "Deployment", name, space),
        ),
        "spec": {
            "replicas": spec["replicas"],
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": spec["template"]["spec"]},
        },
        "status": counts,
    }
    cpu = sum(
        millicores(c["resources"]["requests"]["cpu"])
        for c in spec["template"]["spec"]["containers"]
    )
    owner = owned_by("apps/v1", "ReplicaSet", f"{name}-{digest}", space)
    pods = []
    for k in range(spec["replicas"]):
        where = max(free, key=lambda n: (free[n] / TYPES[NODES[n][0]][0], n))
        free[where] -= cpu
        full = f"{name}-{digest}-{identity(name, str(k))[:5]}"
        pods.append(pod(full, space, spec["template"]["spec"] | {"nodeName": where}, labels, owner))
    return [found, replica_set, *pods]


def cluster() -> Thing:
    """Return the whole list."""
    manifests = list(yaml.safe_load_all(MANIFESTS.read_text(encoding="utf-8")))
    free = {name: TYPES[machine][0] - millicores(DAEMON[1]) for name, (machine, _) in NODES.items()}
    items = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": about("Namespace", name, None)}
        for name in ("kube-system", "shop")
    ]
    items += [*map(node, NODES), *daemons()]
    for thing in manifests:
        if thing["kind"] == "Deployment":
            items += running(thing, free)
        elif thing["kind"] == "Service":
            name, space = thing["metadata"]["name"], thing["metadata"]["namespace"]
            items.append(thing | {"metadata": about("Service", name, space)})
    budget = {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "storefront"}}}
    items.append(
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": about("PodDisruptionBudget", "storefront", "shop"),
            "spec": budget,
            "status": {"disruptionsAllowed": 1, "currentHealthy": 3, "desiredHealthy": 2},
        }
    )
    return {"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": ""}, "items": items}


def main(folder: Path) -> None:
    """Write the cluster, its prices, and the instance that they make."""
    here = folder / "clusters" / "shop"
    here.mkdir(parents=True, exist_ok=True)
    write_text(here / "cluster.json", json.dumps(cluster(), indent=1) + "\n")
    prices = [f"{REGION},{machine},{price}" for machine, (*_, price) in TYPES.items()]
    head = "location,size,on_demand_usd_per_hour"
    write_text(here / "prices.csv", "\n".join([head, *prices]) + "\n")
    options = ImportOptions(name="shop", rules=MovingRules())
    files, tables = [here / "cluster.json"], [here / "prices.csv"]
    done = import_files(files, "rolling-update", options, prices=tables)
    (folder / "rolling-update").mkdir(exist_ok=True)
    write_text(folder / "rolling-update" / "shop.json", layout(done.document) + "\n")
    named = done.origin.model_copy(update={"files": ("shop",)})
    origin.write(folder / "rolling-update" / "shop.origin.json", named)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "instances")
