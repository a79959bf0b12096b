"""What is there but cannot move or be used: a plan that stands on the front runs in the cluster.

Every point of every front is exported, verified, and made step by step by the scheduler of
`scheduler_filters`. All kinds of situations at once are drawn in `test_verify.py`; here are those
of which something more is known.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from little_clusters import (
    ZONE_KEY,
    Json,
    apart,
    bought,
    container,
    deployment,
    imported,
    moves,
    node,
    services,
    taint,
    texts,
)
from planned import ends_of, every_point_runs, plans_of

from placeopt import api
from placeopt.core.errors import InfeasibleInstanceError, UsageError
from placeopt.kubernetes.export import export
from placeopt.kubernetes.given import read_new_requests

DRIVER = "blk.csi.example.com"
SEEDS = range(25)


def rng_of(kind: str, seed: int) -> np.random.Generator:
    return np.random.default_rng([seed, *kind.encode()])


def objects_of(data: Path, name: str) -> list[Json]:
    """Return the objects of a case of the outside data."""
    path = data / "kubernetes_cases" / f"{name}.json"
    return list(json.loads(path.read_text())["items"])


def broken(made: Json, *, ready: bool = False, cordoned: bool = False) -> Json:
    """Return a node that is not ready, or cordoned, with the taints that a cluster gives it."""
    found, taints = copy.deepcopy(made), list[Json]()
    if not ready:
        found["status"]["conditions"][0]["status"] = "Unknown"
        taints += taint("node.kubernetes.io/unreachable")["taints"]
    if cordoned:
        found["spec"]["unschedulable"] = True
        taints += taint("node.kubernetes.io/unschedulable")["taints"]
    found["spec"]["taints"] = taints
    return found


def ending(pod: Json) -> Json:
    """Return a pod that is being deleted."""
    about = {**pod["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}
    return {**pod, "metadata": about}


def agent(name: str, nodes: list[str], port: Json | None = None, **spec: Any) -> list[Json]:
    """Return a DaemonSet and its pods, one on each of some nodes."""
    own = container(cpu="100m", memory="64Mi", **({"ports": [port]} if port else {}))
    made = deployment(name, nodes, [own], kind="DaemonSet", **spec)
    del made[0]["spec"]["replicas"]
    return made


def claim(name: str, modes: str = "ReadWriteMany", **spec: Any) -> Json:
    """Return a claim of a volume."""
    asked = {"accessModes": [modes], "storageClassName": "csi"}
    asked |= {"resources": {"requests": {"storage": "1Gi"}}, **spec}
    about = {"name": name, "namespace": "default"}
    return {"kind": "PersistentVolumeClaim", "metadata": about, "spec": asked}


def volume(name: str, **spec: Any) -> Json:
    """Return a volume of the driver."""
    made = {"accessModes": ["ReadWriteMany"], "capacity": {"storage": "1Gi"}, **spec}
    made.setdefault("csi", {"driver": DRIVER, "volumeHandle": name})
    return {"kind": "PersistentVolume", "metadata": {"name": name}, "spec": made}


def storage_class(mode: str, **more: Any) -> Json:
    made = {"kind": "StorageClass", "metadata": {"name": "csi"}, "provisioner": DRIVER}
    return made | {"volumeBindingMode": mode} | more


def quota(hard: Json, used: Json, **more: Any) -> Json:
    made = {"kind": "ResourceQuota", "metadata": {"name": "q", "namespace": "default"}}
    return made | {"spec": {"hard": hard, **more}, "status": {"hard": hard, "used": used}}


def limit_range(**limits: Any) -> Json:
    about = {"name": "l", "namespace": "default"}
    spec = {"limits": [{"type": "Container", **limits}]}
    return {"kind": "LimitRange", "metadata": about, "spec": spec}


def asking(pod: Json, cpu: str) -> None:
    """Let a pod ask for more than its template."""
    pod["spec"] = copy.deepcopy(pod["spec"])
    pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] = cpu


def using(name: str) -> Json:
    return {"volumes": [{"name": "d", "persistentVolumeClaim": {"claimName": name}}]}


def csi_node(name: str, most: int) -> Json:
    drivers = [{"name": DRIVER, "nodeID": name, "allocatable": {"count": most}}]
    return {"kind": "CSINode", "metadata": {"name": name}, "spec": {"drivers": drivers}}


def scattered(rng: np.random.Generator, apps: int, nodes: list[str], **spec: Any) -> list[Json]:
    """Return Deployments whose pods are on random nodes."""
    found: list[Json] = []
    for k in range(apps):
        where = [str(rng.choice(nodes)) for _ in range(int(rng.integers(1, 4)))]
        found += deployment(f"app{k}", where, [container(cpu=f"{rng.integers(2, 9)}00m")], **spec)
    return found


def zoned(rng: np.random.Generator, count: int, zones: int = 3) -> list[Json]:
    return [
        node(f"n{k}", zone=f"z{rng.integers(zones) if k >= zones else k}") for k in range(count)
    ]


#: Case of the outside data -> where something is told of it, what, and whether nothing moves.
TOLD: dict[str, tuple[str, list[str], bool]] = {
    "spread_cordoned_zone": ("kept", [], True),
    "terminating_room": ("capacity", ["job-7d9f-0 on n1"], False),
    "gated": ("left-out", ["scheduling gates", "queue-7d9f-0"], True),
    "midrollout": ("pinned", ["web-old1-1", "rollout"], False),
    "csi_volume_limit": ("kept", ["CSINode"], False),
    "quota": (
        "pinned",
        ["ResourceQuota default/q has no room for one pod more: pods 2 of 2"],
        True,
    ),
}
#: What holds of the steps of each plan, and of where each pod ends.
HOLDS: dict[str, Callable[[list[Json], list[Any]], bool]] = {
    "terminating_room": lambda steps, _: all(step["to"] != "n1" for step in steps),
    "midrollout": lambda steps, _: not any("web" in s["microservice"] for s in steps),
    "csi_volume_limit": lambda _, ends: max(map(ends.count, ends)) <= 3,
}


@pytest.mark.parametrize("case", TOLD)
def test_cases_from_outside(case: str, kubernetes_data: Path, tmp_path: Path) -> None:
    topic, said, is_left_alone = TOLD[case]
    done, found = every_point_runs(tmp_path, objects_of(kubernetes_data, case))
    assert all(text in texts(done, topic) for text in said)
    assert all(plan["steps"] == [] for plan in found) or not is_left_alone
    for plan in found:
        ends = list(ends_of(done, plan).values())
        assert case not in HOLDS or HOLDS[case](plan["steps"], ends)
    if case == "terminating_room":
        assert min(plan["values"]["node_cost"] for plan in found) == 1


# -- cordoned nodes, and nodes that are not ready --------------------------------------------------


def test_a_cordoned_zone_stays_a_domain(kubernetes_data: Path, tmp_path: Path) -> None:
    objects = objects_of(kubernetes_data, "spread_cordoned_zone")
    done = imported(tmp_path, objects)
    assert [n["name"] for n in done.document["nodes"] if n.get("closed")] == ["n4"]
    drained, _ = every_point_runs(tmp_path, objects, drain_cordoned=True)
    assert not any(n.get("closed") for n in drained.document["nodes"])


def test_a_node_to_drain_may_be_cordoned_and_must_be_ready(tmp_path: Path) -> None:
    objects = [
        node("n1"),
        broken(node("n2"), ready=True, cordoned=True),
        *deployment("web", ["n2"]),
    ]
    done = imported(tmp_path, objects, drain=("n2",))
    assert [n.get("drain", False) for n in done.document["nodes"]] == [False, True]
    objects[1] = broken(node("n2"))
    with pytest.raises(UsageError, match="--drain n2: the node is not ready"):
        imported(tmp_path, objects, drain=("n2",))


# -- pods that are ending --------------------------------------------------------------------------


def test_nobody_is_first_beside_a_pod_that_is_ending(tmp_path: Path) -> None:
    """It is no company, and others are not the first of their group while it is there."""
    together = apart("app0", ZONE_KEY, "podAffinity")
    nodes = [node(f"n{k}", zone=f"z{k}") for k in range(2)]
    gone = deployment("app0", ["n0"])[-1]
    gone["metadata"]["name"] = "gone-0"
    waiting = deployment("app0", [None, None], **together)
    with pytest.raises(InfeasibleInstanceError, match="app0-7d9f-0"):
        imported(tmp_path, [*nodes, *waiting, ending(gone)])
    running = deployment("app0", ["n1", None], **together)
    done, found = every_point_runs(tmp_path, [*nodes, *running, ending(gone)])
    assert "default/app0-7d9f-0" in texts(done, "pinned")
    assert {ends_of(done, steps)["app0-7d9f-1"] for steps in found} == {"n1"}


# -- host ports ------------------------------------------------------------------------------------


def test_a_host_port_is_given_once(kubernetes_data: Path, tmp_path: Path) -> None:
    done, found = every_point_runs(tmp_path, objects_of(kubernetes_data, "pending_hostport"))
    assert len(found) == 2
    assert {ends_of(done, steps)["gw-7d9f-0"] for steps in found} == {"n2"}


@pytest.mark.parametrize("seed", SEEDS)
def test_host_ports_by_protocol_and_address(seed: int, tmp_path: Path) -> None:
    rng = rng_of("ports", seed)

    def port(number: int = 0) -> Json:
        made = {"containerPort": 53, "hostPort": number or int(rng.choice([53, 53, 54]))}
        made |= {"protocol": str(rng.choice(["TCP", "UDP"]))} if rng.random() < 0.5 else {}
        address = str(rng.choice(["10.0.0.1", "10.0.0.2", "0.0.0.0"]))
        return made | ({"hostIP": address} if rng.random() < 0.5 else {})

    nodes = zoned(rng, 4)
    names = [n["metadata"]["name"] for n in nodes]
    held = [n for n in names if rng.random() < 0.5]
    objects = [*nodes, *agent("dns", held, port=port()), *scattered(rng, 2, names)]
    objects += deployment("held", [str(rng.choice(names))], [container(ports=[port()])])
    for k in range(2):
        net = {"hostNetwork": True} if rng.random() < 0.2 else {}
        own = container(cpu="100m", ports=[port(53 + k)])
        objects += deployment(f"late{k}", [None], [own], **net)
    try:
        every_point_runs(tmp_path, objects)
    except InfeasibleInstanceError as error:
        assert "late" in str(error)


def test_ports_that_do_not_meet_share_a_node(tmp_path: Path) -> None:
    """One number over TCP and UDP, and on two addresses of the node."""
    udp = {"containerPort": 53, "hostPort": 53, "protocol": "UDP"}
    objects = [node("n1"), *agent("dns", ["n1"], port=udp)]
    for k, where in enumerate(("10.0.0.1", "10.0.0.2")):
        tcp = {"containerPort": 53, "hostPort": 53, "hostIP": where}
        objects += deployment(f"late{k}", [None], [container(ports=[tcp])])
    _, [steps] = every_point_runs(tmp_path, objects)
    assert [s["to"] for s in steps["steps"]] == ["n1", "n1"]


# -- rollouts --------------------------------------------------------------------


def rollout(seed: int) -> tuple[list[Json], str]:
    """Return a Deployment in the middle of a rollout, and what says so."""
    objects = deployment("web", ["n1", "n2"])
    kind = ("pods", "sets", "generation", "revision", "waiting")[seed % 5]
    if kind in ("pods", "waiting"):
        about = objects[-1]["metadata"]
        about["labels"] = {**about["labels"], "pod-template-hash": "new1"}
        about["ownerReferences"] = [{**about["ownerReferences"][0], "name": "web-new1"}]
        if kind == "waiting":
            del objects[-1]["spec"]["nodeName"]
            objects[-1]["status"] = {"phase": "Pending"}
    elif kind == "sets":
        other = copy.deepcopy(objects[1])
        other["metadata"]["name"] = "web-new1"
        objects.insert(1, other)
    elif kind == "generation":
        objects[0]["metadata"]["generation"] = 7
        objects[0]["status"] = {"observedGeneration": 6}
    else:
        revision = "deployment.kubernetes.io/revision"
        objects[0]["metadata"]["annotations"] = {revision: "5"}
        objects[1]["metadata"]["annotations"] = {revision: "4"}
    return objects, kind


@pytest.mark.parametrize("seed", SEEDS)
def test_a_rollout_under_way_is_seen(seed: int, tmp_path: Path) -> None:
    """By pods, ReplicaSets, the generation or the revision; other Deployments still move."""
    rng = rng_of("rollout", seed)
    objects, kind = rollout(seed)
    others = scattered(rng, 2, ["n1", "n2", "n3"])
    done, found = every_point_runs(
        tmp_path, [node("n1"), node("n2"), node("n3"), *objects, *others]
    )
    told = texts(done, "pinned") + texts(done, "left-out")
    assert "in the middle of a rollout" in told and "default/web-" in told
    moved = {s["microservice"] for steps in found for s in steps["steps"]}
    assert not any(name.startswith("web") for name in moved), kind


def test_a_finished_rollout_moves(tmp_path: Path) -> None:
    """Old ReplicaSets are kept at 0, and old pods that are ending are no rollout."""
    objects = deployment("web", ["n1", "n2"], [container(cpu="100m")])
    old = copy.deepcopy(objects[1])
    old["metadata"]["name"], old["spec"] = "web-old1", {**old["spec"], "replicas": 0}
    last = ending(copy.deepcopy(objects[-1]))
    last["metadata"] |= {"name": "web-old1-0"}
    last["metadata"]["ownerReferences"] = [
        {**last["metadata"]["ownerReferences"][0], "name": "web-old1"}
    ]
    _, found = every_point_runs(tmp_path, [node("n1"), node("n2"), *objects, old, last])
    assert min(steps["values"]["node_cost"] for steps in found) == 1


# -- volumes ---------------------------------------------------------------------------------------


def test_volumes_of_a_pod_that_is_ending_are_attached(tmp_path: Path) -> None:
    """Its node attaches them until it is gone: another one finds no room there."""
    objects = [node("n1"), node("n2"), csi_node("n1", 1), csi_node("n2", 1)]
    for name, at in (("gone", "n1"), ("web", "n2")):
        objects += [claim(name, volumeName=name), volume(name)]
        objects += deployment(name, [at], [container(cpu="100m")], **using(name))
        if name == "gone":
            objects[-1] = ending(objects[-1])
    done, _ = every_point_runs(tmp_path, objects)
    assert not done.problem.evaluate(moves(done, ("web-7d9f-0", "n1"))).feasible


def test_shared_volumes_count_once_on_a_node(tmp_path: Path) -> None:
    """Three pods of one volume on a node for two: they stay, and are no overload."""
    objects = [node("n1"), node("n2"), csi_node("n1", 1), csi_node("n2", 1)]
    objects += [claim("c", volumeName="pv"), volume("pv")]
    objects += deployment("web", ["n1"] * 3, [container(cpu="100m")], **using("c"))
    done, _ = every_point_runs(tmp_path, objects)
    assert "share volumes" in texts(done, "pinned")
    assert done.problem.warnings() == ()


@pytest.mark.parametrize("seed", SEEDS)
def test_volumes_that_are_not_made_yet(seed: int, tmp_path: Path) -> None:
    """A pod that waits may start where its class makes volumes, but not if it binds at once."""
    rng = rng_of("class", seed)
    nodes = zoned(rng, 4)
    zones = sorted({str(z) for z in rng.choice(["z0", "z1", "z2"], size=int(rng.integers(1, 3)))})
    mode = "Immediate" if seed % 5 == 0 else "WaitForFirstConsumer"
    known = storage_class(mode)
    if seed % 5 != 1:
        expressions = [{"key": ZONE_KEY, "values": zones}]
        known["allowedTopologies"] = [{"matchLabelExpressions": expressions}]
    names = [n["metadata"]["name"] for n in nodes]
    objects = [*nodes, known, claim("late"), *scattered(rng, 2, names)]
    objects += deployment("late", [None], [container(cpu="100m")], **using("late"))
    done, found = every_point_runs(tmp_path, objects)
    if mode == "Immediate":
        assert "late-7d9f-0" in texts(done, "left-out")
        return
    zone = {n["metadata"]["name"]: n["metadata"]["labels"][ZONE_KEY] for n in nodes}
    for steps in found:
        where = ends_of(done, steps)["late-7d9f-0"]
        assert seed % 5 == 1 or zone[str(where)] in zones


@pytest.mark.parametrize("mode", ["ReadWriteOnce", "ReadWriteMany"])
def test_a_volume_to_come_keeps_its_pods_together(mode: str, tmp_path: Path) -> None:
    """It is made in one zone, or at one node; the pods that wait for it go there."""
    nodes = [node(f"n{k}", zone=f"z{k // 2}") for k in range(4)]
    objects = [*nodes, storage_class("WaitForFirstConsumer"), claim("late", mode)]
    objects += deployment("web", ["n0"])
    objects += deployment("late", [None, None], [container(cpu="2")], **using("late"))
    done, found = every_point_runs(tmp_path, objects)
    zone = {n["name"]: n["cluster"] for n in done.document["nodes"]}
    for steps in found:
        ends = ends_of(done, steps)
        late = {str(ends[f"late-7d9f-{k}"]) for k in range(2)}
        assert len({zone[n] for n in late}) == 1
        assert mode == "ReadWriteMany" or len(late) == 1


def test_a_volume_for_one_pod_is_not_shared(tmp_path: Path) -> None:
    objects = [node("n1"), node("n2"), claim("one", "ReadWriteOncePod", volumeName="pv")]
    objects += [volume("pv", accessModes=["ReadWriteOncePod"])]
    objects += deployment("web", ["n1"], **using("one"))
    objects += deployment("late", [None], **using("one"))
    done, _ = every_point_runs(tmp_path, objects)
    told = texts(done, "left-out")
    assert "late-7d9f-0" in told and "ReadWriteOncePod" in told


def test_room_that_the_scheduler_makes_is_kept(tmp_path: Path) -> None:
    """A pod that is nominated to a node holds its room there, until it runs."""
    objects = [node("n1"), node("n2"), *deployment("web", ["n2"], [container(cpu="3")])]
    late = deployment("late", [None], [container(cpu="3")])
    late[-1]["status"]["nominatedNodeName"] = "n1"
    done, found = every_point_runs(tmp_path, [*objects, *late])
    assert "nominated" in texts(done, "capacity")
    assert all(steps["steps"] == [] for steps in found)


# -- machines to buy -------------------------------------------------------------------------------


def buy(folder: Path, row: str) -> Json:
    columns = "machine_type,cpu,memory,on_demand_usd_per_hour,count"
    (folder / "buy.csv").write_text(f"{columns}\n{row}\n")
    return {"candidates": folder / "buy.csv"}


def test_agents_come_with_machines_to_buy(tmp_path: Path) -> None:
    """Also one that runs nowhere yet: its request and its port are taken."""
    port = {"containerPort": 443, "hostPort": 443}
    chosen = {"nodeSelector": {"kubernetes.io/os": "linux"}}
    agents = agent("dns", ["n1"], port=port, **chosen)
    driver = agent("driver", [], nodeSelector={"node.kubernetes.io/instance-type": "g5.x"})
    late = deployment("late", [None], [container(ports=[port])])
    objects = [node("n1", cpu="1"), *agents, *driver, *deployment("web", ["n1"])]
    options = {"missing_prices": "default=1", "files": buy(tmp_path, "g5.x,4,8Gi,1,1")}
    done = imported(tmp_path, objects, **options)
    [new] = bought(done)
    assert new["cpu_millicores"] == 4000 - 200
    with pytest.raises(InfeasibleInstanceError, match="late-7d9f-0"):
        imported(tmp_path, [*objects, *late], **options)


def test_machines_to_buy_have_what_their_kin_have(tmp_path: Path) -> None:
    """GPUs and disks of their machine type; what no kin tells is told to be lacking."""
    kin = node("n1", "g5.x")
    kin["status"]["allocatable"] |= {"nvidia.com/gpu": "2", "ephemeral-storage": "20Gi"}
    gpu = container(resources={"limits": {"nvidia.com/gpu": "1"}})
    objects = [kin, *deployment("train", ["n1", "n1"], [gpu]), *deployment("late", [None], [gpu])]
    options = {"missing_prices": "default=1"}
    done = imported(tmp_path, objects, **options, files=buy(tmp_path, "g5.x,4,16Gi,1,1"))
    [new] = bought(done)
    assert new["resources"]["nvidia.com/gpu"] == 2
    done = imported(tmp_path, objects, **options, files=buy(tmp_path, "m5.x,4,16Gi,1,1"))
    [new] = bought(done)
    assert "nvidia.com/gpu" not in new.get("resources", {})
    assert "m5.x: nvidia.com/gpu" in texts(done, "assumption")


# -- runtime classes, resizes ----------------------------------------------------------------------


def test_a_runtime_class_adds_to_its_pods(kubernetes_data: Path, tmp_path: Path) -> None:
    objects = objects_of(kubernetes_data, "runtimeclass")
    with pytest.raises(InfeasibleInstanceError, match=r"default/box \(4500 cpu, 3072 memory\)"):
        imported(tmp_path, objects)
    done = imported(tmp_path, objects, leave_out=True)
    assert "default/box" in texts(done, "left-out")


@pytest.mark.parametrize("seed", SEEDS)
def test_overhead_and_nodes_of_runtime_classes(seed: int, tmp_path: Path) -> None:
    rng = rng_of("runtime", seed)
    nodes = [
        node(f"n{k}", labels={"kata": "true"} if rng.random() < 0.6 or k == 0 else {})
        for k in range(4)
    ]
    cpu = int(rng.integers(1, 20)) * 100
    runtime: Json = {"kind": "RuntimeClass", "metadata": {"name": "kata"}, "handler": "kata"}
    if seed % 4:
        runtime["overhead"] = {"podFixed": {"cpu": f"{cpu}m", "memory": "256Mi"}}
    if seed % 3:
        runtime["scheduling"] = {"nodeSelector": {"kata": "true"}}
    objects = [*nodes, runtime, *scattered(rng, 3, [f"n{k}" for k in range(4)])]
    objects += deployment("box", [], [container(cpu="300m")], runtimeClassName="kata")
    objects[-2]["spec"]["replicas"] = 1
    done, found = every_point_runs(tmp_path, objects)
    assert services(done)["box"]["cpu_millicores"] == 300 + (cpu if seed % 4 else 0)
    legal = {n["metadata"]["name"] for n in nodes if "kata" in n["metadata"]["labels"]}
    for steps in found:
        assert seed % 3 == 0 or ends_of(done, steps)["box"] in legal


@pytest.mark.parametrize("seed", SEEDS)
def test_a_pod_that_is_resized_holds_the_larger(seed: int, tmp_path: Path) -> None:
    """Asked for and not done yet, done and not told yet, done for good: the room is held."""
    rng = rng_of("resize", seed)
    names = ["n0", "n1", "n2"]
    objects = [node(n) for n in names] + scattered(rng, 3, names)
    held = deployment("held", [str(rng.choice(names))], [container(cpu="500m")])
    given = int(rng.integers(1, 30)) * 100
    told = {"name": "app", "allocatedResources": {"cpu": f"{given}m", "memory": "512Mi"}}
    if seed % 2:
        told = {"name": "app", "resources": {"requests": told["allocatedResources"]}}
    held[-1]["status"] = {**held[-1]["status"], "containerStatuses": [told]}
    done, _ = every_point_runs(tmp_path, [*objects, *held])
    assert services(done)["held-7d9f-0"]["cpu_millicores"] == max(500, given)


def test_a_copy_asks_for_what_its_pod_holds(tmp_path: Path) -> None:
    """Of a resized pod, though its template asks for less; the template is left as it was."""
    objects = [node("n1"), node("n2"), *deployment("web", ["n1"]), *deployment("api", ["n2"])]
    pod = next(o for o in objects if o["kind"] == "Pod" and o["metadata"]["name"] == "web-7d9f-0")
    asking(pod, "1500m")
    done, found = every_point_runs(tmp_path, objects, rules={"pins": [("Deployment", "api")]})
    assert services(done)["web-7d9f-0"]["cpu_millicores"] == 1500
    steps = [s for plan in found for s in plan["steps"] if s["microservice"] == "web-7d9f-0"]
    held = {"app": {"cpu": "1500m", "memory": "512Mi"}}
    assert steps and all(s["requests"] == held for s in steps)
    front = api.solve(done.problem, "repack", seed=1)
    scripts = [export(done.problem, p.plan, done.origin) for p in front.points]
    assert any("1500m" in text for text in scripts)
    assert not any("patch deployment web" in text for text in scripts)


def test_what_asks_for_more_than_its_limits_stays(tmp_path: Path) -> None:
    """A copy of its template could not ask for so much."""
    limited = container(resources={"limits": {"cpu": "1"}})
    objects = [node("n1"), node("n2"), *deployment("web", ["n1"], [limited])]
    asking(objects[-1], "1500m")
    assert "more than the limits of their template" in texts(imported(tmp_path, objects), "pinned")


# -- quotas, budgets -------------------------------------------------------------------------------


def of_class(operator: str, *values: str) -> Json:
    chosen = {"scopeName": "PriorityClass", "operator": operator}
    chosen |= {"values": [*values]} if values else {}  # type: ignore[dict-item]
    return {"scopeSelector": {"matchExpressions": [chosen]}}


@pytest.mark.parametrize(
    ("scope", "held"),
    [
        ({"scopes": ["NotTerminating"]}, True),
        ({"scopes": ["Terminating"]}, False),
        ({"scopes": ["BestEffort"]}, False),
        ({"scopes": ["NotBestEffort"]}, True),
        ({"scopes": ["CrossNamespacePodAffinity"]}, False),
        (of_class("In", "high"), False),
        (of_class("DoesNotExist"), True),
        (of_class("NotIn", "high"), True),
        ({}, True),
    ],
)
def test_a_quota_is_about_its_scopes(scope: Json, held: bool, tmp_path: Path) -> None:
    objects = [node("n1"), node("n2"), *deployment("web", ["n1"])]
    done = imported(tmp_path, [*objects, quota({"pods": "1"}, {"pods": "1"}, **scope)])
    assert ("ResourceQuota" in texts(done, "pinned")) == held


@pytest.mark.parametrize(
    ("cpu", "text"), [("900m", ""), ("3", "LimitRange"), ("1200m", "ResourceQuota")]
)
def test_new_requests_within_quotas_and_ranges(cpu: str, text: str, tmp_path: Path) -> None:
    hard = {"requests.cpu": "1500m" if text != "LimitRange" else "9"}
    objects = [node("n1"), node("n2"), *deployment("web", ["n1"])]
    objects += [quota(hard, {"requests.cpu": "500m"}), limit_range(max={"cpu": "2"})]
    (tmp_path / "new.csv").write_text(
        f"workload,container,cpu,memory\nweb,app,{cpu},512Mi\n", encoding="utf-8"
    )
    new = read_new_requests(tmp_path / "new.csv")
    done = imported(tmp_path, objects, new_requests=new)
    told = texts(done, "not-expressed")
    assert ("new requests that are forbidden" in told and text in told) == bool(text)
    assert ("new_cpu_millicores" in services(done)["web-7d9f-0"]) == (not text)


def test_a_quota_asks_what_containers_say(tmp_path: Path) -> None:
    """With a quota on limits a copy without one is forbidden, unless a LimitRange gives it."""
    objects = [node("n1"), node("n2"), *deployment("web", ["n1"])]
    objects.append(quota({"limits.cpu": "9"}, {"limits.cpu": "0"}))
    told = texts(imported(tmp_path, objects), "pinned")
    assert "wants to know what pods ask of limits.cpu" in told
    objects.append(limit_range(default={"cpu": "1"}))
    assert "ResourceQuota" not in texts(imported(tmp_path, objects), "pinned")


BUDGETS = [
    ({"maxUnavailable": 0}, None, True),
    ({"maxUnavailable": 1}, None, False),
    ({"maxUnavailable": "10%"}, None, False),
    ({"minAvailable": 2}, None, True),
    ({"minAvailable": 1}, None, False),
    ({"minAvailable": "50%"}, None, False),
    ({"minAvailable": "51%"}, None, True),
    ({"maxUnavailable": 1}, 0, True),
    ({"maxUnavailable": 2}, 1, False),
]


@pytest.mark.parametrize(("spec", "told", "named"), BUDGETS)
def test_budgets_by_numbers_and_by_status(
    spec: Json, told: int | None, named: bool, kubernetes_data: Path, tmp_path: Path
) -> None:
    """In the warnings of the steps, which the script repeats."""
    objects = objects_of(kubernetes_data, "pdb_stop")
    budget = next(o for o in objects if o["kind"] == "PodDisruptionBudget")
    budget["spec"] = {"selector": budget["spec"]["selector"], **spec}
    budget["status"] = {} if told is None else {"disruptionsAllowed": told}
    [steps] = plans_of(imported(tmp_path, objects, drain=("n1",)))
    said = f"PodDisruptionBudget default/pb allows {told or 0}"
    assert any(said in text for text in steps["warnings"]) == named
