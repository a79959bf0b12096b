"""Imports of small clusters made here; every instance is solved and judged."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from placeopt import api
from placeopt.core.errors import DocumentError, InfeasibleInstanceError, UsageError
from placeopt.kubernetes.admission import MissingRequests, PodSize, effective
from placeopt.kubernetes.files import converted
from placeopt.kubernetes.given import execution_times, read_new_requests
from placeopt.kubernetes.importing import Imported, import_files
from placeopt.kubernetes.moving import MovingRules
from placeopt.kubernetes.objects import PodSpec
from placeopt.kubernetes.options import ImportOptions

Json = dict[str, Any]


def node(
    name: str, cpu: str = "4", memory: str = "8Gi", *, labels: Json | None = None, **spec: Any
) -> Json:
    """Return a node that is ready."""
    status = {
        "capacity": {"cpu": "99", "memory": "99Gi"},
        "allocatable": {"cpu": cpu, "memory": memory, "pods": "110"},
        "conditions": [{"type": "Ready", "status": "True"}],
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels or {}},
        "spec": spec,
        "status": status,
    }


def pod(
    name: str,
    on: str | None,
    *,
    owner: tuple[str, str] | None = ("ReplicaSet", "web-6f9"),
    labels: Json | None = None,
    annotations: Json | None = None,
    cpu: str | None = "500m",
    memory: str | None = "512Mi",
    space: str = "shop",
    phase: str = "Running",
    env: Json | None = None,
    limits: Json | None = None,
    **spec: Any,
) -> Json:
    """Return a running pod of one container."""
    requests = {
        key: value for key, value in (("cpu", cpu), ("memory", memory)) if value is not None
    }
    variables = [{"name": k, "value": v} for k, v in (env or {}).items()]
    container = {
        "name": "main",
        "resources": {"requests": requests, "limits": limits or {}},
        "env": variables,
    }
    meta: Json = {
        "name": name,
        "namespace": space,
        "labels": {"app": name.rsplit("-", 1)[0], **(labels or {})},
        "annotations": annotations or {},
    }
    if owner == ("ReplicaSet", "web-6f9"):
        meta["labels"].setdefault("pod-template-hash", "6f9")
    if owner is not None:
        meta["ownerReferences"] = [{"kind": owner[0], "name": owner[1], "controller": True}]
    whole = {"containers": [container], "nodeName": on, **spec}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": meta,
        "spec": whole,
        "status": {"phase": phase},
    }


def deployment(
    name: str,
    replicas: int = 1,
    *,
    space: str = "default",
    kind: str = "Deployment",
    env: Json | None = None,
    cpu: str = "500m",
    memory: str = "512Mi",
    **spec: Any,
) -> Json:
    """Return a workload of a manifest."""
    made = pod(f"{name}-0", None, cpu=cpu, memory=memory, env=env, **spec)["spec"]
    made.pop("nodeName")
    template = {"metadata": {"labels": {"app": name}}, "spec": made}
    meta = {"name": name, "namespace": space}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": meta,
        "spec": {"replicas": replicas, "template": template},
    }


def service(name: str, space: str = "default", **spec: Any) -> Json:
    """Return a service in front of the pods of this name."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": space},
        "spec": {"selector": {"app": name}, **spec},
    }


Import = Callable[..., Imported]


@pytest.fixture
def run(tmp_path: Path) -> Import:
    """Import objects: ``run(objects, target, **options)``."""

    def importer(
        objects: list[Json],
        to: str = "rolling-update",
        *,
        rules: Json | None = None,
        more: Json | None = None,
        **options: Any,
    ) -> Imported:
        path = tmp_path / "objects.json"
        path.write_text(
            json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}, indent=1),
            encoding="utf-8",
        )
        return import_files(
            [path], to, ImportOptions(rules=MovingRules(**(rules or {})), **options), **(more or {})
        )

    return importer


def microservices(done: Imported) -> dict[str, Json]:
    """Return application/microservice -> record."""
    return {
        f"{a['name']}/{m['name']}": m
        for a in done.document["applications"]
        for m in a["microservices"]
    }


def pinned(done: Imported) -> set[str]:
    """Return the names of the pods that stay."""
    return {
        m["name"]
        for a in done.document["applications"]
        for m in a["microservices"]
        if a.get("reschedulable") is False or m.get("pinned")
    }


