"""The external archive of a search: its non-dominated feasible vectors.

Until a vector is feasible it keeps the least-violating one.
"""

from __future__ import annotations

import numpy as np

from placeopt.core.fronts.dominance import farthest, nondominated

#: Memory that vectors may take; a larger archive is thinned to its farthest points.
MAX_BYTES = 2**28


class VectorArchive:
    """Keeps non-dominated vectors.

    New ones wait in a buffer, as one filter of many is far cheaper than many filters of one. A
    vector is copied once, into a row of a store. Rows of vectors that are dominated later are used
    again.

    Parameters
    ----------
    num_genes, num_objectives : int
    buffer : int
        Vectors that wait before the archive is filtered; at least as many as the archive has.

    Attributes
    ----------
    F : ndarray, shape (k, num_objectives)
        Objectives of the settled vectors.
    """

    def __init__(self, num_genes: int, num_objectives: int, buffer: int = 4096):
        self.F = np.empty((0, num_objectives))
        self._store = np.empty((0, num_genes), dtype=np.int64)
        self._rows = self._unused = np.empty(0, dtype=np.int64)
        self._waiting: list[tuple[np.ndarray, np.ndarray]] = []
        self._max_size = max(100, MAX_BYTES // (8 * num_genes))
        self._count, self._buffer = 0, min(buffer, self._max_size)
        self._lowest_excess = np.inf
        self._rejected = np.empty((0, num_genes), dtype=np.int64)

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, X: np.ndarray, F: np.ndarray, G: np.ndarray) -> None:
        """Offer evaluated vectors."""
        if G.shape[1]:
            excess = G.sum(axis=1)
            feasible = excess <= 0
            if not feasible.all() and len(self) == 0:
                k = int(excess.argmin())
                if 0 < excess[k] < self._lowest_excess:
                    self._lowest_excess, self._rejected = float(excess[k]), X[k : k + 1].copy()
            X, F = X[feasible], F[feasible]
        if len(X):
            self._waiting.append((X, F))
            self._count += len(X)
        if self._count >= max(self._buffer, len(self)):
            self.settle()

    def settle(self) -> None:
        """Filter the waiting vectors into the archive."""
        if not self._waiting:
            return
        F = np.concatenate([self.F, *(f for _, f in self._waiting)])
        keep = nondominated(F)
        if keep.sum() > self._max_size:
            chosen = np.flatnonzero(keep)
            keep = np.zeros_like(keep)
            keep[chosen[farthest(F[chosen], self._max_size)]] = True
        old, new = keep[: len(self)], keep[len(self) :]
        self._unused = np.concatenate((self._unused, self._rows[~old]))
        self._rows = np.concatenate((self._rows[old], self._copied(new)))
        self.F = F[keep]
        self._waiting, self._count = [], 0

    def _copied(self, new: np.ndarray) -> np.ndarray:
        """Copy the waiting vectors that are marked into the store; return their rows."""
        if (lacking := int(new.sum()) - len(self._unused)) > 0:
            size = len(self._store)
            grown = np.empty((size + max(lacking, size), self._store.shape[1]), dtype=np.int64)
            grown[:size] = self._store
            self._store = grown
            self._unused = np.concatenate((self._unused, np.arange(size, len(grown))))
        rows, self._unused = np.split(self._unused, [int(new.sum())])
        done = begin = 0
        for X, _ in self._waiting:
            chosen = X[new[begin : begin + len(X)]]
            self._store[rows[done : done + len(chosen)]] = chosen
            begin, done = begin + len(X), done + len(chosen)
        return rows

    def vector(self, k: int) -> np.ndarray:
        """Return the settled vector of a row of F, shape (num_genes,)."""
        return self._store[self._rows[k]]

    def vectors(self, rows: np.ndarray) -> np.ndarray:
        """Return the settled vectors of rows of F, shape (k, num_genes)."""
        return self._store[self._rows[rows]]

    def result(self) -> np.ndarray:
        """Return the non-dominated vectors, shape (k, num_genes).

        Where none is feasible it is the least-violating one.
        """
        self.settle()
        return self._store[self._rows] if len(self) else self._rejected
