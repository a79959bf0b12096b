"""Who may move, what is demand, what is asked: a minimal cluster for each sentence of the docs.

The audit's defects are in `test_audit.py`; here is what they leave open.
"""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import held_clusters
import pytest

from placeopt import api, cli
from placeopt.core.errors import DocumentError, UsageError
from placeopt.kubernetes.importing import Imported, import_files
from placeopt.kubernetes.moving import MovingRules
from placeopt.kubernetes.options import ImportOptions

Json = dict[str, Any]
ZONE = "topology.kubernetes.io/zone"


#: Half a core.
pod = partial(held_clusters.pod, cpu="500m")


def node(name: str, zone: str = "a", *, gpus: int = 0, **labels: str) -> Json:
    room = {"nvidia.com/gpu": str(gpus)} if gpus else {}
    return held_clusters.node(name, labels={ZONE: zone, **labels}, room=room)


def deployment(name: str, replicas: int = 1, **spec: Any) -> Json:
    made = pod(f"{name}-1", None, **spec)["spec"]
    template = {"metadata": {"labels": {"app": name}}, "spec": made}
    about = {"name": name, "namespace": "shop"}
    return {
        "kind": "Deployment",
        "metadata": about,
        "spec": {"replicas": replicas, "template": template},
    }


def limit_range(**limits: Json) -> Json:
    spec = {"limits": [{"type": "Container", **limits}]}
    return {"kind": "LimitRange", "metadata": {"name": "l", "namespace": "shop"}, "spec": spec}


def read(
    folder: Path, *items: Json, to: str = "rolling-update", pins: Any = (), **options: Any
) -> Imported:
    path = folder / "cluster.json"
    path.write_text(json.dumps({"kind": "List", "items": list(items)}))
    asked = ImportOptions(rules=MovingRules(pins=pins), **options)
    return import_files([path], to, asked)


def told(done: Imported, topic: str) -> str:
    return "; ".join(f"{text}: {', '.join(who)}" for text, who in done.notes.of(topic))


def stays(done: Imported) -> set[str]:
    return {
        m["name"]
        for a in done.document["applications"]
        for m in a["microservices"]
        if a.get("reschedulable") is False or m.get("pinned")
    }


def ends(done: Imported) -> dict[str, str]:
    """Return where pods run after the cheapest plan."""
    front = api.solve(done.problem, "repack", seed=1)
    point = min(front.points, key=lambda p: p.values)
    assert done.problem.evaluate(point.plan).feasible
    where = {
        m["name"]: m["node"] for a in done.document["applications"] for m in a["microservices"]
    }
    where |= {step["microservice"]: step["to"] for step in point.plan["steps"]}
    return where


# -- who may move ----------------------------------------------------------------------------------


def test_a_pin_holds_a_workload_or_a_pod(tmp_path: Path) -> None:
    cluster = [node("n1"), node("n2"), pod("web-1", "n1"), pod("web-2", "n2"), pod("api-1", "n2")]
    assert stays(read(tmp_path, *cluster)) == set()
    done = read(tmp_path, *cluster, pins=[("deployment", "web")])
    assert stays(done) == {"web-1", "web-2"} and "--pin" in told(done, "pinned")
    assert stays(read(tmp_path, *cluster, pins=[("Pod", "api-1")])) == {"api-1"}


def test_a_pin_of_nothing_is_an_error(tmp_path: Path) -> None:
    cluster = [node("n1"), pod("web-1", "n1")]
    with pytest.raises(UsageError, match=r"--pin Deployment/wep: no such .* did you mean 'Deploym"):
        read(tmp_path, *cluster, pins=[("Deployment", "wep")])


@pytest.mark.parametrize(
    ("annotation", "value", "held"),
    [
        ("karpenter.sh/do-not-disrupt", "true", True),
        ("karpenter.sh/do-not-disrupt", "1h30m", True),
        ("karpenter.sh/do-not-disrupt", "false", False),
        ("karpenter.sh/do-not-disrupt", "soon", False),
        ("cluster-autoscaler.kubernetes.io/scale-down-disabled", "true", None),
    ],
)
def test_protection_of_pods_and_of_nodes(
    annotation: str, value: str, held: bool | None, tmp_path: Path
) -> None:
    """Of a pod, of its node; None: of the node only."""
    marked = pod("web-1", "n1")
    marked["metadata"]["annotations"] = {annotation: value}
    assert ("web-1" in stays(read(tmp_path, node("n1"), node("n2"), marked))) is bool(held)
    where = node("n1")
    where["metadata"]["annotations"] = {annotation: value}
    done = read(tmp_path, where, node("n2"), pod("web-1", "n1"))
    assert ("web-1" in stays(done)) is (held is not False)


