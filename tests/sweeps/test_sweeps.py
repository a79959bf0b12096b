"""Sweeps: plans, measures against slow twins, resumption, the page."""

from __future__ import annotations

import csv
import json
import math
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browser import Page, needs_chromium

import placeopt
from placeopt.core.budget import Budget
from placeopt.core.errors import DocumentError, PlaceoptError, UsageError
from placeopt.core.fronts.front import Front
from placeopt.core.fronts.values import InstanceName, Objective, Point
from placeopt.core.runs.run_directory import RunDirectory
from placeopt.sweeps import measures
from placeopt.sweeps.measures import NOT_RUN, comparisons, holm, mean_ranks, measure, pairs_needed
from placeopt.sweeps.page import page
from placeopt.sweeps.plan import Cell, cells, read

ROOT = Path(__file__).resolve().parents[2]
PLAN: dict[str, Any] = {
    "name": "tiny",
    "instances": [
        {"problem": "temporal", "seed": 1, "requests": 3},
        {"problem": "edge-cloud", "seed": 1, "applications": 2},
    ],
    "methods": ["greedy", {"name": "moead", "neighbours": 10}],
    "seeds": [1, 2, 3],
    "evaluations": [50, 100],
}


TASK = {"seed": 1, "evaluations": 1, "seconds": None, "objectives": ["a", "b"]}


def told(result: placeopt.sweeps.SweepResult) -> list[Any]:
    return [front and [(p.values, p.plan) for p in front.points] for front in result.fronts]


