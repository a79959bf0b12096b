"""The edge-cloud encoder: values of the referee, plans and vectors, use by the searches."""

from __future__ import annotations

import numpy as np
import pytest
from edge_cloud_instances import random_instance
from hypothesis import given, settings
from hypothesis import strategies as st

from placeopt.core.budget import Budget
from placeopt.core.interfaces import build_encoder, seeds
from placeopt.core.task import Task
from placeopt.edge_cloud.heuristics import greedy
from placeopt.edge_cloud.instance import EdgeCloud
from placeopt.registry import method


@settings(max_examples=60, derandomize=True, deadline=None)
@given(st.integers(0, 10**6))
def test_kernel_agrees_with_the_referee(seed):
    """Values and feasibility of random vectors and of their children are the referee's."""
    problem, rng = random_instance(seed, missing=0.1), np.random.default_rng(seed)
    encoder = build_encoder(problem)
    X = encoder.sample(rng, 12)
    X = np.concatenate((X, encoder.vary(rng, X, X[::-1]), encoder.mutate(rng, X)))
    assert (X >= encoder.lower).all() and (X <= encoder.upper).all()
    F, G = encoder.evaluate(X)
    for genes, values, excess in zip(X, F, G, strict=True):
        verdict = problem.evaluate(encoder.decode(genes))
        assert values == pytest.approx(verdict.values, abs=1e-9)
        assert verdict.feasible == (excess <= 0).all()


@settings(max_examples=20, derandomize=True, deadline=None)
@given(st.integers(0, 10**6))
def test_feasible_plans_survive(seed):
    """A feasible plan is encoded and decoded as it is."""
    problem = random_instance(seed, missing=0.1)
    encoder = build_encoder(problem)
    for point in greedy(Task(problem, problem.objectives, Budget(), 1), parts=5).points:
        assert encoder.decode(encoder.encode(point.plan)) == point.plan


def test_seeds_are_good_vectors():
    """Seeds are within the bounds, feasible, and far better than random vectors."""
    problem = EdgeCloud.generate(1, applications=30)
    encoder, rng = build_encoder(problem, problem.objectives[::-1]), np.random.default_rng(0)
    X = seeds(encoder, rng)
    assert len(X) > 5 and (X <= encoder.upper).all()
    F, G = encoder.evaluate(X)
    assert (
        not G.any()
        and F[:, 0].min() < 0.7 * encoder.evaluate(encoder.sample(rng, 50))[0][:, 0].min()
    )


@pytest.mark.parametrize("name", ["nsga2", "nsga3", "moead", "mspso"])
def test_searches_are_served(name):
    """Every vector search gives a feasible front, the same one for the same seed."""
    problem = EdgeCloud.generate(2, applications=12)
    run = method(name).load("edge-cloud")
    one, two = (
        run(Task(problem, problem.objectives, Budget(evaluations=2000), 1)) for _ in range(2)
    )
    assert one.points == two.points and len(one) >= 3
    assert all(problem.evaluate(p.plan).values == p.values for p in one.points)
