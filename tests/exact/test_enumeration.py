"""The search itself, over oracles that answer from a list of vectors: complete, few questions,
bounds valid at any moment.
"""

from __future__ import annotations

import itertools
import math
import threading

import numpy as np
import pytest
from effort import tries
from hypothesis import given
from hypothesis import strategies as st

from placeopt.core.budget import Budget
from placeopt.core.errors import SolverError
from placeopt.core.fronts.dominance import hypervolume, minimal
from placeopt.core.fronts.values import Objective
from placeopt.exact.enumeration import enumerate_front
from placeopt.exact.memory import (
    Answer,
    Box,
    Enumeration,
    Found,
    Precision,
    SearchHistory,
    Unknown,
)
from placeopt.exact.whole_rows import exact_unit, in_values

WHOLE = [Objective(name, "", 1.0) for name in "abcd"]
REAL = [Objective(name, "", None) for name in "abcd"]


class Listed:
    """Answers from a list of vectors, the first of the least ones."""

    def __init__(self, vectors, stop=None, spoil=None):
        self.vectors = np.array(vectors, dtype=float)
        self.floors = [0.0] * self.vectors.shape[1]
        self.asked, self.stop, self.spoil = 0, stop, spoil

    def inside(self, limits):
        self.asked += 1
        if self.stop is not None and self.asked >= self.stop[0]:
            self.stop[1].cancel()
        return self.vectors[(self.vectors <= np.array(limits) + 1e-9).all(axis=1)]

    def minimise_sum(self, weights, limits, *, seconds, start):
        inside = self.inside(limits)
        if not len(inside):
            return Answer("infeasible", math.inf)
        sums = inside @ np.array(weights)
        return Answer("optimal", sums.min(), tuple(inside[sums.argmin()].tolist()))

    def minimise(self, objective, limits, *, seconds, start, careful):
        inside = self.inside(limits)
        if not len(inside):
            answer = Answer("infeasible", math.inf)
        else:
            best = tuple(inside[inside[:, objective].argmin()].tolist())
            answer = Answer("optimal", best[objective], best, best, self.asked)
        return (
            answer
            if self.spoil is None
            else self.spoil(self.asked, answer, inside, objective, careful)
        )


def search(oracle, objectives, **options) -> Enumeration:
    return enumerate_front(
        oracle, objectives[: oracle.vectors.shape[1]], options.pop("budget", Budget()), **options
    )


def precision(whole) -> Precision:
    return Precision(np.array(whole, dtype=bool))


def values(found: Enumeration) -> np.ndarray:
    return minimal([p.values for p in found.points])


def proves(found: Enumeration, vectors) -> bool:
    """Whether every vector is weakly dominated by a bound."""
    slack = 1e-5 * (1 + np.abs(np.array(vectors)))
    return all(
        (found.bounds <= v + s).all(axis=1).any()
        for v, s in zip(np.array(vectors, dtype=float), slack, strict=True)
    )


def clouds(most=12):
    return st.integers(1, 4).flatmap(
        lambda m: st.lists(st.tuples(*[st.integers(0, most)] * m), min_size=1, max_size=40)
    )


@given(clouds())
def test_finds_all_points_and_proves_them(vectors):
    oracle = Listed(vectors)
    found = search(oracle, WHOLE)
    assert found.complete
    assert values(found).tolist() == minimal(vectors).tolist()
    assert found.bounds.tolist() == minimal(vectors).tolist()
    assert all(found.gap(v, precision([True] * len(v))) is None for v in minimal(vectors).tolist())
    assert values(found).min(axis=0).tolist() == np.array(vectors).min(axis=0).tolist()
    assert found.solves == oracle.asked


@given(clouds(), st.integers(1, 15))
def test_bounds_are_valid_whenever_the_search_ends(vectors, count):
    budget = Budget()
    found = search(Listed(vectors, stop=(count, budget)), WHOLE, budget=budget)
    assert found.solves <= count
    assert proves(found, vectors)
    truth = minimal(vectors).tolist()
    for point in found.points:
        gap = found.gap(point.values, precision([True] * len(point.values)))
        assert gap is not None or list(point.values) in truth
        assert gap is None or 0 <= gap <= 1


