"""Dumps of other tools: kubectl cluster-info dump, folders."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from little_clusters import Json, deployment, homes, imported, node, node_pool

from placeopt.core.errors import DocumentError
from placeopt.kubernetes.files import with_folders, without_logs
from placeopt.kubernetes.importing import Imported, import_files
from placeopt.kubernetes.options import ImportOptions

OBJECTS = [node("n1"), node("n2"), *deployment("web", ["n1", "n2"]), *deployment("api", ["n1"])]


def bare(objects: list[Json], kind: str) -> list[Json]:
    """Return the objects of a kind as they stand in a list: without their kind."""
    mine = [o for o in objects if o["kind"] == kind]
    return [{k: v for k, v in o.items() if k not in ("kind", "apiVersion")} for o in mine]


def lists(objects: list[Json]) -> list[Json]:
    groups = {"Deployment": "apps/v1", "ReplicaSet": "apps/v1"}
    kinds = ("Node", "Event", "Service", "Deployment", "ReplicaSet", "Pod")
    return [
        {"kind": f"{k}List", "apiVersion": groups.get(k, "v1"), "items": bare(objects, k)}
        for k in kinds
    ]


def log(pod: str, text: str, container: str = "app", end: str = "\n") -> str:
    which = f"{container} of pod default/{pod}"
    return f"==== START logs for container {which} ====\n{text}{end}==== END logs for container {which} ====\n"  # noqa: E501


def read(*paths: Path) -> Imported:
    return import_files(list(paths), "rolling-update", ImportOptions())


@pytest.fixture
def plain(tmp_path: Path) -> dict[str, str]:
    return homes(imported(tmp_path, OBJECTS))


#: Texts of logs that a dump may hold.
LOGS = {
    "none": "",
    "lines": log("web-7d9f-0", "started\nlistening"),
    "empty": log("web-7d9f-0", ""),
    "without an end of line": log("web-7d9f-0", "started", end=""),
    "json": log("web-7d9f-0", '{"kind": "Pod", "metadata": {"name": "x"}}\n[1, 2'),
    "yaml": log("web-7d9f-0", "kind: Pod\n---\n- &a [*a"),
    "quotes and braces": log("web-7d9f-0", 'msg="a { b } [" level=info\n}}'),
    "of two": log("web-7d9f-0", "a") + log("api-7d9f-0", "b"),
    "of two containers": log("web-7d9f-0", "a") + log("web-7d9f-0", "b", "proxy"),
    "that quote another log": log("web-7d9f-0", "==== START logs for container x ====\nno end"),
    "request refused": log("web-7d9f-0", "Failed to get logs: container not found"),
    "windows lines": log("web-7d9f-0", "a\r\nb"),
}


@pytest.mark.parametrize("case", LOGS)
@pytest.mark.parametrize("last", [True, False])
def test_a_dump_on_stdout(case: str, last: bool, tmp_path: Path, plain: dict[str, str]) -> None:
    """Lists behind each other, logs behind them or between them."""
    dumped = [json.dumps(one, indent=4) + "\n" for one in lists(OBJECTS)]
    dumped.insert(len(dumped) if last else 3, LOGS[case])
    (tmp_path / "dump.txt").write_text("".join(dumped))
    done = read(tmp_path / "dump.txt")
    assert homes(done) == plain
    assert len(done.origin.files) == 1


def test_lines_of_a_dump_keep_their_numbers(tmp_path: Path) -> None:
    """A fault behind logs names the line of the file."""
    objects = [node("n1"), *deployment("web", ["n1"])]
    wrong = lists(objects)
    wrong[-1]["items"][0]["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "lots"
    text = "".join(json.dumps(one) + "\n" for one in wrong[:-1])
    text += log("web-7d9f-0", "a\nb\nc") + json.dumps(wrong[-1])
    (tmp_path / "dump.txt").write_text(text)
    line = len(text.splitlines())
    with pytest.raises(DocumentError, match=rf"line {line}, items.* 'lots' is no quantity"):
        read(tmp_path / "dump.txt")


def test_logs_are_cut_in_time() -> None:
    """A file of 20 MB of logs, one of them without its end: what is cut takes a moment."""
    text = (
        log("p", "x" * 80 + "\n" * 200_000) + "==== START logs for container y ====\n" + "z\n" * 9
    )
    assert without_logs(text.encode()).strip().startswith(b"==== START logs for container y")
    assert without_logs(b"no logs") == b"no logs"


def folder(top: Path) -> Path:
    """Write a folder as --output-directory does; return it."""
    space = top / "dump" / "default"
    (space / "web-7d9f-0").mkdir(parents=True)
    (space / "web-7d9f-0" / "logs.txt").write_text(log("web-7d9f-0", "{ no json"))
    names = ("nodes", "events", "services", "deployments", "replicasets", "pods")
    for name, one in zip(names, lists(OBJECTS), strict=True):
        where = top / "dump" if name == "nodes" else space
        (where / f"{name}.json").write_text(json.dumps(one))
    return top / "dump"


def test_a_folder(tmp_path: Path, plain: dict[str, str]) -> None:
    """Its JSON files at any depth; logs are not read, and the origin names single files."""
    done = read(folder(tmp_path))
    assert homes(done) == plain
    assert len(done.origin.files) == 6 and all(f.endswith(".json") for f in done.origin.files)


def test_a_folder_beside_a_file(tmp_path: Path) -> None:
    top = folder(tmp_path)
    extra = tmp_path / "more.json"
    extra.write_text(json.dumps(node("n3")))
    assert [n["name"] for n in read(top, extra).document["nodes"]] == ["n1", "n2", "n3"]


@pytest.mark.parametrize("files", [[], ["logs.txt"], [".hidden"]])
def test_a_folder_without_objects_is_refused(files: list[str], tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    for name in files:
        (empty / name).write_text("x")
    with pytest.raises(DocumentError, match=r"no file of \.json, \.yaml, \.yml in this folder"):
        read(empty)
    assert with_folders([tmp_path / "x.json"]) == [tmp_path / "x.json"]


def test_a_node_pool_in_a_dump_makes_nodes_not_pods(tmp_path: Path) -> None:
    """What Karpenter does with its nodes by itself is named; it is no workload."""
    budget = {"nodes": "0", "schedule": "0 9 * * 1-5", "duration": "8h"}
    disruption = {"consolidateAfter": "30m", "budgets": [budget]}
    pool = node_pool(name="general", disruption=disruption)
    made = imported(tmp_path, [node("n1"), *deployment("web", ["n1"]), pool])
    assert not made.notes.of("left-out")
    told = dict(made.notes.of("not-expressed"))
    assert any(text.startswith("NodePool is not read: an autoscaler may") for text in told)
    (said,) = (subjects for text, subjects in told.items() if "Karpenter's own" in text)
    assert said == ["general: consolidateAfter 30m, budget nodes 0 at 0 9 * * 1-5 for 8h"]
