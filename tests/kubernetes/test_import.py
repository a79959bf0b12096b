"""Imports of small clusters made here; every instance is solved and judged."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from held_clusters import node, pod
from little_clusters import (
    KIND_KEY,
    ZONE_KEY,
    Json,
    apart,
    budget,
    container,
    deployment,
    expression,
    homes,
    imported,
    moves,
    needs,
    nodes_of,
    services,
    stays,
    taint,
    texts,
)

from placeopt import api
from placeopt.core.errors import DocumentError, InfeasibleInstanceError, UsageError
from placeopt.kubernetes.admission import MissingRequests, PodSize, effective
from placeopt.kubernetes.files import converted
from placeopt.kubernetes.given import execution_times
from placeopt.kubernetes.importing import Imported
from placeopt.kubernetes.objects import PodSpec

Import = Callable[..., Imported]
N1, N2 = node("n1"), node("n2")


@pytest.fixture
def run(tmp_path: Path) -> Import:
    """Import objects: ``run(objects, target, **options)``."""
    return partial(imported, tmp_path)


def manifest(name: str, replicas: int = 1, cpu: str = "500m", **more: Any) -> Json:
    """Return a workload of which nothing runs."""
    env = [{"name": k, "value": v} for k, v in more.pop("env", {}).items()]
    return deployment(name, [None] * replicas, [container(cpu=cpu, env=env)], **more)[0]


def service(name: str, space: str = "default", **spec: Any) -> Json:
    """Return a service in front of the pods of this name."""
    made = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": space}}
    return {**made, "spec": {"selector": {"app": name}, **spec}}


# -- sizes -----------------------------------------------------------------------------------------

ALWAYS = {"restartPolicy": "Always"}


def size_of(document: Json, *policy: str) -> PodSize:
    return effective(converted(document, PodSpec), MissingRequests.parse(policy), "x")


def asks(cpu: int, **more: Any) -> Json:
    requests = {"memory": "1Mi", "cpu": f"{cpu}m"}
    return {"name": "c", "resources": {"requests": requests}, **more}


@pytest.mark.parametrize(
    ("spec", "cpu"),
    [
        ({"initContainers": [asks(900), asks(50)]}, 900),
        ({"initContainers": [asks(50, **ALWAYS), asks(900)]}, 950),
        ({"initContainers": [asks(900), asks(50, **ALWAYS)]}, 900),
        ({"initContainers": [asks(50, **ALWAYS)], "overhead": {"cpu": "7m"}}, 157),
        ({"resources": {"requests": {"cpu": "2"}}, "overhead": {"cpu": "1m"}}, 2001),
    ],
)
def test_effective_requests_by_hand(spec: Json, cpu: int) -> None:
    """A large init container; sidecars before it; overhead; the pod's own."""
    assert size_of({"containers": [asks(100)], **spec}).cpu == cpu
    assert size_of({"containers": [asks(100), asks(200)]}) == PodSize(300, 2 * 2**20)


def test_effective_requests_against_a_timeline() -> None:
    """The most that runs at any moment, moment by moment."""
    rng = np.random.default_rng(5)
    for _ in range(300):
        containers = [int(c) for c in rng.integers(1, 100, int(rng.integers(1, 4)))]
        drawn = zip(rng.integers(1, 300, 4).tolist(), rng.random(4) < 0.4, strict=True)
        inits = list(drawn)[: int(rng.integers(0, 5))]
        running, most = 0, 0
        for cpu, sidecar in inits:
            most = max(most, running + cpu)
            running += cpu if sidecar else 0
        most = max(most, running + sum(containers))
        document = {"containers": [asks(c) for c in containers]}
        document["initContainers"] = [asks(c, **(ALWAYS if s else {})) for c, s in inits]
        assert size_of(document).cpu == most


