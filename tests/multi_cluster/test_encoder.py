"""Multi-cluster plans as vectors: any vector is a feasible plan with the referee's values.

Searches go beyond greedy.
"""

from __future__ import annotations

import numpy as np
import pytest

from placeopt.core.budget import Budget
from placeopt.core.interfaces import build_encoder
from placeopt.core.task import Task
from placeopt.evolve.moead import run as moead
from placeopt.multi_cluster.episodes.stream import EpisodeBatch
from placeopt.multi_cluster.problem import MultiCluster
from placeopt.multi_cluster.search import greedy


def test_an_action_that_places_nothing_gives_way() -> None:
    """To the one that earns most; the refusal stays the refusal."""
    problem = MultiCluster.generate(1, requests=30, rate=200.0)
    encoder = build_encoder(problem)
    F, _ = encoder.evaluate(np.array([[0] * 30, [encoder.upper[0]] * 30]))
    assert F[0, 3] < 0.7 and F[1].tolist() == list(
        problem.evaluate({"decisions": [{}] * 30}).values
    )


def test_search_goes_beyond_greedy() -> None:
    """It starts from the greedy plans and adds to them."""
    problem = MultiCluster.generate(1, requests=30)
    found = moead(Task(problem, budget=Budget(evaluations=1500)))
    assert len(found) > len(greedy(Task(problem)))
    assert found.runs[0].evaluations == 1500


@pytest.mark.parametrize("clusters", [3, 6])
def test_vectors_are_played_as_step_by_step(clusters: int) -> None:
    """The compiled episodes of the fixed rules against single steps, crowded and not."""
    for rate in (5.0, 60.0):
        problem = MultiCluster.generate(clusters, clusters=clusters, requests=60, rate=rate)
        encoder = build_encoder(problem, problem.objectives)
        X = encoder.sample(np.random.default_rng(1), 40)
        stream = EpisodeBatch.of(problem, len(X))
        for genes in X.T:
            accepts, reward = stream.outcomes.accepts, stream.parts.sum(axis=2)
            best = np.where(accepts.any(axis=1), np.where(accepts, reward, -99).argmax(axis=1), -1)
            placed = accepts[np.arange(len(X)), genes] | (genes == stream.num_actions - 1)
            stream.step(np.where(placed, genes, best % stream.num_actions))
        np.testing.assert_array_equal(
            encoder.evaluate(X)[0], stream.values(problem.referee.worst), strict=True
        )
