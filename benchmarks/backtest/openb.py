"""What policies would have cost on openb, and the oracle's bound; writes openb.md.

    PLACEOPT_DATA=folder python benchmarks/backtest/openb.py [--seeds 3]

The whole trace: 1,523 nodes, 8,152 pods, 149 days. The folder holds ``openb``.
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from harness import Benchmark, table, timed, verdict
from openb_trace import trace

#: Karpenter, cluster-autoscaler and ours look every minute; the descheduler every five, as it does.
KARPENTER = ("karpenter", "karpenter:rule=most")
PEERS = ("none", "cluster-autoscaler", *KARPENTER, "high-node-utilization")
FEW = "placeopt:interval=24h,moves=1%"
NIGHTLY = "placeopt:interval=24h"
HOURLY = "placeopt:interval=1h"
SHOWN = ("usd", "node_hours", "moved", "stopped", "wait_mean_s", "wait_99_s")


def measured(arrays: Any, text: str, seed: int) -> list[float]:
    """Return figures of a run, and its CPU seconds."""
    from placeopt.backtest.engine import run
    from placeopt.backtest.policies import policy_of

    (_, figures), seconds = timed(lambda: run(arrays, policy_of(text), seed))
    return [*(float(figures[name]) for name in SHOWN), seconds]


def _lives(arrays: Any) -> Any:
    return arrays.deleted - arrays.created


def _middle(arrays: Any) -> float:
    """Return the median life of a pod, s."""
    import numpy as np

    return float(np.median(_lives(arrays)))


def _long(arrays: Any) -> float:
    """Return the share of GPU-hours of pods that live more than a day."""
    hours = arrays.need.gpus * arrays.need.share * _lives(arrays)
    return float(hours[_lives(arrays) > 86400].sum() / hours.sum())


def main() -> None:
    """Measure and write the page."""
    import numpy as np

    from placeopt.backtest.arrays import arrays_of
    from placeopt.backtest.bound import bound_usd

    run = Benchmark(__file__, __doc__, "numpy", "numba", seeds=3)
    arrays = arrays_of(trace())
    means = {}
    for text in (HOURLY, NIGHTLY, FEW, *PEERS):
        cells = [
            run.cell(f"{text} {seed}", partial(measured, arrays, text, seed))
            for seed in range(1, run.seeds + 1)
        ]
        means[text] = np.mean(cells, axis=0)
    bound = run.cell("bound", partial(bound_usd, arrays))
    rows = [
        [f"`{text}`", *(f"{v:,.1f}" for v in m[:-1]), f"{m[0] / bound - 1:.1%}", f"{m[-1]:.1f}"]
        for text, m in sorted(means.items(), key=lambda one: one[1][0])
    ]
    rows.append(["bound", f"{bound:,.1f}", *["-"] * (len(SHOWN) + 1)])
    best = min(PEERS, key=lambda text: means[text][0])
    few, nightly, hourly = (means[text] for text in (FEW, NIGHTLY, HOURLY))
    karpenter = min((means[text] for text in KARPENTER), key=lambda m: m[0])
    aims = [
        ["nightly, at most 1 % moved: at or below Karpenter's cost", few[0] <= karpenter[0]],
        ["nightly, at most 1 % moved: fewer moved pods than Karpenter", few[2] < karpenter[2]],
        ["nightly, at most 1 % moved: at most 98,008 USD", few[0] <= 98_008],
        ["nightly, any number moved: at or below Karpenter's cost", nightly[0] <= karpenter[0]],
        ["nightly, any number moved: fewer than Karpenter", nightly[2] < karpenter[2]],
        ["hourly: at most 88,278 USD", hourly[0] <= 88_278],
        ["hourly: fewer moved pods than Karpenter", hourly[2] < karpenter[2]],
        ["hourly: at most 120 CPU s", hourly[-1] <= 120],
    ]
    run.write(
        "Policies on openb",
        f"8,152 pods over 149 days, means of {run.seeds} seeds. openb has no prices; those of "
        "`benchmarks/backtest/openb_trace.py` are ours, the same for all. The trace begins with "
        "120 days of few pods, so `none` pays for a cluster that is nearly empty. The best peer is "
        f"`{best}`.",
        table(
            "policy | USD | node hours | moved | of them stopped | wait, mean, s | 99 % | over the "
            "bound | CPU s",
            rows,
        ),
        table("aim | ", [[aim, verdict(bool(holds))] for aim, holds in aims]),
        "The bound counts no start-up, and nodes that are there exactly while they are needed; "
        "pods may be on any of them at any moment. `placeopt.backtest.bound` says what it counts. "
        "Policies wait ten seconds before they order, pay a node from its order, which takes pods "
        "a minute later, and keep it until a look finds it empty; no policy knows when pods end.",
        f"Half of all pods live less than {_middle(arrays) / 60:.0f} minutes, but those that live "
        f"more than a day have {_long(arrays):.0%} of the GPU-hours: a plan that puts them on "
        "fewer or cheaper nodes saves for days. placeopt's plans free nodes, and replace them by "
        "cheaper ones with room for what fits nowhere else; Karpenter stops every pod that it "
        "moves. `moves=1%` is a share of the pods that run or came since the last plan: none on "
        f"most nights, since there are too few; {few[2]:,.0f} in all. How placeopt chooses what to "
        "buy for pods that wait was tried out on the first seed of this trace, and on drawn ones, "
        "where it changes nothing.",
        "The scheduler scores by MostAllocated with placeopt, HighNodeUtilization and `rule=most`, "
        "by LeastAllocated, its default, with the others. "
        "Karpenter is compared where it is cheaper. Karpenter and cluster-autoscaler look every "
        "minute here, the real ones every ten seconds: those may cost less.",
    )


if __name__ == "__main__":
    main()
