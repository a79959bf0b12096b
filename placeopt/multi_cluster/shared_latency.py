"""What requests that run together add to each other's latency, at least: a convex function.

Part p of request u on cluster c has latency ``base * exp(y)`` there, or `MAX_MS`, where y is at
least the sum of ``log(1 + u_s) p_s`` over the requests s that run. A line in y lies below that. The
sum over all requests is then quadratic: parts of pairs that run together are multiplied. As parts
are at most 1, ``p * p <= p``: enough of ``d (p * p - p)`` is added to make it convex. The least sum
of d is a semidefinite program; its dual is solved in vectors, row after row (Burer and Monteiro).
What d takes off at parts p is ``d (p - p * p)``: so d counts more where solutions have halves.
"""

from __future__ import annotations

import numpy as np

from placeopt.core.kernels.compile import kernel
from placeopt.multi_cluster.arrays import MultiClusterArrays
from placeopt.multi_cluster.simulator.state import MAX_MS

#: Where the line touches, as a share of the most y; it is shrunk until it is below `MAX_MS`.
_TOUCH, _SHRINK, _LEAST_TOUCH = 0.3, 0.8, 1e-3
#: Length of the vectors, and how often each is made the best for the others.
_RANK, _SWEEPS = 20, 60
#: Weight of an entry of d at first, the least that is added to any, and the share by which weights
#: go towards those of a solution; by all of it the solutions, and d, swing from side to side.
_LOST, _LEAST_WEIGHT, _LEAN = 0.15, 0.02, 0.4
#: What rounding may lack to a matrix that is convex, as a share of its largest entry.
_ROUNDING = 1e-9


class SharedLatency:
    """A bound ``linear @ p + p @ quadratic @ p`` on the sum of latencies in ms, for each cluster.

    Parameters
    ----------
    arrays : MultiClusterArrays
    share : ndarray, shape (T, C)
        The largest part of each request on each cluster.
    running : ndarray of bool, shape (T, T)
        Whether request s may run when t has arrived.

    Attributes
    ----------
    linear : ndarray, shape (T, C)
    quadratic : ndarray, shape (C, T, T)
        Positive semidefinite.
    """

    def __init__(self, arrays: MultiClusterArrays, share: np.ndarray, running: np.ndarray):
        grows = np.log1p(arrays.increase)
        self._lines = np.empty(share.shape)
        self._matrices = np.empty((share.shape[1], *running.shape))
        for c, base in enumerate(arrays.base.tolist()):
            most = [_most_growth(arrays, share[:, c], row, grows, c) for row in running]
            lines = np.array([_line_below(base, y) for y in most])
            pairs = running * lines[:, 1, None] * grows[None, :]
            self._lines[:, c], self._matrices[c] = lines[:, 0], (pairs + pairs.T) / 2
        self._weights = np.full(share.shape, _LOST)
        self._make_convex()

    def _make_convex(self) -> None:
        """Take the least diagonals by the present weights."""
        self.linear, self.quadratic = self._lines.copy(), self._matrices.copy()
        rows = np.arange(len(self.linear))
        for c, matrix in enumerate(self._matrices):
            root = np.sqrt(self._weights[:, c] + _LEAST_WEIGHT)
            diagonal = _least_diagonal(matrix * np.outer(root, root)) / root**2
            self.linear[:, c] -= diagonal
            self.quadratic[c, rows, rows] += diagonal

    def lean(self, parts: np.ndarray) -> None:
        """Make the sum tighter near a solution, its parts (T, C), and looser elsewhere.

        It stays a lower bound everywhere.
        """
        lost = parts * (1 - parts)
        self._weights += _LEAN * (lost - self._weights)
        self._make_convex()

    def slope(self, parts: np.ndarray) -> np.ndarray:
        """Return the gradient of the quadratic part at parts (T, C), the same shape."""
        return 2 * np.einsum("cst,tc->sc", self.quadratic, parts)

    def curved(self, parts: np.ndarray) -> float:
        """Return the quadratic part at parts (T, C)."""
        return float(np.einsum("sc,cst,tc->", parts, self.quadratic, parts))


def _most_growth(
    arrays: MultiClusterArrays, share: np.ndarray, running: np.ndarray, grows: np.ndarray, c: int
) -> float:
    """Return the most that y can be on a cluster: parts of requests that fit, by each resource."""
    free = (arrays.capacity - arrays.used)[c]
    worth = (grows * share)[running]
    most = float(worth.sum())
    for r in range(2):
        size = (arrays.replicas * arrays.demand[:, r] * share)[running]
        order = np.argsort(-worth / np.maximum(size, 1e-9), kind="stable")
        before = size[order].cumsum() - size[order]
        part = np.clip((free[r] - before) / np.maximum(size[order], 1e-9), 0.0, 1.0)
        most = min(most, float(worth[order] @ part))
    return most * (1 + _ROUNDING)


def _line_below(base: float, most: float) -> tuple[float, float]:
    """Return a and b: ``a + b y <= min(MAX_MS, base * exp(y))`` for y from 0 to `most`."""
    touch = _TOUCH * most
    while touch > _LEAST_TOUCH:
        slope = base * np.exp(touch)
        if slope * (1 - touch + most) <= MAX_MS:
            return float(slope * (1 - touch)), float(slope)
        touch *= _SHRINK
    least = min(base, MAX_MS)
    end = min(MAX_MS, base * (1 + most))  # exp(y) is at least 1 + y
    return least, (end - least) / most if most > 0 else 0.0


def _least_diagonal(matrix: np.ndarray) -> np.ndarray:
    """Return non-negative numbers of a small sum that make a matrix positive semidefinite."""
    size = len(matrix)
    vectors = np.random.default_rng(0).normal(size=(size, _RANK))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    _turn(matrix, vectors, np.empty(_RANK), _SWEEPS)
    diagonal = np.maximum(0.0, -(matrix * (vectors @ vectors.T)).sum(axis=1))
    least = np.linalg.eigvalsh(matrix + np.diag(diagonal))[0]
    largest = float(np.abs(matrix).max(initial=0.0)) + float(diagonal.max(initial=0.0))
    return np.asarray(diagonal + max(0.0, -least) + _ROUNDING * size * largest)


@kernel
def _turn(matrix, vectors, pull, sweeps):
    """Turn each vector (size, rank) in turn to where its products with the others are least."""
    size, rank = vectors.shape
    for _ in range(sweeps):
        for k in range(size):
            pull[:] = 0.0
            for j in range(size):
                if j != k and matrix[k, j] != 0.0:
                    for r in range(rank):
                        pull[r] += matrix[k, j] * vectors[j, r]
            length = 0.0
            for r in range(rank):
                length += pull[r] * pull[r]
            if length > 0.0:
                length = np.sqrt(length)
                for r in range(rank):
                    vectors[k, r] = -pull[r] / length
