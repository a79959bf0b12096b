"""Re-orchestration: Figs. 2 to 5, the paper's integer program beside the schemes.

Schemes and instances are those of papers/rolling_update.py. The program is the time-indexed one,
corrected as models/rolling_update/README.md says, solved by HiGHS; the printed one has no solution
at these sizes. CPU seconds of one process; the limit of the program is of wall time, of which other
work on the machine took its share.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from machine import table
from papers import rolling_update
from papers.rolling_update import SCHEMES, SETTINGS, Setting, measured

from placeopt.exact import solvers
from placeopt.exact.compiled_model import CompiledModel
from placeopt.rolling_update import model as models
from placeopt.rolling_update.bounds import lower_bound
from placeopt.rolling_update.problem import RollingUpdate

FULL = {"instances": 50, "large": 50, "program_seeds": 1, "seconds": 60.0}
QUICK = {"instances": 3, "large": 1, "program_seeds": 1, "seconds": 5.0}
#: Applications of five microservices that may move, with the program; four clusters, 16 nodes.
MOVING = (1, 2, 3, 4, 5, 6)
COLUMNS = ("cost", "disruptions", "QoS violation", "other violations", "CPU s")


def program(seed: int, moving: int, seconds: float) -> dict[str, Any]:
    """Return how the program ends on an instance of Fig. 5, its cost and CPU seconds."""
    problem = RollingUpdate.generate(seed, clusters=4, reschedulable=moving)
    began = time.process_time()
    compiled = CompiledModel(models.build(problem), problem.select(["node_cost"]))
    found = solvers.solve(compiled.within(0, [np.inf]), "highs", seconds=seconds, absolute_gap=0.9)
    took = time.process_time() - began
    cost = None
    if found.x is not None:
        compiled.load(found.x)
        cost = problem.evaluate(models.extract(compiled.model)).values[0]
    rows = int(compiled.program.A.shape[0])
    return {"status": found.status, "cost": cost, "seconds": took, "rows": rows}


def schemes(setting: Setting, moving: int, count: int) -> dict[str, Any]:
    """Return means over instances of every scheme, and of greatest and least cost."""
    problems = [
        RollingUpdate.generate(seed, reschedulable=moving, **setting.sizes) for seed in range(count)
    ]
    found: dict[str, Any] = {
        name: np.mean([measured(p, name, k) for k, p in enumerate(problems)], axis=0).tolist()
        for name in SCHEMES
    }
    limits = [(p.initial_cost, lower_bound(p) / p.arrays.price_scale) for p in problems]
    return found | {"limits": np.mean(limits, axis=0).tolist(), "instances": count}


def measure(
    cells: Callable[..., Any], instances: int, large: int, program_seeds: int, seconds: float
) -> dict[str, Any]:
    """Measure all; a size of the program is not tried where a smaller one was not solved."""
    figures: dict[str, Any] = {}
    for setting in SETTINGS:
        count = instances if setting.sizes["applications"] <= 10 else large
        if count:
            measured(RollingUpdate.generate(0), "decomposition", 0)  # compiled
            figures[setting.name] = {
                str(5 * some): cells(
                    f"{setting.name} {some} {count}",
                    lambda s=setting, m=some, c=count: schemes(s, m, c),
                )
                for some in setting.reschedulable
            }
    curve: dict[str, list[dict[str, Any]]] = {}
    for moving in MOVING:
        curve[str(5 * moving)] = [
            cells(f"program {moving} {s} {seconds}", lambda s=s, m=moving: program(s, m, seconds))
            for s in range(program_seeds)
        ]
        if all(one["status"] != "optimal" for one in curve[str(5 * moving)]):
            break
    return {"figures": figures, "program": curve}


def reach(result: Any) -> int:
    """Return the greatest number of microservices at which the program was solved every time."""
    solved = [
        int(size)
        for size, rows in result["program"].items()
        if all(row["status"] == "optimal" for row in rows)
    ]
    return max(solved, default=0)


def ranking(result: Any, figure: str) -> dict[str, list[float]]:
    """Return the means of a figure where all microservices may move, by scheme."""
    rows = result["figures"][figure]
    return rows[max(rows, key=int)]


def page(result: Any) -> Iterator[str]:
    """Yield the page."""
    yield "# Re-orchestration: Figs. 2 to 5"
    yield ""
    yield (__doc__ or "").split("\n\n", 1)[1].replace("\n", " ").strip()
    for figure, sizes in result["figures"].items():
        count = next(iter(sizes.values()))["instances"]
        yield from ("", f"## {figure}: means over {count} instances", "")
        rows = [
            (
                size,
                name,
                *(f"{value:.4g}" for value in found[name]),
                *(f"{value:.2f}" for value in found["limits"]),
            )
            for size, found in sizes.items()
            for name in SCHEMES
        ]
        yield from table(("reschedulable", "scheme", *COLUMNS, "max cost", "min cost"), rows)
    yield from ("", "## fig5: the integer program by size, 50 microservices, 16 nodes, R = 4", "")
    yield (
        f"Solved in the limit up to {reach(result)} reschedulable microservices. Beside it CPU "
        "seconds of the schemes, means of fig3; no number is printed in the paper's text."
    )
    yield ""
    rows = []
    for size, runs in result["program"].items():
        others = result["figures"].get("fig3", {}).get(size)
        rows.append(
            (
                size,
                ", ".join(f"{run['seconds']:.1f} ({run['status']})" for run in runs),
                f"{np.mean([run['rows'] for run in runs]):.0f}",
                *(f"{others[name][4]:.4f}" if others else "-" for name in SCHEMES),
            )
        )
    yield from table(("reschedulable", "program, CPU s", "rows", *SCHEMES), rows)
    yield from ("", "![CPU seconds by size](zambianco.png)")


def draw(result: Any, folder: Path) -> None:
    """Draw Figs. 2 to 4, and Fig. 5 with the curve of the program."""
    from matplotlib.figure import Figure

    for name, sizes in result["figures"].items():
        rolling_update.draw(sizes, folder / f"zambianco_{name}.png")

    drawing = Figure(figsize=(6, 4), layout="constrained")
    axis = drawing.add_subplot()
    times = result["figures"].get("fig3", {})
    for scheme in SCHEMES:
        axis.plot([int(x) for x in times], [times[x][scheme][4] for x in times], label=scheme)
    runs = result["program"]
    axis.plot(
        [int(x) for x in runs],
        [np.mean([run["seconds"] for run in runs[x]]) for x in runs],
        marker="o",
        color="black",
        label="integer program (at its limit where it ends)",
    )
    axis.set(yscale="log", xlabel="reschedulable microservices", ylabel="CPU seconds")
    drawing.legend(loc="outside lower center", ncols=2, fontsize=8)
    drawing.savefig(folder / "zambianco.png", dpi=110)
