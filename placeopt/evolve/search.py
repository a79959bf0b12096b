"""What every search over vectors shares: counting, the archive, first vectors, and the front at the end."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from placeopt.core import interfaces
from placeopt.core.dominance import contributions
from placeopt.core.front import Front, farthest
from placeopt.core.problem import Problem
from placeopt.core.task import Candidate, Task
from placeopt.evolve.archive import Archive
from placeopt.evolve.recombination import recombine

#: Genes of all points of a front together: plans of large instances take a second and megabytes each.
MOST_GENES = 5_000_000
#: Distances that may be looked at to choose points when time is short.
MOST_DISTANCES = 2_000_000
#: What it takes to make a front of plans that are judged, as a part of what it took to judge them.
SORTING = 0.06
#: Points that are judged however late it is.
LEAST_JUDGED = 50
#: Points of a front whose run was cancelled.
MOST_AFTER_CANCELLING = 1000
#: Points of an archive that is recombined at most, for each evaluation of the whole run: it takes about one evaluation's time a point.
MOST_RECOMBINED = 0.2


class Search:
    """One run over the vectors of one problem.

    Parameters
    ----------
    task : Task

    Attributes
    ----------
    encoder : Encoder
    rng : numpy.random.Generator
        The only source of randomness of the run.
    archive : Archive
        Every non-dominated vector that was evaluated.
    """

    def __init__(self, task: Task[Problem]):
        self.task = task
        self.problem, self.objectives, self.budget = task.problem, task.objectives, task.budget
        self.encoder = interfaces.build_encoder(task.problem, task.objectives)
        self.rng = np.random.default_rng(task.seed)
        self.archive = Archive(self.encoder.num_genes, len(task.objectives))

        self._judging = self._seconds_to_judge()

    def _seconds_to_judge(self) -> float:
        """Return how long decoding and judging one plan takes here, as a time limit has to leave room for it."""
        if self.budget.seconds_limit is None:
            return 0.0
        genes = self.encoder.sample(self.rng, 1)[0]
        taken = []
        for _ in range(4):  # the first call fills caches, another may wait for the machine
            began = time.perf_counter()
            self.problem.evaluate(self.encoder.decode(genes))
            taken.append(time.perf_counter() - began)
        return min(taken)

    @property
    def finished(self) -> bool:
        """Whether the search must stop, with time left to judge what it found."""
        return self.budget.exhausted or self._seconds_left <= 0

    @property
    def _seconds_left(self) -> float:
        """Seconds that remain for the search: to judge is left what it takes, or half of the time."""
        if self.budget.seconds_limit is None:
            return math.inf
        return self.budget.seconds_left - min(
            self._judging * len(self.archive), self.budget.seconds_limit / 2
        )

    @property
    def progress(self) -> float:
        """The part of the search that is over, 0 to 1; time that judging will take is no part of it."""
        evaluations = self.budget.evaluations / (self.budget.evaluations_limit or math.inf)
        return max(
            evaluations, self.budget.seconds / (self.budget.seconds + max(0.0, self._seconds_left))
        )

    def first(self, size: int) -> np.ndarray:
        """Return the plans to start from, the seeds of heuristics/, and random vectors up to `size` of them all."""
        start = self.task.start
        given = [] if start is None else [self.encoder.encode(p.plan) for p in start.points]
        given = [genes for genes in given if genes is not None]
        seeds = interfaces.seeds(self.encoder, self.rng)
        X = np.concatenate(
            (np.array(given, dtype=np.int64).reshape(-1, self.encoder.num_genes), seeds)
        )
        return (
            X
            if len(X) >= size
            else np.concatenate((X, self.encoder.sample(self.rng, size - len(X))))
        )

    def evaluate(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Evaluate as many of the rows as the budget allows.

        Returns
        -------
        X, F, G : ndarray
            The rows that were evaluated, their objectives and violations.
        """
        X = X[: self.budget.allow(len(X))]
        if len(X) == 0:  # an encoder never sees an empty population
            return X, np.empty((0, len(self.objectives))), np.empty((0, self.encoder.num_constraints))
        F, G = self.encoder.evaluate(X)
        self.budget.spend(len(X))
        self.archive.add(X, F, G)
        if self.budget.on_progress is not None:
            self.budget.report(self.archive.best, len(self.archive))
        return X, F, G

    def recombine(self, share: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Spend a share of the evaluations on the best recombinations of parts of the archive, where the encoder knows parts.

        Returns
        -------
        X, F, G : ndarray
            As of `evaluate`.
        """
        planned = self.budget.evaluations / self.progress
        X = np.empty((0, self.encoder.num_genes), dtype=np.int64)
        if len(self.objectives) in (2, 3):
            self.archive.settle()
            known = self.archive.result()
            few = 2 <= len(known) <= MOST_RECOMBINED * planned
            parts = self.encoder.parts(known) if few else None
            if parts is not None:
                X = recombine(parts, known, self.archive.F, int(share * planned))
        return self.evaluate(X)

    def conclude(
        self,
        method: str,
        parameters: dict[str, Any],
        libraries: Sequence[str] = ("numpy", "numba", "moocore"),
        points: int | None = None,
    ) -> Front:
        """Return the judged front of the archive, of at most `points` of it, or of as many as a time limit leaves room to judge."""
        completed = not self.budget.cancelled and (
            self.budget.seconds_limit is None or self.budget.evaluations_left == 0
        )
        vectors = self.archive.result()
        most = min(
            len(vectors), points or len(vectors), max(50, MOST_GENES // self.encoder.num_genes)
        )
        if (
            self.budget.cancelled
        ):  # whoever pressed Ctrl-C does not wait for thousands of plans to be judged
            most = min(most, MOST_AFTER_CANCELLING)
        F = self.archive.F
        if most < len(vectors):
            chosen = farthest(F, most)
            vectors, F = vectors[chosen], F[chosen]
        candidates = (Candidate(self.encoder.decode(x)) for x in self._until_time(vectors, F))
        return self.task.front(
            candidates,
            method=method,
            completed=completed,
            parameters=parameters,
            libraries=libraries,
        )

    def _until_time(self, vectors: np.ndarray, F: np.ndarray) -> Iterator[np.ndarray]:
        """Hand on vectors until the time limit; some in any case."""
        order = (
            self._by_worth(F)
            if self._judging and len(vectors) > LEAST_JUDGED
            else range(len(vectors))
        )
        began = self.budget.seconds
        for position, k in enumerate(order):
            if position >= LEAST_JUDGED and self.budget.seconds_left <= SORTING * (
                self.budget.seconds - began
            ):
                return
            yield vectors[k]

    def _by_worth(self, F: np.ndarray) -> list[int]:
        """Return the numbers of the extremes, of what lies far apart if few can be judged, then of what adds most hypervolume."""
        room = max(LEAST_JUDGED, int(self.budget.seconds_left / self._judging))
        few = 10 * room <= len(F) and room * len(F) <= MOST_DISTANCES
        others = (
            np.argsort(-contributions(F), kind="stable")
            if F.shape[1] in (2, 3)
            else self.rng.permutation(len(F))
        )
        return list(
            dict.fromkeys(
                [*F.argmin(axis=0).tolist(), *(farthest(F, room) if few else []), *others.tolist()]
            )
        )
