"""The Python blocks of docs/front.md run, one after another."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pandas")

PAGE = Path(__file__).resolve().parents[1] / "docs" / "front.md"


def test_the_examples_run(tmp_path: Path) -> None:
    """As one program, in a process of its own."""
    text = PAGE.read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert len(blocks) == 4
    program = tmp_path / "page.py"
    program.write_text("\n".join(blocks))
    command = [sys.executable, str(program)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("<Front toy: ") and len(done.stdout.splitlines()) > 1


def test_the_commands_are_legal() -> None:
    """Every option that the page names exists."""
    from typer.main import get_command

    from placeopt.cli import app

    commands = get_command(app).commands
    known = {
        option
        for name in ("solve", "pick", "plot")
        for parameter in commands[name].params
        for option in parameter.opts
    }
    named = set(re.findall(r"--[a-z][a-z-]+", PAGE.read_text(encoding="utf-8")))
    assert named and named <= known
