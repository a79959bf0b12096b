"""NodePools of Karpenter: their limits, names and zones, and what of them plans do not keep.

And the share of one kind of spot node.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from little_clusters import (
    KIND_KEY,
    ZONE_KEY,
    Json,
    container,
    deployment,
    ended,
    expression,
    homes,
    imported,
    needs,
    node,
    node_pool,
    taint,
    texts,
)
from little_clusters import bought as new_of

from placeopt import api
from placeopt.core.errors import InfeasibleInstanceError, UsageError
from placeopt.kubernetes.export.script import arrivals, document
from placeopt.kubernetes.importing import Imported

POOL, LEASE = "karpenter.sh/nodepool", "karpenter.sh/capacity-type"
#: Machine type -> cores, GiB, USD/h on demand, USD/h spot.
MACHINES = {
    "m5.large": (2, 8, 0.096, 0.03),
    "m5.xlarge": (4, 16, 0.192, 0.06),
    "c5.xlarge": (4, 8, 0.17, 0.05),
    "r5.xlarge": (4, 32, 0.252, 0.08),
    "m5.2xlarge": (8, 32, 0.384, 0.12),
}


def tables(folder: Path, pools: list[Json] | None = None) -> Json:
    """Write prices and what may be bought: NodePools, or all machines; return both files."""
    columns = "location,size,cpu_cores,memory_gib,on_demand_usd_per_hour,spot_usd_per_hour"
    rows = [f"us-east-1,{k},{','.join(map(str, v))}" for k, v in MACHINES.items()]
    (folder / "types.csv").write_text("\n".join([columns, *rows]))
    buy = folder / ("buy.csv" if pools is None else "pools.json")
    columns = "machine_type,cpu,memory,on_demand_usd_per_hour,spot_usd_per_hour"
    rows = [f"{k},{cpu},{gib}Gi,{a},{b}" for k, (cpu, gib, a, b) in MACHINES.items()]
    items = {"kind": "List", "items": pools}
    buy.write_text("\n".join([columns, *rows]) if pools is None else json.dumps(items))
    return {"prices": [folder / "types.csv"], "candidates": buy}


def pool(name: str, limits: Json, kinds: list[str]) -> Json:
    """Return a NodePool for machine types, on demand and spot, in one zone."""
    terms = expression(KIND_KEY, "In", *kinds), expression(ZONE_KEY, "In", "us-east-1a")
    return node_pool(*terms, name=name, limits=limits)


def machine(name: str, kind: str, labels: Json | None = None) -> Json:
    """Return a node of a machine type that gives a tenth less than it has."""
    cores, gib, *_ = MACHINES[kind]
    found = node(name, kind, cpu=f"{cores * 900}m", memory=f"{gib * 900}Mi", labels=labels)
    room = {"cpu": str(cores), "memory": f"{gib}Gi", "pods": "58"}
    found["status"] = {**found["status"], "capacity": room}
    return found


def crowd(rng: np.random.Generator, labels: list[Json], waiting: int = 0) -> list[Json]:
    """Return nodes with these labels and about a pod for half of each; and pods that wait."""
    kinds = [str(rng.choice(list(MACHINES))) for _ in labels]
    objects = [
        machine(f"n{k}", kind, more)
        for k, (kind, more) in enumerate(zip(kinds, labels, strict=True))
    ]
    places = [f"n{k}" for k, kind in enumerate(kinds) for _ in range(MACHINES[kind][0] // 2)]
    for k, place in enumerate([*places, *[None] * waiting]):
        asked = container(cpu=f"{int(rng.integers(1, 8))}00m", memory=f"{rng.integers(1, 6)}00Mi")
        objects += deployment(f"d{k}", [place], [asked])
    return objects


def used_by(done: Imported) -> list[set[str]]:
    """Return for each point of a front the nodes on which something starts or stays."""
    found = []
    for point in api.solve(done.problem, "repack", seed=1, restarts=1).points:
        assert done.problem.evaluate(point.plan).feasible
        steps = document(done.problem, point.plan, done.origin)
        ends = homes(done)
        visited = {step["to"] for step in steps["steps"]}
        ends |= {step["microservice"]: step["to"] for step in steps["steps"]}
        found.append({name for name in (set(ends.values()) | visited) if name is not None})
    return found


# -- NodePools -------------------------------------------------------------------------------------


def drawn_pools(rng: np.random.Generator) -> list[Json]:
    """Return two NodePools of several machine types each, with limits of several kinds."""
    limits = [
        {"cpu": str(rng.integers(0, 20))},
        {"memory": f"{rng.integers(0, 80)}Gi"},
        {"cpu": f"{rng.integers(4, 20)}500m", "memory": "40Gi"},
        {"nodes": str(rng.integers(0, 4))},
        {"cpu": "12", "nodes": 2},
        {},
    ]
    kinds = list(MACHINES)
    return [
        pool(name, limits[int(rng.integers(6))], rng.choice(kinds, 3, replace=False).tolist())
        for name in ("cheap", "large")
    ]


def amounts(kind: str) -> dict[str, float]:
    cores, gib, *_ = MACHINES[kind]
    return {"cpu": cores, "memory": gib, "nodes": 1}


def number(limit: str | int) -> float:
    text = str(limit).removesuffix("Gi")
    return float(text[:-1]) / 1000 if text.endswith("m") else float(text)


@pytest.mark.parametrize("seed", range(25))
def test_limits_hold_over_all_machine_types_and_nodes_of_now(seed: int, tmp_path: Path) -> None:
    """Nodes of now count while they are there, empty or not: others are bought before they go."""
    rng = np.random.default_rng(seed)
    pools = drawn_pools(rng)
    names = ["cheap", "large", "other", ""]
    labels = [{POOL: str(rng.choice(names))} for _ in range(int(rng.integers(2, 6)))]
    objects = crowd(rng, [{k: v for k, v in one.items() if v} for one in labels])
    done = imported(tmp_path, objects, files=tables(tmp_path, pools))
    nodes = {o["metadata"]["name"]: o["metadata"]["labels"] for o in objects if o["kind"] == "Node"}
    bought = {n["name"]: n["machine_type"] for n in new_of(done)}
    plans = used_by(done)
    for one in pools:
        mine = one["metadata"]["name"]
        there = [labels[KIND_KEY] for labels in nodes.values() if labels.get(POOL) == mine]
        for used in plans:
            new = [bought[n] for n in used & bought.keys() if n.startswith(f"buy-{mine}-")]
            for key, limit in one["spec"]["limits"].items():
                total = sum(amounts(kind)[key] for kind in there + new)
                assert total <= number(limit) or not new, (mine, key)


def test_case_from_outside(kubernetes_data: Path, tmp_path: Path) -> None:
    """A limit of 4 cores: 4 are bought, of one machine type or two, and not 8."""
    folder = kubernetes_data / "kubernetes_cases"
    objects = json.loads((folder / "one_huge.json").read_text())["items"]
    files = {"prices": [folder / "types.csv"], "candidates": folder / "np_limits.json"}
    done = imported(tmp_path, objects, files=files)
    assert "cheap: 4,000m of cpu may be bought" in texts(done, "kept")
    told = texts(done, "not-expressed")
    assert "budget nodes 0" in told and "consolidateAfter Never" in told
    cores = {"m5.large": 2, "m5.xlarge": 4}
    bought = {n["name"]: n["machine_type"] for n in new_of(done)}
    for used in used_by(done):
        assert sum(cores[bought[name]] for name in used & bought.keys()) <= 4


def test_what_is_used_of_a_pool_is_told(tmp_path: Path) -> None:
    """Also a node that no plan touches; one that gives less counts with all that it has."""
    objects = [machine("n0", "m5.xlarge", {POOL: "cheap"}), machine("n1", "m5.xlarge")]
    cordoned = machine("n2", "m5.large", {POOL: "cheap"})
    cordoned["spec"]["unschedulable"] = True
    objects += [cordoned, *deployment("web", ["n0", "n1"])]
    limits = {"cpu": "8", "memory": "25Gi", "nvidia.com/gpu": "1"}
    files = tables(tmp_path, [pool("cheap", limits, ["m5.large"])])
    done = imported(tmp_path, objects, files=files)
    told = texts(done, "kept")
    assert "cheap: 2,000m of cpu may be bought" in told
    assert "cheap: 1,024 MiB of memory may be bought" in told
    assert "cheap: 1 of nvidia.com/gpu may be bought" in told
    assert "limits of NodePools" not in texts(done, "not-expressed")


def test_pods_that_wait_for_more_than_a_limit(tmp_path: Path) -> None:
    """They are named, or left out, as many as do not fit."""
    late = deployment("late", [None] * 3, [container(cpu="1500m")])
    objects = [machine("n0", "m5.large"), *deployment("web", ["n0"], kind="StatefulSet"), *late]
    files = tables(tmp_path, [pool("cheap", {"cpu": "4"}, ["m5.large"])])
    done = imported(tmp_path, objects, files=files, leave_out=True)
    assert texts(done, "left-out").count("late-7d9f") == 1
    assert all(len(used) == 3 for used in used_by(done))
    files = tables(tmp_path, [pool("cheap", {"nodes": 0}, ["m5.large"])])
    with pytest.raises(InfeasibleInstanceError, match="no node has room for default/late-7d9f-0"):
        imported(tmp_path, objects, files=files)


# -- spot nodes ------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(25))
def test_no_kind_of_spot_node_has_too_large_a_share(seed: int, tmp_path: Path) -> None:
    """A share counts nodes in use at the end, where a plan adds one; one is always legal."""
    rng = np.random.default_rng(seed)
    share = float(rng.choice([0.1, 0.25, 0.34, 0.5, 0.8]))
    leases = [str(rng.choice(["spot", "on-demand"])) for _ in range(int(rng.integers(2, 9)))]
    objects = crowd(rng, [{LEASE: lease} for lease in leases], waiting=int(rng.integers(2)))
    done = imported(tmp_path, objects, files=tables(tmp_path), max_spot_share=share)
    known = done.origin.nodes
    spot = {n["name"]: n["machine_type"] for n in done.document["nodes"]}
    spot = {k: v for k, v in spot.items() if known[k].labels[LEASE] == "spot"}
    front = api.solve(done.problem, "repack", seed=1, restarts=1)
    now = set(homes(done).values())
    for point in front.points:
        arrays = done.problem.arrays  # type: ignore[attr-defined]
        ends = arrays.final_nodes(done.problem.steps(point.plan))  # type: ignore[attr-defined]
        used = {arrays.node_names[n] for n in set(ends.tolist())}
        for kind, count in Counter(spot[name] for name in used & spot.keys()).items():
            added = {n for n in used - now if spot.get(n) == kind}
            assert not added or count <= max(1, int(share * len(used) + 1e-9)), (kind, used)
    assert new_of(done) and front.points


def test_the_share_of_spot_nodes_has_its_price(tmp_path: Path) -> None:
    """The smaller the share, the dearer the cheapest plan."""
    rng = np.random.default_rng(0)
    objects = crowd(rng, [{} for _ in range(12)])
    costs = []
    for share in (1.0, 0.5, 0.3, 0.1):
        done = imported(tmp_path, objects, files=tables(tmp_path), max_spot_share=share)
        front = api.solve(done.problem, "repack", seed=1, restarts=2)
        costs.append(min(p.values[0] for p in front.points))
    assert costs == sorted(costs) and costs[0] < costs[1] < costs[-1] < done.problem.initial_cost


def test_the_option_and_what_it_refuses(tmp_path: Path) -> None:
    objects = [machine("n0", "m5.large"), *deployment("web", ["n0"])]
    imported(tmp_path, objects, max_spot_share=0.3)
    with pytest.raises(UsageError, match="--max-spot-share is of rolling updates"):
        imported(tmp_path, objects, "edge-cloud", max_spot_share=0.3)
    cluster, out = str(tmp_path / "cluster.json"), str(tmp_path / "x.json")
    files: dict[str, Any] = tables(tmp_path)
    more = ["--prices", str(files["prices"][0]), "--candidates", str(files["candidates"])]
    more += ["--to", "rolling-update", "-o", out, "--max-spot-share"]
    assert ended("import", "kubernetes", cluster, *more, "0.3") == 0
    written = json.loads(Path(out).read_text())["limits"]
    assert {limit["share"] for limit in written} == {0.3} and len(written) == len(MACHINES)
    assert ended("import", "kubernetes", cluster, *more, "0") == 2


# -- what plans do not keep, names and zones -------------------------------------------------------

KINDS = expression(KIND_KEY, "In", "m5.large", "m5.xlarge")


def cheap(*terms: Json, **more: Any) -> Json:
    return node_pool(KINDS, *terms, name="cheap", **more)


def shop(folder: Path, workload: Json | None = None, *terms: Json, **more: Any) -> Imported:
    """Import two pods on a large node, with what a NodePool may make."""
    objects = [node("n1", "m5.2xlarge", cpu="16", labels={POOL: "cheap"})]
    objects += deployment("web", ["n1", "n1"], **(workload or {}))
    return imported(folder, objects, files=tables(folder, [cheap(*terms, **more)]))


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
    told = texts(shop(tmp_path, None, *says.get("terms", []), **rest), "not-expressed")
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
    done = shop(tmp_path, workload)
    name = new_of(done)[0]["name"]
    made = next(n for n in done.problem.nodes if n.name == name)  # type: ignore[attr-defined]
    (wanted,) = arrivals([made], done.origin)["nodes"]
    assert (wanted["labels"].get(POOL) == "cheap") == kept


def test_a_pool_that_a_case_asks_for(kubernetes_data: Path, tmp_path: Path) -> None:
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
    objects = [node(f"n{z}", "m5.2xlarge", zone=z) for z in "abc"] + deployment("web", ["na"])
    objects += deployment("late", [None], nodeSelector={ZONE_KEY: "c"})
    done = imported(tmp_path, objects, files=tables(tmp_path, [cheap(*terms)]))
    assert sorted({n["cluster"] for n in new_of(done)}) == wanted
    told = texts(done, "assumption")
    said = "they make nodes in the zones of the cluster: cheap: a, b, c"
    assert (said in told) == (case != "some")
