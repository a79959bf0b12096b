"""Expendable pods: of a low priority, they take room and do not hold a node."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from little_clusters import (
    Json,
    container,
    deployment,
    imported,
    node,
    nodes_of,
    services,
    texts,
)

from placeopt import api
from placeopt.core.errors import DocumentError
from placeopt.core.files.documents import validate
from placeopt.kubernetes.approval import Approval
from placeopt.kubernetes.export.script import StepsDocument, document
from placeopt.kubernetes.importing import Imported
from placeopt.kubernetes.verify import verify_files

#: An overprovisioner on a node of its own, beside two nodes that could be one.
NODES = [node("n1"), node("n2"), node("n3")]
PODS = deployment("web", ["n1"], [container("app", "2", "512Mi")], priority=2000)
PODS += deployment("api", ["n3"], [container("app", "500m", "512Mi")], priority=2000)


def pause(at: str | None = "n2", cpu: str = "3500m", **spec: Any) -> list[Json]:
    return deployment("over", [at], [container("pause", cpu, "1Gi")], **spec)


def classes(name: str, value: Any, **more: Any) -> Json:
    meta = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
    return {**meta, "metadata": {"name": name}, "value": value, **more}


LOW = classes("low", -100)
#: What the pod and its cluster say, the option -> whether the pod is expendable.
CASES: dict[str, tuple[Json, list[Json], int | None, bool]] = {
    "below": ({"priority": -10}, [], 0, True),
    "far below": ({"priority": -(2**31)}, [], 0, True),
    "at the cutoff": ({"priority": -10}, [], -10, False),
    "just below the cutoff": ({"priority": -11}, [], -10, True),
    "above": ({"priority": 1000}, [], 0, False),
    "none said is 0": ({}, [], 0, False),
    "none said, below 1": ({}, [], 1, True),
    "a high cutoff": ({"priority": 999}, [], 1000, True),
    "no option": ({"priority": -10}, [], None, False),
    "its class": ({"priorityClassName": "low"}, [LOW], 0, True),
    "its own comes first": ({"priorityClassName": "low", "priority": 5}, [LOW], 0, False),
    "a class that is not there": ({"priorityClassName": "none"}, [LOW], 0, False),
    "another class": ({"priorityClassName": "high"}, [LOW, classes("high", 10)], 0, False),
    "the default class": ({}, [classes("all", -5, globalDefault=True)], 0, True),
    "another default": ({}, [classes("all", 5, globalDefault=True)], 0, False),
    "no default": ({}, [LOW], 0, False),
}


def is_expendable(done: Imported, name: str = "over-7d9f-0") -> bool:
    return name not in services(done)


@pytest.mark.parametrize("case", CASES)
def test_by_priority(case: str, tmp_path: Path) -> None:
    """Expendable pods are no replicas of the instance; their node has the room that is left."""
    spec, more, below, expendable = CASES[case]
    objects = [*NODES, *PODS, *pause(**spec), *more]
    done = imported(tmp_path, objects, rules={"expendable": below})
    assert is_expendable(done) == expendable
    room = {name: n["cpu_millicores"] for name, n in nodes_of(done).items()}
    assert room == {"n1": 4000, "n2": 500 if expendable else 4000, "n3": 4000}
    named = f"lower priority than {below} (--expendable)" in texts(done, "capacity")
    assert named == expendable


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "Job", "ReplicaSet"])
def test_of_any_owner(kind: str, tmp_path: Path) -> None:
    """What would stay by its owner does not hold its node either."""
    objects = [*NODES, *PODS, *pause(priority=-10, kind=kind)]
    name = "over-7d9f-0" if kind == "Deployment" else "over-0"
    assert is_expendable(imported(tmp_path, objects, rules={"expendable": 0}), name)
    assert not is_expendable(imported(tmp_path, objects), name)


def test_no_annotation_keeps_them(tmp_path: Path) -> None:
    held = {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}
    objects = [*NODES, *PODS, *pause(priority=-10, annotations=held)]
    done = imported(tmp_path, objects, rules={"expendable": 0})
    assert is_expendable(done) and "safe-to-evict" not in texts(done, "pinned")


def test_those_of_daemon_sets_stay_what_they_are(tmp_path: Path) -> None:
    objects = [*NODES, *PODS, *pause(priority=-10, kind="DaemonSet")]
    done = imported(tmp_path, objects, rules={"expendable": 0})
    assert "pods of a DaemonSet" in texts(done, "capacity")


@pytest.mark.parametrize("below", [None, 0])
def test_their_node_is_freed(below: int | None, tmp_path: Path) -> None:
    """With the option two nodes of three are freed, without it one; the steps verify."""
    done = imported(tmp_path, [*NODES, *PODS, *pause(priority=-10)], rules={"expendable": below})
    front = api.solve(done.problem, "repack", seed=1)
    cheapest = min(front.points, key=lambda p: p.values)
    assert cheapest.values[0] == (1 if below is not None else 2)
    steps = document(done.problem, cheapest.plan, done.origin)
    assert verify_files(validate(StepsDocument, steps), [tmp_path / "cluster.json"]) == []
    assert len(Approval(done.problem, cheapest.plan, front, done.origin).freed) == 1


def test_nothing_moves_onto_their_room(tmp_path: Path) -> None:
    """They are not ended for others, so that what they take is taken."""
    objects = [*NODES[:2], *deployment("web", ["n1"]), *pause(cpu="4", priority=-10)]
    done = imported(tmp_path, objects, rules={"expendable": 0})
    assert nodes_of(done)["n2"]["cpu_millicores"] == 0


@pytest.mark.parametrize(
    ("objects", "topic", "said"),
    [
        (pause(None, priority=-10), "left-out", "wait and are expendable (--expendable)"),
        (pause(priority=-10)[:1], "left-out", "workloads whose pods are expendable"),
    ],
)
def test_what_waits_is_left_out(objects: list[Json], topic: str, said: str, tmp_path: Path) -> None:
    done = imported(tmp_path, [*NODES, *PODS, *objects], rules={"expendable": 0})
    assert said in texts(done, topic)
    assert not any(name.startswith("over") for name in services(done))


@pytest.mark.parametrize("value", ["-10", 1.5, True, 2**40])
def test_priorities_that_are_none(value: Any, tmp_path: Path) -> None:
    for more in (pause(priority=value), [*pause(priorityClassName="low"), classes("low", value)]):
        with pytest.raises(DocumentError, match=r"is not legal.*legal: a whole number"):
            imported(tmp_path, [*NODES, *PODS, *more], rules={"expendable": 0})


def test_only_expendable_pods_are_nothing_to_plan(tmp_path: Path) -> None:
    with pytest.raises(DocumentError, match="no replicas that run or shall run"):
        imported(tmp_path, [*NODES, *pause(priority=-10)], rules={"expendable": 0})


def test_case_from_outside(kubernetes_data: Path, tmp_path: Path) -> None:
    path = kubernetes_data / "kubernetes_cases" / "pausepods.json"
    objects = json.loads(path.read_text())["items"]
    done = imported(tmp_path, objects, rules={"expendable": 0})
    assert is_expendable(done)
    assert not is_expendable(imported(tmp_path, objects))
