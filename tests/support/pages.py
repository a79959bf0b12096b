"""Code blocks of pages, run as a reader would.

Blocks of ``python`` are run by Python; of ``console``, ``bash`` and ``sh`` by the shell, in
``console`` only the lines after a ``$``. A block below the comment ``<!-- not run -->`` is left
out, and so are commands that install or fetch.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FENCE = re.compile(
    r"(?P<skip><!-- not run -->\s*)?^```(?P<language>python|console|bash|sh)\n(?P<code>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
LEFT_OUT = re.compile(
    r"^\s*(pip|python3? -m (pip|venv)|git|make|source|cd|apt-get|docker|kubectl)\b"
)


def blocks(text: str) -> list[tuple[str, str]]:
    """Return (language, code) of the blocks to run."""
    return [(m["language"], m["code"]) for m in FENCE.finditer(text) if not m["skip"]]


def command_of(language: str, code: str) -> list[str]:
    """Return what runs a block; empty where nothing of it is to be run."""
    if language == "python":
        return [sys.executable, "-c", code]
    lines = code.splitlines()
    if language == "console":
        lines = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
    kept = [line for line in lines if line.strip() and not LEFT_OUT.match(line)]
    return ["bash", "-euo", "pipefail", "-c", "\n".join(kept)] if kept else []


def environment() -> dict[str, str]:
    """Return the environment of a reader: this checkout's package, this interpreter's commands."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    return os.environ | {"PATH": path, "PYTHONPATH": str(ROOT)}


def run_blocks(found: list[tuple[str, str]], folder: Path) -> None:
    """Run blocks one after another in `folder`, so that one may use what an earlier one wrote."""
    for name in ("instances", "examples", "models"):
        shutil.copytree(ROOT / name, folder / name)
    (folder / "out").mkdir()
    for language, code in found:
        if command := command_of(language, code):
            done = subprocess.run(
                command, capture_output=True, text=True, cwd=folder, env=environment()
            )
            assert done.returncode == 0, f"{code}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
