"""Machines to buy: CSV and NodePools, read, checked, in the instance and in a plan."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from held_clusters import node, pod
from little_clusters import ZONE_KEY, bought, budget
from little_clusters import imported as imported_from

from placeopt import api
from placeopt.core.errors import DocumentError, UsageError
from placeopt.core.files.documents import validate
from placeopt.kubernetes.approval import ApprovalPage, approve, markdown
from placeopt.kubernetes.candidates import read_candidates
from placeopt.kubernetes.export import export
from placeopt.kubernetes.export.script import StepsDocument
from placeopt.kubernetes.importing import Imported, import_files
from placeopt.kubernetes.machines import read_prices
from placeopt.kubernetes.moving import MovingRules
from placeopt.kubernetes.options import ImportOptions
from placeopt.kubernetes.origin import Notes
from placeopt.kubernetes.verify import verify_files
from placeopt.report import html
from placeopt.rolling_update.problem import RollingUpdate
from placeopt.rolling_update.views import fleet_change

HEAD = "machine_type,cpu,memory,zone,on_demand_usd_per_hour,spot_usd_per_hour,count"
POOL = """
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: general}
spec:
  limits: {cpu: "10"}
  template:
    metadata: {labels: {team: shop}}
    spec:
      taints: [{key: shop, value: "yes", effect: NoSchedule}]
      kubelet: {maxPods: 58, kubeReserved: {cpu: 100m, memory: 500Mi}}
      requirements:
        - {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}
        - {key: topology.kubernetes.io/zone, operator: In, values: [a, b]}
        - {key: karpenter.k8s.aws/instance-family, operator: NotIn, values: [m5]}
