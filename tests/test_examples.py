"""The examples run as they stand, and stay short."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).resolve().parents[1] / "examples").glob("*.py"))


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The examples alone, without the rest of the checkout."""
    return shutil.copytree(EXAMPLES[0].parent, tmp_path_factory.mktemp("copied") / "examples")


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_example_runs(path: Path, copied: Path, tmp_path: Path) -> None:
    """In an empty folder, in which it leaves nothing, with bundled data alone; it says what it does
    and prints something.
    """
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) < 60
    assert text.startswith('"""')
    bundled = {key: value for key, value in os.environ.items() if key != "PLACEOPT_DATA"}
    done = subprocess.run(
        [sys.executable, copied / path.name],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=bundled,
    )
    if done.returncode and "MissingExtraError" in done.stderr:
        pytest.skip(done.stderr.strip().splitlines()[-1])
    assert done.returncode == 0, done.stderr
    assert done.stdout and not list(tmp_path.iterdir())


@pytest.mark.skipif(
    "PLACEOPT_DATA" not in os.environ,
    reason="PLACEOPT_DATA is not set: the manifests of well-known shops are not at hand",
)
@pytest.mark.parametrize(
    ("name", "expected"),
    [("consolidate", "'replicas': 12, 'calls': 16"), ("fleet", "sock-shop.yaml: ")],
)
def test_examples_of_well_known_shops(name: str, expected: str, tmp_path: Path) -> None:
    """The Online Boutique, the Sock Shop."""
    path = next(p for p in EXAMPLES if p.stem == name)
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert expected in done.stdout