def test_missing_requests() -> None:
    """An error by default, never zero; limits, then a default, in the order given."""
    document = {"containers": [{"name": "c", "resources": {"limits": {"cpu": "2"}}}]}
    for policy in ((), ("limits",)):
        with pytest.raises(DocumentError, match="container 'c' of x has no memory request"):
            size_of(document, *policy)
    for policies in (("limits", "default=100m,128Mi"), ("default=100m,128Mi", "limits")):
        assert size_of(document, *policies) == PodSize(2000, 2**27)
    nothing = {"resources": {"requests": {"cpu": 0, "memory": "0"}}}
    assert size_of({"containers": [{"name": "c", **nothing}]}) == PodSize(0, 0)
    for bad in ("zero", "default", "default=1", "default=x,y", "default=-1,1", "limits=1"):
        with pytest.raises(UsageError, match="missing-requests"):
            MissingRequests.parse([bad])


# -- a running cluster -----------------------------------------------------------------------------


def test_a_cluster_becomes_a_rolling_update(run: Import) -> None:
    """Pods on their nodes, less DaemonSets and static pods; owners through ReplicaSets."""
    objects = [N1, N2, pod("web-1", "n1", "500m"), pod("web-2", "n2"), pod("web-3", None)]
    objects += [pod("agent-1", "n1", owner="DaemonSet", memory="1Gi")]
    objects += [pod("apiserver-n2", "n2", "250m", "Node", memory="1Gi", space="kube-system")]
    objects += [pod("job-1", "n1", owner="Job", phase="Succeeded")]
    done = run(objects, name="c")
    rooms = {k: (n["cpu_millicores"], n["memory_mib"]) for k, n in nodes_of(done).items()}
    assert rooms == {"n1": (3000, 15 * 1024), "n2": (3750, 15 * 1024)}
    assert homes(done) == {"web-1": "n1", "web-2": "n2", "web-3": None}
    assert stays(done) == {"web-1", "web-2"}  # of the workload of the one that waits
    item = done.origin.item("web-1", "shop (stays)")
    assert (item.namespace, item.kind, item.name) == ("shop", "Deployment", "web")
    assert (item.pod, item.node, item.labels["app"]) == ("web-1", "n1", "web")
    assert item.containers[0].cpu_millicores == 500
    for topic, name in (("left-out", "job-1"), ("assumption", "web-3"), ("capacity", "agent-1")):
        assert name in texts(done, topic)
    front = api.solve(done.problem, "repack", evaluations=500)
    assert min(p.values[0] for p in front.points) == 2.0


def volume(**kind: Any) -> Json:
    return {"volumes": [{"name": "v", **kind}]}


