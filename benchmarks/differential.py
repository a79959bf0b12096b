"""Every method on many tiny instances, against every plan there is: how many claims are not true.

    python benchmarks/differential.py [--instances 150] [--largest 1]

The brute force is that of tests/differential: it shares no code with placeopt. Exit code 1 where a
claim is false.
"""

from __future__ import annotations

import sys
from collections import Counter
from typing import Any

from harness import ROOT, Benchmark, shown, table

sys.path.insert(1, str(ROOT / "tests" / "differential"))

from brute_force import Document, Values, attainable
from drawn import DRAW, draw
from faults import faults
from rolling_updates import best
from test_differential import CASES, answer

from placeopt import registry
from placeopt.core.errors import UnsupportedError

COUNTED = ("instances", "infeasible", "points", "exact points", "complete")


def measured(
    kind: str, method: str, known: list[tuple[Document, set[Values]]]
) -> tuple[list[Any], list[str]]:
    """Return the row of a method, and its false claims."""
    count: Counter[str] = Counter()
    false = []
    for seed, (document, values) in enumerate(known):
        try:
            front = answer(document, method, kind in registry.certified() and seed % 3 == 0)
        except UnsupportedError:
            continue
        false += [f"* {kind}, {method}, seed {seed}: {x}" for x in faults(document, front, values)]
        truth = {tuple(round(x, 7) for x in row) for row in best(values)}
        reached = sum(tuple(round(x, 7) for x in p.values) in truth for p in front.points)
        facts = (1, not values, len(front), reached, front.complete)
        count.update(dict(zip(COUNTED, facts, strict=True)))
    return shown([kind, method, *(f"{count[m]:,}" for m in COUNTED)]), false


def main() -> None:
    """Draw, answer, check and write the table."""
    run = Benchmark(__file__, __doc__, "numpy", "moocore", "highspy", instances=150, largest=1)
    rows, false = [], list[str]()
    for kind in DRAW:
        documents = [draw(kind, s, s % (run.largest + 1)) for s in range(run.instances)]
        known = [(document, attainable(document)) for document in documents]
        for method in [m for m, other in CASES if other == kind]:
            row, wrong = measured(kind, method, known)
            rows.append(row)
            false += wrong
    run.write(
        "Tiny instances, every method, every plan",
        f"{run.instances} random instances per problem; every third is certified if it can be. "
        "Checked of every front: the values and feasibility of each plan, that no point is better "
        "than all plans, statuses, bounds, completeness, and the gap, also of a part of the "
        "front. `exact points` are on the true front. Budget: 60 evaluations.",
        f"**False claims: {len(false)}.**",
        false,
        table(" | ".join(("problem", "method", *COUNTED)), rows),
    )
    sys.exit(bool(false))


if __name__ == "__main__":
    main()
