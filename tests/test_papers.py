"""The page of the papers, and the stamps of all pages that scripts write."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
BENCHMARKS = ROOT / "benchmarks"
PAGES = sorted([*BENCHMARKS.rglob("*.md"), *(ROOT / "papers").rglob("*.md")])
#: What the papers number, none left out.
NUMBERED = {
    "hephaestusforge": {"Table": "1 2 3 4 5 6 7 8", "Fig.": "1 2 3 4 5 6 7 8 9 10"},
    "cnsm": {"Table": "I II III IV V", "Fig.": "1 2 3 4a 4b 5"},
    "edge_cloud": {"Table": "1 2 3 4", "Fig.": "1 2 3 4 5 6 7"},
    "reach": {"Table": "I II III IV V", "Fig.": "1 2 3 4 5 6 7 8 9 10 11"},
    "rolling_update": {"Table": "I", "Algorithm": "1 2", "Fig.": "1 2a 2b 2c 3a 3b 3c 4a 4b 4c 5"},
}


@pytest.fixture
def scripts(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The scripts, as they import each other."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    monkeypatch.syspath_prepend(str(ROOT))
    return importlib.import_module("papers.run")


@pytest.fixture
def stamps(scripts: ModuleType) -> ModuleType:
    return sys.modules["stamps"]


def test_every_table_and_figure_of_the_papers_has_an_entry(scripts: ModuleType) -> None:
    for paper in scripts.papers():
        names = [entry.element for entry in paper.entries]
        assert len(set(names)) == len(names)
        kinds = NUMBERED[paper.key].items()
        for element in [f"{kind} {number}" for kind, many in kinds for number in many.split()]:
            found = [
                n for n in names if n == element or n.startswith((f"{element}:", f"{element},"))
            ]
            assert found, (paper.key, element)


def test_what_entries_name_is_there(scripts: ModuleType) -> None:
    for paper in scripts.papers():
        for entry in paper.entries:
            assert not entry.measure or entry.measure in scripts.measure.names(), entry.element
            for file in (entry.page, entry.figure):
                assert not file or (ROOT / file).exists(), (entry.element, file)


def test_results_are_as_their_scripts_wrote_them(scripts: ModuleType) -> None:
    for name, document in scripts.measure.documents(quick=False).items():
        assert scripts.measure.edited(document) == "", name


def test_the_page_is_that_of_the_results(scripts: ModuleType) -> None:
    """After an entry was edited: ``python papers/run.py --page``."""
    found = scripts.measure.documents(quick=False)
    html = scripts.page.html(scripts.papers(), found, quick=False)
    assert (ROOT / "docs" / "papers.html").read_text(encoding="utf-8") == html
    text = (ROOT / "papers" / "results.md").read_text(encoding="utf-8")
    assert text.startswith(scripts.page.markdown(scripts.papers(), found).rstrip("\n"))


def test_the_count_is_of_all_entries(scripts: ModuleType) -> None:
    """An entry whose measure has no result is open; a claim is met or missed by its number."""
    entry = scripts.page.Entry("t", "s", "1", "w", measure="m", ours=str, holds=lambda r: r < 1)
    assert [entry.status(r) for r in ({}, {"m": 0}, {"m": 1})] == ["open", "met", "missed"]
    number = scripts.page.counts(scripts.papers(), {})
    assert sum(number.values()) == sum(len(paper.entries) for paper in scripts.papers())
    assert number["met"] == number["missed"] == number["regenerated"] == 0


def test_a_measure_takes_up_what_was_found(scripts: ModuleType, tmp_path: Path) -> None:
    first = scripts.measure.Cells(tmp_path / "c.json", "code", {})
    assert first("a", lambda: 1) == 1 and first("a", lambda: 2) == 1
    kept = json.loads((tmp_path / "c.json").read_text(encoding="utf-8"))
    assert kept == {"code": "code", "cells": {"a": 1}}


def test_a_measure_that_dies_is_told_and_fails_the_run(
    scripts: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its output is said, the others are measured all the same, and the page is written."""
    ran: list[str] = []

    def popen(command: list[str], **settings: Any) -> subprocess.Popen[str]:
        ran.append(command[3])
        code = "raise SystemExit('no memory')" if command[3] == "cnsm_table_v" else "print(1)"
        return real([sys.executable, "-c", code], **settings)

    real = subprocess.Popen
    monkeypatch.setattr(scripts.subprocess, "Popen", popen)
    monkeypatch.setattr(scripts, "write_pages", lambda quick: "the count")
    names = "cnsm_table_v,zambianco"
    monkeypatch.setattr(sys, "argv", ["run.py", "--quick", "--only", names])
    with pytest.raises(SystemExit) as ended:
        scripts.main()
    assert "no memory" in str(ended.value) and "failed: cnsm_table_v;" in str(ended.value)
    assert ran == names.split(",") and capsys.readouterr().out == "the count\n"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_is_as_its_script_wrote_it(stamps: ModuleType, page: Path) -> None:
    assert stamps.edited(page) == ""


def test_an_edited_page_and_a_changed_script_are_told(
    stamps: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ROOT", "BENCHMARKS"):
        monkeypatch.setattr(stamps, name, tmp_path)
    page, script, part = (tmp_path / name for name in ("page.md", "script.py", "part.py"))
    script.write_text("import part\nprint(1)\n")
    part.write_text("x = 1\n")
    stamps.write(page, "one\ntwo", script, {"seeds": 3})
    assert stamps.edited(page) == stamps.old(page) == ""
    written = page.read_text(encoding="utf-8")
    page.write_text(written.replace("two", "three"))
    assert "edited" in stamps.edited(page)
    page.write_text(written.replace('"seeds": 3', '"seeds": 4'))
    assert "older" in stamps.old(page) and stamps.edited(page) == ""
    page.write_text(written)
    script.write_text("import part  # a comment\nprint(1)\n")
    assert stamps.old(page) == ""
    part.write_text("x = 2\n")
    assert "older" in stamps.old(page)
    page.write_text("one\n")
    assert "no stamp" in stamps.edited(page)
