"""The share of a hypervolume: from 0 to 1, whatever the signs and senses of goals."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from placeopt.cli import app
from placeopt.core.fronts.front import Front
from placeopt.core.fronts.values import InstanceName, Objective, Point
from placeopt.core.fronts.words import quality

NAME = InstanceName("model", "m", "")
#: Senses of the goals, and values.
CASES = {
    "two with one below 0": ("min min", [(-18.0, 11.0), (-12.0, 5.0), (0.0, 0.0)]),
    "both below 0": ("min min", [(-5.0, -1.0), (-3.0, -4.0)]),
    "one maximised": ("min max", [(1.0, 2.0), (4.0, 10.0)]),
    "both maximised, below 0": ("max max", [(-1.0, -9.0), (-4.0, -2.0)]),
    "around 0": ("min max min", [(-1.0, 0.0, 2.0), (1.0, 3.0, -2.0)]),
    "one point at 0": ("min min", [(0.0, 0.0)]),
    "one point below 0": ("min max", [(-7.0, -7.0)]),
    "one goal": ("max", [(3.0,)]),
    "tiny and huge": ("min min", [(-1e-9, 1e12), (1e-9, -1e12)]),
}


def front(case: str, size: int | None = None) -> Front:
    senses, rows = CASES[case]
    goals = tuple(
        Objective(f"g{k}", "", sense="max" if sense == "max" else "min")
        for k, sense in enumerate(senses.split())
    )
    return Front(NAME, goals, tuple(Point(row, {}) for row in rows[:size]))


@pytest.mark.parametrize("case", CASES)
def test_a_share_is_at_most_one(case: str, tmp_path: Path) -> None:
    """The same in the table, of a run and in Python; more points never have less."""
    whole, part = front(case), front(case, 1)
    whole.write(tmp_path / "whole.json")
    part.write(tmp_path / "part.json")
    files = [str(tmp_path / "whole.json"), str(tmp_path / "part.json")]
    done = CliRunner().invoke(app, ["compare", *files, "--json"])
    assert done.exit_code == 0, done.stderr
    shares = [row["hypervolume"] for row in json.loads(done.stdout)["fronts"]]
    assert 0 < shares[1] <= shares[0] <= 1
    done = CliRunner().invoke(app, ["compare", files[0], "--json"])
    (alone,) = json.loads(done.stdout)["fronts"]
    assert alone["hypervolume"] == pytest.approx(whole.hypervolume(plain=True))
    told = re.search(r": ([\d.]+) of the box from the best values", quality(whole))
    assert told is not None and float(told[1]) == pytest.approx(alone["hypervolume"], abs=1e-4)


def test_a_model_with_a_goal_below_zero(tmp_path: Path) -> None:
    """Six binaries, three of them at most: the share was 10.5 of the box."""
    (tmp_path / "m.lp").write_text(
        "minimize multi-objectives\n f: - 3 x0 - 5 x1 - 7 x2 - 2 x3 - 4 x4 - 6 x5\n"
        " g: 6 x0 + 2 x1 + 1 x2 + 7 x3 + 4 x4 + 3 x5\nsubject to\n"
        " c: x0 + x1 + x2 + x3 + x4 + x5 <= 3\nbinary\n x0 x1 x2 x3 x4 x5\nend\n"
    )
    command = ["enumerate", str(tmp_path / "m.lp"), "-o", str(tmp_path / "f")]
    run = CliRunner().invoke(app, command, obj=time.perf_counter())
    assert run.exit_code == 0, run.stderr
    done = CliRunner().invoke(app, ["compare", str(tmp_path / "f"), "--json"])
    (row,) = json.loads(done.stdout)["fronts"]
    assert 0 < row["hypervolume"] <= 1
