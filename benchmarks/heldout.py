"""The default search on instances that nothing was tuned on, beside ten times its budget.

python benchmarks/heldout.py [--evaluations 50000]
"""

from __future__ import annotations

from typing import Any

import numpy as np
from harness import ROOT, Benchmark, plain_share, shown, table, verdict

import placeopt
from placeopt.temporal.problem import Temporal

#: Seeds of the generator that nothing was tuned on.
INSTANCES = tuple(range(901, 911))
RIVALS = ("nsga2", "nsga3", "mspso", "moead")
AIM = 0.01


def swept(**plan: Any) -> tuple[list[Any], list[Any]]:
    """Return the rows and the fronts of methods on all instances; a stopped sweep goes on."""
    drawn = [{"problem": "temporal", "seed": seed} for seed in INSTANCES]
    found = placeopt.sweep({"instances": drawn, **plan}, run_dir=ROOT / "out" / "heldout")
    assert found.complete, [row["error"] for row in found.rows]
    return found.rows, [front for front in found.fronts if front is not None]


def main() -> None:
    """Run and write the table."""
    run = Benchmark(__file__, __doc__, "numpy", "numba", "pymoo", "moocore", evaluations=50_000)
    few, many = run.evaluations, 10 * run.evaluations
    placeopt.solve(Temporal.generate(1), evaluations=1000)  # compile
    told, defaults = swept(methods=["auto"], seeds=[1], evaluations=[few])
    every = [{"name": m} | ({"points": None} if m[:4] == "nsga" else {}) for m in RIVALS]
    _, others = swept(methods=every, seeds=[2], evaluations=[many])
    rows, losses = [], []
    for k, (instance, default) in enumerate(zip(INSTANCES, defaults, strict=True)):
        fronts = [default, *others[k * len(RIVALS) : (k + 1) * len(RIVALS)]]
        reference = 1.1 * np.max([front.nadir for front in fronts], axis=0)
        mine, *volumes = [plain_share(front, reference) for front in fronts]
        losses.append(1 - mine / max(volumes))
        cells = f"{mine:.4f}", f"{told[k]['cpu_seconds']:.1f}", *(f"{v:.4f}" for v in volumes)
        best = RIVALS[int(np.argmax(volumes))]
        rows.append(shown([instance, *cells, best, f"{losses[-1]:.2%}"]))
    rivals = " | ".join(f"{m}, {many:,}" for m in RIVALS)
    run.write(
        "Held-out instances",
        table(f"generator seed | auto, {few:,} | CPU s | {rivals} | best | behind it by", rows),
        "Hypervolume in the plain form, reference 1.1 times the worst of all fronts. The aim, at "
        f"most {AIM:.0%} behind the best of all methods at ten times the budget: "
        f"{verdict(max(losses) <= AIM)}.",
    )


if __name__ == "__main__":
    main()
