"""Drawings of traces: of one run, of several, on paper and on a page."""

from __future__ import annotations

import struct
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("matplotlib")

import placeopt
from placeopt.cli import main
from placeopt.core.errors import UsageError
from placeopt.core.fronts.front import Front
from placeopt.plot import convergence, plot_convergence
from placeopt.plot.scene import Disc, Outline, Panel, Scene, Words


@pytest.fixture(scope="module")
def fronts() -> list[Front]:
    corner = (30.0, 4.0, 1.0)
    return [
        placeopt.solve("toy", method, evaluations=400, seed=seed, reference=corner)
        for method, seed in (("moead", 1), ("mspso", 2))
    ]


def samples(drawn: Scene, name: str) -> list[str]:
    """Return what the dots of a run say."""
    return [s.title for s in drawn.shapes if isinstance(s, Disc) and s.title.startswith(name)]


def written(drawn: Scene) -> list[str]:
    return [shape.text for shape in drawn.shapes if isinstance(shape, Words)]


def dashes(drawn: Scene) -> list[Outline]:
    return [s for s in drawn.shapes if isinstance(s, Outline) and s.dash == "5 3"]


def test_curves_are_those_of_the_traces(fronts: list[Front]) -> None:
    """A dot a sample; one line a run in each panel; names of scales and runs."""
    drawn = convergence.scene(fronts, ["", ""])
    for front in fronts:
        run = front.runs[0]
        said = samples(drawn, f"{run.method}, seed {run.seed}: ")
        assert len(said) == len(run.trace.seconds)
        assert f"hypervolume {run.trace.hypervolume[-1]:.6g} after " in said[-1]
        assert f"{run.trace.evaluations[-1]:,} evaluations" in said[-1]
    words = written(drawn)
    assert {"moead, seed 1", "mspso, seed 2", "best cost (USD)", "evaluations"} <= {*words}
    lines = [s for s in drawn.shapes if isinstance(s, Outline) and s.stroke.startswith("#")]
    assert len([s for s in lines if s.line_width == 1.6]) == 2 * 4 and not dashes(drawn)


def test_a_curve_keeps_its_value_until_the_next_sample() -> None:
    """Steps, whose values are read off the scale; a value that does not change adds no place."""
    panel = Panel(Scene(100, 100), 0, 0, 100, 100, (1, 100), (0, 10), log=True)
    assert panel.staircase([1, 10, 100], [0, 5, 10]) == [
        pytest.approx(place) for place in [(0, 100), (50, 100), (50, 50), (100, 50), (100, 0)]
    ]
    assert len(panel.staircase(range(1, 101), [3] * 100)) == 3


def test_runs_with_different_references_are_refused(fronts: list[Front]) -> None:
    """With the reference point to solve them again with, which is beyond the worst of all."""
    other = placeopt.solve("toy", "greedy", evaluations=400)
    with pytest.raises(UsageError, match="solve each again with --reference 30,4,1, or"):
        convergence.scene([*fronts, other], ["a: ", "b: ", "c: "], "seconds")
    alone = written(convergence.scene([other], [""], "seconds"))
    assert "seconds" in alone
    assert any(text.startswith("hypervolume, up to latency_ms ") for text in alone)


def test_the_bound_is_dashed() -> None:
    """Where there is none, nothing is."""
    proven = placeopt.solve("corner-5", "lns", evaluations=600)
    drawn = convergence.scene([proven], [""])
    assert len(dashes(drawn)) == 1 and "no plans can exceed this" in written(drawn)
    plain = placeopt.solve("corner-5", "moead", evaluations=300)
    assert not dashes(convergence.scene([plain], [""]))


def test_files_of_both_kinds(fronts: list[Front], tmp_path: Path) -> None:
    plot_convergence(fronts, tmp_path / "c.png")
    assert min(struct.unpack(">II", (tmp_path / "c.png").read_bytes()[16:24])) >= 700
    plot_convergence(fronts, tmp_path / "c.html", names=["<b>one", "two"])
    text = (tmp_path / "c.html").read_text(encoding="utf-8")
    assert "evaluations" in text and "<b>one" not in text and "&lt;b&gt;one" in text


def test_what_has_no_trace_says_so(fronts: list[Front], tmp_path: Path) -> None:
    old = replace(fronts[0], runs=tuple(replace(run, trace=None) for run in fronts[0].runs))
    with pytest.raises(UsageError, match="no run of 'toy' has a trace; solve it again"):
        plot_convergence([old], tmp_path / "c.png")
    with pytest.raises(UsageError, match="answer different instances"):
        plot_convergence([fronts[0], placeopt.solve("corner-5", "greedy")], tmp_path / "c.png")


def test_on_the_command_line(
    fronts: list[Front], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Several fronts by their file names; refusals say what is legal."""
    paths = [tmp_path / "one.json", tmp_path / "two.json"]
    for front, path in zip(fronts, paths, strict=True):
        front.write(path)
    both = list(map(str, paths))

    def run(*arguments: str) -> tuple[int, str]:
        with pytest.raises(SystemExit) as end:
            main(["plot", *arguments])
        out, err = capsys.readouterr()
        return int(end.value.code or 0), out + err

    assert run(both[0], "--convergence") == (0, str(tmp_path / "one.convergence.html") + "\n")
    drawn = str(tmp_path / "c.svg")
    assert run(*both, "--convergence", "--over", "seconds", "-o", drawn)[0] == 0
    assert "two: mspso, seed 2" in Path(drawn).read_text() or Path(drawn).stat().st_size > 10_000
    for arguments, said in (
        ([*both, "--point", "0"], "2 fronts: --point draws a plan of one; give one front"),
        ([both[0], "--over", "seconds"], "--over is for --convergence"),
        ([both[0], "--convergence", "--over", "hours"], "give evaluations or seconds"),
        ([both[0], "--convergence", "--point", "0"], "give one of them"),
    ):
        code, text = run(*arguments)
        assert code == 2 and said in text
