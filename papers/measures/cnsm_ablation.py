"""What seeds, encoding, operators are each worth: the CNSM 2024 paper's instance, three goals."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from machine import table
from papers import cnsm

FULL = {"evaluations": 20_000, "seeds": 3}
QUICK = {"evaluations": 2_000, "seeds": 1}
METHODS = ("nsga2", "mspso", "moead")


def measure(cells: Any, evaluations: int, seeds: int) -> dict[str, Any]:
    problem, which = cnsm.paper_instance()
    rows = []
    choices = itertools.product(METHODS, (True, False), ("own", "published"), ("own", "sbx"))
    for method, seeded, encoding, operators in choices:
        settings = {"seeded": seeded, "encoding": encoding, "operators": operators}
        cnsm.solved(problem, method, (0, 1, 2), 50, 1, **settings)  # compile
        shares, seconds = [], []
        for seed in range(1, seeds + 1):
            key = f"{method} {settings} {evaluations} {seed}"
            args = (problem, method, evaluations, seed)
            one = cells(key, lambda a=args, s=settings: shares_of(*a, **s))
            shares.append(one["shares"])
            seconds.append(one["seconds"])
        wide, tight = np.median(shares, axis=0).tolist()
        row = {"method": method, **settings, "wide": wide, "tight": tight}
        rows.append(row | {"seconds": float(np.median(seconds))})
    greedy = cells("greedy", lambda: shares_of(problem, "greedy", evaluations, 1))
    return {
        "instance": which,
        "evaluations": evaluations,
        "seeds": seeds,
        "rows": rows,
        "greedy": dict(zip(("wide", "tight"), greedy["shares"], strict=True)),
        "worth": worth(rows),
    }


def shares_of(
    problem: Any, method: str, evaluations: int, seed: int, **settings: Any
) -> dict[str, Any]:
    """Return the shares of the wide and the tight box that a run covers, and its seconds."""
    run = cnsm.solved(problem, method, (0, 1, 2), evaluations, seed, **settings)
    shares = [
        cnsm.hypervolume(run["values"], at) / float(np.prod(at)) for at in (cnsm.WIDE, cnsm.TIGHT)
    ]
    return {"shares": shares, "seconds": run["seconds"]}


def worth(rows: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Return by method what each of ours adds to the wide share, alone and as the last of three."""
    found: dict[str, dict[str, float]] = {}
    ours = {"seeded": True, "encoding": "own", "operators": "own"}
    theirs = {"seeded": False, "encoding": "published", "operators": "sbx"}
    for method in METHODS:
        wide = {
            tuple(row[key] for key in ours): row["wide"] for row in rows if row["method"] == method
        }
        found[method] = {}
        for key in ours:
            alone, without = theirs | {key: ours[key]}, ours | {key: theirs[key]}
            first = wide[tuple(alone.values())] - wide[tuple(theirs.values())]
            last = wide[tuple(ours.values())] - wide[tuple(without.values())]
            found[method] |= {f"{key}, alone": first, f"{key}, last": last}
    return found


def page(result: dict[str, Any]) -> list[str]:
    lines = [
        "# CNSM 2024: what seeds, encoding and operators are worth",
        "",
        f"Instance: {result['instance']}. Latency, cost and interruption; "
        f"{result['evaluations']:,} evaluations, median of {result['seeds']} seeds. Shares of the "
        "hypervolume at the fixed points *wide* and *tight*. `own` is placeopt's, `published` and "
        "`sbx` are the paper's.",
        "",
        f"Greedy construction alone, no search: {result['greedy']['wide']:.4f} wide, "
        f"{result['greedy']['tight']:.4f} tight.",
        "",
    ]
    head = ("method", "seeds", "encoding", "operators", "wide", "tight", "CPU s")
    rows = [
        (
            r["method"],
            "greedy" if r["seeded"] else "none",
            r["encoding"],
            r["operators"],
            f"{r['wide']:.4f}",
            f"{r['tight']:.4f}",
            f"{r['seconds']:.2f}",
        )
        for r in result["rows"]
    ]
    lines += [*table(head, rows), "", "## What each adds to the wide share", ""]
    lines += [
        "*Alone*: in place of the paper's, all else as published. *Last*: what is lost where it "
        "alone goes back to the paper's.",
        "",
    ]
    parts = list(result["worth"]["nsga2"])
    named = [part.replace("seeded", "seeds") for part in parts]
    rows = [(m, *(f"{w[part]:+.4f}" for part in parts)) for m, w in result["worth"].items()]
    return [*lines, *table(("method", *named), rows)]
