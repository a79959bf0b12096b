"""Every code block of the README runs, in order, in a copy of what a reader has.

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

import pytest

ROOT = Path(__file__).resolve().parents[1]
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


def test_every_block_of_the_readme_runs(tmp_path: Path) -> None:
    """One after another in one folder, so that a block may use what an earlier one wrote."""
    found = blocks((ROOT / "README.md").read_text(encoding="utf-8"))
    if not found:
        pytest.skip("the README has no code to run")
    for name in ("instances", "examples", "models"):
        if (ROOT / name).exists():
            shutil.copytree(ROOT / name, tmp_path / name)
    (tmp_path / "out").mkdir()
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    for language, code in found:
        if command := command_of(language, code):
            done = subprocess.run(
                command,
                capture_output=True,
                text=True,
                cwd=tmp_path,
                env=os.environ | {"PATH": path},
            )
            assert done.returncode == 0, f"{code}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"


def test_blocks_are_found_as_they_are_meant() -> None:
    """The rules above, on a page of our own."""
    page = (
        "x\n```python\nprint(1)\n```\n<!-- not run -->\n```bash\nrm x\n```\n```json\n{}\n```\n"
        "```console\n$ placeopt --version\nplaceopt 0.1.0\n```\n```sh\nmake demo\n```\n"
    )
    assert blocks(page) == [
        ("python", "print(1)\n"),
        ("console", "$ placeopt --version\nplaceopt 0.1.0\n"),
        ("sh", "make demo\n"),
    ]
    assert (
        command_of("console", "$ placeopt --version\nplaceopt 0.1.0\n")[-1] == "placeopt --version"
    )
    assert command_of("sh", "make demo\n") == []


def test_the_readme_names_every_method_and_problem() -> None:
    """The table of methods is that of the registry."""
    from placeopt.registry import methods

    text = (ROOT / "README.md").read_text(encoding="utf-8")
    rows = {
        name: line
        for line in text.splitlines()
        if (name := line.partition("`")[2].partition("`")[0]) in methods()
        and line.startswith("| `")
    }
    assert rows.keys() == methods().keys()
    header = next(line for line in text.splitlines() if line.startswith("| method | what it does"))
    kinds = [cell.strip().strip("`") for cell in header.split("|")[3:-1]]
    for name, line in rows.items():
        cells = [cell.strip() for cell in line.split("|")[3:-1]]
        assert [k for k, cell in zip(kinds, cells, strict=True) if cell == "yes"] == [
            k for k in kinds if k in methods()[name].problems
        ], name
