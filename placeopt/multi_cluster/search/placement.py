"""``placement-search``: replicas of single requests move freely, under weights of the goals.

A plan here is any division of the replicas of each request over the clusters; the searches over
vectors know only all on one cluster and three spreads. Again and again weights are drawn, and the
plan that is best for them is improved by random changes of one decision, or of two of requests that
run together: simulated annealing (`placeopt.multi_cluster.search.placement`). As much work is for
weighted sums of the front's ends and middle, in rounds that become longer. Where that gives few new
plans, as on small instances, children of the plans in the archive fill the front.
"""

from __future__ import annotations

import math
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
from placeopt.core.kernels.common import below, copy_row, copy_rows, most_worse, uniform
from placeopt.core.kernels.compile import allocating_kernel, kernel
from placeopt.core.problem import Problem
from placeopt.core.task import Task
from placeopt.evolve.search import Variant, VectorSearch
from placeopt.multi_cluster.encoder import MultiClusterEncoder
from placeopt.multi_cluster.episodes.state import MAX_MS
from placeopt.multi_cluster.problem import MultiCluster
from placeopt.multi_cluster.search import changes, seeds
from placeopt.multi_cluster.search.changes import (
    begin,
    make_change,
    try_change,
    write_decisions,
    write_values,
)

# -- changes that stay -----------------------------------------------------------------------------

#: Odds that a change of one refuses an accepted request, and that it moves some of its replicas.
_REFUSE, _SHIFT = 0.1, 0.55
#: Odds that two requests exchange the same number of replicas, where both have so many.
_SAME = 0.7
#: Share of the steps of annealing that may make a plan worse.
_HOT = 0.8


# -- plans known so far ----------------------------------------------------------------------------


@kernel
def choose_starts(known, weights, ideal, largest_too, chosen):
    """Write for each row of weights (n, m) the row of `known` (k, m) that is best under them."""
    for w in range(len(weights)):
        least = math.inf
        for row in range(len(known)):
            value = _weighted(known[row], weights[w], ideal, largest_too)
            if value < least:
                least, chosen[w] = value, row


@kernel
def count_new(values, known):
    """Return how many rows of `values` (n, m) no row of `known` (k, m) equals or dominates."""
    count = 0
    for k in range(len(values)):
        covered = False
        for row in range(len(known)):
            covered = True
            for goal in range(values.shape[1]):
                if known[row, goal] > values[k, goal]:
                    covered = False
                    break
            if covered:
                break
        if not covered:
            count += 1
    return count


# -- drawing changes -------------------------------------------------------------------------------


@kernel
def _drawn_cluster(random, split):
    """Return a random cluster on which `split` (C,) has replicas; it has some."""
    c = below(random, len(split))
    while split[c] == 0:
        c = (c + 1) % len(split)
    return c


@kernel
def _divide(random, asked, split):
    """Place all replicas on a random cluster, or on two, in `split` (C,)."""
    split[:] = 0
    first = asked if uniform(random) < 0.5 else below(random, asked + 1)
    split[below(random, len(split))] += first
    split[below(random, len(split))] += asked - first


@kernel
def _draw_one(random, placed, asked, split):
    """Draw another decision into `split` (C,); `placed` (C,) is the decision now.

    It is a refusal, a shift of replicas, or one or two clusters. Advances `random`, (1,).
    """
    clusters, accepted = len(split), placed.sum() > 0
    kind = uniform(random)
    if accepted and kind < _REFUSE + _SHIFT:
        copy_row(placed, split)
        if kind < _REFUSE:
            split[:] = 0
            return
        origin = _drawn_cluster(random, split)
        count = 1 + below(random, split[origin])
        split[origin] -= count
        split[below(random, clusters)] += count
        return
    _divide(random, asked, split)


@kernel
def _exchange(random, split):
    """Move replicas of one request from a to b, of the other from b to a, in `split` (2, C)."""
    a, b = _drawn_cluster(random, split[0]), _drawn_cluster(random, split[1])
    there = 1 + below(random, split[0, a])
    same = uniform(random) < _SAME and there <= split[1, b]
    back = there if same else 1 + below(random, split[1, b])
    split[0, a] -= there
    split[0, b] += there
    split[1, b] -= back
    split[1, a] += back


@kernel
def _eject(random, replicas, change, k):
    """Place the refused request k of the change; refuse the other one, or move some of it."""
    split, request = change.split, change.request
    _divide(random, replicas[request[k]], split[k])
    if uniform(random) < 0.5:
        split[1 - k, :] = 0
    else:
        origin = _drawn_cluster(random, split[1 - k])
        count = 1 + below(random, split[1 - k, origin])
        split[1 - k, origin] -= count
        split[1 - k, below(random, len(split[0]))] += count


