"""Commands that look at instances and fronts compile no kernel, and load no compiler."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import placeopt

ROOT = Path(__file__).resolve().parents[1]
#: A few kinds of plans to draw and to tell; the last has four goals.
INSTANCES = ("toy", "repack-10x5", "stream-4x100")
CODE = """
import sys
from placeopt.cli import main
from placeopt.core.runs.compiling import CLOCK

for line in sys.argv[1:]:
    try:
        main(line.split())
    except SystemExit as end:
        assert not end.code, line
    assert not CLOCK.kernels and "numba" not in sys.modules, line
"""


def run(folder: Path, *lines: str) -> None:
    """Run commands in a process with nothing compiled."""
    cache = folder / "cache"
    cache.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", CODE, *lines],
        capture_output=True,
        text=True,
        cwd=folder,
        env=os.environ
        | {"PYTHONPATH": str(ROOT), "NUMBA_CACHE_DIR": str(cache), "PLACEOPT_KERNELS": ""},
    )
    assert done.returncode == 0, done.stderr
    assert not list(cache.rglob("*.nbi"))


@pytest.mark.parametrize("name", INSTANCES)
def test_fronts_are_looked_at_without_kernels(tmp_path: Path, name: str) -> None:
    """Drawn, reported, picked, merged and compared, with more points than pages show."""
    pytest.importorskip("matplotlib")
    for seed in (1, 2):
        front = placeopt.solve(name, evaluations=1500, seed=seed)
        front.write(tmp_path / f"{seed}.json")
    run(
        tmp_path,
        "plot 1.json -o 1.html",
        "plot 1.json -o 1.png",
        "plot 1.json --point knee -o plan.html",
        "plot 1.json --convergence -o runs.html",
        "report 1.json -o report.html",
        *(["report 1.json --format markdown -o r.md"] if name == "repack-10x5" else []),
        "pick 1.json -o point.json",
        "merge 1.json 2.json -o both.json",
        "compare 1.json 2.json",
    )


def test_instances_are_checked_without_kernels(tmp_path: Path) -> None:
    names = (*INSTANCES, "aws-50", "basic-50", "corner-5", "chain-12")
    run(tmp_path, *(f"check {name}" for name in names))
