"""Drawings of multi-cluster plans: what is in use over time, as it is worked out by hand.

Names that are no markup.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from placeopt import api
from placeopt.multi_cluster.problem import MultiCluster
from placeopt.multi_cluster.views import (
    MAX_CLUSTERS,
    MAX_TIMES,
    _drawn,
    _peaks,
    scene,
    usage_over_time,
)
from placeopt.plot import plot_plan


@pytest.mark.parametrize("suffix", [".png", ".html"])
def test_plans_are_drawn(tmp_path: Path, suffix: str) -> None:
    """By both packages."""
    problem = MultiCluster.generate(1, requests=30)
    front = api.solve(problem, "cpu-greedy")
    plot_plan(front, 0, tmp_path / f"plan{suffix}", problem=problem)
    assert (tmp_path / f"plan{suffix}").stat().st_size > 5_000


def test_the_course_is_what_runs() -> None:
    """Two requests that overlap, one that is refused, one that comes as another leaves."""
    clusters = [
        {"name": n, "cpu_cores": 1.0, "memory_gib": 2.0, "cost": 1.0, "allocated_cpu_cores": 0.1}
        for n in "ab"
    ]
    sizes = {"deployment": "x", "replicas": 2, "cpu_cores": 0.2, "memory_gib": 0.5}
    times = ((1.0, 2.0), (2.0, 5.0), (2.5, 1.0), (3.0, 1.0))
    requests = [{**sizes, "arrival": begin, "duration": lasts} for begin, lasts in times]
    document = {
        "problem": "multi-cluster",
        "name": "x",
        "clusters": clusters,
        "latency_ms": {"a": {"b": 5}},
        "requests": requests,
    }
    problem = MultiCluster.from_document(document)
    told = usage_over_time(problem, {"decisions": [{"a": 2}, {"a": 1, "b": 1}, {}, {"a": 2}]})
    assert told.refused == [2]
    assert told.times.tolist() == [0, 1, 2, 2.5, 3, 3.5, 4, 7]
    assert told.replicas[:, 0].tolist() == [0, 2, 3, 3, 3, 3, 1, 0]
    assert told.shares[:, 0, 0] == pytest.approx(np.array([0.1, 0.5, 0.7, 0.7, 0.7, 0.7, 0.3, 0.1]))
    assert told.shares[:, 1, 1] == pytest.approx(np.array([0, 0, 0.25, 0.25, 0.25, 0.25, 0.25, 0]))


def test_many_clusters_and_hostile_names() -> None:
    """The busiest within the number that can be read; names are escaped."""
    problem = MultiCluster.generate(1, clusters=30, requests=20)
    plan = {"decisions": [{}] * 20}
    assert len(_drawn(usage_over_time(problem, plan))) == MAX_CLUSTERS
    document = MultiCluster.generate(1, requests=2).to_document()
    document["clusters"][0]["type"] = document["requests"][0]["deployment"] = "<b>x"
    drawn = scene(MultiCluster.from_document(document), {"decisions": [{}, {}]}).svg("plan")
    assert "<b>x" not in drawn and "&lt;b&gt;x" in drawn


def test_long_traces_are_drawn_by_their_peaks() -> None:
    """No peak is lost between two times that are drawn."""
    times = np.linspace(0, 7, 5000)
    shares = np.random.default_rng(1).random((5000, 2, 2))
    some, highest = _peaks(times, shares)
    assert len(some) <= MAX_TIMES and (highest.max(axis=0) == shares.max(axis=0)).all()
    for k in (0, 17, len(some) - 2):
        within = (times >= some[k]) & (times < some[k + 1])
        assert (highest[k] == shares[within].max(axis=0)).all()
