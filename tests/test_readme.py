"""Every code block of the README runs, in order, in a copy of what a reader has; see `pages`."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pages import ROOT, blocks, plain_commands, run_blocks

from placeopt.core.spec import COMPARED
from placeopt.registry import PACKAGES, methods


def test_every_block_of_the_readme_runs(tmp_path: Path) -> None:
    """One after another in one folder, so that a block may use what an earlier one wrote."""
    found = blocks((ROOT / "README.md").read_text(encoding="utf-8"))
    run_blocks(found, tmp_path, apart=True)


def test_blocks_are_found_as_they_are_meant() -> None:
    """Programs in one, commands one by one; what is not run has a reason."""
    page = (
        "x\n```python\na = 1\n```\ny\n```python\nprint(a)\n```\n```toml\n[x]\n```\n"
        "*Not run by the tests: it removes x.*\n\n```sh\nrm x\n```\n"
        "```sh\nplaceopt --version\n```\n"
    )
    assert blocks(page) == [
        ("python", "a = 1\nprint(a)\n"),
        ("sh", "placeopt --version\n"),
    ]


def test_commands_run_here_where_they_need_no_shell(tmp_path: Path) -> None:
    """And one that fails is found."""
    assert plain_commands("placeopt pick a.json \\\n  --knee  # why\n\n") == [
        ["pick", "a.json", "--knee"]
    ]
    assert plain_commands("placeopt methods\nls\n") is None
    assert plain_commands("placeopt methods > out.txt\n") is None
    with pytest.raises(AssertionError, match="nothing"):
        run_blocks([("sh", "placeopt check nothing.json\n")], tmp_path)


def test_the_table_of_methods_is_that_of_the_registry() -> None:
    """Every method to use: its summary and the problems that it serves; the others by name."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    table, rest = text.split("| method |", 1)[1].split("\n\n", 1)
    rows = [[cell.strip().strip("`") for cell in row] for row in cells(table)]
    kinds = rows[0][1:]
    assert set(kinds) == {package.replace("_", "-") for package in PACKAGES}
    ours = {name: m for name, m in methods().items() if set(kinds) & set(m.problems)}
    assert [row[0] for row in rows[2:]] == [n for n, m in ours.items() if m.role not in COMPARED]
    for name, summary, *served in rows[2:]:
        assert summary == ours[name].summary
        marks = ["yes" if kind in ours[name].problems else "" for kind in kinds]
        assert served == marks, name
    for role in COMPARED:
        line = next(line for line in rest.splitlines() if line.startswith(f"* {role}"))
        assert re.findall("`([a-z0-9-]+)`", line) == [n for n, m in ours.items() if m.role == role]


def cells(table: str) -> list[list[str]]:
    return [line.strip("|").split("|") for line in table.splitlines()]