def test_a_sweep_runs_every_cell_and_resumes(tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    first = placeopt.sweep(PLAN, run_dir=tmp_path, on_cell=lambda *n: seen.append(n))
    assert len(first.rows) == 24 and first.complete and seen[-1] == (24, 24)
    files = {p.name: p.stat().st_mtime_ns for p in tmp_path.iterdir()}
    victim = sorted(tmp_path.glob("*.front.json"))[0]
    victim.write_text("{")  # a damaged front is run again, the others are not
    seen.clear()
    again = placeopt.sweep(PLAN, run_dir=tmp_path, on_cell=lambda *n: seen.append(n))
    assert seen == [(23, 24), (24, 24)] and told(again) == told(first)
    changed = [p.name for p in tmp_path.iterdir() if files[p.name] != p.stat().st_mtime_ns]
    assert sorted(changed) == sorted([victim.name, victim.name.replace("front", "task")])
    assert told(placeopt.sweep(PLAN, jobs=2)) == told(first)


def test_results_are_written(tmp_path: Path) -> None:
    result = placeopt.sweep(PLAN | {"methods": ["greedy", "moead", "policy"]})
    assert not result.complete
    result.write(tmp_path)
    rows = list(csv.DictReader((tmp_path / "results.csv").open()))
    assert len(rows) == 36 and {r["method"] for r in rows} == {"greedy", "moead", "policy"}
    assert all(r["error"].startswith("UsageError") for r in rows if r["method"] == "policy")
    assert all(0 <= float(r["cpu_seconds"]) < 60 for r in rows if not r["error"])
    best = [float(r["hypervolume"]) for r in rows if r["method"] == "moead"]
    assert max(best) <= 1 + 1e-9 and min(best) > 0
    page = (tmp_path / "index.html").read_text()
    assert "Medians and quartiles" in page and "Wilcoxon" in page and "<svg" in page
    assert not re.search(r"(src|href)=[\"']?https?:", page)  # nothing is fetched


@needs_chromium
def test_a_browser_shows_the_page(chromium: Page, tmp_path: Path) -> None:
    """It asks no network for anything."""
    placeopt.sweep(PLAN | {"methods": ["greedy", "moead"]}).write(tmp_path)
    chromium.open(tmp_path / "index.html")
    assert chromium.run("document.querySelectorAll('svg').length") == 2
    text = chromium.run("document.body.innerText")
    assert "Convergence" in text and "mean rank" in text and "A box reaches from" in text
    assert chromium.run("document.querySelectorAll('table caption').length") == 5
    assert not chromium.errors and not chromium.requests


def front(*values: tuple[float, float]) -> Front:
    goals = (Objective("a", ""), Objective("b", ""))
    name = InstanceName("temporal", "x", "0")
    return Front(name, goals, tuple(Point(v, {}) for v in values))


def test_measures_by_hand() -> None:
    cell = Cell("x", "m", TASK, {"problem": "temporal"})
    whole, part = front((0, 4), (2, 2), (4, 0)), front((2, 2))
    rows = measure([cell, cell, cell], [whole, part, None], ["", "", "gone"])
    assert [row["hypervolume"] for row in rows[:2]] == pytest.approx([1, 0.36 / 0.46])
    # Scaled: the union is (0, 1), (.5, .5), (1, 0); (.5, .5) is .5 behind two of them.
    assert rows[1]["igd_plus"] == pytest.approx((0.5 + 0 + 0.5) / 3)
    assert rows[1]["epsilon"] == pytest.approx(0.5)
    assert math.isnan(rows[2]["hypervolume"]) and rows[2]["error"] == "gone"


def run(
    method: str, seed: int, hypervolume: float | None, *, instance: str = "x", budget: int = 100
) -> dict[str, Any]:
    """Return the row of a run; None: it did not begin."""
    task = TASK | {"seed": seed, "evaluations": budget}
    cell = Cell(instance, method, task, {"problem": "temporal"})
    if hypervolume is None:
        return measure([cell], [None], [NOT_RUN])[0]
    (row,) = measure([cell], [front((1, 1))], [""])
    return row | {"hypervolume": hypervolume, "seconds": budget / 100, "evaluations": budget}


def test_ranks_and_tests_by_hand() -> None:
    values = np.array([[0.9, 0.5, 0.5], [0.8, 0.4, 0.4], [0.7, 0.6, 0.5], [0.9, 0.2, 0.3]])
    assert mean_ranks(values).tolist() == [1.0, 2.5, 2.5]
    from scipy.stats import wilcoxon

    raw = [float(wilcoxon(values[:, a] - values[:, b]).pvalue) for a, b in ((0, 1), (0, 2), (1, 2))]
    least, middle, _ = sorted(raw)
    expected = [min(1, 3 * least), min(1, max(3 * least, 2 * middle)), 1.0]
    assert sorted(holm(raw)) == pytest.approx(expected)
    rows = [run("abc"[k], seed, v) for seed, line in enumerate(values) for k, v in enumerate(line)]
    told = {(c.first, c.second): c for c in comparisons(rows)}
    assert [told["ab"[0], o].p for o in "bc"] == pytest.approx(holm(raw)[:2])
    assert told["a", "b"].pairs == 4 and told["a", "b"].difference == pytest.approx(0.4)
    same = comparisons([run(m, seed, 1.0) for m in "ab" for seed in range(5)])
    assert [c.p for c in same] == [1.0]


@pytest.mark.parametrize("methods", [2, 3, 4])
def test_so_many_pairs_are_needed(methods: int) -> None:
    """With as few as one less, even the clearest difference is not significant."""
    for pairs, significant in ((pairs_needed(methods), True), (pairs_needed(methods) - 1, False)):
        rows = [
            run(str(k), seed, 0.5 + 0.1 * k + 0.001 * k * seed)
            for k in range(methods)
            for seed in range(pairs)
        ]
        assert (min(c.p for c in comparisons(rows)) < 0.05) == significant
        assert ("cannot be significant" in page("s", rows)) != significant


def test_what_did_not_run_is_left_out_everywhere() -> None:
    """Nor are methods compared on instances, seeds and budgets that only one of them has."""
    rows = [
        run("nsga2", s, 0.9, instance=i, budget=b) for i in "xy" for s in (1, 2) for b in (1, 9)
    ]
    rows += [run("nsga3", s, 0.8, instance="x", budget=b) for s in (1, 2) for b in (1, 9)]
    rows += [run("nsga3", s, None, instance="y", budget=b) for s in (1, 2) for b in (1, 9)]
    for row in rows:  # on y nsga2 is much better, and nobody else has run there
        row["hypervolume"] += 0.09 * (row["instance"] == "y")
    whole = page("s", rows)
    assert "12 of 16 runs ended: 12 with a front. The other 4 are left out" in whole
    budgets = re.search(r"<caption>Each method at each budget.*?</table>", whole, re.DOTALL)[0]
    cells_of = re.findall(r"<tr>(.*?)</tr>", budgets)[1:]
    table = [re.findall(r"<td[^>]*>(.*?)</td>", row) for row in cells_of]
    assert [row[1:3] for row in table] == [["2", "0.9000"]] * 2 + [["2", "0.8000"]] * 2
    assert [(c.pairs, round(c.difference, 3)) for c in comparisons(rows)] == [(2, 0.1)]
    best = {(line.instance, line.method): line.best for line in measures.lines(rows).itertuples()}
    assert best == {("x", "nsga2"): True, ("x", "nsga3"): False, ("y", "nsga2"): False}
    assert "0 evaluations" not in whole and "not reached" not in whole


def test_a_sweep_that_is_stopped_tells_of_what_ran(tmp_path: Path) -> None:
    """All methods on the first seed come first; the page and the table count what ended."""
    budget = Budget(evaluations=10**15)

    def stop(done: int, _total: int) -> None:
        if done == 9:
            budget.cancel()

    result = placeopt.sweep(PLAN, budget=budget, on_cell=stop, folder=tmp_path)
    ran = [row for row in result.rows if not row["error"]]
    assert len(ran) == 9 and sum(row["seed"] == 1 for row in ran) == 8
    assert {row["error"] for row in result.rows if row["error"]} == {NOT_RUN}
    rows = list(csv.DictReader((tmp_path / "results.csv").open()))
    assert len(rows) == 9 and min(float(row["evaluations"]) for row in rows) > 0
    assert "9 of 24 runs ended" in (tmp_path / "index.html").read_text()
    assert len(result.to_pandas()) == 9


def test_the_page_is_rewritten_as_runs_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A browser reads it again until the last."""
    monkeypatch.setattr("placeopt.sweeps.run.WRITE_SECONDS", 0.0)
    monkeypatch.setattr("placeopt.sweeps.run.WRITE_SHARE", math.inf)
    pages = []

    def look(_done: int, _total: int) -> None:
        if (tmp_path / "index.html").exists():
            pages.append((tmp_path / "index.html").read_text())

    plan = PLAN | {"seeds": [1], "evaluations": [50]}
    placeopt.sweep(plan, on_cell=look, folder=tmp_path)
    told = [re.search(r"(\d+) of 4 runs ended", text)[1] for text in pages]
    assert told == ["1", "2", "3", "3"] and all('http-equiv="refresh"' in text for text in pages)
    last = (tmp_path / "index.html").read_text()
    assert "4 of 4 runs ended" in last and "refresh" not in last


def test_archives_are_measured_at_equal_size() -> None:
    """A method that keeps more points than another has no gain from that."""
    many = front(*[(float(k), 40.0 - k) for k in range(41)])
    few = many.subset(10)
    cell = Cell("x", "m", TASK, {"problem": "temporal"})
    one, other = measure([cell, cell], [many, few], ["", ""], points=10)
    assert (one["points"], one["points_found"], other["points"]) == (10, 41, 10)
    assert one["hypervolume"] == other["hypervolume"] == pytest.approx(1.0)
    assert measure([cell, cell], [many, few], ["", ""])[1]["hypervolume"] < 0.99
    reference = [float(part.split("=")[1]) for part in one["reference"].split(", ")]
    share = few[:5].hypervolume(reference) / few.hypervolume(reference)
    assert measure([cell, cell], [few, few[:5]], ["", ""])[1]["hypervolume"] == pytest.approx(share)
    assert reference == pytest.approx([44.0, 44.0])


def test_the_table_as_csv_and_latex() -> None:
    """The same figures; names are escaped; the best is bold where methods compare."""
    rows = [run(m, s, v) for m, v in (("ns_2", 0.9), ("b & c", 0.8)) for s in (1, 2)]
    (first, second) = csv.DictReader(measures.as_csv(rows).splitlines())
    assert (first["method"], first["hypervolume_median"], first["best"]) == ("ns_2", "0.9", "1")
    assert (second["runs"], second["best"]) == ("2", "0")
    text = measures.as_latex(rows, "A note.")
    assert r"x & ns\_2 & 2 & \textbf{0.9000} & 0.9000 to 0.9000 &" in text
    assert r"x & b \& c & 2 & 0.8000 &" in text and text.startswith("% placeopt ")
    assert text.count("&") - text.count(r"\&") == 3 * 8 and r"\bottomrule" in text


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"methods": ["moeadd"]}, "unknown method 'moeadd'"),
        ({"methods": [{"name": "moead", "neighbors": 3}]}, "has no parameter 'neighbors'"),
        ({"instances": [{"problem": "temporal", "size": 3}]}, "has no size 'size'"),
        ({"instances": ["nowhere.json"]}, "nowhere.json"),
        ({"instances": [{"problem": "temporal"}] * 2}, "stands twice"),
        ({"seeds": []}, "seeds"),
        ({"seeds": [1.5]}, "seeds"),
        ({"sedes": [1]}, "sedes"),
        ({"evaluations": [0]}, "evaluations"),
        ({"objectives": ["cost"]}, "unknown temporal objective 'cost'"),
    ],
)
def test_a_wrong_plan_is_refused_before_anything_runs(change: dict[str, Any], message: str) -> None:
    with pytest.raises(PlaceoptError, match=message.replace("(", r"\(")):
        placeopt.sweep(PLAN | change, on_cell=lambda *n: pytest.fail("it ran"))


def test_plans_that_are_no_toml(tmp_path: Path) -> None:
    (tmp_path / "p.toml").write_text("name = ")
    with pytest.raises(DocumentError, match="not TOML"):
        read(tmp_path / "p.toml")
    with pytest.raises(DocumentError, match=r"missing\.toml"):
        read(tmp_path / "missing.toml")
    with pytest.raises(DocumentError, match="not a folder"):
        RunDirectory(tmp_path / "p.toml")
    with pytest.raises(UsageError):
        cells(read(PLAN | {"objectives": []}))


def test_a_limit_keeps_what_was_found() -> None:
    result = placeopt.sweep(PLAN | {"evaluations": [10**7]}, budget=Budget(seconds=1.0))
    assert not result.complete
    for row, found in zip(result.rows, result.fronts, strict=True):
        assert (row["error"] == NOT_RUN) == (found is None)


def test_a_killed_sweep_takes_up_what_is_there(tmp_path: Path) -> None:
    """SIGKILL in the middle; the same command again runs only what is missing."""
    (tmp_path / "plan.toml").write_text(
        'methods = ["moead"]\nseeds = [1, 2, 3, 4, 5, 6]\nevaluations = [1000, 1100]\n'
        'instances = [{problem = "temporal", seed = 1, requests = 8}]\n'
    )
    command = [sys.executable, "-m", "placeopt", "sweep", "plan.toml", "--run-dir", "out"]
    where = {"cwd": tmp_path, "env": os.environ | {"PYTHONPATH": str(ROOT)}}
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL, **where)  # type: ignore[call-overload]
    runs = tmp_path / "out" / "runs"
    for _ in range(2400):
        if len(list(runs.glob("*.front.json"))) >= 2 or process.poll() is not None:
            break
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    kept = {p: p.read_bytes() for p in runs.glob("*.front.json")}
    assert 2 <= len(kept) < 12
    done = subprocess.run(command, capture_output=True, text=True, **where)  # type: ignore[call-overload]
    assert done.returncode == 0, done.stderr
    assert all(p.read_bytes() == content for p, content in kept.items())
    assert len(list(runs.glob("*.front.json"))) == 12
    assert not list(runs.glob(".*")) and (tmp_path / "out" / "index.html").exists()
    tasks = [json.loads(p.read_text()) for p in runs.glob("*.task.json")]
    assert {task["seed"] for task in tasks} == {1, 2, 3, 4, 5, 6}


def test_the_example_is_a_sweep_over_five_problems() -> None:
    """Two instances of each, three methods, five seeds; a small form of it runs."""
    example = read(ROOT / "examples" / "study.toml")
    assert len(cells(example)) == 2 * 5 * 3 * 5 * len(example.evaluations)
    small = example.model_dump() | {"seeds": [1], "evaluations": [30]}
    result = placeopt.sweep(small)
    kinds = [(row["problem"], row["method"]) for row in result.rows]
    assert result.complete and len(set(kinds)) == 15 and len(kinds) == 30
