"""`placeopt.enumerate` on random models of many kinds, against every vector that they can reach.

    python benchmarks/enumeration/random_models.py [--each 80] [--kinds KIND ...]

Writes ``random_models.md`` beside this file. The models and the brute force are those of
tests/differential/models.py: exact, in fractions, without code of placeopt. Exit code 1 where an
answer is false. Fifteen minutes of CPU. Rows are kept in ``random_models.json`` as they are
measured:
what it has of the same seeds is not measured again.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).parent
CELLS = HERE / "random_models.json"
sys.path[:0] = [str(HERE.parent), str(HERE.parents[1] / "tests" / "differential")]

import stamps  # noqa: E402
from machine import facts, table  # noqa: E402

from models import KINDS, answered, drawn, is_refused  # noqa: E402
from placeopt.core.errors import PlaceoptError  # noqa: E402

SOLVERS = ("highs", "scip")
#: Seconds for one model: far more than any takes.
LIMIT = 600.0
#: Endings that lack nothing.
SURE = ("complete", "extreme", "grid", "infeasible", "refused")


def main() -> None:
    """Draw, answer, judge and write the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--each", type=int, default=80, help="models of each kind")
    parser.add_argument("--first", type=int, default=1000, help="seed of the first")
    parser.add_argument("--kinds", nargs="*", default=list(KINDS), choices=list(KINDS))
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    arguments = parser.parse_args()
    seeds = range(arguments.first, arguments.first + arguments.each)
    asked = [(kind, solver) for kind in arguments.kinds for solver in SOLVERS]
    kept = {(row.kind, row.solver): row for row in _kept(seeds)}
    with ProcessPoolExecutor(arguments.jobs) as pool:
        left = [one for one in asked if one not in kept]
        for future in as_completed([pool.submit(measured, *one, seeds) for one in left]):
            row = future.result()
            kept[row.kind, row.solver] = row
            print(row, file=sys.stderr, flush=True)
            CELLS.write_text(json.dumps([vars(row) for row in kept.values()], indent=1) + "\n")
    rows = [kept[one] for one in asked]
    remarks = [remark for row in rows for remark in row.remarks]
    false = sum(row.false for row in rows)
    settings = {"each": arguments.each, "first": arguments.first, "kinds": arguments.kinds}
    stamps.write(HERE / "random_models.md", page(rows, remarks), __file__, settings)
    sys.exit(1 if false else 0)


def _kept(seeds: range) -> Iterator[Tally]:
    """Yield the rows of these seeds that were measured before."""
    for row in json.loads(CELLS.read_text()) if CELLS.exists() else ():
        if (row["first"], row["models"]) == (seeds.start, len(seeds)):
            yield Tally(**{**row, "ends": Counter(row["ends"])})


@dataclass
class Tally:
    """How the models of a kind end by one solver."""

    kind: str
    solver: str
    models: int
    first: int = 0
    ends: Counter[str] = field(default_factory=Counter)
    false: int = 0
    points: int = 0
    calls: int = 0
    cpu: float = 0.0
    remarks: list[str] = field(default_factory=list)


def measured(kind: str, solver: str, seeds: range) -> Tally:
    """Answer the models of a kind, and judge the answers."""
    logging.disable(logging.CRITICAL)  # Pyomo's remarks on its pieces
    tally, began = Tally(kind, solver, len(seeds), seeds.start), time.process_time()
    remarks = tally.remarks
    for seed in seeds:
        case = drawn(kind, seed)
        try:
            front, found = answered(case, solver=solver, seconds=LIMIT)
        except PlaceoptError as error:
            tally.ends["refused"] += 1
            found = [] if is_refused(case, error) else [f"{type(error).__name__}: {error}"]
        except Exception as error:
            tally.ends["crashed"] += 1
            found = [f"{type(error).__name__}: {error}"]
        else:
            said = front.runs[0].parameters
            tally.ends[said["status"]] += 1
            tally.calls += front.runs[0].solver_calls
            tally.points += len(front)
            if said["status"] not in SURE:
                remarks.append(f"{kind} {seed}, {solver}: {said['reason']}")
        if found:
            tally.false += 1
            remarks.append(f"{kind} {seed}, {solver}: FALSE, {found[0]}")
    tally.cpu = time.process_time() - began
    return tally


def page(rows: list[Tally], remarks: list[str]) -> str:
    """Return the page."""
    header = ["kind", "what", "solver", "models", "false", "ends", "points", "calls", "CPU s"]
    body = [
        [
            row.kind,
            (KINDS[row.kind].__doc__ or "").strip().split("\n")[0].rstrip("."),
            row.solver,
            row.models,
            row.false,
            ", ".join(f"{n} {end}" for end, n in row.ends.most_common()),
            row.points,
            row.calls,
            f"{row.cpu:.1f}",
        ]
        for row in rows
    ]
    models = sum(row.models for row in rows if row.solver == SOLVERS[0])
    asked = sum(row.models for row in rows)
    sure = sum(n for row in rows for end, n in row.ends.items() if end in SURE)
    lines = [
        "# Random models, against brute force",
        "",
        "Written by `random_models.py`. A front is false where it lacks a point under `complete`,",
        "has one that is no vector of the model, calls one optimal that is beaten, breaks a gap,",
        "has bounds above a vector, or ends with a status that is not so.",
        "",
        f"* {facts('highspy', 'pyscipopt', 'pyomo', 'numpy')}",
        f"* {models:,} models, each by both solvers: {sum(row.false for row in rows)} false",
        f"* {sure:,} of {asked:,} answers lack nothing; of the others the status says what",
        "",
        *table(header, body),
        "",
    ]
    if remarks:
        lines += ["## What lacks something", "", *(f"* {remark}" for remark in remarks), ""]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
