"""``placeopt consolidate``: a dump in, an answer out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from held_clusters import APART, KEEP, SPREAD, answered, consolidated, node, pod, told
from little_clusters import KIND_KEY, ZONE_KEY, budget
from scheduler_filters import replay
from typer.testing import CliRunner

from placeopt import api
from placeopt.cli import app
from placeopt.cli.screen import on_screen
from placeopt.core.errors import PlaceoptError
from placeopt.kubernetes.consolidate.answer import ConsolidationAnswer
from placeopt.kubernetes.consolidate.pages import FILES, blocks, markdown
from placeopt.kubernetes.export.script import StepsDocument
from placeopt.kubernetes.manifests import load
from placeopt.kubernetes.verify import verify
from placeopt.plot.blocks import html

RUNNER = CliRunner()


def why(answer: Any, name: str) -> str:
    """Return the reasons of a node."""
    (found,) = (n for n in answer["nodes"] if n["name"] == name)
    assert found["reasons"]
    return "; ".join(f"{r['subject']} {r['text']}" for r in found["reasons"])


def test_frees_a_node_and_deletes_an_empty_one(tmp_path: Path) -> None:
    items = [node("n1"), node("n2"), node("n3"), pod("web-1", "n1"), pod("web-2", "n2")]
    found = answered(tmp_path, items)
    assert (found["cost_now"], found["cost_after"], found["unit"]) == (3, 1, "nodes")
    assert found["idle"] == ["n3"]
    assert len(found["gone"]) == 2
    assert (found["moves"], found["stops"], found["at_most"]) == (1, 0, 0)
    said = why(found, found["nodes"][0]["name"])
    assert "is proven" in said or "no room" in said


def test_names_workloads_whose_replicas_all_end_in_one_place(tmp_path: Path) -> None:
    items = [node("n1"), node("n2"), pod("web-1", "n1"), pod("web-2", "n2")]
    assert answered(tmp_path, items)["together"] == ["shop/web (one node)"]
    said = "which no rule forbids: shop/web (one node)."
    assert said in told(tmp_path, form="markdown")
    apart = [pod(f"web-{k}", f"n{k}", affinity=APART) for k in (1, 2)]
    assert answered(tmp_path, [*items[:2], *apart])["together"] == []


@pytest.mark.parametrize(
    ("more", "reason", "change"),
    [
        ({"annotations": KEEP}, "do-not-disrupt", "remove"),
        ({"owner": None}, "without a controller", "give shop/web-2 a Deployment"),
        ({"owner": "StatefulSet"}, "StatefulSet", "as a Deployment"),
        ({"volumes": [{"name": "v", "emptyDir": {}}]}, "emptyDir", "safe-to-evict"),
        ({"volumes": [{"name": "v", "hostPath": {"path": "/x"}}]}, "hostPath", "safe-to-evict"),
        ({"hostNetwork": True}, "port of their node", "without a port"),
    ],
)
def test_says_what_holds_a_node_and_what_lifting_it_saves(
    tmp_path: Path, more: dict[str, Any], reason: str, change: str
) -> None:
    items = [node("n1"), node("n2", "3"), pod("web-1", "n1"), pod("web-2", "n2", **more)]
    items.append(pod("db-1", "n1", owner="StatefulSet"))
    found = answered(tmp_path, items)
    assert found["cost_after"] == 2
    assert reason in why(found, "n2")
    lifts = [one for one in found["lifts"] if change in one["change"] and "n2" in one["frees"]]
    assert [one["saves"] for one in lifts] == [1]


def test_says_which_rule_holds_a_node(tmp_path: Path) -> None:
    items = [node("n1"), node("n2"), *(pod(f"web-{k}", f"n{k}", affinity=APART) for k in (1, 2))]
    found = answered(tmp_path, items)
    assert found["cost_after"] == 2
    held = why(found, "n1") + why(found, "n2")
    assert "shop/web required: anti-affinity by hostname" in held
    (lift,) = (one for one in found["lifts"] if one["saves"])
    assert lift["saves"] == 1


def test_what_stays_whatever_runs_there(tmp_path: Path) -> None:
    control = node("cp", labels={"node-role.kubernetes.io/control-plane": ""})
    disabled = {"cluster-autoscaler.kubernetes.io/scale-down-disabled": "true"}
    kept = node("kept", annotations=disabled)
    items = [control, kept, node("c", unschedulable=True), node("n1"), node("n2")]
    found = answered(tmp_path, [*items, pod("web-1", "n1")])
    # As they become empty: the pod fits beside the control plane.
    assert found["gone"] == ["n2", "n1"]
    assert "control plane" in why(found, "cp")
    assert "scale-down-disabled" in why(found, "kept")
    assert "cordoned" in why(found, "c")


def test_plans_that_stop_are_named_and_taken_only_when_allowed(tmp_path: Path) -> None:
    """Two nodes are full, so that no copy starts before another ends; a budget forbids that."""
    whole = budget("all", "shop", minAvailable="100%", selector={})
    items = [node("n1", "4"), node("n2", "4"), node("n3", "2"), whole]
    items += [pod("a-1", "n1", "3"), pod("b-1", "n2", "2"), pod("c-1", "n2", "2")]
    items += [pod("d-1", "n3", "1")]
    found = answered(tmp_path, items)
    assert found["stops"] == 0
    other = answered(tmp_path, items, "--allow-stops")
    assert other["cost_after"] <= found["cost_after"]


def test_exit_code_formats_and_files(tmp_path: Path) -> None:
    arguments = ["consolidate", "shop", "--prices", "shop"]
    out = tmp_path / "out"
    done = RUNNER.invoke(app, [*arguments, "-o", str(out), "--fail-above", "1"])
    assert done.exit_code == 3
    found = json.loads(done.stdout)
    assert found["unit"] == "USD a month"
    assert {p.name for p in out.iterdir()} == {*FILES, "instance.origin.json"}
    assert "Nodes that stay" in (out / "report.html").read_text()
    checked = RUNNER.invoke(app, ["verify", str(out / "steps.json"), "--cluster", "shop"])
    assert checked.exit_code == 0, checked.output
    more = str(found["cost_now"])
    done = RUNNER.invoke(app, [*arguments, "--format", "table", "--fail-above", more])
    assert done.exit_code == 0
    assert "Why" in done.stdout
    assert RUNNER.invoke(app, [*arguments, "--format", "markdown"]).stdout.startswith("## ")


def test_bad_use_is_one_message(tmp_path: Path) -> None:
    file = tmp_path / "manifest.json"
    file.write_text(json.dumps({"kind": "List", "items": [node("n1")]}))
    for arguments in (["shop", "--format", "xml"], ["shop", "-o", str(file)], [str(file)]):
        done = RUNNER.invoke(app, ["consolidate", *arguments])
        assert isinstance(done.exception, PlaceoptError), arguments


@pytest.mark.parametrize(("count", "enough"), [(2, 1), (4, 2), (6, 3)])
def test_a_spread_over_hostnames_does_not_count_nodes_that_are_deleted(
    tmp_path: Path, count: int, enough: int
) -> None:
    """Each node that is emptied is deleted before the next step; a scheduler takes every copy."""
    items = [node(f"n{k}") for k in range(count)]
    items += [pod(f"web-{k}", f"n{k}", topologySpreadConstraints=SPREAD) for k in range(count)]
    out = tmp_path / "out"
    found = answered(tmp_path, items, "-o", str(out))
    assert found["nodes_after"] == enough
    steps = json.loads((out / "steps.json").read_text())
    assert [s["from"] for s in steps["steps"] if s["deletes_node"]] == found["gone"]
    assert any("deletes" in text for text in steps["warnings"])
    assert replay(items, steps) == []
    kept = {**steps, "steps": [s | {"deletes_node": False} for s in steps["steps"]]}
    assert replay(items, kept)
    script = (out / "steps.sh").read_text()
    assert all(f"\ndiscard {name}\n" in script for name in found["gone"])
    spread = dict(SPREAD[0], minDomains=2)
    for thing in items:
        if thing["kind"] == "Pod":
            thing["spec"]["topologySpreadConstraints"] = [spread]
    held = answered(tmp_path, items)
    assert held["nodes_after"] == count
    assert "spread over hostnames" in why(held, "n0") + why(held, "n1")


def test_idle_nodes_leave_before_the_first_step_where_a_spread_counts_them(tmp_path: Path) -> None:
    """Two of four nodes host nothing; without them one node is enough for a spread over two."""
    items = [node(f"n{k}") for k in range(4)]
    items += [pod(f"web-{k}", f"n{k}", topologySpreadConstraints=SPREAD) for k in range(2)]
    out = tmp_path / "out"
    found = answered(tmp_path, items, "-o", str(out))
    assert (found["nodes_after"], found["idle"]) == (1, ["n2", "n3"])
    steps = json.loads((out / "steps.json").read_text())
    assert (steps["idle"], steps["deletes_idle"]) == (["n2", "n3"], True)
    assert replay(items, steps) == []
    assert replay(items, {**steps, "idle": []})
    checked = verify(StepsDocument(**steps), load([tmp_path / "cluster.json"]))
    assert checked == []
    assert verify(StepsDocument(**{**steps, "idle": []}), load([tmp_path / "cluster.json"]))
    script = (out / "steps.sh").read_text()
    assert script.index("\ndiscard n2\n") < script.index("\nstep 1 ")
    items[3]["metadata"]["annotations"] = KEEP
    held = answered(tmp_path, items, "-o", str(out))
    assert (held["gone"][0], sorted(held["gone"])) == ("n2", ["n0", "n1", "n2"]), "n3 stays"
    assert held["idle"] == ["n2"]
    assert json.loads((out / "steps.json").read_text())["idle"] == ["n2"]


def test_idle_nodes_are_cordoned_at_the_end(tmp_path: Path) -> None:
    items = [*(node(f"n{k}") for k in range(3)), pod("web-0", "n0"), pod("api-0", "n1")]
    out = tmp_path / "out"
    answered(tmp_path, items, "-o", str(out))
    steps = json.loads((out / "steps.json").read_text())
    assert (steps["idle"], steps["deletes_idle"]) == (["n2"], False)
    assert any("nothing runs on 1 node" in text for text in steps["warnings"])
    script = (out / "steps.sh").read_text()
    assert script.index("\nstep 1 ") < script.index("\nretire n2\n")


def test_machines_to_buy_are_no_domains_until_they_are_bought(tmp_path: Path) -> None:
    items = [node(f"n{k}") for k in range(2)]
    items += [pod(f"web-{k}", f"n{k}", topologySpreadConstraints=SPREAD) for k in range(2)]
    table = tmp_path / "buy.csv"
    table.write_text("machine_type,cpu,memory,on_demand_usd_per_hour\nm5.large,4,8Gi,9\n")
    options = ("--candidates", str(table), "--missing-prices", "default=0.1")
    assert answered(tmp_path, items, *options)["nodes_after"] == 1


def test_a_control_plane_is_never_deleted(tmp_path: Path) -> None:
    items = [node(f"n{k}", labels={"node-role.kubernetes.io/master": ""}) for k in range(4)]
    items += [pod(f"web-{k}", f"n{k}", topologySpreadConstraints=SPREAD) for k in range(4)]
    found = answered(tmp_path, items, "-o", str(tmp_path / "out"))
    assert (found["gone"], found["moves"]) == ([], 0)


def test_a_plan_may_end_after_each_of_its_stages(tmp_path: Path) -> None:
    """What the first steps save is what a plan of them alone saves."""
    items = [node(f"n{k}") for k in range(4)]
    items += [pod(f"w{k}-{j}", f"n{k}", "500m") for k in range(3) for j in range(k + 1)]
    out = tmp_path / "out"
    found = answered(tmp_path, items, "-o", str(out))
    assert [stage["node"] for stage in found["stages"]] == found["gone"] != []
    saves = [stage["saves"] for stage in found["stages"]]
    assert saves == sorted(saves) and saves[-1] == found["cost_now"] - found["cost_after"]
    assert found["stages"][0] == {"steps": 0, "node": "n3", "saves": 1}
    problem = api.load(out / "instance.json")
    steps = json.loads((out / "front.json").read_text())["points"][0]["plan"]["steps"]
    for stage in found["stages"]:
        part = problem.evaluate({"steps": steps[: stage["steps"]]})
        assert part.feasible and part.values[0] == found["cost_now"] - stage["saves"]
    assert "What the first steps save:" in told(tmp_path)


@pytest.mark.parametrize(("count", "title"), [(1, "Why 1 node stays"), (2, "Why 2 nodes stay")])
def test_each_renderer_says_the_same(tmp_path: Path, count: int, title: str) -> None:
    """The nodes that go, those that stay and why; what lifting saves."""
    items = [node(f"n{k}") for k in range(count + 2)]
    items += [pod(f"web-{k}", f"n{k}", annotations=KEEP) for k in range(count)]
    items += [pod("api-0", f"n{count}")]
    found = ConsolidationAnswer.model_validate(answered(tmp_path, items))
    made = blocks(found)
    texts = on_screen(made, 80), markdown(found), html(made)
    gone = f"These nodes go, in this order: n{count + 1}, n{count}."
    for text in texts:
        assert gone in text and title in text and "annotated do-not-disrupt" in text
        assert ("What to lift" in text) == (count == 2)
    assert all(len(line) <= 80 for line in texts[0].splitlines())


# -- parts of a plan, one node alone, equally good plans -------------------------------------------


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
        one["metadata"]["labels"] |= {KIND_KEY: "m", "topology.kubernetes.io/region": "us"}
    prices.write_text("location,size,on_demand_usd_per_hour\nus,m,0.1\n")
    priced = "--prices", str(prices), "--max-moves", "1"
    found = answered(tmp_path, items, *priced, "--restart-cost", "10")
    assert (found["starts"], found["days_to_pay"]) == (1, round(10 / 4.8, 2))
    assert answered(tmp_path, items, *priced)["days_to_pay"] is None
    said = told(tmp_path, *priced, "--restart-cost", "10")
    assert "The plan pays for its 1 restart in 2.08 days." in said


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
    text = told(tmp_path, "--remove", "n0")
    assert text.startswith("n0 stays: ") and says in text


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
    text = told(tmp_path, "--remove", "n1")
    assert says in text and "proven" not in text


def test_a_limit_that_no_part_keeps_is_said(tmp_path: Path) -> None:
    items = [node("n0"), node("n1"), pod("a-0", "n0"), pod("b-0", "n1")]
    answered(tmp_path, items)
    said = told(tmp_path, "--max-moves", "0")
    assert said.startswith("No part of the plan keeps the limits.")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--remove", "n9"], "--remove 'n9': no such node; legal: n0"),
        (["--remove", "n1", "--candidates", "more.csv"], "leave out --candidates"),
    ],
)
def test_bad_use_of_limits_is_one_message(tmp_path: Path, options: list[str], says: str) -> None:
    answered(tmp_path, crowd())
    done = consolidated(tmp_path, *options)
    assert done.exit_code != 0
    assert says in str(done.exception) or says in done.output


def test_replicas_stay_in_more_zones_where_that_costs_nothing(tmp_path: Path) -> None:
    """Both copies of web are in one zone at first; one of them has to move, whatever is done."""
    zones = {"n0": "a", "n1": "a", "n2": "b", "n3": "b"}
    sizes = {"n0": "1"}
    items = [node(n, sizes.get(n, "3"), labels={ZONE_KEY: zone}) for n, zone in zones.items()]
    items += [pod("web-1", "n0"), pod("web-2", "n1"), pod("db-1", "n1", owner="StatefulSet")]
    items += [pod("api-1", "n2", owner="StatefulSet"), pod("api-2", "n2"), pod("log-1", "n3")]
    found = answered(tmp_path, items)
    assert found["cost_now"] - found["cost_after"] == 2
    assert not [name for name in found["together"] if "shop/web" in name]