def test_memory_saves_questions():
    rng = np.random.default_rng(0)
    points = solves = 0
    for _ in range(tries(1, 5)):
        raw = rng.random((4000, 3)) ** 0.7
        vectors = np.floor(
            2000
            * raw
            / np.linalg.norm(raw, axis=1, keepdims=True)
            * (1 + 0.02 * rng.random((4000, 1)))
        )
        oracle = Listed(vectors[:250])
        found = search(oracle, WHOLE)
        assert values(found).tolist() == minimal(vectors[:250]).tolist()
        points, solves = points + len(values(found)), solves + found.solves
    assert solves <= 2.2 * points


def test_infeasible():
    oracle = Listed(np.empty((0, 3)))
    found = search(oracle, WHOLE)
    assert (found.complete, found.points, len(found.bounds), oracle.asked) == (True, [], 0, 1)


def test_failures_are_not_read_as_infeasible():
    def fail(asked, answer, inside, objective, careful):
        if asked % 3 == 0:
            raise SolverError("failed")
        return answer

    vectors = np.random.default_rng(1).integers(0, 30, (60, 3))
    found = search(Listed(vectors, spoil=fail), WHOLE)
    assert found.failures > 0
    assert not found.complete
    assert proves(found, vectors)
    assert all(list(p.values) in vectors.tolist() for p in found.points)


def test_a_false_answer_that_contradicts_a_known_plan_is_asked_again():
    def lie(asked, answer, inside, objective, careful):
        return answer if careful else Answer("infeasible", math.inf)

    vectors = np.random.default_rng(2).integers(0, 9, (30, 2))
    known = [Found(tuple(map(float, vectors[vectors.sum(axis=1).argmin()])))]
    found = search(Listed(vectors, spoil=lie), WHOLE, known=known)
    assert proves(found, vectors[[np.argmin(vectors[:, 0])]])

    def insist(asked, answer, inside, objective, careful):
        return Answer("infeasible", math.inf)

    found = search(Listed(vectors, spoil=insist), WHOLE, known=known)
    assert not found.complete
    assert proves(found, vectors)


@given(clouds(), st.integers(0, 3))
def test_a_relaxation_gives_bounds_and_no_false_proofs(vectors, seed):
    rng = np.random.default_rng(seed)

    def worsen(asked, answer, inside, objective, careful):
        """The solver's solutions stand for plans that are dearer than it thinks, or for none."""
        if answer.claimed is None:
            return answer
        worse = tuple(float(v + rng.integers(0, 3)) for v in answer.claimed)
        return Answer(
            "optimal", answer.bound, None if rng.random() < 0.3 else worse, answer.claimed
        )

    found = search(Listed(vectors, spoil=worsen), WHOLE)
    assert found.complete
    assert proves(found, vectors)
    for point in found.points:
        if found.gap(point.values, precision([True] * len(point.values))) is None:
            assert not any(
                (np.array(v) <= point.values).all() and tuple(v) != point.values for v in vectors
            )


def test_answers_that_took_too_long_are_asked_again_while_there_is_time():
    slow = {}

    def hurry(asked, answer, inside, objective, careful):
        key = (objective, len(inside))
        slow[key] = slow.get(key, 0) + 1
        if answer.values is None or slow[key] > 1:
            return answer
        import time

        time.sleep(0.06)
        worst = tuple(inside[inside[:, objective].argmax()].tolist())
        return Answer("feasible", answer.bound - 2, worst, worst)

    vectors = [(0, 9), (3, 5), (5, 3), (9, 0), (9, 9)]
    found = search(Listed(vectors, spoil=hurry), WHOLE, budget=Budget(seconds=0.8))
    assert proves(found, vectors)
    assert {(0.0, 9.0), (9.0, 0.0)} <= {p.values for p in found.points}