def texts(done: Imported, topic: str) -> str:
    """Return the notes of a topic."""
    return "; ".join(f"{text}: {', '.join(subjects)}" for text, subjects in done.notes.of(topic))


# -- sizes -----------------------------------------------------------------------------------------


def spec_of(document: Json) -> Any:
    return converted(document, PodSpec)


def size_of(document: Json, *policy: str) -> PodSize:
    return effective(spec_of(document), MissingRequests.parse(policy), "x")


def asks(cpu: int | None, **more: Any) -> Json:
    return {
        "name": "c",
        "resources": {"requests": {"memory": "1Mi", **({} if cpu is None else {"cpu": f"{cpu}m"})}},
        **more,
    }


def test_effective_requests_by_hand() -> None:
    """Containers together; a large init container; sidecars before it; overhead; the pod's own."""
    always = {"restartPolicy": "Always"}
    assert size_of({"containers": [asks(100), asks(200)]}) == PodSize(300, 2 * 2**20)
    assert size_of({"containers": [asks(100)], "initContainers": [asks(900), asks(50)]}).cpu == 900
    assert (
        size_of({"containers": [asks(100)], "initContainers": [asks(50, **always), asks(900)]}).cpu
        == 950
    )
    assert (
        size_of({"containers": [asks(100)], "initContainers": [asks(900), asks(50, **always)]}).cpu
        == 900
    )
    assert (
        size_of(
            {
                "containers": [asks(100)],
                "initContainers": [asks(50, **always)],
                "overhead": {"cpu": "7m"},
            }
        ).cpu
        == 157
    )
    assert (
        size_of(
            {
                "containers": [asks(100)],
                "resources": {"requests": {"cpu": "2"}},
                "overhead": {"cpu": "1m"},
            }
        ).cpu
        == 2001
    )
    assert (
        size_of(
            {"containers": [asks(None)], "initContainers": [asks(None)]}, "default=100m,1Mi"
        ).cpu
        == 100
    )


def test_effective_requests_against_a_timeline() -> None:
    """The most that runs at any moment, moment by moment."""
    rng = np.random.default_rng(5)
    for _ in range(300):
        containers = [int(c) for c in rng.integers(1, 100, int(rng.integers(1, 4)))]
        inits = [
            (int(c), bool(s))
            for c, s in zip(rng.integers(1, 300, 4), rng.random(4) < 0.4, strict=True)
        ][: int(rng.integers(0, 5))]
        running, most = 0, 0
        for cpu, sidecar in inits:
            most = max(most, running + cpu)
            running += cpu if sidecar else 0
        most = max(most, running + sum(containers))
        document = {
            "containers": [asks(c) for c in containers],
            "initContainers": [
                asks(c, **({"restartPolicy": "Always"} if s else {})) for c, s in inits
            ],
        }
        assert size_of(document).cpu == most


def test_missing_requests() -> None:
    """An error by default, never zero; limits, then a default, in the order given."""
    document = {"containers": [{"name": "c", "resources": {"limits": {"cpu": "2"}}}]}
    with pytest.raises(DocumentError, match="container 'c' of x has no memory request"):
        size_of(document)
    with pytest.raises(DocumentError, match="no memory request"):
        size_of(document, "limits")
    assert size_of(document, "limits", "default=100m,128Mi") == PodSize(2000, 2**27)
    assert size_of(document, "default=100m,128Mi", "limits") == PodSize(2000, 2**27)
    assert size_of(
        {"containers": [{"name": "c", "resources": {"requests": {"cpu": 0, "memory": "0"}}}]}
    ) == PodSize(0, 0)
    for bad in ("zero", "default", "default=1", "default=x,y", "default=-1,1", "limits=1"):
        with pytest.raises(UsageError, match="missing-requests"):
            MissingRequests.parse([bad])


# -- a running cluster -----------------------------------------------------------------------------


