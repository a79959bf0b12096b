"""Every method on many tiny instances, against every plan there is: how many claims are not true.

    python benchmarks/differential.py [--instances 150] [--largest 1]
    python benchmarks/differential.py --instances 0 --proofs 600 --ruled 3000

The brute force is that of tests/differential: it shares no code with placeopt. Proofs are tried on
instances of their own, with a certificate for every second and a limit on one objective for every
third; rolling updates have all rules together, and one of the methods in turn. Exit code 1 where a
claim is false.
"""

from __future__ import annotations

import sys
from collections import Counter
from typing import Any

from harness import ROOT, Benchmark, shown, table

sys.path.insert(1, str(ROOT / "tests" / "differential"))

import numpy as np
from brute_force import Document, Values, attainable
from drawn import DRAW, draw, ruled
from faults import faults
from rolling_updates import best
from test_differential import CASES, answer

import placeopt
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


#: Problem -> methods that prove something, and those whose fronts a certificate is made for.
PROVERS = {
    "temporal": ("auto", "bin-plans", "bound", "epsilon-constraint"),
    "edge-cloud": ("auto", "bound", "lns", "epsilon-constraint"),
    "rolling-update": ("auto", "decomposition", "repack"),
    "multi-cluster": ("auto", "placement-search"),
    "rescheduling": ("auto", "block-search", "epsilon-constraint"),
}
PROVEN = ("instances", "infeasible", "points", "optimal", "complete", "certified", "limited")
#: Instances of proofs are no others' instances.
FIRST = 10_000
#: Instances whose result is kept together.
TOGETHER = 100


def claims(kind: str, seeds: range) -> dict[str, Any]:
    """Return what the provers of a problem said of instances, by method, and what was false."""
    counts = {method: Counter[str]() for method in PROVERS[kind]}
    false = []
    for seed in seeds:
        methods = PROVERS[kind]
        if kind == "rolling-update":
            document = ruled(np.random.default_rng([seed, 3]), seed % 3)
            methods = methods[seed // 6 % 3 :][:1]
        else:
            document = draw(kind, seed)
        values = attainable(document)
        for method in methods:
            facts, wrong = claim(document, method, seed, values)
            counts[method].update(facts)
            false += [f"* {kind}, {method}, seed {seed}: {text}" for text in wrong]
    return {"counts": {method: dict(count) for method, count in counts.items()}, "false": false}


def claim(
    document: Document, method: str, seed: int, values: set[Values]
) -> tuple[dict[str, int], list[str]]:
    """Return what one method said of one instance, and what of it is false."""
    problem, limits = registry.from_document(document), None
    certify = bool(seed % 2) and document["problem"] in registry.certified()
    if seed % 3 == 0 and values:
        goal = seed // 3 % len(problem.objectives)
        most = sorted(vector[goal] for vector in values)[len(values) // 2]
        limits = {problem.objectives[goal].name: most}
        values = {vector for vector in values if vector[goal] <= most}
    try:
        front = placeopt.solve(
            problem, method, evaluations=60, seed=1, certify=certify, limits=limits
        )
    except UnsupportedError:
        return {}, []
    optimal = sum(point.status == "optimal" for point in front.points)
    facts = (1, not values, len(front), optimal, front.complete, certify, limits is not None)
    said = dict(zip(PROVEN, map(int, facts), strict=True))
    return said, list(faults(document, front, values))


def proofs(run: Benchmark) -> tuple[list[list[Any]], list[str]]:
    """Return the rows of all provers, and their false claims."""
    rows, false = [], list[str]()
    for kind, methods in PROVERS.items():
        instances = run.ruled if kind == "rolling-update" else run.proofs
        total = {method: Counter[str]() for method in methods}
        for low in range(FIRST, FIRST + instances, TOGETHER):
            seeds = range(low, min(low + TOGETHER, FIRST + instances))
            said = run.cell(f"{kind} {seeds}", lambda k=kind, s=seeds: claims(k, s))
            false += said["false"]
            for method, count in said["counts"].items():
                total[method].update(count)
        rows += [
            shown([kind, method, *(f"{count[m]:,}" for m in PROVEN)])
            for method, count in total.items()
        ]
    return rows, false


def main() -> None:
    """Draw, answer, check and write the table."""
    sizes = {"instances": 150, "largest": 1, "proofs": 600, "ruled": 3000}
    run = Benchmark(__file__, __doc__, "numpy", "moocore", "highspy", **sizes)
    proven, false = proofs(run)
    rows = []
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
        f"Proofs: {run.ruled} rolling updates with all rules together, {run.proofs} instances of "
        "each other problem; every second one has a certificate, every third one a limit on an "
        "objective. A rolling update is answered by one of its methods, in turn.",
        table(" | ".join(("problem", "method", *PROVEN)), proven),
    )
    sys.exit(bool(false))


if __name__ == "__main__":
    main()
