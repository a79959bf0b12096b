"""Which weighted sums a sweep asks for in the middle of a front, against slow code."""

from __future__ import annotations

import numpy as np
import pytest
from edge_cloud_instances import optimum

from placeopt.core.budget import Budget
from placeopt.core.task import Task
from placeopt.edge_cloud import search as heuristics
from placeopt.edge_cloud.problem import EdgeCloud


def test_a_clock_closes_sums_in_the_middle() -> None:
    """Those of more weights than the spread has, in a second; the front has their optima."""
    problem = EdgeCloud.generate(2, applications=8)
    front = heuristics.lns(Task(problem, budget=Budget(seconds=0.8)), parts=3)
    facts = front.runs[0].parameters
    assert len(facts["weights"]) > 3 and facts["weights"] == sorted(facts["weights"])
    least = [(front.values @ [w, 1 - w]).min() for w in facts["weights"]]
    gaps = np.array(least) / facts["weighted_bounds"] - 1
    middle = [k for k, weight in enumerate(facts["weights"]) if 0.2 < weight < 0.8]
    closed = [k for k in middle if gaps[k] < 1e-5]
    assert closed
    for k in closed[:3]:
        assert least[k] == pytest.approx(optimum(problem, facts["weights"][k]), rel=1e-6)


def test_counted_evaluations_keep_to_the_spread() -> None:
    """No clock, no further weights: the same seed gives the same front."""
    problem = EdgeCloud.generate(2, applications=8)
    one, other = (
        heuristics.lns(Task(problem, budget=Budget(evaluations=9000)), parts=3) for _ in range(2)
    )
    assert len(one.runs[0].parameters["weights"]) == 3
    assert np.array_equal(one.values, other.values)


def test_a_front_of_one_plan_has_no_middle() -> None:
    """Where all nodes cost the same, the nearest ones are the best of both goals."""
    document = EdgeCloud.generate(1, applications=1, near=2, far=1, cloud=1).to_document()
    for node in document["nodes"]:
        node |= {name: 1.0 for name in node if "cost" in name or "price" in name}
    problem = EdgeCloud.from_document(document)
    front = heuristics.lns(Task(problem, budget=Budget(seconds=1.0)), parts=3)
    assert len(front) == 1 and front.runs[0].parameters["weights"]