def test_a_cluster_becomes_a_rolling_update(run: Import) -> None:
    """Pods on their nodes, less DaemonSets and static pods; owners through ReplicaSets."""
    done = run(
        [
            node("n1"),
            node("n2"),
            pod("web-6f9-a", "n1", labels={"pod-template-hash": "6f9"}),
            pod("web-6f9-b", "n2", labels={"pod-template-hash": "6f9"}),
            pod("agent-1", "n1", owner=("DaemonSet", "agent"), cpu="1", memory="1Gi"),
            pod(
                "apiserver-n2",
                "n2",
                owner=("Node", "n2"),
                cpu="250m",
                memory="1Gi",
                space="kube-system",
            ),
            pod("job-1", "n1", phase="Succeeded", owner=("Job", "job")),
            pod("waits-1", None, phase="Pending", cpu="100m"),
        ],
        name="c",
    )
    nodes = {n["name"]: (n["cpu_millicores"], n["memory_mib"]) for n in done.document["nodes"]}
    assert nodes == {"n1": (3000, 7168), "n2": (3750, 7168)}
    assert set(microservices(done)) == {
        "shop (stays)/web-6f9-a",
        "shop (stays)/web-6f9-b",
        "shop/waits-1",
    }
    assert microservices(done)["shop/waits-1"]["node"] is None
    assert pinned(done) == {"web-6f9-a", "web-6f9-b"}  # of the workload of the one that waits
    item = done.origin.item("web-6f9-a", "shop (stays)")
    assert (item.namespace, item.kind, item.name, item.pod, item.node) == (
        "shop",
        "Deployment",
        "web",
        "web-6f9-a",
        "n1",
    )
    assert item.containers[0].cpu_millicores == 500 and item.labels["app"] == "web-6f9"
    assert (
        "job-1" in texts(done, "left-out")
        and "waits-1" in texts(done, "assumption")
        and "agent-1" in texts(done, "capacity")
    )
    front = api.solve(done.problem, "repack", evaluations=500)
    assert min(p.values[0] for p in front.points) == 2.0


STAYING: dict[str, tuple[Json, Json]] = {
    "safe-to-evict": (
        {"annotations": {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}},
        {},
    ),
    "karpenter": ({"annotations": {"karpenter.sh/do-not-disrupt": "true"}}, {}),
    "bare": ({"owner": None}, {}),
    "stateful": ({"owner": ("StatefulSet", "db")}, {}),
    "job": ({"owner": ("Job", "x")}, {}),
    "system": ({"space": "kube-system"}, {}),
    "hostPath": ({"volumes": [{"name": "v", "hostPath": {"path": "/x"}}]}, {}),
    "emptyDir": ({"volumes": [{"name": "v", "emptyDir": {}}]}, {}),
    "claim": ({"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]}, {}),
    "port": ({"hostNetwork": True}, {}),
    "claims": ({"resourceClaims": [{"name": "gpu"}]}, {}),
    "duration": ({"annotations": {"karpenter.sh/do-not-disrupt": "30m"}}, {}),
    "custom owner": ({"owner": ("StrimziPodSet", "x")}, {}),
    "named": ({}, {"pins": (("Pod", "x-1"),)}),
    "namespace": ({"space": "other"}, {"namespaces": ("shop",)}),
}
MOVING: dict[str, tuple[Json, Json]] = {
    "plain": ({}, {}),
    "memory": ({"volumes": [{"name": "v", "emptyDir": {"medium": "Memory"}}]}, {}),
    "emptyDir-policy": ({"volumes": [{"name": "v", "emptyDir": {}}]}, {"move_empty_dir": True}),
    "safe": (
        {
            "volumes": [{"name": "v", "hostPath": {}}],
            "annotations": {"cluster-autoscaler.kubernetes.io/safe-to-evict": "true"},
        },
        {},
    ),
    "spared": (
        {
            "volumes": [{"name": "v", "emptyDir": {}}],
            "annotations": {"cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes": "u, v"},
        },
        {},
    ),
    "preferred": (
        {
            "affinity": {
                "podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1}]}
            }
        },
        {},
    ),
    "soft": (
        {
            "topologySpreadConstraints": [
                {"topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}
            ]
        },
        {},
    ),
    "system": ({"space": "kube-system"}, {"fixed_namespaces": ()}),
}


@pytest.mark.parametrize("case", STAYING)
def test_pods_that_must_not_move_stay(run: Import, case: str) -> None:
    """And keep their node in use, which every plan shows; the report says why."""
    extra, rules = STAYING[case]
    done = run([node("n1"), node("n2"), pod("x-1", "n1", **extra), pod("y-1", "n2")], rules=rules)
    assert pinned(done) == {"x-1"} and "shop/x-1" in texts(done, "pinned").replace(
        "kube-system/", "shop/"
    ).replace("other/", "shop/")
    for point in api.solve(done.problem, "repack", evaluations=300).points:
        assert all(step["microservice"] != "x-1" for step in point.plan["steps"])


@pytest.mark.parametrize("case", MOVING)
def test_pods_that_may_move(run: Import, case: str) -> None:
    """Nothing is pinned without a reason."""
    extra, rules = MOVING[case]
    assert pinned(run([node("n1"), node("n2"), pod("x-1", "n1", **extra)], rules=rules)) == set()


@pytest.mark.parametrize("strategy", ["Recreate", "RollingUpdate"])
def test_a_deployment_that_recreates_holds_its_pods(run: Import, strategy: str) -> None:
    """Two copies of its pods must not run side by side, as every move would have it."""
    web = deployment("web", space="shop")
    web["spec"]["strategy"] = {"type": strategy}
    done = run(
        [node("n1"), node("n2"), pod("x-6f9-a", "n1", labels={"pod-template-hash": "6f9"}), web]
    )
    assert pinned(done) == ({"x-6f9-a"} if strategy == "Recreate" else set())


def test_shared_claims_and_repelled_pods(run: Import) -> None:
    """A claim that several nodes may mount does not hold a pod.

    Required anti-affinity of one pod holds those that it keeps away.
    """
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "c", "namespace": "shop"},
        "spec": {"accessModes": ["ReadWriteMany"]},
    }
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]
    assert pinned(run([node("n1"), claim, pod("x-1", "n1", volumes=volumes)])) == set()
    term = {
        "topologyKey": "kubernetes.io/hostname",
        "labelSelector": {"matchExpressions": [{"key": "app", "operator": "In", "values": ["y"]}]},
    }
    away = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    done = run(
        [
            node("n1"),
            node("n2"),
            pod("x-1", "n1", affinity=away),
            pod("y-1", "n2"),
            pod("z-1", "n2"),
        ]
    )
    assert pinned(done) == set()
    for to, legal in (("n2", False), ("n1", True)):
        plan = {"steps": [{"application": "shop", "microservice": "x-1", "to": to}]}
        assert done.problem.evaluate(plan).feasible == legal or to == "n1"
    assert "required anti-affinity" in texts(done, "kept")


