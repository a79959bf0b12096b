"""Which methods in turn serve temporal instances of which size: what `auto` is chosen by.

All seconds are CPU seconds. The generator seeds are other ones than those of benchmarks/auto.md.

python benchmarks/auto/stages.py [--limits 2 10] [--requests 20 50 100 200 350 500]
# writes benchmarks/auto_stages.md
"""

from __future__ import annotations

import time

time.perf_counter = time.process_time  # the clock of limits, before anything asks it

import argparse  # noqa: E402
import sys  # noqa: E402
from dataclasses import replace  # noqa: E402
from pathlib import Path  # noqa: E402
from unittest.mock import patch  # noqa: E402

import numpy as np  # noqa: E402

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

import stamps  # noqa: E402
from machine import facts, table  # noqa: E402

import placeopt  # noqa: E402
from placeopt.core.front import Front, merge  # noqa: E402
from placeopt.temporal.instance import Temporal  # noqa: E402

#: Seeds of the generator; benchmarks/auto.md begins at 951.
SEEDS = (931, 932)
#: Methods in turn, each with its share of the budget that is left.
STAGES = {
    "`moead`": (("moead", 1.0),),
    "`sharded`": (("sharded", 1.0),),
    "`sharded` on a fifth, then `moead`": (("sharded", 0.2), ("moead", 1.0)),
    "`sharded` on half, then `moead`": (("sharded", 0.5), ("moead", 1.0)),
}


def shares(problem: Temporal, seconds: float) -> list[float]:
    """Return for each of `STAGES` its share of the hypervolume of all fronts together."""
    fronts: list[Front] = []
    for stages in STAGES.values():
        spec = replace(Temporal.spec, auto=stages)
        with patch.object(Temporal, "spec", spec):
            fronts.append(placeopt.solve(problem, seconds=seconds))
    reference = np.max([front.reference() for front in fronts], axis=0)
    whole = merge(fronts).hypervolume(reference)
    return [front.hypervolume(reference) / whole for front in fronts]


def main() -> None:
    """Measure and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--limits", type=float, nargs="+", default=[2, 10])
    parser.add_argument("--requests", type=int, nargs="+", default=[20, 50, 100, 200, 350, 500])
    given = parser.parse_args()
    said, rows = facts("numpy", "numba", "moocore"), []
    shares(Temporal.generate(1, requests=60), 0.5)  # compiles
    for requests in given.requests:
        for limit in given.limits:
            found = [shares(Temporal.generate(s, requests=requests), limit) for s in SEEDS]
            least = np.min(found, axis=0)
            cells = [f"**{x:.2%}**" if x == least.max() else f"{x:.2%}" for x in least]
            rows.append([requests, f"{limit:g}", *cells])
            print(*rows[-1], sep=" | ", flush=True)
    text = [
        "# Methods in turn, by the size of temporal instances",
        "",
        said,
        "",
        f"`python benchmarks/auto/stages.py {' '.join(sys.argv[1:])}` wrote this page.",
        "",
        f"Generator seeds {' and '.join(map(str, SEEDS))}. Shares of the hypervolume of the four "
        "fronts together, of the worse seed; the best of a row is bold. Seconds are CPU seconds.",
        "",
        *table(("requests", "limit (s)", *STAGES), rows),
        "",
    ]
    settings = {"arguments": sys.argv[1:]}
    stamps.write(HERE.parent / "auto_stages.md", "\n".join(text), __file__, settings)


if __name__ == "__main__":
    main()
