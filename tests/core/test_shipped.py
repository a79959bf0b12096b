"""What comes with placeopt, by name: instances and a cluster."""

from __future__ import annotations

import contextlib
import io
import json
from functools import partial
from pathlib import Path

import forks
import pytest

import placeopt
from placeopt import cli
from placeopt.core.errors import DocumentError
from placeopt.core.files.shipped import best_known, instances


@pytest.mark.parametrize("name", instances())
def test_names_stand_for_files(name: str) -> None:
    problem = placeopt.load(name)
    assert problem.instance_name == placeopt.load(instances()[name]).instance_name
    front = best_known(name)
    if front is not None:
        assert placeopt.Front.read(front).instance == problem.instance_name


def test_a_file_of_that_name_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    placeopt.load("corner-5").write(tmp_path / "toy")
    monkeypatch.chdir(tmp_path)
    assert placeopt.load("toy").name == placeopt.load("corner-5").name


def run(folder: Path, line: str, code: int = 0) -> str:
    """Run a command in a folder; return its stdout."""
    out = io.StringIO()
    with (
        contextlib.chdir(folder),
        contextlib.redirect_stdout(out),
        pytest.raises(SystemExit) as end,
    ):
        cli.main(line.split())
    assert (end.value.code or 0) == code
    return out.getvalue()


def test_the_shop_runs_from_its_dump_to_a_script(tmp_path: Path) -> None:
    """By names alone, in an empty folder; the script has the real pods and nodes."""
    run(tmp_path, "import kubernetes shop --prices shop --to rolling-update -o shop.json")
    assert (
        placeopt.load(tmp_path / "shop.json").instance_name == placeopt.load("shop").instance_name
    )
    run(tmp_path, "solve shop.json --method repack -o front.json")
    front = placeopt.Front.read(tmp_path / "front.json")
    assert front.values[:, 2].max() == 0 and front.values[0, 0] < 0.5 * front.values[-1, 0]
    run(tmp_path, "export kubernetes front.json --point 0 -o steps.sh")
    assert "kubectl" in (tmp_path / "steps.sh").read_text(encoding="utf-8")
    run(tmp_path, "export kubernetes front.json --point 0 --format json -o steps.json")
    run(tmp_path, "verify steps.json --cluster shop")
    told = run(tmp_path, "report front.json --format markdown --point 0")
    assert "downtime: none" in told and "USD a month" in told


def test_a_shipped_instance_is_found_by_what_its_front_says(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By plot, report and export; a front of another version of it is not taken for it."""
    run(tmp_path, "solve shop --method repack -o front.json")
    run(tmp_path, "plot front.json --point knee -o plan.png")
    run(tmp_path, "report front.json --format markdown -o plan.md")
    run(tmp_path, "export kubernetes front.json -o steps.sh")
    assert "may have changed" not in capsys.readouterr().err
    assert {p.name for p in tmp_path.iterdir()} == {"front.json", "plan.png", "plan.md", "steps.sh"}
    document = json.loads((tmp_path / "front.json").read_text())
    document["instance"]["sha256"] = "0" * 64
    (tmp_path / "other.json").write_text(json.dumps(document))
    run(tmp_path, "plot other.json --point knee -o other.png", code=2)
    assert "needs the instance 'shop'" in capsys.readouterr().err
    run(tmp_path, "export kubernetes other.json", code=2)
    assert "the instance of 'other.json' is not known: give --instance" in capsys.readouterr().err


def test_an_unknown_name_lists_those_there_are() -> None:
    with pytest.raises(DocumentError, match=r"toyy: no such file or instance.*aws-10"):
        placeopt.load("toyy")
    with pytest.raises(DocumentError, match="No such file or directory"):
        placeopt.load("nowhere/toy")


def test_the_command_line_takes_names(tmp_path: Path) -> None:
    apart = partial(forks.placeopt, cwd=tmp_path)
    listed = json.loads(apart("instances", "--json").stdout)
    assert {one["name"] for one in listed} == set(instances())
    done = apart("solve", "toy", "--method", "greedy")
    assert done.returncode == 0 and json.loads(done.stdout)["instance"]["name"] == "toy"
    alone = apart("solve")
    assert alone.returncode == 2 and "placeopt instances" in alone.stderr