@given(st.integers(0, 10**6), st.integers(2, 3), st.integers(2, 9))
def test_grid_of_real_values(seed, size, grid):
    vectors = np.random.default_rng(seed).random((80, size))
    oracle = Listed(vectors)
    found = search(oracle, REAL, grid=grid)
    assert (found.status, found.complete) == ("grid", False)
    assert proves(found, vectors)
    assert oracle.asked <= size * size + grid ** (size - 1) + 1
    truth = minimal(vectors)
    assert all((np.abs(truth - v).max(axis=1) < 1e-12).any() for v in values(found))
    for point in found.points:
        gap = found.gap(point.values, precision([False] * size))
        assert gap is None or 0 <= gap <= 1


def test_one_real_objective_is_the_main_one_and_the_front_is_complete():
    rng = np.random.default_rng(4)
    vectors = np.column_stack((rng.integers(0, 12, 100), rng.random(100) * 50))
    found = search(Listed(vectors), [WHOLE[0], REAL[1]])
    assert (found.main, found.complete) == (1, True)
    assert values(found).tolist() == minimal(vectors).tolist()
    assert all(
        found.gap(p.values, precision([True, False])) in (None, 0.0)
        for p in found.points
        if list(p.values) in minimal(vectors).tolist()
    )


def test_grid_on_whole_values():
    vectors = [(k, 1000 - k, (k * 7919) % 1000) for k in range(1000)]
    oracle = Listed(vectors)
    found = search(oracle, WHOLE, grid=5, main=1)
    assert oracle.asked <= 9 + 26
    assert proves(found, vectors)


@given(st.integers(1, 10**7), st.integers(0, 10**9), st.integers(1, 10**6))
def test_units_give_the_float_of_the_referee(parts, count, factor):
    for step, units, wanted in (
        (1 / parts, count, count / parts),
        (float(factor), 3.0, 3.0 * factor),
    ):
        assert float(int(units) * exact_unit(step)) == wanted
        assert in_values(np.array([[units]]), np.array([step]))[0, 0] == wanted


# -- order, batches, statuses ----------------------------------------------------------------------


@given(clouds())
def test_spread_questions_and_threads_find_the_same_points(vectors):
    spread = [search(Listed(vectors), WHOLE, coarse=True, jobs=jobs) for jobs in (1, 3)]
    for found in spread:
        assert found.status == "complete"
        assert values(found).tolist() == minimal(vectors).tolist()
        assert found.bounds.tolist() == minimal(vectors).tolist()
    assert spread[0].solves == spread[1].solves
    assert [p.values for p in spread[0].points] == [p.values for p in spread[1].points]


def sphere(count):
    """Vectors of which none dominates another."""
    raw = np.random.default_rng(1).random((count, 3)) ** 0.7
    return np.floor(5000 * raw / np.linalg.norm(raw, axis=1, keepdims=True))


def test_spread_questions_give_more_hypervolume_when_the_search_is_stopped():
    vectors = sphere(3000)
    reference = vectors.max(axis=0) + 1
    volumes = []
    for coarse in (False, True):
        budget = Budget()
        found = search(Listed(vectors, stop=(60, budget)), WHOLE, budget=budget, coarse=coarse)
        assert found.status == "cancelled"
        volumes.append(hypervolume(values(found), reference))
    assert volumes[1] >= 1.2 * volumes[0]


def test_spread_questions_begin_only_where_a_search_takes_more_than_a_moment():
    # The first budget's clock begins long before its zero: no machine is too slow for a moment.
    budget, quick = Budget(seconds=1000), search(Listed(sphere(30)), WHOLE)
    budget.resume(0, -100.0)
    assert search(Listed(sphere(30)), WHOLE, budget=budget).solves == quick.solves
    slow = Budget(seconds=1000)
    slow.resume(0, 2.0)
    assert search(Listed(sphere(30)), WHOLE, budget=slow).solves > quick.solves


