"""Every method on many tiny instances, against every plan there is: how many claims are not true.

    python benchmarks/differential/run.py [--instances 150] [--largest 1]

Writes results.md beside this file. The brute force is that of tests/differential: it shares no
code with placeopt. Exit code 1 where a claim is false.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent), str(HERE.parents[1] / "tests" / "differential")]

import stamps  # noqa: E402
from brute_force import Document, Values, attainable, best  # noqa: E402
from drawn import DRAW, draw  # noqa: E402
from faults import faults  # noqa: E402
from machine import facts  # noqa: E402
from test_differential import CASES, answer  # noqa: E402

from placeopt import registry  # noqa: E402
from placeopt.core.errors import UnsupportedError  # noqa: E402

COLUMNS = ("problem", "method", "instances", "infeasible", "points", "exact points", "complete")


def main() -> None:
    """Draw, answer, check and write the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--instances", type=int, default=150, help="instances per problem")
    parser.add_argument("--largest", type=int, default=1, choices=(0, 1, 2), help="largest size")
    arguments = parser.parse_args()
    rows, false = [], []
    for kind in DRAW:
        known = []
        for seed in range(arguments.instances):
            document = draw(kind, seed, seed % (arguments.largest + 1))
            known.append((document, attainable(document)))
        for method, other in CASES:
            if other == kind:
                row, found = _measured(kind, method, known)
                rows.append(row)
                false += found
                print(*row, len(found), sep=" | ", flush=True)
    lines = _page(rows, false, arguments.instances)
    stamps.write(HERE / "results.md", "\n".join(lines), __file__, vars(arguments))
    sys.exit(bool(false))


def _measured(
    kind: str, method: str, known: list[tuple[Document, set[Values]]]
) -> tuple[tuple[str, ...], list[str]]:
    """Return the row of a method, and its false claims."""
    count: Counter[str] = Counter()
    false = []
    for seed, (document, values) in enumerate(known):
        try:
            front = answer(document, method, kind in registry.certified() and seed % 3 == 0)
        except UnsupportedError:
            continue
        false += [f"{kind}, {method}, seed {seed}: {x}" for x in faults(document, front, values)]
        truth = {tuple(round(x, 7) for x in row) for row in best(values)}
        reached = sum(tuple(round(x, 7) for x in p.values) in truth for p in front.points)
        count.update(
            instances=1,
            infeasible=not values,
            points=len(front),
            exact=reached,
            complete=front.complete,
        )
    measures = ("instances", "infeasible", "points", "exact", "complete")
    return (kind, method, *(f"{count[m]:,}" for m in measures)), false


def _page(rows: list[tuple[str, ...]], false: list[str], instances: int) -> list[str]:
    """Return the lines of results.md."""
    return [
        "# Tiny instances, every method, every plan",
        "",
        facts("numpy", "moocore", "highspy"),
        "",
        f"{instances} random instances per problem; every third is certified if it can be.",
        "Checked of every front: the values and feasibility of each plan, that",
        "no point is better than all plans, statuses, bounds, completeness, and the gap, also of a",
        "part of the front. `exact points` are on the true front. Budget: 60 evaluations.",
        "",
        f"**False claims: {len(false)}.**",
        "",
        *(f"* {text}" for text in false),
        *([""] if false else []),
        "| " + " | ".join(COLUMNS) + " |",
        "|" + "---|" * len(COLUMNS),
        *("| " + " | ".join(row) + " |" for row in rows),
    ]


if __name__ == "__main__":
    main()
