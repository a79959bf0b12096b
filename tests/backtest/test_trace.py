"""Traces that cannot have happened, readers, and the command: resumable, the same for any jobs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from placeopt.backtest.readers import read as read_folder
from placeopt.backtest.trace import read
from placeopt.cli import app
from placeopt.core.errors import DocumentError, UsageError

GOOD: dict[str, Any] = {
    "trace": "cluster",
    "name": "t",
    "seconds": 7200,
    "machines": [
        {"name": "m", "cpu_millicores": 4000, "memory_mib": 8192, "usd_per_hour": 1, "most": 5}
    ],
    "nodes": [{"name": "a", "machine": "m"}, {"name": "b", "machine": "m"}],
    "pods": [
        {"name": "p", "cpu_millicores": 100, "from_s": 0, "to_s": 50},
        {"name": "q", "cpu_millicores": 3000, "from_s": 60, "to_s": 5000},
    ],
}


def written(folder: Path, document: Any) -> Path:
    path = folder / "trace.json"
    path.write_text(json.dumps(document, indent=1))
    return path


@pytest.mark.parametrize(
    ("part", "k", "change", "words"),
    [
        ("nodes", 1, {"name": "a"}, ("node 'a' comes twice", "another name")),
        ("nodes", 0, {"from_s": 9, "to_s": 3}, ("before it begins at 9 s", "check the clock")),
        ("pods", 0, {"cpu_millicores": 0}, ("pod 'p' has no requests", "give cpu_millicores")),
        ("pods", 1, {"name": "p", "from_s": 10}, ("while one of its name lives", "end the first")),
        ("pods", 0, {"from_s": 70, "to_s": 90}, ("the clock goes back", "sort pods by from_s")),
        ("pods", 0, {"gpus": 2, "gpu_share": 500}, ("500 thousandths of 2 GPUs", "single GPU")),
        ("pods", 0, {"machines": ["x"]}, ("'x' is not in the trace", "legal: m")),
        ("nodes", 0, {"machine": "x"}, ("'x' is not in the trace", "legal: m")),
        ("pods", 0, {"keeps": ["x"]}, ("pods[0].keeps", "'x' is not in the trace")),
    ],
)
def test_a_malformed_trace_gets_one_message(tmp_path, part, k, change, words) -> None:
    document = json.loads(json.dumps(GOOD))
    document[part][k] |= change
    path = written(tmp_path, document)
    result = CliRunner().invoke(app, ["backtest", str(path), "-o", str(tmp_path / "out")])
    assert isinstance(result.exception, DocumentError)
    with pytest.raises(DocumentError) as error:
        read(path)
    message = str(error.value)
    assert all(word in message for word in words), message
    assert "trace.json" in message and "line " in message and "\n" not in message


def test_csv_says_the_line(tmp_path: Path) -> None:
    (tmp_path / "machines.csv").write_text(
        "name,cpu_millicores,memory_mib,usd_per_hour\nm,4000,8192,0.5\n"
    )
    (tmp_path / "nodes.csv").write_text("name,machine,from_s,to_s\na,m,0,\n")
    (tmp_path / "pods.csv").write_text(
        "name,cpu_millicores,memory_mib,from_s,to_s,zones\np,100,64,0,60,\nq,100,64,30,90,\n"
    )
    trace = read_folder(tmp_path)
    assert trace.seconds == 90 and trace.nodes[0].to_s is None and trace.pods[1].zones == ()
    (tmp_path / "pods.csv").write_text("name,cpu_millicores,from_s\np,many,0\n")
    with pytest.raises(DocumentError, match=r"pods.csv: line 2: cpu_millicores is 'many'"):
        read_folder(tmp_path)


def test_csv_may_have_quantities_and_times_of_a_clock(tmp_path: Path) -> None:
    """The same trace as with numbers; clocks of two zones."""
    plain, told = tmp_path / "plain", tmp_path / "told"
    plain.mkdir()
    told.mkdir()
    heads = (
        "name,cpu_millicores,memory_mib,usd_per_hour\n",
        "name,cpu_millicores,memory_mib,from_s,to_s\n",
    )
    (plain / "machines.csv").write_text(heads[0] + "m,4000,8192,0.5\n")
    (told / "machines.csv").write_text(heads[0] + "m,4000m,8Gi,0.5\n")
    (plain / "pods.csv").write_text(heads[1] + "p,100,64,0,60\nq,100,64,30.5,\n")
    (told / "pods.csv").write_text(
        heads[1] + "p,100m,64Mi,2026-01-05T10:00:00Z,2026-01-05T10:01:00Z\n"
        "q,100m,64Mi,2026-01-05T11:00:30.500+01:00,\n"
    )
    assert read_folder(told) == read_folder(plain).model_copy(update={"name": "told"})


@pytest.mark.parametrize(
    ("cells", "says"),
    [
        ("100m,64Mi,0,2026-01-05T10:01:00Z", "others are seconds"),
        ("100m,64Mi,2026-01-05 at ten,", "line 2: from_s is '2026-01-05 at ten'; give seconds, or"),
        ("100Mi,64Mi,0,", "line 2: cpu_millicores is '100Mi'"),
        ("100m,64m,0,", "line 2: memory_mib is '64m'"),
    ],
)
def test_csv_with_other_words_is_one_message(tmp_path: Path, cells: str, says: str) -> None:
    head = "name,cpu_millicores,memory_mib,usd_per_hour\n"
    (tmp_path / "machines.csv").write_text(head + "m,4000,8192,0.5\n")
    pods = f"name,cpu_millicores,memory_mib,from_s,to_s\np,{cells}\n"
    (tmp_path / "pods.csv").write_text(pods)
    with pytest.raises(DocumentError, match=says):
        read_folder(tmp_path)


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ("p,1,0,60,\nq,1,0,60,\np,1,30,90,\n", ("line 4, from_s", "while one of its name lives")),
        ("q,1,50,60,\np,,0,60,\n", ("line 3: pod 'p' has no requests", "give cpu")),
        ("q,1,50,60,\np,1,40,20,\n", ("line 3, to_s", "before it begins", "check the clock")),
        ("q,1,50,60,\np,1,,20,\n", ("line 3, from_s", "missing", "add it")),
        ("p,nan,0,60,\n", ("line 2: cpu_millicores is 'nan'", "give a number")),
        ("p,1,0,60,maybe\n", ("line 2: fixed is 'maybe'", "legal: yes or no")),
        ("p,1,0,60,no,7\n", ("line 2: 6 cells", "give 5, one per column")),
    ],
)
def test_csv_names_the_line_of_what_cannot_be(tmp_path: Path, rows: str, words: Any) -> None:
    """Rows need not be in order of time: the line is that of the file."""
    (tmp_path / "machines.csv").write_text(
        "name,cpu_millicores,memory_mib,usd_per_hour\nm,4000,8192,0.5\n"
    )
    (tmp_path / "pods.csv").write_text("name,cpu_millicores,from_s,to_s,fixed\n" + rows)
    with pytest.raises(DocumentError) as error:
        read_folder(tmp_path)
    message = str(error.value)
    assert "pods.csv: line " in message and all(word in message for word in words), message


def matrix(folder: Path, name: str, series: list[tuple[dict[str, str], list[Any]]]) -> None:
    result = [{"metric": {"__name__": name, **labels}, "values": v} for labels, v in series]
    text = json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}})
    (folder / f"{name}.json").write_text(text)


def test_prometheus(tmp_path: Path) -> None:
    times = [1000 + 60 * k for k in range(11)]

    def at(value: float, begin: int = 0, end: int = 11) -> list[Any]:
        return [[t, str(value)] for t in times[begin:end]]

    web = {"namespace": "d", "pod": "web-7f9c6d5b8-x", "node": "n1", "uid": "u"}
    kind = {"created_by_kind": "ReplicaSet", "created_by_name": "web-7f9c6d5b8"}
    agent = {"namespace": "d", "pod": "agent-1", "node": "n1", "uid": "v"}
    matrix(
        tmp_path,
        "kube_pod_info",
        [({**web, **kind}, at(1, 2, 8)), ({**agent, "created_by_kind": "DaemonSet"}, at(1))],
    )
    matrix(tmp_path, "kube_pod_created", [(web, at(1100, 2, 8)), (agent, at(5))])
    matrix(
        tmp_path,
        "kube_pod_container_resource_requests",
        [
            ({**web, "resource": "cpu", "container": "a"}, at(0.5, 2, 8)),
            ({**web, "resource": "cpu", "container": "b"}, at(0.25, 2, 8)),
            ({**agent, "resource": "cpu", "container": "c"}, at(0.1)),
        ],
    )
    matrix(tmp_path, "kube_node_info", [({"node": "n1"}, at(1))])
    matrix(
        tmp_path,
        "kube_node_status_allocatable",
        [
            ({"node": "n1", "resource": "cpu"}, at(4)),
            ({"node": "n1", "resource": "memory"}, at(2**33)),
        ],
    )
    labels = {"node": "n1", "label_node_kubernetes_io_instance_type": "m5.xlarge"}
    matrix(tmp_path, "kube_node_labels", [(labels, at(1))])
    strategy = "kube_deployment_spec_strategy_rollingupdate_max"
    matrix(tmp_path, f"{strategy}_surge", [({"namespace": "d", "deployment": "web"}, at(2))])
    matrix(tmp_path, f"{strategy}_unavailable", [({"namespace": "d", "deployment": "web"}, at(0))])
    trace = read_folder(tmp_path)
    (pod,) = trace.pods
    assert pod.revision == "web-7f9c6d5b8"
    assert trace.rollouts["d/web"].model_dump() == {"max_surge": 2, "max_unavailable": 0}
    assert (pod.workload, pod.cpu_millicores, pod.memory_mib) == ("d/web", 750, 200)
    assert (pod.from_s, pod.to_s) == (100, 420)
    assert trace.machines[0].name == "m5.xlarge" and trace.machines[0].cpu_millicores == 3900
    (tmp_path / "kube_node_info.json").unlink()
    with pytest.raises(DocumentError, match="there is no kube_node_info; add"):
        read_folder(tmp_path)


def export(folder: Path, **more: Any) -> None:
    """Write a small export of two nodes and a pod; `more` stands in the place of a metric's."""
    times = [1000 + 60 * k for k in range(11)]
    pod = {"namespace": "d", "pod": "p", "uid": "u"}
    every = [[t, "1"] for t in times]
    series = {
        "kube_pod_info": [({**pod, "node": "a"}, every)],
        "kube_pod_created": [(pod, [[t, "1000"] for t in times])],
        "kube_pod_container_resource_requests": [
            ({**pod, "container": "c", "resource": "cpu"}, every)
        ],
        "kube_node_info": [({"node": "a"}, every), ({"node": "b"}, every)],
        "kube_node_status_allocatable": [
            ({"node": node, "resource": "cpu"}, [[t, "4"] for t in times]) for node in "ab"
        ],
    } | more
    for name, one in series.items():
        matrix(folder, name, one)


