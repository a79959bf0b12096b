"""Instances, schemes and pictures of Figs. 2 to 4 of the re-orchestration paper."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from placeopt_papers.two_phase import two_phase_plan

from placeopt.core.budget import Budget
from placeopt.core.task import Task
from placeopt.rolling_update import schemes as baselines
from placeopt.rolling_update.decomposition import decomposition
from placeopt.rolling_update.problem import RollingUpdate


class Setting(NamedTuple):
    """One figure: its instances, and how many applications of five may be rescheduled."""

    name: str
    sizes: dict[str, int]
    reschedulable: tuple[int, ...]


SETTINGS = (
    Setting("fig2", {"applications": 10, "clusters": 2, "nodes": 16}, (2, 4, 6, 8, 10)),
    Setting("fig3", {"applications": 10, "clusters": 4, "nodes": 16}, (2, 4, 6, 8, 10)),
    Setting("fig4", {"applications": 100, "clusters": 4, "nodes": 120}, (50, 100)),
)


def certified(problem: RollingUpdate, rng: np.random.Generator) -> dict[str, Any]:
    """Return the plan of least cost by decomposition."""
    return (
        decomposition(Task(problem, problem.select(["node_cost"]), Budget(seconds=60), 1))
        .points[0]
        .plan
    )


SCHEMES: dict[str, Callable[[RollingUpdate, np.random.Generator], dict[str, Any]]] = {
    "decomposition": certified,
    "two-phase, text": two_phase_plan,
    "two-phase, literal argmin": lambda p, rng: two_phase_plan(p, rng, "argmin"),
    "two-phase, random order": lambda p, rng: two_phase_plan(p, rng, "text", "random"),
    "rolling update": lambda p, rng: baselines.rolling_update_plan(p),
    "recreate": lambda p, rng: baselines.recreate_plan(p),
}


def measured(problem: RollingUpdate, scheme: str, seed: int) -> tuple[float, ...]:
    """Return cost, disruptions, QoS violation, other violations and CPU seconds of a scheme."""
    began = time.process_time()
    plan = SCHEMES[scheme](problem, np.random.default_rng(seed))
    seconds = time.process_time() - began
    verdict = problem.evaluate(plan)
    other = sum(v.kind != "latency" for v in verdict.violations)
    return (
        verdict.values[0],
        verdict.values[2],
        problem.quality_of_service(plan),
        float(other),
        seconds,
    )


def draw(found: dict[str, Any], file: Path) -> None:
    """Draw cost, disruptions and QoS violation of a figure side by side; `found` by size."""
    from matplotlib.figure import Figure

    drawing = Figure(figsize=(13, 4), layout="constrained")
    axes, across = drawing.subplots(1, 3), [int(size) for size in found]
    labels = ("deployment cost", "disruptions", "QoS violation probability")
    for column, (axis, label) in enumerate(zip(axes, labels, strict=True)):
        for scheme in SCHEMES:
            values = [row[scheme][column] for row in found.values()]
            axis.plot(across, values, marker="o", markersize=4, label=scheme)
        axis.set(xlabel="reschedulable microservices", ylabel=label)
    for column, (style, label) in enumerate((("--", "max cost"), (":", "min cost"))):
        values = [row["limits"][column] for row in found.values()]
        axes[0].plot(across, values, color="black", linestyle=style, label=label)
    axes[1].set_yscale("symlog", linthresh=1)
    handles = axes[0].get_legend_handles_labels()
    drawing.legend(*handles, loc="outside lower center", ncols=4, frameon=False)
    drawing.savefig(file, dpi=110)
