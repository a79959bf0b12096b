"""Supported points of two-goal knapsacks by `placeopt.ask.supported`: calls and CPU seconds, beside
what MultiObjectiveAlgorithms.jl states for the same instances.

    PLACEOPT_DATA=folder python benchmarks/enumeration/supported.py

Writes ``supported.md`` beside this file; three minutes of CPU. The folder has clones of vOptLib
(github.com/vOptSolver/vOptLib) and MultiObjectiveAlgorithms.jl (github.com/jump-dev), which has the
instances and results of O. Dowson, X. Gandibleux, G. Kof, INFORMS Journal on Computing, 2025.
Without them a knapsack of the same size is generated.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections.abc import Iterator
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyomo.environ as pyo

import placeopt
from placeopt import ask

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import stamps
from machine import facts, table
from voptlib import read_voptlib

from instances import generated_knapsack, knapsack

HERE = Path(__file__).parent
SOLVERS = ("highs", "cp-sat")
#: Files of vOptLib below UKP/instances.
FILES = ("1A/2KP100-50", "1B-A/2KP100-1A", "1B-A/2KP200-1A", "1B-B/2KP200-1B", "1B-A/2KP300-1A")
#: Tolerances of the sandwich.
TOLERANCES = (0.001, 0.01, 0.05)


@dataclass(frozen=True)
class Stated:
    """What MultiObjectiveAlgorithms.jl states for its dichotomy with HiGHS."""

    points: str = "-"
    calls: str = "-"
    seconds: str = "-"


def data(*parts: str) -> Path:
    return Path(os.environ.get("PLACEOPT_DATA", "")).joinpath(*parts)


def instances() -> Iterator[tuple[str, pyo.ConcreteModel, Stated]]:
    """Yield names, models and what is stated."""
    folder, theirs = data("vOptLib", "UKP", "instances"), data("MultiObjectiveAlgorithms.jl")
    if not folder.is_dir() or not theirs.is_dir():
        instance = generated_knapsack(2, 200, 1)
        yield instance.name, instance.model(), Stated()
        return
    for name in FILES:
        yield name.split("/")[1], read_voptlib(folder / f"{name}.dat"), Stated()
    text = (theirs / "test" / "algorithms" / "test_Dichotomy.jl").read_text()
    text = text[text.index("function test_dichotomy_issue_191") :]
    profits = text[text.index("C = Float64[") + 12 :].split("]")[0].split()
    weights = text[text.index("w = Float64[") + 12 :].split("]")[0].split(",")
    numbers = np.array(profits, dtype=float).reshape(2, -1)
    instance = knapsack("2KP200 of their tests", numbers, np.array(weights, float), 5207.5, None)
    yield instance.name, instance.model(), Stated("38 or 39", "70 to 80")
    paper = theirs / "papers" / "Dowson_et_al_2026"
    log = (paper / "results.log").read_text().splitlines()
    for number in range(1, 6):
        lines = (paper / "MOKP" / f"MOKP_p-2_n-200_{number}.dat").read_text().splitlines()
        numbers, weights = (np.array(json.loads(line), dtype=float) for line in lines[3:5])
        instance = knapsack(f"MOKP p-2 n-200 {number}", numbers, weights, float(lines[2]), None)
        yield instance.name, instance.model(), _stated(log, number)


def _stated(log: list[str], number: int) -> Stated:
    head = f'(solver = "HiGHS", alg = "Dichotomy", p = 2, n = 200, instance = {number},'
    line = next(line for line in log if line.startswith(head))
    points, seconds, calls = (
        re.search(rf"{name} = ([\d.]+)", line)[1]
        for name in ("result_count", "solve_time", "subproblem_count")
    )
    return Stated(points, calls, f"{float(seconds):.1f}")


def measured(model: pyo.ConcreteModel, **options: Any) -> tuple[placeopt.Front, float]:
    """Return the answer and its CPU seconds."""
    began = time.process_time()
    front = ask.supported(model, **options)
    return front, time.process_time() - began


def on_hull(front: placeopt.Front) -> bool:
    """Whether points lie on the convex hull of themselves, in whole numbers."""
    v = front.values[np.argsort(front.values[:, 0])].astype(int)
    turns = [
        (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])
        for a, b, c in zip(v, v[1:], v[2:], strict=False)
    ]
    return all(turn * front.objectives[0].sign >= 0 for turn in turns)


def main() -> None:
    """Measure, and write the page."""
    rows, near, calls, same = [], [], [], True
    for solver in SOLVERS:  # loading the solvers does not count
        ask.supported(generated_knapsack(2, 20, 1).model(), solver=solver)
    for name, model, stated in instances():
        values = []
        for solver in SOLVERS:
            front, cpu = measured(model, solver=solver)
            run = front.runs[0]
            calls.append(run.solver_calls / len(front))
            values.append(front.values)
            hull = "yes" if on_hull(front) else "NO"
            row = [name, solver, len(front), run.parameters["status"], hull, run.solver_calls]
            rows.append([*row, f"{calls[-1]:.2f}", f"{cpu:.1f}", *astuple(stated)])
            print(rows[-1], file=sys.stderr, flush=True)
        same &= np.array_equal(*values)
        if stated == Stated():
            near += [_within(name, model, tolerance) for tolerance in TOLERANCES]
    stamps.write(HERE / "supported.md", page(rows, near, max(calls), same), __file__, {})


def _within(name: str, model: pyo.ConcreteModel, tolerance: float) -> list[Any]:
    front, cpu = measured(model, tolerance=tolerance, solver="cp-sat")
    run = front.runs[0]
    reached = tolerance * run.parameters["reached"]
    return [name, tolerance, len(front), run.solver_calls, f"{reached:.2g}", f"{cpu:.1f}"]


def page(rows: list[list[Any]], near: list[list[Any]], calls: float, same: bool) -> str:
    """Return the page of results."""
    header = ["instance", "solver", "supported points", "status", "on the hull", "calls"]
    header += ["calls a point", "CPU s", "stated: points", "calls", "s"]
    lines = [
        "# Supported points",
        "",
        f"Written by `supported.py`: {facts('highspy', 'ortools', 'pyomo', 'numpy')}",
        "",
        f"* calls a point: at most {calls:.2f}; at most 2.1: {'met' if calls <= 2.1 else 'MISSED'}",
        f"* the same points by both solvers: {'met' if same else 'MISSED'}",
        "",
        "*On the hull*: every point lies on the convex hull of all. *Stated* is what "
        "MultiObjectiveAlgorithms.jl says of its dichotomy with HiGHS, in its tests and in its "
        "paper: seconds on another machine. It looks for the corners of the hull, and finds some "
        "points between them by chance; here all of these are found.",
        "",
        *table(header, rows),
        "",
        "## Within a tolerance",
        "",
        "No solution is better than the hull of the points by more than this share of both ranges. "
        "*Reached* is what is proven. By CP-SAT.",
        "",
        *table(["instance", "tolerance", "points", "calls", "reached", "CPU s"], near),
        "",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
