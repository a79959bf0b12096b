"""A shop on three nodes: from a table of its pods to an instance and to what its names are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from placeopt.registry import from_document
from placeopt.rolling_update.problem import RollingUpdate

#: pod -> (workload, node or None while it waits, milli-CPU now, milli-CPU then)
Pods = Mapping[str, tuple[str, str | None, int, int]]


def shop_of(pods: Pods) -> RollingUpdate:
    """Return the instance."""
    services = [
        {
            "name": pod,
            "node": node,
            "cpu_millicores": now,
            "memory_mib": 64,
            "new_cpu_millicores": then,
            "new_memory_mib": 64,
        }
        for pod, (_, node, now, then) in pods.items()
    ]
    nodes = [
        {"name": n, "cluster": "c", "cpu_millicores": 1000, "memory_mib": 4096, "price": 1.0}
        for n in ("n1", "n2", "n3")
    ]
    document = {
        "problem": "rolling-update",
        "name": "shop",
        "nodes": nodes,
        "applications": [{"name": "shop", "microservices": services}],
    }
    found = from_document(document)
    assert isinstance(found, RollingUpdate)
    return found


def items_of(pods: Pods, **changes: Any) -> dict[str, Any]:
    """Return the items of the origin: workload, pod and node of every name."""
    return {
        f"shop/{pod}": {
            "namespace": "shop",
            "kind": "StatefulSet" if workload == "db" else "Deployment",
            "name": workload,
            "pod": pod,
            "node": node,
            "containers": [{"name": "server", "cpu_millicores": now, "memory_bytes": 64 << 20}],
        }
        | changes
        for pod, (workload, node, now, _) in pods.items()
    }
