"""Lists that a server cut off are refused by every reader; what a dump does not hold is named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from held_clusters import consolidated, node, pod, told
from little_clusters import budget, deployment
from typer.testing import CliRunner

from placeopt.cli import app
from placeopt.core.errors import DocumentError

Json = dict[str, Any]
RUNNER = CliRunner()
CUT = {"continue": "eyJ2IjoibWV0YS5rOHMuaW8", "remainingItemCount": 2, "resourceVersion": "1"}
NODES = [node("n1"), node("n2")]
PODS = [pod("web-1", "n1"), pod("web-2", "n2")]


def listed(items: list[Json] | None, about: Json | None = None, kind: str = "List") -> Json:
    return {"apiVersion": "v1", "kind": kind, "metadata": about, "items": items}


WHOLE = listed([*NODES, *PODS])


def refused(*arguments: str) -> None:
    """Check that a command refuses a list in one message that says where and what to do."""
    done = RUNNER.invoke(app, list(arguments))
    assert isinstance(done.exception, DocumentError), done.output
    words = ("the list is not whole", "line", "without a limit")
    assert all(word in str(done.exception) for word in words), done.exception


@pytest.mark.parametrize(
    "document",
    [
        listed([*NODES, *PODS], CUT),
        listed(PODS, CUT, "PodList"),
        listed(NODES, {"continue": "x"}, "NodeList"),
        listed([*NODES, *PODS], {"remainingItemCount": 7}),
        listed([*NODES, listed(PODS, CUT)]),
        listed([listed([listed(PODS, {"continue": "x"}, "PodList")]), *NODES]),
        listed([*NODES, *PODS, listed([], CUT, "PodDisruptionBudgetList")]),
        listed(None, CUT, "ResourceQuotaList"),
    ],
)
@pytest.mark.parametrize("form", ["json", "yaml"])
def test_a_list_that_was_cut_off_is_refused(document: Json, form: str, tmp_path: Path) -> None:
    whole, file = tmp_path / "whole.json", tmp_path / f"cut.{form}"
    whole.write_text(json.dumps(WHOLE if document["kind"] != "List" else listed([])))
    text = json.dumps(document, indent=1) if form == "json" else yaml.safe_dump(document)
    file.write_text(text)
    refused("consolidate", str(whole), str(file))


def test_every_reader_of_lists_refuses(tmp_path: Path) -> None:
    whole, cut, steps = (tmp_path / f"{name}.json" for name in ("whole", "cut", "steps"))
    whole.write_text(json.dumps(WHOLE))
    cut.write_text(json.dumps(listed([*NODES, *PODS], CUT)))
    assert RUNNER.invoke(app, ["consolidate", str(whole), "-o", str(tmp_path / "o")]).exit_code == 0
    steps.write_text((tmp_path / "o" / "steps.json").read_text())
    refused("verify", str(steps), "--cluster", str(cut))
    for target in ("rolling-update", "rescheduling", "temporal"):
        refused("import", "kubernetes", str(cut), "--to", target)
    to = ("import", "kubernetes", str(whole), "--to", "rolling-update")
    refused(*to, "--new-requests", str(cut))
    pools = tmp_path / "pools.json"
    for kind in ("List", "NodePoolList"):
        pools.write_text(json.dumps(listed([], CUT, kind)))
        refused("consolidate", str(whole), "--candidates", str(pools))
    stream = tmp_path / "stream.json"
    stream.write_text(json.dumps(WHOLE) + "\n" + json.dumps(listed([], CUT, "ServiceList")))
    refused("consolidate", str(stream))
    dumps = tmp_path / "dumps"
    dumps.mkdir()
    for minute, document in enumerate((WHOLE, listed([*NODES, *PODS], CUT), WHOLE)):
        (dumps / f"2026-11-01T10:0{minute}:00Z.json").write_text(json.dumps(document))
    refused("import", "trace", str(dumps))


@pytest.mark.parametrize(
    "about", [None, {}, {"continue": ""}, {"remainingItemCount": 0}, {"resourceVersion": "12"}]
)
def test_a_whole_list_is_read(about: Json | None, tmp_path: Path) -> None:
    (tmp_path / "cluster.json").write_text(json.dumps(listed([*NODES, *PODS], about)))
    assert consolidated(tmp_path).exit_code == 0


def _absent(found: Json) -> list[str]:
    texts = [n for n in found["notes"] if "counted as not in the cluster" in n["text"]]
    return texts[0]["subjects"] if texts else []


@pytest.mark.parametrize("there", ["PodDisruptionBudget", "ResourceQuota", "LimitRange"])
def test_what_a_dump_does_not_hold_is_named(there: str, tmp_path: Path) -> None:
    more = {"apiVersion": "v1", "kind": there, "metadata": {"name": "x", "namespace": "shop"}}
    made = budget("x", "shop") if there == "PodDisruptionBudget" else more | {"spec": {}}
    absent = {}
    for name, items in (("without", []), ("with", [made])):
        (tmp_path / "cluster.json").write_text(json.dumps(listed([*NODES, *PODS, *items])))
        absent[name] = _absent(json.loads(told(tmp_path, form="json")))
        said = "counted as not in the cluster: "
        words = told(tmp_path, form="markdown")
        assert f"Not in the files, {said}" in words
        assert (there in words.split(said)[1].split(".")[0]) == (name == "without")
    assert there in absent["without"] and there not in absent["with"]
    assert "Namespace" in absent["with"] and "PersistentVolume" not in absent["with"]


def test_volumes_are_expected_where_pods_claim_some(tmp_path: Path) -> None:
    claim = [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]
    items = [*NODES, *PODS, pod("db-1", "n1", volumes=claim)]
    (tmp_path / "cluster.json").write_text(json.dumps(listed(items)))
    lacks = {"PersistentVolumeClaim", "PersistentVolume", "StorageClass", "CSINode"}
    assert lacks <= set(_absent(json.loads(told(tmp_path, form="json"))))


def test_manifests_are_no_dump(tmp_path: Path) -> None:
    """What shall run says nothing of the cluster: nobody expects budgets there."""
    file, report = tmp_path / "nodes.yaml", tmp_path / "report.json"
    file.write_text(yaml.safe_dump_all([*NODES, *deployment("web", [None])[:1]]))
    to = ("import", "kubernetes", str(file), "--to", "rolling-update")
    priced = ("--missing-prices", "default=0.1", "--report", str(report))
    done = RUNNER.invoke(app, [*to, *priced])
    assert done.exit_code == 0, done.output
    assert not _absent(json.loads(report.read_text()))
