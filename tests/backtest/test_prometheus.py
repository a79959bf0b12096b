"""Exports of kube-state-metrics: who ended when, whose series is whose, of which cluster."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from placeopt.backtest.readers import read as read_folder
from placeopt.backtest.trace import ClusterTrace
from placeopt.core.errors import DocumentError

Series = list[tuple[dict[str, str], list[Any]]]
POD = {"namespace": "d", "pod": "p", "uid": "u"}
UNNAMED = {"namespace": "d", "pod": "p"}


def at(value: object, begin: int = 0, end: int = 11) -> list[Any]:
    """Return samples of minutes `begin` to `end`, 60 s apart from 1000 s on."""
    return [[1000 + 60 * k, str(value)] for k in range(begin, end)]


def exported(folder: Path, **more: Series) -> ClusterTrace:
    """Return the trace of an export of a pod on two nodes; `more` stands in a metric's place."""
    series: dict[str, Series] = {
        "kube_pod_info": [({**POD, "node": "a"}, at(1))],
        "kube_pod_created": [(POD, at(1000))],
        "kube_pod_container_resource_requests": [
            ({**POD, "container": "c", "resource": "cpu"}, at(1))
        ],
        "kube_node_info": [({"node": "a"}, at(1)), ({"node": "b"}, at(1))],
        "kube_node_status_allocatable": [
            ({"node": n, "resource": r}, at(v))
            for n in "ab"
            for r, v in (("cpu", 4), ("memory", 2**33), ("pods", 20))
        ],
    } | more
    for name, some in series.items():
        result = [{"metric": {"__name__": name, **labels}, "values": v} for labels, v in some]
        text = json.dumps({"data": {"resultType": "matrix", "result": result}})
        (folder / f"{name}.json").write_text(text)
    return read_folder(folder)


def test_what_an_export_tells(tmp_path: Path) -> None:
    """Containers together, owners, rollouts, types of nodes; DaemonSets are off their room."""
    web = {"namespace": "d", "pod": "web-7f9c6d5b8-x", "uid": "u"}
    agent = {"namespace": "d", "pod": "agent-1", "uid": "v"}
    owner = {"created_by_kind": "ReplicaSet", "created_by_name": "web-7f9c6d5b8", "node": "a"}
    daemon = {"created_by_kind": "DaemonSet", "node": "a"}
    kind = {"label_node_kubernetes_io_instance_type": "m5.xlarge"}
    strategy = "kube_deployment_spec_strategy_rollingupdate_max"
    of_web = {"namespace": "d", "deployment": "web"}
    more: dict[str, Series] = {
        "kube_pod_info": [({**web, **owner}, at(1, 2, 8)), ({**agent, **daemon}, at(1))],
        "kube_pod_created": [(web, at(1100, 2, 8)), (agent, at(5))],
        "kube_pod_container_resource_requests": [
            ({**web, "resource": "cpu", "container": "a"}, at(0.5, 2, 8)),
            ({**web, "resource": "cpu", "container": "b"}, at(0.25, 2, 8)),
            ({**agent, "resource": "cpu", "container": "c"}, at(0.1)),
        ],
        "kube_node_info": [({"node": "a"}, at(1))],
        "kube_node_labels": [({"node": "a", **kind}, at(1))],
        f"{strategy}_surge": [(of_web, at(2))],
        f"{strategy}_unavailable": [(of_web, at(0))],
    }
    trace = exported(tmp_path, **more)
    (pod,) = trace.pods
    assert (pod.workload, pod.cpu_millicores, pod.memory_mib) == ("d/web", 750, 200)
    assert (pod.from_s, pod.to_s, pod.revision) == (100, 420, "web-7f9c6d5b8")
    assert trace.rollouts["d/web"].model_dump() == {"max_surge": 2, "max_unavailable": 0}
    assert (trace.machines[0].name, trace.machines[0].cpu_millicores) == ("m5.xlarge", 3900)
    (tmp_path / "kube_node_info.json").unlink()
    with pytest.raises(DocumentError, match="there is no kube_node_info; add"):
        read_folder(tmp_path)


@pytest.mark.parametrize(
    ("metric", "series", "words"),
    [
        ("kube_node_info", [({}, [[0, "1"]])], ("without the label 'node'", "not a sum")),
        ("kube_pod_info", [(UNNAMED, [[9, "NaN"]])], ("is nan", "leave")),
        ("kube_node_info", [({"node": "a"}, [[9, "1"], [3, "1"]])], ("clock goes back", "again")),
    ],
)
def test_a_malformed_export_gets_one_message(tmp_path, metric, series, words) -> None:
    with pytest.raises(DocumentError) as error:
        exported(tmp_path, **{metric: series})
    message = str(error.value)
    assert f"{metric}.json: line 1, data.result[0]" in message
    assert all(word in message for word in words), message