def test_a_pod_that_waits_with_a_resource_claim_is_named(tmp_path: Path) -> None:
    waits = pod("gpu-1", None, resourceClaims=[{"name": "gpu"}])
    done = read(tmp_path, node("n1"), pod("web-1", "n1"), waits)
    assert "resource claims of pods that wait" in told(done, "not-expressed")


def test_a_single_pod_behind_a_budget_moves_by_adoption(tmp_path: Path) -> None:
    """It is never evicted: the plan has no disruption."""
    budget = {
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"minAvailable": "100%", "selector": {"matchLabels": {"app": "web"}}},
    }
    done = read(tmp_path, node("n1"), node("n2"), pod("web-1", "n1"), pod("api-1", "n2"), budget)
    assert stays(done) == set() and "PodDisruptionBudgets" in told(done, "kept")
    front = api.solve(done.problem, "repack", seed=1)
    assert min(p.values for p in front.points) == (1.0, 1.0, 0.0)


def test_a_sibling_that_waits_holds_those_that_run(tmp_path: Path) -> None:
    """The ReplicaSet would end it first; it is demand itself."""
    done = read(tmp_path, node("n1"), node("n2"), pod("web-1", "n1"), pod("web-2", None))
    assert stays(done) == {"web-1"} and ends(done)["web-2"] in ("n1", "n2")
    assert "pending" in told(done, "assumption")


# -- what is asked ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("limits", "cpu"),
    [
        ({"defaultRequest": {"cpu": "250m", "memory": "1Mi"}, "max": {"cpu": "2"}}, 250),
        ({"default": {"cpu": "300m", "memory": "1Mi"}}, 300),
        ({"max": {"cpu": "2", "memory": "1Gi"}}, 2000),
        ({"min": {"cpu": "50m", "memory": "1Mi"}}, 50),
    ],
)
def test_limit_ranges_say_what_containers_ask_for(limits: Json, cpu: int, tmp_path: Path) -> None:
    """Containers and init containers without requests, as the API server fills them in."""
    made = deployment("new", resources={})
    done = read(tmp_path, node("n1"), limit_range(**limits), made)
    [m] = done.document["applications"][0]["microservices"]
    assert m["cpu_millicores"] == cpu
    small = {"requests": {"cpu": "10m", "memory": "1Mi"}}
    init = deployment("new", resources=small, initContainers=[{"name": "i"}])
    done = read(tmp_path, node("n1"), limit_range(**limits), init)
    [m] = done.document["applications"][0]["microservices"]
    assert m["cpu_millicores"] == cpu


def test_a_limit_of_its_own_comes_before_the_limit_range(tmp_path: Path) -> None:
    own = deployment("new", resources={"limits": {"cpu": "700m", "memory": "64Mi"}})
    done = read(tmp_path, node("n1"), limit_range(defaultRequest={"cpu": "1m"}), own)
    assert done.document["applications"][0]["microservices"][0]["cpu_millicores"] == 700


def test_all_missing_requests_are_named_at_once(tmp_path: Path) -> None:
    with pytest.raises(DocumentError) as caught:
        read(tmp_path, node("n1"), *(pod(f"w{k}-1", "n1", resources={}) for k in range(30)))
    message = str(caught.value)
    assert all(f"shop/w{k}-1 has no cpu request" in message for k in range(20))
    assert "; 10 more; say" in message and "\n" not in message
    assert message.endswith("--missing-requests default=100m,128Mi, or limits")