@pytest.mark.parametrize(
    "spec",
    [
        {"maxUnavailable": 0},
        {"minAvailable": 2},
        {"minAvailable": "100%"},
        {"minAvailable": 1},
        {"maxUnavailable": "50%"},
        {"minAvailable": "nonsense"},
        {"maxUnavailable": "nonsense"},
    ],
)
def test_disruption_budgets(run: Import, spec: Json) -> None:
    """None pins pods: a step evicts nothing, and the new copy runs before the old one ends."""
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "b", "namespace": "shop"},
        "spec": {"selector": {"matchLabels": {"app": "x"}}, **spec},
    }
    done = run(
        [node("n1"), node("n2"), pod("x-1", "n1"), pod("x-2", "n2"), pod("y-1", "n1"), budget]
    )
    assert pinned(done) == set() and "shop/b" in texts(done, "kept")


GPU = [{"key": "gpu", "operator": "Exists"}]
POOLS: list[tuple[str, Json]] = [
    ("selector", {"nodeSelector": {"pool": "gpu"}, "tolerations": [{"operator": "Exists"}]}),
    (
        "affinity",
        {
            "affinity": {
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [
                            {
                                "matchExpressions": [
                                    {"key": "pool", "operator": "In", "values": ["gpu"]}
                                ]
                            }
                        ]
                    }
                }
            },
            "tolerations": GPU,
        },
    ),
    (
        "fields",
        {
            "affinity": {
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [
                            {
                                "matchFields": [
                                    {
                                        "key": "metadata.name",
                                        "operator": "In",
                                        "values": ["g1", "g2"],
                                    }
                                ]
                            }
                        ]
                    }
                }
            },
            "tolerations": GPU,
        },
    ),
]


