"""Whether the plans that `bound` builds at its dual prices are good to start a search from.

By evaluation, and by second.

python benchmarks/temporal_search/dual_seeds.py [--evaluations 50000]        # writes dual_seeds.md
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

#: Seeds of the generator.
INSTANCES = (31, 32, 33)
#: Seeds of the search.
SEEDS = (1, 2, 3)


def verdict(rows: list[tuple]) -> list[str]:
    """Return what the plans change by evaluation and by second: mean and standard error, points."""
    plain, started, longer = (
        np.array([float(row[k].rstrip("%")) for row in rows]) for k in (3, 4, 5)
    )
    lines = []
    for what, gained in (("by evaluation", plain - started), ("by second", longer - started)):
        error = gained.std(ddof=1) / np.sqrt(len(gained))
        lines.append(
            f"What the plans gain {what}: {gained.mean():+.2f} points, standard error {error:.2f}."
        )
    return lines


def main() -> None:
    """Run and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--evaluations", type=int, default=50_000)
    evaluations = parser.parse_args().evaluations
    placeopt.solve(Temporal.generate(1, requests=5), "moead", evaluations=1000)  # compile
    rows = []
    for instance in INSTANCES:
        problem = Temporal.generate(instance)
        best = placeopt.solve(problem, "moead", evaluations=20 * evaluations, seed=9)
        reference = best.reference()
        whole = best.hypervolume(reference)
        began = time.process_time()
        bound = placeopt.solve(problem, "bound")
        spent = time.process_time() - began
        for seed in SEEDS:
            began = time.process_time()
            plain = placeopt.solve(problem, "moead", evaluations=evaluations, seed=seed)
            seconds = time.process_time() - began
            started = placeopt.solve(
                problem, "moead", evaluations=evaluations, seed=seed, start=bound
            )
            longer = int(
                evaluations * (1 + spent / seconds)
            )  # what the time of the bound is worth in evaluations, judging included
            rest = placeopt.solve(problem, "moead", evaluations=longer, seed=seed)
            losses = [1 - f.hypervolume(reference) / whole for f in (plain, started, rest)]
            rows.append((instance, seed, f"{spent:.1f}", *(f"{x:.2%}" for x in losses), longer))
            print(rows[-1], flush=True)
    head = (
        "generator seed",
        "seed",
        "CPU s of the bound",
        f"plain, {evaluations:,}",
        "with its plans",
        "plain, as long",
        "evaluations of that",
    )
    text = [
        "# Plans at dual prices as seeds",
        "",
        facts("numpy", "numba", "highspy", "moocore"),
        "",
        *table(head, rows),
        "",
    ]
    text += [f"Hypervolume behind that of {20 * evaluations:,} evaluations.", *verdict(rows)]
    settings = {"evaluations": evaluations}
    stamps.write(HERE / "dual_seeds.md", "\n".join(text), __file__, settings)


if __name__ == "__main__":
    main()
