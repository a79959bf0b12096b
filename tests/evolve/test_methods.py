"""Every vector search on the temporal problem: judged, repeatable, within its budget."""

from __future__ import annotations

import math
import os
from pathlib import Path

import pytest
from hands import Hand
from placeopt_papers import cnsm_csv

import placeopt
from placeopt.core.budget import Budget
from placeopt.core.runs.compiling import Clock
from placeopt.evolve.search import VectorSearch
from placeopt.registry import from_document
from placeopt.temporal.problem import Temporal

METHODS = ["greedy", "nsga2", "nsga3", "mspso", "moead", "ensemble", "auto"]
WIDE, TIGHT = (190.2, 1484.5, 0.0760), (105, 581, 0.073)


@pytest.fixture(scope="module")
def problem() -> Temporal:
    return Temporal.generate(11, requests=12)


@pytest.mark.parametrize("method", METHODS)
def test_same_seed_same_front_for_any_number_of_jobs(problem, method):
    """One and two jobs give identical points; values are the referee's, plans feasible."""
    one, two = (
        placeopt.solve(problem, method, evaluations=2400, seed=3, jobs=jobs) for jobs in (1, 2)
    )
    assert one.points == two.points and one.bounds == two.bounds and len(one) > 20
    for point in one.points:
        verdict = problem.evaluate(point.plan)
        assert verdict.feasible and verdict.values == point.values
    assert sum(run.evaluations for run in one.runs if run.method != "ensemble") <= 2400


@pytest.mark.parametrize("method", ["nsga2", "nsga3", "mspso", "moead"])
def test_another_seed_another_front(problem, method):
    """The seed matters."""
    one, two = (placeopt.solve(problem, method, evaluations=1500, seed=seed) for seed in (1, 2))
    assert one.points != two.points


@pytest.mark.parametrize(
    "objectives", [["cost_usd"], ["latency_ms", "cost_usd"], ["interruption", "cost_usd"]]
)
@pytest.mark.parametrize("method", ["greedy", "nsga2", "nsga3", "mspso", "moead"])
def test_any_selection_of_objectives(problem, method, objectives):
    """One and two objectives work, in the order asked for."""
    front = placeopt.solve(problem, method, objectives=objectives, evaluations=800)
    assert [o.name for o in front.objectives] == objectives and len(front) >= 1
    columns = problem.columns(front.objectives)
    for point in front.points:
        assert point.values == tuple(problem.evaluate(point.plan).values[c] for c in columns)


@pytest.mark.parametrize("method", ["nsga2", "nsga3", "mspso", "moead"])
def test_more_budget_never_worsens_the_archive(problem, method):
    """With one seed, the front of a longer run dominates at least as much."""
    parameters = {"points": None} if method.startswith("nsga") else {}
    short, long = (
        placeopt.solve(problem, method, evaluations=n, seed=5, **parameters) for n in (1500, 4500)
    )
    reference = short.reference()
    assert long.hypervolume(reference) >= short.hypervolume(reference) - 1e-12


@pytest.mark.parametrize("method", ["greedy", "nsga2", "nsga3", "mspso", "moead", "ensemble"])
def test_limits_and_absent_prices_are_honoured(method):
    """Few machines of everything, some prices absent: what is returned keeps to both."""
    document = Temporal.generate(2, requests=4, max_replicas=2).to_document()
    for k, offer in enumerate(document["offers"]):
        offer["max_instances"] = 3
        offer[("on_demand_usd_per_hour", "reserved_usd_per_hour", "spot_usd_per_hour")[k % 3]] = (
            None
        )
    problem = Temporal.from_document(document)
    front = placeopt.solve(problem, method, evaluations=1200)
    assert len(front) > 0
    assert all(problem.evaluate(p.plan).feasible for p in front.points)


@pytest.mark.parametrize("method", METHODS)
def test_an_impossible_instance_gets_the_least_violating_plan_and_reasons(method):
    """A request that fits nowhere is named, and everything else is served."""
    document = Temporal.generate(2, requests=3).to_document()
    document["requests"][1]["memory_gib"] = 4000
    problem = Temporal.from_document(document)
    front = placeopt.solve(problem, method, evaluations=600)
    assert len(front) == 0 and "fits no offer" in front.reasons[0] and "'r2'" in front.reasons[0]
    assert set(front.rejected.plan["starts"]) == {"r1", "r3"}


