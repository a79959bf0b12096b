"""Seconds of compiling are no work: they spend no time limit, here and in workers."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hands import Hand, compile_for, compiles

import placeopt
from placeopt.core import interfaces
from placeopt.core.budget import Budget, Progress
from placeopt.core.interfaces import Encoder
from placeopt.core.runs.calls import Call
from placeopt.core.runs.compiling import CLOCK, PROCESS, SILENT_SECONDS, Clock, Expected, Message
from placeopt.core.runs.workers import Workers
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


def message(process: str, kernel: str, seconds: float, kernels: int = 1) -> Message:
    return Message(process, "temporal", kernel, kernels, seconds, True)


def test_the_worker_that_compiles_longest_stops_the_clock() -> None:
    """A run waits for its last worker. Of this process its own clock knows."""
    hand = Hand()
    clock = Clock(hand)
    budget = Budget(seconds=10, clock=clock)
    with clock.elsewhere() as others:
        others.hear(message("a", "pack", 0))
        hand.passes(3)
        others.hear(message("b", "pack", 0))
        others.hear(message(PROCESS, "pack", 0))
        hand.passes(2)
        assert budget.seconds == 0
        others.hear(message("a", "", 5, kernels=4))
        hand.passes(1)
        assert budget.seconds == 1 and budget.compile_seconds == 5
        others.hear(message("b", "", 3, kernels=2))
    hand.passes(1)
    assert (budget.seconds, budget.compile_seconds, clock.kernels) == (2, 5, 6)


def test_a_worker_that_died_does_not_stop_the_clock_for_ever() -> None:
    hand = Hand()
    clock = Clock(hand)
    budget = Budget(seconds=10, clock=clock)
    with clock.elsewhere() as others:
        others.hear(message("a", "pack", 0))
        hand.passes(SILENT_SECONDS + 11)
        assert budget.out_of_time and budget.compile_seconds == SILENT_SECONDS
    with clock.elsewhere() as others:
        others.hear(message("b", "pack", 1))
        others.forget_running()
        hand.passes(9)
    assert budget.compile_seconds == SILENT_SECONDS + 1


def test_seconds_of_work_never_fall() -> None:
    """A message of a worker may come late."""
    hand = Hand()
    clock = Clock(hand)
    with clock.elsewhere() as others:
        hand.passes(3)
        assert clock.seconds == 3
        others.hear(message("a", "", 2))
        assert clock.seconds == 3
        hand.passes(4)
    assert clock.seconds == 5


def test_progress_announces_what_is_compiled() -> None:
    """At most ten times a second, with what is to be expected; then the run goes on."""
    hand = Hand()
    clock, told = Clock(hand), list[Progress]()
    budget = Budget(seconds=10, on_progress=told.append, clock=clock)
    with clock.expecting(lambda: Expected(92, 8.0)), clock.watched(budget.tell_compiling):
        for _ in range(3):
            hand.passes(1)
            compile_for(clock, hand, 0.05)
    first = "compiling temporal, once: pack | 1 of up to 92 kernels | 0 of about 8 s"
    assert [state.note for state in told][:2] == [first, ""]
    assert len(told) == 6 and told[-1].seconds == 3


def test_what_processes_compile_does_not_end_the_run() -> None:
    """Three tasks on two workers, each of which compiles longer than the limit of the whole run."""
    workers = Workers(jobs=2)
    workers.run([Call(compiles, (0.0,), seconds=0.1)] * 4, Budget())  # the processes are there
    began = time.perf_counter()
    budget = Budget(seconds=1.5)
    results = workers.run([Call(compiles, (2.0,), seconds=0.3)] * 3, budget)
    took = time.perf_counter() - began
    assert all(result is not None and result >= 0.3 for result in results), results
    assert 4 <= budget.compile_seconds <= took and CLOCK.kernels >= 3


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
