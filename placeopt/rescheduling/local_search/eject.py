"""Moves that need room made first: what is least missed leaves a node, then a replica goes there that gains more."""

from __future__ import annotations

import numpy as np

from placeopt.rescheduling.instance import Arrays
from placeopt.rescheduling.local_search import kernels
from placeopt.rescheduling.local_search.state import Archive, Work

#: Moves that one pass tries; replicas that leave for one that comes.
_TRIED, _LEAVE = 12, 3


def improve(t: Arrays, w: Work, archive: Archive) -> float:
    """Descend, then make one such move if any of those most promising helps; return the latency.

    The deployment is a local optimum of single moves when nothing helped.
    """
    now = float(kernels.descend(t, w, t.home, archive, False, False))
    pot = w.pot  # of this deployment, as the descent ends with no move
    here = np.where(w.counts > 0, pot, -np.inf)
    source = here.argmax(axis=1)
    gain = np.where(w.weight[:, None] > 0, pot - here.max(axis=1, keepdims=True), 0.0)
    room = (w.free[None] >= t.demand[:, None]).all(axis=2)
    gain[room | (t.capacity[None] < t.demand[:, None]).any(axis=2)] = 0.0
    likely = np.argsort(gain, axis=None, kind="stable")[:_TRIED]
    for i, v in zip(*np.unravel_index(likely, gain.shape), strict=True):
        if gain[i, v] >= -1e-6:
            break
        moves = _make_room(t, w, int(i), int(v))
        if moves is not None:
            moves.append((int(i), int(source[i]), int(v)))
            after = kernels.move(t, w, *moves[-1])
            if after < now - 1e-6:
                return float(kernels.descend(t, w, t.home, archive, False, False))
        for j, x, y in reversed(moves or ()):
            kernels.move(t, w, j, y, x)
    return now


def _make_room(t: Arrays, w: Work, i: int, v: int) -> list[tuple[int, int, int]] | None:
    """Take replicas off a node until one of service `i` fits, those first that cost least elsewhere; None where that fails."""
    moves: list[tuple[int, int, int]] = []
    while (w.free[v] < t.demand[i]).any():
        others = np.flatnonzero(w.counts[:, v])
        others = others[(others != i) & (t.demand[others] > 0).any(axis=1)]
        cost = np.where(
            (w.free[None] >= t.demand[others][:, None]).all(axis=2), w.pot[others], np.inf
        )
        cost[:, v] = np.inf
        if len(moves) == _LEAVE or not np.isfinite(cost).any():
            for j, x, y in reversed(moves):
                kernels.move(t, w, j, y, x)
            return None
        k, x = divmod(int((cost - w.pot[others, v][:, None]).argmin()), cost.shape[1])
        moves.append((int(others[k]), v, x))
        kernels.move(t, w, *moves[-1])
    return moves