@kernel
def _draw(random, state, replicas, pairs, change):
    """Draw a change of one request or of two that run together; return whether it is one.

    `pairs` are the odds of two. Advances `random`, (1,).
    """
    request, split, placed = change.request, change.split, state.placed
    t = below(random, len(placed))
    request[0], request[1] = t, -1
    beside = state.ends[t] - t - 1
    if beside <= 0 or uniform(random) >= pairs:
        _draw_one(random, placed[t], replicas[t], split[0])
        return not _same(split[0], placed[t])
    s = t + 1 + below(random, beside)
    request[1] = s
    copy_row(placed[t], split[0])
    copy_row(placed[s], split[1])
    if state.accepted[t] and state.accepted[s]:
        _exchange(random, split)
    elif state.accepted[t] or state.accepted[s]:
        _eject(random, replicas, change, 1 if state.accepted[t] else 0)
    else:
        return False
    return not (_same(split[0], placed[t]) and _same(split[1], placed[s]))


@kernel
def _same(split, placed):
    """Return whether two decisions (C,) are the same."""
    same = True
    for c in range(len(split)):
        same &= split[c] == placed[c]
    return same


# -- annealing and variation -----------------------------------------------------------------------


@kernel
def _weighted(values, weights, ideal, largest_too):
    """Return the sum of the weighted distances of goals from the ideal; `largest_too` added."""
    largest = total = 0.0
    for k in range(len(values)):
        distance = weights[k] * (values[k] - ideal[k])
        largest, total = max(largest, distance), total + distance
    return total + largest if largest_too else total


@kernel
def _allowed(random, heat, step, steps):
    """Return how much worse a step may make a plan: exponential, its mean from `heat` to 0.

    The steps after a share of `_HOT` make nothing worse. Advances `random`, (1,).
    """
    left = 1.0 - step / (_HOT * steps)
    return most_worse(heat * left * left, random) if left > 0.0 else 0.0


@kernel
def _beyond(values, most):
    """Return how far goals are above their limits."""
    beyond = 0.0
    for k in range(len(values)):
        beyond += max(0.0, values[k] - most[k])
    return beyond


@allocating_kernel
def anneal_all(
    instance,
    state,
    change,
    vectors,
    weights,
    ideal,
    worst,
    most,
    largest_too,
    pairs,
    steps,
    random,
    heat,
):
    """Improve vectors (n, T, C) in place, each by `steps` random changes under its weights (n, 4).

    Simulated annealing. Without `heat` a change that makes nothing worse stays, and no other. None
    stays that takes goals further beyond `most` (4,). Advances `random`, (1,).
    """
    requests = vectors.shape[1]
    values = np.zeros(4)
    for k in range(len(vectors)):
        timed = weights[k, 0] > 0.0 or most[0] < MAX_MS
        begin(instance, state, change, vectors[k], timed)
        write_values(state.sums, requests, worst, values)
        now, over = _weighted(values, weights[k], ideal, largest_too), _beyond(values, most)
        for step in range(steps):
            if not _draw(random, state, instance.replicas, pairs, change):
                continue
            if not try_change(instance, state, change, timed):
                continue
            write_values(change.sums, requests, worst, values)
            value = _weighted(values, weights[k], ideal, largest_too)
            beyond = _beyond(values, most)
            better = beyond < over or (beyond == over and value <= now)
            if not better and beyond == over:
                better = value <= now + _allowed(random, heat, step, steps)
            if better:
                now, over = value, beyond
                make_change(instance, state, change, timed)
        write_decisions(state, vectors[k])


@allocating_kernel
def vary_all(replicas, children, fathers, random):
    """Change plans (n, T, C) in place.

    A child takes the decisions of a random stretch of requests from its father. Then `_draw_one`
    makes another decision for one request, on average. Advances `random`, (1,).
    """
    requests = children.shape[1]
    split = np.zeros(children.shape[2], dtype=np.int64)
    for k in range(len(children)):
        one, other = below(random, requests + 1), below(random, requests + 1)
        begin, end = min(one, other), max(one, other)
        copy_rows(fathers[k, begin:end], children[k, begin:end])
        for t in range(requests):
            if below(random, requests) == 0:
                _draw_one(random, children[k, t], replicas[t], split)
                copy_row(split, children[k, t])


# -- the search ------------------------------------------------------------------------------------

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
        anneal_all(*scratch, vectors, *wanted, steps, random, heat)
        return vectors.reshape(len(X), -1)

    def vary(
        self, rng: np.random.Generator, mothers: np.ndarray, fathers: np.ndarray
    ) -> np.ndarray:
        """Return children: a stretch of requests from the father, one decision drawn anew."""
        mothers, fathers = self.checked_pairs(mothers, fathers)
        children = mothers.reshape(-1, *self._shape).copy()
        random = rng.integers(0, 2**64, size=1, dtype=np.uint64)
        replicas = self.problem.arrays.replicas
        vary_all(replicas, children, fathers.reshape(children.shape), random)
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
        if count_new(F, known) < FEW_NEW * len(F):
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
        choose_starts(F, weights[None], ideal, False, chosen)
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
    choose_starts(F, weights, ideal, True, chosen)
    return search.vectors(chosen), weights


def _children(search: VectorSearch, size: int) -> np.ndarray:
    """Return `size` children of plans of the archive, whose pairs are drawn at random."""
    pairs = search.rng.integers(len(search.nearest()), size=(2, size))
    mothers, fathers = (search.vectors(rows) for rows in pairs)
    return search.encoder.vary(search.rng, mothers, fathers)
