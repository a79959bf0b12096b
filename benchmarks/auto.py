"""What `auto` leaves on the table, and whether time limits are kept.

Every method answers instances that nothing was tuned on, for as long as `auto` does; the union of
all their fronts, auto's too, is what could have been reached. All seconds are CPU seconds.

    python benchmarks/auto.py [--seeds 5] [--limits 2 10 60] [--kinds temporal ...] [--measured]

Measured cells are kept in auto_cells.json, and taken from there. Whoever changes a method deletes
the cells of its problem. With ``--measured`` the page has the rows that are there, and no others.
"""

from __future__ import annotations

import json
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import cpu_clock  # noqa: F401
from harness import Benchmark, shares, shown, table, verdict

import placeopt
from placeopt import registry
from placeopt.core.errors import UnsupportedError
from placeopt.core.fronts.front import Front
from placeopt.warm_up import warm_up

#: Problem and arguments of its generator: a small and a large instance of each.
SIZES: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("temporal", "10 requests", {"requests": 10}),
    ("temporal", "200 requests", {"requests": 200}),
    ("edge-cloud", "50 applications", {"applications": 50}),
    ("edge-cloud", "300 applications", {"applications": 300}),
    ("rolling-update", "the default", {}),
    ("rolling-update", "400 x 40", {"microservices": 400, "nodes": 40}),
    ("multi-cluster", "20 requests", {"requests": 20}),
    ("multi-cluster", "100 requests", {}),
    ("rescheduling", "the default", {}),
    ("rescheduling", "18 machines", {"replicas": 6, "cloud_a": 6, "edge_a": 6, "edge_b": 6}),
)
#: First seed of the generator; none was used while methods were tuned.
FIRST_SEED = 951
#: Methods that are made of others or answer with a fixed rule, and what needs a trained policy.
LEFT_OUT = {"auto", "ensemble", "policy"}
AIM_UNION, AIM_BEST = 0.99, 0.002
CELLS = Path(__file__).with_name("auto_cells.json")
COLUMNS = (
    "problem | size | limit (s) | seeds | auto, of the union | best single method minus auto | "
    "best single method | aims | auto, of two autos | auto took (s) | slowest of all took (s)"
)
WORDS = """Instances: generator seeds from {first} on, as many of each size as the table says. \
Limits are by a clock that counts CPU seconds. Every method runs as long as `auto`. The union of \
all fronts counts as 100 % of the hypervolume, with a reference point at 1.1 x the worst of all \
fronts.

Aims: `auto` has at least {union:.0%} of the union, and no method alone is ahead of it by more \
than {best:.1%}. **Met in {met} of {rows} rows.** Shares are those of the worst seed.

A union gains by chance alone where searches are random. *Auto, of two autos* says how much: the \
share that `auto` has of the union of its front and that of a run with another seed."""


def methods_of(kind: str) -> list[str]:
    """Return auto and every method of a problem that needs nothing else."""
    own = [name for name, entry in registry.methods().items() if kind in entry.of]
    return ["auto", *(name for name in own if name not in LEFT_OUT)]


def measure(kind: str, sizes: dict[str, Any], limit: float, seed: int) -> dict[str, Any]:
    """Let every method answer one instance for `limit` seconds.

    Returns
    -------
    dict
        ``shares`` of the union and ``seconds`` by method; ``again`` is the share of the union of
        two runs of auto, with different seeds, that the first has.
    """

    def run(methods: list[str], seed_of_run: int) -> dict[str, tuple[float, Front]]:
        """Return seconds and front of each method; some refuse instances that are too large."""
        drawn = {"problem": kind, "seed": seed, **sizes}
        plan = {"instances": [drawn], "methods": methods, "seeds": [seed_of_run]}
        swept = placeopt.sweep(plan | {"seconds": [limit]})
        every = zip(swept.rows, swept.fronts, strict=True)
        return {r["method"]: (r["seconds"], front) for r, front in every if front and front.points}

    found = run(methods_of(kind), 1)
    fronts = {method: front for method, (_, front) in found.items()}
    again = shares({"auto": fronts["auto"], "again": run(["auto"], 2)["auto"][1]})["auto"]
    seconds = {method: taken for method, (taken, _) in found.items()}
    return {"shares": shares(fronts), "seconds": seconds, "again": again}


def kept_cell(
    kind: str, sizes: dict[str, Any], limit: float, seed: int, measured: bool
) -> dict[str, Any] | None:
    """Return a cell from the file, or measure it and keep it unless `measured` rules that out."""
    key = f"{kind} {json.dumps(sizes)} {limit:g} {seed}"
    known = json.loads(CELLS.read_text()) if CELLS.exists() else {}
    if key not in known and not measured:
        compile_all(kind, json.dumps(sizes))
        known[key] = measure(kind, sizes, limit, seed)
        CELLS.write_text(json.dumps(known))
    return known.get(key)


@cache
def compile_all(kind: str, sizes: str) -> None:
    """Compile, then run every method for a moment; `sizes` are a JSON object."""
    warm_up([kind])
    problem = registry.problem_class(kind).generate(1, **json.loads(sizes))
    for method in methods_of(kind):
        with suppress(UnsupportedError):
            placeopt.solve(problem, method, seconds=0.3)


def row_of(kind: str, name: str, limit: float, cells: list[dict[str, Any]]) -> list[object]:
    """Return a row of the table."""
    singles = [{m: s for m, s in c["shares"].items() if m != "auto"} for c in cells]
    best = [max(one, key=lambda m, one=one: one[m]) for one in singles]
    autos = [c["shares"].get("auto", 0.0) for c in cells]
    behind = max(one[b] - auto for one, b, auto in zip(singles, best, autos, strict=True))
    slowest = max((c["seconds"] for c in cells), key=lambda seconds: max(seconds.values()))
    last = max(slowest, key=lambda m: slowest[m])
    return [
        *(kind, name, f"{limit:g}", len(cells), f"{min(autos):.2%}", f"{behind:+.2%}"),
        ", ".join(sorted({f"`{b}`" for b in best})),
        verdict(min(autos) >= AIM_UNION and behind <= AIM_BEST),
        f"{min(c['again'] for c in cells):.2%}",
        f"{max(c['seconds']['auto'] for c in cells):.2f}",
        f"{slowest[last]:.2f} (`{last}`)",
    ]


def main() -> None:
    """Measure and write the page."""
    kinds = list(dict.fromkeys(kind for kind, *_ in SIZES))
    libraries = ("numpy", "numba", "pymoo", "highspy", "moocore")
    run = Benchmark(
        __file__,
        __doc__,
        *libraries,
        seeds=5,
        limits=[2.0, 10.0, 60.0],
        kinds=kinds,
        measured=False,
    )
    rows, absent = [], []
    for kind, name, sizes in SIZES:
        for limit in run.limits if kind in run.kinds else ():
            seeds = range(FIRST_SEED, FIRST_SEED + run.seeds)
            found = [kept_cell(kind, sizes, limit, s, run.measured) for s in seeds]
            if cells := [cell for cell in found if cell is not None]:
                rows.append(shown(row_of(kind, name, limit, cells)))
            else:
                absent.append(f"{kind}, {name}, {limit:g} s")
    met = sum(row[7] == "met" for row in rows)
    words = WORDS.format(first=FIRST_SEED, union=AIM_UNION, best=AIM_BEST, met=met, rows=len(rows))
    sittings = "Measured in several sittings; the load above is that at the end."
    left = f"Not measured: {'; '.join(absent)}." if absent else ""
    run.write("`auto` against every method", sittings, words, left, table(COLUMNS, rows))


if __name__ == "__main__":
    main()
