"""No page asks anybody for anything, whatever is clicked: every kind of page in a real browser."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytest.importorskip("matplotlib")

from browser import Page, browser, needs_chromium

import placeopt
from placeopt import plot, report
from placeopt.core.fronts.front import Front
from placeopt.core.problem import Problem

PAGES: dict[str, Callable[[Front, Problem, Path], object]] = {
    "front": lambda front, problem, path: plot.plot_front(front, path, problem=problem),
    "plan": lambda front, problem, path: plot.plot_plan(front, 0, path, problem=problem),
    "convergence": lambda front, problem, path: plot.plot_convergence([front], path),
    "report": lambda front, problem, path: report.write(front, path, problem=problem),
    "sweep": lambda front, problem, path: path.write_bytes(_sweep(path.parent).read_bytes()),
}


def _sweep(folder: Path) -> Path:
    plan = {"instances": [{"problem": "temporal", "seed": 1, "requests": 3}], "seeds": [1, 2]}
    result = placeopt.sweep(plan | {"methods": ["greedy", "nsga2"], "evaluations": [50]})
    return next(path for path in result.write(folder / "sweep") if path.name == "index.html")


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with browser(tmp_path_factory.mktemp("browser")) as opened:
        yield opened


@pytest.fixture(scope="module")
def answered() -> tuple[Problem, Front]:
    problem: Problem = placeopt.load("toy")
    return problem, placeopt.solve(problem, "moead", evaluations=600)


@needs_chromium
@pytest.mark.parametrize("kind", PAGES)
def test_clicking_everything_asks_nobody(
    chromium: Page, answered: tuple[Problem, Front], tmp_path: Path, kind: str
) -> None:
    """Buttons, links, fields, and what they bring; a new window counts as well."""
    problem, front = answered
    PAGES[kind](front, problem, tmp_path / "page.html")
    chromium.open(tmp_path / "page.html")
    chromium.click_everything()
    assert chromium.requests == [] and chromium.errors == []
