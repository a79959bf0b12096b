"""The report for those who approve a rolling update: money first, names of the cluster, caveats."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from browser import Page, needs_chromium
from made_clusters import made_cluster, prices

from placeopt import api
from placeopt.cli import main
from placeopt.core.fronts.front import Front
from placeopt.kubernetes import origin as origins
from placeopt.kubernetes.approval import ApprovalPage, approve, markdown
from placeopt.kubernetes.importing import Imported, import_files
from placeopt.kubernetes.moving import MovingRules
from placeopt.kubernetes.options import ImportOptions
from placeopt.report import html
from placeopt.rolling_update import views as summary

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
    assert (cart.name, cart.nodes_before, cart.nodes, cart.zones) == (
        "shop/cart",
        [1, 1],
        [2],
        {"a": 2},
    )
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
    assert "365 USD a month" in first and ">falls: one zone<" in first
    assert "pods with &lt;b&gt; local: 9 (shop/x)" in first and "not for approvers" not in page
    assert "<b> local" not in page and 'class="chart' not in page  # one point: nothing to trade
    assert "there is nothing to trade" in page and "max-width: 520px" in page


def test_markdown_for_a_pull_request(shop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(shop, "--point", "0", "--format", "markdown") == 0
    text = capsys.readouterr().out
    assert text.startswith("## Plan for shop\n\n* **cost of nodes in use: 1.5 → 1 USD/h** (-33%")
    assert (
        "| n2 | 2 | shop/cart, shop/web |" in text
        and "| shop/cart | 2 | 1 + 1 | 2 | a 1, b 1 | a 2 | falls: one zone |" in text
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


@pytest.fixture(scope="module")
def prod(tmp_path_factory: pytest.TempPathFactory) -> tuple[Imported, Front]:
    """Import a cluster of twelve nodes with all kinds of rules, and solve it."""
    folder = tmp_path_factory.mktemp("prod")
    (folder / "cluster.json").write_text(json.dumps({"kind": "List", "items": made_cluster(3, 12)}))
    (folder / "prices.csv").write_text(prices())
    options = ImportOptions(name="prod", rules=MovingRules())
    files = [folder / "cluster.json"]
    made = import_files(files, "rolling-update", options, prices=[folder / "prices.csv"])
    return made, api.solve(made.problem, "repack", seed=1)


@needs_chromium
def test_the_report_can_be_read_on_a_telephone(
    chromium: Page, prod: tuple[Imported, Front], tmp_path: Path
) -> None:
    """At 420 pixels nothing sticks out but inside what scrolls, and the figures are on top."""
    made, front = prod
    told = ApprovalPage(approve(front, made.problem, 0, made.origin))
    page = html(front, problem=made.problem, index=0, approved=told)
    (tmp_path / "r.html").write_text(page, encoding="utf-8")
    outside = "e => !e.closest('.scroll') && !e.closest('.drawing') && e.checkVisibility()"
    boxes = f"[...document.querySelectorAll('body *')].filter({outside})"
    chromium.open(tmp_path / "r.html", 420)
    chromium.wait("!!document.querySelector('#charts svg')")
    assert chromium.run("document.documentElement.scrollWidth") <= 420
    ends = f"{boxes}.map(e => e.getBoundingClientRect().right)"
    assert chromium.run(f"Math.max(...{ends})") <= 420
    tiles = "[...document.querySelectorAll('.tile dt')].map(e => e.textContent)"
    assert chromium.run(f"JSON.stringify({tiles})") == json.dumps(
        ["cost of nodes in use", "nodes freed", "pods that move", "downtime"],
        separators=(",", ":"),
    )
    first = "document.querySelector('.tile:last-child').getBoundingClientRect().bottom"
    assert chromium.run(first) <= 600  # above the fold
    assert chromium.errors == [] and chromium.requests == []


def test_what_is_counted_is_what_the_cluster_has(prod: tuple[Imported, Front]) -> None:
    """Nodes and pods of a cluster with all kinds of rules: nothing made up is among them."""
    made, front = prod
    names = {o["metadata"]["name"] for o in made_cluster(3, 12) if o["kind"] == "Node"}
    asked = dict(summary.instance(made.problem))
    assert {n.name for n in made.problem.nodes} <= names
    count, used = (int(asked["nodes"].split()[k]) for k in (0, 4))
    assert count == len(made.problem.nodes) and used <= count
    approval = approve(front, made.problem, 0, made.origin)
    assert approval.nodes[:2] == (count, used)


def test_steps_are_told_by_workloads(shop: Path) -> None:
    """In order, with what interrupts; no name of a pod."""
    problem, front = api.load(shop / "shop.json"), Front.read(shop / "front.json")
    known = origins.read(shop / "shop.origin.json")
    moves: list[tuple[str, Any]] = [("cart-7d-b", "n1"), ("db-0", "n1"), ("web-5c-a", None)]
    moves += [("web-5c-a", "n1"), ("cart-7d-a", "n1")]
    steps = [{"application": "shop", "microservice": m, "to": n} for m, n in moves]
    front.points[0].plan["steps"] = steps
    made = approve(front, problem, 0, known)
    assert list(made.journeys()) == [
        ("shop/cart", "move", "plain", "n2", "n1"),
        ("shop/db", "move", "bad", "n3", "n1"),
        ("shop/web", "stop", "bad", "n2", None),
        ("shop/web", "start", "plain", None, "n1"),
        ("shop/cart", "restart", "plain", "n1", "n1"),
    ]
    page = ApprovalPage(made).html()
    assert "Steps, in order (5)" in page and "cart-7d" not in page


def test_a_gap_in_words(shop: Path) -> None:
    """In money, or that nothing is cheaper, or that it is not known."""
    problem, front = api.load(shop / "shop.json"), Front.read(shop / "front.json")
    for bounds, said in (
        (((1.0, 0.0, 0.0),), "No plan is cheaper: that is proven."),
        (((0.75, 0.0, 0.0),), "at most 0.25 above what is possible"),
        ((), "How much cheaper a plan could be is not known."),
    ):
        assert said in approve(replace(front, bounds=bounds), problem, 0).gap()