# -- ends ------------------------------------------------------------------------------------------


def phase(name: str, *samples: Any, labels: dict[str, str] = POD) -> tuple[dict[str, str], Any]:
    return {**labels, "phase": name}, [s for some in samples for s in some]


@pytest.mark.parametrize(
    ("phases", "ends"),
    [
        ([phase("Failed", at(1, 4))], 240),
        ([phase("Failed", at(0, 0, 4), at(1, 4))], 240),
        ([phase("Running", at(1, 0, 3)), phase("Succeeded", at(1, 3))], 180),
        ([phase("Pending", at(1))], None),
        ([phase("Failed", at(0)), phase("Running", at(1))], None),
        ([phase("Failed", at(1, 6), labels=UNNAMED)], 360),
        (
            [phase("Failed", at(1, 5)), phase("Failed", at(1, 4), labels=POD | {"replica": "b"})],
            240,
        ),
    ],
)
def test_a_pod_that_has_failed_has_ended(tmp_path: Path, phases: Series, ends: Any) -> None:
    (pod,) = exported(tmp_path, kube_pod_status_phase=phases).pods
    assert (pod.from_s, pod.to_s) == (0, ends)


def test_the_moment_of_completion_counts_before_the_sample_that_shows_it(tmp_path: Path) -> None:
    more = {
        "kube_pod_completion_time": [(POD, at(1215, 4))],
        "kube_pod_status_phase": [phase("Succeeded", at(1, 4))],
    }
    assert exported(tmp_path, **more).pods[0].to_s == 215


def test_what_had_failed_before_the_export_is_left_out(tmp_path: Path) -> None:
    other = {"namespace": "d", "pod": "q", "uid": "v"}
    trace = exported(
        tmp_path,
        kube_pod_info=[({**POD, "node": "a"}, at(1)), ({**other, "node": "a"}, at(1))],
        kube_pod_created=[(POD, at(100)), (other, at(100))],
        kube_pod_status_phase=[phase("Failed", at(1))],
    )
    assert [pod.name for pod in trace.pods] == ["d/q/v"]


# -- identities ------------------------------------------------------------------------------------


def requests(labels: dict[str, str], cpu: float, begin: int = 0, end: int = 11) -> Any:
    return {**labels, "container": "c", "resource": "cpu"}, at(cpu, begin, end)


@pytest.mark.parametrize("info", [POD, UNNAMED])
@pytest.mark.parametrize("created", [POD, UNNAMED])
@pytest.mark.parametrize("asked", [POD, UNNAMED])
def test_series_without_a_uid_are_of_the_pod_of_that_name(
    tmp_path: Path, info: Any, created: Any, asked: Any
) -> None:
    trace = exported(
        tmp_path,
        kube_pod_info=[({**info, "node": "a"}, at(1, 2, 8))],
        kube_pod_created=[(created, at(1060, 2, 8))],
        kube_pod_container_resource_requests=[requests(asked, 3, 2, 8)],
    )
    (pod,) = trace.pods
    assert (pod.cpu_millicores, pod.from_s, pod.to_s) == (3000, 60, 420)


@pytest.mark.parametrize("uids", [("u", "v"), ("", "")])
@pytest.mark.parametrize("named", [True, False])
def test_a_pod_that_comes_again_under_its_name_is_another_one(
    tmp_path: Path, uids: tuple[str, str], named: bool
) -> None:
    """A pod of a StatefulSet; its requests grow from one to the next."""
    one, two = ({**UNNAMED, **({"uid": uid} if uid else {})} for uid in uids)
    first, second = (one, two) if named else (UNNAMED, UNNAMED)
    trace = exported(
        tmp_path,
        kube_pod_info=[({**one, "node": "a"}, at(1, 0, 5)), ({**two, "node": "b"}, at(1, 6))],
        kube_pod_created=[(first, at(1000, 0, 5)), (second, at(1330, 6))],
        kube_pod_container_resource_requests=[requests(first, 1, 0, 5), requests(second, 2, 6)],
        kube_pod_status_phase=[({**first, "phase": "Failed"}, at(1, 4, 5))],
    )
    lives = [(pod.from_s, pod.to_s, pod.cpu_millicores) for pod in trace.pods]
    assert lives == [(0, 240, 1000), (330, None, 2000)]


