"""What `auto` runs on temporal instances, by their size."""

from __future__ import annotations

import pytest

import placeopt
from placeopt.temporal.auto import method_for
from placeopt.temporal.instance import Temporal


@pytest.mark.parametrize(
    ("requests", "first"),
    [
        (3, "bin-plans"),
        (19, "moead"),
        (60, "sharded"),
        (100, "sharded"),
        (499, "sharded"),
        (500, "sharded"),
    ],
)
def test_the_method_follows_the_size(requests: int, first: str) -> None:
    stages = method_for(Temporal.generate(1, requests=requests, max_replicas=3))
    assert (stages if isinstance(stages, str) else stages[0][0]) == first
    assert isinstance(stages, str) == (requests not in (60, 100, 499))


def test_both_searches_give_points() -> None:
    """MOEA/D starts from the plans of the parts; neither is lost."""
    front = placeopt.solve(Temporal.generate(3, requests=100), evaluations=3000)
    assert {run.method for run in front.runs} >= {"auto", "sharded", "moead"}
    assert {point.method for point in front} == {"sharded", "moead"}
