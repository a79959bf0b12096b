"""How much of the front of large rolling updates is proven, without a solver.

    python benchmarks/rolling_update/large_fronts.py [--seeds 3]

Writes large_fronts.md beside this file.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

import stamps  # noqa: E402
from machine import facts, table  # noqa: E402

from placeopt import api  # noqa: E402
from placeopt.rolling_update.instance import RollingUpdate  # noqa: E402

#: Applications, microservices of each, nodes, and the most seeds of this size.
SIZES = (
    (10, 40, 20, 99),
    (10, 400, 40, 99),
    (100, 5, 120, 99),
    (1000, 5, 1200, 99),
    (10_000, 5, 12_000, 1),
)
COLUMNS = (
    "instance",
    "seed",
    "points",
    "proven optimal",
    "gap",
    "gap by the ideal alone",
    "plans judged",
    "CPU s",
)


def rows(seeds: int) -> Iterator[tuple[object, ...]]:
    """Yield a row of the table for each instance."""
    api.solve(RollingUpdate.generate(0, applications=1000, nodes=1200), restarts=1)  # compiles
    for applications, microservices, nodes, most in SIZES:
        for seed in range(min(seeds, most)):
            problem = RollingUpdate.generate(
                seed, applications=applications, microservices=microservices, nodes=nodes
            )
            problem.arrays  # noqa: B018 (built before the clock starts)
            began = time.process_time()
            front = api.solve(problem, seed=1, max_coefficients=0)
            took = time.process_time() - began
            ideal = replace(front, bounds=(tuple(np.min(front.bounds, axis=0).tolist()),))
            gaps = (f"{one.gap() or 0.0:.1%}" for one in (front, ideal))
            row = (
                f"{applications} x {microservices} on {nodes}",
                seed,
                len(front),
                sum(point.status == "optimal" for point in front.points),
                *gaps,
                front.runs[0].evaluations,
                f"{took:.1f}",
            )
            print(*row, flush=True)
            yield row


def main() -> None:
    """Solve every instance and write the page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=3, help="instances of each size")
    given = parser.parse_args()
    lines = [
        "# Rolling updates: what is proven of large fronts",
        "",
        "`auto` without a time limit, and without the packing model: bounds are those of "
        "`bounds.bound_vectors`. The gap is the share of the hypervolume within the bounds that no "
        "plan reaches. *By the ideal alone*: of the same front, where only the least of each "
        "objective is known.",
        "",
        "CPU seconds of one process, kernels warm, the instance built before the clock starts. "
        "Every plan is judged by the referee.",
        "",
        facts("numba", "numpy"),
        "",
        *table(COLUMNS, list(rows(given.seeds))),
    ]
    stamps.write(HERE / "large_fronts.md", "\n".join(lines), __file__, vars(given))


if __name__ == "__main__":
    main()
