"""Fronts of a run while it works, one after another."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from placeopt import api
from placeopt.core.budget import Budget, Progress
from placeopt.core.files import AnyPath
from placeopt.core.front import Front, merge
from placeopt.core.problem import Problem


@dataclass(frozen=True)
class _Ended:
    """The last message of a run: its front, or what it raised."""

    front: Front | None = None
    error: BaseException | None = None


def iterate(
    problem: Problem | AnyPath,
    method: str = "auto",
    *,
    every: float = 1.0,
    evaluations: int | None = None,
    seconds: float | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    budget: Budget | None = None,
    **options: Any,
) -> Iterator[Front]:
    """Solve, and yield a better front whenever the run has one, while it works.

    The run is a thread. Leaving the loop ends it: it stops at its next look at the clock, as with
    Ctrl-C, and the generator waits for that.

    Parameters
    ----------
    problem, method, evaluations, seconds, on_progress, budget, **options
        As of `placeopt.solve`.
    every : float
        Seconds between two fronts, at least.

    Yields
    ------
    Front
        Each has points that none of those before beats, at most 100 new ones, judged, and without
        what is proven only at the end. Which they are depends on the clock. The last one does not:
        it is what `placeopt.solve` returns for these arguments.

    Raises
    ------
    PlaceoptError
        As of `placeopt.solve`, at the first step of the loop.

    Examples
    --------
    >>> for front in iterate("toy", evaluations=2000, every=0.0):
    ...     if front.hypervolume([30, 4, 1]) > 1:
    ...         break
    """
    budget = budget or Budget(evaluations, seconds, on_progress)
    messages: queue.SimpleQueue[Front | _Ended] = queue.SimpleQueue()

    def work() -> None:
        try:
            front = api.solve(
                problem, method, budget=budget, on_front=messages.put, every=every, **options
            )
        except BaseException as error:
            messages.put(_Ended(error=error))
        else:
            messages.put(_Ended(front))

    thread = threading.Thread(target=work, name="placeopt-iterate", daemon=True)
    thread.start()
    try:
        yield from _better(messages)
    finally:
        budget.cancel()
        thread.join()


def _better(messages: queue.SimpleQueue[Front | _Ended]) -> Iterator[Front]:
    """Yield what is better than all before, and the front at the end."""
    best: Front | None = None
    while True:
        message = messages.get()
        if isinstance(message, _Ended):
            if message.error is not None:
                raise message.error
            assert message.front is not None
            yield message.front
            return
        if not message.points:
            continue
        merged = message if best is None else merge([best, message])
        if best is None or {p.values for p in merged} != {p.values for p in best}:
            best = replace(merged, runs=message.runs)
            yield best