def test_a_start_front_is_never_lost(problem):
    """Points handed over come back unless something better was found."""
    good = placeopt.solve(problem, "moead", evaluations=6000, seed=1)
    again = placeopt.solve(problem, "nsga2", evaluations=600, seed=2, start=good)
    reference = good.reference()
    assert again.hypervolume(reference) >= good.hypervolume(reference) - 1e-12
    assert {p.method for p in again.points} >= {"moead"}


def test_a_time_limit_covers_the_whole_run(problem):
    """What is done after the limit looks at the clock a few times."""
    placeopt.solve(problem, "moead", evaluations=500)
    hand = Hand(tick=0.001)
    front = placeopt.solve(problem, "moead", budget=Budget(seconds=1.0, clock=Clock(hand)))
    assert len(front) > 0 and hand.now < 1.1
    assert front.runs[0].evaluations > 0


def test_a_slow_moment_costs_no_points(problem, monkeypatch):
    """Where judging seemed far slower than it is, the time that is left is used all the same."""
    monkeypatch.setattr(VectorSearch, "_seconds_to_judge", lambda self: 0.5)
    hand = Hand(tick=0.001)
    budget = Budget(seconds=3.0, clock=Clock(hand))
    assert len(placeopt.solve(problem, "moead", budget=budget, seed=1)) > 100


def test_cancelling_returns_what_was_found(problem):
    """A callback that cancels at once still gets a judged front."""
    budget = Budget(evaluations=10**9, on_progress=lambda _: budget.cancel())
    front = placeopt.solve(problem, "moead", budget=budget)
    assert len(front) > 0 and not front.runs[0].completed


def test_auto_is_exact_where_that_is_quick():
    """Few replicas and no limits on machines: every point optimal; more, or limits: a search."""
    small = Temporal.generate(3, requests=3, max_replicas=2)
    front = placeopt.solve(small)
    assert {p.status for p in front.points} == {"optimal"} and front.runs[0].method == "bin-plans"
    document = small.to_document()
    document["offers"][0]["max_instances"] = 5
    assert (
        placeopt.solve(Temporal.from_document(document), evaluations=500).runs[0].method == "moead"
    )


def test_unknown_methods_and_parameters_are_named(problem):
    """The message suggests what was meant."""
    with pytest.raises(placeopt.PlaceoptError, match="did you mean 'nsga3'"):
        placeopt.solve(problem, "nsga33")
    with pytest.raises(placeopt.PlaceoptError, match="no parameter 'ofspring'"):
        placeopt.solve(problem, "nsga3", ofspring=3)


def test_ensemble_keeps_provenance(problem):
    """Each point names the method that found it; the runs of all are listed."""
    front = placeopt.solve(problem, "ensemble", evaluations=4000)
    assert {r.method for r in front.runs} == {"ensemble", "nsga2", "nsga3", "mspso", "moead"}
    assert len({p.method for p in front.points}) >= 2


@pytest.mark.thorough
@pytest.mark.skipif(
    "PLACEOPT_DATA" not in os.environ,
    reason="PLACEOPT_DATA does not name the folder with the CNSM 2024 instance",
)
@pytest.mark.parametrize(
    ("method", "wide", "tight"), [("nsga3", 0.923, 0.766), ("moead", 0.933, 0.805)]
)
def test_hypervolume_on_the_papers_own_instance(method, wide, tight):
    """One seed at 50,000 evaluations, hypervolume over the product of the reference."""
    folder = Path(os.environ["PLACEOPT_DATA"]) / "cnsm2024"
    problem = from_document(
        cnsm_csv.read(
            folder / "Services.csv", folder / "AWS_EC2_Pricing.csv", folder / "AWS_EC2_Latency.csv"
        )
    )
    parameters = {"points": None} if method == "nsga3" else {}
    front = placeopt.solve(problem, method, evaluations=50_000, seed=1, **parameters)
    assert front.hypervolume(WIDE) / math.prod(WIDE) >= wide
    assert front.hypervolume(TIGHT) / math.prod(TIGHT) >= tight
