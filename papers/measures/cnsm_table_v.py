"""Table V, Figs 4a, 4b and 5, points and times of the CNSM 2024 paper.

Three groups: the paper's algorithms as published (their encoding, operators, sizes, random starts)
on compiled code; two of them by jMetalPy itself, for three goals; placeopt's methods by default.
The three goals once more with twice the evaluations: the paper saw no improvement after 50,000.
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

    def published(figure: str, name: str, evaluations: int) -> list[Any]:
        method, settings = cnsm.published(name, len(cnsm.GOALS[figure]))
        found = []
        for seed in range(1, seeds + 1):
            key = f"{figure} {name} as published, {evaluations}, seed {seed}"
            args = (problem, method, cnsm.GOALS[figure], evaluations, seed)
            found.append(cells(key, lambda a=args: cnsm.solved(*a, **settings)))
        return found

    sets = {}
    for figure, goals in cnsm.GOALS.items():
        runs: dict[str, list[Any]] = {
            f"{name} as published": published(figure, name, evaluations) for name in cnsm.PUBLISHED
        }
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
    at = np.array(cnsm.WIDE)
    gain = {}
    for name in cnsm.PUBLISHED:
        once, twice = (
            [cnsm.hypervolume(run["values"], at) for run in published("Fig. 5", name, count)]
            for count in (evaluations, 2 * evaluations)
        )
        gain[name] = [late / early - 1 for early, late in zip(once, twice, strict=True)]
    return {"instance": which, "sets": sets, "gain of twice the evaluations": gain}


def summary(runs: dict[str, list[Any]], goals: tuple[int, ...]) -> dict[str, Any]:
    """Return the medians of every contestant and the reference point of the published rule."""
    compared = [f"{name} as published" for name in cnsm.PUBLISHED]
    reference = cnsm.worst_reference([run["values"] for name in compared for run in runs[name]])
    points = {"rule": reference, "wide": np.array(cnsm.WIDE)[list(goals)]}
    points["tight"] = np.array(cnsm.TIGHT)[list(goals)]
    rows = {}
    for name, many in runs.items():
        row = {
            f"HV {key}": float(np.median([cnsm.hypervolume(r["values"], at) for r in many]))
            for key, at in points.items()
        }
        row |= {f"share {key}": row[f"HV {key}"] / float(np.prod(points[key])) for key in points}
        box = float(np.prod(reference))
        row["shares"] = [cnsm.hypervolume(r["values"], reference) / box for r in many]
        row["sparsity"] = float(np.median([cnsm.sparsity(r["values"]) for r in many]))
        row["points"] = float(np.median([len(r["values"]) for r in many]))
        for key in ("seconds", "search_seconds"):
            row[key] = float(np.median([r[key] for r in many]))
        row["least"] = np.min(many[0]["values"], axis=0).tolist()
        row["medians"] = [np.median(np.array(r["values"]), axis=0).tolist() for r in many]
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
        "fronts compared, here those as published, of all seeds. `share` divides by the product of "
        "the reference point. *wide* and *tight* are fixed points. CPU seconds with "
        "judging, and of the search. *by seed*: the share of every seed.",
        "",
    ]
    for figure, one in result["sets"].items():
        goals = ", ".join(cnsm.NAMES[c] for c in cnsm.GOALS[figure])
        shown = ", ".join(f"{v:.4g}" for v in one["reference"])
        lines += [f"## {figure}: {goals}", "", f"Reference point of the rule: {shown}.", ""]
        head = (
            "who",
            "HV",
            "share",
            "by seed",
            "wide",
            "tight",
            "S(F)",
            "points",
            "CPU s",
            "of it search",
        )
        rows = [
            (
                name,
                f"{r['HV rule']:.6g}",
                f"{r['share rule']:.4f}",
                " ".join(f"{share:.3f}" for share in r["shares"]),
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
    told = "; ".join(
        f"{name} {', '.join(f'{value:+.1%}' for value in values)}"
        for name, values in result["gain of twice the evaluations"].items()
    )
    lines += [f"Twice the evaluations with three goals, volume at the wide point: {told}.", ""]
    return [*lines, "![Figs 4a, 4b and 5](cnsm_table_v.png)"]


def ahead(result: dict[str, Any], figure: str) -> dict[str, int]:
    """Return on how many seeds each of the paper's three has the largest volume."""
    rows = result["sets"][figure]["rows"]
    shares = {name: rows[f"{name} as published"]["shares"] for name in cnsm.PUBLISHED}
    best = [max(shares, key=lambda n, k=k: shares[n][k]) for k in range(len(shares["NSGA-II"]))]
    return {name: best.count(name) for name in shares}


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
