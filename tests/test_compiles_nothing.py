"""Commands that look at instances and fronts compile no kernel, and load no compiler."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from effort import tries

import placeopt

ROOT = Path(__file__).resolve().parents[1]
#: A few kinds of plans to draw and to tell; the last has four goals.
INSTANCES = ("repack-10x5", "stream-4x100", "toy")[: tries(2, 3)]
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


def test_fronts_are_looked_at_without_kernels(tmp_path: Path) -> None:
    """Checked, drawn, reported, picked, merged and compared, with more points than pages show."""
    pytest.importorskip("matplotlib")
    names = (*INSTANCES, "aws-50", "basic-50", "corner-5", "chain-12")
    lines = [f"check {name}" for name in names]
    for name in INSTANCES:
        one, other = f"{name}-1.json", f"{name}-2.json"
        for seed, file in enumerate((one, other), 1):
            placeopt.solve(name, evaluations=1500, seed=seed).write(tmp_path / file)
        lines += [
            f"plot {one} -o 1.html",
            f"plot {one} -o 1.png",
            f"plot {one} --point knee -o plan.html",
            f"plot {one} --convergence -o runs.html",
            f"report {one} -o report.html",
            *([f"report {one} --format markdown -o r.md"] if name == "repack-10x5" else []),
            f"pick {one} -o point.json",
            f"merge {one} {other} -o both.json",
            f"compare {one} {other}",
        ]
    run(tmp_path, *lines)