def test_series_of_prometheus_whose_labels_change_are_one_thing(tmp_path: Path) -> None:
    """A pod gets its node and its address; kube-state-metrics starts again; a node is replaced."""
    pod, agent = ({"namespace": "d", "pod": name, "uid": name} for name in "pq")
    daemon = {"created_by_kind": "DaemonSet", "created_by_name": "logs", "node": "b"}

    def at(value: str, begin: int, end: int) -> list[Any]:
        return [[1000 + 60 * k, value] for k in range(begin, end)]

    requests = [
        ({**one, "container": "c", "resource": "cpu", "instance": instance}, at("1", 0, 11))
        for one in (pod, agent, {**agent, "pod": "r", "uid": "r"})
        for instance in "xy"
    ]
    export(
        tmp_path,
        kube_pod_info=[
            ({**pod, "node": ""}, at("1", 1, 3)),
            ({**pod, "node": "a"}, at("1", 3, 4)),
            ({**pod, "node": "a", "pod_ip": "10.0.0.1"}, at("1", 4, 9)),
            ({**agent, **daemon}, at("1", 0, 5)),
            ({**agent, **daemon, "pod": "r", "uid": "r"}, at("1", 5, 11)),
        ],
        kube_pod_created=[({**pod, "instance": i}, at("1060", 1, 9)) for i in "xy"],
        kube_pod_container_resource_requests=requests,
        kube_node_info=[
            ({"node": "a", "instance": "x"}, at("1", 0, 4)),
            ({"node": "a", "instance": "y"}, at("1", 4, 11)),
            ({"node": "b"}, at("1", 0, 2)),
            ({"node": "b"}, at("1", 7, 11)),
        ],
    )
    trace = read_folder(tmp_path)
    (one,) = trace.pods
    assert (one.from_s, one.to_s, one.cpu_millicores) == (60, 480, 1000)
    lives = {n.name: (n.from_s, n.to_s) for n in trace.nodes}
    assert lives == {"a": (0, None), "b": (0, 60), "b/2": (420, None)}
    assert sorted(m.cpu_millicores for m in trace.machines) == [3000, 4000]  # one agent at a time


