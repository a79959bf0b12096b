"""Traces: what a run had found when, the same for the same seed, and true."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import placeopt
from placeopt.core.budget import Budget
from placeopt.core.errors import DocumentError, UsageError
from placeopt.core.fronts.front import Front
from placeopt.core.fronts.trace import MAX_SAMPLES, Recorder, RunSnapshot
from placeopt.core.fronts.values import InstanceName, Objective, Point, Run

GOALS = (Objective("latency_ms", "ms"), Objective("served", "requests", sense="max"))
NAME = InstanceName("temporal", "toy", "0")
SIGNS = np.array([1.0, -1.0])


def front(*values: tuple[float, float]) -> Front:
    return Front(NAME, GOALS, tuple(Point(v, {}) for v in values), runs=(Run("m", 1, 9.0),))


def trace_of(recorder: Recorder, whole: Front, seconds: float, evaluations: int, *reference: Any):
    """Return the trace of a run that ended with a front after so many seconds and evaluations."""
    return recorder.traced(whole, seconds, evaluations, *reference).runs[0].trace


def test_samples_are_measured_by_hand() -> None:
    """Hypervolume, ideal and bound of a goal to minimise and one to maximise."""
    recorder = Recorder(["latency_ms", "served"], SIGNS)
    found = np.array([[4.0, 1.0], [5.0, 1.0]])
    bound = np.array([[1.0, 5.0]])
    recorder.see(0.5, 10, RunSnapshot(values=lambda: found, bounds=lambda: bound))
    recorder.see(0.6, 10, RunSnapshot(values=lambda: found))  # not time for one yet
    whole = replace(front((4.0, 1.0), (2.0, 0.0)), bounds=((2.0, 1.0),))
    trace = trace_of(recorder, whole, 2.0, 40, (6.0, -1.0))
    assert trace is not None
    assert trace.seconds == (0.5, 2.0) and trace.evaluations == (10, 40)
    assert trace.points == (1, 2) and trace.ideal == ((4.0, 1.0), (2.0, 1.0))
    assert trace.hypervolume == (2 * 2, 4 * 1 + 2 * 1) and trace.bound == (5 * 6, 4 * 2)


def test_other_columns_are_named() -> None:
    """Columns are found by their names; what misses one is left out."""
    recorder = Recorder(["latency_ms"], np.ones(1))
    rows = np.array([[9.0, 3.0]])
    recorder.see(0.1, 1, RunSnapshot(values=lambda: rows, names=("moves", "latency_ms")))
    recorder.see(0.2, 9, RunSnapshot(values=lambda: rows, names=("moves", "cost_usd")))
    goal = Front(NAME, GOALS[:1], (Point((1.0,), {}),), runs=(Run("m", 1, 9.0),))
    trace = trace_of(recorder, goal, 1.0, 20)
    assert trace is not None and trace.ideal == ((3.0,), (1.0,))


def test_a_long_run_keeps_few_samples() -> None:
    """Spread geometrically, however many reports there are."""
    recorder = Recorder(["latency_ms", "served"], SIGNS)
    found = np.array([[4.0, 1.0]])
    for k in range(1, 20_000):
        recorder.see(k / 1000, 10_000 * k, RunSnapshot(values=lambda: found))
    trace = trace_of(recorder, front((4.0, 1.0)), 200.0, 200_000_000)
    assert trace is not None and 20 <= len(trace.seconds) <= MAX_SAMPLES + 1
    steps = np.diff(np.log(trace.evaluations[5:-1]))
    assert steps.max() < 1.5 and steps.min() > 0.05


METHODS = [
    ("toy", "moead"),
    ("toy", "nsga2"),
    ("toy", "mspso"),
    ("toy", "greedy"),
    ("corner-5", "lns"),
    ("corner-5", "bound"),
    ("repack-10x5", "repack"),
    ("repack-10x5", "decomposition"),
    ("chain-12", "block-search"),
    ("stream-4x100", "rollout"),
    ("stream-4x100", "policy"),
]


@pytest.mark.parametrize(("name", "method"), METHODS, ids=lambda text: text)
def test_every_method_leaves_a_trace(name: str, method: str) -> None:
    """It ends with the front, never falls before, and repeats apart from the seconds."""
    options: dict[str, Any] = {"policy": "multi-cluster-fixed-rate20"} if method == "policy" else {}
    if method == "rollout":
        options["parts"] = 3
    fronts = [placeopt.solve(name, method, evaluations=400, **options) for _ in range(2)]
    one, other = (found.runs[0].trace for found in fronts)
    assert one is not None and other is not None
    assert replace(one, seconds=()) == replace(other, seconds=())
    reference = list(one.reference)
    assert one.hypervolume[-1] == pytest.approx(fronts[0].hypervolume(reference))
    assert reference == fronts[0].reference().tolist()
    assert one.points[-1] == len(fronts[0]) and one.evaluations[-1] == fronts[0].runs[0].evaluations
    volumes, seconds = np.array(one.hypervolume), np.array(one.seconds)
    assert (np.diff(volumes[:-1]) >= -1e-9 * volumes[-1]).all() and (np.diff(seconds) >= 0).all()
    if one.bound[-1] is not None:
        assert min(b for b in one.bound if b is not None) >= volumes[-1] * (1 - 1e-9)
    if method not in ("greedy", "policy"):
        assert len(one.seconds) > 1


def test_bounds_fall_while_an_exact_method_works() -> None:
    """Between the points and what is still possible nothing is lost."""
    found = placeopt.solve("chain-12", "epsilon-constraint", seconds=60)
    trace = found.runs[0].trace
    assert trace is not None and found.runs[0].completed
    bounds = [bound for bound in trace.bound if bound is not None]
    assert len(bounds) > 3 and sorted(bounds, reverse=True) == bounds
    assert bounds[-1] == pytest.approx(trace.hypervolume[-1])


def test_a_users_own_model_leaves_one_in_its_own_senses() -> None:
    pyo = pytest.importorskip("pyomo.environ")
    model = pyo.ConcreteModel()
    model.x = pyo.Var(range(6), domain=pyo.Binary)
    model.value = pyo.Objective(expr=sum((k + 2) * model.x[k] for k in range(6)) + 10, sense=-1)
    model.weight = pyo.Objective(expr=sum((5 * k % 7 + 1) * model.x[k] for k in range(6)))
    heard = []
    found = placeopt.enumerate(model, on_progress=heard.append)
    trace = found.runs[0].trace
    assert trace is not None and trace.ideal[-1] == tuple(found.ideal) == (37.0, 0.0)
    assert trace.hypervolume[-1] == pytest.approx(found.hypervolume(trace.reference))
    assert trace.bound[-1] == pytest.approx(trace.hypervolume[-1])
    assert all(10 <= progress.best[0] <= 37 for progress in heard)


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_ensemble_traces_every_member(jobs: int) -> None:
    """And the points of the whole at its end; all within one reference point."""
    found = placeopt.solve("toy", "ensemble", evaluations=800, jobs=jobs)
    traces = {run.method: run.trace for run in found.runs}
    assert {trace.reference for trace in traces.values()} == {tuple(found.reference())}
    assert set(traces) == {"ensemble", "nsga2", "nsga3", "mspso", "moead"}
    assert traces["ensemble"].points == (len(found),)
    assert all(trace.evaluations[-1] == 200 for m, trace in traces.items() if m != "ensemble")


def test_methods_in_turn_make_one_trace() -> None:
    """What `auto` runs in turn has a trace each, and the whole has one of them all."""
    found = placeopt.solve("corner-5", "auto", evaluations=2000)
    whole, *parts = (run.trace for run in found.runs)
    assert len(parts) > 1 and all(trace is not None for trace in (whole, *parts))
    assert len(whole.seconds) > 2 and whole.evaluations[-1] == found.runs[0].evaluations
    assert {trace.reference for trace in parts} == {tuple(found.reference())} == {whole.reference}
    assert sorted(whole.hypervolume) == list(whole.hypervolume)


def test_the_reference_may_be_given() -> None:
    """Then the hypervolumes of several runs compare; it is checked."""
    corner = (30.0, 4.0, 1.0)
    pairs = [
        placeopt.solve("toy", method, evaluations=300, reference=corner, jobs=jobs)
        for method, jobs in (("moead", 1), ("ensemble", 2))
    ]
    traces = [run.trace for found in pairs for run in found.runs]
    assert {trace.reference for trace in traces} == {corner}
    with pytest.raises(UsageError, match="a finite number for each of latency_ms, cost_usd"):
        placeopt.solve("toy", reference=(1, 2))


def test_certifying_adds_the_bound_to_the_last_sample() -> None:
    found = placeopt.solve("corner-5", "moead", evaluations=500, certify=True)
    (trace,) = [run.trace for run in found.runs if run.trace is not None]
    assert trace.bound[-1] >= trace.hypervolume[-1] and set(trace.bound[:-1]) <= {None}


def test_plans_are_judged_once() -> None:
    """What a sample judged is not judged again for the front."""
    problem = placeopt.load("repack-10x5")
    asked = []
    evaluate = type(problem).evaluate

    class Counting(type(problem)):
        def evaluate(self, plan):
            asked.append(id(plan))
            return evaluate(self, plan)

    counting = Counting.from_document(problem.to_document())
    found = placeopt.solve(counting, "repack", evaluations=100)
    assert len(found.runs[0].trace.seconds) > 2 and len(asked) == len(set(asked))


# -- in files --------------------------------------------------------------------------------------


def test_a_trace_survives_a_file(tmp_path: Path) -> None:
    found = placeopt.solve("toy", "moead", evaluations=300)
    found.write(tmp_path / "front.json")
    assert Front.read(tmp_path / "front.json").runs == found.runs
    assert "samples, hypervolume" in repr(found.runs[0])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"points": []}, r"runs\[0\].trace.points: 0 entries beside 2 of seconds"),
        ({"reference": [1.0]}, r"runs\[0\].trace.reference: 1 values"),
        ({"ideal": [[1.0], [1.0]]}, r"runs\[0\].trace.ideal\[0\]: 1 values"),
        ({"seconds": "long"}, r"runs\[0\].trace.seconds"),
    ],
)
def test_a_broken_trace_is_one_message(change: dict[str, Any], said: str) -> None:
    recorder = Recorder(["latency_ms", "served"], SIGNS)
    recorder.see(0.5, 10, RunSnapshot(values=lambda: np.array([[4.0, 1.0]])))
    whole = front((4.0, 1.0))
    trace = trace_of(recorder, whole, 1.0, 20)
    document = json.loads(replace(whole, runs=(Run("m", 1, 1.0, trace=trace),)).to_json())
    document["runs"][0]["trace"] |= change
    with pytest.raises(DocumentError, match=said):
        Front.from_document(document)


def test_fronts_without_a_point_or_a_trace(tmp_path: Path) -> None:
    """Older files have none, and stay as they are."""
    recorder = Recorder(["latency_ms", "served"], SIGNS)
    assert trace_of(recorder, front(), 1.0, 20) is None
    assert "trace" not in front((1.0, 2.0)).to_document()["runs"][0]


# -- while it runs ---------------------------------------------------------------------------------


def test_fronts_are_shown_while_a_run_works() -> None:
    """Each is judged; showing them changes nothing of the result."""
    shown: list[Front] = []
    front = placeopt.solve("aws-10", "moead", evaluations=20_000, on_front=shown.append, every=0)
    assert shown and not shown[0].runs[0].completed
    assert front.points == placeopt.solve("aws-10", "moead", evaluations=20_000).points
    volumes = [found.hypervolume(front.reference()) for found in shown]
    assert sorted(volumes) == volumes
    verdicts = placeopt.evaluate(placeopt.load("aws-10"), shown[0])
    assert [v.values for v in verdicts] == [p.values for p in shown[0]]


def test_who_is_shown_a_front_may_end_the_run() -> None:
    """Long before its budget."""
    budget = Budget(evaluations=10**9)
    front = placeopt.solve(
        "toy", "moead", budget=budget, on_front=lambda found: budget.cancel(), every=0
    )
    assert front.points and budget.cancelled and budget.evaluations < 10**8
