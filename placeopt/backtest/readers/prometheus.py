"""A trace from range queries of kube-state-metrics: answers of Prometheus' HTTP API as JSON files.

Each file is what ``/api/v1/query_range`` answers for one metric, over the same time:

* ``kube_pod_info``, ``kube_pod_created``, ``kube_pod_container_resource_requests``
* ``kube_node_info``, ``kube_node_status_allocatable``
* where they are: ``kube_pod_completion_time``, ``kube_node_labels`` (instance type and zone),
  ``kube_deployment_spec_strategy_rollingupdate_max_surge`` and ``..._max_unavailable``

Series whose labels change (a pod gets its address, kube-state-metrics starts again, or has a second
replica) are one pod, or one node. A pod ends when it was completed, or with its last sample. A node
goes where only others have samples, and comes again as another one. Pods of DaemonSets come with
nodes: they are left out, and their requests are taken off the room of each node. A container that
requests nothing counts as kube-scheduler scores it: 100 thousandths of a core and 200 MiB.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

from placeopt.backtest.trace import ClusterTrace, built
from placeopt.core.errors import DocumentError
from placeopt.core.files.documents import read_json
from placeopt.core.files.lines import with_line

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
#: Labels without which a series says nothing.
_LABELS = {
    "kube_pod_info": ("namespace", "pod"),
    "kube_pod_created": ("namespace", "pod"),
    "kube_pod_completion_time": ("namespace", "pod"),
    "kube_pod_container_resource_requests": ("namespace", "pod", "resource"),
    "kube_node_info": ("node",),
    "kube_node_labels": ("node",),
    "kube_node_status_allocatable": ("node", "resource"),
    f"{_STRATEGY}_max_surge": ("namespace", "deployment"),
    f"{_STRATEGY}_max_unavailable": ("namespace", "deployment"),
}
#: Moments at which only others have samples, after which a node counts as gone.
_MISSED = 2
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
    """Return the series of all files by metric; those without a sample are left out."""
    results: dict[str, Series] = defaultdict(list)
    for file in sorted(folder.glob("*.json")):
        document = read_json(file)
        try:
            assert document["data"]["resultType"] == "matrix"
            series = [
                (dict(one["metric"]), [(float(t), float(v)) for t, v in one["values"]])
                for one in document["data"]["result"]
            ]
        except (AssertionError, KeyError, TypeError, ValueError):
            raise DocumentError(
                "is no answer of a range query of Prometheus",
                file=str(file),
                remedy="save what /api/v1/query_range answers, with resultType matrix",
            ) from None
        for k, (labels, samples) in enumerate(series):
            name = labels.get("__name__", file.stem)
            try:
                _check(name, labels, samples, f"data.result[{k}]")
            except DocumentError as error:
                raise with_line(error, file) from None
            if samples:
                results[name].append((labels, samples))
    return results


def _check(
    name: str, labels: dict[str, str], samples: list[tuple[float, float]], path: str
) -> None:
    """Raise for a series that lacks a label, or whose samples cannot be."""
    for label in _LABELS.get(name, ()):
        if label not in labels:
            raise DocumentError(
                f"a series of {name} without the label {label!r}",
                path=f"{path}.metric",
                remedy="export the metric itself, not a sum or a count of it",
            )
    for k, (t, value) in enumerate(samples):
        if not (math.isfinite(t) and math.isfinite(value)):
            raise DocumentError(
                f"the value at {t:.0f} is {value}",
                path=f"{path}.values[{k}]",
                remedy="leave the sample out",
            )
    for k, ((before, _), (after, _)) in enumerate(pairwise(samples), 1):
        if after < before:
            raise DocumentError(
                f"{after:.0f} comes after {before:.0f}: the clock goes back",
                path=f"{path}.values[{k}]",
                remedy="export the range again",
            )


def _together(
    series: Series, key: Callable[[dict[str, str]], Any]
) -> dict[Any, tuple[dict[str, str], list[tuple[float, float]]]]:
    """Return series of one thing as one: its last labels, all its samples."""
    parts: dict[Any, Series] = defaultdict(list)
    for labels, samples in series:
        parts[key(labels)].append((labels, samples))
    results = {}
    for name, some in parts.items():
        some.sort(key=lambda one: one[1][-1][0])
        labels = {k: v for one, _ in some for k, v in one.items() if v}
        results[name] = labels, sorted(sample for _, samples in some for sample in samples)
    return results


def _key(labels: dict[str, str]) -> tuple[str, str, str]:
    return labels.get("namespace", ""), labels.get("pod", ""), labels.get("uid", "")


def _requests(metrics: dict[str, Series]) -> dict[tuple[str, str, str], dict[str, float]]:
    """Return the sums of containers: cpu in cores, memory in bytes, GPUs."""
    most: dict[Any, float] = defaultdict(float)
    for labels, samples in metrics["kube_pod_container_resource_requests"]:
        name = "gpu" if labels["resource"] in _GPU else labels["resource"]
        one = _key(labels), name, labels.get("container", "")
        most[one] = max(most[one], *(v for _, v in samples))
    results: dict[tuple[str, str, str], dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for (pod, name, _), value in most.items():
        results[pod][name] += value
    return results


def _pods(metrics: dict[str, Series], begin: float, end: float) -> list[dict[str, Any]]:
    requests = _requests(metrics)
    created = {_key(labels): s[-1][1] for labels, s in metrics["kube_pod_created"]}
    ended = {_key(labels): s[-1][1] for labels, s in metrics.get("kube_pod_completion_time", [])}
    results = []
    for key, (labels, samples) in _together(metrics["kube_pod_info"], _key).items():
        if labels.get("created_by_kind") in ("DaemonSet", "Node"):
            continue
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
    seen = _together(metrics["kube_node_info"], lambda labels: labels["node"])
    moments = sorted({t for _, samples in seen.values() for t, _ in samples})
    for node, (_, samples) in seen.items():
        size = sizes[node]
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
        for k, (comes, goes) in enumerate(_lives([t for t, _ in samples], moments)):
            own = f"{node}/{k + 1}" if k else node
            one = {"name": own, "machine": name, "from_s": comes - begin}
            nodes.append(one | ({"to_s": goes - begin} if goes < end else {}))
    return nodes, list(machines.values())


def _lives(times: list[float], moments: list[float]) -> list[tuple[float, float]]:
    """Return the spans of times between which not many moments were missed."""
    at = [bisect_left(moments, t) for t in times]
    cuts = [k for k in range(1, len(at)) if at[k] - at[k - 1] > _MISSED + 1]
    return [(times[a], times[b - 1]) for a, b in zip([0, *cuts], [*cuts, len(times)], strict=True)]


def _agents(metrics: dict[str, Series]) -> dict[str, dict[str, float]]:
    """Return what pods of DaemonSets request on each node; of those that followed one another the
    most."""
    requests = _requests(metrics)
    most: dict[tuple[str, str, str], float] = defaultdict(float)
    for key, (labels, _) in _together(metrics["kube_pod_info"], _key).items():
        kind = labels.get("created_by_kind")
        if kind in ("DaemonSet", "Node") and labels.get("node"):
            owner = labels.get("created_by_name" if kind == "DaemonSet" else "pod", labels["pod"])
            for name, amount in requests.get(key, {}).items():
                one = labels["node"], f"{labels['namespace']}/{owner}", name
                most[one] = max(most[one], amount)
    results: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for (node, _, name), amount in most.items():
        results[node][name] += amount
    return results