def test_series_whose_labels_change_are_one_thing(tmp_path: Path) -> None:
    """A pod gets its node and its address; kube-state-metrics starts again; a node is replaced."""
    pod, agent, renewed = ({"namespace": "d", "pod": name, "uid": name} for name in "pqr")
    daemon = {"created_by_kind": "DaemonSet", "created_by_name": "logs", "node": "b"}
    more: dict[str, Series] = {
        "kube_pod_info": [
            ({**pod, "node": ""}, at(1, 1, 3)),
            ({**pod, "node": "a"}, at(1, 3, 4)),
            ({**pod, "node": "a", "pod_ip": "10.0.0.1"}, at(1, 4, 9)),
            ({**agent, **daemon}, at(1, 0, 5)),
            ({**renewed, **daemon}, at(1, 5)),
        ],
        "kube_pod_created": [({**pod, "instance": i}, at(1060, 1, 9)) for i in "xy"],
        "kube_pod_container_resource_requests": [
            requests({**one, "instance": i}, 1) for one in (pod, agent, renewed) for i in "xy"
        ],
        "kube_node_info": [
            ({"node": "a", "instance": "x"}, at(1, 0, 4)),
            ({"node": "a", "instance": "y"}, at(1, 4)),
            ({"node": "b"}, at(1, 0, 2)),
            ({"node": "b"}, at(1, 7)),
        ],
    }
    trace = exported(tmp_path, **more)
    (one,) = trace.pods
    assert (one.from_s, one.to_s, one.cpu_millicores) == (60, 480, 1000)
    lives = {n.name: (n.from_s, n.to_s) for n in trace.nodes}
    assert lives == {"a": (0, None), "b": (0, 60), "b/2": (420, None)}
    assert sorted(m.cpu_millicores for m in trace.machines) == [3000, 4000]  # one agent at a time


# -- requests --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "cpu", "memory"),
    [
        ([], 100, 200),
        ([({"resource": "cpu"}, 0)], 0, 200),
        ([({"resource": "cpu"}, 0), ({"resource": "memory"}, 0)], 1, 0),
        ([({"resource": "cpu"}, 0.0001), ({"resource": "memory"}, 0)], 1, 0),
        ([({"resource": "cpu"}, 0), ({"resource": "memory"}, 5)], 0, 1),
        ([({"resource": "memory"}, 2**20)], 100, 1),
        ([({"resource": "ephemeral_storage"}, 5)], 100, 200),
    ],
)
def test_a_pod_that_requests_nothing_leaves_the_trace_legal(
    tmp_path: Path, asked: Any, cpu: int, memory: int
) -> None:
    other = {"namespace": "d", "pod": "q", "uid": "v"}
    some = [({**POD, "container": "c", **labels}, at(value)) for labels, value in asked]
    trace = exported(
        tmp_path,
        kube_pod_info=[({**POD, "node": "a"}, at(1)), ({**other, "node": "a"}, at(1))],
        kube_pod_created=[(POD, at(1000)), (other, at(1000))],
        kube_pod_container_resource_requests=[*some, requests(other, 2)],
    )
    sizes = {pod.name: (pod.cpu_millicores, pod.memory_mib) for pod in trace.pods}
    assert sizes == {"d/p/u": (cpu, memory), "d/q/v": (2000, 200)}


def static(name: str, node: str = "a") -> dict[str, str]:
    labels = {"namespace": "kube-system", "pod": f"{name}-{node}", "uid": name + node, "node": node}
    return {**labels, "created_by_kind": "Node", "created_by_name": node}


def test_static_pods_are_taken_off_their_node_one_by_one(tmp_path: Path) -> None:
    some = [static(name) for name in ("etcd", "apiserver", "scheduler")]
    trace = exported(
        tmp_path,
        kube_pod_info=[({**POD, "node": "a"}, at(1)), *((one, at(1)) for one in some)],
        kube_pod_container_resource_requests=[requests(one, 0.5) for one in (POD, *some)],
    )
    a, b = (next(m for m in trace.machines if m.name == n.machine) for n in trace.nodes)
    assert (a.cpu_millicores, a.pods, b.cpu_millicores, b.pods) == (2500, 17, 4000, 20)


