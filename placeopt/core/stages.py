"""Stages of a run, each with a front: those that ended are kept for a later process."""

from __future__ import annotations

from collections.abc import Callable

from placeopt.core.arrays_file import Arrays
from placeopt.core.budget import Budget
from placeopt.core.front import Front
from placeopt.core.run_directory import Checkpoint


class Stages:
    """Stages of a run by name; a process that resumes the run repeats none that ended.

    Parameters
    ----------
    budget : Budget
        The budget of the run: what an earlier process spent counts.
    checkpoint : Checkpoint, optional
        Where the fronts are kept.
    """

    def __init__(self, budget: Budget, checkpoint: Checkpoint | None = None):
        self._budget, self._checkpoint = budget, checkpoint
        self._done: dict[str, tuple[int, Front]] = {}
        left = None if checkpoint is None else checkpoint.read()
        if left is not None:
            self._done = {
                name: (spent, Front.from_document(front))
                for name, spent, front in left.header["stages"]
            }
            budget.resume(0, max(0.0, left.header["seconds"] - budget.seconds))

    def do(self, name: str, work: Callable[[], Front]) -> Front:
        """Return the front of a stage: the kept one, or what `work` returns.

        A stage that runs out of time is not kept.
        """
        if name in self._done:
            spent, front = self._done[name]
            self._budget.spend(spent)
            return front
        before = self._budget.evaluations
        front = work()
        if self._checkpoint is not None:
            if not self._budget.out_of_time:
                self._done[name] = self._budget.evaluations - before, front
            self._checkpoint.offer(self._content, now=True)
        return front

    def _content(self) -> Arrays:
        done = [[name, spent, front.to_document()] for name, (spent, front) in self._done.items()]
        return Arrays({"stages": done, "seconds": self._budget.seconds}, {})
