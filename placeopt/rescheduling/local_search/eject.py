"""Ejections: replicas leave a full node so that one comes that saves more there."""

from __future__ import annotations

import numpy as np

from placeopt.rescheduling.arrays import ReschedulingArrays
from placeopt.rescheduling.local_search import descent
from placeopt.rescheduling.local_search.state import PlanArchive, SearchState
from placeopt.rescheduling.move_order import Moves

#: Replicas that a pass tries to bring; replicas that leave for one of them, at most.
_MAX_TRIED, _MAX_LEAVING = 12, 3


def improve(instance: ReschedulingArrays, state: SearchState, archive: PlanArchive) -> float:
    """Descend, make one ejection if any of the most promising helps, descend again.

    The state is a local optimum of single moves afterwards.

    Returns
    -------
    float
        The latency in ms.
    """
    now = _descend(instance, state, archive)
    # Potentials and weights are those of this deployment: the descent ends when no move helps.
    potential, deployment = state.potential, state.deployment
    here = np.where(deployment.counts > 0, potential, -np.inf)
    source = here.argmax(axis=1)
    on_path = state.scratch.service_weight[:, None] > 0
    change = np.where(on_path, potential - here.max(axis=1, keepdims=True), 0.0)
    room = (deployment.free[None] >= instance.demand[:, None]).all(axis=2)
    too_small = (instance.capacity[None] < instance.demand[:, None]).any(axis=2)
    change[room | too_small] = 0.0
    likely = np.argsort(change, axis=None, kind="stable")[:_MAX_TRIED]
    for service, target in (divmod(int(cell), change.shape[1]) for cell in likely):
        if change[service, target] >= -descent.MIN_GAIN_MS:
            break
        moves = _make_room(instance, state, service, target)
        if moves is None:
            continue
        moves.append((service, int(source[service]), target))
        if descent.move(instance, state, *moves[-1]) < now - descent.MIN_GAIN_MS:
            return _descend(instance, state, archive)
        _undo(instance, state, moves)
    return now


def _descend(instance: ReschedulingArrays, state: SearchState, archive: PlanArchive) -> float:
    result, _ = descent.descend(instance, state, archive, False, False, descent.UNLIMITED)
    return float(result)


def _undo(instance: ReschedulingArrays, state: SearchState, moves: Moves) -> None:
    for service, source, target in reversed(moves):
        descent.move(instance, state, service, target, source)


def _make_room(
    instance: ReschedulingArrays, state: SearchState, service: int, node: int
) -> Moves | None:
    """Move replicas off a node until one of a service fits, those first that cost least elsewhere.

    Returns
    -------
    list of (service, from, to), or None
        The moves made; None where that fails and nothing has changed.
    """
    demand, deployment = instance.demand, state.deployment
    moves: Moves = []
    while (deployment.free[node] < demand[service]).any():
        others = np.flatnonzero(deployment.counts[:, node])
        others = others[(others != service) & (demand[others] > 0).any(axis=1)]
        room = (deployment.free[None] >= demand[others][:, None]).all(axis=2)
        cost = np.where(room, state.potential[others], np.inf)
        cost[:, node] = np.inf
        if len(moves) == _MAX_LEAVING or not np.isfinite(cost).any():
            _undo(instance, state, moves)
            return None
        change = cost - state.potential[others, node][:, None]
        k, target = divmod(int(change.argmin()), cost.shape[1])
        moves.append((int(others[k]), node, target))
        descent.move(instance, state, *moves[-1])
    return moves
