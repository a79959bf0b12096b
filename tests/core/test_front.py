"""Fronts: what is kept, merged, measured, chosen, written."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from placeopt.core.errors import DocumentError, UsageError
from placeopt.core.files.documents import write_json
from placeopt.core.fronts.dominance import minimal, nondominated
from placeopt.core.fronts.front import Front, merge, shares
from placeopt.core.fronts.values import (
    InstanceName,
    Objective,
    Point,
    Rejected,
    Run,
    Violation,
    severity,
)

HERE = InstanceName("temporal", "tiny", "0" * 64)
SIDE = 6


def goals(count: int) -> tuple[Objective, ...]:
    return tuple(
        Objective(name, unit)
        for name, unit in (("latency_ms", "ms"), ("cost_usd", "USD"), ("moves", "pods"))[:count]
    )


def front(
    *vectors: Sequence[float],
    method: str = "nsga3",
    bounds: Sequence[Sequence[float]] = (),
    count: int | None = None,
    **more: Any,
) -> Front:
    width = count or len((vectors or bounds)[0])
    points = tuple(
        Point(tuple(map(float, v)), {"k": k}, method=method, seed=1) for k, v in enumerate(vectors)
    )
    return Front(
        HERE,
        goals(width),
        points,
        tuple(tuple(map(float, b)) for b in bounds),
        (Run(method, 1, 1.0),),
        **more,
    )


def grids(count: int, least: int = 0) -> st.SearchStrategy[list[tuple[int, ...]]]:
    return st.lists(st.tuples(*[st.integers(0, SIDE - 1)] * count), min_size=least, max_size=9)


def dominated_cells(vectors: Sequence[Sequence[float]], count: int) -> set[tuple[int, ...]]:
    """Return the unit cells of the box up to SIDE that some vector dominates."""
    cells = itertools.product(range(SIDE), repeat=count)
    return {
        cell
        for cell in cells
        if any(all(v <= c for v, c in zip(vector, cell, strict=True)) for vector in vectors)
    }


def beats(one: Sequence[float], other: Sequence[float]) -> bool:
    return all(a <= b for a, b in zip(one, other, strict=True)) and tuple(one) != tuple(other)


# -- what is kept ----------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 2, 3])
@given(data=st.data())
def test_only_what_nothing_beats_is_kept(count: int, data: st.DataObject) -> None:
    """Sorted, without repeats, as by comparing every pair."""
    vectors = data.draw(grids(count))
    kept = [p.values for p in front(*vectors, count=count).points]
    assert kept == sorted({v for v in vectors if not any(beats(w, v) for w in vectors)})
    assert minimal(vectors).tolist() == [list(v) for v in kept]
    assert nondominated(np.array(vectors, dtype=float).reshape(-1, count)).sum() == len(kept)


def test_of_equal_values_the_best_proven_is_kept() -> None:
    """Then by gap, method and seed, whatever the order."""
    points = [
        Point((1.0, 2.0), {}, "heuristic", None, "a", 1),
        Point((1.0, 2.0), {}, "bounded", 0.2, "b", 1),
        Point((1.0, 2.0), {}, "bounded", 0.1, "c", 1),
        Point((1.0, 2.0), {}, "optimal", None, "d", 2),
        Point((1.0, 2.0), {}, "optimal", None, "d", 1),
    ]
    for order in itertools.permutations(points):
        assert Front(HERE, goals(2), order).points == (points[4],)
        assert Front(HERE, goals(2), tuple(p for p in order if p.status != "optimal")).points == (
            points[2],
        )


def test_a_front_with_points_forgets_what_was_rejected() -> None:
    """The least-violating plan and the reasons are for empty fronts."""
    rejected = Rejected({}, (1.0, 1.0), (Violation("cpu-capacity", 0.5, "n1 is at 150 %"),))
    assert front((1, 2), rejected=rejected, reasons=("why",)).rejected is None
    empty = front(count=2, rejected=rejected, reasons=("why",))
    assert (empty.rejected, empty.reasons, severity(rejected.violations)) == (
        rejected,
        ("why",),
        0.5,
    )


# -- merging ---------------------------------------------------------------------------------------


@given(grids(3), grids(3), grids(3))
def test_merge_is_idempotent_commutative_associative(a: list, b: list, c: list) -> None:
    """And keeps what nothing beats."""
    one, two, three = (
        front(*a, method="a", count=3),
        front(*b, method="b", count=3),
        front(*c, method="c", count=3),
    )
    whole = merge([one, two, three])
    assert (
        whole
        == merge([three, one, two])
        == merge([merge([one, two]), three])
        == merge([whole, whole, one])
    )
    assert [p.values for p in whole.points] == [
        tuple(v) for v in minimal([*a, *b, *c]).tolist()
    ] or not (a or b or c)


def test_merge_keeps_provenance() -> None:
    """Every point keeps its method, every run its facts, once."""
    one, two = front((1, 5), (3, 3), method="nsga2"), front((2, 2), (5, 1), method="mspso")
    whole = merge([one, two, one])
    assert [(p.values, p.method) for p in whole.points] == [
        ((1, 5), "nsga2"),
        ((2, 2), "mspso"),
        ((5, 1), "mspso"),
    ]
    assert [run.method for run in whole.runs] == ["mspso", "nsga2"]


def test_a_merged_point_names_all_methods_that_found_it(tmp_path: Path) -> None:
    """Whichever plan is kept, in files too, and after a further merge; others keep one name."""
    one, two = front((1, 5), (3, 3), method="nsga2"), front((3.0, 3.0), (5, 1), method="moead")
    proven = front((3, 3), method="bin-plans")
    proven = replace(proven, points=(replace(proven.points[0], status="optimal"),))
    whole = merge([merge([one, two]), proven])
    assert [(p.method, p.found_by) for p in whole.points] == [
        ("nsga2", ("nsga2",)),
        ("bin-plans", ("bin-plans", "moead", "nsga2")),
        ("moead", ("moead",)),
    ]
    whole.write(tmp_path / "whole.json")
    assert Front.read(tmp_path / "whole.json") == whole == merge([whole, one])
    assert '"also_by"' not in one.to_json()


def test_merge_of_empty_fronts_keeps_the_least_violating() -> None:
    """And all reasons."""
    mild, bad = (
        Rejected({"k": k}, (1.0, 1.0), (Violation("cpu-capacity", k, ""),)) for k in (0.5, 2.0)
    )
    whole = merge(
        [
            front(count=2, rejected=bad, reasons=("x",)),
            front(count=2, rejected=mild, reasons=("y", "x")),
        ]
    )
    assert (whole.rejected, whole.reasons) == (mild, ("x", "y"))


def test_merge_refuses_what_does_not_belong_together() -> None:
    """Other instances, other objectives, nothing."""
    other = replace(front((1, 2)), instance=InstanceName("temporal", "other", "1" * 64))
    with pytest.raises(UsageError, match="different instances \\('tiny' and 'other'\\)"):
        merge([front((1, 2)), other])
    with pytest.raises(UsageError, match="different objectives"):
        merge([front((1, 2)), front((1, 2, 3))])
    with pytest.raises(UsageError, match="nothing to merge"):
        merge([])


@given(st.data())
def test_joined_bounds_are_valid_and_tighter(data: st.DataObject) -> None:
    """If two sets each bound all feasible vectors, their join does; and it is bounded by either."""
    feasible = data.draw(grids(3, least=1))

    def lower_set() -> list[tuple[int, ...]]:
        drops = data.draw(
            st.lists(
                st.tuples(*[st.integers(0, 3)] * 3), min_size=len(feasible), max_size=len(feasible)
            )
        )
        return [
            tuple(v - d for v, d in zip(vector, drop, strict=True))
            for vector, drop in zip(feasible, drops, strict=True)
        ]

    one, two = lower_set(), lower_set()
    joined = merge([front(count=3, bounds=one), front(count=3, bounds=two)]).bounds

    def covered(vectors: Sequence[Sequence[float]], by: Sequence[Sequence[float]]) -> bool:
        return all(any(all(x <= y for x, y in zip(b, v, strict=True)) for b in by) for v in vectors)

    assert covered(feasible, joined), "every feasible vector is weakly dominated by a bound"
    assert covered(joined, one) and covered(joined, two), "the join proves what each proves"
    assert (
        merge([front(count=3, bounds=one), front(count=3)]).bounds
        == front(count=3, bounds=one).bounds
    ), "no bounds prove nothing"


# -- measures --------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 2, 3])
@given(data=st.data())
def test_hypervolume_counts_the_cells(count: int, data: st.DataObject) -> None:
    """On a small grid of whole numbers it is the number of unit cells that the points dominate."""
    vectors = data.draw(grids(count))
    box = [float(SIDE)] * count
    cells = len(dominated_cells(vectors, count))
    assert front(*vectors, count=count).hypervolume(box) == pytest.approx(cells)


def test_points_beyond_the_reference_count_nothing() -> None:
    """Not even negatively."""
    assert front((1, 9), (3, 3)).hypervolume((5, 5)) == 4
    assert front((9,)).hypervolume((5,)) == 0
    with pytest.raises(UsageError, match="has 3 values; this front has 2"):
        front((1, 9)).hypervolume((5, 5, 5))


@given(grids(2, least=1), grids(2, least=1))
def test_gap_is_the_share_of_what_can_exist(a: list, b: list) -> None:
    """Against a lower-bound set, by counting cells."""
    bounds = [tuple(x - 1 for x in v) for v in a] + b
    shifted = [tuple(x + 1 for x in v) for v in bounds]  # the grid begins at -1
    with_bounds, points = (
        front(*a, bounds=bounds),
        len(dominated_cells([tuple(x + 1 for x in v) for v in a], 2)),
    )
    most = len(dominated_cells(shifted, 2))
    assert with_bounds.gap((SIDE - 1, SIDE - 1)) == pytest.approx(
        0 if most == 0 else 1 - points / most
    )
    assert front(*a).gap() is None


def test_sparsity_by_hand() -> None:
    """Equation (19): the squared differences of every sorted objective, added, over n - 1."""
    assert front((1, 5), (2, 3), (4, 0)).sparsity() == pytest.approx(((1 + 4) + (9 + 4)) / 2)
    assert front((1, 5)).sparsity() == 0.0 == front(count=2).sparsity()


def test_reference_is_a_tenth_beyond_the_nadir() -> None:
    """And 1 where the nadir is 0."""
    assert front((0, 10, 2), (0, 5, 4)).reference().tolist() == pytest.approx([1, 11, 4.4])


def test_an_empty_front_says_why() -> None:
    """When asked for what it does not have."""
    with pytest.raises(UsageError, match="no points; request 'r1' fits no offer"):
        front(count=2, reasons=("request 'r1' fits no offer",)).pick()


# -- choosing --------------------------------------------------------------------------------------

CURVE = ((0, 10), (1, 5), (2, 2), (6, 1), (10, 0))


def test_pick_the_knee() -> None:
    """The point furthest below the line through the extremes."""
    assert front(*CURVE).pick().values == (2, 2)


def test_pick_within_budgets() -> None:
    """The knee of what is left; impossible ones say what is possible."""
    assert front(*CURVE).pick(budget={"latency_ms": 1.5}).values == (1, 5)
    assert front(*CURVE).pick(budget={"latency_ms": 6, "cost_usd": 1}).values == (6, 1)
    with pytest.raises(
        UsageError, match="no point has cost_usd <= -1; the least on this front is 0"
    ):
        front(*CURVE).pick(budget={"cost_usd": -1})
    with pytest.raises(UsageError, match="all of these budgets at once"):
        front(*CURVE).pick(budget={"latency_ms": 1, "cost_usd": 1})
    with pytest.raises(UsageError, match="did you mean 'cost_usd'"):
        front(*CURVE).pick(budget={"cost": 1})


def test_pick_lexicographically() -> None:
    """Least in the first, ties by the second."""
    assert front(*CURVE).pick(lexicographic=["cost_usd"]).values == (10, 0)
    tied = front((0, 3, 1), (0, 2, 2), (1, 1, 0))
    assert tied.pick(lexicographic=["latency_ms", "cost_usd"]).values == (0, 2, 2)
    assert tied.pick(lexicographic=["latency_ms", "moves"]).values == (0, 3, 1)


@given(grids(3, least=1), st.integers(1, 9))
def test_subset_keeps_the_extremes_and_spreads(vectors: list, size: int) -> None:
    """At most `size` points of the front; the extremes first."""
    whole = front(*vectors)
    part = whole.subset(size)
    assert len(part) == min(size, len(whole))
    assert all(p in whole.points for p in part.points)
    if size >= 3:
        assert part.ideal.tolist() == whole.ideal.tolist()
    assert part.runs == whole.runs and part.bounds == whole.bounds


def test_subset_keeps_the_hypervolume() -> None:
    """Between two extremes the one in the middle; of a bent front the bend, not what is far."""
    line = front((0, 8), (1, 7), (4, 4), (5, 3), (8, 0))
    assert [p.values for p in line.subset(3).points] == [(0, 8), (4, 4), (8, 0)]
    bent = front((0, 100), (1, 10), (50, 9), (100, 0))
    assert (1, 10) in [p.values for p in bent.subset(3).points]


def test_to_pandas() -> None:
    """One row a point."""
    pytest.importorskip("pandas")
    frame = front(*CURVE).to_pandas()
    assert list(frame.columns) == ["latency_ms", "cost_usd", "status", "gap", "method", "seed"]
    assert frame["cost_usd"].tolist() == [10, 5, 2, 1, 0]


# -- files -----------------------------------------------------------------------------------------


def full() -> Front:
    run = Run("nsga3", 1, 1.5, 50_000, 3, False, {"solver": "scip", "n": 2}, {"placeopt": "0.1.0"})
    point = Point(
        (1.5, 0.1 + 0.2), {"starts": {"r1": 3}, "instances": []}, "bounded", 0.25, "nsga3", 7
    )
    return Front(
        HERE,
        (Objective("latency_ms", "ms", 0.5), Objective("cost_usd", "USD")),
        (point,),
        ((1.0, 0.1), (0.5, 0.2)),
        (run,),
    )


def test_read_gives_back_what_was_written(tmp_path: Path) -> None:
    """Every field, every digit; with points and without."""
    rejected = Rejected(
        {"starts": {}}, (1.0, 2.0), (Violation("not-scheduled", 1.0, "request 'r1' has no start"),)
    )
    for k, original in enumerate((full(), front(count=2, rejected=rejected, reasons=("because",)))):
        original.write(tmp_path / f"{k}.json")
        assert Front.read(tmp_path / f"{k}.json") == original
        assert Front.read(tmp_path / f"{k}.json").to_json() == original.to_json()
    text = (tmp_path / "0.json").read_text()
    assert text.startswith('{"format": "placeopt/front@1"') and len(text.splitlines()) == 2


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"format": "placeopt/front@9"}, "format: 'placeopt/front@9' is not legal"),
        (
            {"points": [{"values": [1.0], "plan": {}}]},
            "points[0].values: 1 values; give one per objective: 2",
        ),
        ({"bounds": [[1.0, 2.0, 3.0]]}, "bounds[0]: 3 values; give one per objective: 2"),
        ({"points": [{"values": [1.0, "2"], "plan": {}}]}, "points[0].values[1]: '2' is not legal"),
        (
            {"points": [{"values": [1.0, 2.0], "plan": {}, "state": "x"}]},
            "points[0].state: unknown field 'state'; did you mean 'status'?",
        ),
        (
            {"points": [{"values": [1.0, 2.0], "plan": {}, "status": "best"}]},
            "points[0].status: 'best' is not legal",
        ),
        ({"objectives": []}, "objectives: [] is not legal"),
        ({"instance": None}, "instance: None is not legal"),
        (
            {"rejected": {"plan": {}, "values": [1.0], "violations": []}},
            "rejected.values: 1 values; give one per objective: 2",
        ),
        (
            {"objectives": [{"name": "a", "unit": ""}, {"name": "a", "unit": ""}]},
            "objectives: 'a' stands twice",
        ),
    ],
)
def test_a_malformed_front_names_path_and_remedy(
    tmp_path: Path, change: dict[str, Any], said: str
) -> None:
    """As any document."""
    write_json(tmp_path / "f.json", json.loads(full().to_json()) | change)
    with pytest.raises(DocumentError) as caught:
        Front.read(tmp_path / "f.json")
    assert str(caught.value).startswith(f"{tmp_path / 'f.json'}: {said}")


def test_a_share_needs_a_box() -> None:
    """A reference point that is no worse than the best value spans none."""
    for corner in ((0.0, 3.0), (1.0, 3.0), (5.0, 2.0)):
        with pytest.raises(UsageError, match="give a worse value than the best on these fronts"):
            front((1, 2)).hypervolume(corner, plain=True)


@given(grids(2, least=1), grids(2, least=1), st.sampled_from([(1, 1), (1, -1), (-1, -1)]))
def test_a_share_is_the_same_for_all_senses_signs_and_units(
    a: list, b: list, senses: tuple
) -> None:
    """Of the box from the best values of all fronts to the reference point, counted in cells."""
    ideal = np.min([*a, *b], axis=0)
    cells = [len(dominated_cells([tuple(np.array(v) - ideal) for v in one], 2)) for one in (a, b)]
    goals = tuple(
        Objective(f"o{k}", "", sense="max" if s < 0 else "min") for k, s in enumerate(senses)
    )
    for shift, scale in ((0, 1.0), (-3, 1.0), (-100, 1e-9), (7, 1e9)):
        moved = [
            tuple(Point(tuple(((np.array(v) + shift) * scale * senses).tolist()), {}) for v in one)
            for one in (a, b)
        ]
        corner = ((ideal + SIDE + shift) * scale * senses).tolist()
        fronts = [Front(InstanceName("any", "any", ""), goals, points) for points in moved]
        found = shares(fronts, corner)
        assert found == pytest.approx([n / SIDE**2 for n in cells])
        assert all(0 < share <= 1 for share in found)
        assert all(0 < one.hypervolume(plain=True) <= 1 for one in fronts)
