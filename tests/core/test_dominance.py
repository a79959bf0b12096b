"""Sets of vectors."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from placeopt.core.dominance import join_bounds, minimal


@pytest.mark.parametrize("columns", [1, 2, 3, 4])
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
