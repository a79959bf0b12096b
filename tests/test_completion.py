"""Shells complete commands, options, methods, instances and documents."""

from __future__ import annotations

import contextlib
import io
import shutil
from pathlib import Path

import pytest

from placeopt import cli

ROOT = Path(__file__).resolve().parents[1]


def completed(words: str, folder: Path) -> list[str]:
    """Return what bash is told for a line that ends in its last, unfinished word."""
    parts = f"placeopt {words}".split(" ")
    asked = {
        "_PLACEOPT_COMPLETE": "complete_bash",
        "COMP_WORDS": " ".join(parts),
        "COMP_CWORD": str(len(parts) - 1),
    }
    told = io.StringIO()
    with pytest.MonkeyPatch.context() as environment, contextlib.chdir(folder):
        for name, value in asked.items():
            environment.setenv(name, value)
        environment.setattr("sys.argv", ["placeopt"])
        with contextlib.redirect_stdout(told), pytest.raises(SystemExit) as end:
            cli.main()
    assert not end.value.code
    return told.getvalue().split()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("sol", {"solve"}),
        ("warm", {"warm-up"}),
        ("solve to --meth", {"--method"}),
        ("solve toy --method nsga", {"nsga2", "nsga3"}),
        ("methods lat", {"latency-greedy"}),
        ("solve aws-50-c", {"aws-50-corrected"}),
        ("solve min", {"mine.json"}),
        ("schema r", {"rescheduling", "rolling-update"}),
        ("check repack-1", {"repack-10x5"}),
        ("plot front.json --convergence --over e", {"evaluations"}),
        ("report front.json --format m", {"markdown"}),
        ("generate mul", {"multi-cluster"}),
        ("import kubernetes sh", {"shop"}),
        ("import kubernetes shop --to r", {"rescheduling", "rolling-update"}),
        ("import kubernetes shop --empty-dir ", {"pin", "move"}),
        ("export kubernetes front.json --format node", {"node-groups"}),
        (
            "evaluate-policy multi-cluster-f",
            {"multi-cluster-fixed-rate20", "multi-cluster-fixed-rate5"},
        ),
        ("sweep st", {"study"}),
        ("warm-up edge", {"edge-cloud"}),
    ],
)
def test_bash_is_told(words: str, expected: set[str], tmp_path: Path) -> None:
    (tmp_path / "mine.json").write_text("{}")
    shutil.copy(ROOT / "instances" / "temporal" / "toy.front.json", tmp_path / "front.json")
    assert set(completed(words, tmp_path)) == expected
