"""From a target deployment to the steps that reach it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placeopt.rolling_update import order as kernels
from placeopt.rolling_update.instance import RollingUpdate

#: States that the search for a direct order may visit in each connected part of the moves.
STATES = 20_000
_UNLIMITED = 2**62


class Reach(NamedTuple):
    """How a target is reached.

    Attributes
    ----------
    steps : list of (microservice, node)
        A negative node is a stop.
    direct : bool or None
        Whether an order exists that makes every move once, without a stop: False is a proof, None unknown.
    hops, stops : int
    complete : bool
        Whether all moves were made.
    """

    steps: list[tuple[int, int]]
    direct: bool | None
    hops: int
    stops: int
    complete: bool


def moves(problem: RollingUpdate, target: np.ndarray) -> np.ndarray:
    """Return the numbers of the microservices that must start anew to reach `target`, int array of nodes of shape (M,)."""
    a = problem.arrays
    return np.flatnonzero(a.mandatory | (a.movable & (target != a.home)))


def reach(
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
        Limit of the exact search in each connected part; 0 goes for the first order that comes.
    max_hops, max_stops : int, optional
        Limits of extra starts and of stops where there is no direct order; unlimited by default.
    tries : int
        How many noisy repetitions to make where there were stops or hops; the best is returned.
    """
    a = problem.arrays
    todo = moves(problem, target)
    work = kernels.grouped(
        a.capacity, ~a.drain, a.home[todo], a.old[todo], a.new[todo], target[todo], a.pinned[todo]
    )
    hops, stops = (_UNLIMITED if x is None else x for x in (max_hops, max_stops))
    best: Reach | None = None
    for k in range(
        max(1, tries)
    ):  # the first try searches for a direct order, the others vary the hops and stops
        state, direct, complete = kernels.order(
            work, a.initial_load, states, hops, stops, 0.5 * (k > 0), seed + k
        )
        count = state.tally.tolist()
        steps = state.steps[: count[0]]
        proven = {1: True, 0: False, -1: None}[direct]
        if best is not None and proven is None:
            proven = best.direct
        found = Reach(
            list(zip(todo[steps[:, 0]].tolist(), steps[:, 1].tolist(), strict=True)),
            proven,
            count[2],
            count[3],
            bool(complete),
        )
        if best is None or (not found.complete, found.stops, found.hops) < (
            not best.complete,
            best.stops,
            best.hops,
        ):
            best = found
        if best.direct or (
            best.direct is False and best.complete and best.stops == 0 and best.hops == 1
        ):
            break
        states = 0
    assert best is not None
    return best
