"""What changes or leaves, and what may not be made anew: no plan counts on it.

Each kind of situation is drawn many times among Deployments that may move.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from little_clusters import Json, container, deployment, imported, node, taint, texts, written
from planned import ends_of, every_point_runs, one_step

from placeopt.kubernetes.export.script import StepsDocument
from placeopt.kubernetes.manifests import load
from placeopt.kubernetes.verify import verify

WHEN = "2026-01-01T00:00:00Z"
NAMES = ["n0", "n1", "n2", "n3"]


def leaving(made: Json) -> Json:
    """Return an object that is being deleted."""
    return {**made, "metadata": {**made["metadata"], "deletionTimestamp": WHEN}}


def namespaced(kind: str, **more: Any) -> Json:
    return {"kind": kind, "metadata": {"name": kind.lower(), "namespace": "odd"}, **more}


def ranges(kind: str = "Container", **limits: Any) -> list[Json]:
    return [namespaced("LimitRange", spec={"limits": [{"type": kind, **limits}]})]


def claimed(**more: Any) -> list[Json]:
    """Return a shared claim that the pods use, in some state."""
    spec = {"accessModes": ["ReadWriteMany"], "volumeName": "pv", "storageClassName": "nfs"}
    claim = namespaced("PersistentVolumeClaim", spec=spec)
    claim["metadata"] |= {"name": "c", **more.pop("metadata", {})}
    about = {"accessModes": ["ReadWriteMany"], "nfs": {"server": "x", "path": "/"}}
    volume = {"kind": "PersistentVolume", "metadata": {"name": "pv"}, "spec": about}
    return [claim | more, volume]


def wanting(objects: list[Json], count: int) -> list[Json]:
    """Let the Deployment and the ReplicaSet want so many pods."""
    for made in objects[:2]:
        made["spec"] = {**made["spec"], "replicas": count}
    return objects


USES = {"volumes": [{"name": "d", "persistentVolumeClaim": {"claimName": "c"}}]}
SPACE = {"kind": "Namespace", "metadata": {"name": "odd"}}
ENDS = {**SPACE, "status": {"phase": "Terminating"}}
LOST = "lost or being deleted"
#: What holds the pods of a Deployment -> what is changed of its objects, and what is said.
ODD: dict[str, tuple[Callable[[list[Json]], list[Json]], str]] = {
    "its namespace is going": (lambda o: [*o, leaving(SPACE)], "namespace odd is being deleted"),
    "its namespace ends": (lambda o: [*o, ENDS], "no pod may be made there"),
    "it is being deleted": (lambda o: [leaving(o[0]), *o[1:]], "that is being deleted"),
    "its ReplicaSet is": (lambda o: [o[0], leaving(o[1]), *o[2:]], "that is being deleted"),
    "it shrinks": (lambda o: wanting(o, 1), "has more pods than it wants"),
    "it is stopped": (lambda o: wanting(o, 0), "has more pods than it wants"),
    "it grows": (lambda o: wanting(o, 5), "has fewer pods than it wants"),
    "most of a container": (lambda o: [*o, *ranges(max={"cpu": "200m"})], "above its most"),
    "least of a container": (lambda o: [*o, *ranges(min={"memory": "1Gi"})], "below its least"),
    "most of a pod": (lambda o: [*o, *ranges("Pod", max={"cpu": "499m"})], "above its most"),
    "a pod without a limit": (lambda o: [*o, *ranges("Pod", max={"cpu": "9"})], "has no limit"),
    "least of a pod": (lambda o: [*o, *ranges("Pod", min={"memory": "513Mi"})], "below its least"),
    "a claim that is going": (lambda o: [*o, *claimed(metadata={"deletionTimestamp": WHEN})], LOST),
    "a claim that is lost": (lambda o: [*o, *claimed(status={"phase": "Lost"})], LOST),
}
#: What holds nothing.
PLAIN: dict[str, Callable[[list[Json]], list[Json]]] = {
    "a namespace": lambda o: [*o, {**SPACE, "status": {"phase": "Active"}}],
    "ranges that it keeps": lambda o: [*o, *ranges(max={"cpu": "1"}, min={"memory": "1Mi"})],
    "a ratio without limits": lambda o: [*o, *ranges(maxLimitRequestRatio={"cpu": "2"})],
    "ranges of claims": lambda o: [*o, *ranges("PersistentVolumeClaim", max={"storage": "1Gi"})],
    "a pod without a limit, given one": lambda o: [
        *o,
        *ranges("Pod", max={"cpu": "9"}),
        {**ranges(default={"cpu": "1"})[0], "metadata": {"name": "other", "namespace": "odd"}},
    ],
    "nothing": lambda o: o,
}


def odd(rng: np.random.Generator, case: str) -> list[Json]:
    """Return the Deployment in question, on two nodes, as the case has it."""
    where = [str(n) for n in rng.choice(NAMES, size=2)]
    uses = USES if "claim that" in case else {}
    made = deployment("odd", where, space="odd", **uses)
    return ODD[case][0](made) if case in ODD else PLAIN[case](made)


def others(rng: np.random.Generator) -> list[Json]:
    """Return nodes and Deployments that may move."""
    objects = [node(name) for name in NAMES]
    for k in range(3):
        where = [str(n) for n in rng.choice(NAMES, size=int(rng.integers(1, 4)))]
        objects += deployment(f"app{k}", where, [container(cpu=f"{rng.integers(2, 9)}00m")])
    return objects


@pytest.mark.parametrize("seed", range(28))
def test_what_holds_a_deployment(seed: int, tmp_path: Path) -> None:
    """Its pods stay and the report says why; the others still move."""
    rng, case = np.random.default_rng(seed), list(ODD)[seed % len(ODD)]
    done, found = every_point_runs(tmp_path, [*others(rng), *odd(rng, case)])
    told = texts(done, "pinned")
    assert ODD[case][1] in told and "odd/odd-7d9f-0" in told
    moved = {step["microservice"] for steps in found for step in steps["steps"]}
    assert not any(name.startswith("odd") for name in moved)


@pytest.mark.parametrize("case", [case for case in ODD if "claim" not in case])
def test_a_plan_of_before_is_refused(case: str, tmp_path: Path) -> None:
    """A cluster has changed since its steps were planned."""
    objects = [*others(np.random.default_rng(0)), *odd(np.random.default_rng(0), case)]
    pod = next(o for o in objects if o["kind"] == "Pod" and o["metadata"]["namespace"] == "odd")
    steps = StepsDocument(**one_step(pod, "n3"))
    (refused,) = verify(steps, load([written(tmp_path / "cluster.json", objects)]))
    assert any(ODD[case][1] in reason for reason in refused.reasons), refused


@pytest.mark.parametrize("case", PLAIN)
def test_what_holds_nothing(case: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    done = imported(tmp_path, [*others(rng), *odd(rng, case)])
    assert "odd" not in texts(done, "pinned")


@pytest.mark.parametrize("ratio", ["1.5", "2"])
def test_a_ratio_of_limit_and_request(ratio: str, tmp_path: Path) -> None:
    limited = [container(resources={"limits": {"cpu": "1", "memory": "1Gi"}})]
    made = deployment("odd", ["n0"], limited, space="odd")
    objects = [node("n0"), *made, *ranges(maxLimitRequestRatio={"cpu": ratio})]
    told = texts(imported(tmp_path, objects), "pinned")
    assert ("too large a limit for its request" in told) == (ratio == "1.5")


@pytest.mark.parametrize("case", ODD)
def test_pods_that_wait(case: str, tmp_path: Path) -> None:
    """Of what leaves they are not wanted any more; what grows or may not be copied waits still."""
    rng = np.random.default_rng(1)
    uses = USES if "claim that" in case else {}
    made = deployment("odd", ["n1", None], space="odd", **uses)
    objects = [*others(rng), *ODD[case][0](made)]
    done = imported(tmp_path, objects)
    gone = any(word in case for word in ("namespace", "deleted", "ReplicaSet", "shrinks"))
    gone |= "stopped" in case or "claim that" in case
    assert ("odd/odd-7d9f-1" in texts(done, "left-out")) == gone


# -- nodes -----------------------------------------------------------------------------------------

#: Who deletes a node -> the taint that says so; None: its own field.
GOING = {
    "deleted": None,
    "cluster-autoscaler": "ToBeDeletedByClusterAutoscaler",
    "karpenter": "karpenter.sh/disrupted",
    "karpenter before": "karpenter.sh/disruption",
}


@pytest.mark.parametrize("seed", range(28))
def test_nodes_that_leave_take_nothing(seed: int, tmp_path: Path) -> None:
    """Not even pods that tolerate all; with ``--cordoned drain`` a plan empties them."""
    rng, case = np.random.default_rng(seed), list(GOING)[seed % len(GOING)]
    objects = others(rng)
    at = int(rng.integers(len(NAMES)))
    key = GOING[case]
    objects[at] = node(NAMES[at], **taint(key, value="x")) if key else leaving(objects[at])
    for made in objects[len(NAMES) :]:
        spec = made["spec"] if made["kind"] == "Pod" else made["spec"]["template"]["spec"]
        spec["tolerations"] = [{"operator": "Exists"}]
    gone = NAMES[at]
    done, found = every_point_runs(tmp_path, objects)
    assert "nodes that are being deleted, with their pods" in texts(done, "left-out")
    assert gone in texts(done, "left-out")
    assert all(step["to"] != gone for steps in found for step in steps["steps"])
    done, found = every_point_runs(tmp_path, objects, drain_cordoned=True)
    assert all(gone not in ends_of(done, steps).values() for steps in found)


def test_an_autoscaler_that_sets_requests_is_named(tmp_path: Path) -> None:
    """In every mode but Off copies get its target, whatever a plan counts."""
    target = {"targetRef": {"kind": "Deployment", "name": "app0"}}
    rng = np.random.default_rng(0)
    for mode, named in (("Off", False), ("Initial", True), ("Auto", True), (None, True)):
        policy = {} if mode is None else {"updatePolicy": {"updateMode": mode}}
        vpa: Json = {"apiVersion": "autoscaling.k8s.io/v1", "kind": "VerticalPodAutoscaler"}
        vpa |= {"metadata": {"name": "v", "namespace": "default"}, "spec": target | policy}
        told = texts(imported(tmp_path, [*others(rng), vpa]), "not-expressed")
        assert ("copies get their target" in told) == named
