"""Drawings and tables of rolling-update plans."""

from __future__ import annotations

import re
import struct
from pathlib import Path

import numpy as np
import pytest

from placeopt.core.task import Task

pytest.importorskip("matplotlib")

from placeopt.core.budget import Budget
from placeopt.plot import plot_plan
from placeopt.plot.scene import Outline, Words
from placeopt.rolling_update import schemes as baselines
from placeopt.rolling_update import views as drawing
from placeopt.rolling_update.arrays import timeline
from placeopt.rolling_update.problem import RollingUpdate
from placeopt.rolling_update.repack import repack


@pytest.fixture(scope="module")
def problem() -> RollingUpdate:
    return RollingUpdate.generate(2)


def test_a_timeline_ends_where_the_referee_does(problem: RollingUpdate) -> None:
    """Peaks of a feasible plan are within capacities; the nodes that empty are no longer paid."""
    for plan in (
        baselines.rolling_update_plan(problem),
        repack(Task(problem, problem.objectives, Budget(), 1)).points[0].plan,
    ):
        course = timeline(problem.arrays, problem.steps(plan))
        a = problem.arrays
        assert (course.peak >= course.load).all()
        assert (course.peak <= a.capacity[course.nodes]).all()
        untouched = set(a.home.tolist()) - set(course.nodes)
        cost = a.price[list(untouched)].sum() + a.price[course.nodes][course.hosted[-1] > 0].sum()
        assert cost == problem.evaluate(plan).values[0]
        emptied = ", ".join(
            sorted({m.source for m in course.steps if m.empties}, key=lambda n: int(str(n)[1:]))
        )  # type: ignore[type-var]
        assert problem.describe(plan)["nodes that empty"] == (emptied or "none")


def test_the_table_names_every_kind_of_step() -> None:
    nodes = [
        {"name": n, "cluster": "c0", "cpu_millicores": 10, "memory_mib": 10, "price": 1.0}
        for n in ("n1", "n2", "n3")
    ]
    size = {"cpu_millicores": 5, "memory_mib": 1, "new_cpu_millicores": 4}
    apps = [
        {"name": a, "microservices": [{"name": "m", "node": n, **size}], "flows": []}
        for a, n in (("a", "n1"), ("b", "n2"))
    ]
    problem = RollingUpdate.from_document(
        {"problem": "rolling-update", "name": "t", "nodes": nodes, "applications": apps}
    )
    order = [("a", "n3"), ("a", "n2"), ("b", "n2"), ("b", None), ("b", "n2")]
    rows = problem.table(
        {"steps": [{"application": a, "microservice": "m", "to": to} for a, to in order]}
    )
    assert [row["action"] for row in rows] == ["hop", "move", "hop", "stop", "start"]
    assert [row["empties"] for row in rows] == [True, True, False, False, False]
    assert (rows[1]["source"], rows[1]["target"], rows[1]["peak"]) == ("n3", "n2", 0.9)
    restart = problem.table({"steps": [{"application": "a", "microservice": "m", "to": "n1"}]})
    assert (restart[0]["action"], restart[0]["peak"]) == ("restart", 0.9)


@pytest.mark.parametrize("suffix", [".png", ".html"])
def test_plans_are_drawn(problem: RollingUpdate, tmp_path: Path, suffix: str) -> None:
    front = repack(Task(problem, problem.objectives, Budget(), 1))
    plot_plan(front, 0, tmp_path / f"plan{suffix}", problem=problem)
    content = (tmp_path / f"plan{suffix}").read_bytes()
    if suffix == ".png":
        assert min(struct.unpack(">II", content[16:24])) >= 700
    else:
        assert b"empties" in content and b"Steps, in order" in content


def test_blocks_before_and_after_add_up_to_the_loads(problem: RollingUpdate) -> None:
    """Each microservice of a node that changes is a block; those that move have a colour."""
    plan = repack(Task(problem, problem.objectives, Budget(), 1)).points[0].plan
    a, steps = problem.arrays, problem.steps(plan)
    course, end = timeline(a, steps), a.final_nodes(steps)
    blocks = [
        s for s in drawing.scene(problem, plan).shapes if "millicores" in vars(s).get("title", "")
    ]
    assert len(course.nodes) <= drawing.MAX_BOXES
    for title, where, load in (("before", a.home, 0), ("after", end, -1)):
        mine = [m for node in course.nodes for m in np.flatnonzero(where == node).tolist()]
        part = blocks[: len(mine)] if title == "before" else blocks[-len(mine) :]
        said = sum(int(b.title.rsplit(" ", 2)[1].replace(",", "")) for b in part)
        assert said == course.load[load, :, 0].sum()
        moving = sum(int(a.home[m] != end[m]) for m in mine)
        assert sum(b.fill == drawing._MOVES for b in part) == moving > 0
    assert len(blocks) == sum(int((w == n).sum()) for w in (a.home, end) for n in course.nodes)


