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
PAPERS = ROOT / "papers"
PAGES = sorted([*BENCHMARKS.rglob("*.md"), PAPERS / "results.md", *PAPERS.glob("results/*.md")])


@pytest.fixture
def scripts(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The scripts, as they import each other."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    monkeypatch.syspath_prepend(str(ROOT))
    return importlib.import_module("papers.run")


@pytest.fixture
def stamps(scripts: ModuleType) -> ModuleType:
    return sys.modules["stamps"]


def test_the_page_is_made_from_the_list_of_all_elements(scripts: ModuleType) -> None:
    """Each element of papers/elements.toml has one entry, in its order, and none is beside it."""
    listed = importlib.import_module("papers.quotes").elements()
    assert list(listed) == [paper.key for paper in scripts.papers()]
    for paper in scripts.papers():
        assert [entry.element for entry in paper.entries] == list(listed[paper.key]["elements"])


def test_a_missed_claim_says_whose_it_is(scripts: ModuleType) -> None:
    found = scripts.measure.documents(quick=False)
    results = {name: document["result"] for name, document in found.items()}
    for paper in scripts.papers():
        for entry in paper.entries:
            if entry.status(results) == "missed":
                assert entry.whose and entry.why, entry.element


def test_no_claim_hides_among_the_regenerated(scripts: ModuleType) -> None:
    entry = scripts.page.Entry
    with pytest.raises(ValueError, match="a claim has"):
        entry("claim, sec. I", "s", "1", "w", measure="m", ours=str)
    unjudged = entry("claim, sec. I", "s", "1", "w", measure="m", ours=str, cannot="no rule.")
    assert unjudged.status({"m": 1}) == "cannot be judged"
    assert unjudged.reason({"m": 1}) == "Cannot be judged: no rule. w"
    with pytest.raises(ValueError, match="legal: paper"):
        entry("claim, sec. I", "s", "1", "w", measure="m", ours=str, holds=bool, whose="nobody")


def test_what_is_quoted_stands_in_the_papers(scripts: ModuleType) -> None:
    """Words of all elements, numbers that entries quote, and nothing numbered is left out."""
    quotes = importlib.import_module("papers.quotes")
    if quotes.folder() is None:
        pytest.skip("no folder seeds beside PLACEOPT_DATA")
    for key, text in quotes.texts(quotes.folder()).items():
        entries = {paper.key: paper.entries for paper in scripts.papers()}[key]
        assert quotes.missing_words(key, text) == []
        assert quotes.missing_numbers(key, entries, text) == []
        assert quotes.left_out(key, text) == []


def test_a_wrong_quotation_is_seen(scripts: ModuleType) -> None:
    quotes = importlib.import_module("papers.quotes")
    text = "Rejections of 0.50 % and 2,000 episodes, 11.5 units.\nTable 9: more\n$$x$$ (1)\n"
    has = [quotes.has_number(n, text) for n in (".5", "0.5", "2000", "11.5", "1.5", "200", "9")]
    assert has == [True, True, True, True, False, False, True]
    assert quotes.left_out("rolling_update", text) == ["Table 9"]
    entry = scripts.page.Entry("Table 1", "s", "7 of 9", "w", derived=("9",), nothing=True)
    assert quotes.missing_numbers("cnsm", (entry,), text) == ["Table 1: 7"]
    assert len(quotes.missing_words("cnsm", text)) == len(quotes.elements()["cnsm"]["elements"])


def test_what_entries_name_is_there(scripts: ModuleType) -> None:
    for paper in scripts.papers():
        for entry in paper.entries:
            assert not entry.measure or entry.measure in scripts.measure.names(), entry.element
            for file in (entry.page, entry.figure):
                assert not file or (ROOT / file).exists(), (entry.element, file)


def test_results_are_as_their_scripts_wrote_them(scripts: ModuleType) -> None:
    for name, document in scripts.measure.documents(quick=False).items():
        assert scripts.measure.edited(document) == "", name


def test_the_page_is_that_of_the_results(scripts: ModuleType, tmp_path: Path) -> None:
    """After an entry was edited: ``python papers/run.py --page``."""
    found = scripts.measure.documents(quick=False)
    scripts.write_html(tmp_path / "there" / "papers.html")
    html = (tmp_path / "there" / "papers.html").read_text(encoding="utf-8")
    assert html.count("<section") >= len(scripts.papers())
    text = (ROOT / "papers" / "results.md").read_text(encoding="utf-8")
    assert text.startswith(scripts.page.markdown(scripts.papers(), found).rstrip("\n"))


def test_a_program_that_ended_early_leaves_the_page_whole(scripts: ModuleType) -> None:
    """On a busy machine a quick run solves no program beyond five that may move."""
    (paper,) = (paper for paper in scripts.papers() if paper.key == "rolling_update")
    (entry,) = (one for one in paper.entries if one.element == "claim, sec. V-B: time")
    result = scripts.measure.documents(quick=False)["zambianco"]["result"]
    early = result | {"program": {"5": result["program"]["5"]}}
    assert entry.status({"zambianco": early}) and "with 5 that may move" in entry.ours(early)
    assert "with 10 that may move" in entry.ours(result)


def test_the_count_is_of_all_entries(scripts: ModuleType) -> None:
    """An entry whose measure has no result is open; a claim is met or missed by its number."""
    entry = scripts.page.Entry("t", "s", "1", "w", measure="m", ours=str, holds=lambda r: r < 1)
    assert [entry.status(r) for r in ({}, {"m": 0}, {"m": 1})] == ["open", "met", "missed"]
    assert scripts.page.STATUSES[3] == "cannot be judged"
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
