"""Drawings of edge-cloud plans."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from placeopt.core.task import Task

pytest.importorskip("matplotlib")

from placeopt.core.budget import Budget
from placeopt.edge_cloud import views as drawing
from placeopt.edge_cloud.problem import EdgeCloud
from placeopt.edge_cloud.search import greedy
from placeopt.plot import plot_plan


@pytest.fixture(scope="module")
def problem() -> EdgeCloud:
    return EdgeCloud.generate(1, applications=40)


@pytest.mark.parametrize("suffix", [".html", ".png", ".svg"])
def test_maps_are_written(problem: EdgeCloud, tmp_path: Path, suffix: str) -> None:
    """A plan is drawn on the map of the layers, in every format."""
    front = greedy(Task(problem, problem.objectives, Budget(), 1), parts=3)
    path = tmp_path / f"map{suffix}"
    plot_plan(front, 0, path, problem=problem)
    assert path.stat().st_size > 5000
    if suffix == ".html":
        text = path.read_text()
        assert "near-1" in text and "CPU in use" in text


def test_layers_are_rows(problem: EdgeCloud) -> None:
    """Nodes of one layer stand in one row, and none on top of another."""
    places = drawing.positions(problem)
    assert len(np.unique(places, axis=0)) == len(problem.nodes)
    for node, (_, y) in zip(problem.nodes, places, strict=True):
        assert problem.layers[int(y)] == node.layer


def test_use_adds_up(problem: EdgeCloud) -> None:
    """Microservices and costs add up; a high weight of the cost favours the cloud."""
    use = {}
    for weight in (0.01, 0.99):
        plan = greedy(Task(problem, problem.objectives, Budget(), 1), weight=weight).points[0].plan
        use[weight] = drawing.use_of_layers(problem, plan)
        assert sum(use[weight][layer] for layer in problem.layers) == len(problem.arrays.demand)
        assert use[weight]["operating cost"] + use[weight]["network cost"] == pytest.approx(
            problem.evaluate(plan).values[0]
        )
        shares = [use[weight][f"{layer} cpu"] for layer in problem.layers]
        capacity = [
            sum(n.cpu_cores for n in problem.nodes if n.layer == layer) for layer in problem.layers
        ]
        assert np.dot(shares, capacity) == pytest.approx(
            sum(m.cpu_cores for a in problem.applications for m in a.microservices)
        )
        assert (drawing.loads(problem, problem.hosts(plan)) <= 1).all()
    assert use[0.99]["cloud"] > use[0.01]["cloud"]
    together = np.zeros(len(problem.arrays.demand), dtype=int)
    assert drawing.links(problem, together) == []


def test_sweep_is_drawn(problem: EdgeCloud) -> None:
    """The figure of a sweep over the weights has four panels."""
    plans = [
        (w, greedy(Task(problem, problem.objectives, Budget(), 1), weight=w).points[0].plan)
        for w in (0.9, 0.1, 0.5)
    ]
    assert len(drawing.sweep_figure(problem, plans, "sweep").axes) == 4