@pytest.mark.parametrize(
    ("metric", "series", "words"),
    [
        ("kube_node_info", [({}, [[0, "1"]])], ("without the label 'node'", "not a sum")),
        ("kube_pod_info", [({"namespace": "d", "pod": "p"}, [[9, "NaN"]])], ("is nan", "leave")),
        ("kube_node_info", [({"node": "a"}, [[9, "1"], [3, "1"]])], ("clock goes back", "again")),
    ],
)
def test_a_malformed_export_gets_one_message(tmp_path, metric, series, words) -> None:
    export(tmp_path, **{metric: series})
    with pytest.raises(DocumentError) as error:
        read_folder(tmp_path)
    message = str(error.value)
    assert f"{metric}.json: line 1, data.result[0]" in message
    assert all(word in message for word in words), message


def table(folder: Path) -> Any:
    return json.loads((folder / "table.json").read_text())


def test_jobs_and_restarts_change_nothing(tmp_path: Path) -> None:
    path = written(tmp_path, GOOD)
    line = ["backtest", str(path), "--policy", "karpenter", "--policy", "placeopt", "--seeds", "2"]
    for name, more in (("a", []), ("b", ["--jobs", "2"])):
        result = CliRunner().invoke(app, [*line, "-o", str(tmp_path / name), *more])
        assert result.exit_code == 0, result.output
    assert table(tmp_path / "a") == table(tmp_path / "b")
    out = tmp_path / "c"
    command = [sys.executable, "-m", "placeopt", *line, "-o", str(out)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, env=os.environ)
    while not list(out.glob("runs/*.json")) and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    assert table(out) == table(tmp_path / "a")
    assert "<svg" in (out / "index.html").read_text()
    front = json.loads((out / "front.json").read_text())
    assert [o["name"] for o in front["objectives"]] == ["cost_usd", "moved_pods", "wait_99_s"]


