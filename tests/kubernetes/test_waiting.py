"""Pods that wait for a node: what no plan starts is said to wait, and holds up nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from held_clusters import KEEP, answered, node, pod


def waiting(name: str, cpu: str = "1", **more: Any) -> dict[str, Any]:
    """Return a pod that waits for a node."""
    made = pod(name, None, cpu, **more)
    unscheduled = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    made["status"]["conditions"] = [unscheduled]
    return made


def left_out(found: Any) -> dict[str, list[str]]:
    """Return why pods are left out, and which."""
    return {n["text"]: n["subjects"] for n in found["notes"] if n["topic"] == "left-out"}


def locked() -> list[dict[str, Any]]:
    """Return two nodes with room for .7 cores together: only a pod that stops lets others swap."""
    sizes = {"a-1": ("n1", "1200m"), "b-1": ("n1", "700m")}
    sizes |= {"c-1": ("n2", "800m"), "d-1": ("n2", "600m")}
    return [node("n1", "2"), node("n2", "2"), *(pod(name, *size) for name, size in sizes.items())]


def test_it_waits_and_has_not_ended(tmp_path: Path) -> None:
    found = answered(tmp_path, [*locked(), waiting("late-1", "700m")])
    assert found["stops"] == 0
    text = "waits for a node: no plan was found that starts it and stops no pod"
    assert left_out(found) == {text: ["shop/late-1"]}
    assert not any("to be placed" in n["text"] for n in found["notes"])
    stopping = answered(tmp_path, [*locked(), waiting("late-1", "700m")], "--allow-stops")
    assert stopping["starts"] >= 1 and stopping["breaks"] == []
    assert left_out(stopping) == {}, "a plan that may stop pods starts it"


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_what_can_start_starts_though_another_cannot(
    order: tuple[int, int], tmp_path: Path
) -> None:
    late = [waiting("late-1", "700m"), waiting("soon-1", "100m")]
    found = answered(tmp_path, [*locked(), *(late[k] for k in order)])
    (names,) = left_out(found).values()
    assert names == ["shop/late-1"]
    assert found["starts"] == 1


def test_siblings_of_what_waits_stay(tmp_path: Path) -> None:
    """Its ReplicaSet would end the pod that is not ready in place of the one that a step moves."""
    objects = [*locked(), node("n3", "500m"), pod("web-1", "n3", "100m")]
    assert answered(tmp_path, objects)["gone"] == ["n3"]
    found = answered(tmp_path, [*objects, waiting("web-2", "700m")])
    assert left_out(found) and found["gone"] == []
    (web,) = (n for n in found["nodes"] if n["name"] == "n3")
    assert "not ready" in "; ".join(r["text"] for r in web["reasons"])


def test_what_breaks_rules_anyway_leaves_nobody_out(tmp_path: Path) -> None:
    """A node asks for more than it has, and nothing there may move: what waits can start."""
    objects = [node("n1", "2"), node("n2", "2")]
    objects += [pod(f"a-{k}", "n1", annotations=KEEP) for k in range(3)]
    found = answered(tmp_path, [*objects, waiting("late-1", "1")])
    assert left_out(found) == {} and found["starts"] == 1


@pytest.mark.parametrize("running", [2, 3])
def test_all_ready_is_worth_what_it_saves(running: int, tmp_path: Path) -> None:
    """Pods of a workload of which one waits are held; once it runs they share one node."""
    nodes = [node(f"n{k}", "4") for k in range(running + 1)]
    web = [pod(f"web-{k}", f"n{k}", "500m") for k in range(running)]
    found = answered(tmp_path, [*nodes, *web, waiting(f"web-{running}", "500m")])
    saves = [x["saves"] for x in found["lifts"] if "ready" in x["change"]]
    assert found["cost_after"] == running and saves == [running - 1]


def test_ready_is_no_use_where_nothing_starts_it(tmp_path: Path) -> None:
    """What waits is larger than any node: its siblings being ready is not to be had."""
    nodes = [node("n1", "4"), node("n2", "4")]
    web = [pod("web-1", "n1", "500m"), pod("web-2", "n2", "500m")]
    found = answered(tmp_path, [*nodes, *web, waiting("web-3", "8")])
    assert "web-3" in str(left_out(found))
