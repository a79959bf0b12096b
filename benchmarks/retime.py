"""What `retime` adds to the searches over vectors of temporal instances, in the same time.

python benchmarks/retime.py [--seconds 10] [--seeds 3]
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any
from unittest.mock import patch

import cpu_clock  # noqa: F401
import numpy as np
from harness import Benchmark, table

import placeopt
from placeopt.core.fronts.dominance import scaled
from placeopt.core.goals import simplex
from placeopt.temporal.problem import Temporal
from placeopt.temporal.search.division import RETIMED_SHARE

#: Arguments of the generator; nothing was tuned on the seeds, which begin there.
SIZES: tuple[dict[str, int], ...] = (
    {"requests": 10, "max_replicas": 2},
    {"requests": 10, "max_replicas": 6},
    {"requests": 20, "max_replicas": 2},
    {"requests": 20, "max_replicas": 6},
    {"requests": 60, "max_replicas": 6},
)
FIRST_SEED = 971
#: The searches alone, and with `retime` at the end.
ALONE = (("moead", 1.0),)
RETIMED = (("moead", RETIMED_SHARE), ("retime", 1.0))
#: Parts of the lattice of weights: 15 sums of three goals.
PARTS = 4
#: Least share by which sums count as different.
EQUAL = 1e-6


def front(problem: Temporal, stages: Any, seconds: float) -> np.ndarray:
    """Return the values of the front of some methods in turn."""
    with patch.object(Temporal, "spec", replace(Temporal.spec, auto=stages)):
        return placeopt.solve(problem, seconds=seconds).values


def compared(size: dict[str, int], seed: int, seconds: float) -> dict[str, Any]:
    """Return hypervolumes, and by how much sums change, as parts of them; less is better."""
    import moocore

    problem = Temporal.generate(seed, **size)
    fronts = [front(problem, stages, seconds) for stages in (ALONE, RETIMED)]
    both = np.vstack(fronts)
    one, other = (scaled(values, both)[0] for values in fronts)
    weights = np.maximum(simplex(PARTS, 3), 0.01).T
    least = [(values @ weights).min(axis=0) for values in (one, other)]
    volumes = [float(moocore.hypervolume(values, ref=1.1)) for values in (one, other)]
    return {"volumes": volumes, "changes": (least[1] / least[0] - 1).tolist()}


def row(run: Benchmark, size: dict[str, int]) -> list[Any]:
    """Return the row of a size, over all seeds."""
    cells = [
        run.cell(f"{size} seed {seed}", partial(compared, size, seed, run.seconds))
        for seed in range(FIRST_SEED, FIRST_SEED + run.seeds)
    ]
    gains = [c["volumes"][1] / c["volumes"][0] - 1 for c in cells]
    changes = np.concatenate([c["changes"] for c in cells])
    counts = (changes < -EQUAL).sum(), (changes > EQUAL).sum(), len(changes)
    parts = f"{min(gains):+.3%}", f"{np.mean(gains):+.3%}", f"{changes.min():+.2%}"
    return [*size.values(), *parts[:2], *counts, parts[2], f"{changes.max():+.2%}"]


def main() -> None:
    """Measure and write the page."""
    run = Benchmark(__file__, __doc__, "numpy", "numba", "moocore", seconds=10.0, seeds=3)
    for stages in (ALONE, RETIMED):
        front(Temporal.generate(1, requests=12), stages, 1.0)  # compiles
    run.write(
        "Plans that are retimed beside a longer search",
        f"`moead` for {run.seconds:g} CPU seconds, and `moead` followed by `retime` in the last "
        f"{1 - RETIMED_SHARE:.0%} of as many. {run.seeds} generator seeds from {FIRST_SEED} on; "
        "hypervolumes are of the box of both fronts, a tenth larger, and goals of the sums are "
        "scaled to it. Both searches are random: a front changes by some parts in ten thousand "
        "with the seed.",
        table(
            "requests | most replicas | hypervolume gained, least | mean | sums that fall | that "
            "rise | of | most that a sum falls | rises",
            [row(run, size) for size in SIZES],
        ),
    )


if __name__ == "__main__":
    main()
