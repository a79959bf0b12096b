"""Parts of a plan, one node alone, and the plan that is taken of equally good ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from held_clusters import APART, answered, node, pod
from typer.testing import CliRunner

from placeopt.cli import app

INSTANCE_TYPE = "node.kubernetes.io/instance-type"
REGION = "topology.kubernetes.io/region"
KEEP = {"karpenter.sh/do-not-disrupt": "true"}


def crowd(full: int = 3) -> list[dict[str, Any]]:
    """Return nodes with one, two and three small pods, and one that has room for all."""
    items = [node(f"n{k}") for k in range(full + 1)]
    return items + [pod(f"w{k}-{j}", f"n{k}", "500m") for k in range(full) for j in range(k + 1)]


@pytest.mark.parametrize(("most", "gone"), [(0, 1), (1, 2), (2, 2), (3, 3), (9, 3)])
def test_a_plan_moves_no_more_pods_than_it_may(tmp_path: Path, most: int, gone: int) -> None:
    """The nodes that save most for a pod go first; an empty one costs no move."""
    found = answered(tmp_path, crowd(), "--max-moves", str(most))
    assert found["moves"] <= most and found["cost_now"] - found["cost_after"] == gone
    assert found["at_most"] == 3 - gone and len(found["nodes"]) == 4 - gone
    held = [one for one in found["nodes"] if "than the limits allow" in one["reasons"][0]["text"]]
    assert len(held) == 3 - gone


@pytest.mark.parametrize(("least", "gone"), [(0, 3), (0.4, 3), (0.6, 2), (1, 2), (1.1, 1)])
def test_each_move_saves_what_it_has_to(tmp_path: Path, least: float, gone: int) -> None:
    found = answered(tmp_path, crowd(), "--min-saving-per-move", str(least))
    assert found["cost_now"] - found["cost_after"] == gone
    assert gone >= least * found["moves"]


def test_what_saves_most_for_a_pod_goes_first(tmp_path: Path) -> None:
    found = answered(tmp_path, crowd(4))
    steps = [stage["steps"] for stage in found["stages"]]
    saved = [stage["saves"] / max(1, stage["steps"]) for stage in found["stages"]]
    assert steps == sorted(steps) and saved[1:] == sorted(saved[1:], reverse=True)


def test_days_that_pay_for_restarts(tmp_path: Path) -> None:
    """Three restarts of 10 USD; two nodes of 0.1 USD an hour less are 4.8 USD a day."""
    items, prices = crowd(), tmp_path / "prices.csv"
    for one in items[:4]:
        one["metadata"]["labels"] |= {INSTANCE_TYPE: "m", REGION: "us"}
    prices.write_text("location,size,on_demand_usd_per_hour\nus,m,0.1\n")
    priced = "--prices", str(prices), "--max-moves", "1"
    found = answered(tmp_path, items, *priced, "--restart-cost", "10")
    assert (found["starts"], found["days_to_pay"]) == (1, round(10 / 4.8, 2))
    assert answered(tmp_path, items, *priced)["days_to_pay"] is None
    file = str(tmp_path / "cluster.json")
    command = ["consolidate", file, *priced, "--restart-cost", "10", "--format", "table"]
    told = CliRunner().invoke(app, command)
    assert "The plan pays for its 1 restart in 2.08 days." in told.stdout


def test_one_node_can_go(tmp_path: Path) -> None:
    """Its pods move and no others; what is empty besides is not spoken of."""
    found = answered(tmp_path, crowd(), "--remove", "n1")
    assert (found["removes"], found["gone"]) == ("n1", ["n1"])
    assert {move["node"] for move in found["pods_move"]} == {"n1"}
    assert {move["pod"] for move in found["pods_move"]} == {"shop/w1-0", "shop/w1-1"}
    assert "n1" not in {move["to"] for move in found["pods_move"]}
    assert found["cost_now"] - found["cost_after"] == 1 and not found["nodes"]


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"affinity": APART}, "anti-affinity by hostname"),
        ({"annotations": KEEP}, "do-not-disrupt"),
        ({"cpu": "3500m"}, "no room"),
        ({"nodeSelector": {"kubernetes.io/hostname": "n0"}}, "required: node selector"),
    ],
)
def test_what_refuses_that_one_node_goes(tmp_path: Path, more: dict[str, Any], says: str) -> None:
    items = [node(f"n{k}") for k in range(2)]
    items += [pod(f"web-{k}", f"n{k}", **more) for k in range(2)]
    found = answered(tmp_path, items, "--remove", "n0")
    assert found["gone"] == [] and found["moves"] == 0
    (held,) = found["nodes"]
    assert held["name"] == "n0" and says in str(held["reasons"])
    file = str(tmp_path / "cluster.json")
    told = CliRunner().invoke(app, ["consolidate", file, "--remove", "n0", "--format", "table"])
    assert told.stdout.startswith("n0 stays: ") and says in told.stdout


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"unschedulable": True}, "cordoned"),
        ({"labels": {"node-role.kubernetes.io/control-plane": ""}}, "control plane"),
    ],
)
def test_nothing_is_proven_of_a_node_that_is_left_alone(
    more: dict[str, Any], says: str, tmp_path: Path
) -> None:
    """And nothing moves for it."""
    items = [node("n0"), node("n1", **more), pod("a-0", "n0"), pod("b-0", "n1")]
    found = answered(tmp_path, items, "--remove", "n1")
    assert (found["gone"], found["moves"], found["at_most"]) == ([], 0, 1)
    file = str(tmp_path / "cluster.json")
    told = CliRunner().invoke(app, ["consolidate", file, "--remove", "n1", "--format", "table"])
    assert says in told.stdout and "proven" not in told.stdout


def test_a_limit_that_no_part_keeps_is_said(tmp_path: Path) -> None:
    items = [node("n0"), node("n1"), pod("a-0", "n0"), pod("b-0", "n1")]
    answered(tmp_path, items)
    file = str(tmp_path / "cluster.json")
    told = CliRunner().invoke(app, ["consolidate", file, "--max-moves", "0", "--format", "table"])
    assert told.stdout.startswith("No part of the plan keeps the limits.")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--remove", "n9"], "--remove 'n9': no such node; legal: n0"),
        (["--remove", "n1", "--candidates", "more.csv"], "leave out --candidates"),
    ],
)
def test_bad_use_is_one_message(tmp_path: Path, options: list[str], says: str) -> None:
    answered(tmp_path, crowd())
    done = CliRunner().invoke(app, ["consolidate", str(tmp_path / "cluster.json"), *options])
    assert done.exit_code != 0
    assert says in str(done.exception) or says in done.output


def test_replicas_stay_in_more_zones_where_that_costs_nothing(tmp_path: Path) -> None:
    """Both copies of web are in one zone at first; one of them has to move, whatever is done."""
    zones = {"n0": "a", "n1": "a", "n2": "b", "n3": "b"}
    items = [
        node(name, "3" if name != "n0" else "1", labels={"topology.kubernetes.io/zone": zone})
        for name, zone in zones.items()
    ]
    items += [pod("web-1", "n0"), pod("web-2", "n1"), pod("db-1", "n1", owner="StatefulSet")]
    items += [pod("api-1", "n2", owner="StatefulSet"), pod("api-2", "n2"), pod("log-1", "n3")]
    found = answered(tmp_path, items)
    assert found["cost_now"] - found["cost_after"] == 2
    assert not [name for name in found["together"] if "shop/web" in name]
