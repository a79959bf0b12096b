"""A trace from range queries of kube-state-metrics: answers of Prometheus' HTTP API as JSON files.

Each file is what ``/api/v1/query_range`` answers for one metric, over the same time:

* ``kube_pod_info``, ``kube_pod_created``, ``kube_pod_container_resource_requests``
* ``kube_node_info``, ``kube_node_status_allocatable``
* where they are: ``kube_pod_status_phase``, ``kube_pod_completion_time``, ``kube_node_labels``
  (instance type and zone), ``kube_deployment_spec_strategy_rollingupdate_max_surge`` and
  ``..._max_unavailable``

Series whose labels change (a pod gets its address, kube-state-metrics starts again, or has a second
replica) are one pod, or one node. Where a series has no uid, it is of the pod that had its name at
the time. A pod ends when it was completed, when it is first seen as failed or succeeded (evicted
pods stay as failed), or with its last sample. A node goes where only others have samples, and comes
again as another one. Pods of DaemonSets come with nodes: they are left out, and their requests are
taken off the room of each node. What requests nothing counts as kube-scheduler scores it: 100
thousandths of a core and 200 MiB. An export of several clusters is refused.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

from placeopt.backtest.trace import ClusterTrace, built
from placeopt.core.errors import DocumentError
from placeopt.core.files.documents import read_json, with_line

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
    "kube_pod_status_phase": ("namespace", "pod", "phase"),
    "kube_pod_container_resource_requests": ("namespace", "pod", "resource"),
    "kube_node_info": ("node",),
    "kube_node_labels": ("node",),
    "kube_node_status_allocatable": ("node", "resource"),
    f"{_STRATEGY}_max_surge": ("namespace", "deployment"),
    f"{_STRATEGY}_max_unavailable": ("namespace", "deployment"),
}
#: Moments at which only others have samples, after which a node counts as gone.
_MISSED = 2
_TYPE = ("label_node_kubernetes_io_instance_type", "label_beta_kubernetes_io_instance_type")
_ZONE = ("label_topology_kubernetes_io_zone", "label_failure_domain_beta_kubernetes_io_zone")
#: Phases of pods that have ended.
_ENDED = ("Failed", "Succeeded")
#: Labels of what was asked: they change with restarts and shards, and say nothing of clusters.
_ASKED = re.compile(
    r"instance|job|endpoint|service|container|namespace|pod|node|uid|.*shard.*|__.*"
)
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
    _require_one_cluster(metrics, folder)
    times = [t for series in metrics.values() for _, samples in series for t, _ in samples]
    begin, end = min(times), max(times)
    recorded = _RecordedPods(metrics)
    nodes, machines = _nodes(metrics, _agents(recorded), begin, end, folder)
    pods = _pods(recorded, begin, end)
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


def _require_one_cluster(metrics: dict[str, Series], folder: Path) -> None:
    """Raise where a label that all series have parts what was there at the same time.

    Two servers of one cluster see the same objects; a cluster that is renamed has its old name
    before and its new one after. A label about clusters parts them whatever names they share.
    """
    seen = metrics["kube_node_info"] + metrics["kube_pod_info"]
    everywhere = set.intersection(
        *(set(labels) for series in metrics.values() for labels, _ in series)
    )
    about = {label for labels, _ in seen for label in labels if "cluster" in label.lower()}
    for label in sorted(about | {one for one in everywhere if not _ASKED.fullmatch(one)}):
        parts: dict[str, tuple[set[Any], set[float]]] = defaultdict(lambda: (set(), set()))
        for labels, samples in seen:
            names, times = parts[labels.get(label, "")]
            names.add((labels.get("namespace"), labels.get("pod"), labels.get("node")))
            times.update(t for t, _ in samples)
        for one, other in combinations(sorted(parts), 2):
            (names, times), (others, since) = parts[one], parts[other]
            beside = min(max(times), max(since)) - max(min(times), min(since))
            if beside > 0 and (label in about or not names & others):
                raise DocumentError(
                    f"is of several clusters: {label} is {one!r} and {other!r}",
                    file=str(folder),
                    remedy="query one cluster for each trace, as "
                    f'kube_pod_info{{{label}="{other}"}}',
                )


@dataclass
class _RecordedPod:
    """A pod: its last labels, when it was first and last seen, when it was created and ended, and
    the most that each container requested of a resource."""

    labels: dict[str, str]
    first: float
    last: float
    created: float | None = None
    ended: float = math.inf
    asked: dict[tuple[str, str], float] = field(default_factory=dict)

    @property
    def requests(self) -> dict[str, float]:
        """Requests of all containers: cpu in cores, memory in bytes, GPUs."""
        results: dict[str, float] = defaultdict(float)
        for (_, name), amount in self.asked.items():
            results[name] += amount
        return results


class _RecordedPods:
    """The pods of an export, found by namespace, name, and uid or time."""

    def __init__(self, metrics: dict[str, Series]):
        created = metrics["kube_pod_created"]
        again: dict[tuple[str, str], set[float]] = defaultdict(set)
        for labels, samples in created:
            again[labels["namespace"], labels["pod"]].update(value for _, value in samples)
        self._of: dict[tuple[str, str], list[_RecordedPod]] = defaultdict(list)
        known = _together(
            metrics["kube_pod_info"], lambda one: (one["namespace"], one["pod"], one.get("uid", ""))
        )
        for (space, name, uid), (labels, samples) in known.items():
            times = [t for t, _ in samples]
            cuts = [] if uid else [bisect_left(times, at) for at in sorted(again[space, name])[1:]]
            for begin, end in pairwise(dict.fromkeys([0, *cuts, len(times)])):
                self._of[space, name].append(_RecordedPod(labels, times[begin], times[end - 1]))
        for pods in self._of.values():
            pods.sort(key=lambda pod: pod.first)
        for labels, samples in created:
            for pod, some in self._shares(labels, samples):
                pod.created = some[-1][1]
        for labels, samples in metrics.get("kube_pod_completion_time", []):
            for pod, some in self._shares(labels, samples):
                pod.ended = some[-1][1]
        for labels, samples in metrics.get("kube_pod_status_phase", []):
            for pod, some in self._shares(labels, samples):
                over = [t for t, value in some if value > 0 and labels["phase"] in _ENDED]
                pod.ended = min([pod.ended, *over])
        for labels, samples in metrics["kube_pod_container_resource_requests"]:
            name = "gpu" if labels["resource"] in _GPU else labels["resource"]
            key = labels.get("container", ""), name
            for pod, some in self._shares(labels, samples):
                pod.asked[key] = max(pod.asked.get(key, 0.0), *(value for _, value in some))

    def __iter__(self) -> Iterator[_RecordedPod]:
        return (pod for pods in self._of.values() for pod in pods)

    def _shares(
        self, labels: dict[str, str], samples: list[tuple[float, float]]
    ) -> Iterator[tuple[_RecordedPod, list[tuple[float, float]]]]:
        """Yield the pods that a series is of, and which of its samples are of each."""
        pods = self._of.get((labels["namespace"], labels["pod"]), [])
        uid = labels.get("uid")
        named = [pod for pod in pods if uid and pod.labels.get("uid") == uid]
        nameless = [pod for pod in pods if not (uid and pod.labels.get("uid"))]
        some = named or nameless
        cuts = [bisect_left(samples, (pod.first, -math.inf)) for pod in some[1:]]
        for pod, (begin, end) in zip(some, pairwise([0, *cuts, len(samples)]), strict=True):
            if begin < end:
                yield pod, samples[begin:end]


def _with_node(pod: _RecordedPod) -> bool:
    """Whether a pod comes with its node: of a DaemonSet, or static."""
    return pod.labels.get("created_by_kind") in ("DaemonSet", "Node")


def _pods(recorded: _RecordedPods, begin: float, end: float) -> list[dict[str, Any]]:
    results = []
    for one in recorded:
        labels, created = one.labels, one.first if one.created is None else one.created
        comes, goes = max(created, begin), min(one.ended, one.last)
        over = goes < comes or (goes <= begin and created < begin)  # before the export begins
        if _with_node(one) or over:
            continue
        own = one.requests
        name = "/".join(filter(None, (labels["namespace"], labels["pod"], labels.get("uid"))))
        pod = {
            "name": name,
            "workload": f"{labels['namespace']}/{_owner(labels)}",
            "cpu_millicores": math.ceil(1000 * own["cpu"] - 1e-6) if "cpu" in own else _CPU,
            "memory_mib": math.ceil(own["memory"] / 2**20) if "memory" in own else _MEMORY,
            "gpus": int(own.get("gpu", 0)),
            "from_s": comes - begin,
        }
        if not (pod["cpu_millicores"] or pod["memory_mib"] or pod["gpus"]):
            pod["cpu_millicores"] = 1  # it says that it requests nothing
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
    metrics: dict[str, Series],
    taken: Mapping[str, Mapping[str, float]],
    begin: float,
    end: float,
    folder: Path,
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    sizes: dict[str, dict[str, float]] = defaultdict(dict)
    for labels, samples in metrics["kube_node_status_allocatable"]:
        name = "gpu" if labels["resource"] in _GPU else labels["resource"]
        sizes[labels["node"]][name] = samples[-1][1]
    known = {labels["node"]: labels for labels, _ in metrics.get("kube_node_labels", [])}
    nodes: list[dict[str, Any]] = []
    machines: dict[str, dict[str, Any]] = {}
    seen = _together(metrics["kube_node_info"], lambda labels: labels["node"])
    moments = sorted({t for _, samples in seen.values() for t, _ in samples})
    for node, (_, samples) in seen.items():
        kind, zone = (
            next(filter(None, map(known.get(node, {}).get, names)), None)
            for names in (_TYPE, _ZONE)
        )
        size = sizes.get(node) or _alike(node, sizes, known, folder)
        least = _machine(size, taken[node])
        name = kind or f"{least['cpu_millicores']}m-{least['memory_mib']}Mi"
        name += f"/{zone}" if zone else ""
        machine = machines.setdefault(name, {"name": name, "zone": zone, "usd_per_hour": 0.0})
        for key, amount in least.items():
            machine[key] = min(machine.get(key, amount), amount)
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


def _alike(
    node: str,
    sizes: Mapping[str, dict[str, float]],
    known: Mapping[str, dict[str, str]],
    folder: Path,
) -> dict[str, float]:
    """Return the size of a node of the same type: the node was gone before it said its own.

    Raises
    ------
    DocumentError
        There is none.
    """
    kind = next(filter(None, map(known.get(node, {}).get, _TYPE)), None)
    for other, size in sizes.items():
        if kind and kind in map(known.get(other, {}).get, _TYPE):
            return size
    raise DocumentError(
        f"kube_node_status_allocatable has no node {node!r}, which kube_node_info has",
        file=str(folder),
        remedy="export both over the same time, or leave the node out of kube_node_info",
    )


def _machine(size: Mapping[str, float], taken: Mapping[str, float]) -> dict[str, int]:
    """Return what a node has for pods beside those that come with it."""
    room = {
        "cpu_millicores": max(1, round(1000 * (size.get("cpu", 0) - taken.get("cpu", 0)))),
        "memory_mib": max(0, int((size.get("memory", 0) - taken.get("memory", 0)) / 2**20)),
        "gpus": int(size.get("gpu", 0)),
    }
    if "pods" in size:
        room["pods"] = max(0, int(size["pods"] - taken.get("pods", 0)))
    return room


def _agents(recorded: _RecordedPods) -> dict[str, dict[str, float]]:
    """Return what pods that come with nodes request on each node, and how many there are; of those
    that followed one another the most."""
    most: dict[tuple[str, str, str], float] = defaultdict(float)
    for pod in recorded:
        labels = pod.labels
        if _with_node(pod) and labels.get("node"):
            kind = "created_by_name" if labels["created_by_kind"] == "DaemonSet" else "pod"
            owner = f"{labels['namespace']}/{labels.get(kind, labels['pod'])}"
            for name, amount in [("pods", 1.0), *pod.requests.items()]:
                one = labels["node"], owner, name
                most[one] = max(most[one], amount)
    results: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for (node, _, name), amount in most.items():
        results[node][name] += amount
    return results
