"""NodePools of Karpenter: what of them plans do not keep is named, and names that pods ask for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from little_clusters import Json, deployment, imported, node, texts

from placeopt.kubernetes.export.script import arrivals
from placeopt.kubernetes.importing import Imported

TYPES = (
    "location,size,cpu_cores,memory_gib,on_demand_usd_per_hour,spot_usd_per_hour\n"
    "us-east-1,m5.large,2,8,0.096,0.03\nus-east-1,m5.xlarge,4,16,0.192,0.06\n"
    "us-east-1,m5.4xlarge,16,64,0.768,0.2\n"
)
POOL = "karpenter.sh/nodepool"
HARD = "requiredDuringSchedulingIgnoredDuringExecution"


def pool(name: str = "cheap", terms: list[Json] | None = None, **spec: Any) -> Json:
    """Return a NodePool for m5.large and m5.xlarge; `spec` may have parts of its template."""
    kinds = {"key": "node.kubernetes.io/instance-type", "operator": "In"}
    kinds["values"] = ["m5.large", "m5.xlarge"]  # type: ignore[assignment]
    inside = {"requirements": [kinds, *(terms or [])], **spec.pop("inside", {})}
    whole = {"template": {"spec": inside}, **spec}
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": name},
        "spec": whole,
    }


def shop(folder: Path, pools: list[Json], workload: Json | None = None, **options: Any) -> Imported:
    """Import two pods on a large node, with what NodePools may make."""
    (folder / "types.csv").write_text(TYPES)
    (folder / "pools.json").write_text(json.dumps({"kind": "List", "items": pools}))
    objects = [node("n1", "m5.4xlarge", cpu="16", labels={POOL: pools[0]["metadata"]["name"]})]
    objects += deployment("web", ["n1", "n1"], **(workload or {}))
    files = {"prices": [folder / "types.csv"], "candidates": folder / "pools.json"}
    return imported(folder, objects, files=files, **options)


MIN_VALUES = {
    "key": "karpenter.k8s.aws/instance-family",
    "operator": "Exists",
    "minValues": 2,
}
WINDOW = {"nodes": "0", "schedule": "0 9 * * mon-fri", "duration": "8h"}
#: What a NodePool says -> what is named.
UNREAD: dict[str, tuple[Json, list[str]]] = {
    "budget of none": (
        {"disruption": {"budgets": [{"nodes": "0"}]}},
        ["cheap: budget nodes 0", "frees no node of these NodePools by itself"],
    ),
    "budget of no share": (
        {"disruption": {"budgets": [{"nodes": "0%"}]}},
        ["budget nodes 0%", "frees no node"],
    ),
    "budget of some": (
        {"disruption": {"budgets": [{"nodes": "10%"}]}},
        ["cheap: budget nodes 10%"],
    ),
    "a window": (
        {"disruption": {"budgets": [WINDOW]}},
        ["budget nodes 0 at 0 9 * * mon-fri for 8h"],
    ),
    "reasons": (
        {"disruption": {"budgets": [{"nodes": "0", "reasons": ["Drifted", "Underutilized"]}]}},
        ["budget nodes 0 if Drifted or Underutilized"],
    ),
    "two budgets": (
        {"disruption": {"budgets": [{"nodes": "20%"}, WINDOW]}},
        ["budget nodes 20%, budget nodes 0 at 0 9"],
    ),
    "never": (
        {"disruption": {"consolidateAfter": "Never"}},
        ["consolidateAfter Never", "frees no node of these NodePools by itself"],
    ),
    "after a while": ({"disruption": {"consolidateAfter": "1h"}}, ["cheap: consolidateAfter 1h"]),
    "only empty ones": (
        {"disruption": {"consolidationPolicy": "WhenEmpty"}},
        ["cheap: consolidationPolicy WhenEmpty"],
    ),
    "expiry": ({"inside": {"expireAfter": "720h"}}, ["cheap: expireAfter 720h"]),
    "expiry of old": ({"disruption": {"expireAfter": "720h"}}, ["cheap: expireAfter 720h"]),
    "minValues": (
        {"terms": [MIN_VALUES]},
        [
            "minValues of NodePools: a plan names machine types one by one",
            "cheap: karpenter.k8s.aws/instance-family 2",
        ],
    ),
    "startup taints": (
        {"inside": {"startupTaints": [{"key": "a", "effect": "NoSchedule"}]}},
        ["startupTaints of NodePools"],
    ),
    "weight": ({"weight": 50}, ["a plan weighs prices alone: cheap: 50"]),
    "replicas": ({"replicas": 3}, ["NodePools with replicas"]),
    "nothing": ({}, []),
}


@pytest.mark.parametrize("case", UNREAD)
def test_what_a_plan_does_not_keep_is_named(case: str, tmp_path: Path) -> None:
    says, named = UNREAD[case]
    told = texts(shop(tmp_path, [pool(**says)]), "not-expressed")
    assert all(part in told for part in named), told
    assert ("Karpenter's own" in told) == ("disruption" in says or "expireAfter" in str(says))
    assert ("frees no node" in told) == any("frees no node" in part for part in named)


def term(operator: str, *values: str) -> Json:
    one = {"key": POOL, "operator": operator, **({"values": list(values)} if values else {})}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [one]}]}
    return {"affinity": {"nodeAffinity": {HARD: terms}}}


#: How pods choose their NodePool -> whether it keeps its name.
ASKING: dict[str, tuple[Json, bool]] = {
    "selector": ({"nodeSelector": {POOL: "cheap"}}, True),
    "affinity": (term("In", "cheap"), True),
    "affinity to one of two": (term("In", "cheap", "other"), True),
    "affinity to another": (term("NotIn", "other"), False),
    "affinity to any": (term("Exists"), False),
    "nothing": ({}, False),
    "another label": ({"nodeSelector": {"kubernetes.io/os": "linux"}}, False),
}


@pytest.mark.parametrize("case", ASKING)
def test_a_name_that_pods_ask_for_is_kept(case: str, tmp_path: Path) -> None:
    """And the script waits for nodes that have it."""
    workload, kept = ASKING[case]
    done = shop(tmp_path, [pool()], workload)
    name = next(n["name"] for n in done.document["nodes"] if n.get("candidate"))
    node = next(n for n in done.problem.nodes if n.name == name)  # type: ignore[attr-defined]
    (wanted,) = arrivals([node], done.origin)["nodes"]
    assert (wanted["labels"].get(POOL) == "cheap") == kept


def test_case_from_outside(kubernetes_data: Path, tmp_path: Path) -> None:
    folder = kubernetes_data / "kubernetes_cases"
    objects = json.loads((folder / "nodepool_label.json").read_text())["items"]
    files = {"prices": [folder / "types.csv"], "candidates": folder / "np_spot.json"}
    done = imported(tmp_path, objects, files=files)
    assert done.origin.nodes["buy-spot-m5.xlarge-us-east-1a-spot-1"].pool_asked
    told = texts(done, "not-expressed")
    assert "consolidateAfter Never, budget nodes 0" in told


ZONE = "topology.kubernetes.io/zone"
#: What a NodePool says of zones -> those in which it makes nodes; the cluster has a, b and c.
ZONES: dict[str, tuple[list[Json], list[str]]] = {
    "nothing": ([], ["a", "b", "c"]),
    "some": ([{"key": ZONE, "operator": "In", "values": ["b", "d"]}], ["b", "d"]),
    "not one": ([{"key": ZONE, "operator": "NotIn", "values": ["b"]}], ["a", "c"]),
    "any": ([{"key": ZONE, "operator": "Exists"}], ["a", "b", "c"]),
}


@pytest.mark.parametrize("case", ZONES)
def test_where_a_node_pool_makes_nodes(case: str, tmp_path: Path) -> None:
    """A pod that is bound to a zone finds a machine there."""
    terms, wanted = ZONES[case]
    (tmp_path / "types.csv").write_text(TYPES)
    (tmp_path / "pools.json").write_text(json.dumps(pool(terms=terms)))
    objects = [node(f"n{z}", "m5.4xlarge", zone=z) for z in "abc"] + deployment("web", ["na"])
    objects += deployment("late", [None], nodeSelector={ZONE: "c"})
    files = {"prices": [tmp_path / "types.csv"], "candidates": tmp_path / "pools.json"}
    done = imported(tmp_path, objects, files=files)
    bought = [n for n in done.document["nodes"] if n.get("candidate")]
    assert sorted({n["cluster"] for n in bought}) == wanted
    told = texts(done, "assumption")
    assert ("they make nodes in the zones of the cluster: cheap: a, b, c" in told) == (
        case != "some"
    )
