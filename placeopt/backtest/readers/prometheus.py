"""A trace from range queries of kube-state-metrics: answers of Prometheus' HTTP API as JSON files.

Each file is what ``/api/v1/query_range`` answers for one metric, over the same time:

* ``kube_pod_info``, ``kube_pod_created``, ``kube_pod_container_resource_requests``
* ``kube_node_info``, ``kube_node_status_allocatable``
* where they are: ``kube_pod_completion_time``, ``kube_node_labels`` (instance type and zone),
  ``kube_deployment_spec_strategy_rollingupdate_max_surge`` and ``..._max_unavailable``

A pod ends when it was completed, or with its last sample. Pods of DaemonSets come with nodes: they
are left out, and their requests are taken off the room of each node. A container that requests
nothing counts as kube-scheduler scores it: 100 thousandths of a core and 200 MiB.
"""

from __future__ import annotations

import re
from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from typing import Any

from placeopt.backtest.trace import ClusterTrace, built
from placeopt.core.errors import DocumentError
from placeopt.core.files.documents import read_json

NEEDED = (
    "kube_pod_info",
    "kube_pod_created",
    "kube_pod_container_resource_requests",
    "kube_node_info",
    "kube_node_status_allocatable",
)
#: What kube-scheduler takes a pod for that requests nothing.
_CPU, _MEMORY = 100, 200
_GPU = ("nvidia_com_gpu", "amd_com_gpu")
_STRATEGY = "kube_deployment_spec_strategy_rollingupdate"
_TYPE = "label_node_kubernetes_io_instance_type"
_ZONE = "label_topology_kubernetes_io_zone"
#: The hash that a Deployment adds to the names of its ReplicaSets.
_HASH = re.compile(r"-[0-9bcdf-hj-np-tv-z]{6,10}$")

Series = list[tuple[dict[str, str], list[tuple[float, float]]]]


def reads(folder: Path) -> bool:
    """Whether a folder holds what this reads."""
    return any('"matrix"' in _head(file) for file in folder.glob("*.json"))


def _head(file: Path) -> str:
    with open(file, encoding="utf-8", errors="replace") as stream:
        return stream.read(2000)


def read(folder: Path) -> ClusterTrace:
    """Read all JSON files of a folder.

    Raises
    ------
    DocumentError
        A file is no answer of a range query, or a metric is missing.
    """
    metrics = _metrics(folder)
    for name in NEEDED:
        if name not in metrics:
            raise DocumentError(
                f"there is no {name}",
                file=str(folder),
                remedy=f"add the answer of /api/v1/query_range?query={name} as a file",
            )
    times = [t for series in metrics.values() for _, samples in series for t, _ in samples]
    begin, end = min(times), max(times)
    nodes, machines = _nodes(metrics, begin, end)
    pods = _pods(metrics, begin, end)
    return built(
        {
            "name": folder.resolve().name,
            "seconds": max(end - begin, 1.0),
            "machines": machines,
            "nodes": nodes,
            "pods": pods,
            "rollouts": _rollouts(metrics, {pod["workload"] for pod in pods}),
        },
        str(folder),
    )


def _rollouts(metrics: dict[str, Series], workloads: set[str]) -> dict[str, dict[str, int]]:
    """Return the strategies of the Deployments that have pods."""
    results: dict[str, dict[str, int]] = {}
    for part in ("max_surge", "max_unavailable"):
        for labels, samples in metrics.get(f"{_STRATEGY}_{part}", []):
            name = f"{labels.get('namespace', '')}/{labels['deployment']}"
            if name in workloads:
                results.setdefault(name, {})[part] = int(samples[-1][1])
    return {name: one for name, one in results.items() if any(one.values())}


def _metrics(folder: Path) -> dict[str, Series]:
    results: dict[str, Series] = defaultdict(list)
    for file in sorted(folder.glob("*.json")):
        document = read_json(file)
        try:
            assert document["data"]["resultType"] == "matrix"
            for one in document["data"]["result"]:
                labels = dict(one["metric"])
                samples = [(float(t), float(v)) for t, v in one["values"]]
                for (before, _), (after, _) in pairwise(samples):
                    if after < before:
                        raise DocumentError(
                            f"{after:.0f} comes after {before:.0f}: the clock goes back",
                            file=str(file),
                            remedy="export the range again",
                        )
                results[labels.get("__name__", file.stem)].append((labels, samples))
        except (AssertionError, KeyError, TypeError, ValueError):
            raise DocumentError(
                "is no answer of a range query of Prometheus",
                file=str(file),
                remedy="save what /api/v1/query_range answers, with resultType matrix",
            ) from None
    return results


