"""Table V, Figs 4a, 4b and 5, points and times of the CNSM 2024 paper.

Three groups: the paper's algorithms as published (their encoding, operators, sizes, random starts)
on compiled code; two of them by jMetalPy itself, for three goals; placeopt's methods by default.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from machine import table
from papers import cnsm

FULL = {"evaluations": 50_000, "seeds": 3, "jmetal": True}
QUICK = {"evaluations": 4_000, "seeds": 1, "jmetal": False}
OURS = ("greedy", "nsga2", "nsga3", "mspso", "moead")
JMETAL = {"NSGA-II": "jmetal-nsga2", "NSGA-III": "jmetal-nsga3"}


def measure(cells: Any, evaluations: int, seeds: int, jmetal: bool) -> dict[str, Any]:
    problem, which = cnsm.paper_instance()
    for method in OURS:  # compile
        cnsm.solved(problem, method, (0, 1, 2), 300, 1)
    cnsm.solved(problem, "mspso", (0, 1, 2), 300, 1, encoding="published", operators="sbx")
    sets = {}
    for figure, goals in cnsm.GOALS.items():
        runs: dict[str, list[Any]] = {}
        for name, (method, settings) in cnsm.PUBLISHED.items():
            for seed in range(1, seeds + 1):
                key = f"{figure} {name} as published, {evaluations}, seed {seed}"
                args = (problem, method, goals, evaluations, seed)
                run = cells(key, lambda a=args, s=settings: cnsm.solved(*a, **s))
                runs.setdefault(f"{name} as published", []).append(run)
        for name, method in JMETAL.items() if jmetal and figure == "Fig. 5" else ():
            args = (problem, method, goals, evaluations, 1)
            key = f"{figure} {method}, {evaluations}"
            run = cells(key, lambda a=args: cnsm.solved(*a, encoding="published"))
            runs[f"{name} by jMetalPy"] = [run]
        for method in OURS:
            for seed in range(1, seeds + 1):
                args = (problem, method, goals, evaluations, seed)
                key = f"{figure} {method}, {evaluations}, seed {seed}"
                runs.setdefault(method, []).append(cells(key, lambda a=args: cnsm.solved(*a)))
        sets[figure] = summary(runs, goals)
    return {"instance": which, "sets": sets}


def summary(runs: dict[str, list[Any]], goals: tuple[int, ...]) -> dict[str, Any]:
    """Return the medians of every contestant and the reference point of the published rule."""
    compared = [f"{name} as published" for name in cnsm.PUBLISHED]
    reference = cnsm.worst_reference([runs[name][0]["values"] for name in compared])
    points = {"rule": reference, "wide": np.array(cnsm.WIDE)[list(goals)]}
    points["tight"] = np.array(cnsm.TIGHT)[list(goals)]
    rows = {}
    for name, many in runs.items():
        row = {
            f"HV {key}": float(np.median([cnsm.hypervolume(r["values"], at) for r in many]))
            for key, at in points.items()
        }
        row |= {f"share {key}": row[f"HV {key}"] / float(np.prod(points[key])) for key in points}
        row["sparsity"] = float(np.median([cnsm.sparsity(r["values"]) for r in many]))
        row["points"] = float(np.median([len(r["values"]) for r in many]))
        for key in ("seconds", "search_seconds"):
            row[key] = float(np.median([r[key] for r in many]))
        row["least"] = np.min(many[0]["values"], axis=0).tolist()
        row["median"] = np.median(np.array(many[0]["values"]), axis=0).tolist()
        rows[name] = row
    return {"reference": reference.tolist(), "rows": rows, "fronts": thinned(runs)}


def thinned(runs: dict[str, list[Any]], most: int = 150) -> dict[str, Any]:
    """Return at most so many points of the first front of each, for the pictures."""
    found = {}
    for name, many in runs.items():
        values = sorted(many[0]["values"])
        found[name] = values[:: max(1, -(-len(values) // most))]
    return found


def page(result: dict[str, Any]) -> list[str]:
    lines = ["# CNSM 2024: Table V, Figs 4 and 5", "", f"Instance: {result['instance']}.", ""]
    lines += [
        "*As published*: the paper's encoding, next-fit decoder, operators, sizes and random "
        "starts (genes limited to types that fit), in compiled code. *By jMetalPy*: the library "
        "itself, one seed. The rest: placeopt by default. Medians over the seeds.",
        "",
        "`HV` is raw, at the published rule's reference point: 1.1 times the worst value of the "
        "fronts compared, here those as published. `share` divides by the product of the reference "
        "point. *wide* and *tight* are fixed points. CPU seconds with judging, and of the search.",
        "",
    ]
    for figure, one in result["sets"].items():
        goals = ", ".join(cnsm.NAMES[c] for c in cnsm.GOALS[figure])
        shown = ", ".join(f"{v:.4g}" for v in one["reference"])
        lines += [f"## {figure}: {goals}", "", f"Reference point of the rule: {shown}.", ""]
        head = ("who", "HV", "share", "wide", "tight", "S(F)", "points", "CPU s", "of it search")
        rows = [
            (
                name,
                f"{r['HV rule']:.6g}",
                f"{r['share rule']:.4f}",
                f"{r['share wide']:.4f}",
                f"{r['share tight']:.4f}",
                f"{r['sparsity']:.4g}",
                f"{r['points']:.0f}",
                f"{r['seconds']:.2f}",
                f"{r['search_seconds']:.2f}",
            )
            for name, r in one["rows"].items()
        ]
        lines += [*table(head, rows), ""]
    return [*lines, "![Figs 4a, 4b and 5](cnsm_table_v.png)"]


def draw(result: dict[str, Any], folder: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(15, 4.6), layout="constrained")
    for position, (title, x, y) in enumerate(
        (("Fig. 4a", 0, 1), ("Fig. 4b", 1, 2), ("Fig. 5", 0, 1)), start=1
    ):
        axes = figure.add_subplot(1, 4, position)
        goals = cnsm.GOALS[title]
        for name, values in shown_fronts(result, title):
            F = np.array(values)
            axes.scatter(F[:, goals.index(x)], F[:, goals.index(y)], s=6, label=name)
        axes.set(title=title, xlabel=cnsm.NAMES[x], ylabel=cnsm.NAMES[y], yscale="log")
        axes.legend(fontsize=6)
    space = figure.add_subplot(1, 4, 4, projection="3d")
    for name, values in shown_fronts(result, "Fig. 5"):
        space.scatter(*np.array(values).T, s=4, label=name)
    space.set(title="Fig. 5", xlabel="latency, ms", ylabel="cost, USD", zlabel="interruption")
    figure.savefig(folder / "cnsm_table_v.png", dpi=75)


def shown_fronts(result: dict[str, Any], figure: str) -> list[tuple[str, Any]]:
    """Return the fronts as published, and the best of ours."""
    fronts = result["sets"][figure]["fronts"]
    return [(n, v) for n, v in fronts.items() if n.endswith("as published") or n == "moead"]
