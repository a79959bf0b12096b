"""Every code block of the README runs, in order, in a copy of what a reader has; see `pages`."""

from __future__ import annotations

from pathlib import Path

from pages import ROOT, blocks, command_of, run_blocks

from placeopt.registry import PACKAGES, methods


def test_every_block_of_the_readme_runs(tmp_path: Path) -> None:
    """One after another in one folder, so that a block may use what an earlier one wrote."""
    run_blocks(blocks((ROOT / "README.md").read_text(encoding="utf-8")), tmp_path)


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


def test_the_table_of_methods_is_that_of_the_registry() -> None:
    """Every method, its summary, and the problems that it serves."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    rows = [
        [cell.strip().strip("`") for cell in line.strip("|").split("|")]
        for line in text.split("| method |", 1)[1].split("\n\n", 1)[0].splitlines()
    ]
    kinds = rows[0][1:]
    assert set(kinds) == {package.replace("_", "-") for package in PACKAGES}
    ours = {name: m for name, m in methods().items() if set(kinds) & set(m.problems)}
    assert [row[0] for row in rows[2:]] == sorted(ours)
    for name, summary, *served in rows[2:]:
        assert summary == ours[name].summary
        marks = ["yes" if kind in ours[name].problems else "" for kind in kinds]
        assert served == marks, name
