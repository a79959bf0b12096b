"""Requests on top of a call graph: against hand calculation, queueing theory and the model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st
from placeopt_papers.traffic import command
from placeopt_papers.traffic.command import register
from placeopt_papers.traffic.figures import figures, mean_and_half_width, series
from placeopt_papers.traffic.play import Played, play
from placeopt_papers.traffic.scenario import Scenario
from typer.testing import CliRunner

from placeopt.core.errors import DocumentError, UsageError
from placeopt.core.files.documents import read_json, validate
from placeopt.rescheduling.problem import Rescheduling

Json = dict[str, Any]
#: ms: users 10, `a` 30, between nodes 5, `b` 50.
ALONE = 10 + 30 + 5 + 50


def pair(replicas: int = 1) -> Rescheduling:
    """Return two services on two nodes, `a` calls `b`."""
    size = {"cpu_cores": 1.0, "memory_gib": 1.0}

    def service(name: str, ms: float, node: str, calls: list[list[str]]) -> Json:
        times = {"k": ms}
        return {
            "name": name,
            **size,
            "execution_ms": times,
            "replicas": [node] * replicas,
            "calls": calls,
        }

    nodes = [
        {"name": n, "kind": "k", "cpu_cores": 9.0, "memory_gib": 9.0, "user_latency_ms": 10.0}
        for n in ("n1", "n2")
    ]
    return Rescheduling.from_document(
        {
            "problem": "rescheduling",
            "name": "pair",
            "nodes": nodes,
            "latency_ms": {"n1": {"n2": 5.0}},
            "services": [service("a", 30.0, "n1", [["b"]]), service("b", 50.0, "n2", [])],
            "gateway": "a",
        }
    )


def scenario(**fields: Any) -> Scenario:
    """Return a scenario by its fields."""
    result: Scenario = validate(Scenario, fields)
    return result


@pytest.mark.parametrize("serving", ["shared", "in-turn", "at-once"])
def test_one_client_meets_no_queue(serving: str) -> None:
    """By hand: every request takes the same, and the next one follows at once."""
    run = play(pair(), scenario(seconds=10, serving=serving))
    assert run.took_ms == pytest.approx([ALONE] * (10_000 // ALONE))
    assert run.answered[:2] == pytest.approx([0.095, 0.190])


def test_two_clients_share_or_wait() -> None:
    """By hand: 30 ms of `a` are shared by two requests; `b` is met by both together."""
    both = [{"clients": 2}]
    shared = play(pair(), scenario(seconds=0.2, load=both))
    assert shared.took_ms == pytest.approx([10 + 60 + 5 + 100] * 2)
    turn = play(pair(), scenario(seconds=0.2, load=both, serving="in-turn"))
    # the second waits 30 ms for `a`, then 20 ms for `b`
    assert turn.took_ms[:2] == pytest.approx([ALONE, ALONE + 30 + 20])
    free = play(pair(), scenario(seconds=0.1, load=both, serving="at-once"))
    assert free.took_ms == pytest.approx([ALONE] * 2)


@pytest.mark.parametrize("rate", [4.0, 10.0])
def test_open_loop_is_the_known_queue(rate: float) -> None:
    """Processor sharing: the mean time in each pod is its work by one less its use (M/G/1-PS).

    What leaves `a` is no Poisson process, so that `b` is held only where use is light.
    """
    run = play(pair(), scenario(seconds=4000, load=[{"requests_per_s": rate}]))
    use = rate * 0.03, rate * 0.05
    expected = 15 + 30 / (1 - use[0]) + 50 / (1 - use[1])
    assert run.took_ms.mean() == pytest.approx(expected, rel=0.05)
    assert len(run.answered) / 4000 == pytest.approx(rate, rel=0.03)


def test_the_mean_is_that_of_the_model() -> None:
    """Without queues a chain takes what the referee says, in the mean over replicas."""
    problem = Rescheduling.generate(1, application="chain", replicas=3)
    run = play(problem, scenario(seconds=2000, serving="at-once"))
    assert run.took_ms.mean() == pytest.approx(problem.initial_latency, rel=0.02)


def test_groups_are_parallel_and_their_calls_in_sequence() -> None:
    """By hand: a group of two calls takes their sum, the slower group counts."""
    document = pair().to_document()
    first, second = document["services"]
    third = {**second, "name": "c", "execution_ms": {"k": 20.0}}
    fourth = {**second, "name": "d", "execution_ms": {"k": 45.0}}
    first["calls"] = [["b"], ["c", "d"]]
    document["services"] = [first, second, third, fourth]
    run = play(Rescheduling.from_document(document), scenario(seconds=1, serving="at-once"))
    assert run.took_ms == pytest.approx([10 + 30 + 5 + 20 + 5 + 45] * len(run.took_ms))


def test_a_failed_node_loses_requests_and_its_pods_start_anew() -> None:
    """The request in the lost pod fails, the client tries again, the pod is on the other node."""
    lost = [{"at_s": 0.05, "nodes": ["n2"]}]
    run = play(pair(), scenario(seconds=3, failures=lost, serving="in-turn"))
    assert len(run.failed) == 1 and run.failed[0] == pytest.approx(0.05)
    assert run.started == 1 and run.end.services[1].replicas == ("n1",)
    assert run.answered[0] == pytest.approx(1.05 + 0.090)  # both on one node: no latency between
    assert run.log[0] == (0.05, "nodes n2 are lost")


def test_the_autoscaler_follows_its_rule() -> None:
    """By hand: `b` is busy 50 of 95 ms, 2.1 of a target of .25; `a` is within its tolerance."""
    auto = {"target": 0.25, "period_s": 19.0, "tolerance": 0.3, "most": 9}
    run = play(pair(), scenario(seconds=19.5, autoscaler=auto))
    assert [text for _, text in run.log].count("a pod of b starts on n1") >= 1
    counts = [len(s.replicas) for s in run.end.services]
    assert counts == [1, 3]


def test_the_autoscaler_goes_back_when_the_load_does() -> None:
    """Pods end when the load has been low for `stabilise_s`, down to what there was at first."""
    load = [{"clients": 8}, {"from_s": 60, "clients": 1}]
    auto = {"target": 0.5, "stabilise_s": 30, "most": 6}
    run = play(pair(), scenario(seconds=300, load=load, autoscaler=auto))
    assert any("ends on" in text for _, text in run.log)
    assert [len(s.replicas) for s in run.end.services] == [1, 1] or run.started > 2


def test_moves_are_made_one_after_another() -> None:
    """After a failure the rescheduler's plan is carried out, a second a move."""
    problem = Rescheduling.generate(1, application="chain", replicas=3, start="kubernetes")
    node = problem.nodes[0].name
    story = scenario(
        seconds=60,
        failures=[{"at_s": 20, "nodes": [node]}],
        rescheduler={"method": "block-search", "most_moves": 3},
    )
    run = play(problem, story)
    moved = [second for second, text in run.log if "moves from" in text]
    assert run.moves == len(moved) and 1 <= run.moves <= 3
    assert moved == pytest.approx([21.0 + k for k in range(run.moves)])
    assert run.end.initial_latency < play(problem, story, mover=lambda _: []).end.initial_latency


