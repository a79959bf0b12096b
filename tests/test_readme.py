"""Every code block of the README runs, in order; see `pages`."""

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
    run_blocks(found, tmp_path)


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


def test_the_tables_of_methods_are_those_of_the_registry() -> None:
    """README has some, one page the others, and the names of what to compare with."""
    kinds = {package.replace("_", "-") for package in PACKAGES}
    ours = {name: m for name, m in methods().items() if kinds & set(m.problems)}
    listed = list[str]()
    for page in ("README.md", "docs/questions.md"):
        table = (ROOT / page).read_text(encoding="utf-8").split("| method |", 1)[1]
        for row in table.split("\n\n", 1)[0].splitlines()[2:]:
            name, summary, served = (cell.strip().strip("`") for cell in row.strip("|").split("|"))
            assert summary == ours[name].summary
            assert (kinds if served == "all" else set(served.split(", "))) == kinds & set(
                ours[name].problems
            )
            listed.append(name)
    assert sorted(listed) == sorted(n for n, m in ours.items() if m.role not in COMPARED)
    lines = (ROOT / "docs" / "questions.md").read_text(encoding="utf-8").splitlines()
    for role in COMPARED:
        line = next(line for line in lines if line.startswith(f"* {role}"))
        assert re.findall("`([a-z0-9-]+)`", line) == [n for n, m in ours.items() if m.role == role]


NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?|\.\d+")


def numbers(text: str) -> set[float]:
    return {float(found.replace(",", "")) for found in NUMBER.findall(text)}


def claims(page: str) -> list[tuple[str, list[Path]]]:
    """Return what a bullet or a row says, and the tables that it links to."""
    text = (ROOT / page).read_text(encoding="utf-8").split("\n## The papers")[0]
    found = []
    for claim in re.findall(r"^(?:\* |\| ).*(?:\n  .*)*", text, re.MULTILINE):
        links = re.findall(r"\]\(((?:\.\./)?(?:benchmarks|papers)/[^)#]*\.md)\)", claim)
        tables = [(ROOT / page).parent / link for link in links]
        words = re.sub(r"\[[^\]]*\]\([^)]*\)|`[^`]*`", "", claim)
        found += [(words, tables)] if tables else []
    return found


@pytest.mark.parametrize("page", ["README.md", "docs/results.md"])
def test_numbers_stand_on_the_page_that_is_named(page: str) -> None:
    """Each number beside a link to a table, as it is written there."""
    checked = 0
    for words, tables in claims(page):
        there = numbers("".join(table.read_text(encoding="utf-8") for table in tables))
        wanted = numbers(words)
        assert wanted <= there, f"{words}: {sorted(wanted - there)}"
        checked += len(wanted)
    assert checked > 10
