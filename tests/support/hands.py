"""Clocks that tests move by hand, and CPU seconds measured beside a yardstick."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from placeopt.core.runs.compiling import Clock

#: CPU seconds of the yardstick on a machine of 2024 that has nothing else to do.
QUICK = 0.015


class Hand:
    """Seconds that pass when a test says so, and a little whenever somebody looks."""

    def __init__(self, tick: float = 0.0) -> None:
        self.now, self.tick = 0.0, tick

    def __call__(self) -> float:
        self.now += self.tick
        return self.now

    def passes(self, seconds: float) -> None:
        self.now += seconds


def compile_for(clock: Clock, hand: Hand, seconds: float, kept: bool = True) -> None:
    """Compile a kernel that takes so many seconds."""
    with clock.stopped():
        clock.count("temporal", "pack", kept)
        hand.passes(seconds)


def yardstick() -> float:
    """Return the CPU seconds of a fixed piece of Python: the least of five."""
    taken = []
    for _ in range(5):
        began, total = time.process_time(), 0
        for k in range(200_000):
            total += k * k % 7
        taken.append(time.process_time() - began)
    return min(taken)


@contextmanager
def within(limit: float, beside: float) -> Iterator[None]:
    """Fail where a block takes more CPU seconds than its time limit and what may come beside it.

    Where that is too much, what comes beside counts in yardsticks, measured then, so that a slow
    machine, or one that works on something else, has as much room as a quick one.

    Parameters
    ----------
    limit : seconds that the block gives to what it runs; 0 if none.
    beside : seconds of a machine whose yardstick takes `QUICK` seconds.
    """
    began = time.process_time()
    yield
    taken = time.process_time() - began
    if taken >= limit + beside:
        pace = yardstick() / QUICK
        assert taken < limit + beside * pace, f"{taken:.1f} CPU s, {pace:.1f} times as slow"
