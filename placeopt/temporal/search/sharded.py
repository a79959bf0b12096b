"""Search in parts: the goals are sums over parts of an instance that can be planned alone.

The front of the whole is the Minkowski sum of the fronts of its parts. By the theorem of Shapley
and Folkman the sum of many sets is nearly convex, so that weighted sums reach its front: for a
weight vector every part gives its best vector. Parts are searched for many weights at once, as
independent tasks; no plan is made: one member serves each weight, children of members of near
weights are offered to all weights, and the best replaces the member. The vectors of all parts are
then summed for each weight. Plans are made only of the points that are kept, and knitted: the
encoder of the whole lets machines serve several parts where that is better.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Annotated, Any, NamedTuple

import numpy as np
from pydantic import Field

from placeopt.core import interfaces
from placeopt.core.budget import Budget
from placeopt.core.files.arrays import Arrays
from placeopt.core.fronts.dominance import contributions, nondominated, subset_by_contribution
from placeopt.core.fronts.front import Front
from placeopt.core.fronts.values import Plan, names_of
from placeopt.core.goals import simplex
from placeopt.core.interfaces import Encoder
from placeopt.core.runs.run_directory import task_key
from placeopt.core.runs.workers import Call
from placeopt.core.task import Candidate, Task
from placeopt.temporal.problem import Temporal
from placeopt.temporal.search.division import Division, divide

#: Parts that are looked at to learn the ranges of the goals.
SAMPLED_PARTS = 6
#: Share of a time limit that is for the search of the parts; the rest makes and judges plans.
SEARCH_SHARE = 0.6
#: Share of the time of a part that vectors to start from may take.
SEEDING_SHARE = 0.25
#: Vectors that are evaluated of a part which there was no time to search.
UNSEARCHED = 8
#: Points that are judged even when the time is over.
MIN_JUDGED = 10
#: Goals that differ by less than this share are equal: sums in another order differ at the end.
NEAR = 1e-9
#: Genes of all points together: beyond, fewer points are kept (at least `MIN_POINTS`), and plans
#: are put together from plans of parts that points share; a plan of its own takes 60 bytes a gene.
MAX_GENES, MIN_POINTS, MAX_KNITTED_GENES = 140_000_000, 100, 15_000_000
#: Parts of the lattice of weights by number of objectives, and of the coarser one of the seeds:
#: about 1,000 and 150 weights.
PARTS = {1: (1, 1), 2: (600, 120), 3: (48, 16), 4: (15, 7)}
#: Least weight of an objective before the power is taken, and the power: it spreads ratios of
#: weights, since a goal that is cheap to improve matters at small weights too.
LEAST_WEIGHT, POWER = 1e-3, 2.0
#: Children that are made and evaluated together.
BLOCK = 128
#: Weights that are drawn for the father of a child; the nearest one with another member is taken.
FATHERS = 16
#: What a unit of violation adds to a weighted sum; goals are scaled to about 1.
PENALTY = 1e6


@cache
def weight_lattice(objectives: int, *, seeds: bool = False) -> np.ndarray:
    """Return weights that sum to 1, shape (w, objectives); few of them for `seeds`."""
    parts = PARTS.get(objectives, (6, 4))[1 if seeds else 0]
    weights = np.maximum(simplex(parts, objectives), LEAST_WEIGHT) ** POWER
    return weights / weights.sum(axis=1, keepdims=True)


@dataclass
class Members:
    """The best vector known for each weight; several weights may share one.

    Attributes
    ----------
    X : ndarray, shape (k, num_genes)
    F : ndarray, shape (k, objectives)
    of : ndarray, shape (w,)
        The row of X that serves each weight.
    score : ndarray, shape (w,)
        Its weighted sum, with what it violates.
    """

    X: np.ndarray
    F: np.ndarray
    of: np.ndarray
    score: np.ndarray

    def offer(self, X: np.ndarray, F: np.ndarray, scores: np.ndarray) -> None:
        """Let each weight have the best of some vectors, of `scores` (vectors, w), if better."""
        best = scores.argmin(axis=0)
        lowest = scores[best, np.arange(len(self.of))]
        better = lowest < self.score
        if better.any():
            used, rows = np.unique(best[better], return_inverse=True)
            self.of[better], self.score[better] = len(self.X) + rows, lowest[better]
            self.X, self.F = np.concatenate((self.X, X[used])), np.concatenate((self.F, F[used]))
            kept, self.of = np.unique(self.of, return_inverse=True)
            self.X, self.F = self.X[kept], self.F[kept]


def search(
    encoder: Encoder,
    weights: np.ndarray,
    starts: np.ndarray,
    rng: np.random.Generator,
    budget: Budget,
) -> Members:
    """Return the members that a search finds within a budget; it evaluates `starts` first.

    Parameters
    ----------
    encoder : Encoder
    weights : ndarray, shape (w, objectives)
        Of goals that they scale to about 1.
    starts : ndarray, shape (k, num_genes)
        At least one vector.
    """
    lattice = np.log(weights / weights.max(axis=0) + LEAST_WEIGHT)

    def scored(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        F, G = encoder.evaluate(X)
        budget.spend(len(X))
        return F, F @ weights.T + PENALTY * G.sum(axis=1)[:, None]

    members = Members(
        starts[:0],
        np.empty((0, weights.shape[1])),
        np.zeros(len(weights), int),
        np.full(len(weights), np.inf),
    )
    together = len(starts) if budget.seconds_limit is None else BLOCK
    for begin in range(0, len(starts), together):
        if begin and budget.out_of_time:
            break
        block = starts[begin : begin + together]
        members.offer(block, *scored(block))
    order = np.empty(0, dtype=np.int64)
    while not budget.exhausted:
        if len(order) == 0:
            order = rng.permutation(len(weights))
        block, order = order[: budget.allow(BLOCK)], order[budget.allow(BLOCK) :]
        fathers = _near(lattice, members.of, block, rng)
        children = encoder.vary(rng, members.X[members.of[block]], members.X[members.of[fathers]])
        members.offer(children, *scored(children))
        budget.report(f"{len(members.X)} vectors")
    return members


def _near(
    lattice: np.ndarray, of: np.ndarray, block: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Return for each weight of a block a near weight with another member, where one is drawn."""
    drawn = rng.integers(len(lattice), size=(len(block), FATHERS))
    distance = ((lattice[drawn] - lattice[block][:, None]) ** 2).sum(axis=2)
    distance[of[drawn] == of[block][:, None]] = np.inf
    return drawn[np.arange(len(block)), distance.argmin(axis=1)]


