"""The report for those who approve a rolling update: money first, names of the cluster, caveats."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from placeopt import api
from placeopt.cli import main
from placeopt.core.front import Front
from placeopt.kubernetes import origin as origins
from placeopt.kubernetes.approval import approve, markdown

NODES = [
    {"name": n, "cluster": z, "cpu_millicores": 4000, "memory_mib": 8192, "price": 0.5}
    for n, z in (("n1", "a"), ("n2", "b"), ("n3", "a"))
]
PODS = {"cart-7d-a": "n1", "cart-7d-b": "n2", "web-5c-a": "n2", "db-0": "n3"}


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """Write an instance, its origin and a front; return the folder."""
    sizes = {"cpu_millicores": 500, "memory_mib": 512}
    services = [{"name": pod, "node": node, **sizes} for pod, node in PODS.items()]
    document = {"problem": "rolling-update", "name": "shop", "nodes": NODES}
    document["applications"] = [{"name": "shop", "microservices": services}]
    (tmp_path / "shop.json").write_text(json.dumps(document))
    problem = api.load(tmp_path / "shop.json")
    items = {
        f"shop/{pod}": {
            "namespace": "shop",
            "kind": "StatefulSet" if pod == "db-0" else "Deployment",
            "name": pod.split("-")[0],
            "pod": pod,
            "node": node,
        }
        for pod, node in PODS.items()
    }
    name = problem.instance_name
    known = {
        "instance": {"problem": name.problem, "name": name.name, "sha256": name.sha256},
        "items": items,
        "price_unit": "USD/h",
        "notes": [
            {"topic": "pinned", "text": "pods with <b> local", "count": 9, "subjects": ["shop/x"]},
            {"topic": "ignored", "text": "not for approvers", "count": 1},
        ],
    }
    origins.write(tmp_path / "shop.origin.json", origins.Origin.model_validate(known))
    steps = [("cart-7d-b", "n1"), ("web-5c-a", "n1")]
    plan = {"steps": [{"application": "shop", "microservice": m, "to": n} for m, n in steps]}
    front = api.solve(problem, "repack", seed=1).to_document()
    front["points"] = [{"values": [1.0, 2.0, 0.0], "plan": plan, "status": "heuristic"}]
    (tmp_path / "front.json").write_text(json.dumps(front))
    return tmp_path


def run(folder: Path, *more: str) -> int:
    names = [str(folder / name) for name in ("front.json", "shop.json")]
    with pytest.raises(SystemExit) as ended:
        main(["report", names[0], "--instance", names[1], *more])
    return int(ended.value.code or 0)


def test_figures(shop: Path) -> None:
    """Cost before and after and a month of it, nodes freed, pods moved, downtime; the bound."""
    problem, front = api.load(shop / "shop.json"), Front.read(shop / "front.json")
    known = origins.read(shop / "shop.origin.json")
    made = approve(front, problem, 0, known)
    assert made.tiles() == [
        ("cost of nodes in use", "1.5 → 1 USD/h", "-33%, 365 USD a month"),
        ("nodes freed", "1", "3 → 2 of 3 in use"),
        ("pods that move", "2", "no other"),
        ("downtime", "none", "every copy runs before the old one ends"),
    ]
    assert made.freed == ["n2"] and made.leaving == [("n2", 2, "shop/cart, shop/web")]
    cart = made.workloads[0]
    assert (cart.name, cart.nodes_before, cart.nodes, cart.zones) == ("shop/cart", [1, 1], [2], [2])
    assert made.headroom[0] == ("cpu", 2000 / 12000, 2000 / 8000)
    assert "at most 0.5 USD/h above" in made.gap()


def test_stateful_sets_and_stops_are_downtime(shop: Path) -> None:
    problem, front = api.load(shop / "shop.json"), Front.read(shop / "front.json")
    known = origins.read(shop / "shop.origin.json")
    moves: list[tuple[str, Any]] = [("db-0", "n1"), ("web-5c-a", None), ("web-5c-a", "n1")]
    steps = [{"application": "shop", "microservice": m, "to": n} for m, n in moves]
    front.points[0].plan["steps"] = steps
    made = approve(front, problem, 0, known)
    assert made.downtime == ["shop/web (1 of 1 for a while)", "shop/db (1 of 1 for a while)"]


def test_the_page_begins_with_money_and_says_what_it_rests_on(shop: Path) -> None:
    assert run(shop, "--point", "0", "-o", str(shop / "r.html")) == 0
    page = (shop / "r.html").read_text(encoding="utf-8")
    first = page[page.index('<section id="short"') : page.index('<section id="asked"')]
    assert "365 USD a month" in first and "all on one node" in first
    assert "pods with &lt;b&gt; local: 9 (shop/x)" in first and "not for approvers" not in page
    assert "<b> local" not in page and 'class="chart' not in page  # one point: nothing to trade
    assert "there is nothing to trade" in page and "max-width: 520px" in page


def test_markdown_for_a_pull_request(shop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(shop, "--point", "0", "--format", "markdown") == 0
    text = capsys.readouterr().out
    assert text.startswith("## Plan for shop\n\n* **cost of nodes in use: 1.5 → 1 USD/h** (-33%")
    assert (
        "| n2 | 2 | shop/cart, shop/web |" in text and "| shop/cart | 2 | 1 + 1 | 2 | 2 |" in text
    )
    assert "pods with &lt;b&gt; local" in text


def test_an_exit_code_for_pipelines(shop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """3 where the plan saves too little or breaks the instance; 2 for a wrong format."""
    asked = ("--point", "0", "--format", "markdown", "--min-saving")
    assert run(shop, *asked, "0.5") == 0
    assert run(shop, *asked, "0.6") == 3
    assert "saves 0.5, less than 0.6" in capsys.readouterr().err
    assert run(shop, "--format", "pdf") == 2


def test_names_of_the_cluster_are_no_markup(shop: Path) -> None:
    problem, front = api.load(shop / "shop.json"), Front.read(shop / "front.json")
    text = markdown(approve(front, problem, 0), "<script>|x|\n# y")
    assert "<script>" not in text and "\\|x\\|" in text and "\n# y" not in text
