"""The CNSM 2024 paper's mean over 100 instances: seconds, and who is ahead."""

from __future__ import annotations

from typing import Any

import numpy as np
from machine import table
from papers import cnsm

from placeopt.temporal.problem import Temporal

FULL = {"instances": 100, "evaluations": 50_000}
QUICK = {"instances": 2, "evaluations": 4_000}
#: Generator seeds from here on: none that anything was tuned on.
FIRST_SEED = 5001


def measure(cells: Any, instances: int, evaluations: int) -> dict[str, Any]:
    cnsm.solved(Temporal.generate(1), "moead", (0, 1, 2), 300, 1)  # compile
    found = []
    for seed in range(FIRST_SEED, FIRST_SEED + instances):
        if found and cells.out_of_time:
            break
        found.append(cells(f"{seed}, {evaluations}", lambda s=seed: one(s, evaluations)))
    names = list(found[0])
    rows = {
        name: {key: interval([f[name][key] for f in found]) for key in found[0][name]}
        for name in names
    }
    first = [max(cnsm.PUBLISHED, key=lambda n, f=f: f[n]["share"]) for f in found]
    wins = {name: first.count(name) for name in cnsm.PUBLISHED}
    return {"instances": len(found), "asked": instances, "rows": rows, "wins": wins}


def one(seed: int, evaluations: int) -> dict[str, Any]:
    """Return the rows of one instance of 50 requests; shares are by the published rule."""
    problem = Temporal.generate(seed)
    runs = {}
    for name in cnsm.PUBLISHED:
        method, settings = cnsm.published(name, 3)
        runs[name] = cnsm.solved(problem, method, (0, 1, 2), evaluations, 1, **settings)
    reference = cnsm.worst_reference([run["values"] for run in runs.values()])
    together = np.concatenate([np.array(run["values"]) for run in runs.values()])
    runs["moead"] = cnsm.solved(problem, "moead", (0, 1, 2), evaluations, 1)
    rows = {}
    for name, run in runs.items():
        share = cnsm.hypervolume(run["values"], reference) / float(np.prod(reference))
        rows[name] = {"share": share, "points": len(run["values"]), "seconds": run["seconds"]}
    share = cnsm.hypervolume(together, reference) / float(np.prod(reference))
    rows["the three together"] = {
        "share": share,
        "points": float(len(together)),
        "seconds": sum(rows[name]["seconds"] for name in cnsm.PUBLISHED),
    }
    return rows


def interval(values: list[float]) -> list[float]:
    """Return mean and half width of its 95 % interval."""
    spread = float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
    return [float(np.mean(values)), 1.96 * spread / len(values) ** 0.5]


def page(result: dict[str, Any]) -> list[str]:
    wins = ", ".join(f"{name} {count}" for name, count in result["wins"].items())
    lines = [
        "# CNSM 2024: mean over generated instances",
        "",
        f"{result['instances']} of {result['asked']} instances of 50 requests, drawn as the paper "
        "says; three goals, 50,000 evaluations, one seed. `share`: hypervolume at the published "
        "rule's reference point over its product. `make papers ONLY=cnsm_instances` goes on.",
        "",
        f"Largest hypervolume of the three as published: {wins}.",
        "",
    ]
    rows = [
        (name, *(f"{mean:.4g} ± {half:.2g}" for mean, half in row.values()))
        for name, row in result["rows"].items()
    ]
    return [*lines, *table(("who", "share", "points", "CPU s"), rows)]
