"""``retime``: cheaper starts and machines for the plans of a front; replicas stay in their pools.

The searches over vectors leave the machines of a pool to a decoder that takes requests in the order
in which they start. Here plans are finished: a vector says on which machine of its pool each
replica runs. Latency and interruption stay, cost falls. One round after another improves all plans
of the archive, each by twice as many changes as the round before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from placeopt.core.fronts.front import Front
from placeopt.core.fronts.values import Objective, Plan
from placeopt.core.interfaces import Encoder
from placeopt.core.problem import Problem
from placeopt.core.task import Task
from placeopt.evolve.search import Variant, VectorSearch
from placeopt.temporal import machines, moves
from placeopt.temporal.encoder import TemporalEncoder
from placeopt.temporal.heuristics import seeds
from placeopt.temporal.instance import Temporal

#: Plans that are improved between two looks at the archive, where there is time enough.
BATCH = 32
#: Seconds of work between two looks at the clock, about.
LOOK_SECONDS = 0.05
#: Changes of a plan in one round, at most.
MOST_CHANGES = 10**6


class MachineEncoder(Encoder):
    """Genes of `TemporalEncoder`, then for every replica a number of a machine in its pool.

    A replica for which its machine has no room gets one of its own.
    """

    problem: Temporal

    def __init__(self, problem: Temporal, objectives: Sequence[Objective]):
        super().__init__(problem, objectives)
        self.packed = TemporalEncoder(problem, problem.objectives)
        self.packed.trusted = True
        self.arrays = self.packed.arrays
        replicas = len(self.arrays.request)
        self.upper = np.concatenate((self.packed.upper, np.full(replicas, replicas)))
        self.lower = np.zeros_like(self.upper)
        self.num_genes, self.num_constraints = len(self.upper), self.packed.num_constraints
        self._plan, self._moves = machines.new_machines(self.arrays), moves.new_moves(self.arrays)

    def evaluate(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return F (n, objectives), and G as `TemporalEncoder.evaluate` does."""
        X = self.checked(X)
        F = self.packed.evaluate(X[:, : self.packed.num_genes])[0]
        cost, excess = np.empty(len(X)), np.empty(len(X))
        machines.evaluate_all(self.arrays, self._plan, X, cost, excess)
        F[:, 1] = cost
        return F[:, self._columns], self.packed.violations(excess)

    def placed(self, X: np.ndarray) -> np.ndarray:
        """Return the vectors of the plans of vectors of `TemporalEncoder`."""
        bins = np.array([self.packed.bins_of(genes) for genes in X], dtype=np.int64)
        return np.hstack((X, bins.reshape(len(X), -1)))

    def sample(self, rng: np.random.Generator, count: int) -> np.ndarray:
        """Return vectors of random starts and pools."""
        return self.placed(self.packed.sample(rng, count))

    def encode(self, plan: Plan) -> np.ndarray:
        """Return the vector of a plan."""
        with self.problem.reading(plan):
            return self.packed.with_machines(plan)

    def decode(self, genes: np.ndarray) -> Plan:
        """Return the plan of one vector."""
        plan, genes = self._plan, self.checked_one(genes)
        machines.read(self.arrays, plan, genes)
        leased = np.flatnonzero(plan.held)
        rows = np.stack((leased, plan.pool[leased], plan.busy[leased]), axis=1)
        return self.packed.plan_of(genes.tolist(), plan.host.tolist(), rows.tolist())

    def improve(self, X: np.ndarray, changes: int, random: np.ndarray) -> np.ndarray:
        """Return the vectors X after so many random changes each; `random`, (1,), advances."""
        X = self.checked(X).copy()
        moves.improve_all(self.arrays, self._plan, self._moves, X, changes, random)
        return X


@dataclass(frozen=True)
class _Finished(Variant):
    """The search over `MachineEncoder`; greedy plans come from `run`, without a plan each."""

    seeded: bool = False

    def encoder(self, problem: Problem, objectives: Sequence[Objective]) -> Encoder:
        assert isinstance(problem, Temporal)
        encoder = MachineEncoder(problem, objectives)
        encoder.trusted = True
        return encoder

    def parameters(self) -> dict[str, Any]:
        return {}


def run(task: Task[Temporal]) -> Front:
    """Make the plans of `start` cheaper, or greedy ones, by changes of one to three requests each.

    Requests leave their machines and come back at the start, and on the machines, at which they
    cost least. A change that is tried counts as an evaluation.
    """
    search = VectorSearch(task, _Finished())
    encoder = search.encoder
    assert isinstance(encoder, MachineEncoder)
    X = search.first(0)
    if len(X) == 0:
        X = encoder.placed(seeds(encoder.packed, search.rng, search.seconds_to_seed))
    search.evaluate(X)
    rounds = _Rounds(search, encoder)
    changes = len(task.problem.requests)
    while not search.finished and rounds.improve_all(changes):
        changes = min(2 * changes, MOST_CHANGES)
    return search.conclude("retime", {})


class _Rounds:
    """Improves plans in pieces of work; with a time limit the clock is asked between them."""

    def __init__(self, search: VectorSearch, encoder: MachineEncoder):
        self._search, self._encoder = search, encoder
        self._random = search.rng.integers(0, 2**64, size=1, dtype=np.uint64)
        self._timed = search.budget.seconds_limit is not None
        self._affordable = 1  # changes of a piece; the first one loads kernels

    def improve_all(self, changes: int) -> bool:
        """Improve each plan of the archive by so many changes; return whether there are plans."""
        search = self._search
        search.archive.settle()
        X = search.archive.result()
        X = X[search.rng.permutation(len(X))]
        done = 0
        while done < len(X) and not search.finished:
            rows = max(1, min(BATCH, self._affordable // changes)) if self._timed else BATCH
            self._improve(X[done : done + rows], changes)
            done += rows
        return len(X) > 0

    def _improve(self, X: np.ndarray, changes: int) -> None:
        """Improve some plans by so many changes each, or as many as the budget allows."""
        search, size = self._search, len(X)
        left = min(changes, search.budget.allow(size * (changes + 1)) // size - 1)
        while left > 0 and not search.finished:
            piece = min(left, max(1, self._affordable // size)) if self._timed else left
            began = search.budget.seconds
            X = self._encoder.improve(X, piece, self._random)
            pace = (search.budget.seconds - began) / (piece * size)
            self._affordable = max(1, int(LOOK_SECONDS / max(pace, 1e-9)))
            search.budget.spend(piece * size)
            left -= piece
        search.evaluate(X)
