"""What placeopt plans, the scheduler runs: plans against filters written apart from the package."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from placeopt import api
from placeopt.cli import main
from placeopt.kubernetes.export.steps_document import StepsDocument, document
from placeopt.kubernetes.gathered import ImportOptions
from placeopt.kubernetes.importing import import_files
from placeopt.kubernetes.units import MovingRules
from placeopt.kubernetes.verify import verify_files

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

from scheduler_filters import Scheduler, made_cluster, replay

Json = dict[str, Any]


def written(path: Path, objects: list[Json]) -> Path:
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    return path


@pytest.mark.parametrize("seed", range(2))
def test_the_scheduler_accepts_every_plan(seed: int, tmp_path: Path) -> None:
    """Every copy where it starts, and every moved one at the end; `verify` says the same."""
    objects = made_cluster(seed, 6)
    path = written(tmp_path / "cluster.json", objects)
    done = import_files([path], "rolling-update", ImportOptions(rules=MovingRules()))
    front = api.solve(done.problem, "repack", seed=seed, restarts=1)
    assert done.problem.evaluate({"steps": []}).feasible
    for point in front.points:
        steps = document(done.problem, point.plan, done.origin)
        assert replay(objects, steps) == []
        assert verify_files(StepsDocument(**steps), [path]) == []


def test_verify_refuses_what_the_scheduler_refuses(tmp_path: Path) -> None:
    """Single moves of any pod to any node: refused by both, or by neither."""
    objects = made_cluster(3, 9)
    path = written(tmp_path / "cluster.json", objects)
    state, refused = Scheduler(objects), 0
    name = {"problem": "rolling-update", "name": "c", "sha256": ""}
    for pod in list(state.pods.values())[::2]:
        for node in state.nodes:
            step = {"number": 1, "action": "move", "application": "shop", "microservice": "m"}
            step |= {"from": pod["spec"]["nodeName"], "to": node, "disruption": False}
            step |= {"pod": pod["metadata"]["name"], "new_pod": "copy"}
            step["workload"] = {"namespace": "shop", "kind": "Deployment", "name": "w"}
            steps = {"format": "placeopt/steps@1", "instance": name, "plan_id": "", "values": {}}
            known = StepsDocument(**steps, steps=[step])
            copied = pod | {"metadata": {**pod["metadata"], "name": "copy"}}
            expected = state.refusals(copied, node)
            found = verify_files(known, [path])
            assert bool(found) == bool(expected), (step, expected, found)
            refused += bool(expected)
    assert refused > 30


def test_the_command_names_step_and_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    objects = made_cluster(1, 6)
    path = written(tmp_path / "cluster.json", objects)
    pod = next(o for o in objects if o["kind"] == "Pod")
    objects[1]["spec"]["taints"] = [{"key": "k", "value": "v", "effect": "NoSchedule"}]
    written(path, objects)
    step = {"number": 1, "action": "move", "application": "shop", "microservice": "m"}
    step |= {"from": pod["spec"]["nodeName"], "to": "n1", "disruption": False}
    step |= {"pod": pod["metadata"]["name"], "new_pod": "copy"}
    step["workload"] = {"namespace": "shop", "kind": "Deployment", "name": "w"}
    name = {"problem": "rolling-update", "name": "c", "sha256": ""}
    steps = {"format": "placeopt/steps@1", "instance": name, "plan_id": "", "values": {}}
    (tmp_path / "steps.json").write_text(json.dumps({**steps, "steps": [step]}))
    with pytest.raises(SystemExit) as ended:
        main(["verify", str(tmp_path / "steps.json"), "--cluster", str(path)])
    assert ended.value.code == 3
    assert "step 1: shop/copy would not be scheduled on n1: node(s) had" in capsys.readouterr().out
