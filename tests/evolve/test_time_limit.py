"""Searches keep a time limit that is shorter than one population takes."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

import placeopt
from placeopt.temporal.encoder import TemporalEncoder


@pytest.mark.parametrize("method", ["nsga2", "nsga3", "moead", "mspso"])
def test_a_population_is_cut_short(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each vector takes 30 ms, a population several seconds: what was evaluated is returned."""
    problem = placeopt.load("toy")
    placeopt.solve(problem, method, evaluations=20)  # compiles
    evaluate = TemporalEncoder.evaluate

    def slow(encoder: TemporalEncoder, X: np.ndarray) -> Any:
        time.sleep(0.03 * len(X))
        return evaluate(encoder, X)

    monkeypatch.setattr(TemporalEncoder, "evaluate", slow)
    began = time.perf_counter()
    front = placeopt.solve(problem, method, seconds=0.5)
    assert time.perf_counter() - began < 1.5
    assert len(front.points) and 1 <= front.runs[0].evaluations < 40
