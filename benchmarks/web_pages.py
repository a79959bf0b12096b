"""Every page in Chromium: what it asks for, what goes wrong, what axe-core finds.

    npm install axe-core && python benchmarks/web_pages.py --axe node_modules/axe-core/axe.min.js

Each page is opened at 1,280 and 420 pixels, light and dark. Without axe-core the accessibility is
not checked, and no table is written.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from harness import ROOT, Benchmark, table

import placeopt

from browser import Page, browser  # isort: skip
from placeopt import plot, report
from placeopt.core.files.shipped import best_known
from placeopt.core.fronts.front import Front
from placeopt.registry import problem_class

WIDTHS, SCHEMES = (1280, 420), ("light", "dark")
#: Problem -> method and sizes of what its report and its plan show.
SHOWN: dict[str, tuple[str, dict[str, Any]]] = {
    "temporal": ("moead", {"requests": 8, "horizon": 24}),
    "edge-cloud": ("greedy", {"applications": 10}),
    "rolling-update": ("repack", {"applications": 8}),
    "rescheduling": ("greedy", {"application": "aggregator-parallel"}),
    "multi-cluster": ("greedy", {"requests": 60}),
}
COLUMNS = "page | bytes | requests to others | errors | wider than the window | findings"


def pages(folder: Path) -> Iterator[tuple[str, Path]]:
    """Write every kind of page; yield its name and file."""

    def at(name: str) -> Path:
        return folder / f"{name.replace(' ', '-').replace(',', '')}.html"

    known = best_known("aws-50")
    assert known is not None
    aws, front = placeopt.load("aws-50"), Front.read(known)
    many = placeopt.solve(aws, "moead", evaluations=60_000).subset(500)
    for name, one in (("front, aws-50, 500 plans", many), ("front, aws-50, best known", front)):
        plot.plot_front(one, at(name), problem=aws)
        yield name, at(name)
    report.write(front, at("report aws-50"), problem=aws)
    yield "report, aws-50", at("report aws-50")
    for kind, (method, sizes) in SHOWN.items():
        problem = problem_class(kind).generate(2, **sizes)
        found = placeopt.solve(problem, method, evaluations=2000, seed=1)
        report.write(found, at(f"report {kind}"), problem=problem)
        yield f"report, {kind}", at(f"report {kind}")
        plot.plot_plan(found, 0, at(f"plan {kind}"), problem=problem)
        yield f"plan, {kind}", at(f"plan {kind}")
    plot.plot_convergence([many], at("convergence"))
    yield "convergence", at("convergence")
    plan = {"instances": ["toy", "corner-5"], "methods": ["greedy", "nsga2"], "seeds": [1, 2]}
    placeopt.sweep(plan | {"evaluations": [100, 300]}, folder=folder / "sweep")
    yield "sweep", folder / "sweep" / "index.html"
    yield "papers", ROOT / "docs" / "papers.html"


def measured(chromium: Page, name: str, file: Path, axe: str) -> list[object]:
    """Return the row of a file."""
    counts = [
        look(chromium, file.as_uri(), width, scheme, axe, "file:")
        for width in WIDTHS
        for scheme in SCHEMES
    ]
    return [name, f"{file.stat().st_size:,}", *totals(counts)]


def look(
    chromium: Page,
    address: str,
    width: int,
    scheme: str,
    axe: str,
    own: str,
) -> tuple[int, int, int, list[str]]:
    """Return requests to others, errors, pixels beyond the window, and what axe-core finds."""
    chromium.errors.clear()
    chromium.requests.clear()
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    chromium.send("Emulation.setEmulatedMedia", features=features)
    chromium.visit(address, width)
    chromium.wait("true")
    frame = "new Promise(requestAnimationFrame)"
    chromium.run(f"{frame}.then(() => {frame}).then(() => 0)")
    beyond = int(chromium.run("document.documentElement.scrollWidth")) - width
    found: list[str] = []
    if axe:
        chromium.run(f"{axe}; 0")
        script = "axe.run().then(r => JSON.stringify(r.violations.map(v => v.id)))"
        found = json.loads(chromium.run(script))
    others = [request for request in chromium.requests if not request.startswith(own)]
    return len(others), len(chromium.errors), max(0, beyond), found


def totals(counts: list[tuple[int, int, int, list[str]]]) -> list[object]:
    """Return the sums of a page's cells."""
    requests, errors, beyond, found = zip(*counts, strict=True)
    names = sorted({name for one in found for name in one})
    said = f"{sum(map(len, found))} ({', '.join(names)})" if names else "0"
    return [sum(requests), sum(errors), sum(width > 0 for width in beyond), said]


def main() -> None:
    """Open every page, and write the table."""
    run = Benchmark(__file__, __doc__, axe="")
    axe = Path(run.axe).read_text(encoding="utf-8") if run.axe else ""
    with tempfile.TemporaryDirectory() as name, browser(Path(name)) as chromium:
        folder = Path(name)
        rows = [row for page in pages(folder) for row in [measured(chromium, *page, axe)]]
    widths = " and ".join(f"{width:,}" for width in WIDTHS)
    version = re.search(r"axe v([\d.]+)", axe)
    checker = "unchecked" if version is None else f"those of axe-core {version[1]}"
    run.settings = {}
    blocks = (
        f"Each page at {widths} pixels, light and dark; findings are {checker}.",
        table(COLUMNS, rows),
    )
    title = "Pages in a browser: requests, errors, accessibility, size"
    if axe:
        run.write(title, *blocks)
    else:
        print(run.text(title, *blocks))


if __name__ == "__main__":
    main()
