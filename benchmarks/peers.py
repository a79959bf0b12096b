"""placeopt beside the CP-SAT models of benchmarks/peers, which an expert would write.

Needs OR-Tools, which is no dependency: ``pip install ortools``. Every cell is kept, so that a run
that was stopped goes on.
"""

from __future__ import annotations

import time
from importlib import import_module
from pathlib import Path
from typing import Any

import cpu_clock  # noqa: F401
import numpy as np
from harness import Benchmark, table

import placeopt
from placeopt import registry
from placeopt.core.fronts.values import names_of

#: Generator arguments of three sizes; the goals of the sums, all by default.
SIZES: dict[str, tuple[dict[str, Any], ...]] = {
    "temporal": (
        {"requests": 10, "max_replicas": 2},
        {"requests": 20, "max_replicas": 2},
        {"requests": 20},
    ),
    "edge-cloud": ({"applications": 50}, {"applications": 100}, {"applications": 300}),
    "rolling-update": ({}, {"applications": 30}, {"applications": 100}),
    "rescheduling": ({"services": 10}, {"services": 20}, {"services": 50}),
    "multi-cluster": tuple({"requests": size, "rate": 10.0} for size in (20, 60, 200)),
}
GOALS = {"rolling-update": ("node_cost", "starts"), "multi-cluster": ("cost", "inequality")}
#: Weights of goals that are scaled to the ranges of the front.
WEIGHTS = {
    2: ((0.5, 0.5), (0.9, 0.1), (0.1, 0.9), (0.7, 0.3), (0.3, 0.7)),
    3: ((1 / 3,) * 3, (0.1, 0.8, 0.1), (0.8, 0.1, 0.1), (0.1, 0.1, 0.8), (0.4, 0.4, 0.2)),
}
#: Least share by which sums count as different.
EQUAL = 1e-6


def instance(kind: str, size: int, seed: int) -> Any:
    """Return a generated instance."""
    return registry.problem_class(kind).generate(seed, **SIZES[kind][size])


def asked(kind: str, cap: float | None) -> dict[str, Any]:
    """Return goals and limits of a question: of multi-cluster a cap on what is refused."""
    goals = [*GOALS.get(kind, ()), *(() if cap is None else ("rejected",))]
    return {"objectives": goals or None} | ({} if cap is None else {"limits": {"rejected": cap}})


def front(kind: str, size: int, seed: int, cap: float | None, seconds: float) -> dict[str, Any]:
    """Return the least weighted sums of the front of ``auto``, and the ranges of its goals."""
    result = placeopt.solve(
        instance(kind, size, seed), seconds=seconds, seed=seed, **asked(kind, cap)
    )
    count = len(GOALS.get(kind, result.objectives))
    goals = names_of(result.objectives)[:count]
    if not result.points:
        return {"best": [], "widths": [1.0] * count, "goals": goals}
    values = result.values[:, :count]
    widths = np.maximum(np.ptp(values, axis=0), 1e-9)
    best = [float((values @ (np.array(w) / widths)).min()) for w in WEIGHTS[count]]
    return {"best": best, "widths": widths.tolist(), "goals": goals}


def peer(
    kind: str, size: int, seed: int, cap: float | None, seconds: float, weights: list[float]
) -> dict[str, Any]:
    """Return the weighted sum of the plan of CP-SAT by the referee, None where it has none."""
    problem, began = instance(kind, size, seed), time.process_time()
    best = import_module("peers." + kind.replace("-", "_")).best
    plan = best(problem, np.array(weights), cap, seconds, seed)
    cpu = time.process_time() - began
    if plan is None:
        return {"value": None, "cpu": cpu}
    verdict = problem.evaluate(plan)
    goals = GOALS.get(kind) or names_of(problem.objectives)
    values = [verdict.values[c] for c in problem.columns(problem.select(goals))]
    return {"value": float(np.dot(weights, values)) if verdict.feasible else None, "cpu": cpu}


def row(run: Benchmark, kind: str, size: int, cap: float | None, seed: int, at: int) -> list[Any]:
    """Return a row of the table."""
    seconds, key = run.seconds, f"{kind} {size} cap {cap} seed {seed} in {run.seconds} s"
    ours = run.cell(key, lambda: front(kind, size, seed, cap, seconds))
    name = ", ".join(f"{v} {k}" for k, v in SIZES[kind][size].items()) or "10 applications"
    head = [kind, name, "" if cap is None else f"{cap:.0%}", seed]
    chosen = WEIGHTS[len(ours["goals"])][at]
    weights = (np.array(chosen) / ours["widths"]).tolist()
    arguments = (kind, size, seed, cap, seconds, weights)
    theirs = run.cell(f"{key} weights {at}", lambda: peer(*arguments))
    said = ", ".join(f"{w:.2g} {goal}" for w, goal in zip(chosen, ours["goals"], strict=True))
    other = theirs["value"]
    if not ours["best"]:
        text = "no plan" if other is None else f"{other:.5g}"
        return [*head, said, "no plan", text, "", "yes" if other is None else "**no**"]
    best = ours["best"][at]
    if other is None:
        return [*head, said, f"{best:.5g}", "no plan", "", "yes"]
    above = best / other - 1
    holds = "yes" if above <= EQUAL else "**no**"
    return [*head, said, f"{best:.5g}", f"{other:.5g}", f"{above:+.2%}", holds]


def main() -> None:
    """Measure what is lacking; write the page."""
    run = Benchmark(
        __file__,
        __doc__,
        "numpy",
        "ortools",
        kinds=list(SIZES),
        sizes=3,
        weights=5,
        first=1,
        seeds=3,
        seconds=20.0,
    )
    rows = [
        row(run, kind, size, cap, seed, at)
        for kind in run.kinds
        if (Path(__file__).parent / "peers" / f"{kind.replace('-', '_')}.py").exists()
        for size in range(run.sizes)
        for cap in ((0.0, 0.05) if kind == "multi-cluster" else (None,))
        for seed in range(run.first, run.first + run.seeds)
        for at in range(run.weights)
    ]
    met = sum(cells[-1] == "yes" for cells in rows)
    columns = (
        "problem | size | refused, at most | seed | weights | placeopt | CP-SAT | above CP-SAT | "
        "at or below"
    )
    run.write(
        "Peers: models in OR-Tools CP-SAT",
        "The least weighted sum of goals, each scaled to the range of placeopt's front. placeopt "
        f"has {run.seconds:g} CPU seconds for the whole front, CP-SAT as many for each weight, "
        "with eight workers in one process. Both are judged by the referee. The order of the moves "
        "of a rolling update and of a rescheduling is not in the models: placeopt orders their "
        "plans.",
        f"This run: {run.sizes} of 3 sizes, {run.weights} of 5 weights, "
        f"{run.seeds} seeds from {run.first} on. "
        f"**placeopt is at or below CP-SAT in {met} of {len(rows)} rows.**",
        table(columns, rows),
    )


if __name__ == "__main__":
    main()
