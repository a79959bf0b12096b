"""How full a fixed cluster gets: pods arrive one after another, and none ends.

The measure of GPU schedulers: how many of the GPUs are allocated when pods that ask for all of
them, and for more, have arrived.
"""

from __future__ import annotations

import numpy as np

from placeopt.backtest.scheduler import RULES, Typical, place
from placeopt.backtest.state import READY, Need, Room, take
from placeopt.core.kernels.compile import kernel


@kernel
def _fill(rule, room, need, of_class, order, kinds, rank, state, out, arrived, held):
    """Place pods by `order` (arrivals,); `arrived` and `held`, as long, get thousandths of GPUs."""
    asked, taken = 0, 0
    for k in range(len(order)):
        p = order[k]
        wanted = need.gpus[p] * need.share[p]
        asked += wanted
        n = place(
            rule,
            room,
            need.cpu[p],
            need.memory[p],
            need.gpus[p],
            need.share[p],
            need.nodes[p],
            need.rules[p],
            of_class[p],
            kinds,
            rank,
            state,
            out,
        )
        if n >= 0:
            take(room, n, need.cpu[p], need.memory[p], need.share[p], out[0], need.rules[p])
            taken += wanted
        arrived[k], held[k] = asked, taken
    return taken


def fill(
    rule: str, room: Room, need: Need, of_class: np.ndarray, kinds: Typical, seed: int, ratio: float
) -> tuple[np.ndarray, np.ndarray]:
    """Let pods arrive in a drawn order until they ask for `ratio` of all GPUs.

    All pods come once, then pods drawn with repetition. Nodes stand in a drawn order, which decides
    between nodes of the same score. Both are as in the published experiments.

    Returns
    -------
    arrived, held : ndarray
        (arrivals,) Share of all GPUs that arrived pods ask for, and share that is allocated.
    """
    rng = np.random.default_rng(seed)
    size = int(room.gpus.sum()) * 1000
    order = rng.permutation(len(need.cpu))
    wanted = need.gpus * need.share
    more = rng.integers(0, len(need.cpu), 2 * len(need.cpu))
    sums = wanted.sum() + np.cumsum(wanted[more])
    order = np.concatenate([order, more[: np.searchsorted(sums, ratio * size, side="right")]])
    arrived, held = np.zeros(len(order), np.int64), np.zeros(len(order), np.int64)
    room.state[:] = READY
    state = rng.integers(0, 2**63, 1).astype(np.uint64)
    out = np.zeros(1, np.int64)
    rank = rng.permutation(len(room.state))
    _fill(RULES[rule], room, need, of_class, order, kinds, rank, state, out, arrived, held)
    return arrived / size, held / size
