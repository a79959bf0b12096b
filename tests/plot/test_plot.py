"""Drawings: of every size of front, in one file, of plans, refused where they cannot be made."""

from __future__ import annotations

import importlib.util
import re
import struct
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("matplotlib")
pytest.importorskip("plotly")

from placeopt.core.errors import MissingExtraError, UnsupportedError, UsageError
from placeopt.core.front import Front, InstanceName, Objective, Point, Run
from placeopt.plot import find_instance, plot_front, plot_plan, require
from placeopt.plot.html import drawings, page
from placeopt.plot.style import label
from placeopt.temporal.instance import Temporal

GOALS = (
    Objective("latency_ms", "ms"),
    Objective("cost_usd", "USD"),
    Objective("interruption", "share"),
    Objective("moves", "pods"),
)


@pytest.fixture(scope="module")
def problem() -> Temporal:
    return Temporal.generate(3, requests=4, horizon=12, places=2)


def plan_of(problem: Temporal) -> dict[str, Any]:
    """One machine of every price for the requests that fit it."""
    (offer,) = [o for o in problem.offers if (o.location, o.size) == ("eu-south-1", "t4g.2xlarge")]
    pricings = ("reserved", "spot", "on-demand", "spot")
    instances = [
        {
            "location": offer.location,
            "size": offer.size,
            "pricing": pricing,
            "replicas": [[r.name, k]],
        }
        for r, pricing in zip(problem.requests, pricings, strict=True)
        for k in range(r.replicas)
    ]
    return {"starts": {r.name: 0 for r in problem.requests}, "instances": instances}


def front(
    problem: Temporal, width: int = 3, *, bounds: bool = False, name: str | None = None
) -> Front:
    rng = np.random.default_rng(4)
    values = rng.dirichlet(np.ones(width), size=30) * 50
    points = tuple(
        Point(
            tuple(v),
            plan_of(problem),
            ("heuristic", "optimal", "bounded")[k % 3],
            0.1 if k % 3 == 2 else None,
            ("nsga3", "moead")[k % 2],
            1,
        )
        for k, v in enumerate(values.tolist())
    )
    lower = tuple(tuple(x * 0.9 for x in v) for v in values.tolist()) if bounds else ()
    instance = problem.instance_name if name is None else InstanceName("temporal", name, "0" * 64)
    return Front(instance, GOALS[:width], points, lower, (Run("nsga3", 1, 1.0, 100),))


@pytest.mark.parametrize("bounds", [False, True])
@pytest.mark.parametrize("width", [1, 2, 3, 4])
def test_every_width_of_front_is_drawn(
    problem: Temporal, tmp_path: Path, width: int, bounds: bool
) -> None:
    """As HTML, with bounds and without; the file stands alone."""
    plot_front(front(problem, width, bounds=bounds), tmp_path / "f.html", problem=problem)
    text = (tmp_path / "f.html").read_text(encoding="utf-8")
    assert text.count("Plotly.newPlot(") == {1: 1, 2: 1, 3: 5, 4: 8}[width]
    assert not re.search(r"<(script|link|img)[^>]*(src|href)=", text), (
        "nothing is loaded from elsewhere"
    )
    assert len(text) > 3_000_000, "plotly itself is inside"
    assert ("lower bound" in text.split("</script>", 1)[1]) == bounds


def test_a_page_may_load_plotly_from_the_network(problem: Temporal, tmp_path: Path) -> None:
    """Small files, of fronts and plans; the script is loaded once and checked by its hash."""
    plot_front(front(problem), tmp_path / "f.html", cdn=True)
    plot_plan(front(problem), 0, tmp_path / "p.html", problem=problem, cdn=True)
    for name in ("f.html", "p.html"):
        text = (tmp_path / name).read_text(encoding="utf-8")
        assert len(text) < 300_000
        assert len(re.findall(r'<script[^>]* src="https://cdn.plot.ly/', text)) == 1


@pytest.mark.parametrize("width", [1, 2, 3, 4])
def test_figures_have_the_resolution_of_print(
    problem: Temporal, tmp_path: Path, width: int
) -> None:
    """PNG of every width of front."""
    plot_front(front(problem, width, bounds=True), tmp_path / "f.png")
    assert min(struct.unpack(">II", (tmp_path / "f.png").read_bytes()[16:24])) >= 700


@pytest.mark.parametrize(
    ("suffix", "magic"), [(".png", b"\x89PNG"), (".pdf", b"%PDF"), (".svg", b"<?xml")]
)
def test_the_same_front_gives_the_same_file(
    problem: Temporal, tmp_path: Path, suffix: str, magic: bytes
) -> None:
    """No dates, no chance."""
    for k in (1, 2):
        plot_front(front(problem, 2), tmp_path / f"{k}{suffix}")
    data = (tmp_path / f"1{suffix}").read_bytes()
    assert data.startswith(magic) and data == (tmp_path / f"2{suffix}").read_bytes()