"""
PRICES = """location,size,cpu_cores,memory_gib,on_demand_usd_per_hour,spot_usd_per_hour
r1,c5.xlarge,4,8,0.17,0.07
r1,m5.xlarge,4,16,0.19,0.08
r2,c5.xlarge,4,8,0.18,
"""


def imported(folder: Path, table: str) -> Imported:
    """Import two nodes of 4 cores with 1500m each and a DaemonSet of 300m, and machines to buy."""
    items = [node(n, labels={"kubernetes.io/os": "linux"}) for n in ("n1", "n2")]
    items += [pod("web-1", "n1", "1500m"), pod("api-1", "n2", "1500m")]
    items += [pod(f"log-{n}", n, "300m", "DaemonSet") for n in ("n1", "n2")]
    (folder / "nodes.csv").write_text(table)
    prices = {"format": "placeopt/prices@1", "nodes": {"n1": 1.0, "n2": 1.0}}
    (folder / "prices.json").write_text(json.dumps(prices))
    files = {"prices": [folder / "prices.json"], "candidates": folder / "nodes.csv"}
    return imported_from(folder, items, files=files)


def cheapest(done: Imported) -> Any:
    """Return the cheapest plan."""
    front = api.solve(done.problem, "repack", seed=1)
    return min(front.points, key=lambda p: p.values[0]).plan


def test_a_candidate_has_room_beside_what_is_reserved_and_daemonsets(tmp_path: Path) -> None:
    table = f"{HEAD},reserved_cpu,reserved_memory,pods\nx.big,4,8Gi,a,0.5,,2,90m,1Gi,58\n"
    done = imported(tmp_path, table)
    mine = bought(done)
    assert [n["name"] for n in mine] == ["buy-x.big-a-1", "buy-x.big-a-2"]
    assert {n["cpu_millicores"] for n in mine} == {4000 - 90 - 300}
    assert {n["machine_type"] for n in mine} == {"x.big"}
    assert done.document["price_unit"] == "USD/h"


def test_the_solver_buys_what_is_cheaper(tmp_path: Path) -> None:
    done = imported(tmp_path, f"{HEAD}\nx.big,4,8Gi,,0.5,,2\n")
    assert isinstance(done.problem, RollingUpdate)
    plan = cheapest(done)
    assert done.problem.evaluate(plan).values[0] == 0.5
    change = fleet_change(done.problem, plan)
    assert (change.buy, change.free) == (("buy-x.big-1",), ("n1", "n2"))


def test_the_export_lists_what_to_buy(tmp_path: Path) -> None:
    done = imported(tmp_path, f"{HEAD}\nx.big,4,8Gi,,0.5,,12\n")
    plan = cheapest(done)
    groups = json.loads(export(done.problem, plan, done.origin, form="node-groups"))
    [group] = groups["buy"]
    [candidate] = group["nodes"]
    assert (group["machine_type"], group["count"]) == ("x.big", 1)
    assert group["labels"]["node.kubernetes.io/instance-type"] == "x.big"
    assert groups["free"] == ["n1", "n2"]
    assert f"$(real {candidate})" in export(done.problem, plan, done.origin, form="commands")


def test_steps_say_what_to_buy_and_verify_knows_it(tmp_path: Path) -> None:
    """The nodes stand in the steps; their room and taints count."""
    done = imported(tmp_path, f"{HEAD}\nx.big,4,8Gi,a,0.5,,2\n")
    plan = cheapest(done)
    document = json.loads(export(done.problem, plan, done.origin, form="json"))
    assert document["warnings"] == ["buy first: 1 x x.big in a (buy-x.big-a-1)"]
    [node] = document["buy"]
    assert (node["name"], node["cpu_millicores"]) == ("buy-x.big-a-1", 3700)
    assert node["labels"]["topology.kubernetes.io/zone"] == "a"
    files = [str(tmp_path / "cluster.json")]
    assert done.origin.files == tuple(files)
    assert verify_files(validate(StepsDocument, document), files) == []
    node["cpu_millicores"], node["taints"] = 2000, ["gpu=yes:NoSchedule"]
    refused = [r.text for r in verify_files(validate(StepsDocument, document), files)]
    assert len(refused) == 2 and "untolerated taint {gpu: yes}" in refused[0]
    assert "Insufficient cpu" not in refused[0] and "Insufficient cpu" in refused[1]


def test_the_report_says_what_to_buy_first(tmp_path: Path) -> None:
    """With the money on top, which stands there once."""
    done = imported(tmp_path, f"{HEAD}\nx.big,4,8Gi,a,0.5,,2\n")
    front = api.solve(done.problem, "repack", seed=1)
    index = min(range(len(front)), key=lambda k: front.points[k].values[0])
    text = markdown(approve(front, done.problem, index, done.origin), "Plan")
    assert "* Buy first: 1 x x.big in a" in text
    told = ApprovalPage(approve(front, done.problem, index, done.origin))
    page = html(front, problem=done.problem, index=index, approved=told)
    assert "Buy first: 1 x x.big in a." in page
    assert page.count("1,095 USD a month") == 1 and "less in a month" not in page


def test_a_line_per_zone_and_price(tmp_path: Path) -> None:
    path = tmp_path / "nodes.csv"
    path.write_text(f"{HEAD},taints,labels\nx,4,8Gi,a;b,0.5,0.2,3,k=v:NoSchedule,p=q\n")
    found = read_candidates(path, None, "r", Notes())
    assert len(found) == 12
    spot = [n for n in found if n.meta.labels["karpenter.sh/capacity-type"] == "spot"]
    assert {n.price for n in spot} == {0.2}
    assert {n.zone for n in spot} == {"a", "b"}
    assert found[0].taints == [("k", "v", "NoSchedule")]
    assert found[0].meta.labels["p"] == "q"
    assert len({n.name for n in found}) == 12


def test_a_node_pool_with_a_table_of_prices(tmp_path: Path) -> None:
    (tmp_path / "pool.yaml").write_text(POOL)
    (tmp_path / "prices.csv").write_text(PRICES)
    book = read_prices([tmp_path / "prices.csv"], Notes())
    found = read_candidates(tmp_path / "pool.yaml", book, "r1", Notes())
    assert {n.instance_type for n in found} == {"c5.xlarge"}
    assert {n.price for n in found} == {0.17}
    assert len(found) == 4  # 10 cores allow 2 of 4 cores, in two zones
    one = found[0]
    assert (one.cpu, one.memory) == (3900, (8 * 1024 - 600) * 2**20)
    assert one.further == {"pods": 58}
    assert one.taints == [("shop", "yes", "NoSchedule")]
    assert one.meta.labels["karpenter.sh/nodepool"] == "general"
    assert one.meta.labels["team"] == "shop"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("x,4,8Gi,a,,,1", "no price"),
        ("x,4,8Gi,a,0.5,,0", "count is 0; legal: a whole number, 1 to 10,000"),
        ("x,4,8Gi,a b,0.5,,1", "zone is 'a b'"),
        (",4,8Gi,a,0.5,,1", "machine_type is empty"),
    ],
)
def test_bad_lines_are_named(line: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "nodes.csv").write_text(f"{HEAD}\n{line}\n")
    with pytest.raises(DocumentError) as caught:
        read_candidates(tmp_path / "nodes.csv", None, None, Notes())
    assert message in str(caught.value)
    assert "line 2" in str(caught.value)


@pytest.mark.parametrize(
    ("key", "values", "machines", "said"),
    [
        ("karpenter.k8s.aws/instance-hypervisor", "[nitro]", 4, "taken as met"),
        ("karpenter.azure.com/sku-family", "[D]", 4, "taken as met"),
        ("karpenter.k8s.aws/instance-gpu-name", "[t4]", 0, "buy nothing"),
        ("karpenter.k8s.aws/instance-local-nvme", "['100']", 0, "buy nothing"),
        ("example.com/tier", "[web]", 4, ""),
        ("tier", "[web, batch]", 4, "one of several values"),
    ],
)
def test_requirements_that_price_files_do_not_tell_of(
    key: str, values: str, machines: int, said: str, tmp_path: Path
) -> None:
    """Those of a provider are named, unless no machine is known to meet them; others are labels."""
    term = f"- {{key: {key}, operator: In, values: {values}}}\n        - {{key: karp"
    (tmp_path / "pool.yaml").write_text(POOL.replace("- {key: karp", term, 1))
    (tmp_path / "prices.csv").write_text(PRICES)
    book, notes = read_prices([tmp_path / "prices.csv"], Notes()), Notes()
    found = read_candidates(tmp_path / "pool.yaml", book, "r1", notes)
    assert len(found) == machines
    assert said in " ".join(text for text, _ in notes.of("assumption"))
    if key.endswith("tier"):
        assert {n.meta.labels[key] for n in found} == {"web"}


def test_only_rolling_updates_buy(tmp_path: Path) -> None:
    done = imported(tmp_path, f"{HEAD}\nx.big,4,8Gi,,0.5,,2\n")
    files = {"candidates": tmp_path / "nodes.csv"}
    with pytest.raises(UsageError, match="--candidates is of rolling updates"):
        import_files(done.origin.files, "edge-cloud", ImportOptions(rules=MovingRules()), **files)


def three(folder: Path, **options: Any) -> RollingUpdate:
    """Import three nodes of two zones with two replicas of one workload on the first two."""
    items = [node(f"n{k}", "4") for k in range(3)]
    for k, zone in enumerate("aab"):
        items[k]["metadata"]["labels"][ZONE_KEY] = zone
    items += [pod(f"web-{k}", f"n{k}", "500m") for k in range(2)]
    problem = imported_from(folder, items, **options).problem
    assert isinstance(problem, RollingUpdate)
    return problem


@pytest.mark.parametrize(
    ("options", "cost"),
    [
        ({}, 1.0),
        ({"max_share": 0.5}, 2.0),
        ({"spread": ("node",)}, 2.0),
        ({"headroom": 0.8}, 2.0),  # 800m are left of 4 cores: one replica of 500m
    ],
)
def test_availability_has_its_price(options: dict[str, Any], cost: float, tmp_path: Path) -> None:
    front = api.solve(three(tmp_path, **options), "repack", seed=1)
    assert min(p.values[0] for p in front.points) == cost


def test_what_the_loss_of_a_node_leaves_has_its_price(tmp_path: Path) -> None:
    """Two replicas fit on one node; that one is left after a loss costs a node more."""
    problem = three(tmp_path, survive=("replicas", "room"))
    assert problem.survival is not None
    assert (list(problem.survival.needs.values()), problem.survival.room) == ([1], True)
    front = api.solve(problem, "repack", seed=1)
    assert {(p.values[0], p.values[3]) for p in front.points} == {(2.0, 0.0)}
    problem = three(tmp_path, survive=("replicas",))
    front = api.solve(problem, "repack", seed=1)
    pages = {p.values[0]: (p.values[3], approve(front, problem, k)) for k, p in enumerate(front)}
    assert {cost: lost for cost, (lost, _) in pages.items()} == {1.0: 1.0, 2.0: 0.0}
    for cost, told in ((1.0, "no: without n0: "), (2.0, "yes")):
        assert f"* Survives the loss of any one node: {told}" in markdown(pages[cost][1], "x")


@pytest.mark.parametrize(
    ("spec", "need", "said"),
    [
        ({"minAvailable": 2}, 2, ""),
        ({"minAvailable": "100%"}, 2, "one may be missing"),
        ({"maxUnavailable": 2}, 1, ""),
    ],
)
def test_a_budget_says_how_many_replicas_are_needed(
    spec: dict[str, Any], need: int, said: str, tmp_path: Path
) -> None:
    items = [node(f"n{k}", "4") for k in range(3)]
    items += [pod(f"web-{k}", f"n{k}", "500m") for k in range(3)] + [pod("one-1", "n0", "100m")]
    items.append(budget("web", "shop", **spec))
    done = imported_from(tmp_path, items, survive=("replicas",))
    assert list(done.document["survival"]["needs"].values()) == [need]
    told = dict(done.notes.of("assumption"))
    single = "workloads of one replica are down while it starts elsewhere (--survive)"
    assert len(told[single]) == 1
    assert any("one may be missing" in text for text in told) is bool(said)


@pytest.mark.parametrize(
    ("options", "flag"),
    [
        ({"spread": ("node",)}, "--spread"),
        ({"max_share": 0.5}, "--max-share"),
        ({"headroom": 0.1}, "--headroom"),
        ({"survive": ("room",)}, "--survive"),
    ],
)
def test_availability_is_of_rolling_updates(
    options: dict[str, Any], flag: str, tmp_path: Path
) -> None:
    three(tmp_path)
    asked = ImportOptions(rules=MovingRules(), **options)
    with pytest.raises(UsageError, match=f"{flag} is of rolling updates; --to is edge-cloud"):
        import_files([tmp_path / "cluster.json"], "edge-cloud", asked)


def test_a_spread_over_zones_keeps_what_moves_in_two_zones(tmp_path: Path) -> None:
    problem = three(tmp_path, spread=("zone",))
    steps = [{"application": "shop", "microservice": "web-1", "to": "n0"}]
    assert not problem.evaluate({"steps": steps}).feasible
    steps[0]["to"] = "n2"
    assert problem.evaluate({"steps": steps}).feasible


def test_labels_of_a_cell(tmp_path: Path) -> None:
    table = tmp_path / "machines.csv"
    table.write_text(f"{HEAD},labels\nx,4,8Gi,a,0.5,,1,pool=general; example.org/arch=arm64;\n")
    (made,) = read_candidates(table, None, None, Notes())
    assert made.meta.labels["pool"] == "general"
    assert made.meta.labels["example.org/arch"] == "arm64"
    for wrong in ("a b=c", "=x", "pool=-"):
        table.write_text(f"{HEAD},labels\nx,4,8Gi,a,0.5,,1,{wrong}\n")
        with pytest.raises(DocumentError, match=r"line 2: .*is no label"):
            read_candidates(table, None, None, Notes())
