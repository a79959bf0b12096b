"""A gene per process: the number of its machine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from machine_reassignment.instance import MachineReassignment
from machine_reassignment.kernels import begin, move, shift_kept
from machine_reassignment.referee import judge
from placeopt.plugins import Encoder, Objective, Plan, below, kernel


@kernel
def _shift_all(a, s, processes, machines):
    """Move processes to machines, one after another, where the rules let them."""
    for k in range(len(processes)):
        p, m = processes[k], machines[k]
        if m != s.machine[p] and shift_kept(a, s, p, m):
            move(a, s, p, m)


@kernel
def _shift_some(a, s, shifts, rng):
    """Make random shifts that the rules allow; up to 50 are tried for each."""
    for _ in range(shifts):
        for _ in range(50):
            p, m = below(rng, len(a.home)), below(rng, len(a.location))
            if m != s.machine[p] and shift_kept(a, s, p, m):
                move(a, s, p, m)
                break


class ReassignmentEncoder(Encoder):
    """Any assignment; children of feasible assignments are feasible."""

    problem: MachineReassignment

    def __init__(self, problem: MachineReassignment, objectives: Sequence[Objective]):
        super().__init__(problem, objectives)
        self._arrays = problem.arrays
        self.num_genes, self.num_constraints = len(problem.processes), 1
        self.lower = np.zeros(self.num_genes, dtype=np.int64)
        self.upper = np.full(self.num_genes, len(problem.machines) - 1, dtype=np.int64)

    def evaluate(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return F (n, objectives) and G (n, 1), the sum of what is broken."""
        judged = [judge(self._arrays, genes) for genes in self.checked(X)]
        F = np.array([costs for costs, _ in judged], dtype=float).reshape(-1, 3)
        G = np.array([[sum(v.amount for v in broken)] for _, broken in judged]).reshape(-1, 1)
        return F[:, self._columns], G

    def decode(self, genes: np.ndarray) -> dict[str, Any]:
        """Return the plan of one vector."""
        return {"machines": self.checked_one(genes).tolist()}

    def encode(self, plan: Plan) -> np.ndarray:
        """Return the vector of a plan."""
        return self.problem.assignment(plan)

    def sample(self, rng: np.random.Generator, count: int) -> np.ndarray:
        """Return vectors with few to many processes away from home."""
        home = np.tile(self._arrays.home, (count, 1))
        shifts = (self.num_genes ** rng.random(count)).astype(int)
        return self._shifted(rng, home, shifts)

    def vary(
        self, rng: np.random.Generator, mothers: np.ndarray, fathers: np.ndarray
    ) -> np.ndarray:
        """Return mothers whose processes move to where the fathers have them, every other one."""
        mothers, fathers = self.checked_pairs(mothers, fathers)
        shifts = rng.integers(0, 4, len(mothers))
        children = mothers.copy()
        for k, (mother, father) in enumerate(zip(mothers, fathers, strict=True)):
            differ = np.flatnonzero(mother != father)
            chosen = rng.permutation(differ[rng.random(len(differ)) < 0.5])
            state = begin(self._arrays, mother)
            _shift_all(self._arrays, state, chosen, father[chosen])
            children[k] = state.machine
        return self._shifted(rng, children, shifts)

    def mutate(self, rng: np.random.Generator, X: np.ndarray) -> np.ndarray:
        """Return copies of X in which one to three processes are elsewhere."""
        X = self.checked(X)
        return self._shifted(rng, X, rng.integers(1, 4, len(X)))

    def _shifted(self, rng: np.random.Generator, X: np.ndarray, shifts: np.ndarray) -> np.ndarray:
        results = X.copy()
        for k, count in enumerate(shifts.tolist()):
            state, random = begin(self._arrays, X[k]), rng.integers(2**63, size=1).astype(np.uint64)
            _shift_some(self._arrays, state, count, random)
            results[k] = state.machine
        return results
