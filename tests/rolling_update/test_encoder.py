"""Rolling-update encoder: what it says of every vector is what the referee says of its plan."""

from __future__ import annotations

import numpy as np

from placeopt.core.interfaces import build_encoder
from placeopt.rolling_update.problem import RollingUpdate


def test_children_find_feasible_deployments_by_themselves() -> None:
    """Variation alone, survivors chosen by excess, mends random vectors."""
    problem = RollingUpdate.generate(1)
    encoder = build_encoder(problem)
    rng = np.random.default_rng(0)
    X = encoder.sample(rng, 60)
    for _ in range(60):
        X = np.concatenate((X, encoder.vary(rng, X, X[rng.permutation(len(X))])))
        F, G = encoder.evaluate(X)
        X = X[np.lexsort((F[:, 0], G.sum(axis=1)))[:60]]
    F, G = encoder.evaluate(X)
    assert (G == 0).all()
    assert F[:, 0].min() <= 11


def test_nothing_to_move_is_one_vector() -> None:
    problem = RollingUpdate.generate(0, applications=2, reschedulable=0, downscaled=0.0)
    encoder = build_encoder(problem)
    F, G = encoder.evaluate(
        encoder.mutate(np.random.default_rng(0), encoder.sample(np.random.default_rng(0), 3))
    )
    assert (F[:, 1:] == 0).all() and (G == 0).all()
    assert encoder.decode(np.zeros(1, dtype=int)) == {"steps": []}
