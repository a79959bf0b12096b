"""Small clusters, an object at a time: nodes, and pods that run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from little_clusters import HOST_KEY, apart, spread, written
from typer.testing import CliRunner

from placeopt.cli import app

#: Spec of a pod of `web` that keeps apart from others, or is spread, by hostname.
APART = apart("web")["affinity"]
SPREAD = spread("web", HOST_KEY)["topologySpreadConstraints"]
KEEP = {"karpenter.sh/do-not-disrupt": "true"}


def node(name: str, cpu: str = "4", **more: Any) -> dict[str, Any]:
    """Return a node of a cluster."""
    labels = {"kubernetes.io/hostname": name, **more.pop("labels", {})}
    room = {"cpu": cpu, "memory": "16Gi", "pods": "110", **more.pop("room", {})}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels, "annotations": more.pop("annotations", {})},
        "spec": more,
        "status": {
            "allocatable": room,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def pod(
    name: str, on: str | None, cpu: str = "1", owner: str | None = "Deployment", **more: Any
) -> dict[str, Any]:
    """Return a pod that runs, or waits; its workload is the name up to the last dash."""
    app_name = name.rpartition("-")[0]
    meta: dict[str, Any] = {
        "name": name,
        "namespace": more.pop("space", "shop"),
        "labels": {"app": app_name, "pod-template-hash": "h"},
        "annotations": more.pop("annotations", {}),
    }
    if owner == "Deployment":
        meta["ownerReferences"] = [
            {"kind": "ReplicaSet", "name": f"{app_name}-h", "controller": True}
        ]
    elif owner is not None:
        meta["ownerReferences"] = [{"kind": owner, "name": app_name, "controller": True}]
    requests = {"cpu": cpu, "memory": more.pop("memory", "64Mi")}
    container = {"name": "c", "resources": more.pop("resources", {"requests": requests})}
    if "env" in more:
        container["env"] = [{"name": k, "value": v} for k, v in more.pop("env").items()]
    phase = more.pop("phase", "Running" if on else "Pending")
    spec = {"containers": [container], **more}
    spec |= {"nodeName": on} if on else {}
    ready = [{"type": "Ready", "status": "True" if on else "False"}]
    status = {"phase": phase, "conditions": ready}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec, "status": status}


def answered(path: Path, items: list[dict[str, Any]], *options: str, code: int = 0) -> Any:
    """Return the answer for a cluster, as JSON."""
    path.mkdir(exist_ok=True)
    written(path / "cluster.json", items)
    done = consolidated(path, *options)
    assert done.exit_code == code, done.output
    return json.loads(done.stdout)


def consolidated(path: Path, *options: str) -> Any:
    """Return what `placeopt consolidate` ends with for the cluster of a folder."""
    return CliRunner().invoke(app, ["consolidate", str(path / "cluster.json"), *options])


def told(path: Path, *options: str, form: str = "table") -> str:
    """Return the answer for the cluster of a folder in another form."""
    return str(consolidated(path, *options, "--format", form).stdout)
