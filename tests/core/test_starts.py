"""A front to start from is judged once, within the time limit."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

import placeopt
from placeopt.edge_cloud.problem import EdgeCloud


@pytest.mark.parametrize("method", ["lns", "moead", "auto"])
def test_each_plan_of_a_start_is_judged_once(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = EdgeCloud.generate(1, applications=20)
    start = placeopt.solve(problem, "moead", evaluations=2000)
    judged: Counter[int] = Counter()
    own = EdgeCloud.evaluate

    def evaluate(self: EdgeCloud, plan: Any) -> Any:
        judged[id(plan)] += 1
        return own(self, plan)

    monkeypatch.setattr(EdgeCloud, "evaluate", evaluate)
    front = placeopt.solve(problem, method, evaluations=300, start=start)
    assert len(start) > 5 and [judged[id(point.plan)] for point in start] == [1] * len(start)
    for values in start.values:
        assert (front.values <= values + 1e-9).all(axis=1).any()


def test_a_start_is_the_answer_where_judging_it_takes_the_time() -> None:
    problem = EdgeCloud.generate(1, applications=20)
    start = placeopt.solve(problem, "moead", evaluations=2000)
    front = placeopt.solve(problem, "lns", seconds=1e-6, start=start)
    assert front.values.tolist() == start.values.tolist()
