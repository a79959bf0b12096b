"""Money: spot labels, prices that are missing, commitments, months by namespace, the way there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from little_clusters import Json, deployment, ended, imported, node, texts

from placeopt import api
from placeopt.core.errors import DocumentError, UsageError
from placeopt.core.fronts.front import Front
from placeopt.core.fronts.values import Point
from placeopt.kubernetes.approval import (
    Approval,
    ApprovalPage,
    Deployed,
    markdown,
    namespace_costs,
)
from placeopt.kubernetes.given import read_commitments
from placeopt.kubernetes.importing import Imported
from placeopt.kubernetes.machines import missing_price
from placeopt.kubernetes.names import lease_of

TYPES = (
    "location,size,cpu_cores,memory_gib,on_demand_usd_per_hour,reserved_usd_per_hour,"
    "spot_usd_per_hour,spot_interruption\n"
    "us-east-1,m5.xlarge,4,16,0.192,0.12,0.06,0.05\n"
    "us-east-1,m5.large,2,8,0.096,,0.03,0.1\n"
)

# -- how a node is paid for ------------------------------------------------------------------------

LEASES: list[tuple[Json, str]] = [
    ({}, "on-demand"),
    ({"karpenter.sh/capacity-type": "spot"}, "spot"),
    ({"karpenter.sh/capacity-type": "on-demand"}, "on-demand"),
    ({"karpenter.sh/capacity-type": "reserved"}, "reserved"),
    ({"eks.amazonaws.com/capacityType": "SPOT"}, "spot"),
    ({"eks.amazonaws.com/capacityType": "ON_DEMAND"}, "on-demand"),
    ({"eks.amazonaws.com/capacityType": "CAPACITY_BLOCK"}, "reserved"),
    ({"cloud.google.com/gke-spot": "true"}, "spot"),
    ({"cloud.google.com/gke-spot": "false"}, "on-demand"),
    ({"cloud.google.com/gke-preemptible": "true"}, "spot"),
    ({"cloud.google.com/gke-provisioning": "spot"}, "spot"),
    ({"cloud.google.com/gke-provisioning": "preemptible"}, "spot"),
    ({"cloud.google.com/gke-provisioning": "standard"}, "on-demand"),
    ({"kubernetes.azure.com/scalesetpriority": "spot"}, "spot"),
    ({"kubernetes.azure.com/scalesetpriority": "Spot"}, "spot"),
    ({"kubernetes.azure.com/scalesetpriority": "regular"}, "on-demand"),
    ({"oci.oraclecloud.com/oke-is-preemptible": "true"}, "spot"),
    ({"node.alibabacloud.com/spot-strategy": "SpotAsPriceGo"}, "spot"),
    ({"node.alibabacloud.com/spot-strategy": "SpotWithPriceLimit"}, "spot"),
    ({"node.alibabacloud.com/spot-strategy": "NoSpot"}, "on-demand"),
    ({"spotinst.io/node-lifecycle": "spot"}, "spot"),
    ({"spotinst.io/node-lifecycle": "od"}, "on-demand"),
    ({"scheduling.cast.ai/spot": "true"}, "spot"),
    ({"cluster.x-k8s.io/interruptible": ""}, "spot"),
    ({"machine.openshift.io/interruptible-instance": ""}, "spot"),
    ({"node-role.kubernetes.io/spot-worker": "true"}, "spot"),
    ({"node.kubernetes.io/lifecycle": "spot"}, "spot"),
    ({"node.kubernetes.io/lifecycle": "normal"}, "on-demand"),
    ({"lifecycle": "Ec2Spot"}, "spot"),
    ({"lifecycle": "OnDemand"}, "on-demand"),
    ({"pool": "spot"}, "on-demand"),
    ({"karpenter.sh/nodepool": "spot"}, "on-demand"),
    ({"karpenter.sh/capacity-type": "on-demand", "lifecycle": "Ec2Spot"}, "on-demand"),
    ({"cloud.google.com/gke-spot": "true", "cloud.google.com/gke-provisioning": "spot"}, "spot"),
]


@pytest.mark.parametrize(("labels", "lease"), LEASES)
def test_labels_say_how_a_node_is_paid_for(labels: Json, lease: str) -> None:
    assert lease_of(labels) == lease


@pytest.mark.parametrize(("labels", "lease"), [row for row in LEASES if row[0]])
def test_nodes_cost_what_their_labels_say(labels: Json, lease: str, tmp_path: Path) -> None:
    done = imported(tmp_path, shop([labels]), files=priced(tmp_path))
    price = {"on-demand": 0.192, "spot": 0.06, "reserved": 0.12}[lease]
    assert [n["price"] for n in done.document["nodes"]] == [price]
    rate = done.origin.nodes["n0"].interruptions
    assert rate == (0.05 if lease == "spot" else None)


def test_a_lease_without_a_price_of_its_own_is_named(tmp_path: Path) -> None:
    labels = {"karpenter.sh/capacity-type": "reserved", **of_kind("m5.large")}
    done = imported(tmp_path, shop([labels]), files=priced(tmp_path))
    assert done.document["nodes"][0]["price"] == 0.096
    assert "no reserved price: that on demand: n0" in texts(done, "assumption")


def of_kind(name: str) -> Json:
    return {"node.kubernetes.io/instance-type": name}


def shop(nodes: list[Json], **more: Any) -> list[Json]:
    """Return nodes with these labels and one pod on each."""
    names = [f"n{k}" for k in range(len(nodes))]
    found = [node(n, labels=labels, **more) for n, labels in zip(names, nodes, strict=True)]
    return [*found, *deployment("web", names)]


def priced(folder: Path) -> Json:
    (folder / "types.csv").write_text(TYPES)
    return {"prices": [folder / "types.csv"]}


# -- prices that are missing -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "price"),
    [("default=0.10", 0.1), ("default=0", 0.0), ("default=2.5", 2.5), ("default=1e-3", 0.001)],
)
@pytest.mark.parametrize("to", ["rolling-update", "edge-cloud"])
def test_missing_prices_count_without_a_table(
    given: str, price: float, to: str, tmp_path: Path
) -> None:
    """They are USD an hour, so that a month can be told; nobody says that a node costs 1."""
    done = imported(tmp_path, shop([{}]), to, missing_prices=given)
    cost = done.document["nodes"][0]["price" if to == "rolling-update" else "operating_cost"]
    assert cost == price and "costs 1" not in texts(done, "assumption")
    assert f"cost {price:g} USD/h (--missing-prices): n0" in texts(done, "assumption")
    if to == "rolling-update":
        assert done.document["price_unit"] == done.origin.price_unit == "USD/h"


@pytest.mark.parametrize(
    "given",
    ["0.10", "default", "default=", "default=x", "default=-1", "default=nan", "default=inf",
     "default=1e7", "DEFAULT=1", "free", ""],
)  # fmt: skip
def test_other_words_for_missing_prices_are_refused(given: str, tmp_path: Path) -> None:
    """Whether or not a price is missing."""
    with pytest.raises(UsageError, match="legal: error, default=USD"):
        imported(tmp_path, shop([{}]), missing_prices=given)
    with pytest.raises(UsageError, match="legal: error, default=USD"):
        imported(tmp_path, shop([{}]), missing_prices=given, files=priced(tmp_path))
    with pytest.raises(UsageError):
        missing_price(given)


def test_nodes_that_have_a_price_keep_it(tmp_path: Path) -> None:
    objects = shop([{}, of_kind("rack")])
    done = imported(tmp_path, objects, files=priced(tmp_path), missing_prices="default=0.3")
    assert [n["price"] for n in done.document["nodes"]] == [0.192, 0.3]
    table = tmp_path / "nodes.csv"
    table.write_text("name,cpu,memory,price\nx,4,16Gi,0.5\ny,4,16Gi,\n")
    done = imported(tmp_path, objects, files={"nodes": table}, missing_prices="default=0.3")
    assert [n["price"] for n in done.document["nodes"]] == [0.3, 0.3, 0.5, 0.3]


def test_min_saving_is_in_dollars(tmp_path: Path, kubernetes_data: Path) -> None:
    """Three nodes at 0.10 cannot save 2 USD; counted as 1 each they could."""
    cluster = str(kubernetes_data / "kubernetes_cases" / "zone_loss.json")
    files = [str(tmp_path / name) for name in ("x.json", "f.json")]
    to = ["--to", "rolling-update", "--missing-prices", "default=0.10", "-o", files[0]]
    assert ended("import", "kubernetes", cluster, *to) == 0
    assert {n["price"] for n in json.loads(Path(files[0]).read_text())["nodes"]} == {0.1}


# -- commitments -----------------------------------------------------------------------------------

SPOT = {"karpenter.sh/capacity-type": "spot"}
#: Rows of the table, labels of the nodes -> how much of each is due.
COMMITTED: dict[str, tuple[str, list[Json], list[float]]] = {
    "a number": ("m5.xlarge,1,,", [{}, {}], [0, 1]),
    "a share": ("m5.xlarge,,0.5,", [{}, {}], [0, 1]),
    "all": ("m5.xlarge,,1,", [{}, {}], [0, 0]),
    "none": ("m5.xlarge,0,,", [{}, {}], [1, 1]),
    "a share of three": ("m5.xlarge,,0.5,", [{}, {}, {}], [0, 0.5, 1]),
    "a part of a node": ("m5.xlarge,1.25,,", [{}, {}], [0, 0.75]),
    "more than there are": ("m5.xlarge,5,,", [{}, {}], [0, 0]),
    "another type": ("m5.large,1,,", [{}, {}], [1, 1]),
    "one of two types": ("m5.large,1,,", [{}, of_kind("m5.large")], [1, 0]),
    "a pattern": ("m5.*,2,,", [{}, of_kind("m5.large")], [0, 0]),
    "a pattern takes the dearest": ("m5.*,1,,", [of_kind("m5.large"), {}], [1, 0]),
    "not for spot": ("m5.xlarge,1,,", [SPOT, {}], [1, 0]),
    "not for spot, as a share": ("m5.xlarge,,0.5,", [SPOT, {}, {}], [1, 0, 1]),
    "in the region": ("m5.xlarge,1,,us-east-1", [{}, {}], [0, 1]),
    "in another region": ("m5.xlarge,1,,eu-west-1", [{}, {}], [1, 1]),
    "two lines": ("m5.xlarge,1,,\nm5.large,1,,", [{}, of_kind("m5.large")], [0, 0]),
    "two lines for one": ("m5.xlarge,1,,\nm5.*,1,,", [{}, {}], [0, 0]),
}


def table(folder: Path, rows: str) -> Path:
    path = folder / "paid.csv"
    path.write_text(f"machine_type,nodes,share,region\n{rows}\n")
    return path


@pytest.mark.parametrize("case", COMMITTED)
def test_what_is_paid_for_is_not_due(case: str, tmp_path: Path) -> None:
    """Nodes that are paid for cost nothing more; the whole price stands beside the instance."""
    rows, labels, due = COMMITTED[case]
    paid = tuple(read_commitments(table(tmp_path, rows)))
    done = imported(tmp_path, shop(labels), files=priced(tmp_path), commitments=paid)
    known = done.origin.nodes
    for record, share in zip(done.document["nodes"], due, strict=True):
        mine = known[record["name"]]
        assert mine.price is not None and mine.paid == 1 - share
        assert record["price"] == pytest.approx(mine.price * share)
    left = "they are paid for and not used" in texts(done, "assumption")
    assert left == (case in ("more than there are", "another type", "in another region"))


def test_nodes_that_stay_anyway_are_paid_for_first(tmp_path: Path) -> None:
    """Then those with most on them; one that is to be drained comes last."""
    objects = [node(f"n{k}") for k in range(4)]
    objects += deployment("web", ["n0", "n1", "n1", "n2", "n3", "n3", "n3"])
    objects += deployment("db", ["n2"], kind="StatefulSet")
    paid = tuple(read_commitments(table(tmp_path, "m5.xlarge,2,,")))
    found = imported(
        tmp_path, objects, files=priced(tmp_path), commitments=paid, drain=("n3",)
    ).origin.nodes
    assert [found[f"n{k}"].paid for k in range(4)] == [0, 1, 1, 0]


def test_a_plan_fills_what_is_paid_for(tmp_path: Path) -> None:
    """The solver frees the node that is due, though it could free the other one."""
    objects = [node("n0", cpu="8"), node("n1")]
    objects += deployment("web", ["n0", "n0"]) + deployment("api", ["n1"])
    objects[0]["metadata"]["labels"].update(of_kind("m5.large"))
    paid = tuple(read_commitments(table(tmp_path, "m5.xlarge,1,,")))
    done = imported(tmp_path, objects, files=priced(tmp_path), commitments=paid)
    front = api.solve(done.problem, "repack", seed=1)
    cheapest = min(front.points, key=lambda p: p.values)
    made = Approval(done.problem, cheapest.plan, front, done.origin)
    assert made.freed == ["n0"] and cheapest.values[0] == 0


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ("m5.xlarge,,,", "neither nodes nor share, or both"),
        ("m5.xlarge,1,0.5,", "neither nodes nor share, or both"),
        ("m5.xlarge,,1.5,", "legal: a number, 0 to 1"),
        ("m5.xlarge,-1,,", "legal: a number"),
        (",1,,", "machine_type is empty"),
        ("m5.xlarge,1,,\nm5.xlarge,2,,", "stands twice"),
        ("m5.xlarge,1,,a b", "region is 'a b'"),
    ],
)
def test_tables_of_commitments_that_are_wrong(rows: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(DocumentError, match=said):
        read_commitments(table(tmp_path, rows))


def test_commitments_are_of_rolling_updates(tmp_path: Path) -> None:
    paid = tuple(read_commitments(table(tmp_path, "m5.xlarge,1,,")))
    with pytest.raises(UsageError, match="--commitments is of rolling updates"):
        imported(tmp_path, shop([{}]), "edge-cloud", commitments=paid)


# -- months by namespace ---------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(25))
def test_namespaces_pay_for_the_nodes_in_use(seed: int) -> None:
    """Together exactly what the nodes in use cost, less what commitments pay; none below 0."""
    rng = np.random.default_rng(seed)
    pods, nodes = int(rng.integers(1, 30)), int(rng.integers(1, 8))
    prices, paid = rng.random(nodes), rng.integers(0, 2, nodes) * rng.random()
    owner = [f"ns{k}" for k in rng.integers(0, 4, pods)]
    sides = [
        Deployed(rng.integers(-1, nodes, pods), rng.integers(0, 3, (pods, 3))) for _ in range(2)
    ]
    rows = namespace_costs(sides[0], sides[1], owner, prices, paid)
    for side, costs in zip(sides, ([r.now for r in rows], [r.after for r in rows]), strict=True):
        used = np.unique(side.where[side.where >= 0])
        assert sum(costs) == pytest.approx(730 * float((prices * (1 - paid))[used].sum()))
    assert all(min(r.now, r.after) >= 0 for r in rows if "commitments" not in r.name)


def test_two_namespaces_on_one_node() -> None:
    """Half by cpu, half by memory: 3 of 4 cores and 1 of 4 GiB are half of the node."""
    one = Deployed(np.array([0, 0]), np.array([[3, 1], [1, 3]]))
    rows = namespace_costs(one, one, ["a", "b"], np.array([1.0]), np.array([0.0]))
    assert [(r.name, r.now, r.after) for r in rows] == [("a", 365, 365), ("b", 365, 365)]


def approved(done: Imported, moves: list[tuple[str, str]]) -> Approval:
    """Return the approval of a plan that moves pods."""
    space = {
        m["name"]: a["name"] for a in done.document["applications"] for m in a["microservices"]
    }
    steps = [{"application": space[m], "microservice": m, "to": to} for m, to in moves]
    plan = {"steps": steps}
    values = done.problem.evaluate(plan).values
    front = Front(done.problem.instance_name, done.problem.objectives, (Point(values, plan),))
    return Approval(done.problem, plan, front, done.origin)


def two_spaces(folder: Path, **options: Any) -> Imported:
    """Import `web` of one namespace and `api` of another on a node each, and a spot node."""
    objects = [node("n0"), node("n1"), node("n2", labels=SPOT)]
    objects += deployment("web", ["n0"]) + deployment("api", ["n1"], space="data")
    return imported(folder, objects, files=priced(folder), **options)


def test_the_report_has_months_by_namespace(tmp_path: Path) -> None:
    made = approved(two_spaces(tmp_path), [("api-7d9f-0", "n0")])
    assert {(r.name, round(r.now, 2), round(r.after, 2)) for r in made.namespaces} == {
        ("default", 140.16, 70.08),
        ("data", 140.16, 70.08),
    }
    text, page = markdown(made, "x"), ApprovalPage(made).html()
    assert "### USD a month by namespace\n\n| namespace | now | after | change |" in text
    assert "| data | 140.16 | 70.08 | -70.08 |" in text
    assert "| together | 280.32 | 140.16 | -140.16 |" in text
    assert "USD a month by namespace" in page and "140.16" in page


def test_commitments_are_a_row_of_their_own(tmp_path: Path) -> None:
    paid = tuple(read_commitments(table(tmp_path, "m5.xlarge,,0.5,")))
    made = approved(two_spaces(tmp_path, commitments=paid), [("api-7d9f-0", "n0")])
    row = made.namespaces[-1]
    assert row.name == "paid for already (commitments)"
    assert (round(row.now, 2), round(row.after, 2)) == (-140.16, -140.16)


def test_without_prices_there_are_no_months(tmp_path: Path) -> None:
    made = approved(imported(tmp_path, shop([{}, {}])), [("web-7d9f-0", "n1")])
    assert made.namespaces == [] and "a month" not in markdown(made, "x")


# -- spot, and the way there -----------------------------------------------------------------------


def test_spot_before_and_after(tmp_path: Path) -> None:
    """Shares of the nodes in use, and how many are expected to be taken away in a month."""
    made = approved(two_spaces(tmp_path), [("api-7d9f-0", "n2")])
    before, after = made.spot
    assert (before.spot, before.nodes, before.interruptions) == (0, 2, 0)
    assert (after.spot, after.nodes, after.interruptions) == (1, 2, 0.05)
    told = "Spot nodes: 0 of 2 in use now (0%), 1 of 2 after (50%); expected interruptions a month"
    assert told in markdown(made, "x") and told in ApprovalPage(made).html()


def test_spot_nodes_without_a_rate_are_counted(tmp_path: Path) -> None:
    objects = shop([SPOT | of_kind("rack"), SPOT])
    done = imported(tmp_path, objects, files=priced(tmp_path), missing_prices="default=0.1")
    made = approved(done, [("web-7d9f-0", "n1")])
    assert made.spot[0].interruptions == 0.05 and made.spot[0].unknown == 1
    assert "no rate is known for 1 of them" in markdown(made, "x")
    bare = approved(imported(tmp_path, shop([SPOT, SPOT])), [("web-7d9f-0", "n1")])
    assert "interruptions" not in markdown(bare, "x") and "2 of 2 in use now" in markdown(bare, "x")


def test_no_word_of_spot_where_there_is_none(tmp_path: Path) -> None:
    assert "Spot" not in markdown(approved(imported(tmp_path, shop([{}, {}])), []), "x")


@pytest.mark.parametrize("name", ["n2", "n3", "n4"])
def test_spot_labels_from_outside(name: str, kubernetes_data: Path, tmp_path: Path) -> None:
    folder = kubernetes_data / "kubernetes_cases"
    objects = json.loads((folder / "spot_labels.json").read_text())["items"]
    done = imported(tmp_path, objects, files={"prices": [folder / "types.csv"]})
    assert {n["name"]: n["price"] for n in done.document["nodes"]}[name] == 0.06
