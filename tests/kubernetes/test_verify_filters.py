"""Every filter of ``verify``: the state that it must refuse, and the state just inside."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from held_clusters import node, pod

from placeopt.kubernetes.export.script import StepsDocument
from placeopt.kubernetes.manifests import load
from placeopt.kubernetes.verify import budgets_broken, verify

Json = dict[str, Any]
HARD = "requiredDuringSchedulingIgnoredDuringExecution"
HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
WEB = {"matchLabels": {"app": "web"}}


def thing(kind: str, name: str, version: str = "v1", space: str = "shop", **rest: Any) -> Json:
    meta = {"name": name, **({"namespace": space} if space else {}), **rest.pop("meta", {})}
    return {"apiVersion": version, "kind": kind, "metadata": meta, **rest}


def room(name: str, labels: Json | None = None, **allocatable: str) -> Json:
    """Return a node with more or other room than most."""
    made = node(name, labels={HOST: name, **(labels or {})})
    made["status"]["allocatable"] |= allocatable
    return made


def asking(name: str, on: str, **requests: str) -> Json:
    """Return a pod that asks for this and nothing else."""
    made = pod(name, on)
    made["spec"]["containers"][0]["resources"]["requests"] = requests
    return made


def waiting(name: str, **more: Any) -> Json:
    return {**pod(name, None, **more), "status": {"phase": "Pending"}}


def claimed(name: str, on: str, claim: str) -> Json:
    return pod(name, on, volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": claim}}])


def claim(name: str, volume: str, driver: str = "ebs", zone: str = "") -> list[Json]:
    """Return a claim that several nodes may have, and its volume, which may be in one zone."""
    spec: Json = {"csi": {"driver": driver, "volumeHandle": volume}}
    if zone:
        terms = [{"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]}]
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": terms}}
    wanted = {"accessModes": ["ReadWriteMany"], "volumeName": volume}
    bound = {"phase": "Bound"}
    return [
        thing("PersistentVolumeClaim", name, spec=wanted, status=bound),
        thing("PersistentVolume", volume, space="", spec=spec),
    ]


def attaching(count: int) -> Json:
    drivers = [{"name": "ebs", "nodeID": "n2", "allocatable": {"count": count}}]
    return thing("CSINode", "n2", "storage.k8s.io/v1", "", spec={"drivers": drivers})


def affinity(kind: str, key: str = HOST, selector: Json | None = None) -> Json:
    return {kind: {HARD: [{"labelSelector": selector or WEB, "topologyKey": key}]}}


def expression(operator: str, *values: str) -> Json:
    terms = [{"matchExpressions": [{"key": "n", "operator": operator, "values": list(values)}]}]
    return {"nodeAffinity": {HARD: {"nodeSelectorTerms": terms}}}


def spread(skew: int, **more: Any) -> list[Json]:
    rule = {"maxSkew": skew, "topologyKey": HOST, "whenUnsatisfiable": "DoNotSchedule"}
    return [{**rule, "labelSelector": WEB, **more}]


def port(name: str, on: str, number: int, protocol: str = "TCP") -> Json:
    made = pod(name, on)
    ports = [{"containerPort": 1, "hostPort": number, "protocol": protocol}]
    made["spec"]["containers"][0]["ports"] = ports
    return made


N1, N2, N3 = room("n1"), room("n2"), room("n3")
WEB_1 = pod("web-1", "n1")
GATES = [{"name": "example.org/wait"}]
TAINT = {"key": "own", "value": "a", "effect": "NoSchedule"}
EXECUTE = {**TAINT, "effect": "NoExecute"}
PREFER = {**TAINT, "effect": "PreferNoSchedule"}
TOLERATED = [{"key": "own", "operator": "Exists"}]
CORDON = [{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}]
NOT_READY = {**N2, "status": {**N2["status"], "conditions": [{"type": "Ready", "status": "False"}]}}


def tainted(taint: Json) -> Json:
    return {**N2, "spec": {"taints": [taint]}}


def rollout(replicas: int) -> Json:
    own = {key: value for key, value in WEB_1["spec"].items() if key != "nodeName"}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": own}
    spec = {"replicas": replicas, "selector": WEB, "template": template}
    return thing("Deployment", "web", "apps/v1", spec=spec)


def quota(**used: str) -> Json:
    hard = {"pods": "3", "requests.cpu": "3"}
    return thing("ResourceQuota", "q", spec={"hard": hard}, status={"hard": hard, "used": used})


def most(cpu: str) -> Json:
    limits = [{"type": "Container", "max": {"cpu": cpu}}]
    return thing("LimitRange", "r", spec={"limits": limits})


def namespace(phase: str) -> Json:
    return thing("Namespace", "shop", space="", status={"phase": phase})


def later(mode: str, *zones: str) -> list[Json]:
    """Return a claim that is bound when a pod is, to a volume of a class in some zones."""
    places = [{"matchLabelExpressions": [{"key": ZONE, "values": list(zones)}]}]
    about: Json = {"volumeBindingMode": mode, "provisioner": "ebs", "allowedTopologies": places}
    return [
        thing("StorageClass", "c", "storage.k8s.io/v1", "", **about),
        thing(
            "PersistentVolumeClaim",
            "late",
            spec={"accessModes": ["ReadWriteMany"], "storageClassName": "c"},
            status={"phase": "Pending"},
        ),
    ]


#: What is refused, what is just inside, and why. The step moves web-1 from n1 to n2, or starts it.
FILTERS: dict[str, tuple[list[Json], list[Json], str]] = {
    "cpu": (
        [N1, room("n2", cpu="2"), asking("web-1", "n1", cpu="1001m"), asking("b-1", "n2", cpu="1")],
        [N1, room("n2", cpu="2"), asking("web-1", "n1", cpu="1"), asking("b-1", "n2", cpu="1")],
        "Insufficient cpu",
    ),
    "memory": (
        [N1, room("n2", memory="1023Mi"), asking("web-1", "n1", memory="1Gi")],
        [N1, room("n2", memory="1024Mi"), asking("web-1", "n1", memory="1Gi")],
        "Insufficient memory",
    ),
    "pods": (
        [N1, room("n2", pods="1"), WEB_1, pod("b-1", "n2")],
        [N1, room("n2", pods="2"), WEB_1, pod("b-1", "n2")],
        "Too many pods",
    ),
    "further resources": (
        [N1, room("n2", **{"x.org/gpu": "1"}), asking("web-1", "n1", **{"x.org/gpu": "2"})],
        [N1, room("n2", **{"x.org/gpu": "2"}), asking("web-1", "n1", **{"x.org/gpu": "2"})],
        "Insufficient x.org/gpu",
    ),
    "a resource that the node has not": (
        [N1, N2, asking("web-1", "n1", **{"x.org/gpu": "1"})],
        [N1, N2, asking("web-1", "n1", cpu="1")],
        "Insufficient x.org/gpu",
    ),
    "an overfull node and nothing of what it lacks": (
        [N1, room("n2", cpu="1"), asking("web-1", "n1", cpu="1m"), pod("b-1", "n2", "2")],
        [N1, room("n2", cpu="1"), asking("web-1", "n1", memory="1Mi"), pod("b-1", "n2", "2")],
        "Insufficient cpu",
    ),
    "an overfull node of memory and nothing of it": (
        [N1, room("n2", memory="1Mi"), asking("web-1", "n1", memory="1"), pod("b-1", "n2")],
        [N1, room("n2", memory="1Mi"), asking("web-1", "n1", cpu="1"), pod("b-1", "n2")],
        "Insufficient memory",
    ),
    "cordons": (
        [N1, {**N2, "spec": {"unschedulable": True}}, WEB_1],
        [N1, {**N2, "spec": {"unschedulable": True}}, pod("web-1", "n1", tolerations=CORDON)],
        "unschedulable",
    ),
    "not ready": ([N1, NOT_READY, WEB_1], [N1, N2, WEB_1], "not ready"),
    "taints": ([N1, tainted(TAINT), WEB_1], [N1, tainted(PREFER), WEB_1], "untolerated taint"),
    "tolerations": (
        [N1, tainted(EXECUTE), WEB_1],
        [N1, tainted(EXECUTE), pod("web-1", "n1", tolerations=TOLERATED)],
        "untolerated taint",
    ),
    "values of tolerations": (
        [N1, tainted(TAINT), pod("web-1", "n1", tolerations=[{"key": "own", "value": "b"}])],
        [N1, tainted(TAINT), pod("web-1", "n1", tolerations=[{"key": "own", "value": "a"}])],
        "untolerated taint",
    ),
    "node selectors": (
        [N1, room("n2", {"pool": "b"}), pod("web-1", "n1", nodeSelector={"pool": "a"})],
        [N1, room("n2", {"pool": "a"}), pod("web-1", "n1", nodeSelector={"pool": "a"})],
        "node affinity/selector",
    ),
    "greater than": (
        [N1, room("n2", {"n": "4"}), pod("web-1", "n1", affinity=expression("Gt", "4"))],
        [N1, room("n2", {"n": "4"}), pod("web-1", "n1", affinity=expression("Gt", "3"))],
        "node affinity/selector",
    ),
    "less than": (
        [N1, room("n2", {"n": "4"}), pod("web-1", "n1", affinity=expression("Lt", "4"))],
        [N1, room("n2", {"n": "4"}), pod("web-1", "n1", affinity=expression("Lt", "5"))],
        "node affinity/selector",
    ),
    "ports": (
        [N1, N2, port("web-1", "n1", 80), port("b-1", "n2", 80)],
        [N1, N2, port("web-1", "n1", 80), port("b-1", "n2", 81)],
        "free ports",
    ),
    "protocols of ports": (
        [N1, N2, port("web-1", "n1", 80, "UDP"), port("b-1", "n2", 80, "UDP")],
        [N1, N2, port("web-1", "n1", 80, "UDP"), port("b-1", "n2", 80)],
        "free ports",
    ),
    "zones of volumes": (
        [N1, room("n2", {ZONE: "z2"}), claimed("web-1", "n1", "d"), *claim("d", "v1", zone="z1")],
        [N1, room("n2", {ZONE: "z1"}), claimed("web-1", "n1", "d"), *claim("d", "v1", zone="z1")],
        "volume node affinity",
    ),
    "volumes to come": (
        [
            N1,
            room("n2", {ZONE: "z2"}),
            claimed("web-1", "n1", "late"),
            *later("WaitForFirstConsumer", "z1"),
        ],
        [
            N1,
            room("n2", {ZONE: "z2"}),
            claimed("web-1", "n1", "late"),
            *later("WaitForFirstConsumer", "z1", "z2"),
        ],
        "",
    ),
    "volumes that a node attaches": (
        [
            N1,
            N2,
            attaching(1),
            claimed("web-1", "n1", "d"),
            claimed("b-1", "n2", "e"),
            *claim("d", "v1"),
            *claim("e", "v2"),
        ],
        [
            N1,
            N2,
            attaching(2),
            claimed("web-1", "n1", "d"),
            claimed("b-1", "n2", "e"),
            *claim("d", "v1"),
            *claim("e", "v2"),
        ],
        "Too many volumes: at most 1 of ebs on n2",
    ),
    "one volume twice on a node": (
        [N1, N2, attaching(0), claimed("web-1", "n1", "d"), *claim("d", "v1")],
        [
            N1,
            N2,
            attaching(1),
            claimed("web-1", "n1", "d"),
            claimed("b-1", "n2", "d"),
            *claim("d", "v1"),
        ],
        "Too many volumes: at most 0",
    ),
    "volumes of another driver": (
        [
            N1,
            N2,
            attaching(1),
            claimed("web-1", "n1", "d"),
            claimed("b-1", "n2", "e"),
            *claim("d", "v1"),
            *claim("e", "v2"),
        ],
        [
            N1,
            N2,
            attaching(1),
            claimed("web-1", "n1", "d"),
            claimed("b-1", "n2", "e"),
            *claim("d", "v1"),
            *claim("e", "v2", "nfs"),
        ],
        "Too many volumes",
    ),
    "spread": (
        [N1, N2, N3, pod("web-1", "n1", topologySpreadConstraints=spread(1)), pod("web-2", "n2")],
        [N1, N2, N3, pod("web-1", "n1", topologySpreadConstraints=spread(2)), pod("web-2", "n2")],
        "topology spread",
    ),
    "anti-affinity": (
        [N1, N2, pod("web-1", "n1", affinity=affinity("podAntiAffinity")), pod("web-2", "n2")],
        [N1, N2, pod("web-1", "n1", affinity=affinity("podAntiAffinity")), pod("b-1", "n2")],
        "anti-affinity",
    ),
    "anti-affinity of another": (
        [N1, N2, WEB_1, pod("b-1", "n2", affinity=affinity("podAntiAffinity"))],
        [N1, N2, N3, WEB_1, pod("b-1", "n3", affinity=affinity("podAntiAffinity"))],
        "anti-affinity",
    ),
    "affinity": (
        [
            N1,
            N2,
            N3,
            pod("b-1", "n3"),
            pod(
                "web-1", "n1", affinity=affinity("podAffinity", HOST, {"matchLabels": {"app": "b"}})
            ),
        ],
        [
            N1,
            N2,
            N3,
            pod("b-1", "n2"),
            pod(
                "web-1", "n1", affinity=affinity("podAffinity", HOST, {"matchLabels": {"app": "b"}})
            ),
        ],
        "affinity",
    ),
    "scheduling gates": (
        [N1, N2, waiting("web-1", schedulingGates=GATES)],
        [N1, N2, waiting("web-1", schedulingGates=[])],
        "scheduling gates",
    ),
    "pods of a quota": (
        [N1, N2, WEB_1, quota(**{"pods": "3", "requests.cpu": "1"})],
        [N1, N2, WEB_1, quota(**{"pods": "2", "requests.cpu": "1"})],
        "ResourceQuota shop/q",
    ),
    "cpu of a quota": (
        [N1, N2, WEB_1, quota(**{"pods": "1", "requests.cpu": "2001m"})],
        [N1, N2, WEB_1, quota(**{"pods": "1", "requests.cpu": "2"})],
        "ResourceQuota shop/q",
    ),
    "limit ranges": ([N1, N2, WEB_1, most("999m")], [N1, N2, WEB_1, most("1")], "LimitRange"),
    "namespaces": (
        [N1, N2, WEB_1, namespace("Terminating")],
        [N1, N2, WEB_1, namespace("Active")],
        "being deleted",
    ),
    "rollouts": ([N1, N2, WEB_1, rollout(2)], [N1, N2, WEB_1, rollout(1)], "Deployment that has"),
}


def step(objects: list[Json], **more: Any) -> StepsDocument:
    """Return the step that moves web-1 to n2, or starts it there."""
    (mine,) = (o for o in objects if o["metadata"]["name"] == "web-1")
    source = mine["spec"].get("nodeName")
    made = {
        "number": 1,
        "action": "move" if source else "start",
        "application": "shop",
        "microservice": "web-1",
        "from": source,
        "to": "n2",
        "disruption": False,
        "workload": {"namespace": "shop", "kind": "Deployment", "name": "web"},
        "pod": "web-1",
        "new_pod": "web-1-copy",
        **more,
    }
    instance = {"problem": "rolling-update", "name": "x", "sha256": "0" * 64}
    about = {"format": "placeopt/steps@1", "instance": instance, "plan_id": "x", "values": {}}
    return StepsDocument(**about, steps=[made])


def written(folder: Path, objects: list[Json]) -> Path:
    file = folder / "cluster.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    return file


@pytest.mark.parametrize("name", FILTERS)
def test_a_filter_refuses_and_what_is_just_inside_passes(name: str, tmp_path: Path) -> None:
    refused, inside, text = FILTERS[name]
    told = verify(step(refused), load([written(tmp_path, refused)]))
    assert [(r.step, r.pod, r.node) for r in told] == [(1, "shop/web-1-copy", "n2")]
    assert text in told[0].text
    assert verify(step(inside), load([written(tmp_path, inside)])) == []


def budget(**spec: Any) -> Json:
    return thing("PodDisruptionBudget", "b", "policy/v1", spec={"selector": WEB, **spec})


#: Budgets that a stop of one of four pods breaks, and that it does not.
BUDGETS: dict[str, tuple[Json, Json]] = {
    "least": (budget(minAvailable=4), budget(minAvailable=3)),
    "most": (budget(maxUnavailable=0), budget(maxUnavailable=1)),
    "a share, rounded up": (budget(minAvailable="76%"), budget(minAvailable="75%")),
    "what may be missing, rounded up": (budget(maxUnavailable="0%"), budget(maxUnavailable="1%")),
    "what its controller says": (
        {**budget(maxUnavailable=1), "status": {"disruptionsAllowed": 0}},
        {**budget(maxUnavailable=1), "status": {"disruptionsAllowed": 1}},
    ),
}


@pytest.mark.parametrize("name", BUDGETS)
def test_a_budget_is_broken_and_what_is_just_inside_is_not(name: str, tmp_path: Path) -> None:
    pods = [pod(f"web-{k}", "n1") for k in range(1, 5)]
    broken: Callable[[Json], list[str]] = lambda one: budgets_broken(  # noqa: E731
        step([*pods, one], action="stop", to=None, disruption=True),
        load([written(tmp_path, [N1, N2, *pods, one])]),
    )
    refused, inside = BUDGETS[name]
    assert len(broken(refused)) == 1 and "shop/b" in broken(refused)[0]
    assert broken(inside) == []


def moves(objects: list[Json], *made: tuple[str, str | None, str]) -> StepsDocument:
    """Return several steps: (pod, from, to); from None starts one more replica."""
    whole, steps = step(objects), []
    for number, (name, source, to) in enumerate(made, start=1):
        one = whole.steps[0].model_dump(by_alias=True, mode="json") | {
            "number": number,
            "action": "move" if source else "start",
            "microservice": name,
            "from": source,
            "to": to,
            "workload": {"namespace": "shop", "kind": "Deployment", "name": name[:-2]},
            "pod": name if source else None,
            "new_pod": f"{name}-copy",
        }
        steps.append(one)
    document = whole.model_dump(by_alias=True, mode="json") | {"steps": steps}
    return StepsDocument.model_validate(document)


def test_what_a_pod_leaves_is_free_once(tmp_path: Path) -> None:
    small = room("n1", cpu="2")
    objects = [small, N2, asking("a-1", "n1", cpu="1"), asking("b-1", "n1", cpu="1")]
    read = load([written(tmp_path, [*objects, asking("web-1", "n2", cpu="2")])])
    away = "a-1", "n1", "n2"
    document = moves([*objects, asking("web-1", "n2")], away, ("web-1", "n2", "n1"))
    assert [refused.step for refused in verify(document, read)] == [2]
    both = moves(
        [*objects, asking("web-1", "n2")], away, ("b-1", "n1", "n2"), ("web-1", "n2", "n1")
    )
    assert verify(both, read) == []


def test_volumes_of_other_nodes_are_not_counted(tmp_path: Path) -> None:
    attached = thing(
        "VolumeAttachment",
        "x",
        "storage.k8s.io/v1",
        "",
        spec={"attacher": "ebs", "nodeName": "n1", "source": {"persistentVolumeName": "v2"}},
        status={"attached": True},
    )
    objects = [N1, N2, attaching(1), claimed("web-1", "n1", "d"), *claim("d", "v1")]
    objects += [*claim("e", "v2"), attached]
    assert verify(step(objects), load([written(tmp_path, objects)])) == []
    attached["spec"]["nodeName"] = "n2"
    (refused,) = verify(step(objects), load([written(tmp_path, objects)]))
    assert "Too many volumes" in refused.text


def test_one_more_replica_is_like_those_of_its_workload(tmp_path: Path) -> None:
    """Where the files have no workload: not like whatever pod stands first."""
    objects = [
        N1,
        room("n2", cpu="2"),
        asking("db-1", "n1", cpu="3"),
        asking("web-1", "n1", cpu="1"),
    ]
    read = load([written(tmp_path, objects)])
    assert verify(moves(objects, ("web-2", None, "n2")), read) == []
    (refused,) = verify(moves(objects, ("db-2", None, "n2")), read)
    assert "Insufficient cpu" in refused.text


@pytest.mark.parametrize("deleted", [True, False])
def test_a_node_that_a_step_deletes_counts_in_no_spread(deleted: bool, tmp_path: Path) -> None:
    kept = {"topologySpreadConstraints": spread(1)}
    objects = [N1, N2, N3, pod("web-1", "n1", **kept), pod("web-2", "n2", **kept)]
    document = moves(objects, ("web-1", "n1", "n3"), ("web-3", None, "n2"))
    document.steps[0].__dict__["deletes_node"] = deleted
    refused = verify(document, load([written(tmp_path, objects)]))
    assert [one.step for one in refused] == ([] if deleted else [2])


@pytest.mark.parametrize(
    ("new", "text"),
    [({"memory": "17Gi"}, "memory"), ({"cpu": "5"}, "cpu"), ({"memory": "16Gi", "cpu": "4"}, "")],
)
def test_new_requests_are_what_a_copy_asks_for(
    new: dict[str, str], text: str, tmp_path: Path
) -> None:
    objects = [N1, N2, pod("web-1", "n1")]
    refused = verify(step(objects, requests={"c": new}), load([written(tmp_path, objects)]))
    assert [one.text for one in refused] == ([] if not text else [refused[0].text])
    assert not text or f"Insufficient {text}" in refused[0].text


def test_what_a_copy_leaves_is_given_back_to_its_quota_once(tmp_path: Path) -> None:
    """Two pods of three: one moves, a third starts, a fourth may not."""
    objects = [N1, N2, asking("a-1", "n1", cpu="100m"), asking("web-1", "n1", cpu="100m")]
    objects.append(quota(**{"pods": "2", "requests.cpu": "200m"}))
    document = moves(objects, ("a-1", "n1", "n2"), ("web-2", None, "n2"), ("web-3", None, "n2"))
    refused = verify(document, load([written(tmp_path, objects)]))
    assert [one.step for one in refused] == [3] and "ResourceQuota shop/q" in refused[0].text


@pytest.mark.parametrize(
    ("kind", "source", "broken"),
    [("Deployment", "n1", 0), ("StatefulSet", "n1", 1), ("StatefulSet", None, 0)],
)
def test_only_what_ends_before_its_copy_runs_is_missing(
    kind: str, source: str | None, broken: int, tmp_path: Path
) -> None:
    objects = [N1, N2, pod("web-1", "n1"), pod("web-2", "n1"), budget(maxUnavailable=0)]
    document = moves(objects, ("web-2", source, "n2"))
    record = document.steps[0]
    workload = record.workload.model_copy(update={"kind": kind})  # type: ignore[union-attr]
    document.steps[0] = record.model_copy(update={"workload": workload, "pod": "web-2"})
    assert len(budgets_broken(document, load([written(tmp_path, objects)]))) == broken


@pytest.mark.parametrize(("cpu", "refused"), [("4", 0), ("5", 1)])
def test_a_pod_that_waits_is_asked_for_as_it_is(cpu: str, refused: int, tmp_path: Path) -> None:
    """Not as the template of its workload, which asks for less since."""
    waits = waiting("web-2")
    waits["spec"]["containers"][0]["resources"]["requests"] = {"cpu": cpu}
    objects = [N1, N2, WEB_1, rollout(1), waits]
    document = moves(objects, ("web-2", None, "n2"))
    document.steps[0] = document.steps[0].model_copy(update={"pod": "web-2"})
    assert len(verify(document, load([written(tmp_path, objects)]))) == refused
