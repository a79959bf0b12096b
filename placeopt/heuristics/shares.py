"""Shares of a budget, for heuristics that work in rounds."""

from __future__ import annotations

import math

from placeopt.budget import Budget


class Share:
    """A part of what is left of a budget, in evaluations and in seconds; what it spends, the budget spends.

    Parameters
    ----------
    budget : Budget
    share : float
        Of what is left now, above 0, at most 1.

    Examples
    --------
    >>> share = Share(Budget(evaluations=100), 0.25)
    >>> share.spend(20)
    >>> share.allow(20), share.progress
    (5, 0.8)
    """

    def __init__(self, budget: Budget, share: float = 1.0):
        self.budget = budget
        self._evaluations, self._seconds = budget.evaluations, budget.seconds
        self._most_evaluations = max(1.0, budget.evaluations_left * share)
        self._most_seconds = max(1e-9, budget.seconds_left * share)

    def part(self, share: float) -> Share:
        """Return a part of what is left of this share."""
        left = Share(self.budget, 1.0)
        left._most_evaluations = (
            max(1.0, (1 - self._used_evaluations) * self._most_evaluations * share)
            if self._limited
            else math.inf
        )
        left._most_seconds = (
            max(1e-9, (1 - self._used_seconds) * self._most_seconds * share)
            if self._timed
            else math.inf
        )
        return left

    @property
    def _limited(self) -> bool:
        return math.isfinite(self._most_evaluations)

    @property
    def _timed(self) -> bool:
        return math.isfinite(self._most_seconds)

    @property
    def _used_evaluations(self) -> float:
        return (self.budget.evaluations - self._evaluations) / self._most_evaluations

    @property
    def _used_seconds(self) -> float:
        return (self.budget.seconds - self._seconds) / self._most_seconds

    @property
    def progress(self) -> float:
        """Part of this share that is used, 0 to 1."""
        return min(1.0, max(self._used_evaluations, self._used_seconds))

    @property
    def exhausted(self) -> bool:
        """Whether it, or the whole budget, is used up."""
        return self.budget.exhausted or self.progress >= 1.0

    def allow(self, wanted: int) -> int:
        """Return how many of `wanted` evaluations may still be made."""
        left = (
            math.ceil((1 - self._used_evaluations) * self._most_evaluations - 1e-9)
            if self._limited
            else wanted
        )
        return max(0, min(self.budget.allow(wanted), left))

    def spend(self, evaluations: int) -> None:
        """Count `evaluations` as made."""
        self.budget.spend(evaluations)