def _key(labels: dict[str, str]) -> tuple[str, str, str]:
    return labels.get("namespace", ""), labels.get("pod", ""), labels.get("uid", "")


def _requests(metrics: dict[str, Series]) -> dict[tuple[str, str, str], dict[str, float]]:
    """Return the sums of containers: cpu in cores, memory in bytes, GPUs."""
    results: dict[tuple[str, str, str], dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for labels, samples in metrics["kube_pod_container_resource_requests"]:
        name = "gpu" if labels["resource"] in _GPU else labels["resource"]
        results[_key(labels)][name] += max(v for _, v in samples)
    return results


def _pods(metrics: dict[str, Series], begin: float, end: float) -> list[dict[str, Any]]:
    requests = _requests(metrics)
    created = {_key(labels): s[-1][1] for labels, s in metrics["kube_pod_created"]}
    ended = {_key(labels): s[-1][1] for labels, s in metrics.get("kube_pod_completion_time", [])}
    results = []
    for labels, samples in metrics["kube_pod_info"]:
        if labels.get("created_by_kind") in ("DaemonSet", "Node"):
            continue
        key = _key(labels)
        comes = max(created.get(key, samples[0][0]), begin)
        goes = ended.get(key, samples[-1][0])
        if goes < comes:
            continue  # its work ended before the export begins
        own = requests.get(key, {})
        gpus = int(own.get("gpu", 0))
        name = f"{key[0]}/{key[1]}" + (f"/{key[2]}" if key[2] else "")
        pod = {
            "name": name,
            "workload": f"{key[0]}/{_owner(labels)}",
            "cpu_millicores": round(1000 * own["cpu"]) if "cpu" in own else _CPU,
            "memory_mib": round(own["memory"] / 2**20) if "memory" in own else _MEMORY,
            "gpus": gpus,
            "from_s": comes - begin,
        }
        if labels.get("created_by_kind") == "ReplicaSet":
            pod["revision"] = labels["created_by_name"]
        if goes < end:
            pod["to_s"] = goes - begin
        results.append(pod)
    return results


def _owner(labels: dict[str, str]) -> str:
    name = labels.get("created_by_name", "") or labels["pod"]
    return _HASH.sub("", name) if labels.get("created_by_kind") == "ReplicaSet" else name


def _nodes(
    metrics: dict[str, Series], begin: float, end: float
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    sizes: dict[str, dict[str, float]] = defaultdict(dict)
    for labels, samples in metrics["kube_node_status_allocatable"]:
        name = "gpu" if labels["resource"] in _GPU else labels["resource"]
        sizes[labels["node"]][name] = samples[-1][1]
    known = {labels["node"]: labels for labels, _ in metrics.get("kube_node_labels", [])}
    taken = _agents(metrics)
    nodes: list[dict[str, Any]] = []
    machines: dict[str, dict[str, Any]] = {}
    for labels, samples in metrics["kube_node_info"]:
        node, size = labels["node"], sizes[labels["node"]]
        cpu = round(1000 * (size.get("cpu", 0) - taken[node]["cpu"]))
        memory = int((size.get("memory", 0) - taken[node]["memory"]) / 2**20)
        gpus = int(size.get("gpu", 0))
        kind = known.get(node, {}).get(_TYPE) or f"{cpu}m-{memory}Mi"
        zone = known.get(node, {}).get(_ZONE)
        name = f"{kind}/{zone}" if zone else kind
        machine = {"name": name, "cpu_millicores": cpu, "memory_mib": memory, "gpus": gpus}
        least = machines.setdefault(name, machine | {"zone": zone, "usd_per_hour": 0.0})
        least["cpu_millicores"] = min(least["cpu_millicores"], cpu)
        least["memory_mib"] = min(least["memory_mib"], memory)
        one = {"name": node, "machine": name, "from_s": samples[0][0] - begin}
        if samples[-1][0] < end:
            one["to_s"] = samples[-1][0] - begin
        nodes.append(one)
    return nodes, list(machines.values())


def _agents(metrics: dict[str, Series]) -> dict[str, dict[str, float]]:
    """Return what pods of DaemonSets request on each node."""
    requests = _requests(metrics)
    results: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for labels, _ in metrics["kube_pod_info"]:
        if labels.get("created_by_kind") in ("DaemonSet", "Node") and labels.get("node"):
            for name, amount in requests.get(_key(labels), {}).items():
                results[labels["node"]][name] += amount
    return results
