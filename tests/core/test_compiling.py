"""Seconds of compiling are no work: they spend no time limit, and workers find kernels there."""

from __future__ import annotations

from typing import Any

import pytest
from hands import Hand, compile_for

import placeopt
from placeopt.core import interfaces
from placeopt.core.budget import Budget
from placeopt.core.interfaces import Encoder
from placeopt.core.runs.compiling import Clock
from placeopt.registry import problem_class


def test_compiling_spends_no_time_limit() -> None:
    """Whoever shares the budget; what was merely loaded counts."""
    hand = Hand()
    clock = Clock(hand)
    budget = Budget(seconds=10, clock=clock)
    hand.passes(1)
    share = budget.share(0.5)
    compile_for(clock, hand, 60)
    hand.passes(1)
    with clock.stopped():  # a kernel that an earlier run left
        hand.passes(1)
    assert (budget.seconds, budget.seconds_left, budget.progress) == (3, 7, 0.3)
    assert (share.seconds, share.seconds_left) == (2, 2.5)
    assert budget.compile_seconds == share.compile_seconds == 60
    assert not share.out_of_time and clock.kernels == 1


def test_the_clock_stands_still_while_a_kernel_is_compiled() -> None:
    """Threads that watch the limit look in between; kernels compile the kernels that they call."""
    hand = Hand()
    clock = Clock(hand)
    budget = Budget(seconds=1, clock=clock)
    with clock.stopped():
        clock.count("temporal", "pack", True)
        for _ in range(3):
            hand.passes(20)
            compile_for(clock, hand, 10)
            assert budget.seconds == 0 and not budget.exhausted
    assert (budget.compile_seconds, clock.kernels) == (90, 4)


def test_who_cancels_is_heard_while_the_clock_stands_still() -> None:
    hand, asked = Hand(), []
    clock = Clock(hand)
    budget = Budget(seconds=1, stop=lambda: bool(asked), clock=clock)
    with clock.stopped():
        clock.count("temporal", "pack", True)
        assert not budget.cancelled
        asked.append("stop")
        hand.passes(1)
        assert budget.cancelled


KINDS = ("temporal", "edge-cloud", "rolling-update", "multi-cluster", "rescheduling")


@pytest.mark.parametrize(
    ("kind", "method"), [*((kind, "moead") for kind in KINDS), ("temporal", "nsga2")]
)
def test_a_run_that_compiles_returns_what_a_warm_one_does(
    monkeypatch: pytest.MonkeyPatch, kind: str, method: str
) -> None:
    """The limit is half a second of a clock that counts looks. Two kernels take 32 seconds each
    in one of the runs.
    """
    problem = problem_class(kind).generate(3)
    encoder = type(interfaces.build_encoder(problem))
    evaluate = encoder.evaluate

    def run(seconds: float) -> placeopt.Front:
        hand = Hand(tick=1 / 128)
        clock = Clock(hand)
        left = [0.0, seconds, seconds, 0.0]

        def slow(self: Encoder, X: Any) -> Any:
            if left:
                compile_for(clock, hand, left.pop())
            return evaluate(self, X)

        monkeypatch.setattr(encoder, "evaluate", slow)
        budget = Budget(seconds=0.5, clock=clock)
        return placeopt.solve(problem, method, budget=budget, seeded=False)

    warm, cold = run(0.0), run(32.0)
    assert cold.runs[0].compile_seconds == pytest.approx(64, abs=0.1)
    assert cold.runs[0].evaluations == warm.runs[0].evaluations > 100
    assert [p.values for p in cold] == [p.values for p in warm]


def test_workers_under_a_time_limit_find_their_kernels_compiled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Every method of an ensemble has answered a small instance here before the first begins."""
    from placeopt import portfolio
    from placeopt.core.runs.workers import Workers

    asked: list[tuple[str, bool]] = []
    run = portfolio.run_method

    def seen(name: str, task: Any, parameters: Any) -> Any:
        asked.append((name, task.problem.instance_name == problem.instance_name))
        return run(name, task, parameters)

    def begun(self: Workers, calls: Any, budget: Budget, *more: Any) -> list[Any]:
        assert [name for name, _ in asked] == ["ensemble", "nsga2", "moead"]
        return [None] * len(calls)

    problem = problem_class("temporal").generate(3)
    monkeypatch.setattr(portfolio, "run_method", seen)
    monkeypatch.setattr(Workers, "run", begun)
    methods = "nsga2,moead"
    placeopt.solve(problem, "ensemble", methods=methods, seconds=5.0, jobs=2)
    assert [own for _, own in asked] == [True, False, False]
    monkeypatch.setattr(portfolio, "_compile_first", lambda names, task: pytest.fail("one process"))
    for alone in ({"seconds": 5.0}, {"evaluations": 50, "jobs": 2}):
        asked[:] = [("ensemble", True), ("nsga2", True), ("moead", True)]
        monkeypatch.setattr(Workers, "run", lambda *_: [None, None])
        placeopt.solve(problem, "ensemble", methods=methods, **alone)  # type: ignore[arg-type]
