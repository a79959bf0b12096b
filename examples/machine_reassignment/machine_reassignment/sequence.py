"""One process after another: it stays, or it moves to a machine where the rules let it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from machine_reassignment.instance import MachineReassignment
from machine_reassignment.kernels import State, begin, move, shift_change, shift_kept
from placeopt.plugins import DecisionSequence, Objective, kernel


@kernel
def _look(a, s, p, legal, changes):
    """Write which machines process p may be on (M,), and the changes of the costs (M, 3)."""
    for m in range(len(legal)):
        legal[m] = m == s.machine[p] or shift_kept(a, s, p, m)
        if legal[m] and m != s.machine[p]:
            shift_change(a, s, p, m, changes[m])


class Episode(NamedTuple):
    """An assignment, and how many processes have been decided, (1,)."""

    assignment: State
    decided: np.ndarray


class ReassignmentSequence(DecisionSequence):
    """Processes by size, the largest first; the others are where they are meanwhile.

    No rule is broken on the way, so that there is no dead end. The first decision bears the costs
    of the assignment that runs now; each bears what it changes, which may be below 0.
    """

    problem: MachineReassignment

    def __init__(self, problem: MachineReassignment, objectives: Sequence[Objective]):
        super().__init__(problem, objectives)
        a = self._arrays = problem.arrays
        size = (a.requirement / np.maximum(1, a.requirement.mean(axis=0))).sum(axis=1)
        self._order = np.argsort(-size, kind="stable")
        self.decisions, self.num_actions = len(problem.processes), len(problem.machines)
        self.num_features = len(self.objectives)
        self._legal = np.zeros(self.num_actions, dtype=bool)
        self._changes = np.zeros((self.num_actions, 3), dtype=np.int64)

    def reset(self, rng: np.random.Generator | None = None) -> Episode:
        """Return the assignment that runs now."""
        return Episode(begin(self._arrays, self._arrays.home), np.zeros(1, dtype=np.int64))

    def copy(self, state: Episode) -> Episode:
        """Return an episode that steps on its own."""
        return Episode(State(*(part.copy() for part in state.assignment)), state.decided.copy())

    def remaining(self, state: Episode) -> int:
        """Return how many processes are not decided."""
        return self.decisions - int(state.decided[0])

    def mask(self, state: Episode) -> np.ndarray:
        """Return which machines the next process may be on."""
        return self._looked(state)[0].copy()

    def step(self, state: Episode, action: int) -> np.ndarray:
        """Move the next process, or let it stay; return what that changes."""
        process = self._order[state.decided[0]]
        before = self._costs(state.assignment) if state.decided[0] else np.zeros(3)
        if action != state.assignment.machine[process]:
            move(self._arrays, state.assignment, process, int(action))
        state.decided[0] += 1
        return (self._costs(state.assignment) - before)[self._columns]

    def costs(self, state: Episode) -> np.ndarray:
        """Return what each machine changes, (machines, objectives); inf if it is not legal."""
        legal, changes = self._looked(state)
        first = self._costs(state.assignment) if not state.decided[0] else 0.0
        results = np.where(legal[:, None], changes + first, np.inf)
        return results[:, self._columns]

    def features(self, state: Episode) -> np.ndarray:
        """Return what each machine changes, in shares of the costs of the start."""
        unit = np.maximum(1.0, self._costs(begin(self._arrays, self._arrays.home)))
        legal, changes = self._looked(state)
        shares = np.where(legal[:, None], changes / unit * self.decisions, 0.0)
        return (shares / (1 + np.abs(shares)))[:, self._columns].astype(np.float32)

    def plan(self, state: Episode) -> dict[str, Any]:
        """Return the assignment."""
        return {"machines": state.assignment.machine.tolist()}

    def _looked(self, state: Episode) -> tuple[np.ndarray, np.ndarray]:
        """Return what is legal next, and the changes of the costs; in arrays that are reused."""
        self._legal[:], self._changes[:] = False, 0
        if state.decided[0] < self.decisions:
            process = self._order[state.decided[0]]
            _look(self._arrays, state.assignment, process, self._legal, self._changes)
        return self._legal, self._changes

    def _costs(self, s: State) -> np.ndarray:
        moves = s.costs[2] + s.costs[3] * self._arrays.service_weight[0]
        return np.array([s.costs[0], s.costs[1], moves], dtype=float)