@pytest.mark.parametrize("spec", [spec for _, spec in POOLS], ids=[name for name, _ in POOLS])
@pytest.mark.parametrize(
    "method", ["repack", "decomposition", "rolling-update", "recreate", "nsga2"]
)
def test_rules_about_nodes_are_kept_by_every_method(run: Import, spec: Json, method: str) -> None:
    """Plain pods never reach the tainted nodes, pods of the pool never leave it, at any point."""
    taint = {"taints": [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}]}
    nodes = [node(f"g{k}", labels={"pool": "gpu"}, **taint) for k in (1, 2)] + [
        node(f"n{k}") for k in (1, 2, 3)
    ]
    pods = [pod(f"gpu-{k}", f"g{k}", **spec) for k in (1, 2)] + [
        pod(f"web-{k}", f"n{k}") for k in (1, 2, 3)
    ]
    done = run(nodes + pods)
    assert not pinned(done) and "gpu-1" in texts(done, "kept")
    front = api.solve(done.problem, method, evaluations=400, seed=1)
    for point in front.points:
        place = {m["name"]: m["node"] for m in microservices(done).values()}
        for step in point.plan["steps"]:
            if step["to"] is not None:
                place[step["microservice"]] = step["to"]
        assert all(on[0] == ("g" if name.startswith("gpu") else "n") for name, on in place.items())
    if method in ("repack", "decomposition"):
        assert min(p.values[0] for p in front.points) == 2.0


def test_node_sets_forbid_what_kubernetes_would(run: Import) -> None:
    """A plan that moves a plain pod onto a tainted node is a violation."""
    done = run(
        [
            node("g1", taints=[{"key": "gpu", "effect": "NoSchedule"}]),
            node("n1"),
            node("n2"),
            pod("web-1", "n1"),
            pod("web-2", "n2"),
        ]
    )
    for to, legal in (("g1", False), ("n2", True)):
        plan = {"steps": [{"application": "shop", "microservice": "web-1", "to": to}]}
        assert (not done.problem.evaluate(plan).violations) == legal


def test_nodes_that_take_no_part(run: Import) -> None:
    """Cordoned and broken nodes are left out with their pods, or drained, also by name."""
    broken = node("n3")
    broken["status"]["conditions"][0]["status"] = "Unknown"
    objects = [
        node("n1"),
        node("n2", unschedulable=True),
        broken,
        pod("a-1", "n1"),
        pod("b-1", "n2"),
        pod("c-1", "n3", owner=("ReplicaSet", "broken-6f9")),
        pod("d-1", "n9"),
    ]
    done = run(objects)
    assert [n["name"] for n in done.document["nodes"]] == ["n1"] and set(microservices(done)) == {
        "shop/a-1"
    }
    assert all(name in texts(done, "left-out") for name in ("n2", "n3", "b-1", "c-1", "d-1"))
    drained = run(objects, drain_cordoned=True)
    assert [n.get("drain", False) for n in drained.document["nodes"]] == [False, True]
    assert all(
        p.plan["steps"][0]["to"] == "n1"
        for p in api.solve(drained.problem, "repack", evaluations=300).points
    )
    assert (
        run([objects[0], node("n4"), objects[3]], drain=("n1",)).document["nodes"][0]["drain"]
        is True
    )
    with pytest.raises(UsageError, match="no such node; did you mean 'n1'"):
        run(objects, drain=("n11",))


def test_new_requests(run: Import, tmp_path: Path) -> None:
    """From a table, from manifests, from recommendations; pods that stay keep theirs."""
    table = tmp_path / "new.csv"
    table.write_text(
        "namespace,workload,cpu,memory\nshop,web,250m,256Mi\nshop,db,1,1Gi\n", encoding="utf-8"
    )
    vpa = {
        "apiVersion": "autoscaling.k8s.io/v1",
        "kind": "VerticalPodAutoscaler",
        "metadata": {"name": "v", "namespace": "shop"},
        "spec": {"targetRef": {"kind": "Deployment", "name": "web"}},
        "status": {
            "recommendation": {
                "containerRecommendations": [
                    {"containerName": "main", "target": {"cpu": "250m", "memory": "268435456"}}
                ]
            }
        },
    }
    (tmp_path / "vpa.json").write_text(json.dumps(vpa), encoding="utf-8")
    (tmp_path / "manifest.json").write_text(
        json.dumps(deployment("web", space="shop", cpu="250m", memory="256Mi")), encoding="utf-8"
    )
    objects = [
        node("n1"),
        pod("web-6f9-a", "n1", labels={"pod-template-hash": "6f9"}),
        pod("db-0", "n1", owner=("StatefulSet", "db")),
    ]
    for name in ("new.csv", "vpa.json", "manifest.json"):
        done = run(objects, new_requests=read_new_requests(tmp_path / name))
        assert microservices(done)["shop/web-6f9-a"]["new_cpu_millicores"] == 250
        assert "new_cpu_millicores" not in microservices(done)["shop (stays)/db-0"]
    table.write_text("workload,cpu,memory\nweb,1,1\nweb,1,1\n", encoding="utf-8")
    with pytest.raises(DocumentError, match=r"new\.csv: line 3: default/web stands twice"):
        read_new_requests(table)


