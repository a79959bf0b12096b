"""Vectors of rescheduling: values are the referee's, and every vector search serves them."""

from __future__ import annotations

import numpy as np
import pytest

from placeopt import api
from placeopt.core.interfaces import build_encoder, seeds
from placeopt.rescheduling.problem import Rescheduling


def test_seeds_are_what_block_search_finds() -> None:
    """The fastest deployment is among them, and none is out of bounds."""
    problem = Rescheduling.generate(4, replicas=3)
    encoder = build_encoder(problem)
    X = seeds(encoder, np.random.default_rng(0))
    best = api.solve(problem, "block-search", evaluations=10**6)
    assert (X >= 0).all() and (X <= encoder.upper).all()
    assert encoder.evaluate(X)[0][:, 0].min() == pytest.approx(best.values[:, 0].min())
