"""Search for the vectors of least weighted sums, for all weights at once.

One member serves each weight. Children of members of near weights are offered to all weights; the
best replaces the member. The weighted sums of a problem's parts add up, so that members of all
parts for one weight make up a plan of the whole (`placeopt.evolve.sharded`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from placeopt.core.budget import Budget
from placeopt.core.goals import simplex
from placeopt.core.interfaces import Encoder

#: Parts of the lattice of weights by number of objectives, and of the coarser one of the seeds:
#: about 1,000 and 150 weights.
PARTS = {1: (1, 1), 2: (600, 120), 3: (48, 16), 4: (15, 7)}
#: Least weight of an objective before the power is taken, and the power: it spreads ratios of
#: weights, since a goal that is cheap to improve matters at small weights too.
LEAST_WEIGHT, POWER = 1e-3, 2.0
#: Children that are made and evaluated together.
BLOCK = 128
#: Weights that are drawn for the father of a child; the nearest one with another member is taken.
FATHERS = 16
#: What a unit of violation adds to a weighted sum; goals are scaled to about 1.
PENALTY = 1e6


@cache
def weight_lattice(objectives: int, *, seeds: bool = False) -> np.ndarray:
    """Return weights that sum to 1, shape (w, objectives); few of them for `seeds`."""
    parts = PARTS.get(objectives, (6, 4))[1 if seeds else 0]
    weights = np.maximum(simplex(parts, objectives), LEAST_WEIGHT) ** POWER
    return weights / weights.sum(axis=1, keepdims=True)


@dataclass
class Members:
    """The best vector known for each weight; several weights may share one.

    Attributes
    ----------
    X : ndarray, shape (k, num_genes)
    F : ndarray, shape (k, objectives)
    of : ndarray, shape (w,)
        The row of X that serves each weight.
    score : ndarray, shape (w,)
        Its weighted sum, with what it violates.
    """

    X: np.ndarray
    F: np.ndarray
    of: np.ndarray
    score: np.ndarray

    def offer(self, X: np.ndarray, F: np.ndarray, scores: np.ndarray) -> None:
        """Let each weight have the best of some vectors, of `scores` (vectors, w), if better."""
        best = scores.argmin(axis=0)
        lowest = scores[best, np.arange(len(self.of))]
        better = lowest < self.score
        if better.any():
            used, rows = np.unique(best[better], return_inverse=True)
            self.of[better], self.score[better] = len(self.X) + rows, lowest[better]
            self.X, self.F = np.concatenate((self.X, X[used])), np.concatenate((self.F, F[used]))
            kept, self.of = np.unique(self.of, return_inverse=True)
            self.X, self.F = self.X[kept], self.F[kept]


def search(
    encoder: Encoder,
    weights: np.ndarray,
    starts: np.ndarray,
    rng: np.random.Generator,
    budget: Budget,
) -> Members:
    """Return the members that a search finds within a budget; it evaluates `starts` first.

    Parameters
    ----------
    encoder : Encoder
    weights : ndarray, shape (w, objectives)
        Of goals that they scale to about 1.
    starts : ndarray, shape (k, num_genes)
        At least one vector.
    """
    lattice = np.log(weights / weights.max(axis=0) + LEAST_WEIGHT)

    def scored(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        F, G = encoder.evaluate(X)
        budget.spend(len(X))
        return F, F @ weights.T + PENALTY * G.sum(axis=1)[:, None]

    members = Members(
        starts[:0],
        np.empty((0, weights.shape[1])),
        np.zeros(len(weights), int),
        np.full(len(weights), np.inf),
    )
    together = len(starts) if budget.seconds_limit is None else BLOCK
    for begin in range(0, len(starts), together):
        if begin and budget.out_of_time:
            break
        block = starts[begin : begin + together]
        members.offer(block, *scored(block))
    order = np.empty(0, dtype=np.int64)
    while not budget.exhausted:
        if len(order) == 0:
            order = rng.permutation(len(weights))
        block, order = order[: budget.allow(BLOCK)], order[budget.allow(BLOCK) :]
        fathers = _near(lattice, members.of, block, rng)
        children = encoder.vary(rng, members.X[members.of[block]], members.X[members.of[fathers]])
        members.offer(children, *scored(children))
        budget.report(f"{len(members.X)} vectors")
    return members


def _near(
    lattice: np.ndarray, of: np.ndarray, block: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Return for each weight of a block a near weight with another member, where one is drawn."""
    drawn = rng.integers(len(lattice), size=(len(block), FATHERS))
    distance = ((lattice[drawn] - lattice[block][:, None]) ** 2).sum(axis=2)
    distance[of[drawn] == of[block][:, None]] = np.inf
    return drawn[np.arange(len(block)), distance.argmin(axis=1)]
