"""Drawings of rescheduling plans: critical paths, moves, names that are no markup."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("matplotlib")

from placeopt import api
from placeopt.plot import plot_plan
from placeopt.rescheduling.problem import Rescheduling
from placeopt.rescheduling.views import MAX_SERVICES, _layout, _views, scene


def solved(**sizes):
    problem = Rescheduling.generate(1, **sizes)
    return problem, api.solve(problem, "greedy")


@pytest.mark.parametrize("suffix", [".png", ".html"])
@pytest.mark.parametrize("application", ["chain", "aggregator-parallel"])
def test_plans_are_drawn(tmp_path: Path, suffix: str, application: str) -> None:
    """The fastest plan, and moving nothing."""
    problem, front = solved(application=application)
    for index in (0, len(front) - 1):
        plot_plan(front, index, tmp_path / f"plan{suffix}", problem=problem)
        assert (tmp_path / f"plan{suffix}").stat().st_size > 5_000


def test_the_views_add_up() -> None:
    """Latencies are the referee's; the critical path is one, and in a chain it is everything."""
    problem, front = solved()
    before, after = _views(problem, front.points[0].plan)
    assert (before.latency, after.latency) == (problem.initial_latency, front.points[0].values[0])
    assert before.critical == set(problem.graph.order) and all(
        paid for _, paid in before.calls.values()
    )
    problem, front = solved(application="aggregator-parallel")
    view, _ = _views(problem, front.points[0].plan)
    assert 0 < sum(paid for _, paid in view.calls.values()) < len(view.calls)


def test_large_graphs_show_the_critical_path() -> None:
    """Within the number that can be read; names are escaped."""
    problem, front = solved(application="random", services=60, replicas=1, cloud_a=5)
    assert len(_layout(problem, _views(problem, front.points[0].plan))) == MAX_SERVICES
    document = Rescheduling.generate(1).to_document()
    document["services"][0]["name"] = document["gateway"] = "<b>x"
    drawn = scene(Rescheduling.from_document(document), {"moves": []}).svg("<b>x")
    assert "<b>x" not in drawn and "&lt;b&gt;x" in drawn
