"""The default search on instances that nothing was tuned on.

It is compared with every method at ten times its budget.

python benchmarks/temporal_search/heldout.py [--evaluations 50000]        # writes heldout.md
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

import stamps  # noqa: E402
from machine import facts, table  # noqa: E402

import placeopt  # noqa: E402
from placeopt.core.front import Front  # noqa: E402
from placeopt.temporal.instance import Temporal  # noqa: E402

#: Seeds of the generator that nothing was tuned on.
INSTANCES = tuple(range(901, 911))
RIVALS = ("nsga2", "nsga3", "mspso", "moead")
AIM = 0.01


def swept(run_dir: Path | None, **plan: Any) -> tuple[list[dict[str, Any]], list[Front]]:
    """Return the rows and the fronts of methods on all instances."""
    drawn = [{"problem": "temporal", "seed": seed} for seed in INSTANCES]
    found = placeopt.sweep({"instances": drawn, **plan}, run_dir=run_dir)
    assert found.complete, [row["error"] for row in found.rows]
    return found.rows, [front for front in found.fronts if front is not None]


def main() -> None:
    """Run and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--evaluations", type=int, default=50_000)
    parser.add_argument("--run-dir", type=Path, help="Keep runs; the same command takes them up.")
    given = parser.parse_args()
    evaluations = given.evaluations
    text = ["# Held-out instances", "", facts("numpy", "numba", "pymoo", "moocore"), ""]
    placeopt.solve(Temporal.generate(1), evaluations=1000)  # compile
    told, defaults = swept(given.run_dir, methods=["auto"], seeds=[1], evaluations=[evaluations])
    every = [{"name": m} | ({"points": None} if m[:4] == "nsga" else {}) for m in RIVALS]
    _, others = swept(given.run_dir, methods=every, seeds=[2], evaluations=[10 * evaluations])
    rows, losses = [], []
    for k, (instance, default) in enumerate(zip(INSTANCES, defaults, strict=True)):
        fronts = dict(zip(RIVALS, others[k * len(RIVALS) :], strict=False))
        reference = 1.1 * np.max([f.nadir for f in (default, *fronts.values())], axis=0)
        volumes = {
            method: front.hypervolume(reference, plain=True) for method, front in fronts.items()
        }
        best = max(volumes, key=lambda m: volumes[m])
        mine = default.hypervolume(reference, plain=True)
        losses.append(1 - mine / volumes[best])
        rows.append(
            (
                instance,
                f"{mine:.4f}",
                f"{told[k]['cpu_seconds']:.1f}",
                *(f"{volumes[m]:.4f}" for m in RIVALS),
                best,
                f"{losses[-1]:.2%}",
            )
        )
        print(rows[-1], flush=True)
    head = (
        "generator seed",
        f"auto, {evaluations:,}",
        "CPU s",
        *(f"{m}, {10 * evaluations:,}" for m in RIVALS),
        "best",
        "behind it by",
    )
    verdict = "met" if max(losses) <= AIM else "missed"
    text += [
        *table(head, rows),
        "",
        "Hypervolume in the plain form, reference 1.1 times the worst of all fronts.",
    ]
    text += [
        f"The aim, at most {AIM:.0%} behind the best of all methods at ten times the budget: "
        f"{verdict}."
    ]
    settings = {"evaluations": evaluations}
    stamps.write(HERE / "heldout.md", "\n".join(text), __file__, settings)


if __name__ == "__main__":
    main()
