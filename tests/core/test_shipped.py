"""Instances that come with placeopt, by name."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import placeopt
from placeopt.core.errors import DocumentError
from placeopt.core.shipped import best_known, instances


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


def test_an_unknown_name_lists_those_there_are() -> None:
    with pytest.raises(DocumentError, match=r"toyy: no such file or instance.*aws-10"):
        placeopt.load("toyy")
    with pytest.raises(DocumentError, match="No such file or directory"):
        placeopt.load("nowhere/toy")


def test_the_command_line_takes_names(tmp_path: Path) -> None:
    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        root = str(Path(__file__).resolve().parents[2])
        command = [sys.executable, "-m", "placeopt", *arguments]
        environment = os.environ | {"PYTHONPATH": root}
        return subprocess.run(
            command, capture_output=True, text=True, cwd=tmp_path, env=environment
        )

    listed = json.loads(run("instances", "--json").stdout)
    assert {one["name"] for one in listed} == set(instances())
    done = run("solve", "toy", "--method", "greedy")
    assert done.returncode == 0 and json.loads(done.stdout)["instance"]["name"] == "toy"
    alone = run("solve")
    assert alone.returncode == 2 and "placeopt instances" in alone.stderr
