"""Where pods may be, and what nodes hold: for nodes that are there and for nodes to buy alike.

Most clusters are from public reports: aws/karpenter#6440 (old labels), karpenter#715 (DaemonSets by
node class), kubernetes#92170 (NoExecute for some seconds), containers-roadmap#2654 (Fargate).
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from little_clusters import (
    KIND_KEY,
    REGION,
    ZONE,
    ZONE_KEY,
    Json,
    apart,
    container,
    deployment,
    expression,
    imported,
    may_go,
    needs,
    node,
    node_pool,
    nodes_of,
    services,
    spread,
    taint,
    texts,
)
from little_clusters import bought as new_of
from planned import steps_of

from placeopt.core.errors import DocumentError, UsageError
from placeopt.kubernetes.export.script import StepsDocument
from placeopt.kubernetes.importing import Imported
from placeopt.kubernetes.machines import pods_on_eks
from placeopt.kubernetes.verify import verify_files

TABLE = "machine_type,cpu,memory,zone,region,on_demand_usd_per_hour,labels,pods,count\n"
PRICES = "location,size,cpu_cores,memory_gib,on_demand_usd_per_hour\n"
ANY = {"missing_prices": "default=0.1"}


def bought(
    folder: Path, objects: list[Json], *rows: str, rules: Json | None = None, **options: Any
) -> Imported:
    """Import a cluster with machines to buy, each a line of a table."""
    table = folder / "buy.csv"
    table.write_text(TABLE + "\n".join(rows))
    return imported(folder, objects, rules=rules, files={"candidates": table}, **{**ANY, **options})


def pooled(
    folder: Path, objects: list[Json], sizes: str, terms: list[Json], *more: Json, **spec: Any
) -> Imported:
    """Import a cluster with a NodePool, of machines that `sizes` has: TYPE,CORES,GIB,USD."""
    rows = (f"{REGION},{line}" for line in sizes.split())
    (folder / "prices.csv").write_text(PRICES + "\n".join(rows))
    items = [node_pool(*terms, inside=spec), *more]
    (folder / "pool.json").write_text(json.dumps({"kind": "List", "items": items}))
    files = {"candidates": folder / "pool.json", "prices": [folder / "prices.csv"]}
    return imported(folder, objects, files=files, **ANY)


def refusals(folder: Path, *moves: tuple[str, str], buy: Sequence[Json] = ()) -> list[str]:
    """Return why kube-scheduler refuses moves (pod, node) of a Deployment `web` of a folder."""
    steps = steps_of(*((("default", pod), None, to) for pod, to in moves), buy=buy)
    found = verify_files(StepsDocument(**steps), [folder / "cluster.json"])
    return [reason for refusal in found for reason in refusal.reasons]


def daemon_set(name: str, at: list[str], cpu: str = "200m", **spec: Any) -> list[Json]:
    """Return a DaemonSet and its pods, each bound to its node by a field as the controller does."""
    own = [container(cpu=cpu)]
    objects = deployment(name, at, own, kind="DaemonSet", space="kube-system", **spec)
    for pod in objects[1:]:
        field = expression("metadata.name", "In", pod["spec"]["nodeName"])
        pod["spec"] = {**pod["spec"], **needs(field, fields=True)}
    return objects


def static(name: str, at: str, cpu: str = "100m") -> Json:
    """Return a static pod."""
    return {
        "kind": "Pod",
        "metadata": {
            "name": f"{name}-{at}",
            "namespace": "kube-system",
            "annotations": {"kubernetes.io/config.mirror": "x"},
            "ownerReferences": [{"kind": "Node", "name": at, "controller": True}],
        },
        "spec": {"nodeName": at, "containers": [container(cpu=cpu)]},
        "status": {"phase": "Running"},
    }


# -- pods per machine ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "pods"),
    [
        ("t3.nano", 4),
        ("t3.small", 11),
        ("t3.medium", 17),
        ("c5.large", 29),
        ("m5.xlarge", 58),
        ("m5.4xlarge", 234),
        ("m5.24xlarge", 737),
        ("p3dn.24xlarge", 737),
        ("c6in.32xlarge", 394),  # of two network cards only the first counts
        ("rack-7", None),
    ],
)
def test_pods_of_machine_types_of_aws(kind: str, pods: int | None) -> None:
    """As `eni-max-pods.txt` of awslabs/amazon-eks-ami has them."""
    assert pods_on_eks(kind) == pods


def small(count: int = 81, pods: int = 29) -> list[Json]:
    """Return many small pods on three nodes of a type that takes 29."""
    made = [node(f"n{k}", "m5.large", cpu="1930m", memory="7134Mi") for k in range(3)]
    for one in made:
        one["status"]["allocatable"] = {**one["status"]["allocatable"], "pods": str(pods)}
    tiny = [container(cpu="10m", memory="16Mi")]
    return [*made, *deployment("web", [f"n{k % 3}" for k in range(count)], tiny)]


@pytest.mark.parametrize(
    ("row", "pods", "said"),
    [
        ("t3.medium,2,4Gi,,,0.04,,,1", 17, "network interfaces"),
        ("t3.small,2,2Gi,,,0.02,,,1", 11, "network interfaces"),
        ("m5.large,2,8Gi,,,0.1,,,1", 29, "nodes of their type"),
        ("m5.4xlarge,16,64Gi,,,0.8,,,1", 110, "network interfaces"),
        ("t3.medium,2,4Gi,,,0.04,,30,1", 30, ""),
        ("rack-7,2,4Gi,,,0.04,,,1", 29, "kubelet's default"),
    ],
)
def test_pods_of_a_machine_to_buy(tmp_path: Path, row: str, pods: int, said: str) -> None:
    """The column counts, then nodes of the type, then interfaces of EKS, then a careful guess."""
    done = bought(tmp_path, small(), row)
    (new,) = new_of(done)
    assert new["resources"]["pods"] == pods
    assert ("pods per machine" in texts(done, "assumption")) == bool(said)
    assert said in texts(done, "assumption")


def test_another_network_than_that_of_eks(tmp_path: Path) -> None:
    """A node with more pods than its interfaces have addresses: prefixes, or another plug-in."""
    done = bought(tmp_path, small(120, pods=110), "t3.medium,2,4Gi,,,0.04,,,1")
    (new,) = new_of(done)
    assert new["resources"]["pods"] == 110


@pytest.mark.parametrize(
    ("spec", "pods"),
    [
        ({"kubelet": {"maxPods": 8}}, 8),
        ({"kubelet": {"podsPerCore": 5}}, 10),
        ({"kubelet": {"podsPerCore": 500}}, 17),
        ({"kubelet": {"podsPerCore": 4, "maxPods": 7}}, 7),
        ({}, 17),
        (None, 17),
    ],
)
@pytest.mark.parametrize("where", ["pool", "cluster"])
def test_max_pods_of_a_node_class(tmp_path: Path, spec: Json | None, pods: int, where: str) -> None:
    """maxPods stands in the EC2NodeClass, in the file of the NodePool or in the dump."""
    made = [{"kind": "EC2NodeClass", "metadata": {"name": "c"}, "spec": spec}]
    known = [] if spec is None else made
    objects = small() + (known if where == "cluster" else [])
    reference = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "c"}
    more = known if where == "pool" else []
    done = pooled(tmp_path, objects, "t3.medium,2,4,0.04", [], *more, nodeClassRef=reference)
    assert {n["resources"]["pods"] for n in new_of(done)} == {pods}
    assert ("maxPods" in texts(done, "not-expressed")) == (spec is None)


def test_a_node_that_does_not_say_takes_110(tmp_path: Path) -> None:
    """One silent node lets nobody forget the pods of the others."""
    objects = small()
    del objects[0]["status"]["allocatable"]["pods"]
    done = imported(tmp_path, objects, **ANY)
    assert [n["resources"]["pods"] for n in done.document["nodes"]] == [110, 29, 29]


def test_verify_counts_the_pods_of_a_machine_to_buy(tmp_path: Path) -> None:
    """Two pods more than a machine takes are refused."""
    imported(tmp_path, small(), **ANY)
    buy = {
        "name": "new",
        "machine_type": "t3.medium",
        "cluster": ZONE,
        "labels": {},
        "taints": [],
        "cpu_millicores": 2000,
        "memory_mib": 4096,
        "resources": {"pods": 17},
    }
    steps = [(f"web-7d9f-{k}", "new") for k in range(19)]
    assert refusals(tmp_path, *steps, buy=[buy]) == ["Too many pods"] * 2


# -- labels of machines to buy ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("topology.kubernetes.io/zone", "z2"),
        ("failure-domain.beta.kubernetes.io/zone", "z2"),
        ("failure-domain.beta.kubernetes.io/region", "r2"),
        ("beta.kubernetes.io/instance-type", "m5.2xlarge"),
        ("beta.kubernetes.io/arch", "amd64"),
        ("beta.kubernetes.io/os", "linux"),
    ],
)
@pytest.mark.parametrize("by", ["selector", "affinity"])
def test_old_labels_of_machines_to_buy(tmp_path: Path, key: str, value: str, by: str) -> None:
    """A pod that waits asks by a label of old: a machine to buy has it."""
    asked = {"nodeSelector": {key: value}}
    spec = asked if by == "selector" else needs(expression(key, "In", value))
    first = node("n1", labels={"beta.kubernetes.io/os": "plan9"})
    objects = [first, *deployment("web", [None], **spec)]
    done = bought(tmp_path, objects, "m5.2xlarge,8,32Gi,z2,r2,0.4,,,1")
    assert "buy-m5.2xlarge-z2-1" in may_go(done, "web-7d9f-0")


@pytest.mark.parametrize(
    "key",
    [
        "topology.ebs.csi.aws.com/zone",
        "topology.gke.io/zone",
        "topology.disk.csi.azure.com/zone",
        "failure-domain.beta.kubernetes.io/zone",
    ],
)
@pytest.mark.parametrize("known", ["node", "volume"])
def test_rules_by_other_labels_for_a_zone(tmp_path: Path, key: str, known: str) -> None:
    """Anti-affinity by another key for the zone keeps a pod off a machine to buy beside its kin."""
    labels = {key: "z1"} if known == "node" else {}
    objects = [
        node("n1", zone="z1", labels=labels),
        *deployment("q", ["n1", None], **apart("q", key)),
    ]
    required = {"nodeSelectorTerms": [{"matchExpressions": [expression(key, "In", "z1")]}]}
    volume = {"metadata": {"name": "v"}, "spec": {"nodeAffinity": {"required": required}}}
    objects.append({"kind": "PersistentVolume", **volume})
    rows = ("m5.large,2,8Gi,z1,,0.1,,,1", "m5.large,2,8Gi,z2,,0.11,,,1")
    done = bought(tmp_path, objects, *rows)
    zones = {n["name"]: n["domains"].get(key) for n in done.document["nodes"] if "domains" in n}
    assert zones["buy-m5.large-z1-1"] == "z1"
    assert zones["buy-m5.large-z2-1"] == "z2"


def test_a_driver_that_is_not_there_labels_nothing(tmp_path: Path) -> None:
    """Nobody gives the label of a driver that the cluster does not have."""
    rule = spread("q", "topology.gke.io/zone")
    objects = [node("n1"), *deployment("q", ["n1"], **rule)]
    done = bought(tmp_path, objects, "m5.large,2,8Gi,z1,,0.1,,,1")
    assert not any("domains" in n for n in done.document["nodes"])


@pytest.mark.parametrize(
    "zone", ["failure-domain.beta.kubernetes.io/zone", "topology.ebs.csi.aws.com/zone"]
)
def test_requirements_of_a_pool_by_old_labels(tmp_path: Path, zone: str) -> None:
    """Karpenter takes the keys of old, and that of the driver, for those of today."""
    terms = [expression(zone, "In", "z9")]
    terms += [expression("beta.kubernetes.io/instance-type", "NotIn", "t3.medium")]
    done = pooled(tmp_path, small(9), "t3.medium,2,4,0.04 m5.large,2,8,0.1", terms)
    assert {(n["machine_type"], n["cluster"]) for n in new_of(done)} == {("m5.large", "z9")}


def test_the_script_asks_no_label_twice(tmp_path: Path) -> None:
    """A new node need not have the labels of old for the script to know it."""
    objects = [node("n1", labels={"topology.ebs.csi.aws.com/zone": ZONE}), *deployment("q", ["n1"])]
    done = bought(tmp_path, objects, f"m5.large,2,8Gi,{ZONE},,0.1,,,1")
    labels = done.origin.nodes[f"buy-m5.large-{ZONE}-1"].labels
    assert not [key for key in labels if "beta" in key or "csi" in key]
    assert labels[ZONE_KEY] == ZONE


@pytest.mark.parametrize(
    ("kind", "category", "generation"),
    [
        ("inf1.xlarge", "inf", "1"),
        ("trn1.2xlarge", "trn", "1"),
        ("u-6tb1.56xlarge", "u", "1"),
        ("im4gn.large", "im", "4"),
        ("hpc6a.48xlarge", "hpc", "6"),
        ("m5.large", "m", "5"),
        ("vt1.3xlarge", "vt", "1"),
    ],
)
def test_category_and_generation(tmp_path: Path, kind: str, category: str, generation: str) -> None:
    """A category is all letters before the generation, not the first one."""
    terms = [expression("karpenter.k8s.aws/instance-category", "In", category)]
    terms += [expression("karpenter.k8s.aws/instance-generation", "In", generation)]
    done = pooled(tmp_path, small(9), f"{kind},4,16,0.2 zz7.large,4,16,0.2", terms)
    assert {n["machine_type"] for n in new_of(done)} == {kind}


# -- DaemonSets and static pods --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "labels", "charged"),
    [
        ({}, "", True),
        ({"nodeSelector": {"disk": "fast"}}, "", False),
        ({"nodeSelector": {"disk": "fast"}}, "disk=fast", True),
        (needs(expression(KIND_KEY, "In", "m5.xlarge")), "", False),
        (needs(expression(KIND_KEY, "NotIn", "m5.xlarge")), "", True),
        ({"nodeName": "n1"}, "", False),
    ],
)
def test_daemon_sets_by_their_template(
    tmp_path: Path, spec: Json, labels: str, charged: bool
) -> None:
    """A running pod says only on which node it is: where others come, its template says."""
    there = [node("n1", labels={"disk": "fast"}), node("n2", labels={"disk": "fast"})]
    objects = [*there, *daemon_set("agent", ["n1", "n2"], **spec), *deployment("web", ["n1"])]
    done = bought(tmp_path, objects, f"m5.large,2,8Gi,,,0.1,{labels},,1")
    assert nodes_of(done)["buy-m5.large-1"]["cpu_millicores"] == 2000 - 200 * charged


@pytest.mark.parametrize("running", [True, False])
@pytest.mark.parametrize("namespaces", [(), ("default",)])
def test_daemon_sets_take_room_wherever_they_come(
    tmp_path: Path, running: bool, namespaces: tuple[str, ...]
) -> None:
    """On a node that joined, on one to buy; whether a pod runs by now, and in which namespace."""
    objects = [node("n1"), node("n2"), *deployment("web", ["n1"])]
    objects += daemon_set("agent", ["n1"] if running else [])
    row = "m5.large,2,8Gi,,,0.1,,,1"
    done = bought(tmp_path, objects, row, rules={"namespaces": namespaces})
    room = {name: n["cpu_millicores"] for name, n in nodes_of(done).items()}
    assert room == {"n1": 3800, "n2": 3800, "buy-m5.large-1": 1800}


@pytest.mark.parametrize(
    ("key", "effect", "charged"),
    [
        ("node.kubernetes.io/disk-pressure", "NoSchedule", True),
        ("node.kubernetes.io/network-unavailable", "NoSchedule", True),
        ("dedicated", "NoSchedule", False),
        ("dedicated", "NoExecute", False),
        ("dedicated", "PreferNoSchedule", True),
    ],
)
def test_taints_and_daemon_sets(tmp_path: Path, key: str, effect: str, charged: bool) -> None:
    """Pods of DaemonSets tolerate what the controller adds, though no template says so."""
    objects = [node("n1"), node("n2", **taint(key, effect, value="gpu"))]
    objects += [*daemon_set("agent", ["n1"]), *deployment("web", ["n1"])]
    done = imported(tmp_path, objects, **ANY)
    assert nodes_of(done)["n2"]["cpu_millicores"] == 4000 - 200 * charged


def test_a_daemon_set_that_the_files_do_not_have(tmp_path: Path) -> None:
    """It is judged by a pod, which is said."""
    objects = [node("n1"), *daemon_set("agent", ["n1"])[1:], *deployment("web", ["n1"])]
    done = bought(tmp_path, objects, "m5.large,2,8Gi,,,0.1,,,1")
    assert nodes_of(done)["buy-m5.large-1"]["cpu_millicores"] == 1800
    assert "DaemonSets that the files do not have" in texts(done, "assumption")


def test_verify_keeps_room_for_a_daemon_set(tmp_path: Path) -> None:
    """On a node that just joined its pod is to come."""
    objects = [node("n1"), node("n2", cpu="1"), *daemon_set("agent", ["n1"], cpu="600m")]
    imported(tmp_path, [*objects, *deployment("web", ["n1"])], **ANY)
    assert refusals(tmp_path, ("web-7d9f-0", "n2")) == ["Insufficient cpu"]


@pytest.mark.parametrize(
    ("where", "charged"),
    [(["n1", "n2", "n3"], 100), (["n1", "n2"], 100), (["n1"], 0), ([], 0), (["cp"], 0)],
)
def test_static_pods_of_machines_to_buy(tmp_path: Path, where: list[str], charged: int) -> None:
    """Those that most workers have come with a new one; those of the control plane do not."""
    there = [node(f"n{k}") for k in (1, 2, 3)]
    there.append(node("cp", labels={"node-role.kubernetes.io/control-plane": ""}))
    objects = [*there, *(static("kube-proxy", at) for at in where), *deployment("web", ["n1"])]
    done = bought(tmp_path, objects, "m5.large,2,8Gi,,,0.1,,,1")
    assert nodes_of(done)["buy-m5.large-1"]["cpu_millicores"] == 2000 - charged


def test_static_pods_by_machine_type(tmp_path: Path) -> None:
    """What runs on nodes of one type only comes with that type only."""
    objects = [node("n1", "m5.large"), node("n2", "c5.large"), static("shaper", "n1")]
    rows = ("m5.large,2,8Gi,,,0.1,,,1", "c5.large,2,4Gi,,,0.1,,,1")
    done = bought(tmp_path, [*objects, *deployment("web", ["n1"])], *rows)
    room = {name: n["cpu_millicores"] for name, n in nodes_of(done).items()}
    assert (room["buy-m5.large-1"], room["buy-c5.large-1"]) == (1900, 2000)


@pytest.mark.parametrize(
    ("statics", "agents", "left"),
    [
        (["n1", "n2", "n3"], [], 1.9),
        (["n1"], [], 2.0),
        ([], ["n1", "n2", "n3"], 1.8),
        (["n1", "n2"], ["n1"], 1.7),
        ([], [], 2.0),
    ],
)
def test_machines_of_a_temporal_instance(
    tmp_path: Path, statics: list[str], agents: list[str], left: float
) -> None:
    """A machine runs one copy of what comes with each, however many nodes there are."""
    there = [node(f"n{k}") for k in (1, 2, 3)]
    objects = [*there, *(static("kube-proxy", at) for at in statics), *deployment("web", ["n1"])]
    objects += daemon_set("agent", agents) if agents else []
    (tmp_path / "p.csv").write_text(PRICES + f"{REGION},m5.large,2,8,0.1\n")
    done = imported(tmp_path, objects, "temporal", files={"prices": [tmp_path / "p.csv"]})
    assert done.document["offers"][0]["cpu_cores"] == left


# -- nodes that are no homes -----------------------------------------------------------------------


EVER = {"key": "m", "operator": "Exists"}
SOME = {"operator": "Exists", "effect": "NoExecute"}


@pytest.mark.parametrize(
    ("tolerations", "home"),
    [
        ([EVER], True),
        ([EVER | SOME | {"tolerationSeconds": 300}], False),
        ([EVER | SOME | {"tolerationSeconds": 0}], False),
        ([SOME | {"tolerationSeconds": 10**8}], False),
        ([EVER | SOME | {"tolerationSeconds": 9}, {"operator": "Exists"}], False),
        ([{"operator": "Exists"}, EVER | SOME | {"tolerationSeconds": 9}], True),
        ([{"key": "m", "value": "yes", "effect": "NoExecute"}], True),
        ([{"key": "m", "value": "no", "effect": "NoExecute"}], False),
    ],
)
def test_what_is_tolerated_for_some_seconds_is_no_home(
    tmp_path: Path, tolerations: list[Json], home: bool
) -> None:
    """The first toleration of a NoExecute taint counts, as the taint manager has it."""
    objects = [node("n1"), node("n2", **taint("m", "NoExecute", value="yes"))]
    objects += deployment("web", ["n1"], tolerations=tolerations)
    done = imported(tmp_path, objects, **ANY)
    assert ("n2" in may_go(done, "web-7d9f-0")) == home
    assert bool(refusals(tmp_path, ("web-7d9f-0", "n2"))) != home


VIRTUAL: list[Json] = [
    {"labels": {"eks.amazonaws.com/compute-type": "fargate"}},
    taint("eks.amazonaws.com/compute-type", value="fargate"),
    {"labels": {"type": "virtual-kubelet"}},
    taint("virtual-kubelet.io/provider", value="azure"),
    {"labels": {"virtual-kubelet.io/provider": "mock"}},
    {"labels": {"liqo.io/type": "virtual-node"}},
    {"providerID": "virtual-kubelet://cci"},
]


@pytest.mark.parametrize("what", VIRTUAL, ids=lambda what: next(iter(what)))
def test_virtual_nodes_take_no_part(tmp_path: Path, what: Json) -> None:
    """Their pods stay, nothing goes there, and they need no price."""
    spec = {key: value for key, value in what.items() if key != "labels"}
    made = node("v1", labels=what.get("labels"), **spec)
    objects = [node("n1"), node("n2"), made]
    anywhere = [{"operator": "Exists"}]
    objects += deployment("web", ["n1", "v1"], tolerations=anywhere)
    done = imported(tmp_path, objects)
    assert set(nodes_of(done)) == {"n1", "n2"}
    assert set(services(done)) == {"web-7d9f-0"}
    assert "v1" in texts(done, "left-out")
    assert any("virtual" in why for why in refusals(tmp_path, ("web-7d9f-0", "v1")))
    with pytest.raises(UsageError, match="virtual"):
        imported(tmp_path, objects, drain=("v1",))


def test_only_virtual_nodes(tmp_path: Path) -> None:
    """There is nothing to place on; that is one clear message."""
    objects = [node("v1", labels={"type": "virtual-kubelet"}), *deployment("web", ["v1"])]
    with pytest.raises(DocumentError, match="virtual"):
        imported(tmp_path, objects)


@pytest.mark.parametrize("by", ["scheduler", "profile"])
def test_pods_of_fargate_that_wait(tmp_path: Path, by: str) -> None:
    """Their machine is made for them: no plan may put them on a node."""
    waiting = deployment("api", [None])
    if by == "scheduler":
        waiting[-1]["spec"]["schedulerName"] = "fargate-scheduler"
    else:
        waiting[-1]["metadata"]["labels"]["eks.amazonaws.com/fargate-profile"] = "apps"
    done = imported(tmp_path, [node("n1"), *deployment("web", ["n1"]), *waiting], **ANY)
    assert set(services(done)) == {"web-7d9f-0"}
    assert "Fargate" in texts(done, "left-out")


@pytest.mark.parametrize("known", ["both", "workload", "set"])
def test_a_template_that_names_its_node(tmp_path: Path, known: str) -> None:
    """The scheduler is not asked: every copy starts on the node of the template."""
    objects = deployment("web", ["n1"], nodeName="n1")
    kinds = {"both": (), "workload": ("ReplicaSet",), "set": ("Deployment",)}[known]
    objects = [o for o in objects if o["kind"] not in kinds]
    done = imported(tmp_path, [node("n1"), node("n2"), *objects, *deployment("x", ["n2"])], **ANY)
    assert "nodeName" in texts(done, "pinned")
    why = refusals(tmp_path, ("web-7d9f-0", "n2"))
    assert any("nodeName n1" in text for text in why)


@pytest.mark.parametrize("kind", ["Deployment", "ReplicaSet"])
def test_a_workload_without_a_pod_that_names_its_node(tmp_path: Path, kind: str) -> None:
    """It is placed where its template says, whatever taints are there."""
    objects = [node("n1"), node("n2", **taint("k")), *deployment("x", ["n1"])]
    named = deployment("web", [None], nodeName="n2", kind=kind)[:1]
    done = imported(tmp_path, [*objects, *named], **ANY)
    assert may_go(done, "web") == {"n2"}


def test_no_case_of_the_audit_is_wrong(kubernetes_data: Path) -> None:
    """The scripts of the audit end with 0."""
    names = ("pods_per_machine", "category_inf", "static_pods_temporal")
    for name in names:
        script = kubernetes_data / "faults" / f"{name}.py"
        done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


def test_a_rule_by_an_old_zone_is_kept(kubernetes_data: Path, tmp_path: Path) -> None:
    """oldzonebuy: no plan ends with both q in one zone; the cheapest one moves web, for 219."""
    folder = kubernetes_data / "kubernetes_cases_2"
    items = json.loads((folder / "oldzonebuy.json").read_text())["items"]
    done = imported(tmp_path, items, files={"candidates": folder / "oldzonebuy.csv"}, **ANY)
    zones = {n["name"]: n["domains"] for n in done.document["nodes"]}
    assert zones["buy-m5.large-eu-1a-1"] == {"failure-domain.beta.kubernetes.io/zone": "eu-1a"}
    assert zones["buy-m5.large-eu-1b-1"] == {"failure-domain.beta.kubernetes.io/zone": "eu-1b"}
