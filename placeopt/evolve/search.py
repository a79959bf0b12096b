"""What every search over vectors shares: budget, archive, first vectors, and the final front."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from placeopt.core import interfaces
from placeopt.core.files.arrays import Arrays
from placeopt.core.fronts.dominance import (
    by_rays,
    by_worth,
    farthest,
    nondominated,
    subset_by_contribution,
)
from placeopt.core.fronts.front import Front
from placeopt.core.fronts.trace import RunSnapshot
from placeopt.core.fronts.values import Objective, Plan
from placeopt.core.goals import excess
from placeopt.core.numbers import checked_vectors
from placeopt.core.problem import Problem
from placeopt.core.task import Candidate, Task
from placeopt.evolve.operators import MUTATION, SimulatedBinary
from placeopt.evolve.recombination import recombine

#: Memory that vectors may take; a larger archive is thinned to its farthest points.
MAX_BYTES = 2**28


class VectorArchive:
    """Keeps non-dominated vectors.

    New ones wait in a buffer, as one filter of many is far cheaper than many filters of one. A
    vector is copied once, into a row of a store. Rows of vectors that are dominated later are used
    again.

    Parameters
    ----------
    num_genes, num_objectives : int
    buffer : int
        Vectors that wait before the archive is filtered; at least as many as the archive has.

    Attributes
    ----------
    F : ndarray, shape (k, num_objectives)
        Objectives of the settled vectors.
    """

    def __init__(self, num_genes: int, num_objectives: int, buffer: int = 4096):
        self.F = np.empty((0, num_objectives))
        self._store = np.empty((0, num_genes), dtype=np.int64)
        self._rows = self._unused = np.empty(0, dtype=np.int64)
        self._waiting: list[tuple[np.ndarray, np.ndarray]] = []
        self._max_size = max(100, MAX_BYTES // (8 * num_genes))
        self._count, self._buffer = 0, min(buffer, self._max_size)
        self._lowest_excess = np.inf
        self._rejected = np.empty((0, num_genes), dtype=np.int64)

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, X: np.ndarray, F: np.ndarray, G: np.ndarray) -> None:
        """Offer evaluated vectors."""
        if G.shape[1]:
            excess = G.sum(axis=1)
            feasible = excess <= 0
            if not feasible.all() and len(self) == 0:
                k = int(excess.argmin())
                if 0 < excess[k] < self._lowest_excess:
                    self._lowest_excess, self._rejected = float(excess[k]), X[k : k + 1].copy()
            X, F = X[feasible], F[feasible]
        if len(X):
            self._waiting.append((X, F))
            self._count += len(X)
        if self._count >= max(self._buffer, len(self)):
            self.settle()

    def settle(self) -> None:
        """Filter the waiting vectors into the archive."""
        if not self._waiting:
            return
        F = np.concatenate([self.F, *(f for _, f in self._waiting)])
        keep = nondominated(F)
        if keep.sum() > self._max_size:
            chosen = np.flatnonzero(keep)
            keep = np.zeros_like(keep)
            keep[chosen[farthest(F[chosen], self._max_size)]] = True
        old, new = keep[: len(self)], keep[len(self) :]
        self._unused = np.concatenate((self._unused, self._rows[~old]))
        self._rows = np.concatenate((self._rows[old], self._copied(new)))
        self.F = F[keep]
        self._waiting, self._count = [], 0

    def _copied(self, new: np.ndarray) -> np.ndarray:
        """Copy the waiting vectors that are marked into the store; return their rows."""
        if (lacking := int(new.sum()) - len(self._unused)) > 0:
            size = len(self._store)
            grown = np.empty((size + max(lacking, size), self._store.shape[1]), dtype=np.int64)
            grown[:size] = self._store
            self._store = grown
            self._unused = np.concatenate((self._unused, np.arange(size, len(grown))))
        rows, self._unused = np.split(self._unused, [int(new.sum())])
        done = begin = 0
        for X, _ in self._waiting:
            chosen = X[new[begin : begin + len(X)]]
            self._store[rows[done : done + len(chosen)]] = chosen
            begin, done = begin + len(X), done + len(chosen)
        return rows

    def vector(self, k: int) -> np.ndarray:
        """Return the settled vector of a row of F, shape (num_genes,)."""
        return self._store[self._rows[k]]

    def vectors(self, rows: np.ndarray) -> np.ndarray:
        """Return the settled vectors of rows of F, shape (k, num_genes)."""
        return self._store[self._rows[rows]]

    def result(self) -> np.ndarray:
        """Return the non-dominated vectors, shape (k, num_genes).

        Where none is feasible it is the least-violating one.
        """
        self.settle()
        return self._store[self._rows] if len(self) else self._rejected


#: Genes of all points of a front together: plans of large instances take a second and megabytes.
MAX_GENES = 5_000_000
#: Seconds of judging a plan for a front, and of sorting the plans for it, for each second of
#: judging one alone. A point that is not judged is a larger loss than the time to find it.
IN_A_FRONT = 1.5
#: Time to make a front of judged plans, as a share of the time to judge them.
SORTING = 0.06
#: Largest share of a time limit that is for judging. Few points that are chosen well have most of
#: the hypervolume.
JUDGING = 0.35
#: Points of four goals or more that are put in the best order for judging; others come after them.
MAX_SORTED = 1000
#: Points that are judged even when the time is over.
MIN_JUDGED = 50
#: Largest front of a cancelled run: whoever pressed Ctrl-C does not wait for thousands of plans.
MAX_CANCELLED = 1000
#: Vectors of an earlier process that are evaluated together.
_TAKEN_UP_TOGETHER = 1024
#: Largest archive that is recombined, in points for each evaluation of the run: a point takes about
#: the time of one evaluation.
MAX_RECOMBINED = 0.2
#: Random vectors are drawn in blocks of so many genes, a tenth of a second each.
_SAMPLED_GENES = 10**6
#: Share of the time limit that building seeds may take.
_SEEDING = 0.25
#: Rows are evaluated in blocks of about so many seconds, between which the clock is asked.
_LOOK_SECONDS = 0.1
#: Judging that takes longer than this share of the time limit is measured twice, not four times.
_LONG_JUDGING = 0.02
#: Plans of the archive that are judged to measure again how long judging takes.
_JUDGED_AGAIN = 5


Encoding = Annotated[str, Field(description="Encoding: own, or published of a paper.")]
Operators = Annotated[
    Literal["own", "sbx"],
    Field(description="Own of the encoding, or sbx: those of the CNSM 2024 paper."),
]
Seeded = Annotated[bool, Field(description="Start from the problem's greedy vectors.")]


@dataclass(frozen=True)
class Variant:
    """What of a search is a problem's own, and what is a paper's.

    Attributes
    ----------
    encoding : str
        ``own``, or one of `ProblemSpec.encodings`.
    operators : str
        ``own`` of the encoder, or ``sbx``: `placeopt.evolve.operators`.
    seeded : bool
        Whether the problem's seeds are among the first vectors.
    mutation : (float, float)
        Probability and index of the mutation of ``sbx``.
    """

    encoding: str = "own"
    operators: str = "own"
    seeded: bool = True
    mutation: tuple[float, float] = MUTATION

    def encoder(self, problem: Problem, objectives: Sequence[Objective]) -> interfaces.Encoder:
        """Return the encoder, with the operators of this variant."""
        plain = interfaces.build_encoder(problem, objectives, self.encoding)
        plain.trusted = True
        return plain if self.operators == "own" else SimulatedBinary(plain, mutation=self.mutation)

    def parameters(self) -> dict[str, Any]:
        """Return what a run says of it: nothing of what is as by default."""
        said = {"encoding": self.encoding, "operators": self.operators, "seeded": self.seeded}
        return {name: value for name, value in said.items() if value != getattr(Variant, name)}


class VectorSearch:
    """One run over the vectors of one problem.

    Parameters
    ----------
    task : Task
    variant : Variant, optional
        Which encoder, operators and first vectors.
    points : int, optional
        Points of the front, at most.

    Attributes
    ----------
    encoder : Encoder
    rng : numpy.random.Generator
        The only source of randomness of the run.
    archive : VectorArchive
        Every non-dominated vector that was evaluated.
    """

    def __init__(
        self, task: Task[Problem], variant: Variant | None = None, points: int | None = None
    ):
        self.task, self.variant = task, variant or Variant()
        self.problem, self.objectives, self.budget = task.problem, task.objectives, task.budget
        self.encoder = self.variant.encoder(task.problem, task.objectives)
        self._limited = np.flatnonzero(np.isfinite(task.most))
        self.rng = np.random.default_rng(task.seed)
        self.archive = VectorArchive(self.encoder.num_genes, len(task.objectives))
        self._most_points = min(points or MAX_GENES, max(50, MAX_GENES // self.encoder.num_genes))
        self._interim = RunSnapshot(
            values=lambda: self.archive.F,
            plan=lambda k: self.encoder.decode(self.archive.vector(k)),
            update=self.archive.settle,
            minimal=True,
        )
        self._resumed = self._resume()
        self._judging, self._judged_of = self._seconds_to_judge(), 0
        self._generations: int | None = None  # from the first vectors on, which are number 0
        self._block = 8

    def _resume(self) -> int:
        """Go on from what an earlier process left; return the evaluations that it had made."""
        left = self.task.load_checkpoint()
        if left is None:
            return 0
        X = left.arrays["vectors"].reshape(-1, self.encoder.num_genes)
        X = checked_vectors(X, self.encoder.lower, self.encoder.upper)
        for part in np.array_split(X, -(-len(X) // _TAKEN_UP_TOGETHER)):
            self.archive.add(part, *self._values(part))
        self.archive.settle()
        self.rng = np.random.default_rng([self.task.seed, self.budget.evaluations])
        return self.budget.evaluations

    def _found(self) -> Arrays:
        """Return what another process needs to go on from here."""
        X = self.archive.result()
        kinds = np.min_scalar_type(X.min(initial=0)), np.min_scalar_type(X.max(initial=0))
        return Arrays({}, {"vectors": X.astype(np.result_type(*kinds))})

    def _seconds_to_judge(self) -> float:
        """Return the seconds to decode and judge one plan; 0 without a time limit.

        Where the time is over before the search begins there is little to judge, and 0 as well.
        """
        if self.budget.seconds_limit is None or self.budget.out_of_time:
            return 0.0
        if len(self.objectives) > 3:  # compiles early, not when time is over
            by_rays(np.eye(len(self.objectives)), 1)
        genes = self.encoder.sample(self.rng, 1)[0]
        taken = []
        for _ in range(4):  # the first call fills caches, others may be interrupted
            taken.append(self._judged_in(genes))
            if len(taken) > 1 and taken[-1] > _LONG_JUDGING * self.budget.seconds_limit:
                break
        return IN_A_FRONT * min(taken)

    def _judged_in(self, genes: np.ndarray) -> float:
        """Return the seconds to decode and judge the plan of a vector."""
        began = self.budget.seconds
        self.problem.evaluate(self.encoder.decode(genes))
        return self.budget.seconds - began

    def _judge_some(self) -> None:
        """Measure judging again, by plans of the archive, whenever that has twice the points.

        A random plan, measured before the search, can take twice as long.
        """
        size = len(self.archive)
        if size < 2 * self._judged_of or size < _JUDGED_AGAIN or not self._judging:
            return
        if _JUDGED_AGAIN * self._judging < _LONG_JUDGING * self.budget.seconds:
            self._judged_of = size
            rows = np.linspace(0, size - 1, _JUDGED_AGAIN).astype(int).tolist()
            taken = [self._judged_in(self.archive.vector(k)) for k in rows]
            self._judging = IN_A_FRONT * float(np.median(taken))

    @property
    def seconds_to_seed(self) -> float | None:
        """Seconds that building seeds may take; None without a time limit."""
        if self.budget.seconds_limit is None:
            return None
        return max(1e-3, self._seconds_left * _SEEDING)

    @property
    def finished(self) -> bool:
        """Whether the search must stop, so that time is left to judge its archive."""
        return self.budget.exhausted or self._seconds_left <= 0

    @property
    def _seconds_left(self) -> float:
        """Seconds that remain for the search; judging gets what it needs, up to a share."""
        if self.budget.seconds_limit is None:
            return math.inf
        judged = min(len(self.archive), self._most_points)
        most = JUDGING * self.budget.seconds_limit
        return self.budget.seconds_left - min(self._judging * judged, most)

    @property
    def progress(self) -> float:
        """The share of the search that is over, 0 to 1, without the time of judging."""
        evaluations = self.budget.evaluations / (self.budget.evaluations_limit or math.inf)
        return max(
            evaluations, self.budget.seconds / (self.budget.seconds + max(0.0, self._seconds_left))
        )

    def first(self, size: int) -> np.ndarray:
        """Return vectors to start from, shape (k, num_genes): `size` or more if the budget allows.

        They are those of the start front, the problem's seeds, and random ones.
        """
        self._generations = -1
        value = self._encoded(p.plan for p in self.task.start or ())
        seeds = self._seeds()
        met = self.archive.result()  # of an earlier process
        if len(met) > size:
            met = met[farthest(self.archive.F, size)]
        blocks = [met, value, seeds]
        missing = self.budget.allow(size) - sum(map(len, blocks))
        step = max(1, _SAMPLED_GENES // max(1, self.encoder.num_genes))
        # However short the time, there is one vector.
        while missing > 0 and not (self.finished and any(len(block) for block in blocks)):
            blocks.append(self.encoder.sample(self.rng, min(step, missing)))
            missing -= step
        return np.concatenate(blocks)

    def _seeds(self) -> np.ndarray:
        """Return the problem's seeds in this encoding, shape (k, num_genes); 0 if unseeded."""
        if not self.variant.seeded:
            return np.empty((0, self.encoder.num_genes), dtype=np.int64)
        own = interfaces.build_encoder(self.problem, self.objectives)
        result = interfaces.seeds(own, self.rng, self.seconds_to_seed)
        if self.variant.encoding == "own":
            return result
        return self._encoded(own.decode(x) for x in result)

    def _encoded(self, plans: Iterable[Plan]) -> np.ndarray:
        """Return the vectors of the plans that have one, shape (k, num_genes)."""
        rows = [genes for p in plans if (genes := self.encoder.encode(p)) is not None]
        return np.array(rows, dtype=np.int64).reshape(-1, self.encoder.num_genes)

    def evaluate(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Evaluate as many of the rows as the budget allows.

        Returns
        -------
        X, F, G : ndarray
            The rows that were evaluated, their objectives and violations.
        """
        X = X[: self.budget.allow(len(X))]
        if len(X) == 0:  # an encoder never sees an empty population
            return X, np.empty((0, len(self.objectives))), np.empty((0, self.num_constraints))
        F, G = self._evaluated(X)
        X = X[: len(F)]
        self.budget.spend(len(X))
        if self._generations is not None:
            self._generations += 1
        self.archive.add(X, F, G)
        self._judge_some()
        self.task.save_checkpoint(self._found)
        self.budget.report(interim=self._interim)
        return X, F, G

    def recombine(self, share: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Spend a share of the evaluations on the best recombinations of parts of the archive.

        Encoders that know no parts get none.

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
            few = 2 <= len(known) <= MAX_RECOMBINED * planned
            parts = self.encoder.parts(known) if few else None
            if parts is not None:
                X = recombine(parts, known, self.archive.F, int(share * planned))
        return self.evaluate(X)

    def _evaluated(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the values of the rows; under a time limit of the first ones that it allows."""
        if self.budget.seconds_limit is None:
            return self._values(X)
        blocks: list[tuple[np.ndarray, np.ndarray]] = []
        done = 0
        while done < len(X) and not (blocks and self.finished):
            began = self.budget.seconds
            blocks.append(self._values(X[done : done + self._block]))
            pace = (self.budget.seconds - began) / len(blocks[-1][0])
            done += len(blocks[-1][0])
            self._block = max(1, min(2 * self._block, int(_LOOK_SECONDS / max(pace, 1e-9))))
        F, G = zip(*blocks, strict=True)
        return np.concatenate(F), np.concatenate(G)

    @property
    def num_constraints(self) -> int:
        """Columns of G: those of the encoder, and one for each goal that has a limit."""
        return self.encoder.num_constraints + len(self._limited)

    def _values(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return F and G of vectors; what is above a limit is a violation, as of the instance."""
        F, G = self.encoder.evaluate(X)
        at = self._limited
        return (F, np.hstack((G, excess(F[:, at], self.task.most[at])))) if len(at) else (F, G)

    def nearest(self) -> np.ndarray:
        """Return F of the archive, or of the least-violating vector where that is empty."""
        some = len(self.archive) > 0
        return self.archive.F if some else self.encoder.evaluate(self.archive.result())[0]

    def vectors(self, rows: np.ndarray) -> np.ndarray:
        """Return the vectors of rows of `nearest`, shape (k, num_genes)."""
        return self.archive.vectors(rows) if len(self.archive) else self.archive.result()[rows]

    def keep_only(self, X: np.ndarray) -> None:
        """Forget all that was found but these vectors, (n, num_genes); they are not counted."""
        self.archive = VectorArchive(self.encoder.num_genes, len(self.objectives))
        self.archive.add(X, *self._values(X))

    def conclude(
        self,
        method: str,
        parameters: dict[str, Any],
        libraries: Sequence[str] = ("numpy", "numba", "moocore"),
    ) -> Front:
        """Return the judged front: of the archive what time allows, and no more than asked for."""
        completed = not self.budget.cancelled and (
            self.budget.seconds_limit is None or self.budget.evaluations_left == 0
        )
        self.task.save_checkpoint(self._found)
        parameters = parameters | self.variant.parameters()
        if self._resumed:
            parameters = parameters | {"resumed_at": self._resumed}
        elif self._generations is not None and self._generations < 1:
            parameters = parameters | {"generations": 0}
        vectors = self.archive.result()
        limit = min(len(vectors), self._most_points)
        if self.budget.cancelled:
            limit = min(limit, MAX_CANCELLED)
        order = self._to_judge(limit) if len(self.archive) else range(len(vectors))
        return self.task.front(
            (Candidate(self.encoder.decode(vectors[k])) for k in self._until_time(order)),
            method=method,
            completed=completed,
            parameters=parameters,
            libraries=libraries,
        )

    def _until_time(self, order: Iterable[int]) -> Iterator[int]:
        """Yield rows until the time limit, at least `MIN_JUDGED` of them."""
        began = self.budget.seconds
        for position, k in enumerate(order):
            sorting = SORTING * (self.budget.seconds - began)
            if position >= MIN_JUDGED and self.budget.seconds_left <= sorting:
                return
            yield k

    def _to_judge(self, limit: int) -> Iterable[int]:
        """Return at most `limit` rows of the archive; with a time limit those of most worth first.

        Worth is hypervolume: what a row adds to those before, or, with two and three goals, what
        would be lost without it.
        """
        F = self.archive.F
        if not self._judging or len(F) <= MIN_JUDGED:
            return subset_by_contribution(F, limit).tolist() if limit < len(F) else range(len(F))
        if F.shape[1] in (2, 3):
            return by_worth(F, MIN_JUDGED)[:limit].tolist()
        room = max(MIN_JUDGED, int(self.budget.seconds_left / self._judging))
        # Where time does for most of them little depends on their order, and to find a good one
        # takes the time of judging thousands.
        size = MIN_JUDGED if 2 * room >= limit else min(room, MAX_SORTED)
        return by_rays(F, size)[:limit].tolist()
