"""`placeopt.enumerate` beside textbook algorithms on the same solver, in the same process.

    PLACEOPT_DATA=folder python benchmarks/enumeration/run.py [PART...]

The parts are ``complete``, ``published``, ``anytime``, ``jobs``, ``presolve`` and ``pyaugmecon``;
all by default. Writes ``results.md`` beside this file from ``results.json``, which keeps the rows
of the parts that are not measured again. See `instances` for the published sets; without them the
generated instances alone are measured. pyaugmecon is run by the interpreter that the environment
variable ``PYAUGMECON_PYTHON`` names, by default this one, and left out where it has none. About 40
minutes on one core, half of them for ``published``.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import placeopt
from placeopt.core.budget import Budget
from placeopt.core.fronts.dominance import hypervolume
from placeopt.exact.compiled_model import CompiledModel
from placeopt.exact.goals import goals_of
from placeopt.exact.oracles import Oracle
from placeopt.exact.solvers import solve

sys.path.insert(1, str(Path(__file__).resolve().parents[1]))
import stamps
from harness import section, table
from machine import facts
from textbook import ALGORITHMS, TwoStages

from instances import (
    Instance,
    complete_instances,
    data_folder,
    generated_knapsack,
    kirlik,
    large_instances,
    published_instances,
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
        "calls": plain.runs[0].solver_calls,
        "cpu": cpu,
        "spread calls": spread.runs[0].solver_calls,
        "spread cpu": spread_cpu,
        "spread status": spread.runs[0].parameters["status"],
    }
    for name, algorithm in ALGORITHMS.items():
        began = time.process_time()
        run = algorithm(instance.model(), CpuBudget(5 * LIMIT))
        agrees = np.allclose(in_values(run, run.points), np.unique(plain.values, axis=0))
        row[name] = {
            "points": len(run.points),
            "calls": run.calls,
            "cpu": time.process_time() - began,
            "agrees": bool(agrees) if len(run.points) == len(plain) else False,
        }
    return row


def measure_published() -> list[dict[str, Any]]:
    """Return for every size of instance how many published sets are found in time, and equal."""
    rows: list[dict[str, Any]] = []
    for size, instances in published_instances():
        row: dict[str, Any] = {"size": size, "sets": 0, "ended": 0, "different": [], "points": 0}
        rows.append(row | {"cpu": 0.0})
        for instance in instances:
            front, cpu, _ = ours(instance, budget=CpuBudget(LIMIT))
            ended = front.runs[0].parameters["status"] == "complete"
            rows[-1]["sets"] += 1
            rows[-1]["ended"] += ended
            rows[-1]["points"] += len(front) if ended else 0
            rows[-1]["cpu"] += cpu if ended else 0.0
            if ended and not np.array_equal(np.unique(front.values, axis=0), instance.front):
                rows[-1]["different"].append(instance.name)
            keep("published", rows)
    return rows


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


@contextmanager
def clocked() -> Iterator[list[tuple[float, float]]]:
    """Record when every question to the solver began and ended."""
    asked: list[tuple[float, float]] = []
    minimise = Oracle.minimise

    def timed(self: Oracle, *arguments: Any, **options: Any) -> Any:
        began = time.perf_counter()
        try:
            return minimise(self, *arguments, **options)
        finally:
            asked.append((began, time.perf_counter()))

    Oracle.minimise = timed  # type: ignore[method-assign]
    try:
        yield asked
    finally:
        Oracle.minimise = minimise  # type: ignore[method-assign]


def measure_jobs() -> list[dict[str, Any]]:
    """Return CPU and wall seconds with one and two workers, in turn; the points must be the same.

    Idle is the share of the time, from the first question to the last, that workers have none.
    """
    folder = data_folder()
    instances = [generated_knapsack(3, 40, 1)]
    if folder is not None:
        names = (("AP", "p-3_n-10_ins-1"), ("KP", "p-3_n-30_ins-1"), ("KP", "p-3_n-40_ins-1"))
        instances = [kirlik(folder, kind, name) for kind, name in names]
    rows = []
    for instance in instances:
        runs: dict[int, list[Any]] = {1: [], 2: []}
        for jobs in (1, 2, 1, 2):
            with clocked() as asked:
                front, cpu, wall = ours(instance, jobs=jobs)
            span = max(end for _, end in asked) - min(begin for begin, _ in asked)
            busy = sum(end - begin for begin, end in asked)
            runs[jobs].append((front, cpu, wall, 1 - busy / (jobs * span)))
        sums = {j: [sum(run[k] for run in done) for k in (1, 2, 3)] for j, done in runs.items()}
        rows.append(
            {
                "name": instance.name,
                "points": len(runs[1][0][0]),
                "same": all(run[0].points == runs[1][0][0].points for run in runs[1] + runs[2]),
                "cpu": [sums[j][0] / 2 for j in (1, 2)],
                "wall": [sums[j][1] / 2 for j in (1, 2)],
                "idle": sums[2][2] / 2,
            }
        )
        keep("jobs", rows)
    return rows


def measure_presolve() -> list[dict[str, Any]]:
    """Return how often HiGHS gives a wrong answer, with its presolve and as placeopt asks.

    A program has limits just below two values of a published set; the set tells the answer.
    """
    folder = data_folder()
    if folder is None:
        return []
    rows = []
    for kind, size, count in (("AP", "n-5", 1000), ("KP", "n-10", 300)):
        row: dict[str, Any] = {"name": f"{kind} {size}, ten instances", "programs": 0}
        row |= {way: {"wrong": 0, "cpu": 0.0} for way in WAYS}
        rows.append(row)
        for number in range(1, 11):
            _ask_programs(row, kirlik(folder, kind, f"p-3_{size}_ins-{number}"), count)
            keep("presolve", rows)
    return rows


#: Cells of the largest grid that pyaugmecon is given: it needs some kilobytes for each.
MAX_CELLS = 1_000_000


#: Options of HiGHS by what they are called in the table.
WAYS = {"all rules": {"presolve_rule_off": 0}, "as placeopt asks": {}}


def _ask_programs(row: dict[str, Any], instance: Instance, count: int) -> None:
    """Add the answers for limits of one instance, at most `count` of them, to a row."""
    model = instance.model()
    goals = goals_of(model, None, None, None)
    compiled = CompiledModel(model, [g.objective for g in goals], [g.minimised for g in goals])
    assert instance.front is not None
    front = instance.front
    questions = [
        (main, (main + 1) % 3, (main + 2) % 3, a - 1, b - 1)
        for main in range(3)
        for a in np.unique(front[:, (main + 1) % 3])
        for b in np.unique(front[:, (main + 2) % 3])
    ]
    rng = np.random.default_rng(0)
    for k in rng.permutation(len(questions))[:count].tolist():
        main, second, third, a, b = questions[k]
        limits = np.full(3, math.inf)
        limits[[second, third]] = a, b
        inside = front[(front <= limits).all(axis=1), main]
        truth = inside.min(initial=math.inf)
        row["programs"] += 1
        for way, options in WAYS.items():
            began = time.process_time()
            program = compiled.within(main, limits.tolist())
            outcome = solve(program, absolute_gap=0.9, options=options)
            row[way]["cpu"] += time.process_time() - began
            row[way]["wrong"] += bool(abs(outcome.objective - truth) > 0.5)


def measure_pyaugmecon() -> list[dict[str, Any]]:
    """Return points, solves and CPU seconds of pyaugmecon for the published sets that it ends."""
    python = os.environ.get("PYAUGMECON_PYTHON", sys.executable)
    if subprocess.run([python, "-c", "import pyaugmecon"], capture_output=True).returncode:
        print(f"{python} has no pyaugmecon; this part is left out", file=sys.stderr)
        return []
    rows: list[dict[str, Any]] = []
    for instance in complete_instances():
        if instance.front is None:
            continue
        rows.append({"name": instance.name, "points": len(instance.front)})
        cells = (np.ptp(instance.front, axis=0).max() + 1) ** (len(instance.costs) - 1)
        if cells > MAX_CELLS:
            rows[-1]["why"] = f"{cells:,.0f} cells"
            keep("pyaugmecon", rows)
            continue
        command = [python, str(HERE / "augmecon.py"), instance.name]
        try:
            done = subprocess.run(command, capture_output=True, timeout=LIMIT, check=True)
        except (subprocess.TimeoutExpired, subprocess.CalledProcessError) as error:
            rows[-1]["why"] = type(error).__name__
            keep("pyaugmecon", rows)
            continue
        theirs = json.loads(done.stdout)
        known = set(map(tuple, instance.front.tolist()))
        found = known & set(map(tuple, theirs["points"]))
        front, cpu, _ = ours(instance)
        rows[-1] |= {"found": len(found), "solves": theirs["solves"], "cpu": theirs["cpu"]}
        rows[-1] |= {"ours": len(front), "our calls": front.runs[0].solver_calls, "our cpu": cpu}
        keep("pyaugmecon", rows)
    return rows


# -- tables ----------------------------------------------------------------------------------------


def page(rows: dict[str, Any]) -> str:
    """Return the page of results."""
    told = [f"* {part}: {rows[part]['facts']}" for part in PARTS if part in rows]
    about = "Written by `run.py`; `instances.py` says where the published sets come from."
    head = ["# `placeopt.enumerate` beside textbook algorithms", "\n".join([about, *told])]
    parts = [describe(rows[part]["rows"]) for part, (_, describe) in PARTS.items() if part in rows]
    return "\n\n".join([*head, *parts])


def _complete(rows: list[dict[str, Any]]) -> str:
    equal = {True: "equal", False: "DIFFERENT", None: "-"}
    body = []
    for r in rows:
        done = r["spread status"] == "complete"
        row = [r["name"], r["points"], equal[r["published"]], _per(r["calls"], r)]
        row += [_per(r["spread calls"], r) if done else r["spread status"]]
        row += [f"{r['cpu']:.1f}", f"{r['spread cpu']:.1f}"]
        for name in ALGORITHMS:
            agrees = "yes" if r[name]["agrees"] else f"NO ({r[name]['points']})"
            row += [_per(r[name]["calls"], r), f"{r[name]['cpu']:.1f}", agrees]
        body.append(row)
    others = "".join(f" | {name}: calls a point | CPU s | same points" for name in ALGORITHMS)
    head = f"instance | points | published set | calls a point | spread | CPU s | spread{others}"
    return section("Complete fronts", _complete_words(rows), table(head, body))


def _per(calls: int, row: dict[str, Any]) -> str:
    return f"{calls / row['points']:.2f}"


def _complete_words(rows: list[dict[str, Any]]) -> list[str]:
    three = [r for r in rows if r["goals"] == 3]
    calls = sum(r["calls"] for r in three) / sum(r["points"] for r in three)
    done = [r for r in three if r["spread status"] == "complete"]
    spread = sum(r["spread calls"] for r in done) / sum(r["points"] for r in done)
    cpu = sum(r["cpu"] for r in rows)
    best = min(sum(r[name]["cpu"] for r in rows) for name in ALGORITHMS)
    known = [r["published"] for r in rows if r["published"] is not None]
    return [
        "*Calls* are questions to the solver; *spread* is the order of runs with a time limit.",
        "",
        f"* published sets that are equal: {sum(known)} of {len(known)}{_verdict(all(known))}",
        f"* three goals, calls a point over all: {calls:.2f}, at most 2.1{_verdict(calls <= 2.1)}",
        f"* the same in the spread order: {spread:.2f}, at most 2.4{_verdict(spread <= 2.4)}",
        f"* CPU in the sum, of the best textbook algorithm: {cpu / best:.2f}, at most .9"
        f"{_verdict(cpu <= 0.9 * best)}",
    ]


def _verdict(met: bool) -> str:
    return ": met" if met else ": MISSED"


def _anytime(rows: list[dict[str, Any]]) -> str:
    names, valid = ["placeopt", *ALGORITHMS], {True: "yes", False: "NO", None: "-"}
    body, met = [], True
    for r in rows:
        cells = [f"{r[n][k]:.3f}" for k in range(len(MARKS)) for n in names]
        met &= all(r["placeopt"][k] >= max(r[n][k] for n in ALGORITHMS) for k in range(len(MARKS)))
        body.append([r["name"], *cells, valid[r["bounds valid"]]])
    marks = " | ".join(f"{name}, {mark:.0f} s" for mark in MARKS for name in names)
    return section(
        "Stopped early",
        "Share of the hypervolume of the published set after 10 and 60 CPU seconds. Bounds are "
        "checked against every vector of the set.",
        f"* at least that of the best textbook order everywhere{_verdict(met)}",
        table(f"instance | {marks} | bounds valid", body),
    )


def _jobs(rows: list[dict[str, Any]]) -> str:
    body, measured, computed = [], True, True
    for r in rows:
        (cpu_one, cpu_two), (one, two) = r["cpu"], r["wall"]
        work, faster = cpu_one / cpu_two, 2 * (1 - r["idle"]) * cpu_one / cpu_two
        if one > 20:
            measured &= one / two >= 1.6
            computed &= faster >= 1.6
        seconds = [f"{x:.1f}" for x in (one, two, cpu_one, cpu_two)]
        shares = [f"{work:.2f}", f"{r['idle']:.1%}", f"{faster:.2f}", f"{one / two:.2f}"]
        body.append([r["name"], r["points"], "yes" if r["same"] else "NO", *seconds, *shares])
    return section(
        "Two workers",
        [
            f"* at least 1.6 times one on instances above 20 s, by the clock{_verdict(measured)}",
            f"* the same by CPU seconds and idle shares{_verdict(computed)}",
        ],
        "Means of two runs each, in turn. *Idle* is the share of the time that a worker has no "
        "question. Where other programs share the processors (see the load average above), the "
        "clock says little; *by that* is 2 x (1 - idle) x the ratio of the CPU seconds: what the "
        "clock shows where nothing else runs.",
        table(
            "instance | points | same points | 1 worker, s | 2 workers, s | 1: CPU s | 2: CPU s | "
            "CPU of 1 / of 2 | idle | times faster by that | times faster, clock",
            body,
        ),
    )


def _published(rows: list[dict[str, Any]]) -> str:
    different = [name for r in rows for name in r["different"]]
    ended, sets = (sum(r[key] for r in rows) for key in ("ended", "sets"))
    numbers = ("size", "sets", "ended", "points")
    body = [[*(r[n] for n in numbers), f"{r['cpu']:.0f}", len(r["different"])] for r in rows]
    named = f" ({', '.join(different)})" if different else ""
    return section(
        "Every published set of these sizes",
        f"* of {sets} sets {ended} end within {LIMIT:.0f} CPU seconds, and these are equal"
        f"{_verdict(not different)}{named}",
        table("instances | sets | ended | points of these | CPU s | different", body),
    )


def _presolve(rows: list[dict[str, Any]]) -> str:
    body = [
        [
            r["name"],
            r["programs"],
            *(x for w in WAYS for x in (r[w]["wrong"], f"{r[w]['cpu']:.1f}")),
        ]
        for r in rows
    ]
    ways = " | ".join(f"{way}: wrong | CPU s" for way in WAYS)
    return section(
        "A rule of HiGHS's presolve",
        "Programs with limits just below two values of a published set, which tells the answer. "
        "placeopt switches rule 16 off (`presolve_rule_off`), which enumerates the solutions of "
        "single rows: with it HiGHS 1.15.1 calls feasible programs infeasible.",
        f"* wrong answers as placeopt asks: {sum(r['as placeopt asks']['wrong'] for r in rows)}",
        table(f"programs | asked | {ways}", body),
    )


def _pyaugmecon(rows: list[dict[str, Any]]) -> str:
    if not rows:
        return section("pyaugmecon", "Not installed where this page was made.")
    done, body = [r for r in rows if "found" in r], []
    for r in rows:
        cells: list[object] = [r.get("why", ""), *("-" * 5)]
        if "found" in r:
            cells = [r["points"] - r["found"], r["solves"], f"{r['cpu']:.1f}"]
            cells += [r["points"] - r["ours"], r["our calls"], f"{r['our cpu']:.1f}"]
        body.append([r["name"], r["points"], *cells])
    lost, missed = (sum(r["points"] - r[who] for r in done) for who in ("found", "ours"))
    return section(
        "pyaugmecon",
        "pyaugmecon 1.0.8 cannot use HiGHS by itself; `augmecon.py` puts an adapter between, so "
        "that both ask the same solver. It has a limit for every whole number; the rest is its "
        f"default. Both with one worker. It lists all cells of its grid: above {MAX_CELLS:,} it is "
        "not tried. A set that it does not end in the time limit shows `TimeoutExpired`.",
        f"* of {sum(r['points'] for r in done)} points pyaugmecon loses {lost}, placeopt {missed}",
        table(
            "instance | points | pyaugmecon loses | solves | CPU s | placeopt loses | solves | "
            "CPU s",
            body,
        ),
    )


PARTS = {
    "complete": (measure_complete, _complete),
    "published": (measure_published, _published),
    "anytime": (measure_anytime, _anytime),
    "jobs": (measure_jobs, _jobs),
    "presolve": (measure_presolve, _presolve),
    "pyaugmecon": (measure_pyaugmecon, _pyaugmecon),
}


def keep(part: str, rows: list[dict[str, Any]]) -> None:
    """Write what is measured so far, and the page."""
    file = HERE / "results.json"
    everything = json.loads(file.read_text()) if file.is_file() else {}
    everything[part] = {"facts": facts("highspy", "pyomo", "numpy"), "rows": rows}
    file.write_text(json.dumps(everything, indent=1, default=float) + "\n")
    stamps.write(HERE / "results.md", page(everything), __file__, {"parts": list(everything)})
    print(rows[-1], file=sys.stderr, flush=True)


def main() -> None:
    """Measure the parts that are named, all by default."""
    for part in sys.argv[1:] or PARTS:
        PARTS[part][0]()


if __name__ == "__main__":
    main()
