"""The pages: links lead somewhere, code runs, and what is public is named."""

from __future__ import annotations

import importlib
import inspect
import json
import re
import shutil
import tomllib
from pathlib import Path

import pytest
from forks import forked
from pages import FENCE, ROOT, blocks, environment, run_blocks
from typer.core import TyperGroup
from typer.main import get_command

import placeopt
from placeopt.cli import app
from placeopt.registry import PACKAGES, from_document, methods, quick

PAGES = [
    *sorted(
        page
        for folder in ("docs", "models", "benchmarks", "papers", "examples")
        for page in (ROOT / folder).rglob("*.md")
    ),
    *sorted(ROOT.glob("*.md")),
]
#: Pages whose code is run from top to bottom in a folder of their own; `test_readme` runs its own.
RUN = [page for page in PAGES if page.name != "README.md" or page.parent != ROOT]
INSIDE = ROOT / "docs" / "inside.md"  # which a test of its own runs
RUN = [page for page in RUN if page != INSIDE and blocks(page.read_text(encoding="utf-8"))]
#: What code on a page can be: run, parsed, shown, or for Sphinx.
LANGUAGES = {"python", "sh", "toml", "text", "csv", "{toctree}", "{eval-rst}"}
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
CODE = re.compile(r"^```.*?^```$|`[^`\n]*`", re.MULTILINE | re.DOTALL)
#: Pages that `docs/build.py` writes.
WRITTEN = re.compile(
    r"^docs/(problems|methods|schemas)/([\w-]+)\.md$|^(benchmarks|papers)/index\.md$"
    r"|^docs/papers\.html$"
)


def anchors(text: str) -> set[str]:
    """Return what a heading is called in a link."""
    titles = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def broken(page: Path, text: str) -> list[str]:
    """Return the local links of a page that lead nowhere."""
    found = []
    for link in LINK.findall(CODE.sub("", text)):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists():
            if not is_written(target):
                found.append(link)
        elif anchor and anchor not in anchors(target.read_text(encoding="utf-8")):
            found.append(link)
    return found


def is_written(target: Path) -> bool:
    known = {*methods(), *(name.replace("_", "-") for name in PACKAGES), "index", "front", "steps"}
    match = WRITTEN.match(str(target.relative_to(ROOT)))
    return match is not None and (match[2] or "index") in known


def test_local_links_lead_somewhere() -> None:
    for page in PAGES:
        assert broken(page, page.read_text(encoding="utf-8")) == [], page


def test_a_broken_link_is_found() -> None:
    page = ROOT / "docs" / "results.md"
    text = "[a](nowhere.md) [b](front.md#no-such-part) [c](methods/sovle.md) [d](front.md)"
    assert broken(page, text) == ["nowhere.md", "front.md#no-such-part", "methods/sovle.md"]


@pytest.mark.parametrize("page", RUN, ids=lambda page: str(page.relative_to(ROOT)))
def test_code_of_a_page_runs(page: Path, tmp_path: Path) -> None:
    """Like that of the README."""
    found = blocks(page.read_text(encoding="utf-8"))
    if any("steps.sh" in code for _, code in found) and not shutil.which("jq"):
        pytest.skip("jq is not installed, which exported scripts need")
    run_blocks(found, tmp_path)


def test_code_of_a_page_is_run_or_says_why_not() -> None:
    """No language that nobody runs, no block without a fence at the margin, legal TOML."""
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        found = list(FENCE.finditer(text))
        assert text.count("```") == 2 * len(found), page
        for block in found:
            assert block["language"] in LANGUAGES, (page, block["code"])
            if block["language"] == "toml":
                tomllib.loads(block["code"])


#: Commands of the papers' distribution, which is not installed here.
OF_THE_PAPERS = ("traffic",)


def commands_of(text: str) -> list[list[str]]:
    """Return the words of each command of ours on a page, in blocks and in sentences."""
    code = [m["code"] for m in FENCE.finditer(text) if m["language"] == "sh"]
    code += re.findall(r"`(placeopt [^`\n]+)`", FENCE.sub("", text))
    found = re.findall(r"^(?:.*\| *)?placeopt ([^|#\n]+)", "\n".join(code), re.MULTILINE)
    return [line.split() for line in found]


def test_commands_and_options_on_pages_exist() -> None:
    unknown, top = [], get_command(app)
    lines = [words for page in PAGES for words in commands_of(page.read_text(encoding="utf-8"))]
    for words in lines:
        command, named = top, iter(words)
        if words[0] in OF_THE_PAPERS:
            continue
        while isinstance(command, TyperGroup):
            word = next(named, "-")
            if word.startswith("-"):
                break
            command = command.commands[word]
        options = {o for p in command.params for o in (*p.opts, *p.secondary_opts)} | {"--help"}
        unknown += [words for w in words if w.startswith("--") and w.split("=")[0] not in options]
    assert unknown == []


