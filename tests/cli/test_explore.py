"""The page of a front or a folder of runs: written, and written anew while runs go on."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

import placeopt
from placeopt import cli
from placeopt.cli import reports as exploring
from placeopt.core.fronts.front import Front
from placeopt.core.runs.run_directory import INTERIM

RELOADS = '<meta http-equiv="refresh"'


def run(*words: object, code: int = 0) -> None:
    with pytest.raises(SystemExit) as end:
        cli.main([*map(str, words)])
    assert (end.value.code or 0) == code


@pytest.fixture(scope="module")
def front() -> Front:
    return placeopt.solve("toy", "greedy")


def test_a_front_has_a_page_beside_it(
    front: Front, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    front.write(tmp_path / "front.json")
    run("explore", tmp_path / "front.json")
    assert capsys.readouterr().out == f"{tmp_path / 'front.html'}\n"
    text = (tmp_path / "front.html").read_text()
    assert f"toy: {len(front)} plans" in text and RELOADS not in text


def test_the_page_of_a_folder_merges_its_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = tmp_path / "runs"
    for method in ("greedy", "nsga2"):
        placeopt.solve("toy", method, evaluations=300, run_dir=runs)
    whole = placeopt.merge([Front.read(file) for file in runs.glob("*.front.json")])
    other = placeopt.solve("toy", "greedy", objectives=["cost_usd"])
    other.write(runs / "other.json")
    os.utime(runs / "other.json", (1, 1))
    run("explore", runs)
    assert "another question has fronts in" in capsys.readouterr().err
    assert f"toy: {len(whole)} plans" in (runs / "front.html").read_text()


def test_a_page_is_written_anew_while_a_run_goes_on(
    front: Front, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a run has shown long ago is of a run that has ended."""
    shown, seen = tmp_path / f"1.{INTERIM}", []

    def wait(_seconds: float) -> None:
        seen.append((tmp_path / "front.html").read_text())
        if len(seen) == 1:
            front.write(shown)
        else:
            os.utime(shown, (1, 1))

    monkeypatch.setattr(exploring.time, "sleep", wait)
    Front(front.instance, front.objectives, front.points[:1]).write(shown)
    run("explore", tmp_path)
    assert len(seen) == 2 and all(RELOADS in text for text in seen)
    assert "toy: 1 plan<" in seen[0] and f"toy: {len(front)} plans" in seen[1]
    assert RELOADS not in (tmp_path / "front.html").read_text()
    assert time.time() - shown.stat().st_mtime > 20


@pytest.mark.parametrize("name", ["nothing", "empty", "toy.json"])
def test_what_has_no_front_is_said_in_a_line(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "other.json").write_text('{"format": "placeopt/front@1"}')
    placeopt.load("toy").write(tmp_path / "toy.json")
    run("explore", tmp_path / name, code=2)
    assert len(capsys.readouterr().err.splitlines()) == 1
    assert not [*tmp_path.rglob("*.html")]


def test_solve_writes_its_page_while_it_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With what was found so far; the last one is that of the front, and reads itself no more."""
    from placeopt import plot

    written, write = [], plot.plot_front

    def kept(*arguments: object, **options: object) -> None:
        write(*arguments, **options)  # type: ignore[arg-type]
        written.append((tmp_path / "f.html").read_text())

    monkeypatch.setattr(plot, "plot_front", kept)
    line = ("solve", "toy", "--method", "moead", "--evaluations", 3000, "--quiet")
    run(*line, "-o", tmp_path / "f.json", "--plot", tmp_path / "f.html")
    assert len(written) > 1 and all(RELOADS in text for text in written[:-1])
    assert RELOADS not in written[-1] == (tmp_path / "f.html").read_text()
    again = tmp_path / "again.json"
    run(*line, "-o", again)
    assert Front.read(again).points == Front.read(tmp_path / "f.json").points
