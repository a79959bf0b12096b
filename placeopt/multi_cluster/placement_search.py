"""``placement-search``: replicas of single requests move freely, under weights of the goals.

A plan here is any division of the replicas of each request over the clusters; the searches over
vectors know only all on one cluster and three spreads. Again and again weights are drawn, and the
plan that is best for them is improved by random changes of one decision, or of two of requests that
run together: simulated annealing (`placeopt.multi_cluster.annealing`). As much work is for weighted
sums of the front's ends and middle, in rounds that become longer. Where that gives few new plans,
as on small instances, children of the plans in the archive fill the front.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count as counted
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from placeopt.core.budget import Budget
from placeopt.core.fronts.front import Front
from placeopt.core.fronts.values import Objective, Plan, names_of
from placeopt.core.goals import simplex, upper_limits
from placeopt.core.interfaces import Encoder
from placeopt.core.problem import Problem
from placeopt.core.task import Task
from placeopt.evolve.search import Variant, VectorSearch
from placeopt.multi_cluster import annealing, changes
from placeopt.multi_cluster.encoder import MultiClusterEncoder
from placeopt.multi_cluster.heuristics import seeds
from placeopt.multi_cluster.instance import MultiCluster

#: Plans that are improved between two looks at the archive.
BATCH = 64
#: Random changes that are tried on a plan, for each of its requests, at the beginning.
TRIED = 10
#: Heat at the beginning of annealing, for one request: a change of one moves means over all by so
#: much less as there are more. Weights make the width of a goal in the archive 1.
HEAT = 0.1
#: The same where plans are improved for a weighted sum, in turn: where few plans refuse nothing,
#: hot annealing leads from one of them to others; where many do, cool annealing is better.
SUM_HEATS = (0.03, 0.1, 0.3)
#: Odds that a change is of two requests, on the front and for a weighted sum.
PAIRS = (0.25, 0.5)
#: Work on weighted sums for each of the work on the front, by the number of goals without a limit;
#: fronts of four goals have most of their volume elsewhere.
SUMS = {1: 3.0, 2: 3.0, 3: 0.5, 4: 0.1}
#: Parts of the lattice of weighted sums by the same number, and the least weight of a goal.
PARTS, LEAST_WEIGHT = {1: 1, 2: 10, 3: 3, 4: 2}, 0.01
#: Changes that are tried for a weighted sum in the first round, for each request, and how often
#: they double.
SUM_TRIED, MOST_ROUNDS = 50, 12
#: Share of improved plans that are new to the archive below which children are made as well.
FEW_NEW = 0.5
#: Of `maximise_acceptance`: vectors, generations at most, and about its share of the budget.
FULLEST, GENERATIONS, SHARE = 64, 40, 0.05
#: Seconds of a generation for each request. No clock is asked, so that equal runs stay equal.
SECONDS_EACH = 4e-5


class PlacementEncoder(Encoder):
    """A gene per request and cluster: the replicas there.

    A request whose genes are not all of its replicas, or do not fit, is refused. So every vector is
    a feasible plan.
    """

    problem: MultiCluster

    def __init__(self, problem: MultiCluster, objectives: Sequence[Objective]):
        super().__init__(problem, objectives)
        self._shape = len(problem.requests), len(problem.clusters)
        self.num_genes, self.num_constraints = self._shape[0] * self._shape[1], 1
        self.lower = np.zeros(self.num_genes, dtype=np.int64)
        self.upper = np.repeat(problem.arrays.replicas, self._shape[1])
        self._state, self._change = changes.empty_state(problem.arrays)
        self._worst = np.array(problem.referee.worst)
        self._most = upper_limits(problem.goal_limits, problem.objectives)
        self.actions = MultiClusterEncoder(problem, objectives)

    def _judged(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the decisions of vectors, shape (n, T, C), and their goals, (n, 4)."""
        vectors = self.checked(X).reshape(-1, *self._shape).copy()
        values = np.empty((len(vectors), 4))
        arrays = self.problem.arrays
        changes.judge_all(arrays, self._state, self._change, vectors, self._worst, values)
        return vectors, values

    def evaluate(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return F (n, objectives) and G (n, 1), which is 0."""
        return self._judged(X)[1][:, self._columns], np.zeros((len(X), 1))

    def decode(self, genes: np.ndarray) -> Plan:
        """Return the plan of one vector."""
        rows = self._judged(self.checked_one(genes)[None])[0][0].tolist()
        return self.problem.plan([{c: n for c, n in enumerate(row) if n > 0} for row in rows])

    def encode(self, plan: Plan) -> np.ndarray:
        """Return the vector of a plan."""
        vector = np.zeros(self._shape, dtype=np.int64)
        for t, decision in enumerate(self.problem.decisions(plan)):
            for c, count in decision.items():
                vector[t, c] = count
        return vector.ravel()

    def sample(self, rng: np.random.Generator, count: int) -> np.ndarray:
        """Return vectors of random actions."""
        return self.of_actions(self.actions.sample(rng, count))

    def of_actions(self, X: np.ndarray) -> np.ndarray:
        """Return the vectors of the plans of vectors of actions."""
        return self.actions.placed(X).reshape(len(X), -1)

    def improve(
        self,
        X: np.ndarray,
        weights: np.ndarray,
        ideal: np.ndarray,
        steps: int,
        random: np.ndarray,
        heat: float = 0.0,
        *,
        sums: bool = False,
    ) -> np.ndarray:
        """Return the vectors X after `steps` random changes each.

        What makes nothing worse stays; of the rest less and less, by simulated annealing. Nothing
        stays that goes further beyond a limit on a goal.

        Parameters
        ----------
        X : ndarray, shape (n, num_genes)
        weights : ndarray, shape (n, objectives)
        ideal : ndarray, shape (objectives,)
        steps : int
        random : ndarray of uint64, shape (1,)
            State of the random generator; it advances.
        heat : float
            How much worse a change may make a plan at the beginning, about.
        sums : bool
            Whether the weighted sum counts alone, without the largest weighted distance.
        """
        vectors = self.checked(X).reshape(-1, *self._shape).copy()
        every, origin = np.zeros((len(X), 4)), np.zeros(4)
        every[:, self._columns], origin[list(self._columns)] = weights, ideal
        scratch = self.problem.arrays, self._state, self._change
        wanted = every, origin, self._worst, self._most, not sums, PAIRS[sums]
        annealing.anneal_all(*scratch, vectors, *wanted, steps, random, heat)
        return vectors.reshape(len(X), -1)

    def vary(
        self, rng: np.random.Generator, mothers: np.ndarray, fathers: np.ndarray
    ) -> np.ndarray:
        """Return children: a stretch of requests from the father, one decision drawn anew."""
        mothers, fathers = self.checked_pairs(mothers, fathers)
        children = mothers.reshape(-1, *self._shape).copy()
        random = rng.integers(0, 2**64, size=1, dtype=np.uint64)
        replicas = self.problem.arrays.replicas
        annealing.vary_all(replicas, children, fathers.reshape(children.shape), random)
        return children.reshape(len(children), -1)


@dataclass(frozen=True)
class _Placements(Variant):
    """The search over `PlacementEncoder`; greedy plans come from `run`, without a plan each."""

    seeded: bool = False

    def encoder(self, problem: Problem, objectives: Sequence[Objective]) -> Encoder:
        assert isinstance(problem, MultiCluster)
        encoder = PlacementEncoder(problem, objectives)
        encoder.trusted = encoder.actions.trusted = True
        return encoder

    def parameters(self) -> dict[str, Any]:
        return {}


def maximise_acceptance(
    problem: MultiCluster, X: np.ndarray, rng: np.random.Generator, budget: Budget
) -> np.ndarray:
    """Return vectors of actions that refuse few requests, by evolution from those in X.

    Where room is scarce such plans are far from each other by changes of single decisions. Of
    actions one change moves much: what finds no place goes to another.
    """
    encoder = MultiClusterEncoder(problem, problem.select(["rejected"]))
    encoder.trusted = True
    refused = encoder.evaluate(X)[0][:, 0]
    share = budget.share(evaluations=SHARE * budget.evaluations_left)
    for _ in range(_generations(problem, budget)):
        if share.exhausted or refused.min() <= 0:
            break
        mothers, fathers = rng.integers(len(X), size=(2, share.allow(FULLEST)))
        children = encoder.vary(rng, X[mothers], X[fathers])
        share.spend(len(children))
        X = np.concatenate((children, X))
        refused = np.concatenate((encoder.evaluate(children)[0][:, 0], refused))
        best = np.argsort(refused, kind="stable")[:FULLEST]  # of equals the new ones
        X, refused = X[best], refused[best]
    return X


def _generations(problem: MultiCluster, budget: Budget) -> int:
    """Return how many generations a time limit has room for, 1 to `GENERATIONS`."""
    if budget.seconds_limit is None:
        return GENERATIONS
    affordable = SHARE * budget.seconds_limit / (SECONDS_EACH * len(problem.requests))
    return max(1, min(GENERATIONS, int(affordable)))


def run(
    task: Task[MultiCluster],
    *,
    tried: Annotated[
        int,
        Field(ge=1, le=10_000, description="Changes tried on a plan for each request, at first."),
    ] = TRIED,
) -> Front:
    """Improve plans by changes of single decisions, each under weights of its own.

    An improved plan counts as the changes that are tried for each request: `tried` at first, and
    `tried` more whenever as many batches are over as there are requests. Slow annealing pays once
    good plans are known, on small instances soon.
    """
    search = VectorSearch(task, _Placements())
    encoder = search.encoder
    assert isinstance(encoder, PlacementEncoder)
    random = search.rng.integers(0, 2**64, size=1, dtype=np.uint64)
    requests = len(task.problem.requests)
    search.evaluate(_first(search, encoder, task))
    sums, spent = _Sums(search, encoder, random), 0.0
    for batch in counted():
        if search.finished:
            break
        search.archive.settle()
        each = tried + tried * batch // requests
        X, weights = _starts(search, each)
        known, steps = search.nearest(), each * requests
        ideal, heat = known.min(axis=0), HEAT / requests
        X, F, _ = search.evaluate(encoder.improve(X, weights, ideal, steps, random, heat))
        search.budget.spend(search.budget.allow((each - 1) * len(X)))
        made = each * len(X)
        if annealing.count_new(F, known) < FEW_NEW * len(F):
            made += len(search.evaluate(_children(search, BATCH * tried))[0])
        spent += SUMS[sums.free] * made
        while spent > 0 and not search.finished:
            spent -= sums.improve_next()
    return search.conclude("placement-search", {"tried": tried})


class _Sums:
    """Weighted sums of the ends of the front, its middle and what is between, one after the other.

    Every second round has random weights. Changes double after two rounds. Goals that have a limit
    count little.
    """

    def __init__(self, search: VectorSearch, encoder: PlacementEncoder, random: np.ndarray):
        self._search, self._encoder, self._random = search, encoder, random
        free = np.isinf(search.task.most)
        free = free if free.any() else ~free
        self.free = int(free.sum())
        parts = np.maximum(simplex(PARTS[self.free], self.free), LEAST_WEIGHT)
        self._lattice = parts[np.argsort(-parts.min(axis=1), kind="stable")]  # the middle first
        self._columns, self._row = free, np.full(len(free), LEAST_WEIGHT**2)
        self._done = 0

    def _next(self) -> tuple[int, np.ndarray]:
        """Return the number of the round, and the next weights."""
        rounds, at = divmod(self._done, len(self._lattice))
        drawn = self._search.rng.dirichlet(np.ones(self.free)) if rounds % 2 else self._lattice[at]
        self._row[self._columns] = np.maximum(drawn, LEAST_WEIGHT)
        self._done += 1
        return rounds, self._row

    def improve_next(self) -> int:
        """Improve the best plan for the next sum; return the changes tried for each request."""
        search, encoder, problem = self._search, self._encoder, self._encoder.problem
        rounds, row = self._next()
        tried = max(1, search.budget.allow(SUM_TRIED * 2 ** min(rounds // 2, MOST_ROUNDS)))
        search.archive.settle()
        F = search.nearest()
        ideal, width = F.min(axis=0), np.ptp(F, axis=0)
        wide = width > 1e-9
        weights = row * (wide / np.maximum(width, 1e-9) if wide.any() else 1.0)
        chosen = np.empty(1, dtype=np.int64)
        annealing.choose_starts(F, weights[None], ideal, False, chosen)
        start, requests = search.vectors(chosen), len(problem.requests)
        heat = SUM_HEATS[self._done % len(SUM_HEATS)] / requests
        more = tried * requests, self._random, heat
        search.evaluate(encoder.improve(start, weights[None], ideal, *more, sums=True))
        search.budget.spend(search.budget.allow(tried - 1))
        return tried


def _first(search: VectorSearch, encoder: PlacementEncoder, task: Task[MultiCluster]) -> np.ndarray:
    """Return vectors of the start front, of plans that refuse few requests, and greedy ones."""
    greedy = seeds(encoder.actions, search.rng)
    blocks = [search.first(0), encoder.of_actions(greedy)]
    if "rejected" in names_of(task.objectives):
        full = maximise_acceptance(task.problem, greedy, search.rng, task.budget)
        blocks.insert(1, encoder.of_actions(full))
    return np.concatenate(blocks)


def _starts(search: VectorSearch, tried: int) -> tuple[np.ndarray, np.ndarray]:
    """Return vectors of the archive and the random weights for which each is the best."""
    F = search.nearest()
    ideal, width = F.min(axis=0), np.maximum(np.ptp(F, axis=0), 1e-9)
    plans = max(1, search.budget.allow(BATCH * tried) // tried)
    # A direction from the ideal point has the inverse of its coordinates for weights.
    inverse = 1 / np.maximum(search.rng.dirichlet(np.ones(F.shape[1]), size=plans), 1e-3)
    weights = inverse / inverse.sum(axis=1, keepdims=True) / width
    chosen = np.empty(plans, dtype=np.int64)
    annealing.choose_starts(F, weights, ideal, True, chosen)
    return search.vectors(chosen), weights


def _children(search: VectorSearch, size: int) -> np.ndarray:
    """Return `size` children of plans of the archive, whose pairs are drawn at random."""
    pairs = search.rng.integers(len(search.nearest()), size=(2, size))
    mothers, fathers = (search.vectors(rows) for rows in pairs)
    return search.encoder.vary(search.rng, mothers, fathers)
