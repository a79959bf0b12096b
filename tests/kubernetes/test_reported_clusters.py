"""Clusters from public reports, each with what a real cluster would do: their own check runs here.

``kubernetes_cases_2/check.py`` of the outside data asks placeopt as a stranger would and judges the
answer.
"""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from placeopt.cli import app
from placeopt.core.errors import PlaceoptError

#: The rows that hold.
ROWS = (
    "tolsec", "fargate", "dsclass", "unproven", "cutlist", "waits", "evictlocal", "overfull",
    "startuptaint", "hugepages", "pdbtwo", "softspread2", "kedazero", "cronjob", "prom_evicted",
    "prom_uidinfo", "dumps_dst",
)  # fmt: skip


def _inside(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
    """Run placeopt in this process, as `subprocess.run` would in another."""
    done = CliRunner().invoke(app, command[1:])
    if isinstance(done.exception, PlaceoptError):  # `main` ends so
        return subprocess.CompletedProcess(command, 2, done.stdout, str(done.exception))
    return subprocess.CompletedProcess(command, done.exit_code, done.stdout, done.stderr)


@pytest.mark.parametrize("name", ROWS)
def test_a_reported_cluster(
    name: str,
    kubernetes_data: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = kubernetes_data / "kubernetes_cases_2"
    monkeypatch.setattr(subprocess, "run", _inside)
    monkeypatch.setattr(sys, "argv", ["check.py", "placeopt", str(folder), name])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(folder / "check.py"), run_name="__main__")
    told = capsys.readouterr().out
    assert ended.value.code == 0, told
    assert told.startswith(f"ok   {name}"), told