def test_a_defect_at_every_stage_is_named_at_once(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Reading, quantities, requests, rules, budgets, nodes, prices, latencies, new requests."""
    spread = {"maxSkew": "two", "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"}
    odd = {"matchExpressions": [{"key": "app", "operator": "Near", "values": ["x"]}]}
    budget = {"selector": odd, "minAvailable": 1}
    items = [
        node("n1", **{"node.kubernetes.io/instance-type": "m5.huge"}),
        node("n2"),
        pod("fine-1", "n1"),
        pod("many-1", "n1", resources={"requests": {"cpu": "lots", "memory": "1Mi"}}),
        pod("bare-1", "n1", resources={}),
        pod("even-1", "n1", topologySpreadConstraints=[spread]),
        pod("sweet-1", "n1", tolerations={"key": "x"}),
        pod("gone-1", "n3"),
        {"kind": "PodDisruptionBudget", "metadata": {"name": "b", "namespace": "shop"}}
        | {"spec": budget},
        {"kind": "Node", "metadata": {"name": "n3"}, "status": {}},
        "no object",
    ]
    files = {
        "cluster.json": json.dumps({"kind": "List", "items": items}),
        "torn.json": '{"kind": "List", "items": [',
        "nodes.csv": "name,cpu,memory\nn9,4,much\n",
        "prices.json": json.dumps({"format": "placeopt/prices@1", "nodes": {"n2": 1.0}}),
        "latency.csv": ",a,b\na,0,-3\nb,1,0\n",
        "new.csv": "workload,cpu,memory\nfine,1,-1Gi\n",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    flags = {"nodes": "nodes.csv", "prices": "prices.json", "latency": "latency.csv"}
    flags |= {"new-requests": "new.csv"}
    arguments = [str(tmp_path / name) for name in ("cluster.json", "torn.json")]
    for flag, name in flags.items():
        arguments += [f"--{flag}", str(tmp_path / name)]
    with pytest.raises(SystemExit) as end:
        cli.main(["import", "kubernetes", *arguments, "--to", "rolling-update"])
    message = capfd.readouterr().err
    assert end.value.code == 2 and message.count("\n") == 1
    wanted = {
        "new.csv: line 2: memory: '-1Gi' is negative": "an amount of at least 0",
        "items[3].spec.containers[0].resources.requests.cpu: 'lots' is no quantity": "128Mi",
        "items[10]: not an object of Kubernetes": "kind and metadata",
        "items[9].status: a node without allocatable cpu": "kubectl get nodes",
        "torn.json: line 1: not JSON": "complete JSON documents",
        "nodes.csv: line 2: memory: 'much' is no quantity": "128Mi",
        "items[4].spec.containers[0].resources.requests: container 'c'": "--missing-requests",
        "items[8].spec.selector.matchExpressions[0]: the operator 'Near'": "NotIn",
        "items[5].spec.topologySpreadConstraints[0].maxSkew: 'two'": "a whole number",
        "items[6].spec.tolerations: a mapping where a list": "give a list",
        "latency.csv: line 2: ": "a number, 0 to",
        "items[0]: no price for node 'n1': machine type 'm5.huge'": "--missing-prices",
    }
    for what, legal in wanted.items():
        assert message.count(what) == 1, (what, message)
        assert legal in message.partition(what)[2].partition("; and ")[0], (what, message)
    assert message.count("; and ") == len(wanted) - 1, message


def test_all_nodes_without_a_price_are_named_at_once(tmp_path: Path) -> None:
    nodes = [node(f"n{k}") for k in range(3)]
    path, prices = tmp_path / "cluster.json", tmp_path / "prices.json"
    path.write_text(json.dumps({"kind": "List", "items": [*nodes, pod("web-1", "n0")]}))
    prices.write_text(json.dumps({"format": "placeopt/prices@1", "nodes": {"n1": 1.0}}))
    asked = ImportOptions(rules=MovingRules())
    with pytest.raises(DocumentError) as caught:
        import_files([path], "rolling-update", asked, prices=[prices])
    assert "no price for node 'n0'" in str(caught.value)
    assert "no price for node 'n2'" in str(caught.value)


def test_all_objects_that_cannot_be_read_are_named_at_once(tmp_path: Path) -> None:
    """Those of other files, too."""
    wrong = [pod("web-1", "n1", resources={"requests": {"cpu": "lots"}}), node("n1")]
    wrong[1]["status"] = {}
    files = [tmp_path / f"{k}.json" for k in range(2)]
    for file, item in zip(files, wrong, strict=True):
        file.write_text(json.dumps(item))
    with pytest.raises(DocumentError) as caught:
        import_files(files, "rolling-update", ImportOptions(rules=MovingRules()))
    message = str(caught.value)
    assert "lots" in message and f"{files[1]}: line 1" in message
    assert "a node without allocatable cpu and memory" in message


# -- what the scheduler keeps ----------------------------------------------------------------------


def test_gpus_bind(tmp_path: Path) -> None:
    """Only one of three nodes has GPUs: the pod stays there, and its neighbour goes there."""
    asked = {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"nvidia.com/gpu": "1"}}
    done = read(
        tmp_path,
        node("n1"),
        node("n2", gpus=1),
        pod("web-1", "n1"),
        pod("cuda-1", "n2", resources=asked),
    )
    assert done.document["nodes"][1]["resources"] == {"nvidia.com/gpu": 1}
    assert ends(done) == {"web-1": "n2", "cuda-1": "n2"}


def term(key: str, app: str) -> Json:
    return {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}}


def affinity(kind: str, key: str, app: str) -> Json:
    return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term(key, app)]}}


@pytest.mark.parametrize(("key", "zones"), [("kubernetes.io/hostname", 1), (ZONE, 2)])
def test_pods_that_may_not_share(key: str, zones: int, tmp_path: Path) -> None:
    """A node, or a zone: two replicas of three nodes end on two of them."""
    apart = affinity("podAntiAffinity", key, "web")
    cluster = [node("n1"), node("n2"), node("n3", "b")]
    cluster += [pod("web-1", "n1", affinity=apart), pod("web-2", "n3", affinity=apart)]
    where = ends(read(tmp_path, *cluster, pod("api-1", "n2")))
    assert where["web-1"] != where["web-2"]
    assert len(set(where.values())) == 2
    if zones == 2:
        assert {where["web-1"], where["web-2"]} & {"n3"}


def test_pods_that_must_share_a_zone(tmp_path: Path) -> None:
    near = affinity("podAffinity", ZONE, "db")
    held = pod("db-1", "n3")
    held["metadata"]["annotations"] = {"karpenter.sh/do-not-disrupt": "true"}
    cluster = [node("n1"), node("n2", "b"), node("n3", "b"), held]
    done = read(tmp_path, *cluster, pod("web-1", "n2", affinity=near), pod("api-1", "n1"))
    where = ends(done)
    assert where["web-1"] == "n3" and set(where.values()) == {"n3"}


@pytest.mark.parametrize(("key", "most"), [("kubernetes.io/hostname", 1), (ZONE, 2)])
def test_a_largest_skew_by_node_or_zone(key: str, most: int, tmp_path: Path) -> None:
    """Three replicas on three nodes of two zones; two of them may share a zone, none a node.

    With minDomains nodes count even when they are empty.
    """
    few = {"minDomains": 2} if most == 1 else {}
    spread = [
        {"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", **few, **term(key, "web")},
    ]
    cluster = [node("n1"), node("n2"), node("n3", "b")]
    cluster += [pod(f"web-{k}", f"n{k}", topologySpreadConstraints=spread) for k in (1, 2, 3)]
    where = list(ends(read(tmp_path, *cluster)).values())
    assert max(where.count(n) for n in where) <= most
    assert ("n3" in where) and len(set(where)) == (3 if most == 1 else 2)


@pytest.mark.parametrize("problem", ["edge-cloud", "rescheduling"])
def test_other_problems_name_what_they_drop(problem: str, tmp_path: Path) -> None:
    asked = {"requests": {"cpu": "1", "memory": "1Gi", "ephemeral-storage": "1Gi"}}
    options = {"edge-cloud": {"source": "n1"}, "rescheduling": {"gateway": "web"}}[problem]
    done = read(tmp_path, node("n1"), pod("web-1", "n1", resources=asked), to=problem, **options)
    said = told(done, "not-expressed")
    assert "further resources (ephemeral-storage): shop/web-1" in said
    assert "the largest number of pods of a node" in said


def test_priorities_and_other_schedulers_are_named(tmp_path: Path) -> None:
    one = pod("web-1", "n1", priorityClassName="high", priority=1000)
    other = pod("api-1", "n1", schedulerName="volcano")
    said = told(read(tmp_path, node("n1"), one, other), "not-expressed")
    assert "priorities: no pod is evicted for another: shop/web-1" in said
    assert "pods of other schedulers" in said and "shop/api-1" in said