def test_hovering_shows_values_units_status_method_and_plan(problem: Temporal) -> None:
    """Escaped, so that a name cannot be markup."""
    text = page(front(problem, 2, name="<b>mine</b> & yours"), problem)
    shown = text.split("</script>", 1)[1]
    said = ("point 3", "latency_ms: ", "USD", "optimal, moead, seed 1", "bounded (gap 10.00%)")
    for part in (*said, "machines: ", "t4g.2xlarge reserved", "replicas on spot"):
        assert part in shown, part
    assert "&lt;b&gt;mine&lt;/b&gt; &amp; yours" in text and "<b>mine" not in text


@pytest.mark.parametrize("suffix", [".png", ".pdf", ".html"])
def test_plans_are_drawn(problem: Temporal, tmp_path: Path, suffix: str) -> None:
    """Machines over slots."""
    plot_plan(front(problem), 0, tmp_path / f"plan{suffix}", problem=problem)
    assert (tmp_path / f"plan{suffix}").stat().st_size > 5_000


def test_lanes_of_a_plan_carry_its_loads(problem: Temporal) -> None:
    """What is drawn adds up to the replicas' demands over their slots."""
    from placeopt.temporal.drawing import _lanes

    lanes = _lanes(problem, plan_of(problem))
    size = next(o for o in problem.offers if o.size == "t4g.2xlarge").cpu_cores
    drawn = sum(lane.load.sum() for lane in lanes) * size
    assert drawn == pytest.approx(
        sum(r.replicas * r.cpu_cores * r.duration_slots for r in problem.requests)
    )
    assert len(lanes) == sum(r.replicas for r in problem.requests)


def test_the_instance_is_found_beside_the_front(problem: Temporal, tmp_path: Path) -> None:
    """By its content, among whatever else is there."""
    assert find_instance(front(problem), tmp_path / "f.json") is None
    (tmp_path / "a.json").write_text("[")
    Temporal.generate(9).write(tmp_path / "b.json")
    problem.write(tmp_path / "c.json")
    assert find_instance(front(problem), tmp_path / "f.json") == problem


def test_what_cannot_be_drawn_says_why(
    problem: Temporal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other endings, empty fronts, unknown instances, no drawings, missing packages."""
    with pytest.raises(
        UsageError, match=r"cannot draw 'f.gif'; end the name in .html, .png, .pdf, .svg"
    ):
        require("f.gif")
    with pytest.raises(UsageError, match="has no points to draw"):
        plot_front(replace(front(problem), points=()), tmp_path / "f.png")
    with pytest.raises(
        UsageError, match="needs the instance 'generated-4-seed3'; name its file with --instance"
    ):
        plot_plan(front(problem), 0, tmp_path / "f.png", problem=None)
    bare = replace(problem.spec, drawing=None)
    monkeypatch.setattr(Temporal, "spec", bare)
    with pytest.raises(UnsupportedError, match="plans of temporal have no drawing"):
        plot_plan(front(problem), 0, tmp_path / "f.png", problem=problem)
    with pytest.raises(UsageError, match=r"--cdn is for .html files, and 'f.png' is none"):
        require("f.png", cdn=True)
    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util,
        "find_spec",
        lambda name, *more: None if name == "plotly" else found(name, *more),
    )
    with pytest.raises(
        MissingExtraError,
        match=r"drawing .html files needs the optional packages of placeopt\[plot\]: pip install",
    ):
        require("f.html")


def test_labels_name_the_unit_once() -> None:
    """The unit in the field's name moves into brackets."""
    assert [label(goal) for goal in GOALS] == [
        "latency (ms)",
        "cost (USD)",
        "interruption (share)",
        "moves (pods)",
    ]


def test_maximised_goals_say_so_and_have_their_best_end_where_the_others_have_it() -> None:
    goals = (Objective("cost", "EUR"), Objective("profit", "EUR", sense="max"), Objective("n", ""))
    points = tuple(Point((float(k), float(10 * k), float(3 - k)), {}) for k in range(4))
    mixed = Front(InstanceName("model", "m", ""), goals, points, ((0.0, 30.0, 0.0),))
    space, parallel, *planes = (figure for _, figure in drawings(mixed))
    assert space.layout.scene.yaxis.title.text == "profit (EUR), maximised"
    assert planes[0].layout.yaxis.title.text == "profit (EUR), maximised"
    assert {trace.name for trace in planes[0].data} == {"bound", "unknown", "knee"}
    cost, profit, _ = parallel.data[0].dimensions
    assert cost.range is None and profit.range == (30.0, 0.0)
    assert "Grey crosses: proven bounds." in page(mixed, cdn=True)
    names = {None: "lower bound", "max": "upper bound"}
    for sense, name in names.items():
        one = replace(
            mixed,
            objectives=(Objective("profit", "EUR", sense=sense or "min"),),
            points=(Point((3.0,), {}),),
            bounds=((4.0,) if sense else (2.0,),),
        )
        assert drawings(one)[0][1].layout.annotations[0].text == name
