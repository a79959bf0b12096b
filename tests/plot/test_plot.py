"""Drawings: of every size of front, in one file, of plans, refused where they cannot be made."""

from __future__ import annotations

import importlib.util
import struct
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from placeopt.core.errors import MissingExtraError, UnsupportedError, UsageError
from placeopt.core.fronts.front import Front
from placeopt.core.fronts.values import InstanceName, Objective, Point, Run
from placeopt.core.fronts.words import label
from placeopt.plot import find_instance, plot_front, plot_plan, require
from placeopt.plot.front_page import page
from placeopt.plot.scene import Outline
from placeopt.temporal.problem import Temporal

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
    """As HTML, with bounds and without."""
    plot_front(front(problem, width, bounds=bounds), tmp_path / "f.html", problem=problem)
    text = (tmp_path / "f.html").read_text(encoding="utf-8")
    assert ('"bounds":[]' in text) != bounds and "machines" not in text, "plans are packed"


@pytest.mark.parametrize("width", [1, 2, 3, 4])
def test_figures_have_the_resolution_of_print(
    problem: Temporal, tmp_path: Path, width: int
) -> None:
    """PNG of every width of front."""
    plot_front(front(problem, width, bounds=True), tmp_path / "f.png")
    assert min(struct.unpack(">II", (tmp_path / "f.png").read_bytes()[16:24])) >= 700


@pytest.mark.parametrize(
    ("suffix", "magic"), [(".png", b"\x89PNG"), (".pdf", b"%PDF"), (".svg", b"<svg")]
)
def test_the_same_front_gives_the_same_file(
    problem: Temporal, tmp_path: Path, suffix: str, magic: bytes
) -> None:
    """No dates, no chance."""
    for k in (1, 2):
        plot_front(front(problem, 2), tmp_path / f"{k}{suffix}")
        plot_plan(front(problem), 0, tmp_path / f"plan{k}{suffix}", problem=problem)
    data = (tmp_path / f"1{suffix}").read_bytes()
    assert data.startswith(magic) and data == (tmp_path / f"2{suffix}").read_bytes()
    plan = (tmp_path / f"plan1{suffix}").read_bytes()
    assert plan.startswith(magic)
    assert plan == (tmp_path / f"plan2{suffix}").read_bytes()


@pytest.mark.parametrize("suffix", [".png", ".pdf", ".svg", ".html"])
def test_plans_are_drawn(problem: Temporal, tmp_path: Path, suffix: str) -> None:
    """Machines over slots."""
    plot_plan(front(problem), 0, tmp_path / f"plan{suffix}", problem=problem)
    assert (tmp_path / f"plan{suffix}").stat().st_size > 3_000


def test_the_page_of_a_plan_tells_it_as_well(problem: Temporal, tmp_path: Path) -> None:
    """Facts, drawing, tables; a policy that runs nothing."""
    plot_plan(front(problem), 3, tmp_path / "plan.html", problem=problem)
    text = (tmp_path / "plan.html").read_text(encoding="utf-8")
    assert "script-src 'none'" in text and "<script" not in text and len(text) < 100_000
    for part in ("<svg", "machines", "replicas on spot", "<table", "point 3: latency"):
        assert part in text, part


def test_blocks_of_a_plan_say_where_and_when(problem: Temporal) -> None:
    """Each block of a machine names its request, its slots and its shares."""
    plan = plan_of(problem)
    drawn = problem.spec.load("drawing").scene(problem, plan)
    said = [shape.title for shape in drawn.shapes if isinstance(shape, Outline) and shape.title]
    assert len(said) == sum(request.replicas for request in problem.requests)
    first = problem.requests[0]
    size = next(o.cpu_cores for o in problem.offers if o.size == "t4g.2xlarge")
    assert (
        f"{first.name} on eu-south-1 t4g.2xlarge, reserved: slots 0 to "
        f"{first.duration_slots - 1}; {first.cpu_cores / size:.0%} of the machine's vCPU"
    ) in " ".join(said)


def test_lanes_of_a_plan_carry_its_loads(problem: Temporal) -> None:
    """What is drawn adds up to the replicas' demands over their slots."""
    from placeopt.temporal.views import _lanes

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
    monkeypatch.setattr(Temporal, "spec", replace(problem.spec, drawing=None))
    plot_plan(front(problem), 0, tmp_path / "f.svg", problem=problem)  # what the encoder decides
    assert "decision 0: " in (tmp_path / "f.svg").read_text()
    monkeypatch.setattr(Temporal, "spec", replace(problem.spec, drawing=None, encoder=None))
    with pytest.raises(UnsupportedError, match="plans of temporal have no drawing"):
        plot_plan(front(problem), 0, tmp_path / "f.png", problem=problem)
    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util,
        "find_spec",
        lambda name, *more: None if name == "matplotlib" else found(name, *more),
    )
    needed = r"drawing .png files needs the optional packages of placeopt\[plot\]: pip install"
    with pytest.raises(MissingExtraError, match=needed):
        require("f.png")
    require("f.svg")


