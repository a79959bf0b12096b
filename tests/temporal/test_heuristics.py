"""Greedy answers to temporal instances."""

from __future__ import annotations

import numpy as np
import pytest

import placeopt
from placeopt.core.interfaces import build_encoder, seeds
from placeopt.temporal.problem import Temporal


@pytest.mark.parametrize("requests", [1, 5, 40])
def test_seeds_are_legal_spread_and_repeat(requests):
    """Seeds are within the bounds, are not random, and are both cheap and near."""
    encoder = build_encoder(Temporal.generate(1, requests=requests))
    one, two = (seeds(encoder, np.random.default_rng(k)) for k in (1, 2))
    np.testing.assert_array_equal(one, two)
    assert (one >= encoder.lower).all() and (one <= encoder.upper).all()
    F, _ = encoder.evaluate(one)
    random_F, _ = encoder.evaluate(encoder.sample(np.random.default_rng(1), 200))
    assert (F.min(axis=0) <= random_F.min(axis=0) + 1e-9).all()


def test_nearest_and_uninterrupted_are_reached_exactly():
    """Least latency is every replica at the nearest offer that fits.

    No interruption is possible where firm machines are.
    """
    problem = Temporal.generate(2, requests=20)
    front = placeopt.solve(problem, "greedy")
    nearest = np.where(problem.arrays.usable, problem.arrays.latencies, np.inf).min(axis=1).mean()
    assert front.ideal[0] == pytest.approx(nearest)
    assert front.ideal[2] == 0


def test_large_instances_get_fewer_seeds():
    """The work is bounded.

    A thousand requests are answered with tens of solutions, still with both ends.
    """
    problem = Temporal.generate(3, requests=1000)
    front = placeopt.solve(problem, "greedy")
    assert 6 <= front.runs[0].evaluations <= 200
    assert all(problem.evaluate(p.plan).feasible for p in front.points[:3])


def test_scaling_all_prices_scales_only_the_cost():
    """Twice the prices, twice the cost, the same plans."""
    document = Temporal.generate(4, requests=8).to_document()
    dearer = {
        **document,
        "offers": [
            {k: v * 2 if k.endswith("per_hour") and v else v for k, v in o.items()}
            for o in document["offers"]
        ],
    }
    one, two = (placeopt.solve(Temporal.from_document(d), "greedy") for d in (document, dearer))
    np.testing.assert_allclose(one.values * [1, 2, 1], two.values)
    assert [p.plan for p in one.points] == [p.plan for p in two.points]
