"""Search in parts: sums are the referee's, the same for any number of workers, within limits."""

from __future__ import annotations

import numpy as np
import pytest
from hands import within

import placeopt
from placeopt.core.budget import Budget
from placeopt.core.errors import UnsupportedError
from placeopt.core.interfaces import build_encoder
from placeopt.core.task import Task
from placeopt.temporal.problem import Temporal
from placeopt.temporal.search import sharded
from placeopt.temporal.search.division import divide
from placeopt.temporal.search.sharded import Members, weight_lattice

FEW = {"part_size": 20, "part_evaluations": 600, "points": 40}


@pytest.fixture(scope="module")
def problem() -> Temporal:
    return Temporal.generate(4, requests=90)


@pytest.mark.parametrize("objectives", [None, ["interruption", "cost_usd"]])
def test_plans_of_parts_add_up(problem, objectives):
    """The values of a composed plan are sums over the parts; joining can be undone."""
    goals = problem.select(objectives)
    division = divide(problem, goals, 20)
    assert sum(len(part.requests) for part in division.parts) == 90 and len(division.parts) > 2
    rng, total, vectors, plans = np.random.default_rng(1), np.zeros(len(goals)), [], []
    for part, factors in zip(division.parts, division.factors, strict=True):
        encoder = build_encoder(part, part.select(objectives))
        vectors.append(encoder.sample(rng, 1)[0])
        plans.append(encoder.decode(vectors[-1]))
        total += factors * encoder.evaluate(vectors[-1][None])[0][0]
    verdict = problem.evaluate(division.compose(plans))
    assert verdict.feasible
    np.testing.assert_allclose(np.array(verdict.values)[problem.columns(goals)], total)
    whole = division.join(vectors)
    for one, other in zip(division.split(whole), vectors, strict=True):
        np.testing.assert_array_equal(one, other)
    # The whole vector is legal, and keeps pools: latency and interruption are the same.
    F, G = build_encoder(problem).evaluate(whole[None])
    verdict = problem.evaluate(build_encoder(problem).decode(whole))
    assert verdict.feasible and not G.any()
    np.testing.assert_allclose(verdict.values, F[0])


@pytest.mark.parametrize("knitted", [True, False])
def test_the_same_front_for_any_number_of_workers(problem, knitted, monkeypatch):
    """One and two jobs give identical points; all are judged, knitted or put together."""
    monkeypatch.setattr(sharded, "MAX_KNITTED_GENES", 10**9 if knitted else 0)
    one, two = (placeopt.solve(problem, "sharded", seed=5, jobs=jobs, **FEW) for jobs in (1, 2))
    assert one.points == two.points and 10 < len(one) <= 40
    for point in one.points:
        verdict = problem.evaluate(point.plan)
        assert verdict.feasible and verdict.values == point.values
    facts = one.runs[0]
    assert facts.completed and facts.evaluations == 600 and facts.parameters["parts"] > 2


def test_knitting_makes_nothing_worse(problem, monkeypatch):
    """Machines that serve several parts save money: the knitted front covers the other one."""
    fronts = []
    for limit in (0, 10**9):
        monkeypatch.setattr(sharded, "MAX_KNITTED_GENES", limit)
        fronts.append(placeopt.solve(problem, "sharded", seed=5, **FEW).values)
    apart, knitted = fronts
    assert (knitted[None] <= apart[:, None] * (1 + 1e-9)).all(axis=2).any(axis=1).all()
    assert knitted[:, 1].min() < apart[:, 1].min()


@pytest.mark.thorough
def test_it_beats_the_whole_vector_search_where_requests_are_many():
    """At 200 requests the front of the parts is better at half of the evaluations."""
    problem = Temporal.generate(2, requests=200)
    whole = placeopt.solve(problem, "moead", evaluations=1500)
    parts = placeopt.solve(problem, "sharded", part_size=100, part_evaluations=375, points=100)
    reference = 1.1 * np.maximum(whole.nadir, parts.nadir)
    assert parts.hypervolume(reference) > whole.hypervolume(reference)


def test_limits_on_machines_are_refused_by_name(problem):
    """Machines that all requests share out cannot be counted in parts."""
    document = problem.to_document()
    document["offers"][0]["max_instances"] = 5
    limited = Temporal.from_document(document)
    with pytest.raises(UnsupportedError, match="max_instances"):
        placeopt.solve(limited, "sharded")


def test_a_time_limit_and_a_stop_return_what_is_there(problem):
    """Parts that were not searched are served by their first vectors."""
    placeopt.solve(problem, "sharded", **FEW)  # compiled
    with within(1.0, 3.0):
        front = placeopt.solve(problem, "sharded", seconds=1.0, part_size=20)
    assert len(front) >= 3
    stopped = Budget(evaluations=10**6)
    stopped.cancel()
    front = placeopt.solve(problem, "sharded", budget=stopped, part_size=20)
    assert len(front) >= 3 and not front.runs[0].completed
    assert all(problem.evaluate(point.plan).feasible for point in front.points)


def test_plans_to_start_from_are_taken_up(problem):
    """A part can do what it does in a plan that is given."""
    first = placeopt.solve(problem, "sharded", seed=1, **FEW)
    task = Task(problem, budget=Budget(evaluations=10**6), seed=2, start=first.subset(3))
    division = divide(problem, problem.objectives, 20)
    known = sharded._known(division, task)
    assert [len(rows) for rows in known] == [3] * len(division.parts)
    encoder = build_encoder(problem)
    joined = division.join([rows[0] for rows in known])
    np.testing.assert_array_equal(joined, encoder.encode(task.start.points[0].plan))


def test_a_request_that_nothing_serves_is_named(problem):
    """The least-violating plan and the reason are there, as with every method."""
    document = problem.to_document()
    document["requests"][3]["cpu_cores"] = 1000
    front = placeopt.solve(Temporal.from_document(document), "sharded", **FEW)
    assert not front.points and document["requests"][3]["name"] in front.reasons[0]
    assert front.rejected is not None


def test_small_instances_are_one_part():
    """Less than a part is searched as it is."""
    problem = Temporal.generate(1, requests=7)
    front = placeopt.solve(problem, "sharded", part_evaluations=500)
    assert front.runs[0].parameters["parts"] == 1 and len(front) > 3


def test_members_are_the_best_of_all_that_was_offered():
    """For every weight, whatever the order."""
    rng, weights = np.random.default_rng(1), weight_lattice(3)
    F = rng.random((300, 3))
    members = Members(
        np.empty((0, 1), int),
        np.empty((0, 3)),
        np.zeros(len(weights), int),
        np.full(len(weights), np.inf),
    )
    for rows in np.array_split(rng.permutation(300), 7):
        members.offer(rows[:, None], F[rows], F[rows] @ weights.T)
    np.testing.assert_allclose(members.score, (F @ weights.T).min(axis=0))
    np.testing.assert_allclose((members.F[members.of] * weights).sum(axis=1), members.score)
    np.testing.assert_array_equal(members.F, F[members.X[:, 0]])
    assert len(members.X) == len(np.unique(members.of))
