"""Objects of small clusters, one call each, and what an import makes of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from placeopt.cli import main
from placeopt.core.fronts.front import Front
from placeopt.core.fronts.values import Point
from placeopt.kubernetes.approval import Approval
from placeopt.kubernetes.importing import Imported, import_files
from placeopt.kubernetes.moving import MovingRules
from placeopt.kubernetes.options import ImportOptions

Json = dict[str, Any]
REGION, ZONE = "us-east-1", "us-east-1a"
#: Labels of nodes that rules speak of, and the field of rules that must hold.
HOST_KEY, ZONE_KEY = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
KIND_KEY = "node.kubernetes.io/instance-type"
HARD = "requiredDuringSchedulingIgnoredDuringExecution"


def container(name: str = "app", cpu: str = "500m", memory: str = "512Mi", **more: Any) -> Json:
    """Return a container with requests."""
    requests = {key: text for key, text in (("cpu", cpu), ("memory", memory)) if text}
    resources = {"requests": requests, **more.pop("resources", {})}
    return {"name": name, "image": f"example/{name}:1", "resources": resources, **more}


def node(
    name: str,
    kind: str = "m5.xlarge",
    *,
    cpu: str = "4",
    memory: str = "16Gi",
    zone: str = ZONE,
    labels: Json | None = None,
    **spec: Any,
) -> Json:
    """Return a node that is ready."""
    room = {"cpu": cpu, "memory": memory, "pods": "58"}
    known = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "topology.kubernetes.io/zone": zone,
        "topology.kubernetes.io/region": REGION,
        "node.kubernetes.io/instance-type": kind,
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {k: v for k, v in (known | (labels or {})).items() if v is not None},
        },
        "spec": spec,
        "status": {
            "allocatable": room,
            "capacity": room,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def deployment(
    name: str,
    nodes: Sequence[str | None],
    containers: Sequence[Json] | None = None,
    *,
    space: str = "default",
    kind: str = "Deployment",
    annotations: Json | None = None,
    **spec: Any,
) -> list[Json]:
    """Return a workload, its ReplicaSet and its pods, one on each of `nodes` (None: pending)."""
    made = {"containers": list(containers or [container()]), **spec}
    labels = {"app": name}
    template = {"metadata": {"labels": labels, "annotations": annotations or {}}, "spec": made}
    meta = {"name": name, "namespace": space}
    whole = {"replicas": len(nodes), "selector": {"matchLabels": labels}, "template": template}
    objects = [{"apiVersion": "apps/v1", "kind": kind, "metadata": meta, "spec": whole}]
    owner = {"kind": kind, "name": name, "controller": True}
    if kind == "Deployment":
        digest = {"pod-template-hash": "7d9f"}
        above = {
            **meta,
            "name": f"{name}-7d9f",
            "labels": labels | digest,
            "ownerReferences": [owner],
        }
        objects.append({**objects[0], "kind": "ReplicaSet", "metadata": above})
        owner, labels = {**owner, "kind": "ReplicaSet", "name": f"{name}-7d9f"}, labels | digest
    for k, at in enumerate(nodes):
        about = {
            "name": f"{owner['name']}-{k}",
            "namespace": space,
            "labels": labels,
            "annotations": annotations or {},
            "ownerReferences": [owner],
        }
        status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
        objects.append(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": about,
                "spec": {**made, **({"nodeName": at} if at else {})},
                "status": status if at else {"phase": "Pending"},
            }
        )
    return objects


# -- what pods say of nodes and of other pods ------------------------------------------------------


def expression(key: str, operator: str, *values: str) -> Json:
    """Return a requirement of a label; an operator like Exists has no values."""
    return {"key": key, "operator": operator, **({"values": [*values]} if values else {})}


def needs(*expressions: Json, fields: bool = False) -> Json:
    """Return the affinity of a pod to nodes that meet all of some requirements."""
    term = {"matchFields" if fields else "matchExpressions": [*expressions]}
    return {"affinity": {"nodeAffinity": {HARD: {"nodeSelectorTerms": [term]}}}}


def spread(app: str, key: str = ZONE_KEY, skew: int = 1, **more: Any) -> Json:
    """Return the spread of the pods of an application over domains."""
    term = {"maxSkew": skew, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule"}
    term |= {"labelSelector": {"matchLabels": {"app": app}}}
    return {"topologySpreadConstraints": [term | more]}


def apart(app: str, key: str = HOST_KEY, kind: str = "podAntiAffinity", **more: Any) -> Json:
    """Return a rule that keeps pods off those of an application, or beside them."""
    term = {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}, **more}
    return {"affinity": {kind: {HARD: [term]}}}


def budget(app: str, space: str = "default", **spec: Any) -> Json:
    """Return the disruption budget of an application."""
    made = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget"}
    selector = {"selector": {"matchLabels": {"app": app}}}
    return {**made, "metadata": {"name": "b", "namespace": space}, "spec": selector | spec}


def taint(key: str, effect: str = "NoSchedule", **more: str) -> Json:
    """Return the taints of a node."""
    return {"taints": [{"key": key, "effect": effect, **more}]}


def node_pool(*terms: Json, name: str = "pool", inside: Json | None = None, **spec: Any) -> Json:
    """Return a NodePool; `inside` are further parts of its template."""
    made = {"template": {"spec": {"requirements": [*terms], **(inside or {})}}, **spec}
    about = {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": name}}
    return {**about, "spec": made}


# -- what an import makes of them ------------------------------------------------------------------


def written(path: Path, objects: Sequence[Json]) -> Path:
    """Write objects as a list of kubectl; return the path."""
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)}))
    return path


def imported(
    folder: Path,
    objects: Sequence[Json],
    to: str = "rolling-update",
    *,
    rules: Json | None = None,
    files: Json | None = None,
    **options: Any,
) -> Imported:
    """Import objects; `files` are arguments of `import_files`, `options` those of the import."""
    path = written(folder / "cluster.json", objects)
    made = ImportOptions(rules=MovingRules(**(rules or {})), **options)
    return import_files([path], to, made, **(files or {}))


def ended(*arguments: str) -> int:
    """Return the exit code of a command."""
    with pytest.raises(SystemExit) as end:
        main(list(arguments))
    return int(end.value.code or 0)


def texts(done: Imported, topic: str) -> str:
    """Return the notes of a topic, with what they are about."""
    return "\n".join(f"{text}: {', '.join(subjects)}" for text, subjects in done.notes.of(topic))


def services(done: Imported) -> dict[str, Json]:
    """Return name -> record of the microservices of a rolling update."""
    return {m["name"]: m for a in done.document["applications"] for m in a["microservices"]}


def homes(done: Imported) -> dict[str, Any]:
    """Return microservice -> its node, None where it waits."""
    return {name: record["node"] for name, record in services(done).items()}


def stays(done: Imported) -> set[str]:
    """Return the names of the pods that no plan moves."""
    fixed = (a for a in done.document["applications"] if a.get("reschedulable") is False)
    listed = {m["name"] for a in fixed for m in a["microservices"]}
    return listed | {name for name, record in services(done).items() if record.get("pinned")}


def nodes_of(done: Imported) -> dict[str, Json]:
    """Return name -> record of the nodes of a rolling update."""
    return {n["name"]: n for n in done.document["nodes"]}


def bought(done: Imported) -> list[Json]:
    """Return the records of the machines to buy."""
    return [n for n in done.document["nodes"] if n.get("candidate")]


def may_go(done: Imported, name: str) -> set[str]:
    """Return the nodes that a pod may go to."""
    record = services(done)[name]
    known = done.document["node_sets"][record["allowed"]] if "allowed" in record else nodes_of(done)
    return set(known)


def moves(done: Imported, *made: tuple[str, str | None]) -> Json:
    """Return a plan that moves microservices of the first application."""
    space = done.document["applications"][0]["name"]
    return {"steps": [{"application": space, "microservice": m, "to": to} for m, to in made]}


def approved(done: Imported, *made: tuple[str, str | None]) -> Approval:
    """Return the approval of a front of one plan."""
    plan = moves(done, *made)
    points = (Point(done.problem.evaluate(plan).values, plan),)
    front = Front(done.problem.instance_name, done.problem.objectives, points)
    return Approval(done.problem, plan, front, done.origin)
