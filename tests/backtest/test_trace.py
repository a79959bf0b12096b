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


MACHINES = "name,cpu_millicores,memory_mib,usd_per_hour\n"
PODS = "name,cpu_millicores,memory_mib,from_s,to_s"


def tables(folder: Path, pods: str, machines: str = "m,4000,8192,0.5\n", nodes: str = "") -> Path:
    """Write a trace as tables; return its folder."""
    folder.mkdir(exist_ok=True)
    (folder / "machines.csv").write_text(MACHINES + machines)
    (folder / "pods.csv").write_text(pods)
    if nodes:
        (folder / "nodes.csv").write_text(nodes)
    return folder


def test_a_budget_is_a_number_of_pods(tmp_path: Path) -> None:
    for number in (-1, 10**19):
        path = written(tmp_path, {**GOOD, "budgets": {"p": number}})
        with pytest.raises(DocumentError, match=r"budgets\.p: .* is not legal"):
            read(path)


def test_an_empty_table_is_named(tmp_path: Path) -> None:
    machine, pod = "name,cpu_millicores,memory_mib,usd_per_hour\n", "name,cpu_millicores,from_s\n"
    for name in ("machines.csv", "pods.csv"):
        (tmp_path / "machines.csv").write_text(machine + "m,4000,8192,1\n")
        (tmp_path / "pods.csv").write_text(pod + "p,1,0\n")
        (tmp_path / name).write_text((tmp_path / name).read_text().splitlines()[0] + "\n")
        with pytest.raises(DocumentError, match=f"{name}: has no rows"):
            read_folder(tmp_path)
    (tmp_path / "pods.csv").write_text(pod + "p,1,1e30\n")
    with pytest.raises(DocumentError, match=r"pods\.csv: line 2, from_s"):
        read_folder(tmp_path)


def test_csv_is_read(tmp_path: Path) -> None:
    pods = f"{PODS},zones\np,100,64,0,60,\nq,100,64,30,90,\n"
    trace = read_folder(tables(tmp_path, pods, nodes="name,machine,from_s,to_s\na,m,0,\n"))
    assert trace.seconds == 90 and trace.nodes[0].to_s is None and trace.pods[1].zones == ()


def test_csv_may_have_quantities_and_times_of_a_clock(tmp_path: Path) -> None:
    """The same trace as with numbers; clocks of two zones."""
    plain = tables(tmp_path / "plain", f"{PODS}\np,100,64,0,60\nq,100,64,30.5,\n")
    clocks = "p,100m,64Mi,2026-01-05T10:00:00Z,2026-01-05T10:01:00Z\n"
    clocks += "q,100m,64Mi,2026-01-05T11:00:30.500+01:00,\n"
    told = tables(tmp_path / "told", f"{PODS}\n{clocks}", "m,4000m,8Gi,0.5\n")
    assert read_folder(told) == read_folder(plain).model_copy(update={"name": "told"})


@pytest.mark.parametrize(
    ("cells", "says"),
    [
        ("many,64,0,", "line 2: cpu_millicores is 'many'"),
        ("100m,64Mi,0,2026-01-05T10:01:00Z", "others are seconds"),
        ("100m,64Mi,2026-01-05 at ten,", "line 2: from_s is '2026-01-05 at ten'; give seconds, or"),
        ("100Mi,64Mi,0,", "line 2: cpu_millicores is '100Mi'"),
        ("100m,64m,0,", "line 2: memory_mib is '64m'"),
    ],
)
def test_csv_with_other_words_is_one_message(tmp_path: Path, cells: str, says: str) -> None:
    with pytest.raises(DocumentError, match=says):
        read_folder(tables(tmp_path, f"{PODS}\np,{cells}\n"))


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
    with pytest.raises(DocumentError) as error:
        read_folder(tables(tmp_path, f"name,cpu_millicores,from_s,to_s,fixed\n{rows}"))
    message = str(error.value)
    assert "pods.csv: line " in message and all(word in message for word in words), message


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
