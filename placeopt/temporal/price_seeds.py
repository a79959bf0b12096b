"""Vectors for given weights: every request goes where the prices of demands send it.

The prices are those that bound the weighted sum from below (`placeopt.temporal.prices`), so that a
plan is as good as its machines are full.
"""

from __future__ import annotations

import numpy as np

from placeopt.temporal.encoder import TemporalEncoder
from placeopt.temporal.heuristics import greedy_vectors
from placeopt.temporal.levelling import levelled
from placeopt.temporal.prices import DemandPrices

#: Rounds of play for the prices of one weight vector.
ROUNDS = 8


def vectors_at(encoder: TemporalEncoder, weights: np.ndarray) -> np.ndarray:
    """Return vectors that are good for weighted sums, shape (j, num_genes).

    Parameters
    ----------
    encoder : TemporalEncoder
    weights : ndarray, shape (k, objectives)
        Of the encoder's objectives, above 0.
    """
    every = np.zeros((len(weights), 3))
    every[:, encoder.problem.columns(encoder.objectives)] = weights
    every = np.maximum(every, 1e-9 * every.max(axis=1, keepdims=True))
    prices = DemandPrices(encoder.arrays)
    sent = np.array([_sent(encoder, prices, *row) for row in every])
    X = np.concatenate((greedy_vectors(encoder, every), sent))
    return np.unique(np.concatenate((X, levelled(X, encoder.arrays))), axis=0)


def _sent(
    encoder: TemporalEncoder,
    prices: DemandPrices,
    latency: float,
    cost: float,
    interruption: float,
) -> np.ndarray:
    """Return the vector that the prices for one weight vector make, all starts 0, (num_genes,)."""
    instance, rates = encoder.arrays, (latency / cost, interruption / cost)
    pools = prices.best_pools(*rates, prices.solve(*rates, ROUNDS).prices)
    request = np.repeat(np.arange(len(pools)), np.diff(instance.legal_first))
    index = np.arange(len(instance.legal)) - instance.legal_first[request]
    choice = np.zeros(len(pools), dtype=np.int64)
    chosen = instance.legal == pools[request]
    choice[request[chosen]] = index[chosen]
    starts = np.zeros(len(pools), dtype=np.int64)
    return np.concatenate((starts, choice[instance.request]))
