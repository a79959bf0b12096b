"""Two textbook algorithms on the solver of `placeopt.enumerate`, to compare calls, time and order.

* G. Kirlik, S. Sayin, "A new algorithm for generating all nondominated solutions of multiobjective
  discrete optimization problems", EJOR 232, 2014.
* S. Tamby, D. Vanderpooten, "Enumeration of the nondominated set of multiobjective discrete
  optimization problems", INFORMS Journal on Computing 33, 2021.

Both ask in two stages: the least value of one goal within limits on the others, then the least sum
of all goals at that value.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import numpy as np

from placeopt.core.budget import Budget
from placeopt.exact.compiled_model import CompiledModel
from placeopt.exact.goals import goals_of
from placeopt.exact.solvers import solve


class OutOfTimeError(Exception):
    """The budget ended within a question."""


class TwoStages:
    """Answers two-stage questions about a model; counts the solver's calls and keeps a trace."""

    def __init__(self, model: object, budget: Budget):
        goals = goals_of(model, None, None, None)
        self.compiled = CompiledModel(
            model, [g.objective for g in goals], [g.minimised for g in goals]
        )
        self.budget, self.calls = budget, 0
        self.size = len(goals)
        self.trace: list[tuple[float, np.ndarray]] = []

    def _solve(self, program: object) -> np.ndarray | None:
        self.calls += 1
        outcome = solve(program, budget=self.budget, absolute_gap=0.9)
        if outcome.status not in ("optimal", "infeasible"):
            raise OutOfTimeError
        return outcome.x

    def point(self, goal: int, limits: np.ndarray) -> np.ndarray | None:
        """Return an efficient point of least value of a goal within inclusive limits."""
        x = self._solve(self.compiled.within(goal, limits.tolist()))
        if x is None:
            return None
        capped = limits.copy()
        capped[goal] = round(self.compiled.values(x)[goal])
        program = self.compiled.within(goal, capped.tolist())
        x = self._solve(replace(program, c=np.sum(self.compiled.costs, axis=0)))
        assert x is not None
        y = np.round(self.compiled.values(x))
        self.trace.append((self.budget.seconds, y))
        return y

    def worst(self) -> np.ndarray:
        """Return an upper bound of every goal: its greatest value."""
        values = []
        for goal in range(self.size):
            program = self.compiled.within(goal, [np.inf] * self.size)
            x = self._solve(replace(program, c=-program.c))
            values.append(self.compiled.values(x)[goal])
        return np.round(values)

    @property
    def points(self) -> np.ndarray:
        """The points found so far, sorted, without repeats; in units of the goals' steps."""
        return np.unique([y for _, y in self.trace], axis=0)


def kirlik_sayin(model: object, budget: Budget) -> TwoStages:
    """Search rectangles of the limits of all goals but the last, the largest first."""
    ask = TwoStages(model, budget)
    with suppress(OutOfTimeError):
        _rectangles(ask)
    return ask


def _rectangles(ask: TwoStages) -> None:
    last, free = ask.size - 1, np.full(ask.size, np.inf)
    ideal = np.array([ask.point(k, free)[k] for k in range(last)])  # type: ignore[index]
    lower, upper = ideal[None, :], ask.worst()[None, :last] + 1
    while len(lower):
        chosen = int(np.argmax((upper - ideal).prod(axis=1)))
        top = upper[chosen]
        y = ask.point(last, np.append(top - 1, np.inf))
        if y is None:
            kept = ~(upper <= top).all(axis=1)
            lower, upper = lower[kept], upper[kept]
            continue
        for k in range(last):
            cut = (lower[:, k] < y[k]) & (y[k] < upper[:, k])
            low, high = upper[cut].copy(), lower[cut].copy()
            low[:, k], high[:, k] = y[k], y[k]
            lower = np.concatenate((lower[~cut], lower[cut], high))
            upper = np.concatenate((upper[~cut], low, upper[cut]))
        done = (lower >= y[:last]).all(axis=1) & (upper <= top).all(axis=1)
        lower, upper = lower[~done], upper[~done]


def tamby_vanderpooten(model: object, budget: Budget) -> TwoStages:
    """Search the zones below local upper bounds on all goals, the largest first."""
    ask = TwoStages(model, budget)
    with suppress(OutOfTimeError):
        _zones(ask)
    return ask


def _zones(ask: TwoStages) -> None:
    free = np.full(ask.size, np.inf)
    found = [ask.point(k, free) for k in range(ask.size)]
    ideal = np.array([y[k] for k, y in enumerate(found)])  # type: ignore[index]
    zones = (ask.worst() + 1)[None, :]
    for y in found:
        zones = _updated(zones, y)
    while len(zones):
        sides = zones - ideal
        zones = zones[(sides > 0).all(axis=1)]
        if not len(zones):
            return
        volumes = (zones - ideal).prod(axis=1, keepdims=True) / (zones - ideal)
        at, goal = np.unravel_index(int(np.argmax(volumes)), volumes.shape)
        zone, others = zones[at], np.arange(ask.size) != goal
        y = ask.point(int(goal), np.where(others, zone - 1, np.inf))
        if y is None:
            zones = zones[~(zones[:, others] <= zone[others]).all(axis=1)]
            continue
        if y[goal] < zone[goal]:
            zones = _updated(zones, y)
        proven = (zones[:, others] <= zone[others]).all(axis=1) & (zones[:, goal] <= y[goal])
        zones = zones[~proven]


def _updated(zones: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the local upper bounds that are left when a point is known."""
    inside = (y < zones).all(axis=1)
    if not inside.any():
        return zones
    kept = zones[~inside]
    moved = np.repeat(zones[inside], zones.shape[1], axis=0)
    columns = np.tile(np.arange(zones.shape[1]), int(inside.sum()))
    moved[np.arange(len(moved)), columns] = y[columns]
    moved = np.unique(moved, axis=0)
    needed = [
        not (zone <= kept).all(axis=1).any() and (zone <= moved).all(axis=1).sum() == 1
        for zone in moved
    ]
    return np.concatenate((kept, moved[needed]))


ALGORITHMS = {"Kirlik-Sayin": kirlik_sayin, "Tamby-Vanderpooten": tamby_vanderpooten}
