"""Where the edge-cloud paper's 10 % and 4 % hold: greedy and rollout along an axis of demand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from machine import table
from papers import edge_cloud as ec

DEMANDS = (1.0, 2.0, 3.0, 5.0, 8.0, 12.0, 20.0, 40.0)
FULL = {"seeds": 4, "sizes": (50,), "demands": DEMANDS}
QUICK = {"seeds": 2, "sizes": (50,), "demands": (3.0, 20.0)}
FIRST_SEED = 11


def measure(
    cells: Any, seeds: int, sizes: tuple[int, ...], demands: tuple[float, ...]
) -> dict[str, Any]:
    ec.warm_up()
    rows = []
    for applications in sizes:
        for demand in demands:
            many = [
                cells(
                    f"{applications}, {demand:g}, seed {seed}",
                    lambda a=applications, d=demand, s=seed: ec.methods_of(
                        ec.instance(s, "basic", a, d), 1.0
                    ),
                )
                for seed in range(FIRST_SEED, FIRST_SEED + seeds)
            ]
            row = {"applications": applications, "demand": demand, "load": demand / applications}
            for name in ("greedy", "greedy, restart", "rollout"):
                gaps = ec.gaps(many, name)
                row[name] = float(np.mean(gaps)) if gaps else None
                row[f"{name}, worst"] = max(gaps, default=None)
            rows.append(row)
    return {"rows": rows}


def share(value: float | None) -> str:
    return "no plan" if value is None else f"{value:.1%}"


def page(result: dict[str, Any]) -> list[str]:
    lines = [
        "# Edge-cloud: where greedy and rollout end",
        "",
        "Basic topology, w = .01, given order; gap to the best known value (`lns`, one second), "
        "mean (largest). `demand` is what all applications together ask for; the paper says 10 % "
        "for greedy and 4 % for rollout.",
        "",
    ]
    names = ("greedy", "greedy, restart", "rollout")
    rows = [
        (
            r["applications"],
            f"{r['demand']:g}",
            f"{r['load']:.3g}",
            *(f"{share(r[name])} ({share(r[f'{name}, worst'])})" for name in names),
        )
        for r in result["rows"]
    ]
    lines += table(("applications", "demand", "load", *names), rows)
    return [*lines, "", "![gaps by demand](edge_cloud_load.png)"]


def draw(result: dict[str, Any], folder: Path) -> None:
    from matplotlib.figure import Figure

    sizes = sorted({r["applications"] for r in result["rows"]})
    figure = Figure(figsize=(5 * len(sizes), 3.6), layout="constrained")
    for position, size in enumerate(sizes, start=1):
        axes = figure.add_subplot(1, len(sizes), position)
        rows = [r for r in result["rows"] if r["applications"] == size]
        for name in ("greedy", "rollout"):
            known = [(r["demand"], 100 * r[name]) for r in rows if r[name] is not None]
            axes.plot(*zip(*known, strict=True), marker="o", label=name)
        axes.axhline(10, color="grey", lw=0.8, ls="--", label="paper, greedy")
        axes.axhline(4, color="grey", lw=0.8, ls=":", label="paper, rollout")
        axes.set(title=f"{size} applications", xlabel="demand", ylabel="% above best known")
        axes.set(xscale="log")
        axes.legend(fontsize=7)
    figure.savefig(folder / "edge_cloud_load.png", dpi=80)
