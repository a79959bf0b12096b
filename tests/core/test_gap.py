"""What a front may miss: never more than its gap says, whatever is left out of it."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from effort import tries
from hard_instances import FIVE_POINTS, ONE_STOP, problem
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import placeopt
from placeopt.cli import app
from placeopt.core.budget import Budget
from placeopt.core.errors import DocumentError
from placeopt.core.fronts import words
from placeopt.core.fronts.certificate import Bounds, certified, graded
from placeopt.core.fronts.dominance import hypervolume, minimal
from placeopt.core.fronts.front import Front, merge
from placeopt.core.fronts.values import InstanceName, Objective, Point
from placeopt.core.fronts.words import gap_in_words, percent


def front(points: list[tuple[float, ...]], bounds: list[tuple[float, ...]] = ()) -> Front:
    goals = tuple(Objective(f"o{k}", "") for k in range(len(points[0])))
    return Front(
        InstanceName("any", "any", ""),
        goals,
        tuple(Point(tuple(map(float, p)), {}) for p in points),
        tuple(tuple(map(float, b)) for b in bounds),
    )


@st.composite
def found_and_true(draw: st.DrawFn) -> tuple[Front, np.ndarray]:
    """Return a front of some feasible vectors with a valid bound set, and the true front."""
    size = draw(st.integers(1, 3))
    vector = st.tuples(*[st.integers(0, 8)] * size)
    feasible = draw(st.lists(vector, min_size=1, max_size=12))
    truth = minimal(feasible)
    known = draw(st.lists(st.sampled_from(feasible), min_size=1, unique=True))
    slack = draw(st.sampled_from([0, 0, 3]))
    lowered = [[max(0, x - draw(st.integers(0, slack))) for x in row] for row in truth.tolist()]
    return front(known, [tuple(row) for row in lowered]), truth


def claims_no_more_than_the_truth(answer: Front, truth: np.ndarray) -> None:
    """Check the gap and the word `complete` against the true front."""
    gap = answer.gap()
    corner = answer.reference().tolist()
    missing = 1 - answer.hypervolume(corner) / hypervolume(truth, corner)
    assert gap >= missing - 1e-9
    reached = all((answer.values <= row).all(axis=1).any() for row in truth)
    assert reached or (gap > 0 and not answer.complete)
    assert ("complete" in gap_in_words(answer)) == answer.complete
    assert "complete" not in gap_in_words(answer) or reached


@settings(max_examples=tries(20, 200))
@given(found_and_true(), st.integers(1, 4))
def test_no_front_claims_more_than_the_truth(drawn: tuple[Front, np.ndarray], size: int) -> None:
    """Neither the whole, nor a part of it, nor a part of a part."""
    whole, truth = drawn
    part = whole.subset(size)
    for answer in (whole, part, part.subset(1)):
        claims_no_more_than_the_truth(answer, truth)
        assert answer.gap() >= whole.gap() - 1e-12
        assert (answer.reference() == whole.reference()).all()


@settings(max_examples=tries(20, 200))
@given(found_and_true(), st.integers(1, 4))
def test_files_and_merges_keep_what_a_part_leaves_out(drawn: tuple, size: int) -> None:
    """The box survives a file, merging a part with itself, and with the whole."""
    part = drawn[0].subset(size)
    document = part.to_document()
    assert document.get("box", []) == list(part.box)
    assert merge([part, part]) == part
    assert merge([part, drawn[0]]).gap() == pytest.approx(drawn[0].gap())


def test_the_box_of_a_file_is_read_and_has_one_value_per_objective(tmp_path: Path) -> None:
    part = front([(1, 9), (3, 3), (9, 1)], [(1, 1)]).subset(2)
    assert part.box == (9.0, 9.0)
    part.write(tmp_path / "part.json")
    assert Front.read(tmp_path / "part.json") == part
    document = json.loads((tmp_path / "part.json").read_text()) | {"box": [1.0]}
    (tmp_path / "part.json").write_text(json.dumps(document))
    with pytest.raises(DocumentError, match="box: 1 values; give one per objective: 2"):
        Front.read(tmp_path / "part.json")


@settings(max_examples=tries(20, 200))
@given(found_and_true(), st.data())
def test_a_better_proof_never_prints_a_larger_gap(drawn: tuple, data: st.DataObject) -> None:
    """Of the same points, whatever the signs of the values: the weaker set lies below the other."""
    whole, truth = drawn
    shift = data.draw(st.sampled_from([0, -4, -20]))
    better = np.array(whole.bounds)
    weaker = [[x - data.draw(st.integers(0, 9)) for x in row] for row in better.tolist()]
    points = (whole.values + shift).tolist()
    gaps = [front(points, (np.array(b) + shift).tolist()).gap() for b in (truth, better, weaker)]
    assert gaps[0] <= gaps[1] + 1e-12 and gaps[1] <= gaps[2] + 1e-12
    assert all(0 <= gap <= 1 for gap in gaps)


def test_a_bound_beyond_the_worst_found_is_said() -> None:
    """The box ends at 1.1 times the only point; what may lie beyond is no number, but words."""
    answer = front([(5, 1)], [(5, 1), (1, 10)])
    assert answer.gap() == pytest.approx(0, abs=1e-9) and answer.gap() > 0
    assert not answer.complete
    assert gap_in_words(answer).endswith("plans may exist that are not counted")
    assert front([(5, 1), (1, 10)], [(5, 1), (1, 10)]).complete
    assert "beyond" not in gap_in_words(front([(5, 1), (2, 5)], [(1, 1)]))


def test_infinite_bounds_are_dropped() -> None:
    """They lie below nothing feasible, and JSON cannot hold them."""
    answer = front([(5, 1)], [(5, 1), (1, float("inf"))])
    assert answer.bounds == ((5.0, 1.0),)
    answer.to_json()


def test_a_gap_is_rounded_up() -> None:
    assert percent(0.123401) == "12.35%"
    assert percent(1e-12) == "0.01%"
    assert percent(0.5) == "50.00%"


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_a_part_of_five_points_is_not_complete(size: int) -> None:
    whole = placeopt.solve(problem(FIVE_POINTS))
    assert len(whole) == 5
    assert whole.complete
    part = whole.subset(size)
    assert part.gap() > 0.01
    told = " ".join(words.certificate(part))
    assert "complete" not in told
    assert "part of a larger front" in told


def test_the_command_line_says_what_the_written_points_miss(tmp_path: Path) -> None:
    """Solve with one point of five, then report and compare: none says that nothing is missing."""
    instance, one, all_of_them = (tmp_path / name for name in ("i.json", "one.json", "all.json"))
    instance.write_text(json.dumps(FIVE_POINTS))
    run = CliRunner().invoke(app, ["solve", str(instance), "--points", "1", "-o", str(one)])
    assert run.exit_code == 0
    said = " ".join(run.stderr.split())
    assert "The front: complete: every proven bound is reached" in said
    assert "The plans written: at most 59.54% of the attainable hypervolume is missing" in said
    page = tmp_path / "page.html"
    arguments = ["report", str(one), "--instance", str(instance), "-o", str(page)]
    assert CliRunner().invoke(app, arguments).exit_code == 0
    text = page.read_text()
    assert "The front is complete" not in text and "no plan is missing" not in text
    assert "at most 59.54% of the attainable hypervolume is missing" in text
    CliRunner().invoke(app, ["solve", str(instance), "-o", str(all_of_them)])
    table = CliRunner().invoke(app, ["compare", str(one), str(all_of_them), "--json"])
    gaps = [row["gap"] for row in json.loads(table.stdout)["fronts"]]
    assert gaps[0] > 0.5
    assert gaps[1] == 0


def test_a_bound_that_no_plan_reaches_is_not_forgotten() -> None:
    """Every plan needs a stop; the bound without one lies beyond the worst values found."""
    answer = placeopt.solve(problem(ONE_STOP), "decomposition", evaluations=500)
    assert (3.5, 3.0, 0.0) in answer.bounds
    assert not answer.complete
    assert answer.gap() > 0
    assert "at most" in gap_in_words(answer) and "beyond these values" in gap_in_words(answer)


def test_a_bound_above_a_value_by_rounding_dominates_it() -> None:
    """1 - 2/3 is a little above 1/3: what it proves of a plan is no optimum."""
    answer = graded(front([(5.0, 1 / 3)], [(2.0, 1 - 2 / 3)]), "o0")
    assert [(p.status, p.gap) for p in answer.points] == [("bounded", pytest.approx(0.6))]


def test_a_point_below_every_bound_is_not_proven() -> None:
    answer = graded(front([(5.0, 1.0)], [(6.0, 1.0)]), "o0")
    assert [(p.status, p.gap) for p in answer.points] == [("heuristic", None)]


@pytest.mark.parametrize(
    ("point", "bounds", "goal", "status", "gap"),
    [
        ((5, 5), [(5, 5)], "o0", "optimal", None),
        ((5, 5), [(5, 5), (7, 1)], "o0", "optimal", None),
        ((5, 5), [(1, 5), (4, 2)], "o0", "bounded", 0.8),
        ((5, 5), [(1, 5), (4, 2)], "o1", "bounded", 0.6),
        ((0.5, 5), [(0.25, 5)], "o0", "bounded", 0.5),
        ((0, 5), [(0, 4)], "o0", "bounded", 0.0),
        ((-2, 5), [(-4, 5)], "o0", "bounded", 0.0),
        ((5, 5), [(4, 5)], "another", "bounded", None),
        ((5, 5), [(6, 1)], "o0", "heuristic", None),
        ((5, 5), [(5 * (1 + 1e-12), 5)], "o0", "optimal", None),
        ((5, 5), [(5 * (1 + 1e-6), 5)], "o0", "heuristic", None),
    ],
)
def test_what_bounds_prove_of_a_point(
    point: tuple[float, ...],
    bounds: list[tuple[float, ...]],
    goal: str,
    status: str,
    gap: float | None,
) -> None:
    """The largest share by which the goal could fall, and nothing where no bound covers it."""
    (found,) = graded(front([point], bounds), goal).points
    assert (found.status, found.gap) == (status, None if gap is None else pytest.approx(gap))


@pytest.mark.parametrize(("complete", "fails"), itertools.product([True, False], repeat=2))
def test_a_proof_is_complete_where_it_says_so_and_does_not_fail(
    complete: bool, fails: bool
) -> None:
    start = front([(5, 5)])

    def proves(*given: object) -> Iterator[Bounds]:
        yield Bounds(np.array([[1.0, 5.0]]), solves=3, complete=complete)
        if fails:
            raise MemoryError

    answer = certified(None, start, Budget(seconds=9), proves, "o0")  # type: ignore[arg-type]
    run = answer.runs[-1]
    assert (run.completed, run.solver_calls) == (complete and not fails, 3)
    assert answer.bounds == ((1.0, 5.0),) and answer.points[0].gap == pytest.approx(0.8)
    assert ("note" in run.parameters) == fails


def test_a_proof_that_proves_nothing_leaves_the_front() -> None:
    def proves(*given: object) -> Iterator[Bounds]:
        raise ValueError("too wide")
        yield

    start = front([(5, 5)])
    answer = certified(None, start, Budget(seconds=9), proves, "o0")  # type: ignore[arg-type]
    assert answer.points == start.points and answer.bounds == ()
    assert "too wide" in str(answer.runs[-1].parameters["note"])
