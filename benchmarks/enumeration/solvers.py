"""The same enumeration by HiGHS and by CP-SAT: calls and CPU seconds a point.

    PLACEOPT_DATA=folder python benchmarks/enumeration/solvers.py

Writes ``solvers.md`` beside this file; about ten minutes of CPU. See `instances` for the published
sets; without them only the generated instances are measured.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import scipy.sparse as sp

import placeopt

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import stamps
from machine import facts, table

from instances import (
    Instance,
    assignment,
    data_folder,
    generated_facilities,
    generated_knapsack,
    kirlik,
    knapsack,
)

HERE = Path(__file__).parent
SOLVERS = ("highs", "cp-sat")
#: Instances of this name and items count for the target.
KNAPSACK = "three-goal knapsack"
#: Points that are looked for where the whole front takes minutes.
SOME = 60


@dataclass(frozen=True)
class Case:
    """An instance, its kind, and how many points are looked for; None: all."""

    kind: str
    instance: Instance
    points: int | None = SOME


def cases() -> Iterator[Case]:
    """Yield what is measured."""
    folder = data_folder()
    if folder is not None:
        for size, numbers in ((20, (1, 2, 3)), (30, (1, 2, 3)), (40, (1,))):
            for number in numbers:
                name = f"p-3_n-{size}_ins-{number}"
                yield Case(KNAPSACK, kirlik(folder, "KP", name), None)
        for size in (50, 70, 100):
            yield Case(KNAPSACK, kirlik(folder, "KP", f"p-3_n-{size}_ins-1"))
        yield Case("four-goal knapsack", kirlik(folder, "KP", "p-4_n-20_ins-1"), None)
        for size in (20, 30):
            name = f"p-3_n-{size}_m-{size // 2}_ins-1"
            yield Case("whole numbers", kirlik(folder, "ILP", name))
        for size in (5, 10, 20, 30):
            instance = kirlik(folder, "AP", f"p-3_n-{size}_ins-1")
            yield Case("assignment", instance, None if size <= 10 else SOME)
    for size in (20, 30):
        yield Case(KNAPSACK, generated_knapsack(3, size, 1), None)
    for size in (50, 200, 400):
        yield Case("two-goal knapsack", generated_knapsack(2, size, 1))
    for rows, columns in ((5, 30), (10, 30), (30, 100)):
        yield Case("knapsack of several rows", several_rows(rows, columns))
    for places, customers in ((6, 10), (8, 20), (15, 60)):
        yield Case("facilities", generated_facilities(3, places, customers, 1))
    for rows, columns in ((20, 60), (40, 100), (100, 300)):
        yield Case("covering", covering(rows, columns))
    for rows, columns in ((20, 60), (40, 120)):
        yield Case("packing", packing(rows, columns))
    yield Case("transport", transport(8))


def several_rows(rows: int, columns: int) -> Instance:
    """Return a knapsack with several capacities."""
    rng = np.random.default_rng(1)
    weights = rng.integers(1, 101, (rows, columns)).astype(float)
    name = f"generated-MKP_{rows}x{columns}"
    one = knapsack(name, rng.integers(1, 101, (3, columns)).astype(float), weights[0], 0.0, None)
    return replace(one, rows=sp.csr_matrix(weights), limits=weights.sum(axis=1) // 2)


def covering(rows: int, columns: int) -> Instance:
    """Return a set covering: every row by one of about a tenth of the columns."""
    rng = np.random.default_rng(1)
    A = (rng.random((rows, columns)) < 0.1).astype(float)
    A[np.arange(rows), rng.integers(columns, size=rows)] = 1
    costs, name = rng.integers(1, 101, (3, columns)).astype(float), f"generated-SC_{rows}x{columns}"
    return Instance(name, costs, sp.csr_matrix(-A), -np.ones(rows), False, 1.0)


def packing(rows: int, columns: int) -> Instance:
    """Return a set packing: every column needs two to four rows."""
    rng = np.random.default_rng(1)
    A = np.zeros((rows, columns))
    for column in range(columns):
        A[rng.choice(rows, rng.integers(2, 5), replace=False), column] = 1
    profits = rng.integers(1, 101, (3, columns)).astype(float)
    name = f"generated-SP_{rows}x{columns}"
    return Instance(name, -profits, sp.csr_matrix(A), np.ones(rows), False, 1.0)


def transport(size: int) -> Instance:
    """Return a transport of 20 units from and to every place."""
    costs = np.random.default_rng(1).integers(1, 50, (3, size * size)).astype(float)
    one = assignment(f"generated-TP_{size}", costs, None)
    return replace(one, limits=np.full(2 * size, 20.0), upper=20.0)


def measured(case: Case) -> dict[str, object]:
    """Return points, calls and CPU seconds of every solver, and whether the points are equal."""
    row: dict[str, object] = {}
    values = []
    for solver in SOLVERS:
        model, began = case.instance.model(), time.process_time()
        front = placeopt.enumerate(model, solver=solver, max_points=case.points)
        row[solver] = {
            "points": len(front),
            "calls": front.runs[0].solver_calls,
            "cpu": time.process_time() - began,
        }
        values.append(np.unique(front.values, axis=0))
    row["same"] = bool(np.array_equal(*values)) if case.points is None else None
    published = case.instance.front
    if case.points is None and published is not None:
        row["same"] = row["same"] and bool(np.array_equal(values[1], published))
    by_itself = placeopt.enumerate(case.instance.model(), max_points=1)
    row["chosen"] = by_itself.runs[0].parameters["solver"]
    return row


def page(cases: list[Case], rows: list[dict]) -> str:
    """Return the page of results."""
    body = []
    for case, row in zip(cases, rows, strict=True):
        highs, other = (row[s] for s in SOLVERS)
        cells = [f"{r['calls'] / r['points']:.2f}" for r in (highs, other)]
        cells += [f"{1e3 * r['cpu'] / r['points']:.1f}" for r in (highs, other)]
        same = {True: "yes", False: "NO", None: "-"}[row["same"]]
        points = highs["points"] if case.points is None else f"first {other['points']}"
        kind, name, items = case.kind, case.instance.name, case.instance.costs.shape[1]
        body.append([kind, name, items, points, same, *cells, f"{_share(row):.2f}", row["chosen"]])
    large = [
        row
        for case, row in zip(cases, rows, strict=True)
        if case.kind == KNAPSACK and case.instance.costs.shape[1] >= 30
    ]
    worst = max(_share(row) for row in large)
    same = [row["same"] for row in rows if row["same"] is not None]
    taken = [_share(row) for row in rows if row["chosen"] == "cp-sat"]
    left = [_share(row) for row in rows if row["chosen"] == "highs"]
    header = ["kind", "instance", "variables", "points", "equal"]
    header += ["HiGHS: calls a point", "CP-SAT: calls a point"]
    header += ["HiGHS: CPU ms a point", "CP-SAT: CPU ms a point", "share", "by itself"]
    return "\n".join(
        [
            "# The same enumeration by HiGHS and by CP-SAT",
            "",
            f"Written by `solvers.py`: {facts('highspy', 'ortools', 'pyomo', 'numpy')}",
            "",
            "*Share* is CP-SAT's CPU a point, of HiGHS's; *by itself* is the solver of "
            "`placeopt.enumerate(model)`. *Equal* means the same points, and those of the "
            "published set where there is one. Loading CP-SAT takes half a second, which does not "
            "count here.",
            "",
            f"* fronts that are equal: {sum(same)} of {len(same)}{_verdict(all(same))}",
            f"* three-goal knapsacks of 30 items and more: at most {worst:.2f} of HiGHS's CPU a "
            f"point; at most .5{_verdict(worst <= 0.5)}",
            f"* where CP-SAT is taken by itself: {min(taken):.2f} to {max(taken):.2f}; where HiGHS "
            f"is: {min(left):.2f} to {max(left):.2f}",
            "",
            *table(header, body),
            "",
        ]
    )


def _share(row: dict) -> float:
    highs, other = (row[s]["cpu"] / row[s]["points"] for s in SOLVERS)
    return other / highs


def _verdict(met: bool) -> str:
    return ": met" if met else ": MISSED"


def main() -> None:
    """Measure all cases; the first enumeration loads the solvers and does not count."""
    chosen, rows = list(cases()), []
    for solver in SOLVERS:
        placeopt.enumerate(generated_knapsack(2, 20, 1).model(), solver=solver, max_points=2)
    for case in chosen:
        rows.append(measured(case))
        print(case.instance.name, rows[-1], file=sys.stderr, flush=True)
    stamps.write(HERE / "solvers.md", page(chosen, rows), __file__, {})


if __name__ == "__main__":
    main()
