"""Compiled kernels: an edit is never served stale."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

MODULE = """
from placeopt.compiled import kernel

FACTOR = {factor}

@kernel
def inner(x):
    return FACTOR * x

@kernel
def outer(x):
    return inner(x) + 0
"""


def run(folder: Path, code: str) -> str:
    environment = os.environ | {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=folder,
        env=environment,
    ).stdout.strip()


def test_an_edit_of_a_callee_is_not_served_stale(tmp_path: Path) -> None:
    """The same file name, length and time of change, another constant: the new one is used; without an edit, the cache is."""
    module = tmp_path / "edited.py"
    seen = []
    for factor in (2, 3):
        module.write_text(MODULE.format(factor=factor))
        os.utime(module, (1_700_000_000, 1_700_000_000))
        code = "import edited; print(edited.outer(5), len(edited.outer.stats.cache_hits))"
        seen.append((run(tmp_path, code), run(tmp_path, code)))
    assert seen == [("10 0", "10 1"), ("15 0", "15 1")]
