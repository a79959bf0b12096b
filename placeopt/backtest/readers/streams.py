"""A trace from an instance of multi-cluster: each cluster is a node, each replica a pod.

The unit of time of the instance counts as a second. What a cluster has allocated before the trace
is taken off its room. Its `cost` is that of a replica, not of a node: nodes cost nothing unless
prices are given.
"""

from __future__ import annotations

from math import ceil
from pathlib import Path
from typing import Any

from placeopt.api import load
from placeopt.backtest.trace import ClusterTrace, built
from placeopt.core.errors import DocumentError

_KIND = "multi-cluster"


def reads(path: Path) -> bool:
    """Whether a file holds what this reads."""
    return path.is_file() and f'"{_KIND}"' in path.read_text("utf-8", errors="replace")[:2000]


def read(path: Path) -> ClusterTrace:
    """Read an instance.

    Raises
    ------
    DocumentError
        It is none; names the file.
    """
    problem: Any = load(path)
    if problem.problem != _KIND:
        raise DocumentError(
            f"is an instance of {problem.problem}",
            file=str(path),
            remedy=f"legal: one of {_KIND}, whose requests come and go",
        )
    machines = [
        {
            "name": c.name,
            "cpu_millicores": int(1000 * (c.cpu_cores - c.allocated_cpu_cores)),
            "memory_mib": int(1024 * (c.memory_gib - c.allocated_memory_gib)),
            "zone": c.name,
            "usd_per_hour": 0.0,
        }
        for c in problem.clusters
    ]
    pods = [
        {
            "name": f"{request.deployment}-{k}-{replica}",
            "workload": request.deployment,
            "cpu_millicores": ceil(1000 * request.cpu_cores),
            "memory_mib": ceil(1024 * request.memory_gib),
            "from_s": request.arrival,
            "to_s": request.arrival + request.duration,
        }
        for k, request in enumerate(problem.requests)
        for replica in range(request.replicas)
    ]
    document = {
        "name": problem.instance_name.name,
        "seconds": max(pod["to_s"] for pod in pods),
        "machines": machines,
        "nodes": [{"name": m["name"], "machine": m["name"]} for m in machines],
        "pods": pods,
        "node_start_s": 0.0,
        "pod_start_s": 0.0,
    }
    return built(document, str(path))