def test_a_label_key_of_the_hash_is_read_both_ways(run: Import) -> None:
    """A copy has no hash when it is made: then a probe of the same app counts; at the end not."""
    hashed = {"app": "web", "pod-template-hash": "6f9"}
    spread = {
        "topologyKey": "topology.kubernetes.io/zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
        "matchLabelKeys": ["pod-template-hash"],
    }
    zones = [node(f"n{k}", labels={"topology.kubernetes.io/zone": f"z{k}"}) for k in (1, 2)]
    web = [
        pod(f"web-6f9-{k}", f"n{k}", labels=hashed, topologySpreadConstraints=[spread])
        for k in (1, 2)
    ]
    probe = pod("probe-1", "n1", owner=("StatefulSet", "probe"), labels={"app": "web"})
    done = run([*zones, *web, probe])
    rules = [rule for rule in done.document["rules"] if rule["kind"] == "spread"]
    groups = [rule.get("toward", rule["group"]) for rule in rules]
    counted = [
        {name.partition("/")[2] for name, m in microservices(done).items() if group in m["groups"]}
        for group in groups
    ]
    both = {"web-6f9-1", "web-6f9-2"}
    assert sorted(counted, key=len) == [both, both | {"probe-1"}]


# -- prices of nodes, latencies --------------------------------------------------------------------


def test_prices_by_machine_type(run: Import, tmp_path: Path) -> None:
    """In the region of the node; spot nodes at the spot price; a missing price is an error."""
    labels = {
        "node.kubernetes.io/instance-type": "m5.large",
        "topology.kubernetes.io/region": "us-east-1",
    }
    table = tmp_path / "prices.csv"
    header = "location,size,on_demand_usd_per_hour,spot_usd_per_hour,spot_interruption"
    table.write_text(f"{header}\nus-east-1,m5.large,0.096,0.03,0.05\n", encoding="utf-8")
    objects = [
        node("n1", labels=labels),
        node("n2", labels=labels | {"karpenter.sh/capacity-type": "spot"}),
        pod("web-1", "n1"),
    ]
    done = run(objects, more={"prices": [table]})
    assert [n["price"] for n in done.document["nodes"]] == [0.096, 0.03]
    with pytest.raises(DocumentError, match="no price for node 'n3'"):
        run([*objects, node("n3")], more={"prices": [table]})
    done = run([*objects, node("n3")], more={"prices": [table]}, missing_prices="default=0.2")
    assert done.document["nodes"][2]["price"] == 0.2 and "0.2" in texts(done, "assumption")
    with pytest.raises(UsageError, match="missing-prices"):
        run([*objects, node("n3")], more={"prices": [table]}, missing_prices="free")


def zoned(name: str, zone: str) -> Json:
    return node(name, labels={"topology.kubernetes.io/zone": zone})


def test_latencies_that_differ_by_direction(run: Import, tmp_path: Path) -> None:
    """The larger of two directions counts."""
    table = tmp_path / "latency.csv"
    table.write_text("from,z1,z2\nz1,0,5\nz2,7,0\n")
    objects = [zoned("n1", "z1"), zoned("n2", "z2"), deployment("web"), deployment("db")]
    done = run(objects, more={"latency": table})
    assert done.document["cluster_latency_ms"] == {"z1": {"z2": 7.0}}
    assert "differ by direction" in texts(done, "assumption")
    edge = run(objects, "edge-cloud", more={"latency": table})
    assert edge.document["delay_ms"] == {"n1": {"n2": 7.0}}


