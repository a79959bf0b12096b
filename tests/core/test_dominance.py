"""Sets of vectors."""

from __future__ import annotations

import numpy as np
import pytest
from effort import tries
from hypothesis import given, settings
from hypothesis import strategies as st

from placeopt.core.fronts import dominance
from placeopt.core.fronts.dominance import (
    all_reached,
    by_rays,
    by_worth,
    contributions,
    farthest,
    hypervolume,
    join_bounds,
    minimal,
    nondominated,
    subset_by_contribution,
)


@pytest.mark.parametrize("columns", [1, 2, 3, 4])
@settings(max_examples=tries(20, 200))
@given(data=st.data())
def test_joined_bounds_are_the_minimal_maxima(columns: int, data: st.DataObject) -> None:
    """Of all pairs; small numbers, so that many are equal; rows may dominate each other."""
    row = st.tuples(*[st.integers(0, 7)] * columns)
    one, other = (
        np.array(data.draw(st.lists(row, min_size=1, max_size=12)), dtype=float) for _ in range(2)
    )
    pairs = np.maximum(one[:, None], other[None]).reshape(-1, columns)
    expected = [p for p in pairs if not ((pairs <= p).all(axis=1) & (pairs < p).any(axis=1)).any()]
    assert np.array_equal(join_bounds(one, other), np.unique(expected, axis=0))


@pytest.mark.parametrize("seed", range(12))
def test_joined_bounds_of_three_goals_miss_nothing(seed: int) -> None:
    """Sets of many equal values, ten a seed: pairs are left out only where they cannot matter."""
    rng = np.random.default_rng(seed)
    for _ in range(10):
        one, other = rng.integers(0, 12, (2, 14, 3)).astype(float)
        pairs = np.maximum(one[:, None], other[None]).reshape(-1, 3)
        assert np.array_equal(join_bounds(one, other), np.unique(minimal(pairs), axis=0))


def test_thousands_of_bounds_are_joined_without_all_pairs() -> None:
    """Pairs of these would take gigabytes."""
    rng = np.random.default_rng(1)
    one, other = (minimal(1 / rng.dirichlet(np.ones(3), 20_000)) for _ in range(2))
    joined = join_bounds(one, other)
    assert len(one) > 10_000 and len(joined) > 10_000
    some = joined[rng.integers(len(joined), size=100), None]
    for bounds in (one, other):
        assert (bounds <= some).all(axis=2).any(axis=1).all()


def test_a_set_without_rows_says_nothing() -> None:
    one, none = np.ones((2, 3)), np.empty((0, 3))
    assert join_bounds(one, none) is one and join_bounds(none, one) is one


def _sphere(rows: int, columns: int) -> np.ndarray:
    F = np.abs(np.random.default_rng(2).normal(size=(rows, columns)))
    return 2 - F / np.linalg.norm(F, axis=1, keepdims=True)


def _reference(F: np.ndarray) -> np.ndarray:
    return F.max(axis=0) + 0.1 * np.ptp(F, axis=0)


@pytest.mark.parametrize("columns", [4, 5])
def test_rows_by_rays_are_about_those_that_add_most_hypervolume(columns: int) -> None:
    """They have as much as rows that are chosen by the exact hypervolume, one after another."""
    F = _sphere(120, columns)
    reference = _reference(F)
    exact = np.unique(F.argmin(axis=0)).tolist()
    while len(exact) < 25:
        gains = [hypervolume(F[[*exact, k]], reference) for k in range(len(F))]
        exact.append(int(np.argmax(gains)))
    order = by_rays(F, 25)
    assert sorted(order.tolist()) == list(range(120))
    assert set(F.argmin(axis=0)) <= set(order[:25].tolist())
    ours = hypervolume(F[order[:25]], reference)
    assert ours > 0.99 * hypervolume(F[exact], reference)
    assert ours > 1.02 * hypervolume(F[farthest(F, 25)], reference)


