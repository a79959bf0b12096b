"""Every point of the front of a cluster: exported, verified, and made step by step."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from little_clusters import imported
from scheduler_filters import key_of, replay

from placeopt import api
from placeopt.kubernetes.export import export
from placeopt.kubernetes.export.script import StepsDocument, document
from placeopt.kubernetes.importing import Imported
from placeopt.kubernetes.manifests import load
from placeopt.kubernetes.verify import verify

Json = dict[str, Any]


def plans_of(done: Imported, **parameters: Any) -> list[Json]:
    """Return the steps of every point of a front; each is exported, too."""
    front = api.solve(done.problem, "repack", seed=1, restarts=1, **parameters)
    assert front.points, done.problem.infeasibility()
    for point in front.points:
        assert done.problem.evaluate(point.plan).feasible, done.problem.evaluate(point.plan)
        assert export(done.problem, point.plan, done.origin).startswith("#!")
    return [document(done.problem, point.plan, done.origin) for point in front.points]


def every_point_runs(
    folder: Path, objects: Sequence[Json], **options: Any
) -> tuple[Imported, list[Json]]:
    """Return the import of a cluster and the steps of every point, all of which a scheduler runs.

    `options` are those of `little_clusters.imported`.
    """
    done = imported(folder, objects, **options)
    found = plans_of(done)
    cluster = load([folder / "cluster.json"])
    for steps in found:
        wrong = replay(list(objects), steps)
        assert not wrong, wrong
        refused = [r.text for r in verify(StepsDocument(**steps), cluster)]
        assert not refused, refused
    return done, found


def ends_of(done: Imported, steps: Json) -> dict[str, str | None]:
    """Return the node of every microservice after the steps of a plan."""
    listed = (m for a in done.document["applications"] for m in a["microservices"])
    where = {m["name"]: m["node"] for m in listed}
    return where | {step["microservice"]: step["to"] for step in steps["steps"]}


def steps_of(*moves: tuple[tuple[str, str], str | None, str], **more: Any) -> Json:
    """Return moves, each a pod (namespace, name), its node and its new node, as a document."""
    steps = [
        {
            "number": k,
            "action": "move",
            "application": space,
            "microservice": name,
            "from": old,
            "to": new,
            "disruption": False,
            "workload": {"namespace": space, "kind": "Deployment", "name": name.split("-")[0]},
            "pod": name,
            "new_pod": f"{name}-new",
            "empties_node": False,
        }
        for k, ((space, name), old, new) in enumerate(moves, 1)
    ]
    instance = {"problem": "rolling-update", "name": "c", "sha256": ""}
    document = {"format": "placeopt/steps@1", "instance": instance, "plan_id": "", "values": {}}
    return {**document, "steps": steps, **more}


def one_step(pod: Json, node: str) -> Json:
    """Return a steps document that moves one pod to a node."""
    return steps_of((key_of(pod), pod["spec"]["nodeName"], node))


__all__ = ["ends_of", "every_point_runs", "one_step", "plans_of", "steps_of"]