def test_a_dask_cluster_says_the_same(tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed")
    from placeopt.backtest.study import study
    from placeopt.core.runs.workers import Workers

    document = read(written(tmp_path, GOOD))
    policies = ["none", "placeopt:interval=10min"]
    here = study(document, policies, [1], tmp_path / "here", Workers())
    with distributed.Client(processes=False, n_workers=1, dashboard_address=None) as client:
        there = study(document, policies, [1], tmp_path / "there", Workers(scheduler=client))
    assert here == there


def test_a_sweep_makes_every_combination(tmp_path: Path) -> None:
    path = written(tmp_path, GOOD)
    out = tmp_path / "o"
    line = ["backtest", str(path), "--policy", "placeopt", "-o", str(out)]
    result = CliRunner().invoke(app, [*line, "--sweep", "interval=1h,2h", "moves=0,all"])
    assert result.exit_code == 0, result.output
    assert len(table(out)["policies"]) == 4


@pytest.mark.parametrize(
    "text", ["karpentr", "karpenter:budgt=1", "placeopt:interval=1x", "placeopt:method=repak"]
)
def test_a_wrong_policy_is_named(text: str) -> None:
    from placeopt.backtest.policies import policy_of

    with pytest.raises(UsageError, match=r"legal|did you mean"):
        policy_of(text)


def test_a_drawn_trace_is_the_same_for_a_seed_and_has_a_rhythm() -> None:
    import numpy as np

    from placeopt.backtest.readers.drawn import generate

    trace = generate(3, days=2, services=5)
    assert trace == generate(3, days=2, services=5) != generate(4, days=2, services=5)
    begins = np.array([p.from_s for p in trace.pods if "service" in p.name])
    hours = np.histogram(begins % 86400 // 3600, bins=24, range=(0, 24))[0]
    assert hours[6:14].sum() > hours[16:24].sum()  # replicas rise in the morning
    assert any(p.work_s is not None for p in trace.pods)
