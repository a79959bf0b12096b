"""From a target deployment to the steps that reach it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placeopt.rolling_update import order as kernels
from placeopt.rolling_update.arrays import UpdateArrays
from placeopt.rolling_update.instance import RollingUpdate
from placeopt.rolling_update.rules.kernels import counted

#: States that the search for a direct order may visit in each connected part of the moves.
STATES = 20_000
_UNLIMITED = 2**62
_DIRECT = {kernels.FOUND: True, kernels.NONE: False, kernels.UNKNOWN: None}


class Reach(NamedTuple):
    """How a target is reached.

    Attributes
    ----------
    steps : list of (microservice, node)
        A negative node is a stop.
    direct : bool or None
        Whether an order exists that makes every move once, without a stop: False is a proof, None
        unknown.
    hops, stops : int
    complete : bool
        Whether all moves were made.
    price : int
        That of the nodes in use after the steps, in units of ``1 / price_scale``.
    """

    steps: list[tuple[int, int]]
    direct: bool | None
    hops: int
    stops: int
    complete: bool
    price: int

    @property
    def rank(self) -> tuple[bool, int, int, int]:
        """The better of two has the lower rank."""
        return not self.complete, self.price, self.stops, self.hops


def moves_of(a: UpdateArrays, who: np.ndarray, target: np.ndarray) -> kernels.Moves:
    """Return the moves of microservices `who` (P,) to their nodes in `target` (M,).

    Hops are made by nodes that may all be used beside those of the target. No node is bought for a
    hop alone: `node_cost` would not count it.
    """
    used = np.bincount(target[target >= 0], minlength=len(a.shut)) > 0
    usable = ~a.shut & (~a.candidate | used)
    if a.limits.any:
        usable &= a.limits.opened(used, np.flatnonzero(a.limits.bought)) | ~a.limits.bought
    moves: kernels.Moves = kernels.grouped(
        who,
        a.free[who],
        a.packed_rules,
        a.waiting,
        a.ordered.capacity,
        usable,
        a.home[who],
        a.ordered.old[who],
        a.ordered.new[who],
        target[who],
        a.pinned[who] | a.removed[who],
        np.bincount(a.home, minlength=len(a.price)),
    )
    return moves


def _price(a: UpdateArrays, who: np.ndarray, where: np.ndarray) -> int:
    """Return the price of the nodes in use when microservices `who`, (P,), are at `where`, (P,)."""
    end = a.home.copy()
    end[who] = where
    return int(a.price[np.bincount(end[end >= 0], minlength=len(a.price)) > 0].sum())


def plan_moves(
    problem: RollingUpdate,
    target: np.ndarray,
    *,
    states: int = STATES,
    max_hops: int | None = None,
    max_stops: int | None = None,
    tries: int = 1,
    seed: int = 0,
) -> Reach:
    """Order the moves from the running deployment to `target`.

    Parameters
    ----------
    target : int array (M,)
        Node of every microservice at the end.
    states : int
        Limit of the exact search in each connected part; 0 for the first order that comes.
    max_hops, max_stops : int, optional
        Limits of extra starts and of stops where there is no direct order; unlimited by default.
    tries : int
        Runs where there are stops or hops, all but the first with noise; the best is returned.
    seed : int
    """
    a = problem.arrays
    todo = np.flatnonzero(a.starts_of(target) | a.removed)
    moves = moves_of(a, todo, target)
    count = counted(a.packed_rules, a.home)
    hops, stops = (_UNLIMITED if x is None else x for x in (max_hops, max_stops))
    best: Reach | None = None
    undone = np.zeros(len(todo), dtype=bool)  # it begins with a hop in the second half of the runs
    for k in range(max(1, tries)):  # the first searches for a direct order
        noise, limit = (0.5, 0) if k else (0.0, states)
        ahead = undone & (2 * k >= tries)
        state, answer, complete = kernels.order(
            moves, a.ordered.load, count, limit, hops, stops, noise, seed + k, ahead
        )
        undone |= state.todo
        steps = state.steps[: state.tally[kernels.STEPS]]
        direct = _DIRECT[answer]
        if best is not None and direct is None:
            direct = best.direct
        result = Reach(
            steps=list(zip(todo[steps[:, 0]].tolist(), steps[:, 1].tolist(), strict=True)),
            direct=direct,
            hops=int(state.tally[kernels.HOPS]),
            stops=int(state.tally[kernels.STOPS]),
            complete=bool(complete),
            price=_price(a, todo, state.where),
        )
        if best is None or result.rank < best.rank:
            best = result
        one_hop = best.complete and best.stops == 0 and best.hops == 1
        if best.direct or (best.direct is False and one_hop):
            break
    assert best is not None
    return best
