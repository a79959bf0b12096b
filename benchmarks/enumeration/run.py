"""`placeopt.enumerate` beside textbook algorithms on the same solver, in the same process.

    PLACEOPT_DATA=folder python benchmarks/enumeration/run.py [complete] [anytime] [jobs]

Writes ``results.md`` beside this file from ``results.json``, which keeps the rows of the parts that
are not measured again. See `instances` for the published sets; without them the generated instances
alone are measured. About half an hour on one core.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import placeopt
from placeopt.core.budget import Budget
from placeopt.core.dominance import hypervolume

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from machine import facts, table
from textbook import ALGORITHMS, TwoStages

from instances import (
    Instance,
    correlated_knapsack,
    data_folder,
    generated_facilities,
    generated_knapsack,
    kirlik,
)

HERE = Path(__file__).parent
LIMIT = 120.0
#: When the hypervolume of a search that goes on is looked at, CPU seconds.
MARKS = (10.0, 60.0)


class CpuBudget(Budget):
    """A budget whose clock counts the CPU seconds of this process: other load does not matter."""

    def __init__(self, seconds: float):
        self._cpu = time.process_time()
        super().__init__(None, seconds)

    @property
    def seconds(self) -> float:
        """CPU seconds since the run began."""
        return time.process_time() - self._cpu


def complete_instances() -> Iterator[Instance]:
    """Yield the instances that are enumerated completely."""
    folder = data_folder()
    if folder is not None:
        for kind, name in (
            ("AP", "p-3_n-5_ins-1"),
            ("AP", "p-3_n-5_ins-2"),
            ("KP", "p-3_n-10_ins-1"),
            ("KP", "p-3_n-20_ins-2"),
            ("KP", "p-3_n-20_ins-3"),
            ("KP", "p-4_n-10_ins-1"),
            ("KP", "p-4_n-20_ins-1"),
            ("ILP", "p-3_n-10_m-5_ins-1"),
            ("AP", "p-3_n-10_ins-1"),
            ("KP", "p-3_n-30_ins-1"),
        ):
            yield kirlik(folder, kind, name)
        for path in ("random/3D/25_1.in", "random/4D/20_1.in"):
            yield correlated_knapsack(folder, path)
    yield generated_knapsack(3, 20, 1)
    yield generated_facilities(3, 4, 5, 1)


def large_instances() -> Iterator[Instance]:
    """Yield instances that are too large for a minute."""
    folder = data_folder()
    if folder is not None:
        yield kirlik(folder, "AP", "p-3_n-20_ins-1")
        yield kirlik(folder, "KP", "p-3_n-70_ins-5")
        yield kirlik(folder, "KP", "p-4_n-30_ins-1")
    else:
        yield generated_knapsack(3, 80, 1)


# -- measures --------------------------------------------------------------------------------------


def ours(instance: Instance, **options: Any) -> tuple[placeopt.Front, float, float]:
    """Return the front, CPU seconds and wall seconds."""
    model = instance.model()
    cpu, wall = time.process_time(), time.perf_counter()
    front = placeopt.enumerate(model, **options)
    return front, time.process_time() - cpu, time.perf_counter() - wall


def in_values(run: TwoStages, points: np.ndarray) -> np.ndarray:
    """Return points in units as values."""
    return points * [objective.step for objective in run.compiled.objectives]


def measure_complete() -> list[dict[str, Any]]:
    """Return calls, CPU seconds and equality for every instance that ends in time."""
    rows: list[dict[str, Any]] = []
    for instance in complete_instances():
        rows.append(_complete_row(instance))
        keep("complete", rows)
    return rows


def _complete_row(instance: Instance) -> dict[str, Any]:
    plain, cpu, _ = ours(instance)
    spread, spread_cpu, _ = ours(instance, budget=CpuBudget(LIMIT))
    same = None
    if instance.front is not None:
        same = np.array_equal(np.unique(plain.values, axis=0), instance.front)
    row: dict[str, Any] = {
        "name": instance.name,
        "goals": len(instance.costs),
        "points": len(plain),
        "published": same,
        "calls": plain.runs[0].parameters["questions"],
        "second": plain.runs[0].solver_calls - plain.runs[0].parameters["questions"],
        "cpu": cpu,
        "spread calls": spread.runs[0].parameters["questions"],
        "spread cpu": spread_cpu,
        "spread status": spread.runs[0].parameters["status"],
    }
    for name, algorithm in ALGORITHMS.items():
        began = time.process_time()
        run = algorithm(instance.model(), CpuBudget(5 * LIMIT))
        agrees = np.allclose(in_values(run, run.points), np.unique(plain.values, axis=0))
        row[name] = {
            "points": len(run.points),
            "calls": run.calls - run.second,
            "second": run.second,
            "cpu": time.process_time() - began,
            "agrees": bool(agrees) if len(run.points) == len(plain) else False,
        }
    return row


def measure_anytime() -> list[dict[str, Any]]:
    """Return the share of the hypervolume that each search has at the marks, by CPU seconds."""
    rows = []
    for instance in large_instances():
        traces: dict[str, list[tuple[float, np.ndarray]]] = {"placeopt": []}
        budget = CpuBudget(MARKS[-1])
        front = placeopt.enumerate(
            instance.model(),
            budget=budget,
            on_point=lambda p, t=traces["placeopt"], b=budget: t.append((b.seconds, p.values)),  # type: ignore[misc]
        )
        for name, algorithm in ALGORITHMS.items():
            run = algorithm(instance.model(), CpuBudget(MARKS[-1]))
            traces[name] = [(when, in_values(run, y[None])[0]) for when, y in run.trace]
        rows.append({"name": instance.name, "goals": len(instance.costs)})
        rows[-1] |= _shares(instance, traces)
        rows[-1] |= {"bounds valid": _bounds_hold(front, instance.front)}
        keep("anytime", rows)
    return rows


def _shares(
    instance: Instance, traces: dict[str, list[tuple[float, np.ndarray]]]
) -> dict[str, list[float]]:
    everything = [y for trace in traces.values() for _, y in trace]
    known = np.array(everything) if instance.front is None else instance.front
    reference = known.max(axis=0) + 1
    whole = hypervolume(known, reference)
    return {
        name: [
            hypervolume(np.array([y for when, y in trace if when <= mark]), reference) / whole
            for mark in MARKS
        ]
        for name, trace in traces.items()
    }


def _bounds_hold(front: placeopt.Front, published: np.ndarray | None) -> bool | None:
    if published is None or not front.bounds:
        return None
    bounds = np.array(front.bounds)
    return all(bool((bounds <= y + 1e-9).all(axis=1).any()) for y in published)


def measure_jobs() -> list[dict[str, Any]]:
    """Return wall seconds with one and two workers; the points must be the same."""
    folder = data_folder()
    instances = [generated_knapsack(3, 40, 1)]
    if folder is not None:
        instances = [kirlik(folder, "KP", "p-3_n-30_ins-1"), kirlik(folder, "AP", "p-3_n-10_ins-1")]
    rows = []
    for instance in instances:
        runs = [ours(instance, jobs=jobs) for jobs in (1, 2)]
        (one, _, wall_one), (two, cpu_two, wall_two) = runs
        rows.append(
            {
                "name": instance.name,
                "points": len(one),
                "same": one.points == two.points,
                "one": wall_one,
                "two": wall_two,
                "cpu of two": cpu_two,
            }
        )
        keep("jobs", rows)
    return rows


# -- tables ----------------------------------------------------------------------------------------


def page(rows: dict[str, Any]) -> str:
    """Return the page of results."""
    lines = [
        "# `placeopt.enumerate` beside textbook algorithms",
        "",
        "Written by `run.py`; `instances.py` says where the published sets come from.",
        *(f"* {part}: {rows[part]['facts']}" for part in PARTS if part in rows),
        "",
    ]
    for part, (_, describe) in PARTS.items():
        if part in rows:
            lines += [*describe(rows[part]["rows"]), ""]
    return "\n".join(lines)


def _complete_lines(rows: list[dict[str, Any]]) -> list[str]:
    body = [
        [
            r["name"],
            r["points"],
            {True: "equal", False: "DIFFERENT", None: "-"}[r["published"]],
            _per(r["calls"], r),
            _per(r["spread calls"], r) if r["spread status"] == "complete" else r["spread status"],
            f"{r['cpu']:.1f}",
            f"{r['spread cpu']:.1f}",
            *(
                cell
                for name in ALGORITHMS
                for cell in (
                    _per(r[name]["calls"], r),
                    f"{r[name]['cpu']:.1f}",
                    _agreement(r[name]),
                )
            ),
        ]
        for r in rows
    ]
    header = ["instance", "points", "published set", "calls a point", "spread", "CPU s", "spread"]
    for name in ALGORITHMS:
        header += [f"{name}: calls a point", "CPU s", "same points"]
    return ["## Complete fronts", "", *_complete_words(rows), "", *table(header, body)]


def _per(calls: int, row: dict[str, Any]) -> str:
    return f"{calls / row['points']:.2f}"


def _agreement(run: dict[str, Any]) -> str:
    return "yes" if run["agrees"] else f"NO ({run['points']})"


def _complete_words(rows: list[dict[str, Any]]) -> list[str]:
    three = [r for r in rows if r["goals"] == 3]
    points = sum(r["points"] for r in three)
    calls = sum(r["calls"] for r in three) / points
    done = [r for r in three if r["spread status"] == "complete"]
    spread = sum(r["spread calls"] for r in done) / sum(r["points"] for r in done)
    second = sum(r["second"] for r in three) / points
    cpu = sum(r["cpu"] for r in rows)
    best = min(sum(r[name]["cpu"] for r in rows) for name in ALGORITHMS)
    known = [r["published"] for r in rows if r["published"] is not None]
    return [
        "*Calls* are questions to the solver; *spread* is the order of runs with a time limit. "
        "HiGHS is asked again without presolve wherever it says infeasible, by all three: "
        f"{second:.2f} further calls a point, not counted above.",
        "",
        f"* published sets that are equal: {sum(known)} of {len(known)}{_verdict(all(known))}",
        f"* three goals, calls a point over all: {calls:.2f}, at most 2.1{_verdict(calls <= 2.1)}",
        f"* the same in the spread order: {spread:.2f}, at most 2.4{_verdict(spread <= 2.4)}",
        f"* CPU in the sum, of the best textbook algorithm: {cpu / best:.2f}, at most .9"
        f"{_verdict(cpu <= 0.9 * best)}",
    ]


def _verdict(met: bool) -> str:
    return ": met" if met else ": MISSED"


def _anytime_lines(rows: list[dict[str, Any]]) -> list[str]:
    names = ["placeopt", *ALGORITHMS]
    header = ["instance", *(f"{n}, {mark:.0f} s" for mark in MARKS for n in names)]
    body, met = [], True
    for r in rows:
        cells = [f"{r[n][k]:.3f}" for k in range(len(MARKS)) for n in names]
        met &= all(r["placeopt"][k] >= max(r[n][k] for n in ALGORITHMS) for k in range(len(MARKS)))
        body.append([r["name"], *cells, {True: "yes", False: "NO", None: "-"}[r["bounds valid"]]])
    return [
        "## Stopped early",
        "",
        "Share of the hypervolume of the published set after 10 and 60 CPU seconds. Bounds are "
        "checked against every vector of the set.",
        "",
        f"* at least that of the best textbook order everywhere{_verdict(met)}",
        "",
        *table([*header, "bounds valid"], body),
    ]


def _jobs_lines(rows: list[dict[str, Any]]) -> list[str]:
    body = [
        [
            r["name"],
            r["points"],
            "yes" if r["same"] else "NO",
            f"{r['one']:.1f}",
            f"{r['two']:.1f}",
            f"{r['one'] / r['two']:.2f}",
            f"{r['cpu of two'] / r['two']:.2f}",
        ]
        for r in rows
    ]
    met = all(r["one"] / r["two"] >= 1.6 for r in rows if r["one"] > 20)
    header = ["instance", "points", "same points", "1 worker, s", "2 workers, s", "times faster"]
    return [
        "## Two workers",
        "",
        f"* at least 1.6 times one on instances above 20 s{_verdict(met)}",
        "",
        "Other programs share the processors: compare the load average above. Two workers of a "
        "loaded machine get a larger share of it than one.",
        "",
        *table([*header, "processors that two workers got"], body),
    ]


PARTS = {
    "complete": (measure_complete, _complete_lines),
    "anytime": (measure_anytime, _anytime_lines),
    "jobs": (measure_jobs, _jobs_lines),
}


def keep(part: str, rows: list[dict[str, Any]]) -> None:
    """Write what is measured so far, and the page."""
    file = HERE / "results.json"
    everything = json.loads(file.read_text()) if file.is_file() else {}
    everything[part] = {"facts": facts("highspy", "pyomo", "numpy"), "rows": rows}
    file.write_text(json.dumps(everything, indent=1, default=float) + "\n")
    (HERE / "results.md").write_text(page(everything))
    print(rows[-1], file=sys.stderr, flush=True)


def main() -> None:
    """Measure the parts that are named, all by default."""
    for part in sys.argv[1:] or PARTS:
        PARTS[part][0]()


if __name__ == "__main__":
    main()
