"""The default search on instances that nothing was tuned on.

It is compared with every method at ten times its budget.

python benchmarks/temporal_search/heldout.py [--evaluations 50000]        # writes heldout.md
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

import stamps  # noqa: E402
from machine import facts, table  # noqa: E402

import placeopt  # noqa: E402
from placeopt.temporal.instance import Temporal  # noqa: E402

#: Seeds of the generator that nothing was tuned on.
INSTANCES = tuple(range(901, 911))
RIVALS = ("nsga2", "nsga3", "mspso", "moead")
AIM = 0.01


def main() -> None:
    """Run and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--evaluations", type=int, default=50_000)
    evaluations = parser.parse_args().evaluations
    text = ["# Held-out instances", "", facts("numpy", "numba", "pymoo", "moocore"), ""]
    rows, losses = [], []
    for instance in INSTANCES:
        problem = Temporal.generate(instance)
        began = time.process_time()
        default = placeopt.solve(problem, "auto", evaluations=evaluations, seed=1)
        seconds = time.process_time() - began
        fronts = {}
        for method in RIVALS:
            parameters = {"points": None} if method.startswith("nsga") else {}
            fronts[method] = placeopt.solve(
                problem, method, evaluations=10 * evaluations, seed=2, **parameters
            )
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
                f"{seconds:.1f}",
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
