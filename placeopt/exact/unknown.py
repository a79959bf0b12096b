"""Where points may lie that a search has not found: its unknown part, by samples, and what to ask.

A vector is unknown as long as no point dominates it and no answer refutes it. A box of limits that
holds much of the unknown part is worth a question: its answer is a point in the middle of what is
missing, or the proof that nothing is there. Samples show both what is unknown and which box holds
most of it, for any number of objectives.

All values are in units, as in `placeopt.exact.enumeration`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from placeopt.core.weights import simplex
from placeopt.exact.memory import SearchHistory
from placeopt.exact.regions import Box

#: Vectors drawn at once; unknown ones that are kept; of these, corners that are tried.
_DRAWN, _KEPT, _TRIED = 8192, 1024, 64
#: Parts of the lattice of weights, more than objectives: 4, 10 and 20 weights inside of it for 2, 3
#: and 4 objectives.
_MORE_PARTS = 3


def first_weights(size: int) -> list[np.ndarray]:
    """Return weights of objectives that spread evenly, the most balanced first, without the ends.

    Weighted sums are the cheapest questions that there are: mostly their linear relaxation is
    tight.
    """
    lattice = simplex(size + _MORE_PARTS, size)
    inner = lattice[lattice.min(axis=1) > 0]
    return list(inner[np.argsort(-inner.min(axis=1), kind="stable")])


class Unknown:
    """The unknown part of a box between ideal and nadir.

    Parameters
    ----------
    box : Box
    memory : SearchHistory
        Its points and refuted limits decide what is known.

    Attributes
    ----------
    share : float
        Share of the box that was unknown at the last draw.
    """

    def __init__(self, box: Box, memory: SearchHistory):
        self._box, self._memory = box, memory
        self._rng = np.random.default_rng(0)
        self._samples = np.empty((0, len(box.whole)))
        self._points = self._refuted = 0  # how many of them the samples have been compared with
        self._barren: list[np.ndarray] = []
        self._ends = not bool(np.isfinite(box.ideal).all() and np.isfinite(box.nadir).all())
        self.share = 0.0 if self._ends else 1.0

    def give_up(self, limits: np.ndarray) -> None:
        """Leave out a box: a question about it told nothing."""
        self._barren.append(limits)

    def largest_box(self, asked: Sequence[np.ndarray]) -> np.ndarray | None:
        """Return the limits of a box that holds much of the unknown part; None where it is small.

        Parameters
        ----------
        asked : sequence of ndarray
            Limits of boxes whose answers are still to come: they count as known.
        """
        self._compare()
        if len(self._samples) < _KEPT // 2 and not self._ends:
            self._draw()
        samples = _outside(self._samples, asked)
        if not len(samples):
            return None
        corners = self._rng.permutation(samples)[:_TRIED]
        held = (samples[:, None, :] <= corners).all(axis=2).sum(axis=0)
        return corners[int(held.argmax())]

    def _draw(self) -> None:
        """Add samples; the last ones where few of them are unknown."""
        low, high, whole = self._box.ideal, self._box.nadir, self._box.whole
        drawn = self._rng.uniform(low, high + whole, (_DRAWN, len(low)))
        drawn = np.where(whole, np.floor(drawn), drawn)
        self._points = self._refuted = 0
        unknown = self._unknown(drawn)
        self.share, self._ends = len(unknown) / _DRAWN, len(unknown) < _KEPT // 2
        self._samples = np.concatenate((self._samples, unknown))[:_KEPT]

    def _compare(self) -> None:
        self._samples = self._unknown(self._samples)

    def _unknown(self, samples: np.ndarray) -> np.ndarray:
        """Return the samples that nothing decides which they have not been compared with."""
        points, limits = self._memory.values.all, self._memory.refuted_limits
        for point in points[self._points :]:
            samples = samples[~(samples >= point).all(axis=1)]
        samples = _outside(samples, [*limits[self._refuted :], *self._barren])
        self._points, self._refuted = len(points), len(limits)
        return samples


def _outside(samples: np.ndarray, boxes: Sequence[np.ndarray]) -> np.ndarray:
    """Return the samples that lie in none of the boxes."""
    for limits in boxes:
        samples = samples[~(samples <= limits).all(axis=1)]
    return samples
