"""Objects of small clusters, one call each, and what an import makes of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from placeopt.cli import main
from placeopt.kubernetes.importing import Imported, import_files
from placeopt.kubernetes.moving import MovingRules
from placeopt.kubernetes.options import ImportOptions

Json = dict[str, Any]
REGION, ZONE = "us-east-1", "us-east-1a"


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