# -- who calls whom --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value", "called"),
    [
        ("DB_ADDR", "db:5432", True),
        ("DB_URL", "postgres://user:secret@db.default.svc.cluster.local:5432/x?y=z", True),
        ("X", "http://db/", True),
        ("DB_HOST", "db", True),
        ("PEERS", "other:1,db:2", True),
        ("DB_ADDR", "db.default", True),
        ("DB_ADDR", "pod-0.db.default.svc:1", True),
        ("NAME", "db", False),
        ("DB_ADDR", "db.other", False),
        ("DB_ADDR", "http://", False),
        ("DB_URL", "https://db.example.com", False),
        ("DB_ADDR", "$(HOST):1", False),
        ("DB_ADDR", "x" * 5000, False),
        ("DB_ADDR", "[::1]:80", False),
    ],
)
def test_addresses_that_name_a_service(run: Import, name: str, value: str, called: bool) -> None:
    """Are calls; others are not."""
    done = run([node("n1"), deployment("web", env={name: value}), deployment("db"), service("db")])
    assert done.notes.counts["calls"] == called


def test_rescheduling_of_a_call_graph(run: Import, tmp_path: Path) -> None:
    """Groups of calls, a gateway behind a load balancer, circles cut, services that stay."""
    table = tmp_path / "latency.csv"
    table.write_text("from,z1,z2\nz1,0,5\nz2,7,0\n")
    more = {"latency": table}
    objects = [
        zoned("n1", "z1"),
        zoned("n2", "z2"),
        service("web", "shop", type="LoadBalancer"),
        service("api", "shop"),
        service("db", "shop"),
        pod("web-1", "n1", env={"API_ADDR": "api:1", "DB_ADDR": "db:1"}),
        pod("api-1", "n2", owner=("ReplicaSet", "api-1"), env={"DB_ADDR": "db:1"}),
        pod("db-0", "n1", owner=("StatefulSet", "db"), env={"WEB_URL": "http://web"}),
    ]
    done = run(objects, "rescheduling", user_latency_ms=3.0, more=more)
    services = {s["name"]: s for s in done.document["services"]}
    assert (
        done.document["gateway"] == "web"
        and services["web"]["calls"] == [["api-1", "db"]]
        and services["api-1"]["calls"] == [["db"]]
    )
    assert "calls" not in services["db"] and "close a circle" in texts(done, "not-expressed")
    kinds = {n["name"]: n["kind"] for n in done.document["nodes"]}
    assert services["db"]["execution_ms"] == {kinds["n1"]: 10.0, kinds["n2"]: 1e6}
    assert [r.model_dump() for r in done.origin.item("db").replicas] == [
        {"pod": "db-0", "node": "n1"}
    ]
    for point in api.solve(done.problem, "block-search", evaluations=300).points:
        assert all(move["service"] != "db" for move in point.plan["moves"])
    done = run(objects, "rescheduling", parallel_calls=True, more=more)
    assert done.document["services"][0]["calls"] == [["api-1"], ["db"]]
    with pytest.raises(UsageError, match="no such service; did you mean 'db'"):
        run(objects, "rescheduling", gateway="dbb", more=more)
    with pytest.raises(
        DocumentError, match=r"objects\.json: line \d+, items\[0\]: no latency between n1 and n2"
    ):
        run(objects, "rescheduling")


def test_execution_times(tmp_path: Path, run: Import) -> None:
    """A number, or a table by service and kind."""
    table = tmp_path / "t.csv"
    table.write_text("service,kind,ms\nweb,m5,4\nweb,,9\n", encoding="utf-8")
    assert execution_times("12.5") == (12.5, {}) and execution_times(str(table)) == (
        10.0,
        {("web", "m5"): 4.0, ("web", ""): 9.0},
    )
    done = run(
        [node("n1"), deployment("web"), deployment("db")],
        "rescheduling",
        execution=execution_times(str(table)),
    )
    assert [s["execution_ms"] for s in done.document["services"]] == [{"node": 9.0}, {"node": 10.0}]
    for bad in ("-1", "1e9"):
        with pytest.raises(UsageError, match="execution"):
            execution_times(bad)


# -- manifests -------------------------------------------------------------------------------------


def test_manifests_are_placed_as_the_scheduler_would(run: Import) -> None:
    """Evenly; a DaemonSet takes its share of every node it may be on; what has no room is said."""
    objects = [
        node("n1"),
        node("n2"),
        deployment("web", 4, cpu="1"),
        deployment("agent", kind="DaemonSet", cpu="500m"),
    ]
    done = run(objects)
    assert sorted(m["node"] for m in microservices(done).values()) == ["n1", "n1", "n2", "n2"]
    assert [n["cpu_millicores"] for n in done.document["nodes"]] == [3500, 3500]
    assert done.origin.item("web-1", "default").pod is None
    with pytest.raises(InfeasibleInstanceError, match="no node has room for default/web-7"):
        run([node("n1"), node("n2"), deployment("web", 20, cpu="1100m")])