class PartFront(NamedTuple):
    """What the search of one part found."""

    X: np.ndarray  # (k, num_genes of the part)
    F: np.ndarray  # (k, objectives) of the part
    of: np.ndarray  # (w,) the row that serves each weight


def search_part(
    budget: Budget,
    document: dict[str, Any],
    objectives: list[str],
    factors: np.ndarray,
    scale: np.ndarray,
    known: np.ndarray | None,
    seed: tuple[int, int],
) -> Arrays:
    """Search one part: what a worker is asked; returns a `PartFront` by its names.

    Parameters
    ----------
    factors : ndarray, shape (objectives,)
        Of the part in the whole.
    scale : ndarray, shape (objectives,)
        Ranges of the goals of the whole.
    known : ndarray, shape (k, num_genes), optional
        Vectors of the part to start from, besides those for weights.
    seed : tuple of int
        Of the run, and the number of the part.
    """
    problem = Temporal.from_document(document)
    encoder = interfaces.build_encoder(problem, problem.select(objectives))
    encoder.trusted = True
    per_unit = factors / scale
    weights = weight_lattice(len(factors)) * per_unit
    rng = np.random.default_rng(seed)
    few = weight_lattice(len(factors), seeds=True) * per_unit
    few = few[np.unique(np.linspace(0, len(few) - 1, max(3, budget.allow(len(few)))).astype(int))]
    starts = interfaces.vectors_at(encoder, few, budget.share(SEEDING_SHARE))
    if known is not None:
        starts = np.concatenate((known.astype(np.int64), starts))
    if len(starts) == 0:
        starts = encoder.sample(rng, 100)
    members = search(encoder, weights, starts[: max(1, budget.allow(len(starts)))], rng, budget)
    result = PartFront(members.X.astype(np.int32), members.F, members.of)
    return Arrays({"evaluations": budget.evaluations}, result._asdict())


