"""NodePools of Karpenter: what of them plans do not keep is named, and names that pods ask for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from little_clusters import (
    KIND_KEY,
    ZONE_KEY,
    Json,
    bought,
    deployment,
    expression,
    imported,
    needs,
    node,
    node_pool,
    taint,
    texts,
)

from placeopt.kubernetes.export.script import arrivals
from placeopt.kubernetes.importing import Imported

TYPES = (
    "location,size,cpu_cores,memory_gib,on_demand_usd_per_hour,spot_usd_per_hour\n"
    "us-east-1,m5.large,2,8,0.096,0.03\nus-east-1,m5.xlarge,4,16,0.192,0.06\n"
    "us-east-1,m5.4xlarge,16,64,0.768,0.2\n"
)
POOL = "karpenter.sh/nodepool"
KINDS = expression(KIND_KEY, "In", "m5.large", "m5.xlarge")


def pool(*terms: Json, **more: Any) -> Json:
    return node_pool(KINDS, *terms, name="cheap", **more)


def shop(folder: Path, pools: list[Json], workload: Json | None = None, **options: Any) -> Imported:
    """Import two pods on a large node, with what NodePools may make."""
    (folder / "types.csv").write_text(TYPES)
    (folder / "pools.json").write_text(json.dumps({"kind": "List", "items": pools}))
    objects = [node("n1", "m5.4xlarge", cpu="16", labels={POOL: pools[0]["metadata"]["name"]})]
    objects += deployment("web", ["n1", "n1"], **(workload or {}))
    files = {"prices": [folder / "types.csv"], "candidates": folder / "pools.json"}
    return imported(folder, objects, files=files, **options)


MIN_VALUES = expression("karpenter.k8s.aws/instance-family", "Exists") | {"minValues": 2}
WINDOW = {"nodes": "0", "schedule": "0 9 * * mon-fri", "duration": "8h"}


def within(**budget: Any) -> Json:
    return {"disruption": {"budgets": [budget]}}


#: What a NodePool says -> what is named.
UNREAD: dict[str, tuple[Json, list[str]]] = {
    "budget of none": (
        within(nodes="0"),
        ["cheap: budget nodes 0", "frees no node of these NodePools by itself"],
    ),
    "budget of no share": (
        within(nodes="0%"),
        ["budget nodes 0%", "frees no node"],
    ),
    "budget of some": (within(nodes="10%"), ["cheap: budget nodes 10%"]),
    "a window": (within(**WINDOW), ["budget nodes 0 at 0 9 * * mon-fri for 8h"]),
    "reasons": (
        within(nodes="0", reasons=["Drifted", "Underutilized"]),
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
        {"inside": {"startupTaints": taint("a")["taints"]}},
        ["startupTaints of NodePools"],
    ),
    "weight": ({"weight": 50}, ["a plan weighs prices alone: cheap: 50"]),
    "replicas": ({"replicas": 3}, ["NodePools with replicas"]),
    "nothing": ({}, []),
}


@pytest.mark.parametrize("case", UNREAD)
def test_what_a_plan_does_not_keep_is_named(case: str, tmp_path: Path) -> None:
    says, named = UNREAD[case]
    rest = {key: value for key, value in says.items() if key != "terms"}
    told = texts(shop(tmp_path, [pool(*says.get("terms", []), **rest)]), "not-expressed")
    assert all(part in told for part in named), told
    assert ("Karpenter's own" in told) == ("disruption" in says or "expireAfter" in str(says))
    assert ("frees no node" in told) == any("frees no node" in part for part in named)


#: How pods choose their NodePool -> whether it keeps its name.
ASKING: dict[str, tuple[Json, bool]] = {
    "selector": ({"nodeSelector": {POOL: "cheap"}}, True),
    "affinity": (needs(expression(POOL, "In", "cheap")), True),
    "affinity to one of two": (needs(expression(POOL, "In", "cheap", "other")), True),
    "affinity to another": (needs(expression(POOL, "NotIn", "other")), False),
    "affinity to any": (needs(expression(POOL, "Exists")), False),
    "nothing": ({}, False),
    "another label": ({"nodeSelector": {"kubernetes.io/os": "linux"}}, False),
}


@pytest.mark.parametrize("case", ASKING)
def test_a_name_that_pods_ask_for_is_kept(case: str, tmp_path: Path) -> None:
    """And the script waits for nodes that have it."""
    workload, kept = ASKING[case]
    done = shop(tmp_path, [pool()], workload)
    name = bought(done)[0]["name"]
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


#: What a NodePool says of zones -> those in which it makes nodes; the cluster has a, b and c.
ZONES: dict[str, tuple[list[Json], list[str]]] = {
    "nothing": ([], ["a", "b", "c"]),
    "some": ([expression(ZONE_KEY, "In", "b", "d")], ["b", "d"]),
    "not one": ([expression(ZONE_KEY, "NotIn", "b")], ["a", "c"]),
    "any": ([expression(ZONE_KEY, "Exists")], ["a", "b", "c"]),
}


@pytest.mark.parametrize("case", ZONES)
def test_where_a_node_pool_makes_nodes(case: str, tmp_path: Path) -> None:
    """A pod that is bound to a zone finds a machine there."""
    terms, wanted = ZONES[case]
    (tmp_path / "types.csv").write_text(TYPES)
    (tmp_path / "pools.json").write_text(json.dumps(pool(*terms)))
    objects = [node(f"n{z}", "m5.4xlarge", zone=z) for z in "abc"] + deployment("web", ["na"])
    objects += deployment("late", [None], nodeSelector={ZONE_KEY: "c"})
    files = {"prices": [tmp_path / "types.csv"], "candidates": tmp_path / "pools.json"}
    done = imported(tmp_path, objects, files=files)
    assert sorted({n["cluster"] for n in bought(done)}) == wanted
    told = texts(done, "assumption")
    said = "they make nodes in the zones of the cluster: cheap: a, b, c"
    assert (said in told) == (case != "some")
