"""What placeopt plans, the scheduler runs: plans against filters written apart from the package."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from effort import tries
from held_clusters import node, pod
from little_clusters import Json, ended, imported, taint, written
from made_clusters import made_cluster, prices
from planned import one_step
from scheduler_filters import Replay, Scheduler, key_of, must_stay, replay
from wild_clusters import candidates, wild_cluster, with_bought

from placeopt import api
from placeopt.kubernetes.export import export
from placeopt.kubernetes.export.script import StepsDocument, document
from placeopt.kubernetes.manifests import load
from placeopt.kubernetes.verify import verify, verify_files


def plans(objects: list[Json], folder: Path, seed: int) -> tuple[Path, list[Json]]:
    """Return the file of a cluster, and the steps of every plan of a front."""
    (folder / "prices.csv").write_text(prices())
    done = imported(folder, objects, files={"prices": [folder / "prices.csv"]})
    front = api.solve(done.problem, "repack", seed=seed, restarts=1)
    found = [document(done.problem, point.plan, done.origin) for point in front.points]
    return folder / "cluster.json", found


@pytest.mark.parametrize(("seed", "nodes"), [(0, 10), (1, 11)])
def test_the_scheduler_accepts_every_plan(seed: int, nodes: int, tmp_path: Path) -> None:
    """Every copy where it starts, and every moved one at the end; `verify` says the same."""
    objects = made_cluster(seed, nodes)
    path, found = plans(objects, tmp_path, seed)
    assert sum(len(steps["steps"]) for steps in found) > 5
    for steps in found:
        assert Replay(objects, steps).refused == []
        assert verify_files(StepsDocument(**steps), [path]) == []


@pytest.mark.parametrize("seed", range(24))
def test_every_point_runs_in_clusters_where_everything_happens(seed: int, tmp_path: Path) -> None:
    """Each is exported, verified, and made step by step, with pods that are ending and without."""
    objects = wild_cluster(seed, 6 + seed % 7)
    (tmp_path / "prices.csv").write_text(prices())
    (tmp_path / "buy.csv").write_text(candidates(["a", "b"]))
    buy = tmp_path / "buy.csv" if seed % 3 == 0 else None
    files = {"prices": [tmp_path / "prices.csv"], "candidates": buy}
    done = imported(tmp_path, objects, files=files, leave_out=True, missing_prices="default=1")
    front = api.solve(done.problem, "repack", seed=seed, restarts=1)
    cluster = load([tmp_path / "cluster.json"])
    for point in front.points:
        assert export(done.problem, point.plan, done.origin).startswith("#!")
        steps = document(done.problem, point.plan, done.origin)
        assert replay(with_bought(objects, steps), steps) == []
        assert [r.text for r in verify(StepsDocument(**steps), cluster)] == []


def test_what_was_stopped_starts_again_without_its_deployment_in_the_files(tmp_path: Path) -> None:
    """A step that starts names no pod: the template is that of the pod that was stopped."""
    objects = [o for o in made_cluster(0, 10) if o["kind"] in ("Node", "Pod")]
    done = imported(tmp_path, objects)
    application = next(a for a in done.problem.applications if a.reschedulable)
    mine = application.microservices[0]
    late = next(m for a in done.problem.applications for m in a.microservices if m.node is None)
    step = {"application": application.name, "microservice": mine.name}
    waits = {"application": "shop", "microservice": late.name, "to": "n2"}
    plan = {"steps": [{**step, "to": None}, {**step, "to": mine.node}, waits]}
    steps = StepsDocument(**document(done.problem, plan, done.origin))
    assert [s.action for s in steps.steps] == ["stop", "start", "start"]
    assert verify_files(steps, [tmp_path / "cluster.json"]) == []


def test_the_checker_refuses_by_every_filter_and_verify_agrees(tmp_path: Path) -> None:
    """Single moves of any pod to any node: refused by both, or by neither."""
    objects = made_cluster(3, 16)
    cluster = load([written(tmp_path / "cluster.json", objects)])
    state, seen, legal = Scheduler(objects), set[str](), 0
    pods = [p for p in state.pods.values() if must_stay(p) != "pods of ['DaemonSet'] stay"]
    for one, at in [*product(pods, state.nodes)][:: tries(7, 1)]:
        steps = one_step(one, at)
        fresh = Replay._copy(one, steps["steps"][0])
        expected = state.refusals(fresh, at)
        found = verify(StepsDocument(**steps), cluster)
        assert bool(found) == bool(expected), (key_of(one), at, expected, found)
        seen |= set(expected)
        legal += not expected
    assert legal > 20
    assert seen >= {
        "NodeUnschedulable",
        "TaintToleration",
        "NodeAffinity",
        "VolumeBinding",
        "NodePorts",
        "NodeResourcesFit cpu",
        "NodeResourcesFit nvidia.com/gpu",
        "InterPodAffinity: anti-affinity",
        "InterPodAffinity: anti-affinity of another pod",
        "InterPodAffinity: affinity",
        "PodTopologySpread",
    }


def test_the_checker_refuses_plans_that_were_changed(tmp_path: Path) -> None:
    """A wrong node, a wrong place, a lost replica, a pod that must stay, a node not empty."""
    objects = made_cluster(0, 10)
    _, found = plans(objects, tmp_path, 0)
    steps = max(found, key=lambda s: len(s["steps"]))
    state = Scheduler(objects)

    def changed(k: int, **change: Any) -> str:
        other = json.loads(json.dumps(steps))
        other["steps"][k] |= change
        return "; ".join(Replay(objects, other).refused)

    cordoned = next(n for n, o in state.nodes.items() if o["spec"].get("unschedulable"))
    k = next(k for k, s in enumerate(steps["steps"]) if s["from"] is not None)
    assert "NodeUnschedulable" in changed(k, to=cordoned)
    assert "is not on" in changed(k, **{"from": cordoned})
    assert "are lost" in changed(k, to=None)
    assert "is not empty" in changed(k, empties_node=True)
    stays = next(p for p in state.pods.values() if must_stay(p))
    moved = one_step(stays, stays["spec"]["nodeName"])
    assert must_stay(stays) in "; ".join(Replay(objects, moved).refused)
    crowd = next(iter(state.nodes))
    pods = [p for p in state.pods.values() if not must_stay(p) and p["spec"]["nodeName"] != crowd]
    crowded = [one_step(p, crowd)["steps"][0] | {"new_pod": f"c{i}"} for i, p in enumerate(pods)]
    assert "at the end, / on" in "; ".join(Replay(objects, {"steps": crowded}).refused)


def test_the_command_names_step_and_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    objects = made_cluster(1, 6)
    moving = next(o for o in objects if o["kind"] == "Pod" and not must_stay(o))
    next(o for o in objects if o["metadata"]["name"] == "n1")["spec"] |= taint("k", value="v")
    path = written(tmp_path / "cluster.json", objects)
    (tmp_path / "steps.json").write_text(json.dumps(one_step(moving, "n1")))
    assert ended("verify", str(tmp_path / "steps.json"), "--cluster", str(path)) == 3
    said = capsys.readouterr().out
    assert "-new would not be scheduled on n1: node(s)" in said
    assert "node(s) had untolerated taint {k: v}" in said


def test_export_asks_by_itself(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It refuses a plan whose copy would wait for ever; where the files are gone it says so."""
    web, first = pod("web-5", "n1", space="a"), node("n1")
    path = written(tmp_path / "cluster.json", [web, first, node("n2")])
    names = [str(tmp_path / n) for n in ("web.json", "plan.json", "steps.sh")]
    options = ["--to", "rolling-update", "--missing-prices", "default=1", "-o", names[0]]
    assert ended("import", "kubernetes", str(path), *options) == 0
    instance = json.loads((tmp_path / "web.json").read_text())
    space = instance["applications"][0]["name"]
    step = {"application": space, "microservice": "web-5", "to": "n2"}
    (tmp_path / "plan.json").write_text(json.dumps({"steps": [step]}))
    export = ["export", "kubernetes", names[1], "--instance", names[0], "-o", names[2]]
    assert ended(*export) == 0
    assert "may have changed" not in capsys.readouterr().err
    written(path, [web, node("n1", labels={"a": "b"}), node("n2")])
    assert ended(*export) == 0, "the files differ, and the plan runs all the same"
    written(path, [web, first, node("n2", **taint("k", value="v"))])
    assert ended(*export) == 2
    said = capsys.readouterr().err
    assert "kube-scheduler would refuse a pod: step 1: a/web" in said and "{k: v}" in said
    assert f"import again: changed since it was imported: {path}" in said
    path.unlink()
    assert ended(*export) == 0
    assert "If it may have changed since, `placeopt verify" in capsys.readouterr().err
