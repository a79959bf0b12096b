"""Clocks that tests move by hand."""

from __future__ import annotations

from placeopt.core.runs.compiling import Clock


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
