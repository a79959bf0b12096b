"""Searches keep a time limit that is shorter than one population takes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hands import Hand

import placeopt
from placeopt.core.budget import Budget
from placeopt.core.runs.compiling import Clock
from placeopt.temporal.encoder import TemporalEncoder


@pytest.mark.parametrize("method", ["nsga2", "nsga3", "moead", "mspso"])
def test_a_population_is_cut_short(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each vector takes 30 ms, a population several seconds: what was evaluated is returned."""
    problem = placeopt.load("toy")
    placeopt.solve(problem, method, evaluations=20)  # compiles
    evaluate, hand = TemporalEncoder.evaluate, Hand()

    def slow(encoder: TemporalEncoder, X: np.ndarray) -> Any:
        hand.passes(0.03 * len(X))
        return evaluate(encoder, X)

    monkeypatch.setattr(TemporalEncoder, "evaluate", slow)
    budget = Budget(seconds=0.5, clock=Clock(hand))
    front = placeopt.solve(problem, method, budget=budget)
    assert 0.5 <= budget.seconds < 1.0
    assert len(front.points) and 1 <= front.runs[0].evaluations < 40