@given(
    seed=st.integers(0, 50),
    serving=st.sampled_from(["shared", "in-turn", "at-once"]),
    clients=st.integers(1, 6),
    fails=st.booleans(),
)
def test_no_request_is_lost_to_the_books(
    seed: int, serving: str, clients: int, fails: bool
) -> None:
    """Each client has one request on the way, or waits to try again; figures and series agree."""
    problem = Rescheduling.generate(seed, application="random", services=5, replicas=2)
    lost = [{"at_s": 3.0, "nodes": [problem.nodes[0].name]}] if fails else []
    story = scenario(seconds=8, load=[{"clients": clients}], serving=serving, failures=lost)
    try:
        run = play(problem, story, seed=seed)
    except UsageError:  # no node has room for what failed
        assert fails
        return
    assert (run.took_ms > 0).all() and (np.diff(run.answered) >= 0).all()
    told = figures(run, story)
    assert told["per_second"] * 8 == pytest.approx(len(run.answered))
    counted = sum(series(run, story)["per_second"]) * story.bucket_s
    assert counted == pytest.approx(len(run.answered))
    again = play(problem, story, seed=seed)
    assert np.array_equal(run.took_ms, again.took_ms)


def test_half_widths_are_those_of_students_t() -> None:
    """Of 1, 2, 3: 4.303 / sqrt(3)."""
    rows = [dict.fromkeys(figures(_empty(), scenario()), float(k)) for k in (1, 2, 3)]
    mean, half = mean_and_half_width(rows)["mean_ms"]
    assert mean == 2 and half == pytest.approx(2.484, abs=1e-3)


def _empty() -> Played:
    nothing = np.zeros(0)
    return Played(nothing, nothing, nothing, 0, 0, 0, [], pair())


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"load": [{"clients": 1, "requests_per_s": 2.0}]}, "load[0]"),
        ({"load": [{"clients": 1}, {"from_s": 5, "requests_per_s": 2.0}]}, ""),
        ({"load": [{"from_s": 9, "clients": 1}, {"from_s": 5, "clients": 2}]}, ""),
        ({"serving": "magic"}, "serving"),
        ({"seconds": 0}, "seconds"),
        ({"autoscaler": {"target": 2}}, "autoscaler.target"),
        ({"measured_from_s": 400}, ""),
        ({"clients": 3}, "clients"),
    ],
)
def test_a_malformed_scenario_is_named(fields: Json, path: str) -> None:
    """One message with the place."""
    with pytest.raises(DocumentError) as caught:
        scenario(**fields)
    assert path in str(caught.value)


def test_a_node_that_is_not_there_is_named() -> None:
    """With those that are."""
    with pytest.raises(UsageError, match=r"no node 'n9' in 'pair'; it has n1, n2"):
        play(pair(), scenario(failures=[{"at_s": 1, "nodes": ["n9"]}]))


def test_the_command(tmp_path: Path) -> None:
    """JSON when piped, the same for any number of jobs; bad input ends with 2."""
    story, instance = tmp_path / "surge.json", tmp_path / "pair.json"
    pair(2).write(instance)
    story.write_text(json.dumps({"seconds": 20, "load": [{"clients": 3}]}), encoding="utf-8")

    app = typer.Typer()
    app.callback()(lambda: None)
    register(app, typer.Typer(), typer.Typer())

    def run(*more: str) -> Any:
        return CliRunner().invoke(app, ["traffic", str(instance), str(story), *more])

    methods = ("--method", "none", "--method", "greedy", "--seeds", "2", "--quiet")
    one, two = run(*methods), run(*methods, "--jobs", "2")
    assert one.exit_code == 0, one.output
    assert one.stdout == two.stdout and set(json.loads(one.stdout)) == {"none", "greedy"}
    story.write_text('{"seconds": "long"}', encoding="utf-8")
    wrong = run()
    assert isinstance(wrong.exception, DocumentError) and "seconds" in str(wrong.exception)
    assert isinstance(run("--method", "nonsense").exception, UsageError | DocumentError)


def test_the_command_comes_with_the_papers() -> None:
    """And its scenario, by name."""
    from placeopt.doors import doors

    door = next(door for door in doors() if door.name == "traffic")
    assert door.load("commands") is register
    assert read_json(Path(command.__file__).with_name("surge.json"))["load"]
