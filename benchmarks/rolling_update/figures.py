"""Figures 2 to 5: cost, disruption, QoS violation and time by reschedulable microservices."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from machine import table

from placeopt.core.budget import Budget
from placeopt.core.task import Task
from placeopt.rolling_update import baselines
from placeopt.rolling_update.bounds import lower_bound
from placeopt.rolling_update.decomposition import decomposition
from placeopt.rolling_update.instance import RollingUpdate

HERE = Path(__file__).parent
TITLE = [
    "# The re-orchestration paper's figures 2 to 5",
    "",
    "Means over random instances drawn as the paper says, rescaled to 80 % occupancy. "
    "Cost: price of the nodes in use at the end. Disruptions: microservices stopped. "
    "QoS: share of the locality constraints broken at the end. "
    "Max cost: the start; min cost: the bound.",
    "",
]


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
    "two-phase, text": baselines.two_phase_plan,
    "two-phase, literal argmin": lambda p, rng: baselines.two_phase_plan(p, rng, "argmin"),
    "two-phase, random order": lambda p, rng: baselines.two_phase_plan(p, rng, "text", "random"),
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


def report(instances: int) -> Iterator[str]:
    """Run all settings; yield the page, draw the figures."""
    measured(
        RollingUpdate.generate(0), "decomposition", 0
    )  # kernels compiled or loaded before the clock runs
    times: dict[int, dict[str, float]] = {}
    for setting in SETTINGS:
        count = instances if setting.sizes["applications"] <= 10 else max(3, instances // 4)
        found: dict[int, dict[str, np.ndarray]] = {}
        lines: dict[int, tuple[float, float]] = {}
        rows = []
        for some in setting.reschedulable:
            problems = [
                RollingUpdate.generate(seed, reschedulable=some, **setting.sizes)
                for seed in range(count)
            ]
            means = {
                name: np.mean([measured(p, name, k) for k, p in enumerate(problems)], axis=0)
                for name in SCHEMES
            }
            lines[5 * some] = np.mean(
                [(p.initial_cost, lower_bound(p) / p.arrays.price_scale) for p in problems], axis=0
            ).tolist()
            found[5 * some] = means
            most, least = lines[5 * some]
            for name, values in means.items():
                cost, stops, quality, other, seconds = values
                shown = (
                    f"{cost:.2f}",
                    f"{stops:.2f}",
                    f"{quality:.3f}",
                    f"{other:.2f}",
                    f"{seconds:.4f}",
                )
                rows.append((5 * some, name, *shown, f"{most:.2f}", f"{least:.2f}"))
            print(
                setting.name,
                5 * some,
                {name: values[:3].round(3).tolist() for name, values in means.items()},
                flush=True,
            )
        yield from (f"## {setting.name}: {setting.sizes}, {count} instances", "")
        columns = (
            "reschedulable",
            "scheme",
            "cost",
            "disruptions",
            "QoS violation",
            "other violations",
            "CPU s",
            "max cost",
            "min cost",
        )
        yield from table(columns, rows)
        yield from ("", f"![{setting.name}]({setting.name}.png)", "")
        draw(setting.name, found, lines)
        if setting.name == "fig3":
            times = {
                some: {name: float(values[4]) for name, values in means.items()}
                for some, means in found.items()
            }
    draw_times(times)
    yield from ("## fig5: CPU seconds, 50 microservices, R = 4", "", "![fig5](fig5.png)")


def draw(
    name: str, found: dict[int, dict[str, np.ndarray]], lines: dict[int, tuple[float, float]]
) -> None:
    """Draw cost, disruptions and QoS violation side by side."""
    from matplotlib.figure import Figure

    drawing = Figure(figsize=(13, 4), layout="constrained")
    axes = drawing.subplots(1, 3)
    across = list(found)
    for column, (axis, label) in enumerate(
        zip(axes, ("deployment cost", "disruptions", "QoS violation probability"), strict=True)
    ):
        for scheme in SCHEMES:
            axis.plot(
                across,
                [found[x][scheme][column] for x in across],
                marker="o",
                markersize=4,
                label=scheme,
            )
        axis.set_xlabel("reschedulable microservices")
        axis.set_ylabel(label)
    axes[0].plot(
        across, [lines[x][0] for x in across], color="black", linestyle="--", label="max cost"
    )
    axes[0].plot(
        across, [lines[x][1] for x in across], color="black", linestyle=":", label="min cost"
    )
    axes[1].set_yscale("symlog", linthresh=1)
    drawing.legend(
        *axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False
    )
    drawing.savefig(HERE / f"{name}.png", dpi=110)


def draw_times(times: dict[int, dict[str, float]]) -> None:
    """Draw the CPU seconds of every scheme."""
    from matplotlib.figure import Figure

    drawing = Figure(figsize=(6, 4), layout="constrained")
    axis = drawing.add_subplot()
    for scheme in SCHEMES:
        axis.plot(
            list(times), [times[x][scheme] for x in times], marker="o", markersize=4, label=scheme
        )
    axis.set_yscale("log")
    axis.set_xlabel("reschedulable microservices")
    axis.set_ylabel("CPU seconds")
    drawing.legend(loc="outside lower center", ncols=3, frameon=False, fontsize=8)
    drawing.savefig(HERE / "fig5.png", dpi=110)
