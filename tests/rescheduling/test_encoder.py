"""Vectors of rescheduling: values are the referee's, and every vector search serves them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from placeopt import api
from placeopt.core.interfaces import build_encoder, seeds
from placeopt.rescheduling.generator import APPLICATIONS
from placeopt.rescheduling.instance import Rescheduling


@given(
    st.integers(0, 10**6),
    st.integers(1, 4),
    st.sampled_from([*APPLICATIONS, "random"]),
    st.integers(1, 2),
)
def test_evaluate_is_the_referee(seed: int, replicas: int, application: str, cloud_a: int) -> None:
    """Of vectors drawn, varied and mutated, on roomy and on crowded machines."""
    problem = Rescheduling.generate(
        seed, application=application, replicas=replicas, services=4, cloud_a=cloud_a, jitter=0.2
    )
    encoder, rng = build_encoder(problem), np.random.default_rng(seed)
    X = encoder.sample(rng, 6)
    X = np.concatenate(
        (X, encoder.vary(rng, X, X[::-1]), encoder.mutate(rng, X), encoder.home[None])
    )
    assert (
        X.shape[1] == encoder.num_genes
        and (X >= encoder.lower).all()
        and (X <= encoder.upper).all()
    )
    F, G = encoder.evaluate(X)
    for genes, values, excess in zip(X, F, G, strict=True):
        verdict = problem.evaluate(encoder.decode(genes))
        assert values == pytest.approx(verdict.values) and (excess[0] == 0) == verdict.feasible
        again = encoder.encode(encoder.decode(genes))
        assert (encoder.counts(again[None]) == encoder.counts(genes[None])).all()
    assert F[-1].tolist() == pytest.approx([problem.initial_latency, 0]) and G[-1, 0] == 0


def test_seeds_are_what_block_search_finds() -> None:
    """The fastest deployment is among them, and none is out of bounds."""
    problem = Rescheduling.generate(4, replicas=3)
    encoder = build_encoder(problem)
    X = seeds(encoder, np.random.default_rng(0))
    best = api.solve(problem, "block-search", evaluations=10**6)
    assert (X >= 0).all() and (X <= encoder.upper).all()
    assert encoder.evaluate(X)[0][:, 0].min() == pytest.approx(best.values[:, 0].min())


@pytest.mark.parametrize("method", ["nsga2", "nsga3", "mspso", "moead"])
def test_vector_searches_serve_it(method: str) -> None:
    """Feasible fronts; the same seed, the same points."""
    problem = Rescheduling.generate(3, replicas=2)
    front, again = (api.solve(problem, method, evaluations=600, seed=2) for _ in range(2))
    assert front.points == again.points and front.rejected is None
    assert front.values[:, 0].min() <= problem.initial_latency