def test_pages_need_no_extra(problem: Temporal, tmp_path: Path) -> None:
    """Fronts, plans, convergence and reports as HTML and SVG, by the core alone."""
    code = f"""
import pathlib, sys
sys.modules["matplotlib"] = sys.modules["pandas"] = None
import placeopt
from placeopt import plot, report
folder, problem = pathlib.Path({str(tmp_path)!r}), placeopt.load("toy")
front = placeopt.solve(problem, "greedy")
plot.plot_front(front, folder / "f.html", problem=problem)
plot.plot_front(front, folder / "f.svg")
plot.plot_convergence([front], folder / "c.html")
plot.plot_plan(front, 0, folder / "p.html", problem=problem)
plot.plot_plan(front, 0, folder / "p.svg", problem=problem)
report.write(front, folder / "r.html", problem=problem)
"""
    subprocess.run([sys.executable, "-c", code], check=True)
    assert len(list(tmp_path.iterdir())) == 6


def test_labels_name_the_unit_once() -> None:
    """The unit in the field's name moves into brackets."""
    assert [label(goal) for goal in GOALS] == [
        "latency (ms)",
        "cost (USD)",
        "interruption (share)",
        "moves (pods)",
    ]


def test_bounds_are_named_by_the_sense_of_the_goals(problem: Temporal) -> None:
    """Lower, upper, or neither where the senses are mixed."""
    names = {("min", "min"): "lower bound", ("max", "max"): "upper bound", ("min", "max"): "bound"}
    for senses, name in names.items():
        goals = tuple(Objective(f"goal{k}", "EUR", sense=sense) for k, sense in enumerate(senses))
        one = Front(problem.instance_name, goals, (Point((3.0, 3.0), {}),), ((3.0, 3.0),))
        assert f'"bound_name":"{name}"' in page(one)
        assert f"Grey crosses are proven {name}s." in page(one)


@pytest.mark.parametrize("width", [1, 2, 3, 4, 6])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_fronts_lie_over_each_other(problem: Temporal, width: int, count: int) -> None:
    """Each plan of each front has a mark in each plane; the legend has the marks of the chart."""
    from placeopt.plot.front_scene import scene
    from placeopt.plot.scene import Disc, Words

    goals = tuple(Objective(f"goal {k}", "ms") for k in range(width))
    rng = np.random.default_rng(width)
    fronts = []
    for n in range(count):
        rows = rng.dirichlet(np.ones(max(2, width)), size=20)[:, :width] * 50 + n
        points = tuple(
            Point(tuple(v), {}, ("heuristic", "optimal", "bounded")[k % 3], method="m")
            for k, v in enumerate(rows.tolist())
        )
        fronts.append(Front(problem.instance_name, goals, points))
    drawn = scene(fronts, [f"front {n}" for n in range(count)])
    planes = min(6, max(1, width * (width - 1) // 2))
    titled = [s for s in drawn.shapes if not isinstance(s, Words) and ": goal 0 " in s.title]
    assert len(titled) == planes * sum(len(front) for front in fronts)
    rings = [s for s in drawn.shapes if isinstance(s, Disc) and not s.fill]
    shaded = int(count == 1 and width > 2)
    assert len(rings) == 1 + planes * count + shaded, "a knee in each plane, and in the legend"
    words = [s.text for s in drawn.shapes if isinstance(s, Words)]
    named = [name for name in (f"front {n}" for n in range(count)) if name in words]
    assert named == ([] if count == 1 else [f"front {n}" for n in range(count)])
    axes = sum(text in {f"goal {k} (ms)" for k in range(width)} for text in words)
    assert axes == (1 if width == 1 else 2 * planes)
    for shape in drawn.shapes:
        places = [] if isinstance(shape, Words) else getattr(shape, "places", [()])
        for place in places:
            assert not place or (0 <= place[0] <= drawn.width and 0 <= place[1] <= drawn.height)


def test_fronts_of_different_questions_are_not_laid_over_each_other(
    problem: Temporal, tmp_path: Path
) -> None:
    from placeopt.plot import plot_fronts

    one, other = front(problem, 3), front(problem, 2)
    for wrong in ([one, other], [one, front(problem, 3, name="another")]):
        with pytest.raises(UsageError):
            plot_fronts(wrong, tmp_path / "f.html", ["a", "b"])
    with pytest.raises(UsageError, match="has no points to draw"):
        plot_fronts([one, replace(one, points=())], tmp_path / "f.html", ["a", "b"])
    assert not [*tmp_path.iterdir()]
    for suffix in (".html", ".svg", ".png", ".pdf"):
        plot_fronts([one, one], tmp_path / f"f{suffix}", ["a", "b"])
    text = (tmp_path / "f.html").read_text()
    assert "2 fronts" in text and "<script" not in text
