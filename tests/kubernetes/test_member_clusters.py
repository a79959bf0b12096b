"""Member clusters of Karmada: a pod goes where a node has room for it, not where a cluster has."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml
from little_clusters import Json, container, deployment, imported, texts

from placeopt import api
from placeopt.kubernetes.export import export
from placeopt.kubernetes.importing import Imported

GIB = 2**30
#: Grades of cpu: 0 to 1, 1 to 2, 2 to 4, and so on; the last has no end.
EDGES = ("0", "1", "2", "4", "8", "16", "9223372036854775807")


def member(
    name: str,
    cpu: int,
    nodes: dict[int, int] | None,
    *,
    allocated: str = "0",
    allocating: str = "0",
    memory: tuple[str, str] | None = ("0", "1Ti"),
    zone: str = "z",
) -> Json:
    """Return a cluster of so many cores, with so many nodes of each grade."""
    models = []
    for grade, (low, high) in enumerate(pairwise(EDGES)):
        ranges = [{"name": "cpu", "min": low, "max": high}]
        if memory:
            ranges.append({"name": "memory", "min": memory[0], "max": memory[1]})
        models.append({"grade": grade, "ranges": ranges})
    summary: Json = {
        "allocatable": {"cpu": str(cpu), "memory": "320Gi"},
        "allocated": {"cpu": allocated, "memory": "0"},
        "allocating": {"cpu": allocating, "memory": "0"},
    }
    if nodes is not None:
        listed = [{"grade": grade, "count": count} for grade, count in nodes.items()]
        summary["allocatableModelings"] = listed
    return {
        "apiVersion": "cluster.karmada.io/v1alpha1",
        "kind": "Cluster",
        "metadata": {"name": name},
        "spec": {"region": "r", "zone": zone, "resourceModels": models},
        "status": {
            "conditions": [{"type": "Ready", "status": "True"}],
            "resourceSummary": summary,
        },
    }


def leaving(made: Json) -> Json:
    """Return a cluster that is being deleted."""
    return {**made, "metadata": {**made["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}}


def workload(name: str, cpu: str, replicas: int = 1, memory: str = "1Gi") -> Json:
    return deployment(name, [None] * replicas, [container("app", cpu, memory)])[0]


def placed(done: Imported) -> Json:
    """Return workload -> {cluster: replicas} of the best plan, as Karmada gets it."""
    front = api.solve(done.problem, "greedy", seed=1)
    found = {}
    for policy in yaml.safe_load_all(export(done.problem, front.pick().plan, done.origin)):
        weights = policy["spec"]["placement"]["replicaScheduling"]["weightPreference"]
        found[policy["spec"]["resourceSelectors"][0]["name"]] = {
            name: one["weight"]
            for one in weights["staticWeightList"]
            for name in one["targetCluster"]["clusterNames"]
        }
    return found


#: Clusters, workloads -> where they go.
WHERE: dict[str, tuple[list[Json], list[Json], Json]] = {
    "many small nodes": (
        [member("a", 80, {3: 10}), member("b", 32, {4: 2})],
        [workload("big", "12")],
        {"big": {"b": 1}},
    ),
    "one large node among small ones": (
        [member("a", 96, {3: 10, 4: 1}), member("b", 30, {2: 10})],
        [workload("big", "12")],
        {"big": {"a": 1}},
    ),
    "a node without end": (
        [member("a", 40, {2: 10}), member("b", 64, {5: 1})],
        [workload("huge", "60")],
        {"huge": {"b": 1}},
    ),
    "two on one node each": (
        [member("a", 40, {2: 10}), member("b", 32, {4: 2})],
        [workload("big", "12", 2)],
        {"big": {"b": 2}},
    ),
    "what is allocated is gone": (
        [member("a", 48, {4: 3}, allocated="44"), member("b", 32, {4: 2})],
        [workload("big", "12")],
        {"big": {"b": 1}},
    ),
    "what is on its way is gone": (
        [member("a", 48, {4: 3}, allocating="44"), member("b", 32, {4: 2})],
        [workload("big", "12")],
        {"big": {"b": 1}},
    ),
    "one that is being deleted": (
        [leaving(member("a", 96, {5: 3})), member("b", 32, {4: 2})],
        [workload("big", "12")],
        {"big": {"b": 1}},
    ),
    "memory of a node": (
        [
            member("a", 80, {3: 10}, memory=("0", "8Gi")),
            member("b", 80, {3: 10}, memory=("8Gi", "64Gi")),
        ],
        [workload("fat", "1", memory="20Gi")],
        {"fat": {"b": 1}},
    ),
    "grades of cpu alone": (
        [member("a", 40, {2: 10}, memory=None), member("b", 32, {4: 2}, memory=None)],
        [workload("big", "12")],
        {"big": {"b": 1}},
    ),
    "one that says nothing is one node": (
        [member("a", 40, {2: 10}), member("b", 32, None)],
        [workload("big", "12")],
        {"big": {"b": 1}},
    ),
    "no node of a grade": (
        [member("a", 80, {3: 10, 5: 0}), member("b", 32, {4: 2})],
        [workload("big", "12")],
        {"big": {"b": 1}},
    ),
}


@pytest.mark.parametrize("case", WHERE)
def test_pods_go_where_a_node_has_room(case: str, tmp_path: Path) -> None:
    clusters, workloads, where = WHERE[case]
    assert placed(imported(tmp_path, [*clusters, *workloads], "edge-cloud")) == where


@pytest.mark.parametrize(
    ("cpu", "nodes", "sizes"),
    [
        (80, {3: 10}, [8.0] * 10),
        (40, {3: 10}, [4.0] * 10),
        (60, {3: 10}, [6.0] * 10),
        (30, {3: 10}, [4.0] * 10),
        (32, {4: 2}, [16.0, 16.0]),
        (24, {4: 2}, [12.0, 12.0]),
        (9, {0: 3, 3: 1}, [0.714, 0.714, 0.714, 6.857]),
        (20, {5: 1}, [20.0]),
        (20, {5: 2}, [16.0, 16.0]),
        (3, {1: 2}, [1.5, 1.5]),
        (0, {0: 2}, [0.0, 0.0]),
    ],
)
def test_nodes_share_the_room_of_their_cluster(
    cpu: int, nodes: dict[int, int], sizes: list[float], tmp_path: Path
) -> None:
    """Each has what its grade allows; together what the cluster has, where the grades allow it."""
    objects = [member("a", cpu, nodes), member("b", 100, None), workload("web", "100m")]
    done = imported(tmp_path, objects, "edge-cloud")
    mine = [n["cpu_cores"] for n in done.document["nodes"] if n["name"].startswith("a")]
    assert sorted(mine) == sorted(sizes)


def test_nodes_of_a_cluster_are_one_place(tmp_path: Path) -> None:
    """Delays are those of their cluster, none between them; a source may be a cluster."""
    table = tmp_path / "latency.csv"
    table.write_text("from,a,b\na,0,7\nb,7,0\n")
    objects = [member("a", 16, {3: 2}), member("b", 32, {4: 2}, zone="y"), workload("web", "1")]
    done = imported(tmp_path, objects, "edge-cloud", files={"latency": table}, source="b")
    delays = done.document["delay_ms"]
    assert delays["a/node-1"] == {"a/node-2": 0.0, "b/node-1": 7.0, "b/node-2": 7.0}
    assert delays["b/node-1"] == {"b/node-2": 0.0}
    assert done.document["applications"][0]["source"] == "b/node-1"
    assert done.origin.nodes["b/node-2"].member == "b"


def test_one_node_is_no_list(tmp_path: Path) -> None:
    done = imported(tmp_path, [member("b", 32, None), workload("web", "1")], "edge-cloud")
    assert [n["name"] for n in done.document["nodes"]] == ["b"]
    assert "taken as one node (allocatableModelings): b" in texts(done, "assumption")


def test_many_nodes_are_not_told_apart(tmp_path: Path) -> None:
    """Then what no node has room for is named, by cluster."""
    objects = [member("a", 1600, {3: 400}), member("b", 32, {4: 2}), workload("big", "12")]
    done = imported(tmp_path, objects, "edge-cloud")
    assert [n["name"] for n in done.document["nodes"]] == ["a", "b"]
    told = texts(done, "not-expressed")
    assert "more than 300 nodes together" in told
    assert "no node of a has room for, though the cluster has: default/big" in told
    assert "no node of b" not in told


@pytest.mark.parametrize(
    "change",
    [
        {"status": {"allocatableModelings": [{"grade": 99, "count": 3}]}},
        {"status": {"allocatableModelings": []}},
        {"status": {"allocatableModelings": None}},
        {"spec": {"resourceModels": None}},
    ],
)
def test_models_that_say_nothing(change: Json, tmp_path: Path) -> None:
    """The cluster is one node then, and the report says so."""
    cluster: Any = member("a", 80, {3: 10})
    cluster["spec"].update(change.get("spec", {}))
    cluster["status"]["resourceSummary"].update(change.get("status", {}))
    done = imported(tmp_path, [cluster, workload("web", "1")], "edge-cloud")
    assert [n["name"] for n in done.document["nodes"]] == ["a"]
    assert "taken as one node" in texts(done, "assumption")


def test_case_from_outside(kubernetes_data: Path, tmp_path: Path) -> None:
    path = kubernetes_data / "kubernetes_cases" / "karmada_fragment.json"
    done = imported(tmp_path, json.loads(path.read_text())["items"], "edge-cloud")
    assert placed(done) == {"big": {"b": 1}}


@pytest.mark.parametrize("case", WHERE)
def test_rolling_updates_start_pods_only_where_a_node_has_room(case: str, tmp_path: Path) -> None:
    clusters, workloads, wanted = WHERE[case]
    options = {"missing_prices": "default=0.1", "leave_out": True}
    done = imported(tmp_path, [*clusters, *workloads], "rolling-update", **options)
    for name in ("big", "huge", "fat"):
        pods = [
            m
            for a in done.document["applications"]
            for m in a["microservices"]
            if m["name"].startswith(f"{name}-")
        ]
        assert {m["node"] for m in pods} <= set(wanted.get(name, {}))