def test_an_unknown_option_is_found() -> None:
    """In a sentence, behind a pipe, and in a block that is not run."""
    page = "Ask `placeopt solve toy --sed 1`.\n\n*Not run by the tests: a.*\n\n```sh\n"
    page += "cat x | placeopt import kubernetes - --too temporal  # --like this\n```\n"
    assert commands_of(page) == [
        ["import", "kubernetes", "-", "--too", "temporal"],
        ["solve", "toy", "--sed", "1"],
    ]


@pytest.mark.parametrize("name", ["", ".ask", ".models", ".environments", ".kubernetes"])
def test_every_public_name_is_in_the_reference(name: str) -> None:
    """Each by its directive; and the reference names nothing that is not there."""
    text = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
    part = text.split(f"\n## placeopt{name}\n", 1)[1].split("\n## ", 1)[0]
    named = re.findall(r"^\.\. auto\w+:: ([\w.]+)$", part, re.MULTILINE)
    public = importlib.import_module(f"placeopt{name}").__all__
    assert sorted(one.removeprefix(f"placeopt{name}.") for one in named) == sorted(public)


def test_signatures_of_the_reference_have_types() -> None:
    """The page shows them; each function and method declares what it takes and returns."""
    assert 'autodoc_typehints = "signature"' in (ROOT / "docs" / "conf.py").read_text()
    checked = 0
    for name in ("", ".ask", ".environments", ".kubernetes"):
        module = importlib.import_module(f"placeopt{name}")
        for one in (getattr(module, word) for word in module.__all__):
            parts = vars(one).values() if inspect.isclass(one) else [one]
            for function in filter(inspect.isfunction, parts):
                if function.__name__.startswith("_") or function.__module__.startswith("pydantic"):
                    continue
                signature, checked = inspect.signature(function), checked + 1
                assert signature.return_annotation is not signature.empty, function.__qualname__
                for parameter in signature.parameters.values():
                    typed = parameter.annotation is not signature.empty
                    assert typed or parameter.name in ("self", "cls"), function.__qualname__
    assert checked > 50


def test_every_method_has_its_source_and_its_measurement() -> None:
    notes = tomllib.loads((ROOT / "docs" / "methods.toml").read_text(encoding="utf-8"))
    ours = methods().keys()
    assert notes.keys() == ours
    for name, note in notes.items():
        assert note.keys() == {"source", "measured", "table"}, name
        assert (ROOT / note["table"]).exists(), name


def test_files_of_the_package_that_pages_name_are_there() -> None:
    """A form of a pod, say, is made in the file that its page names; what it prints is shown."""
    for page in PAGES:
        named = re.findall(r"`(placeopt/[\w/]+\.\w+)`", page.read_text(encoding="utf-8"))
        lost = [name for name in named if not (ROOT / name).is_file()]
        assert not lost or page.name == "CHANGELOG.md", (page, lost)


def test_the_page_about_the_inside_shows_what_its_code_prints(tmp_path: Path) -> None:
    text = INSIDE.read_text(encoding="utf-8")
    [(_, code)], [printed] = blocks(text), re.findall(r"^```text\n(.*?)^```", text, re.M | re.S)
    done = forked(code, cwd=tmp_path, environment=environment())
    assert (done.returncode, done.stdout) == (0, printed), done.stderr


def test_the_page_says_what_a_killed_run_keeps() -> None:
    """As the methods declare it."""
    text = (ROOT / "docs" / "sweeps.md").read_text(encoding="utf-8")
    told = dict(re.findall(r"^\| `([\w-]+)` \| (.+) \|$", text, re.MULTILINE))
    ours = {name: m.kept for name, m in methods().items()}
    assert {name: what for name, what in told.items() if name in ours} == {
        name: kept for name, kept in ours.items() if kept
    }


@pytest.mark.parametrize("kind", [name.replace("_", "-") for name in PACKAGES])
def test_the_smallest_instances_are_instances(kind: str) -> None:
    """And have a plan."""
    document = json.loads((ROOT / "docs" / "schemas" / f"{kind}.json").read_text(encoding="utf-8"))
    problem = from_document(document)
    assert problem.problem == kind and not problem.infeasibility()
    assert len(placeopt.solve(problem, quick(problem), evaluations=50)) > 0


@pytest.mark.thorough  # `make docs` does it, and Sphinx reads the pages
def test_pages_are_assembled_whole(tmp_path: Path) -> None:
    """All that Sphinx is given: a page for each problem, method and document."""
    code = f"import build, pathlib; build.assemble(pathlib.Path({str(tmp_path)!r}))"
    done = forked(code, cwd=ROOT / "docs", environment=environment())
    assert done.returncode == 0, done.stderr
    for name in methods():
        text = (tmp_path / "docs" / "methods" / f"{name}.md").read_text(encoding="utf-8")
        assert "## Measured" in text and "## Parameters" in text
