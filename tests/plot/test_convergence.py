"""Drawings of traces: of one run, of several, on paper and on a page."""

from __future__ import annotations

import struct
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("matplotlib")
pytest.importorskip("plotly")

import placeopt
from placeopt.cli import main
from placeopt.core.errors import UsageError
from placeopt.core.front import Front
from placeopt.plot import convergence, plot_convergence


@pytest.fixture(scope="module")
def fronts() -> list[Front]:
    corner = (30.0, 4.0, 1.0)
    return [
        placeopt.solve("toy", method, evaluations=400, seed=seed, reference=corner)
        for method, seed in (("moead", 1), ("mspso", 2))
    ]


def test_curves_are_those_of_the_traces(fronts: list[Front]) -> None:
    """One line a run and panel; hypervolumes as they are with one reference point."""
    drawn = convergence.figure(fronts, ["", ""])
    top, *below = drawn.axes
    assert len(below) == 3 and top.get_xlabel() == "evaluations"
    curves = [line for line in top.lines if line.get_linestyle() == "-"]
    for front, line in zip(fronts, curves, strict=True):
        trace = front.runs[0].trace
        assert tuple(line.get_xdata()) == trace.evaluations
        assert tuple(line.get_ydata()) == trace.hypervolume
    assert [line.get_label() for line in curves] == ["moead, seed 1", "mspso, seed 2"]
    assert below[1].get_ylabel() == "best cost (USD)"


def test_runs_with_different_references_are_refused(fronts: list[Front]) -> None:
    """With the reference point to solve them again with, which is beyond the worst of all."""
    other = placeopt.solve("toy", "greedy", evaluations=400)
    with pytest.raises(UsageError, match="solve each again with --reference 30,4,1, or"):
        convergence.figure([*fronts, other], ["a: ", "b: ", "c: "], "seconds")
    alone = convergence.figure([other], [""], "seconds").axes[0]
    assert alone.get_xlabel() == "seconds"
    assert "; hypervolume up to latency_ms " in alone.get_title(loc="left")


def test_the_bound_is_dashed() -> None:
    """On both faces; where there is none, nothing is."""
    proven = placeopt.solve("corner-5", "lns", evaluations=600)
    page = convergence.interactive([proven], [""])
    dashed = [trace for trace in page.data if trace.line.dash == "dash"]
    assert len(dashed) == 1
    assert [y for y in dashed[0].y if y is not None][-1] == proven.runs[0].trace.bound[-1]
    plain = placeopt.solve("corner-5", "moead", evaluations=300)
    assert not [t for t in convergence.interactive([plain], [""]).data if t.line.dash == "dash"]


def test_files_of_both_kinds(fronts: list[Front], tmp_path: Path) -> None:
    plot_convergence(fronts, tmp_path / "c.png")
    assert min(struct.unpack(">II", (tmp_path / "c.png").read_bytes()[16:24])) >= 700
    plot_convergence(fronts, tmp_path / "c.html", names=["<b>one", "two"])
    text = (tmp_path / "c.html").read_text(encoding="utf-8")
    assert "evaluations" in text and "<b>one" not in text.split("</script>", 1)[1]


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
        (both, "2 fronts: give one, merge them first, or compare runs by --convergence"),
        ([both[0], "--over", "seconds"], "--over is for --convergence"),
        ([both[0], "--convergence", "--over", "hours"], "give evaluations or seconds"),
        ([both[0], "--convergence", "--point", "0"], "give one of them"),
    ):
        code, text = run(*arguments)
        assert code == 2 and said in text