def test_each_row_by_rays_adds_most_to_those_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel looks at few rows in each step; here all are looked at."""
    seen: list[np.ndarray] = []
    from placeopt.core.kernels import worth

    choose = worth.choose
    monkeypatch.setattr(worth, "choose", lambda *given: (seen.append(given[0]), choose(*given))[1])
    F = _sphere(60, 4)
    order = by_rays(F, 20)
    levels = seen[0].astype(float)
    first = len(np.unique(F.argmin(axis=0)))
    for place in range(first, 20):
        covered = levels[order[:place]].max(axis=0)
        gains = np.maximum(levels - covered, 0.0).sum(axis=1)
        assert gains[order[place]] == pytest.approx(gains.max(), rel=1e-9)


def test_rows_by_rays_of_odd_shapes(monkeypatch: pytest.MonkeyPatch) -> None:
    """One row, equal rows, columns without a range, more rows asked for than there are."""
    assert by_rays(np.ones((1, 4)), 5).tolist() == [0]
    assert sorted(by_rays(np.ones((3, 4)), 2).tolist()) == [0, 1, 2]
    assert len(by_rays(_sphere(30, 4), 2)) == 30
    monkeypatch.setattr(dominance, "ALL_RAYS", 10)
    assert sorted(by_rays(_sphere(30, 4), 40).tolist()) == list(range(30))


@pytest.mark.parametrize("columns", [2, 3, 4])
def test_thinning_keeps_extremes_and_more_volume_than_distance_does(columns: int) -> None:
    """Of 400 points on a sphere 30 are kept."""
    F = _sphere(400, columns)
    kept = subset_by_contribution(F, 30)
    assert len(kept) == 30 and set(F.argmin(axis=0)) <= set(kept)
    reference = _reference(F)
    assert hypervolume(F[kept], reference) > hypervolume(F[farthest(F, 30)], reference)
    np.testing.assert_array_equal(subset_by_contribution(F, 400), np.arange(400))


def test_infinite_values_are_compared_and_do_not_end_the_process() -> None:
    low = -np.inf
    rows = [[low, low, 1.0], [low, 2.0, low], [3.0, low, low], [4.0, low, low], [np.inf] * 3]
    assert nondominated(np.array(rows)).tolist() == [True, True, True, False, False]


def test_the_farthest_rows_do_not_depend_on_scale_or_place() -> None:
    """After the least of each column the farthest of what is left, in shares of the range."""
    rows = np.array([[0, 0], [10, 1], [1, 0.5], [4, 0], [0.5, 0.1]])
    for scale, place in (([1, 1], [0, 0]), ([1, 1], [-20, 100]), ([300, 0.01], [5, -7])):
        assert farthest(rows * scale + place, 3) == [0, 1, 2]
    assert farthest(rows, 9) == [0, 1, 2, 3, 4] and farthest(rows, 1) == [0]


def test_what_each_row_adds() -> None:
    """The reference point lies a tenth of the range beyond the worst values."""
    rows = np.array([[10.0, 30.0], [11.0, 25.0], [14.0, 20.0]])
    assert contributions(rows) == pytest.approx([1.0, 15.0, 2.0])


def test_the_least_of_each_column_stay_where_there_is_room_for_them() -> None:
    rows = np.array([[0, 10], [0.1, 5], [2, 4], [5, 3.9], [5.1, 3.8]])
    assert set(by_worth(rows, 2)[:2]) == {0, 4}
    assert len(set(by_worth(rows, 1))) == 5 and by_worth(rows, 1)[0] in (1, 2)


@pytest.mark.parametrize("columns", [2, 3])
def test_a_subset_is_of_those_of_most_worth(columns: int) -> None:
    rows = _sphere(60, columns)
    expected = np.sort(by_worth(rows, 20)[:20])
    assert np.array_equal(subset_by_contribution(rows, 20), expected)


def test_bounds_are_reached_where_each_is() -> None:
    ones = np.ones((1, 2))
    assert all_reached(ones, ones) and all_reached(ones, 0.5 * ones)
    assert not all_reached(ones, np.array([[1.0, 2.0]]))
    assert not all_reached(np.empty((0, 2)), ones), "nothing is proven without bounds"
    assert not all_reached(np.array([[1.0, 1.0], [0.0, 3.0]]), ones)


def test_hypervolume_by_hand() -> None:
    assert hypervolume(np.array([[1.0, 1.0]]), [3.0, 3.0]) == 4.0
    assert hypervolume(np.array([[4.0], [2.0]]), [5.0]) == 3.0
    assert hypervolume(np.array([[7.0]]), [5.0]) == 0.0


def test_the_farthest_row_is_so_in_each_direction() -> None:
    """Not only from the least values."""
    assert farthest(np.array([[0, 0], [10, 1], [9, 0.9], [5, 0.5]]), 3) == [0, 1, 3]


def test_indicators_by_hand() -> None:
    found, best = np.array([[3.0, 1.0]]), np.array([[1.0, 2.0], [3.0, 1.0]])
    assert (dominance.igd_plus(found, best), dominance.epsilon(found, best)) == (1.0, 2.0)
    one, known = np.array([[4.0], [3.0]]), np.array([[2.0], [1.0]])
    assert dominance.igd_plus(one, known) == dominance.epsilon(one, known) == 2.0
    assert dominance.igd_plus(known, one) == dominance.epsilon(known, one) == 0.0
    assert dominance.worst([(1, 5), (), (3, 2)]) == (3, 5)


def test_a_column_without_range_has_room_of_its_own() -> None:
    """So that a row adds something where all others are as good in it."""
    assert contributions(np.array([[1.0, 2.0], [1.0, 3.0]])) == pytest.approx([0.11, 0.0])


def test_scaled_by_hand() -> None:
    """The best known span 0 to 1; a goal that never varies is only moved."""
    best = np.array([[1.0, 4.0, 7.0], [3.0, 2.0, 7.0]])
    values, known = dominance.scaled(np.array([[5.0, 0.0, 9.0]]), best)
    assert values.tolist() == [[2.0, -1.0, 2.0]]
    assert known.tolist() == [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]


def test_no_rows_and_one() -> None:
    assert nondominated(np.empty((0, 2))).shape == (0,)
    assert nondominated(np.ones((1, 2))).tolist() == [True]


def test_minimal_and_reached_by_hand() -> None:
    """Rows and lists alike; each bound needs one row that is as good."""
    rows = [(1.0, 2.0), (2.0, 1.0), (2.0, 2.0)]
    assert minimal(rows).tolist() == minimal(np.array(rows)).tolist() == [[1, 2], [2, 1]]
    assert minimal([]).shape == (0, 0) and minimal(np.empty((0, 2))).shape == (0, 2)
    found = np.array(rows)
    assert all_reached(found[:2], found) and all_reached(np.array([[2.0, 2.0]]), found[:2])
    assert not all_reached(np.array([[1.0, 2.0], [1.0, 1.0]]), found)
