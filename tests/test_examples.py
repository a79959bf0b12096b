"""The examples run as they stand, and stay short."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from forks import forked

EXAMPLES = sorted((Path(__file__).resolve().parents[1] / "examples").glob("*.py"))

#: As `python file`.
RUN = "import runpy, sys; sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__')"


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
    done = forked(RUN, copied / path.name, cwd=tmp_path, environment={"PLACEOPT_DATA": None})
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
    done = forked(RUN, path, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert expected in done.stdout