@pytest.mark.parametrize(("width", "asked"), [(5, False), (40, True)])
def test_sums_are_not_asked_for_where_few_limits_are_left(width, asked):
    sums = []

    class Noting(Listed):
        def minimise_sum(self, weights, limits, *, seconds, start):
            sums.append(weights)
            return super().minimise_sum(weights, limits, seconds=seconds, start=start)

    slow = Budget(seconds=1000)
    slow.resume(0, 2.0)
    vectors = [[k, 90 - 2 * k] for k in range(width)]
    found = search(Noting(vectors), WHOLE, budget=slow)
    assert found.status == "complete"
    assert values(found).tolist() == vectors
    assert bool(sums) == asked


def test_a_weighted_sum_that_contradicts_a_known_point_proves_nothing():
    vectors = sphere(60)

    class Wrong(Listed):
        def minimise_sum(self, weights, limits, *, seconds, start):
            if np.isinf(limits).all():
                return Answer("infeasible", math.inf)
            return super().minimise_sum(weights, limits, seconds=seconds, start=start)

    found = search(Wrong(vectors), WHOLE, coarse=True)
    assert found.status == "complete"
    assert values(found).tolist() == minimal(vectors).tolist()


def test_boxes_hold_much_of_what_is_unknown():
    memory = SearchHistory(precision([True, True]), [0.0, 0.0])
    box = Box(np.zeros(2), np.full(2, 99.0), memory.whole, 0)
    memory.add_point(Found((50.0, 0.0)))  # decides the right half
    unknown = Unknown(box, memory)
    limits = unknown.largest_box([])
    assert limits[0] < 50
    assert np.prod(limits + 1) >= 0.8 * 5000
    assert abs(unknown.share - 0.5) < 0.05
    below = unknown.largest_box([np.array([49.0, 59.0])])
    assert below[1] >= 60
    memory.exclude_below(0, np.array([math.inf, 89.0]), 50.0)
    assert unknown.largest_box([])[1] >= 90
    unknown.give_up(np.array([49.0, 99.0]))
    assert unknown.largest_box([]) is None


def test_statuses():
    vectors = np.random.default_rng(1).integers(0, 30, (60, 3))
    assert search(Listed(vectors), WHOLE, max_points=5).status == "solution-limit"
    assert search(Listed(vectors), WHOLE, gaps=[4.0, 4.0, None]).status == "grid"
    assert search(Listed(np.empty((0, 2))), WHOLE).status == "infeasible"

    def fail(asked, answer, inside, objective, careful):
        raise SolverError("failed")

    assert search(Listed(vectors, spoil=fail), WHOLE).status == "numerical"
    assert search(Listed(vectors), WHOLE, budget=Budget(seconds=1e-9)).status == "time-limit"


@given(clouds(40), st.integers(2, 9))
def test_gaps_leave_no_vector_far_from_a_point(vectors, gap):
    size = len(vectors[0])
    found = search(Listed(vectors), WHOLE, gaps=[float(gap)] * (size - 1) + [None], main=size - 1)
    reach = np.array([gap] * (size - 1) + [0])
    points = values(found)
    assert all((points <= np.array(v) + reach).all(axis=1).any() for v in vectors)
    assert proves(found, vectors)


def test_points_are_told_when_they_are_found():
    told = []
    vectors = np.random.default_rng(1).integers(0, 30, (60, 3))
    found = search(Listed(vectors), WHOLE, on_found=told.append)
    assert told == found.points


class Overlapping(Listed):
    """Answers number 40 to 80 only when the next question is asked too, by another worker."""

    def __init__(self, vectors):
        super().__init__(vectors)
        self.number, self.alone = itertools.count(), 0
        self.begun = [threading.Event() for _ in range(2000)]

    def minimise(self, *arguments, **options):
        number = next(self.number)
        self.begun[number].set()
        if 40 <= number <= 80 and not self.begun[number + 1].wait(5):
            self.alone += 1
        return super().minimise(*arguments, **options)


def test_no_worker_waits_for_another_while_there_is_something_to_ask():
    vectors = sphere(100)
    oracle = Overlapping(vectors)
    found = search(oracle, WHOLE, jobs=2)
    assert found.solves > 90
    assert not oracle.alone
    assert values(found).tolist() == minimal(vectors).tolist()
