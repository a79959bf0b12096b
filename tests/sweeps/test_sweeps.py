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
from browser import browser, needs_chromium

import placeopt
from placeopt.core.budget import Budget
from placeopt.core.errors import DocumentError, PlaceoptError, UsageError
from placeopt.core.front import Front, InstanceName, Objective, Point
from placeopt.core.run_directory import RunDirectory
from placeopt.sweeps.measures import mean_ranks, measure, wilcoxon_holm
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
def test_a_browser_shows_the_page(tmp_path: Path) -> None:
    """It asks no network for anything."""
    placeopt.sweep(PLAN | {"methods": ["greedy", "moead"]}).write(tmp_path)
    with browser(tmp_path) as page:
        page.open(tmp_path / "index.html")
        assert page.run("document.querySelectorAll('svg').length") == 2
        text = page.run("document.body.innerText")
        assert "Convergence" in text and "mean rank" in text
        assert not page.errors and not page.requests


def front(*values: tuple[float, float]) -> Front:
    goals = (Objective("a", ""), Objective("b", ""))
    name = InstanceName("temporal", "x", "0")
    return Front(name, goals, tuple(Point(v, {}) for v in values))


def test_measures_by_hand() -> None:
    cell = Cell("x", "m", {"seed": 1, "evaluations": 1, "seconds": None}, {"problem": "temporal"})
    whole, part = front((0, 4), (2, 2), (4, 0)), front((2, 2))
    rows = measure([cell, cell, cell], [whole, part, None], ["", "", "gone"])
    assert [row["hypervolume"] for row in rows[:2]] == pytest.approx([1, 0.36 / 0.46])
    # Scaled: the union is (0, 1), (.5, .5), (1, 0); (.5, .5) is .5 behind two of them.
    assert rows[1]["igd_plus"] == pytest.approx((0.5 + 0 + 0.5) / 3)
    assert rows[1]["epsilon"] == pytest.approx(0.5)
    assert math.isnan(rows[2]["hypervolume"]) and rows[2]["error"] == "gone"


def test_ranks_and_tests_by_hand() -> None:
    values = np.array([[0.9, 0.5, 0.5], [0.8, 0.4, 0.4], [0.7, 0.6, 0.5], [0.9, 0.2, 0.3]])
    assert mean_ranks(values).tolist() == [1.0, 2.5, 2.5]
    from scipy.stats import wilcoxon

    raw = sorted(wilcoxon(values[:, a] - values[:, b]).pvalue for a, b in ((0, 1), (0, 2), (1, 2)))
    holm = wilcoxon_holm(values)
    assert sorted(holm.values()) == pytest.approx(
        [min(1, 3 * raw[0]), min(1, max(3 * raw[0], 2 * raw[1])), 1.0]
    )
    assert wilcoxon_holm(np.ones((5, 2))) == {(0, 1): 1.0}


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
        assert bool(row["error"]) == (found is None)


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
