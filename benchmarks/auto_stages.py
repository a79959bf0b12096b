"""Which methods in turn serve temporal instances of which size: what `auto` is chosen by.

python benchmarks/auto_stages.py [--limits 2 10] [--requests 20 50 100 200 350 500]
"""

from __future__ import annotations

from dataclasses import replace
from unittest.mock import patch

import cpu_clock  # noqa: F401
import numpy as np
from harness import Benchmark, shares, shown, table

import placeopt
from placeopt.temporal.instance import Temporal

#: Seeds of the generator; benchmarks/auto.py begins at 951.
SEEDS = (931, 932)
#: Methods in turn, each with its share of the budget that is left.
STAGES = {
    "`moead`": (("moead", 1.0),),
    "`sharded`": (("sharded", 1.0),),
    "`sharded` on a fifth, then `moead`": (("sharded", 0.2), ("moead", 1.0)),
    "`sharded` on half, then `moead`": (("sharded", 0.5), ("moead", 1.0)),
}


def found(problem: Temporal, seconds: float) -> list[float]:
    """Return for each of `STAGES` its share of the hypervolume of all fronts together."""
    fronts = {}
    for name, stages in STAGES.items():
        with patch.object(Temporal, "spec", replace(Temporal.spec, auto=stages)):
            fronts[name] = placeopt.solve(problem, seconds=seconds)
    return list(shares(fronts).values())


def main() -> None:
    """Measure and write the page."""
    run = Benchmark(
        *(__file__, __doc__, "numpy", "numba", "moocore"),
        limits=[2.0, 10.0],
        requests=[20, 50, 100, 200, 350, 500],
    )
    found(Temporal.generate(1, requests=60), 0.5)  # compiles
    rows = []
    for requests in run.requests:
        for limit in run.limits:
            every = [found(Temporal.generate(s, requests=requests), limit) for s in SEEDS]
            least = np.min(every, axis=0)
            cells = [f"**{x:.2%}**" if x == least.max() else f"{x:.2%}" for x in least]
            rows.append(shown([requests, f"{limit:g}", *cells]))
    words = (
        f"Generator seeds {' and '.join(map(str, SEEDS))}. Shares of the hypervolume of the four "
        "fronts together, of the worse seed; the best of a row is bold. Seconds are CPU seconds."
    )
    columns = " | ".join(("requests", "limit (s)", *STAGES))
    run.write("Methods in turn, by the size of temporal instances", words, table(columns, rows))


if __name__ == "__main__":
    main()
