"""What prices and parts add to the lower bounds of rescheduling: random call graphs, six nodes.

    python benchmarks/rescheduling_bounds.py [--services 20] [--seeds 4] [--seconds 20]

The front is that of ``auto``; its certificate has so many CPU seconds. A gap is 1 - bound / latency
of the front's plan with so many moves. *Relaxation* is the bound without prices.
"""

from __future__ import annotations

from typing import Any

import cpu_clock  # noqa: F401
import numpy as np
from harness import Benchmark, table

import placeopt
from placeopt.core.budget import Budget
from placeopt.registry import certifier
from placeopt.rescheduling.problem import Rescheduling

#: Numbers of moves that are shown by themselves.
MOVES = (3, 8, 15)


def measured(services: int, seed: int, seconds: float) -> dict[str, Any]:
    """Return gaps by moves without and with prices, in %, hypervolume that may miss, seconds."""
    problem = Rescheduling.generate(seed, application="random", services=services)
    front = placeopt.solve(problem, seconds=5, seed=1)
    few = placeopt.Front(front.instance, front.objectives, front.points[:2])
    certifier("rescheduling")(problem, few, Budget(seconds=2))  # compiled
    rows = {}
    for name, limit in (("relaxation", 1e-9), ("prices", seconds)):
        budget = Budget(seconds=limit)
        proven = certifier("rescheduling")(problem, front, budget)
        least = {int(moves): latency for latency, moves in proven.bounds}
        gaps = {
            int(moves): 100 * (1 - min(ms for m, ms in least.items() if m <= moves) / latency)
            for latency, moves in front.values.tolist()
        }
        rows[name] = {
            "by moves": {k: gaps[k] for k in MOVES if k in gaps},
            "above": sum(gap > 2.0005 for gap in gaps.values()),
            "mean": float(np.mean(list(gaps.values()))),
            "worst": max(gaps.values()),
            "hypervolume": 100 * (proven.gap() or 0.0),
            "seconds": budget.seconds,
        }
    return {"points": len(front), **rows}


def main() -> None:
    bench = Benchmark(__file__, __doc__, "numpy", "numba", services=20, seeds=4, seconds=20.0)
    shown = " | ".join(f"{k} moves" for k in MOVES)
    head = f"seed | points | {shown} | above 2 % | mean | worst | hypervolume open | CPU s"
    rows = []
    for seed in range(1, bench.seeds + 1):
        found = bench.cell(
            f"{bench.services} {seed} {bench.seconds}",
            lambda s=seed: measured(bench.services, s, bench.seconds),
        )
        one, other = found["relaxation"], found["prices"]

        def both(key: str, one: Any = one, other: Any = other) -> str:
            return f"{one[key]:.1f} -> {other[key]:.1f} %"

        by_moves = [
            both(str(k), one["by moves"], other["by moves"]) if str(k) in one["by moves"] else "-"
            for k in MOVES
        ]
        above = f"{one['above']} -> {other['above']}"
        cells = (seed, found["points"], *by_moves, above, both("mean"), both("worst"))
        rows.append((*cells, both("hypervolume"), f"{other['seconds']:.1f}"))
    said = (
        "Without prices -> with prices, and with plans looked at in parts. The aim is 2 % of the "
        "latency; *above 2 %* counts the points that miss it. These have many moves, and almost "
        "the same latency as points of fewer moves: parts are cut by where services stand, and "
        "many of them stay open, since several services can change sides for each other."
    )
    bench.write("Rescheduling: bounds by prices and parts", said, table(head, rows))


if __name__ == "__main__":
    main()
