"""The external archive: every non-dominated feasible vector that a search has met, and the least-violating one besides."""

from __future__ import annotations

import numpy as np

from placeopt.front import farthest, nondominated

#: Memory that vectors may take; beyond it the archive is thinned to its farthest points.
MOST_BYTES = 2**28


class Archive:
    """Keeps non-dominated vectors; new ones wait in a buffer, as filtering many at once is far cheaper than one by one.

    Parameters
    ----------
    num_genes, num_objectives : int
    buffer : int
        Vectors that may wait before the archive is filtered; it also grows with the archive.
    """

    def __init__(self, num_genes: int, num_objectives: int, buffer: int = 1024):
        self.X = np.empty((0, num_genes), dtype=np.int64)
        self.F = np.empty((0, num_objectives))
        self._waiting: list[tuple[np.ndarray, np.ndarray]] = []
        self._most = max(100, MOST_BYTES // (8 * num_genes))
        self._count, self._buffer = 0, min(buffer, self._most)
        self._least = np.inf
        self._rejected = np.empty((0, num_genes), dtype=np.int64)

    def add(self, X: np.ndarray, F: np.ndarray, G: np.ndarray) -> None:
        """Offer evaluated vectors."""
        excess = G.sum(axis=1) if G.shape[1] else np.zeros(len(F))
        feasible = excess <= 0
        if not feasible.all() and len(self.X) == 0:
            k = int(excess.argmin())
            if 0 < excess[k] < self._least:
                self._least, self._rejected = float(excess[k]), X[k : k + 1].copy()
        if feasible.any():
            self._waiting.append((X[feasible], F[feasible]))
            self._count += int(feasible.sum())
        if self._count >= max(self._buffer, len(self.X)):
            self.settle()

    def settle(self) -> None:
        """Filter what waits into the archive."""
        if not self._waiting:
            return
        X = np.concatenate([self.X, *(x for x, _ in self._waiting)])
        F = np.concatenate([self.F, *(f for _, f in self._waiting)])
        keep = nondominated(F)
        if keep.sum() > self._most:
            keep = np.flatnonzero(keep)
            keep = keep[farthest(F[keep], self._most)]
        self.X, self.F = X[keep], F[keep]
        self._waiting, self._count = [], 0

    @property
    def best(self) -> tuple[float, ...]:
        """Least value of each objective among the settled vectors."""
        return tuple(self.F.min(axis=0).tolist()) if len(self.F) else ()

    def result(self) -> np.ndarray:
        """Return the non-dominated vectors, shape (k, num_genes); the least-violating one where none is feasible."""
        self.settle()
        return self.X if len(self.X) else self._rejected
