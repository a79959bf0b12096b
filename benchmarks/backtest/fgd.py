"""How full GPU schedulers make a cluster, beside what their paper published; writes fgd.md.

    PLACEOPT_DATA=folder python benchmarks/backtest/fgd.py

openb's 1,213 GPU nodes, the pods of its default list in a drawn order, then drawn ones, until they
ask for 130 % of all GPUs. The folder holds ``openb``.
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from harness import Benchmark, table, timed, verdict
from openb_trace import gpu_nodes

#: Weng et al., "Beware of Fragmentation", USENIX ATC 2023: share of GPUs allocated, means of 10
#: seeds. Two figures are for 100 and 130 % arrivals; of the other policies one is published.
PUBLISHED = {
    "random": ("Random", 86.30, None),
    "dotprod": ("DotProd", 90.62, None),
    "cluster": ("Clustering", 91.65, None),
    "packing": ("Packing", 91.78, None),
    "bestfit": ("BestFit", 92.86, 93.08),
    "fgd": ("FGD", 95.23, 95.39),
    "tight": ("placeopt: tight", None, None),
}
#: Points by which a policy may differ; what ours has to exceed.
CLOSE, AIM = 0.3, 95.4
#: Seeds on which nothing was chosen.
FRESH = 30


def measured(rule: str, seeds: int, first: int = 42) -> list[float]:
    """Return means of the shares at 100 and 130 % arrivals, and CPU seconds of a seed."""
    import numpy as np
    from gpu_scores import fill, typical

    arrays = gpu_nodes()

    def one(seed: int) -> tuple[float, float]:
        room = arrays.room()
        kinds = typical(arrays.need, arrays.of_class, len(room.state))
        came, held = fill(rule, room, arrays.need, arrays.of_class, kinds, seed, 1.3)
        return float(held[np.searchsorted(came, 1.0) - 1]), float(held[-1])

    one(0)  # compiles
    shares, seconds = timed(lambda: [one(first + k) for k in range(seeds)])
    return [*(100 * np.mean(shares, axis=0)), seconds / seeds]


def main() -> None:
    """Measure and write the page."""
    run = Benchmark(__file__, __doc__, "numpy", "numba", seeds=10)
    rows = []
    for rule, (name, at_100, at_130) in PUBLISHED.items():
        work = partial(measured, rule, run.seeds)
        first, last, seconds = run.cell(f"{rule} {run.seeds}", work)
        fresh = run.cell(f"{rule} fresh", partial(measured, rule, FRESH, 1000))
        far = [abs(a - b) for a, b in ((first, at_100), (last, at_130)) if b is not None]
        word = verdict(max(far) <= CLOSE) if far else verdict(last > AIM)
        cells = (f"{at:.2f}" if at else "-" for at in (at_100, at_130))
        rows.append(
            [name, *cells, f"{first:.2f}", f"{last:.2f}", word, f"{fresh[1]:.2f}", f"{seconds:.2f}"]
        )
    run.write(
        "GPU schedulers on openb",
        "Share of all GPUs allocated, in %, when pods that ask for 100 and for 130 % of them have "
        f"arrived; means of {run.seeds} seeds. Aim: within {CLOSE} points of what was published; "
        f"ours above {AIM} at 130 %. Ours scores as FGD does, and of nodes with the same score "
        "takes the one with the least left; the published experiments take the first in a drawn "
        f"order. Where one figure is published, it is taken as that of 100 %. The rule of ours was "
        f"chosen on some of these seeds: the last share is that of {FRESH} others.",
        table(
            "policy | published, 100 % | published, 130 % | 100 % | 130 % | aim | "
            "130 %, other seeds | CPU s a seed",
            rows,
        ),
    )


if __name__ == "__main__":
    main()