def test_temporal_fleet(run: Import, tmp_path: Path) -> None:
    """Workloads are requests; machine types are offers, less DaemonSets; Jobs have deadlines."""
    job = deployment("report", kind="Job", cpu="1")
    job["apiVersion"] = "batch/v1"
    job["spec"] |= {"parallelism": 3, "activeDeadlineSeconds": 5400}
    table = tmp_path / "p.csv"
    table.write_text(
        "location,size,cpu_cores,memory_gib,on_demand_usd_per_hour,spot_usd_per_hour,spot_interruption\n"
        "us,m5.large,2,8,0.1,0.03,0.05\nus,tiny,0.4,8,0.01,,\nus,unsized,,,0.02,,\n",
        encoding="utf-8",
    )
    objects = [
        deployment("web", 2),
        job,
        deployment("agent", kind="DaemonSet", cpu="500m", memory="512Mi"),
    ]
    done = run(objects, "temporal", more={"prices": [table]}, horizon=10)
    assert {r["name"]: (r["replicas"], r["duration_slots"]) for r in done.document["requests"]} == {
        "web": (2, 10),
        "report": (3, 2),
    }
    offer = {
        "location": "us",
        "size": "m5.large",
        "cpu_cores": 1.5,
        "memory_gib": 7.5,
        "on_demand_usd_per_hour": 0.1,
        "spot_usd_per_hour": 0.03,
        "spot_interruption": 0.05,
    }
    assert done.document["offers"] == [offer]
    assert api.solve(done.problem, "greedy", evaluations=200).points
    with pytest.raises(DocumentError, match="no prices"):
        run(objects, "temporal")
    table.write_text(table.read_text() + "eu,m5.large,2,8,0.1,,\n", encoding="utf-8")
    with pytest.raises(UsageError, match="--origin"):
        run(objects, "temporal", more={"prices": [table]})
    assert run(objects, "temporal", more={"prices": [table]}, origin="eu").document[
        "latency_ms"
    ] == {"eu": {"eu": 0.0}}


def test_karmada_clusters_are_places(run: Import, tmp_path: Path) -> None:
    """Of edge-cloud: what they can allocate less what is allocated."""
    summary = {
        "resourceSummary": {
            "allocatable": {"cpu": "10", "memory": "20Gi"},
            "allocated": {"cpu": "2500m", "memory": "4Gi"},
        },
        "conditions": [{"type": "Ready", "status": "True"}],
    }
    members = [
        {
            "apiVersion": "cluster.karmada.io/v1alpha1",
            "kind": "Cluster",
            "metadata": {"name": f"member{k}"},
            "spec": {"region": f"r{k}"},
            "status": copy.deepcopy(summary),
        }
        for k in (1, 2)
    ]
    table = tmp_path / "latency.csv"
    table.write_text("from,r2\nr1,30\n")
    made = [*members, deployment("nginx", 2)]
    done = run(made, "edge-cloud", more={"latency": table}, source="member2")
    assert [(n["cpu_cores"], n["memory_gib"], n["layer"]) for n in done.document["nodes"]] == [
        (7.5, 16.0, "r1"),
        (7.5, 16.0, "r2"),
    ]
    assert (
        done.document["delay_ms"] == {"member1": {"member2": 30.0}}
        and done.origin.nodes["member1"].kind == "Cluster"
    )
    assert done.document["applications"][0]["source"] == "member2"
    assert api.solve(done.problem, "greedy", evaluations=200).points


def test_twice_and_nothing(run: Import) -> None:
    """Objects that stand twice, files without what is needed: refused with line."""
    with pytest.raises(DocumentError, match=r"line \d+, items\[2\]: Pod shop/web-1 stands twice"):
        run([node("n1"), pod("web-1", "n1"), pod("web-1", "n1", cpu="9m")])
    assert len(microservices(run([node("n1"), pod("web-1", "n1"), pod("web-1", "n1")]))) == 1
    with pytest.raises(DocumentError, match=r"no workloads or pods here, only 1 Node, 1 Service"):
        run([node("n1"), service("x")])
    with pytest.raises(DocumentError, match="no nodes here"):
        run([deployment("web")])
    with pytest.raises(UsageError, match="did you mean 'temporal'"):
        run([deployment("web")], "temporla")