def test_pods_of_nodes_that_ask_for_more_than_there_is_leave_the_trace_legal(tmp_path) -> None:
    trace = exported(
        tmp_path,
        kube_pod_info=[({**POD, "node": "b"}, at(1)), (static("etcd"), at(1))],
        kube_pod_container_resource_requests=[requests(POD, 1), requests(static("etcd"), 9)],
    )
    assert min(m.cpu_millicores for m in trace.machines) == 1


@pytest.mark.parametrize("label", ["node_kubernetes_io", "beta_kubernetes_io"])
def test_a_node_without_a_size_has_that_of_its_type(tmp_path: Path, label: str) -> None:
    kind = {f"label_{label}_instance_type": "m5.large"}
    sizes = [({"node": "a", "resource": "cpu"}, at(4))]
    more = {"kube_node_status_allocatable": sizes}
    with pytest.raises(DocumentError, match="no node 'b', which kube_node_info has"):
        exported(tmp_path, **more)
    labels = [({"node": n, **kind}, at(1)) for n in "ab"]
    (machine,) = exported(tmp_path, kube_node_labels=labels, **more).machines
    assert (machine.name, machine.cpu_millicores) == ("m5.large", 4000)


# -- clusters --------------------------------------------------------------------------------------


def clusters(first: dict[str, str], second: dict[str, str], **change: Any) -> dict[str, Series]:
    """Return series of node a and pod p with some labels, and of node b and pod q with others."""
    names = {"names": ("a", "b"), "pods": ("p", "q"), "times": ((0, 11), (0, 11))} | change
    both = list(zip((first, second), names["names"], names["pods"], names["times"], strict=True))
    pods = [
        ({**more, "namespace": "d", "pod": p, "uid": p + n, "node": n}, when)
        for more, n, p, when in both
    ]
    return {
        "kube_pod_info": [(one, at(1, *when)) for one, when in pods],
        "kube_pod_created": [(one, at(1000, *when)) for one, when in pods],
        "kube_pod_container_resource_requests": [
            ({**one, "container": "c", "resource": "cpu"}, at(1, *when)) for one, when in pods
        ],
        "kube_node_info": [({**more, "node": n}, at(1, *when)) for more, n, _, when in both],
        "kube_node_status_allocatable": [
            ({**more, "node": n, "resource": "cpu"}, at(4, *when)) for more, n, _, when in both
        ],
    }


EU, US = {"cluster": "eu"}, {"cluster": "us"}
SAME = {"names": ("a", "a"), "pods": ("p", "p")}
X, Y = {"prometheus": "m/x"}, {"prometheus": "m/y"}


@pytest.mark.parametrize(
    ("first", "second", "change", "refused"),
    [
        (EU, US, {}, True),
        (EU, US, SAME, True),
        ({"k8s_cluster_name": "eu"}, {"k8s_cluster_name": "us"}, {}, True),
        (EU, {}, {}, True),
        ({"region": "eu"}, {"region": "us"}, {}, True),
        (X, Y, {}, True),
        (
            {"prometheus_replica": "x"},
            {"prometheus_replica": "y"},
            {"times": ((0, 9), (3, 11))},
            True,
        ),
        # Shards, replicas and new names are one cluster.
        (EU, EU, {}, False),
        (EU, US, {"times": ((0, 5), (5, 11))}, False),
        ({"instance": "10.0.0.1"}, {"instance": "10.0.0.2"}, {}, False),
        ({"region": "eu"}, {"region": "eu"}, {}, False),
        (X, Y, SAME, False),
        ({}, {}, {}, False),
    ],
)
def test_two_clusters_behind_one_server_are_refused(
    tmp_path: Path, first: Any, second: Any, change: Any, refused: bool
) -> None:
    series = clusters(first, second, **change)
    if not refused:
        assert exported(tmp_path, **series).nodes
        return
    with pytest.raises(DocumentError, match=r"of several clusters: .* is '.*' and '.*'; query one"):
        exported(tmp_path, **series)


@pytest.mark.skipif("PLACEOPT_DATA" not in os.environ, reason="needs PLACEOPT_DATA")
def test_exports_of_public_reports() -> None:
    folder = Path(os.environ["PLACEOPT_DATA"]) / "kubernetes_cases_2"
    evicted = read_folder(folder / "prom_evicted").pods
    assert [pod.to_s is None for pod in evicted] == [False] * 5 + [True]
    assert all((pod.to_s or 0) <= pod.from_s + 900 for pod in evicted)
    assert {pod.cpu_millicores for pod in read_folder(folder / "prom_uidinfo").pods} == {3000}
