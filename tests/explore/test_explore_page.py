"""The page of an explorer in a real browser: it chooses, compares, grows and solves."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from browser import Page, browser, needs_chromium

import placeopt
from placeopt.core.fronts.front import Front
from placeopt.explore.runs import Runs
from placeopt.explore.server import Explorer, in_background
from placeopt.explore.source import FrontSource


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with browser(tmp_path_factory.mktemp("browser")) as opened:
        yield opened


@pytest.fixture(scope="module")
def fronts() -> tuple[Front, Front]:
    """A small front, and a larger one that has its points."""
    front = placeopt.solve("toy", "moead", evaluations=600)
    kept = front.points.index(front.pick())
    some = sorted({0, kept, len(front) - 1})
    small = Front(front.instance, front.objectives, tuple(front.points[k] for k in some))
    return small, front


@contextmanager
def visited(
    chromium: Page, what: Path | str, width: int = 1280, *, solve: bool = False
) -> Iterator[Explorer]:
    """Open the page of an explorer; in the end nobody else was asked, and nothing went wrong."""
    source = FrontSource(what)
    chromium.errors.clear()
    chromium.requests.clear()
    with Explorer(source, Runs(source) if solve else None) as explorer:
        thread = in_background(explorer)
        chromium.visit(explorer.address, width)
        try:
            yield explorer
            assert chromium.errors == []
            assert {r.startswith(explorer.address) for r in chromium.requests} == {True}
        finally:
            chromium.send("Page.navigate", url="about:blank")
            explorer.shutdown()
            thread.join()


def text_of(chromium: Page, name: str) -> str:
    return str(chromium.run(f"document.getElementById('{name}').innerText"))


@needs_chromium
@pytest.mark.parametrize("width", [1280, 420])
def test_the_chosen_plan_is_drawn_and_told(
    chromium: Page, fronts: tuple[Front, Front], tmp_path: Path, width: int
) -> None:
    """In words, as a drawing, in tables; nothing sticks out; clicking everything asks nobody."""
    front = fronts[1]
    front.write(tmp_path / "front.json")
    problem = placeopt.load("toy")
    with visited(chromium, tmp_path / "front.json", width):
        chromium.wait("!!document.querySelector('#drawn-plan svg')")
        knee = front.pick()
        for name, fact in problem.describe(knee.plan).items():
            assert name in text_of(chromium, "plan-facts")
            assert fact.split(",")[0] in text_of(chromium, "plan-facts")
        assert chromium.run("document.querySelectorAll('#drawn-plan table').length") >= 2
        assert chromium.run("document.documentElement.scrollWidth") <= width
        assert f"placeopt pick {tmp_path / 'front.json'}" in text_of(chromium, "plan-commands")
        chromium.click_everything()


@needs_chromium
def test_the_page_grows_and_keeps_what_was_set(
    chromium: Page, fronts: tuple[Front, Front], tmp_path: Path
) -> None:
    """Limits, weights, the plan that was chosen, and pins stay; numbers follow the plans."""
    small, large = fronts
    small.write(tmp_path / "front.json")
    with visited(chromium, tmp_path / "front.json"):
        chromium.wait(f"document.getElementById('kept').textContent === 'all {len(small)} plans'")
        last = len(small) - 1
        chromium.run(
            "(one => {one.value = 3; one.dispatchEvent(new Event('input'))})"
            "(document.getElementById('weight-1'))"
        )
        chromium.run(
            f"(one => {{one.value = {last}; one.dispatchEvent(new Event('change'))}})"
            "(document.getElementById('point'))"
        )
        chromium.wait(f"document.getElementById('plan-h').textContent === 'Plan {last}'")
        chromium.run("document.getElementById('pin-a').click()")
        chromium.run("document.getElementById('weight-2').focus()")
        large.write(tmp_path / "front.json")
        chromium.wait(f"document.getElementById('kept').textContent === 'all {len(large)} plans'")
        now = [p.values for p in large].index(small[last].values)
        assert text_of(chromium, "plan-h") == f"Plan {now}"
        assert chromium.run("document.getElementById('weight-1').value") == "3"
        assert chromium.run("document.getElementById('pin-a').ariaPressed") == "true"
        assert chromium.run("document.activeElement.id") == "weight-2"
        assert chromium.run("document.querySelectorAll('#plane svg').length") == 1
        chromium.run("document.querySelector('#shortcuts button').click()")
        chromium.wait("!document.getElementById('compare').hidden")
        chromium.wait("!!document.querySelector('#compare-facts table')")


@needs_chromium
def test_it_solves_where_that_is_allowed(
    chromium: Page, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From an instance without a front to a plan."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(placeopt.core.files.shipped.find("chain-12"), tmp_path / "mine.json")
    with visited(chromium, "mine.json", solve=True):
        chromium.wait("!document.getElementById('empty').hidden")
        assert chromium.run("document.getElementById('choice').hidden")
        assert "placeopt solve mine.json" in text_of(chromium, "empty")
        chromium.run("document.getElementById('method').value = 'greedy'")
        chromium.run("document.getElementById('start').click()")
        chromium.wait("!document.getElementById('choice').hidden")
        chromium.wait("document.getElementById('run-said').textContent.includes('written to')")
        chromium.wait("!!document.querySelector('#drawn-plan svg')")
        assert (tmp_path / "chain-12.greedy-1.front.json").exists()


@needs_chromium
def test_it_says_when_the_server_has_ended(
    chromium: Page, fronts: tuple[Front, Front], tmp_path: Path
) -> None:
    """What was shown stays; a plan that was not asked for has no facts."""
    fronts[1].write(tmp_path / "front.json")
    with visited(chromium, tmp_path / "front.json") as explorer:
        chromium.wait("!!document.querySelector('#drawn-plan svg')")
        assert chromium.run("document.getElementById('gone').hidden")
    chromium.errors.clear()
    with Explorer(FrontSource(tmp_path / "front.json")) as explorer:
        thread = in_background(explorer)
        chromium.visit(explorer.address)
        chromium.wait("!!document.querySelector('#drawn-plan svg')")
        explorer.shutdown()
        thread.join()
        explorer.server_close()
        chromium.wait("!document.getElementById('gone').hidden")
        assert chromium.run("document.querySelectorAll('#plane svg').length") == 1