def run(
    task: Task[Temporal],
    *,
    part_size: Annotated[
        int, Field(ge=10, le=100_000, description="Requests, or the like, of a part, about.")
    ] = 400,
    part_evaluations: Annotated[
        int, Field(ge=1, description="Most evaluations of a part; a time limit alone has none.")
    ] = 5000,
    points: Annotated[
        int, Field(ge=1, le=100_000, description="Points kept; of very large plans fewer.")
    ] = 300,
) -> Front:
    """Search the parts of an instance for weighted sums, and put their vectors together.

    An evaluation of every part counts as one. The front is the same for any number of workers.

    Raises
    ------
    UnsupportedError
        The instance cannot be cut into parts.
    """
    division = divide(task.problem, task.objectives, part_size)
    fronts = _searched(task, division, part_evaluations)
    complete = not task.budget.out_of_time
    composition = _Composition(task, division, fronts, points)
    return task.front(
        composition.candidates(),
        method="sharded",
        completed=complete,
        parameters={
            "parts": len(division.parts),
            "part_size": part_size,
            "part_evaluations": part_evaluations,
            "points": points,
        },
        libraries=("numpy", "numba", "moocore"),
    )


def _searched(task: Task[Temporal], division: Division, part_evaluations: int) -> list[PartFront]:
    """Return what the search of each part found."""
    budget, workers, scale = task.budget, task.workers, _ranges(division, task)
    counted, timed = budget.evaluations_limit is not None, budget.seconds_limit is not None
    most = int(min(part_evaluations, budget.evaluations_left)) if counted else None
    known = _known(division, task)
    calls = [_call(task, division, k, scale, known[k], most) for k in range(len(division.parts))]
    share, done = budget.share(SEARCH_SHARE), 0
    if timed:
        width = workers.width(len(calls))
        if width > 1:  # kernels are compiled here, and kept, before others need them in their time
            search_part(Budget(evaluations=UNSEARCHED), *calls[0].arguments)
        rounds = -(-len(calls) // width)
        calls = [replace(call, seconds=share.seconds_left / rounds) for call in calls]

    def tell(k: int, result: Any) -> None:
        nonlocal done
        done += 1
        budget.report(note=f"{done} of {len(calls)} parts")

    results = workers.run(calls, share, tell)
    results = [  # what there was no time for is not searched, but has its first vectors
        search_part(Budget(evaluations=UNSEARCHED), *call.arguments) if outcome is None else outcome
        for call, outcome in zip(calls, results, strict=True)
    ]
    budget.spend(max(result.header["evaluations"] for result in results))
    return [PartFront(**result.arrays) for result in results]


def _call(
    task: Task[Temporal],
    division: Division,
    k: int,
    scale: np.ndarray,
    known: np.ndarray | None,
    evaluations: int | None,
) -> Call:
    """Return the task of searching part k."""
    part, factors, names = division.parts[k], division.factors[k], names_of(task.objectives)
    facts = {"part": k, "factors": factors.tolist(), "scale": scale.tolist()}
    limits = evaluations, task.budget.seconds_limit
    key = None
    if task.workers.kept is not None:
        goals, method = task.objectives, "sharded part"
        key = task_key(part, goals, method, facts, task.seed, *limits, task.start)
    arguments = (part.to_document(), names, factors, scale, known, (task.seed, k))
    return Call(search_part, arguments, evaluations, key=key)


def _known(division: Division, task: Task[Temporal]) -> list[np.ndarray | None]:
    """Return what each part does in the plans to start from, (plans, genes of the part)."""
    vectors = []
    if task.start is not None and task.start.points:
        encoder = interfaces.build_encoder(task.problem, task.objectives)
        vectors = [encoder.encode(point.plan) for point in task.start.points]
    split = [division.split(vector) for vector in vectors if vector is not None]
    if not split:
        return [None] * len(division.parts)
    return [np.array(rows, dtype=np.int32) for rows in zip(*split, strict=True)]


def _ranges(division: Division, task: Task[Temporal]) -> np.ndarray:
    """Return the ranges of the goals of the whole, about, shape (objectives,), above 0.

    They are those of the best vectors for each goal alone, over some of the parts: over one where
    there is no time.
    """
    names = names_of(task.objectives)
    alone = np.full((len(names), len(names)), LEAST_WEIGHT) + np.eye(len(names))
    best, worst = np.zeros(len(names)), np.zeros(len(names))
    count, looked = len(division.parts), 0
    for k in np.unique(np.linspace(0, count - 1, SAMPLED_PARTS).astype(int)):
        if looked and task.budget.out_of_time:
            break
        looked += 1
        part = division.parts[k]
        encoder = interfaces.build_encoder(part, part.select(names))
        X = interfaces.vectors_at(encoder, alone)
        F = encoder.evaluate(X if len(X) else encoder.sample(np.random.default_rng(0), 100))[0]
        best += division.factors[k] * F.min(axis=0)
        worst += division.factors[k] * F.max(axis=0)
    width = (worst - best) * count / looked
    return np.where(width > 0, width, 1.0)


class _Composition:
    """The points that the vectors of the parts make up, and the plans of those that are kept.

    Parameters
    ----------
    fronts : list of PartFront
    points : int
        Points kept at most.
    """

    def __init__(
        self,
        task: Task[Temporal],
        division: Division,
        fronts: list[PartFront],
        points: int,
    ):
        self.task, self.division, self.fronts = task, division, fronts
        self.genes = sum(front.X.shape[1] for front in fronts)
        F = sum(
            factors * front.F[front.of]
            for factors, front in zip(division.factors, fronts, strict=True)
        )
        F = np.asarray(F)
        inside = task.inside(F)
        rows = np.flatnonzero(inside if inside.any() else ~inside)
        kept = rows[nondominated(F[rows])]
        most = min(points, max(MIN_POINTS, MAX_GENES // max(1, self.genes)))
        self.chosen = kept[subset_by_contribution(F[kept], most)]
        self.F = F[self.chosen]
        self._plans: dict[tuple[int, int], Plan] = {}

    def candidates(self) -> Iterator[Candidate]:
        """Yield plans, those that add most first, until the time is over."""
        whole: interfaces.Encoder | None = None
        if len(self.chosen) * self.genes <= MAX_KNITTED_GENES:
            whole = interfaces.build_encoder(self.task.problem, self.task.objectives)
        for count, k in enumerate(self._by_gain()):
            if count >= MIN_JUDGED and self.task.budget.out_of_time:
                return
            self.task.budget.report(f"{count} plans composed")
            knitted = None if whole is None else self._knitted(whole, k)
            yield Candidate(self._composed(k) if knitted is None else knitted)

    def _by_gain(self) -> list[int]:
        """Return the points, the best in a goal first, then those that add most hypervolume."""
        order = range(len(self.F))
        if self.F.shape[1] in (2, 3):
            order = np.argsort(-contributions(self.F), kind="stable").tolist()
        return list(dict.fromkeys([*self.F.argmin(axis=0).tolist(), *order]))

    def _knitted(self, whole: interfaces.Encoder, k: int) -> Plan | None:
        """Return the plan of the joined vectors where nothing gets worse, else None."""
        vector = self.division.join([front.X[front.of[self.chosen[k]]] for front in self.fronts])
        F, G = whole.evaluate(vector[None])
        better = (F[0] <= self.F[k] * (1 + NEAR)).all() and not G.any()
        return whole.decode(vector) if better else None

    def _composed(self, k: int) -> Plan:
        """Return the plan of the plans of the parts; points share these."""
        plans = []
        for part, front in enumerate(self.fronts):
            row = int(front.of[self.chosen[k]])
            if (part, row) not in self._plans:
                self._plans[part, row] = self._encoders[part].decode(front.X[row])
            plans.append(self._plans[part, row])
        return self.division.compose(plans)

    @cached_property
    def _encoders(self) -> list[interfaces.Encoder]:
        names = names_of(self.task.objectives)
        return [interfaces.build_encoder(part, part.select(names)) for part in self.division.parts]
