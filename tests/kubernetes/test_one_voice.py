"""What ``consolidate`` proves of its plan is what its front, its report and its pages say."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path
from typing import Any

import pytest
from held_clusters import APART, KEEP, answered, node, pod
from held_clusters import told as told_of
from little_clusters import written

#: Clusters: proven at once, nothing to do, rules that no bound sees, pods that stay, a stop.
CLUSTERS: dict[str, tuple[list[dict[str, Any]], tuple[str, ...]]] = {
    "smaller": ([node("n1"), node("n2"), pod("web-1", "n1"), pod("web-2", "n2")], ()),
    "as it is": ([node("n1"), pod("web-1", "n1")], ()),
    "apart": (
        [made for k in "123" for made in (node(f"n{k}"), pod(f"web-{k}", f"n{k}", affinity=APART))],
        (),
    ),
    "kept": ([node("n1"), node("n2"), pod("web-1", "n1", annotations=KEEP), pod("b-1", "n2")], ()),
    "odd sizes": (
        [made for k in "012" for made in (node(f"n{k}"), pod(f"w{k}-1", f"n{k}", "2100m"))],
        (),
    ),
    "stops": (
        [
            *(node("n1", "2"), node("n2", "2"), node("n3", "1")),
            *(pod("a-1", "n1", "2"), pod("b-1", "n2", "1"), pod("c-1", "n3", "1")),
        ],
        ("--allow-stops",),
    ),
    "too much": ([node("n1", "1"), pod("web-1", "n1", "2", annotations=KEEP)], ()),
    "prices": (
        [node("n1"), node("n2"), pod("web-1", "n1"), pod("web-2", "n2")],
        ("--missing-prices", "default=0.1"),
    ),
}


@pytest.mark.parametrize("name", CLUSTERS)
def test_one_voice_on_what_is_proven(name: str, tmp_path: Path) -> None:
    objects, options = CLUSTERS[name]
    out = tmp_path / "out"
    found = answered(tmp_path, objects, *options, "-o", str(out))
    front = json.loads((out / "front.json").read_text())
    page = (out / "report.html").read_text()
    page = html.unescape(re.sub(r"<script.*?</script>|<[^>]+>", " ", page, flags=re.DOTALL))
    told = (out / "answer.md").read_text() + page
    proven = "No plan is cheaper: that is proven." in told
    assert proven == (found["at_most"] == 0)
    statuses = [point["status"] for point in front["points"]]
    if found["breaks"]:
        assert statuses == []
        return
    assert "heuristic" not in statuses and "heuristic:" not in page
    assert not re.search(r"plans? (is|are) heuristic", page)
    if proven and not found["stops"]:
        assert statuses == ["optimal"]
        assert "hypervolume is missing" not in page
        assert "proven: no feasible plan is better" in page
    elif not proven:
        assert "bounded" in statuses and "no feasible plan is better" not in page


def test_an_unproven_plan_has_the_gap_of_the_answer(tmp_path: Path) -> None:
    """Three pods of a bit more than half a node: whole nodes are counted by the bound in parts."""
    objects, _ = CLUSTERS["odd sizes"]
    found = answered(tmp_path, objects, "-o", str(tmp_path / "out"))
    (point,) = json.loads((tmp_path / "out" / "front.json").read_text())["points"]
    assert (point["status"] == "optimal") == (found["at_most"] == 0)
    if point["status"] == "bounded":
        assert point["gap"] == pytest.approx(found["at_most"] / found["cost_after"], rel=1e-6)


def told(folder: Path, objects: list[dict[str, Any]], *options: str) -> str:
    """Return the answer in markdown."""
    written(folder / "cluster.json", objects)
    return told_of(folder, *options, form="markdown")


def test_money_comes_first_and_by_whom_it_is_spent(tmp_path: Path) -> None:
    objects, options = CLUSTERS["prices"]
    objects = json.loads(json.dumps(objects))
    objects[2]["metadata"]["labels"]["team"] = "red"
    out = tmp_path / "out"
    named = "--by", "team", "--name", "prod", "-o", str(out)
    lines = told(tmp_path, objects, *options, *named).splitlines()
    assert "<title>prod: report" in (out / "report.html").read_text()
    assert lines[2] == "* The plan saves 73 USD a month (50%)."
    assert "* Cluster: prod." in lines
    assert (
        "| red | 73 | 36.5 | -36.5 |" in lines and "| without team | 73 | 36.5 | -36.5 |" in lines
    )
    spaces = told(tmp_path, objects, *options).splitlines()
    assert "### USD a month by namespace" in spaces and "| shop | 146 | 73 | -73 |" in spaces
    assert "* Cluster: cluster.json." in spaces


def test_prices_of_a_month_are_asked_about(tmp_path: Path) -> None:
    objects, _ = CLUSTERS["prices"]
    told_of = "are these prices of a month?"
    assert told_of in told(tmp_path, objects, "--missing-prices", "default=140")
    assert told_of not in told(tmp_path, objects, "--missing-prices", "default=99")


def test_when_the_dump_was_taken_and_what_comes_with_nodes(tmp_path: Path) -> None:
    objects = [node("n1"), pod("web-1", "n1"), pod("agent-1", "n1", owner="DaemonSet")]
    objects[1]["metadata"]["creationTimestamp"] = "2026-10-01T08:00:00Z"
    objects[0]["status"]["conditions"][0]["lastHeartbeatTime"] = "2026-11-01T10:05:00Z"
    text = told(tmp_path, objects)
    assert "* Cluster: cluster.json, as it was on 2026-11-01 at 10:05 UTC or later." in text
    assert "* 0 of 1 pod (beside 1 that come with their node) move" in text