EVICT = "cluster-autoscaler.kubernetes.io/safe-to-evict"
SOFT = "preferredDuringSchedulingIgnoredDuringExecution"
STAYING: dict[str, tuple[Json, Json]] = {
    "safe-to-evict": ({"annotations": {EVICT: "false"}}, {}),
    "bare": ({"owner": None}, {}),
    "stateful": ({"owner": "StatefulSet"}, {}),
    "job": ({"owner": "Job"}, {}),
    "custom owner": ({"owner": "StrimziPodSet"}, {}),
    "system": ({"space": "kube-system"}, {}),
    "hostPath": (volume(hostPath={"path": "/x"}), {}),
    "emptyDir": (volume(emptyDir={}), {}),
    "claim": (volume(persistentVolumeClaim={"claimName": "c"}), {}),
    "port": ({"hostNetwork": True}, {}),
    "claims": ({"resourceClaims": [{"name": "gpu"}]}, {}),
    "namespace": ({"space": "other"}, {"namespaces": ("shop",)}),
}
MOVING: dict[str, tuple[Json, Json]] = {
    "plain": ({}, {}),
    "memory": (volume(emptyDir={"medium": "Memory"}), {}),
    "emptyDir-policy": (volume(emptyDir={}), {"move_empty_dir": True}),
    "safe": ({**volume(hostPath={}), "annotations": {EVICT: "true"}}, {}),
    "spared": ({**volume(emptyDir={}), "annotations": {f"{EVICT}-local-volumes": "u, v"}}, {}),
    "preferred": ({"affinity": {"podAffinity": {SOFT: [{"weight": 1}]}}}, {}),
    "soft": (
        {
            "topologySpreadConstraints": [
                {"topologyKey": "z", "whenUnsatisfiable": "ScheduleAnyway"}
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
    done = run([N1, N2, pod("x-1", "n1", **extra), pod("y-1", "n2")], rules=rules)
    assert stays(done) == {"x-1"}
    assert f"{extra.get('space', 'shop')}/x-1" in texts(done, "pinned")
    for point in api.solve(done.problem, "repack", evaluations=300).points:
        assert all(step["microservice"] != "x-1" for step in point.plan["steps"])


@pytest.mark.parametrize("case", MOVING)
def test_pods_that_may_move(run: Import, case: str) -> None:
    """Nothing is pinned without a reason."""
    extra, rules = MOVING[case]
    assert stays(run([N1, N2, pod("x-1", "n1", **extra)], rules=rules)) == set()


@pytest.mark.parametrize("strategy", ["Recreate", "RollingUpdate"])
def test_a_deployment_that_recreates_holds_its_pods(run: Import, strategy: str) -> None:
    """Two copies of its pods must not run side by side, as every move would have it."""
    web = manifest("web", space="shop")
    web["spec"]["strategy"] = {"type": strategy}
    done = run([N1, N2, pod("web-1", "n1"), web])
    assert stays(done) == ({"web-1"} if strategy == "Recreate" else set())


def test_shared_claims_and_repelled_pods(run: Import) -> None:
    """A claim that several nodes may mount holds no pod; nor does one that is kept away."""
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim"}
    claim |= {"metadata": {"name": "c", "namespace": "shop"}}
    claim |= {"spec": {"accessModes": ["ReadWriteMany"]}}
    using = volume(persistentVolumeClaim={"claimName": "c"})
    assert stays(run([N1, claim, pod("x-1", "n1", **using)])) == set()
    others = [pod("y-1", "n2"), pod("z-1", "n2")]
    done = run([N1, N2, pod("x-1", "n1", **apart("y")), *others])
    assert stays(done) == set() and "required anti-affinity" in texts(done, "kept")
    assert not done.problem.evaluate(moves(done, ("x-1", "n2"))).feasible


@pytest.mark.parametrize("key", ["maxUnavailable", "minAvailable"])
@pytest.mark.parametrize("value", [0, 1, 2, "50%", "100%", "nonsense"])
def test_disruption_budgets(run: Import, key: str, value: Any) -> None:
    """None pins pods: a step evicts nothing, and the new copy runs before the old one ends."""
    pods = [pod("x-1", "n1"), pod("x-2", "n2"), pod("y-1", "n1")]
    done = run([N1, N2, *pods, budget("x", "shop", **{key: value})])
    assert stays(done) == set() and "shop/b" in texts(done, "kept")


GPU = {"tolerations": [{"key": "gpu", "operator": "Exists"}]}
POOLS: dict[str, Json] = {
    "selector": {"nodeSelector": {"pool": "gpu"}, "tolerations": [{"operator": "Exists"}]},
    "affinity": needs(expression("pool", "In", "gpu")) | GPU,
    "fields": needs(expression("metadata.name", "In", "g1", "g2"), fields=True) | GPU,
}


@pytest.mark.parametrize("how", POOLS)
@pytest.mark.parametrize(
    "method", ["repack", "decomposition", "rolling-update", "recreate", "nsga2"]
)
def test_rules_about_nodes_are_kept_by_every_method(run: Import, how: str, method: str) -> None:
    """Plain pods never reach the tainted nodes, pods of the pool never leave it, at any point."""
    tainted = taint("gpu", value="yes")
    objects = [node(f"g{k}", labels={"pool": "gpu"}, **tainted) for k in (1, 2)]
    objects += [node(f"n{k}") for k in (1, 2, 3)]
    objects += [pod(f"gpu-{k}", f"g{k}", **POOLS[how]) for k in (1, 2)]
    done = run([*objects, *(pod(f"web-{k}", f"n{k}") for k in (1, 2, 3))])
    assert not stays(done) and "gpu-1" in texts(done, "kept")
    front = api.solve(done.problem, method, evaluations=400, seed=1)
    for point in front.points:
        steps = [s for s in point.plan["steps"] if s["to"] is not None]
        place = homes(done) | {s["microservice"]: s["to"] for s in steps}
        assert all(on[0] == ("g" if name.startswith("gpu") else "n") for name, on in place.items())
    if method in ("repack", "decomposition"):
        assert min(p.values[0] for p in front.points) == 2.0
    assert done.problem.evaluate(moves(done, ("web-1", "g1"))).violations
    assert not done.problem.evaluate(moves(done, ("web-1", "n2"))).violations


def test_nodes_that_take_no_part(run: Import) -> None:
    """Cordoned and broken nodes are left out with their pods, or drained, also by name."""
    broken, first = node("n3"), pod("a-1", "n1")
    broken["status"]["conditions"][0]["status"] = "Unknown"
    objects = [N1, node("n2", unschedulable=True), broken, first]
    objects += [pod("b-1", "n2"), pod("c-1", "n3"), pod("d-1", "n9")]
    done = run(objects)
    assert nodes_of(done).keys() == {"n1"} and homes(done) == {"a-1": "n1"}
    assert all(name in texts(done, "left-out") for name in ("n2", "n3", "b-1", "c-1", "d-1"))
    drained = run(objects, drain_cordoned=True)
    assert [n.get("drain", False) for n in drained.document["nodes"]] == [False, True]
    for point in api.solve(drained.problem, "repack", evaluations=300).points:
        assert point.plan["steps"][0]["to"] == "n1"
    assert nodes_of(run([N1, node("n4"), first], drain=("n1",)))["n1"]["drain"] is True
    with pytest.raises(UsageError, match="no such node; did you mean 'n1'"):
        run(objects, drain=("n11",))


def test_a_label_key_of_the_hash_is_read_both_ways(run: Import) -> None:
    """A copy has no hash when it is made: then a probe of the same app counts; at the end not."""
    term = {"topologyKey": ZONE_KEY, "whenUnsatisfiable": "DoNotSchedule"}
    term |= {"labelSelector": {"matchLabels": {"app": "web"}}}
    term |= {"matchLabelKeys": ["pod-template-hash"]}
    objects = [node(f"n{k}", labels={ZONE_KEY: f"z{k}"}) for k in (1, 2)]
    objects += [pod(f"web-{k}", f"n{k}", topologySpreadConstraints=[term]) for k in (1, 2)]
    probe = pod("probe-1", "n1", owner="StatefulSet")
    probe["metadata"]["labels"] = {"app": "web"}
    done = run([*objects, probe])
    rules = [rule for rule in done.document["rules"] if rule["kind"] == "spread"]
    groups = [rule.get("toward", rule["group"]) for rule in rules]
    counted = [{name for name, m in services(done).items() if g in m["groups"]} for g in groups]
    both = {"web-1", "web-2"}
    assert sorted(counted, key=len) == [both, both | {"probe-1"}]


# -- prices of nodes, latencies --------------------------------------------------------------------


def test_prices_by_machine_type(run: Import, tmp_path: Path) -> None:
    """In the region of the node; spot nodes at the spot price; a missing price is an error."""
    labels = {KIND_KEY: "m5.large", "topology.kubernetes.io/region": "us-east-1"}
    table = tmp_path / "prices.csv"
    header = "location,size,on_demand_usd_per_hour,spot_usd_per_hour,spot_interruption"
    table.write_text(f"{header}\nus-east-1,m5.large,0.096,0.03,0.05\n", encoding="utf-8")
    spot = labels | {"karpenter.sh/capacity-type": "spot"}
    objects = [node("n1", labels=labels), node("n2", labels=spot), pod("web-1", "n1")]
    files = {"prices": [table]}
    done = run(objects, files=files)
    assert [n["price"] for n in done.document["nodes"]] == [0.096, 0.03]
    objects.append(node("n3"))
    with pytest.raises(DocumentError, match="no price for node 'n3'"):
        run(objects, files=files)
    done = run(objects, files=files, missing_prices="default=0.2")
    assert done.document["nodes"][2]["price"] == 0.2 and "0.2" in texts(done, "assumption")
    with pytest.raises(UsageError, match="missing-prices"):
        run(objects, files=files, missing_prices="free")


ZONED = [node(f"n{k}", labels={ZONE_KEY: f"z{k}"}) for k in (1, 2)]


@pytest.fixture
def latency(tmp_path: Path) -> Json:
    """A table that differs by direction."""
    (tmp_path / "latency.csv").write_text("from,z1,z2\nz1,0,5\nz2,7,0\n")
    return {"latency": tmp_path / "latency.csv"}


def test_latencies_that_differ_by_direction(run: Import, latency: Json) -> None:
    """The larger of two directions counts."""
    objects = [*ZONED, manifest("web"), manifest("db")]
    done = run(objects, files=latency)
    assert done.document["cluster_latency_ms"] == {"z1": {"z2": 7.0}}
    assert "differ by direction" in texts(done, "assumption")
    assert run(objects, "edge-cloud", files=latency).document["delay_ms"] == {"n1": {"n2": 7.0}}


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
    done = run([N1, manifest("web", env={name: value}), manifest("db"), service("db")])
    assert done.notes.counts["calls"] == called


def test_rescheduling_of_a_call_graph(run: Import, latency: Json) -> None:
    """Groups of calls, a gateway behind a load balancer, circles cut, services that stay."""
    objects = [*ZONED, service("web", "shop", type="LoadBalancer")]
    objects += [service("api", "shop"), service("db", "shop")]
    objects += [pod("web-1", "n1", env={"API_ADDR": "api:1", "DB_ADDR": "db:1"})]
    objects += [pod("api-1", "n2", env={"DB_ADDR": "db:1"})]
    objects += [pod("db-0", "n1", owner="StatefulSet", env={"WEB_URL": "http://web"})]
    done = run(objects, "rescheduling", user_latency_ms=3.0, files=latency)
    found = {s["name"]: s for s in done.document["services"]}
    calls = {name: s.get("calls") for name, s in found.items()}
    assert calls == {"web": [["api", "db"]], "api": [["db"]], "db": None}
    assert done.document["gateway"] == "web"
    assert "close a circle" in texts(done, "not-expressed")
    kinds = {n["name"]: n["kind"] for n in done.document["nodes"]}
    assert found["db"]["execution_ms"] == {kinds["n1"]: 10.0, kinds["n2"]: 1e6}
    (replica,) = done.origin.item("db").replicas
    assert (replica.pod, replica.node) == ("db-0", "n1")
    for point in api.solve(done.problem, "block-search", evaluations=300).points:
        assert all(move["service"] != "db" for move in point.plan["moves"])
    done = run(objects, "rescheduling", parallel_calls=True, files=latency)
    assert {s["name"]: s.get("calls") for s in done.document["services"]}["web"] == [
        ["api"],
        ["db"],
    ]
    with pytest.raises(UsageError, match="no such service; did you mean 'db'"):
        run(objects, "rescheduling", gateway="dbb", files=latency)
    where = r"cluster\.json: line \d+, items\[0\]: no latency between n1 and n2"
    with pytest.raises(DocumentError, match=where):
        run(objects, "rescheduling")


def test_execution_times(tmp_path: Path, run: Import) -> None:
    """A number, or a table by service and kind."""
    table = tmp_path / "t.csv"
    table.write_text("service,kind,ms\nweb,m5,4\nweb,,9\n", encoding="utf-8")
    assert execution_times("12.5") == (12.5, {})
    times = execution_times(str(table))
    assert times == (10.0, {("web", "m5"): 4.0, ("web", ""): 9.0})
    done = run([N1, manifest("web"), manifest("db")], "rescheduling", execution=times)
    assert [s["execution_ms"] for s in done.document["services"]] == [{"node": 9.0}, {"node": 10.0}]
    for bad in ("-1", "1e9"):
        with pytest.raises(UsageError, match="execution"):
            execution_times(bad)


# -- manifests -------------------------------------------------------------------------------------


def test_manifests_are_placed_as_the_scheduler_would(run: Import) -> None:
    """Evenly; a DaemonSet takes its share of every node it may be on; what has no room is said."""
    done = run([N1, N2, manifest("web", 4, cpu="1"), manifest("agent", kind="DaemonSet")])
    assert sorted(homes(done).values()) == ["n1", "n1", "n2", "n2"]
    assert [n["cpu_millicores"] for n in done.document["nodes"]] == [3500, 3500]
    assert done.origin.item("web-1", "default").pod is None
    with pytest.raises(InfeasibleInstanceError, match="no node has room for default/web-7"):
        run([N1, N2, manifest("web", 20, cpu="1100m")])


def test_temporal_fleet(run: Import, tmp_path: Path) -> None:
    """Workloads are requests; machine types are offers, less DaemonSets; Jobs have deadlines."""
    job = manifest("report", kind="Job", cpu="1") | {"apiVersion": "batch/v1"}
    job["spec"] |= {"parallelism": 3, "activeDeadlineSeconds": 5400}
    offer = {"location": "us", "size": "m5.large", "cpu_cores": 2, "memory_gib": 8}
    offer |= {"on_demand_usd_per_hour": 0.1, "spot_usd_per_hour": 0.03, "spot_interruption": 0.05}
    rows = [",".join(offer), ",".join(map(str, offer.values()))]
    rows += ["us,tiny,0.4,8,0.01,,", "us,unsized,,,0.02,,"]
    table, files = tmp_path / "p.csv", {"prices": [tmp_path / "p.csv"]}
    table.write_text("\n".join(rows))
    objects = [manifest("web", 2), job, manifest("agent", kind="DaemonSet")]
    done = run(objects, "temporal", files=files, horizon=10)
    asked = {r["name"]: (r["replicas"], r["duration_slots"]) for r in done.document["requests"]}
    assert asked == {"web": (2, 10), "report": (3, 2)}
    assert done.document["offers"] == [offer | {"cpu_cores": 1.5, "memory_gib": 7.5}]
    assert api.solve(done.problem, "greedy", evaluations=200).points
    with pytest.raises(DocumentError, match="no prices"):
        run(objects, "temporal")
    table.write_text("\n".join([*rows, "eu,m5.large,2,8,0.1,,"]))
    with pytest.raises(UsageError, match="--origin"):
        run(objects, "temporal", files=files)
    told = run(objects, "temporal", files=files, origin="eu").document["latency_ms"]
    assert told == {"eu": {"eu": 0.0}}


def test_karmada_clusters_are_places(run: Import, tmp_path: Path) -> None:
    """Of edge-cloud: what they can allocate less what is allocated."""
    summary = {"allocatable": {"cpu": "10", "memory": "20Gi"}}
    summary |= {"allocated": {"cpu": "2500m", "memory": "4Gi"}}
    status = {"resourceSummary": summary, "conditions": [{"type": "Ready", "status": "True"}]}
    member = {"apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster"}
    members = [
        {**member, "metadata": {"name": f"member{k}"}, "spec": {"region": f"r{k}"}}
        | {"status": copy.deepcopy(status)}
        for k in (1, 2)
    ]
    (tmp_path / "latency.csv").write_text("from,r2\nr1,30\n")
    files = {"latency": tmp_path / "latency.csv"}
    done = run([*members, manifest("nginx", 2)], "edge-cloud", files=files, source="member2")
    rooms = [(n["cpu_cores"], n["memory_gib"], n["layer"]) for n in done.document["nodes"]]
    assert rooms == [(7.5, 16.0, "r1"), (7.5, 16.0, "r2")]
    assert done.document["delay_ms"] == {"member1": {"member2": 30.0}}
    assert done.origin.nodes["member1"].kind == "Cluster"
    assert done.document["applications"][0]["source"] == "member2"
    assert api.solve(done.problem, "greedy", evaluations=200).points


def test_twice_and_nothing(run: Import) -> None:
    """Objects that stand twice, files without what is needed: refused with line."""
    web = pod("web-1", "n1")
    assert len(services(run([N1, web, web]))) == 1
    for objects, target, message in (
        (
            [N1, web, pod("web-1", "n1", "9m")],
            "rolling-update",
            r"line \d+, items\[2\]: Pod shop/web-1 stands twice",
        ),
        ([N1, service("x")], "rolling-update", "no workloads or pods here, only 1 Node, 1 Service"),
        ([manifest("web")], "rolling-update", "no nodes here"),
        ([manifest("web")], "temporla", "did you mean 'temporal'"),
    ):
        with pytest.raises((DocumentError, UsageError), match=message):
            run(objects, target)
