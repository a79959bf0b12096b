"""Units of the work of a run: descents, weights, cells. Those that are done are kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from placeopt.core.arrays_file import Arrays
from placeopt.core.budget import Budget
from placeopt.core.front import Front
from placeopt.core.run_directory import Checkpoint

T = TypeVar("T")


class Units:
    """Units of work by name; a process that takes up a run does not repeat those that are done.

    So a method whose units depend on what came before and on nothing else ends with the front of a
    run that was never interrupted.

    Parameters
    ----------
    budget : Budget
        Of the run: what an earlier process spent counts.
    checkpoint : Checkpoint, optional
        Where they are kept.

    Examples
    --------
    >>> units = Units(Budget())
    >>> [units.do(f"weight {k}", lambda: {"value": 2 * k}) for k in range(2)]
    [{'value': 0}, {'value': 2}]
    """

    def __init__(self, budget: Budget, checkpoint: Checkpoint | None = None):
        self._budget, self._checkpoint = budget, checkpoint
        self._done: dict[str, tuple[int, Any]] = {}
        left = None if checkpoint is None else checkpoint.read()
        if left is not None:
            self._done = {name: (spent, result) for name, spent, result in left.header["units"]}
            budget.resume(0, max(0.0, left.header["seconds"] - budget.seconds))

    def do(self, name: str, work: Callable[[], T], read: Callable[[Any], T] | None = None) -> T:
        """Return the result of a unit: what was kept of it, or what `work` returns.

        A unit that the end of the time cuts short is not kept.

        Parameters
        ----------
        name : str
            Its own within the run.
        work : callable
            Returns a front, or JSON: no tuples, no NumPy numbers.
        read : callable, optional
            From JSON to the result, for fronts.
        """
        if name in self._done:
            spent, result = self._done[name]
            self._budget.spend(spent)
            return cast(T, result) if read is None else read(result)
        before = self._budget.evaluations
        made = work()
        if self._checkpoint is not None:
            if not self._budget.out_of_time:
                self._done[name] = self._budget.evaluations - before, made
            self._checkpoint.offer(self._content, now=self._budget.cancelled)
        return made

    def _content(self) -> Arrays:
        done = [
            [name, spent, result.to_document() if isinstance(result, Front) else result]
            for name, (spent, result) in self._done.items()
        ]
        return Arrays({"units": done, "seconds": self._budget.seconds}, {})
