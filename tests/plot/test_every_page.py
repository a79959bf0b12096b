"""Every kind of page in a real browser: it asks nobody for anything, fits, and can be read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("matplotlib")

from browser import Page, needs_chromium
from typer.testing import CliRunner

import placeopt
from placeopt import plot, report
from placeopt.cli import app
from placeopt.core.fronts.front import Front
from placeopt.core.problem import Problem

PAGES: dict[str, Callable[[Front, Problem, Path], object]] = {
    "front": lambda front, problem, path: plot.plot_front(front, path, problem=problem),
    "plan": lambda front, problem, path: plot.plot_plan(front, 0, path, problem=problem),
    "convergence": lambda front, problem, path: plot.plot_convergence([front], path),
    "report": lambda front, problem, path: report.write(front, path, problem=problem),
    "sweep": lambda front, problem, path: path.write_bytes(_sweep(path.parent).read_bytes()),
    "cluster": lambda front, problem, path: path.write_bytes(_cluster(path.parent).read_bytes()),
    "months": lambda front, problem, path: path.write_bytes(_months(path.parent).read_bytes()),
}
#: Returns what does not fit or cannot be read: sideways scrolling, cut text, words in pieces, and
#: letters too much like what is behind them (WCAG 2.1, 1.4.3).
_FAULTS = """(() => {
  const faults = [], root = document.documentElement;
  if (root.scrollWidth > innerWidth) { faults.push(`${root.scrollWidth} wide`); }
  const parts = c => (c.match(/[\\d.]+/g) || [0, 0, 0, 0]).map(Number);
  const light = c => c.slice(0, 3).map(v => v / 255).map(
    v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4
  ).reduce((sum, v, k) => sum + v * [0.2126, 0.7152, 0.0722][k], 0);
  const behind = one => {
    for (let at = one; at; at = at.parentElement) {
      const c = parts(getComputedStyle(at).backgroundColor);
      if (c.length === 3 || c[3] === 1) { return c; }
      if (c[3] > 0) { return null; }
    }
    return matchMedia("(prefers-color-scheme: dark)").matches ? null : [255, 255, 255];
  };
  for (const one of document.body.querySelectorAll("*")) {
    const text = [...one.childNodes].filter(n => n.nodeType === 3).map(n => n.data).join("").trim();
    const box = one.getBoundingClientRect(), style = getComputedStyle(one);
    const shown = one.checkVisibility({opacityProperty: true, visibilityProperty: true});
    if (!text || !shown || !box.width || ["SCRIPT", "STYLE", "OPTION"].includes(one.tagName)) {
      continue;
    }
    const about = `${one.tagName}.${one.className} "${text.slice(0, 40)}"`;
    const cut = style.overflowX === "hidden" && one.scrollWidth > one.clientWidth + 1;
    if (cut && style.textOverflow !== "ellipsis") { faults.push(`cut: ${about}`); }
    if (style.wordBreak === "break-all") { faults.push(`in pieces: ${about}`); }
    if (text.includes("`")) { faults.push(`raw backtick: ${about}`); }
    const back = one.closest("svg") ? null : behind(one);
    if (back) {
      const pair = [light(parts(style.color)), light(back)].sort((a, b) => b - a);
      const ratio = (pair[0] + 0.05) / (pair[1] + 0.05), size = parseFloat(style.fontSize);
      const large = size >= 24 || (size >= 18.6 && style.fontWeight >= 700);
      if (ratio < (large ? 3 : 4.5)) { faults.push(`contrast ${ratio.toFixed(1)}: ${about}`); }
    }
  }
  return [...new Set(faults)].slice(0, 12);
})()"""


def _sweep(folder: Path) -> Path:
    plan = {"instances": [{"problem": "temporal", "seed": 1, "requests": 3}], "seeds": [1, 2]}
    result = placeopt.sweep(plan | {"methods": ["greedy", "nsga2"], "evaluations": [50]})
    return next(path for path in result.write(folder / "sweep") if path.name == "index.html")


def _cluster(folder: Path) -> Path:
    command = ["consolidate", "shop", "--prices", "shop", "-o", str(folder / "shop"), "--quiet"]
    assert CliRunner().invoke(app, command).exit_code == 0
    return folder / "shop" / "report.html"


def _months(folder: Path) -> Path:
    trace, result = str(folder / "trace.json"), folder / "months"
    drawn = ["generate", "trace", "--size", "days=1", "--seed", "1", "-o", trace]
    played = ["backtest", trace, "--policy", "none", "--policy", "karpenter", "-o", str(result)]
    for command in (drawn, played):
        assert not CliRunner().invoke(app, command).exit_code
    return next(result.glob("*.html"))


@pytest.fixture(scope="module")
def answered() -> tuple[Problem, Front]:
    problem: Problem = placeopt.load("toy")
    return problem, placeopt.solve(problem, "moead", evaluations=600)


@pytest.fixture(scope="module", params=PAGES)
def page(
    request: pytest.FixtureRequest,
    answered: tuple[Problem, Front],
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    """A page of each kind."""
    problem, front = answered
    file = tmp_path_factory.mktemp(request.param) / "page.html"
    PAGES[request.param](front, problem, file)
    return file


@needs_chromium
@pytest.mark.parametrize("width", [1280, 420])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_and_can_be_read(chromium: Page, page: Path, width: int, scheme: str) -> None:
    """On a desk and on a telephone, by day and by night; a picture is kept beside the page."""
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    chromium.send("Emulation.setEmulatedMedia", features=features)
    chromium.open(page, width)
    chromium.picture(page.with_name(f"{width}-{scheme}.png"))
    assert chromium.run(_FAULTS) == []


@needs_chromium
def test_clicking_everything_asks_nobody(chromium: Page, page: Path) -> None:
    """Buttons, links, fields, and what they bring; a new window counts as well."""
    chromium.open(page)
    chromium.click_everything()
    assert chromium.requests == [] and chromium.errors == []


@needs_chromium
def test_faults_are_found(chromium: Page, tmp_path: Path) -> None:
    """The check itself."""
    (tmp_path / "page.html").write_text(
        "<div style='width: 900px'>wide</div><p style='width: 40px; overflow: hidden; "
        "white-space: nowrap'>a long text that is cut</p><p style='color: #999; background: #fff'>"
        "grey</p><p style='word-break: break-all'>pieces</p><p>a `raw` tick</p>"
    )
    chromium.open(tmp_path / "page.html", 420)
    found = " ".join(chromium.run(_FAULTS))
    assert all(word in found for word in ("wide", "cut", "contrast 2.8", "in pieces", "backtick"))
