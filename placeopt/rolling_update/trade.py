"""Which plans are worth their moves."""

from __future__ import annotations

from collections.abc import Sequence

from placeopt.core.errors import UsageError
from placeopt.core.task import Candidate
from placeopt.rolling_update.instance import RollingUpdate


def worthwhile(
    problem: RollingUpdate,
    candidates: Sequence[Candidate],
    max_moves: int | None,
    min_saving_per_move: float,
) -> list[Candidate]:
    """Return the candidates of at most `max_moves` starts whose every extra move saves enough.

    A candidate stays if, against every feasible other with fewer starts and no more stops, it saves at least `min_saving_per_move`
    for each start more. So no part of its moves can be dropped at a smaller loss than that, as far as the candidates show. Plans
    that the referee rejects stay only where there are no others.

    Raises
    ------
    UsageError
        A negative limit.
    """
    check_trade(max_moves, min_saving_per_move)
    if max_moves is None and min_saving_per_move == 0:
        return list(candidates)
    judged = [(c, problem.evaluate(c.plan)) for c in candidates]
    fine = [
        (c, e.values)
        for c, e in judged
        if e.feasible and (max_moves is None or e.values[1] <= max_moves)
    ]
    if not any(e.feasible for _, e in judged):
        return list(candidates)
    return [
        c
        for c, (cost, starts, stops) in fine
        if all(_pays(cost, starts, stops, v, min_saving_per_move) for _, v in fine)
    ]


def _pays(cost: float, starts: float, stops: float, other: tuple[float, ...], least: float) -> bool:
    if other[1] >= starts or other[2] > stops:
        return True
    return other[0] - cost >= least * (starts - other[1]) - 1e-9


def check_trade(max_moves: int | None, min_saving_per_move: float) -> None:
    """Raise unless the two limits make sense."""
    if max_moves is not None and max_moves < 0:
        raise UsageError(f"max_moves is {max_moves}; give a whole number of at least 0")
    if not 0 <= min_saving_per_move < float("inf"):
        raise UsageError(
            f"min_saving_per_move is {min_saving_per_move}; give a price of at least 0"
        )