def test_large_and_empty_plans_are_drawn() -> None:
    """Of many nodes those that empty come first; a plan without steps is a drawing too."""
    problem = RollingUpdate.generate(0, applications=60)
    plan = baselines.recreate_plan(problem)
    drawn = drawing.scene(problem, plan)
    labels = [s.text for s in drawn.shapes if isinstance(s, Words) and s.anchor == "end"]
    assert len(labels) == drawing.MAX_BOXES + drawing.MAX_LANES
    lanes = labels[drawing.MAX_BOXES :]
    assert sum("empties" in text for text in lanes) == len(
        problem.describe(plan)["nodes that empty"].split(", ")
    )
    hidden = drawing.MAX_LANES - drawing.MAX_BOXES
    assert f"{hidden} more nodes: below" in [s.text for s in drawn.shapes if isinstance(s, Words)]
    (scale,) = [s.text for s in drawn.shapes if isinstance(s, Words) and s.text.startswith("step")]
    course = timeline(problem.arrays, problem.steps(plan))
    counts = [int(part.split()[0]) for part in scale.split("; ")[1:]]
    assert scale.split("; ")[1].endswith("more nodes change less and are not drawn")
    assert sum(counts) == len(problem.nodes) - drawing.MAX_LANES
    assert counts[0] == len(course.nodes) - drawing.MAX_LANES
    stops = [s for s in drawn.shapes if isinstance(s, Outline) and s.dash == "3 3"]
    assert len(stops) == sum(row["action"] == "stop" for row in problem.table(plan)) > 0
    said = [s.title for s in drawn.shapes if isinstance(s, Outline) and "step 1:" in s.title]
    assert all("peak" in title for title in said)
    assert drawing.scene(problem, {"steps": []}).svg("nothing").startswith("<svg")


def test_a_plan_without_steps_shows_the_nodes_as_they_are(problem: RollingUpdate) -> None:
    drawn = drawing.scene(problem, {"steps": []})
    words = [s.text for s in drawn.shapes if isinstance(s, Words)]
    assert "The plan has no step: the nodes stay as they are." in words
    hosts = {problem.nodes[n].name for n in problem.arrays.home.tolist()}
    assert any(name in text for name in hosts for text in words)


def test_step_n_of_the_drawing_is_step_n_of_the_table() -> None:
    """Its number stands below the middle of what it changes, whatever the number of steps."""
    for applications in (1, 2, 4, 20, 60):
        problem = RollingUpdate.generate(3, applications=applications)
        plan = baselines.recreate_plan(problem)
        count = len(problem.table(plan))
        shapes = drawing.scene(problem, plan).shapes
        numbers = {
            int(s.text): s.place[0]
            for s in shapes
            if isinstance(s, Words) and s.text.isdecimal() and s.anchor == "middle"
        }
        assert set(numbers) <= set(range(1, count + 1)) and 1 in numbers
        middles: dict[int, float] = {}
        for s in shapes:
            said = re.search(r", step (\d+): ", s.title or "") if isinstance(s, Outline) else None
            if said is not None:
                across = [x for x, _ in s.places]
                if max(across) - min(across) > 4:
                    middles[int(said[1])] = (min(across) + max(across)) / 2
        for step in set(numbers) & set(middles):
            assert abs(numbers[step] - middles[step]) < 0.6, (applications, step)
        actions = [row["action"] for row in problem.table(plan)]
        stops = [k for k, action in enumerate(actions, start=1) if action == "stop"]
        lines = [s.places[0][0] for s in shapes if isinstance(s, Outline) and s.dash == "3 3"]
        first = numbers[1]
        wide = (max(numbers.values()) - first) / max(1, max(numbers) - 1)
        for step, x in zip(stops, lines, strict=True):
            assert len(numbers) == 1 or abs(x - (first + wide * (step - 1))) < 0.6
