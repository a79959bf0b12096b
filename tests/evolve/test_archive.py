"""The archive keeps the non-dominated vectors, however often its rows are used again."""

from __future__ import annotations

import numpy as np
import pytest

from placeopt.core.fronts.dominance import minimal
from placeopt.evolve import search as module
from placeopt.evolve.search import VectorArchive


@pytest.mark.parametrize("buffer", [1, 7, 1000])
def test_keeps_the_non_dominated_with_their_vectors(buffer):
    """Against all vectors at once; the first gene is the number of the vector."""
    rng = np.random.default_rng(buffer)
    F = (
        rng.random((400, 3)) - np.linspace(0, 0.5, 400)[:, None]
    )  # later ones are better, so that rows are freed
    X = np.stack([np.arange(400), rng.integers(0, 9, 400)], axis=1)
    archive = VectorArchive(2, 3, buffer)
    for k in range(0, 400, 20):
        archive.add(X[k : k + 20], F[k : k + 20], np.empty((20, 0)))
    found = archive.result()
    np.testing.assert_array_equal(F[found[:, 0]], archive.F)
    np.testing.assert_array_equal(X[found[:, 0]], found)
    np.testing.assert_array_equal(minimal(archive.F), minimal(F))
    assert len(archive) == len(found) == len(minimal(F))


def test_nothing_feasible_leaves_the_least_violating(monkeypatch):
    """Until something is feasible, then only that; memory is bounded by the farthest points."""
    archive = VectorArchive(1, 2)
    archive.add(np.array([[1], [2]]), np.ones((2, 2)), np.array([[2.0], [1.0]]))
    assert archive.result().tolist() == [[2]]
    archive.add(np.array([[3], [4]]), np.ones((2, 2)), np.array([[0.0], [1.0]]))
    assert archive.result().tolist() == [[3]] and archive.F.tolist() == [[1.0, 1.0]]
    assert archive.vector(0).tolist() == [3]
    monkeypatch.setattr(module, "MAX_BYTES", 0)
    small, line = VectorArchive(1, 2), np.arange(500.0)
    small.add(np.arange(500)[:, None], np.stack((line, -line), axis=1), np.empty((500, 0)))
    assert len(small.result()) == 100 and {0.0, 499.0} <= set(small.F[:, 0])
