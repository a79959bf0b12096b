"""The encoding of the CNSM 2024 paper: what the decoder packs, and searches that use it."""

from __future__ import annotations

import numpy as np
import pytest
from placeopt_papers.cnsm_encoding import PublishedEncoder

import placeopt
from placeopt.core.errors import UnsupportedError
from placeopt.core.interfaces import build_encoder
from placeopt.temporal.problem import Temporal


@pytest.fixture
def problem() -> Temporal:
    return Temporal.generate(1, requests=20)


@pytest.mark.parametrize("masked", [True, False])
def test_the_published_decoder_agrees_with_the_referee(masked):
    """Masked vectors are always feasible; as published, hardly any is."""
    feasible = []
    for seed in range(10):
        problem = Temporal.generate(seed, requests=8, horizon=60)
        encoder = PublishedEncoder(problem, problem.objectives, masked=masked)
        X = encoder.sample(np.random.default_rng(seed), 10)
        F, G = encoder.evaluate(X)
        for genes, values, excess in zip(X, F, G, strict=True):
            verdict = problem.evaluate(encoder.decode(genes))
            np.testing.assert_allclose(verdict.values, values, rtol=1e-9, atol=1e-12)
            feasible.append(verdict.feasible)
            assert verdict.feasible or excess.sum() > 0
    assert all(feasible) if masked else sum(feasible) < 5


def test_the_published_encoding_refuses_what_it_cannot_say():
    """A request that fits nowhere has no gene in the paper's encoding."""
    document = Temporal.generate(1, requests=2).to_document()
    document["requests"][0]["cpu_cores"] = 1000
    problem = Temporal.from_document(document)
    with pytest.raises(UnsupportedError, match="fits no offer"):
        PublishedEncoder(problem, problem.objectives)


@pytest.mark.parametrize("method", ["nsga2", "nsga3", "mspso", "moead"])
def test_searches_run_as_published(problem: Temporal, method: str) -> None:
    paper = {"encoding": "published", "operators": "sbx", "seeded": False}
    front = placeopt.solve(problem, method, evaluations=400, seed=2, **paper)
    assert front.points and front.runs[0].parameters.items() >= paper.items()
    again = placeopt.solve(problem, method, evaluations=400, seed=2, **paper)
    np.testing.assert_array_equal(front.values, again.values)


def test_seeds_reach_the_published_encoding(problem: Temporal) -> None:
    """A plan that next fit can pack is the same plan afterwards."""
    encoder = build_encoder(problem, encoding="published")
    for genes in encoder.sample(np.random.default_rng(1), 20):
        known = encoder.encode(encoder.decode(genes))
        np.testing.assert_array_equal(
            encoder.evaluate(known[None])[0], encoder.evaluate(genes[None])[0]
        )
    found = [
        placeopt.solve(problem, "nsga2", evaluations=300, encoding="published", seeded=yes)
        for yes in (True, False)
    ]
    reference = np.maximum(*(front.values.max(axis=0) for front in found)) * 1.1
    assert found[0].hypervolume(reference) > found[1].hypervolume(reference)
