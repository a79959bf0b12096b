"""The examples run as they stand, and stay short."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).resolve().parents[1] / "examples").glob("*.py"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_example_runs(path: Path, tmp_path: Path) -> None:
    """In an empty folder, in which it leaves nothing; it says what it does and prints something."""
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) < 60
    assert text.startswith('"""')
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, cwd=tmp_path)
    if done.returncode and "MissingExtraError" in done.stderr:
        pytest.skip(done.stderr.strip().splitlines()[-1])
    assert done.returncode == 0, done.stderr
    assert done.stdout and not list(tmp_path.iterdir())
