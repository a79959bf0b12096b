"""A public set of instances: a referee, best known fronts, proven bounds, and each method on it.

    python benchmarks/library.py                                   # the page, from the files
    python benchmarks/library.py run --methods auto moead --seconds 10 [--only temporal small]
    python benchmarks/library.py run --write                       # fronts that improve are kept
    python benchmarks/library.py run --table --write --seconds 3   # measures the table of the page

An instance is its problem, sizes and seed; its SHA-256 in ``library/instances.json`` says that the
generator made the same one. ``library/NAME.front.json`` is the best front known, with its plans and
with the best bounds proven: whoever has a better plan hands it in as a front, and the referee
judges it. ``placeopt compare mine.json --best-known benchmarks/library/NAME.front.json`` says what
a front lacks. Limits are CPU seconds of the process.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import cpu_clock  # noqa: F401  # before placeopt
import numpy as np
import stamps
from machine import facts, table

import placeopt
from placeopt import registry
from placeopt.core.fronts.front import Front, merge
from placeopt.core.fronts.words import percent
from placeopt.core.problem import Problem
from placeopt.core.spec import COMPARED

FOLDER = Path(__file__).parent / "library"
KNOWN = FOLDER / "instances.json"
#: What each method reached on each instance: the table of the page.
CELLS = FOLDER / "methods.json"
#: Problem -> its sizes, and the seeds of each: 40 instances. Edge-cloud's seed 2 of 1,000
#: applications has no plan that obeys its rules.
SIZES: dict[str, list[tuple[str, tuple[int, ...], dict[str, Any]]]] = {
    "temporal": [
        ("small", (1, 2, 3), {"requests": 6, "max_replicas": 2, "horizon": 40}),
        ("medium", (1, 2, 3), {"requests": 50}),
        ("large", (1, 2), {"requests": 1000}),
    ],
    "edge-cloud": [
        ("small", (1, 2, 3), {"applications": 5}),
        ("medium", (1, 2, 3), {"applications": 50}),
        ("large", (1, 3), {"applications": 1000}),
    ],
    "rolling-update": [
        ("small", (1, 2, 3), {"applications": 3, "microservices": 3}),
        ("medium", (1, 2, 3), {"applications": 20, "microservices": 5}),
        ("large", (1, 2), {"applications": 200, "microservices": 5}),
    ],
    "multi-cluster": [
        ("small", (1, 2, 3), {"requests": 8}),
        ("medium", (1, 2, 3), {"requests": 100}),
        ("large", (1, 2), {"requests": 1000}),
    ],
    "rescheduling": [
        ("small", (1, 2, 3), {"application": "random", "services": 5}),
        ("medium", (1, 2, 3), {"application": "random", "services": 12}),
        ("large", (1, 2), {"application": "random", "services": 100, "cloud_a": 50}),
    ],
}
#: Points that a file keeps, and how many bounds.
POINTS = {"small": 60, "medium": 30, "large": 5}
BOUNDS = 2000


def names() -> Iterator[tuple[str, str, str, int, dict[str, Any]]]:
    """Yield name, problem, size, seed and sizes of each instance."""
    for kind, sizes in SIZES.items():
        for size, seeds, given in sizes:
            for seed in seeds:
                yield f"{kind}-{size}-{seed}", kind, size, seed, given


def made(kind: str, seed: int, given: dict[str, Any]) -> Problem:
    """Return an instance."""
    return registry.problem_class(kind).generate(seed, **given)


def known(name: str) -> Front | None:
    """Return the best front known."""
    path = FOLDER / f"{name}.front.json"
    return Front.read(path) if path.exists() else None


def written(front: Front, name: str, size: str) -> None:
    """Write the best known front of an instance: some of its points, and bounds of all."""
    cells = [np.array(front.bounds)]
    scale = np.ptp(cells[0], axis=0).clip(1e-300) if front.bounds else None
    while len(cells) < min(BOUNDS, len(front.bounds)):
        cell = cells.pop(max(range(len(cells)), key=lambda k: len(cells[k])))
        widest = (np.ptp(cell, axis=0) / scale).argmax()
        order = np.argsort(cell[:, widest], kind="stable")
        cells += [cell[half] for half in np.array_split(order, 2)]
    # What lies above a bound lies above the least of its cell, too.
    bounds = tuple(tuple(cell.min(axis=0).tolist()) for cell in cells if len(cell))
    replace(front.subset(POINTS[size]), bounds=bounds).write(FOLDER / f"{name}.front.json")


def share(front: Front, best: Front) -> float:
    """Return the share of the best known front's hypervolume that a front has."""
    corner = best.reference()
    return front.hypervolume(corner) / best.hypervolume(corner)


def serving(kind: str) -> list[str]:
    """Return the methods that serve a problem, but baselines and what needs a front or a policy."""
    ours = registry.methods().items()
    apart = ("retime", "policy")
    return [n for n, m in ours if kind in m.of and m.role not in COMPARED and n not in apart]


def attempt(problem: Problem, method: str, seconds: float) -> tuple[Front | None, str]:
    """Return what a method finds, or why it finds nothing; `auto` proves as well."""
    certify = method == "auto" and problem.problem in registry.certified()
    try:
        return placeopt.solve(problem, method, seconds=seconds, certify=certify, seed=1), ""
    except placeopt.PlaceoptError as error:
        return None, type(error).__name__


def run(asked: argparse.Namespace) -> None:
    """Print method, instance, share, gap and CPU seconds; keep what improves if that is wanted."""
    digests = json.loads(KNOWN.read_text(encoding="utf-8")) if KNOWN.exists() else {}
    cells = json.loads(CELLS.read_text(encoding="utf-8")) if CELLS.exists() else {}
    for name, kind, size, seed, given in names():
        done = asked.table and name in cells
        if done or seed > asked.seeds or not all(word in name for word in asked.only):
            continue
        problem = made(kind, seed, given)
        digest = problem.instance_name.sha256
        if digests.setdefault(name, digest) != digest:
            raise SystemExit(f"{name}: the generator makes another instance than {KNOWN} has")
        found, spent = dict[str, tuple[Front | None, str]](), dict[str, float]()
        for method in serving(kind) if asked.table else asked.methods:
            attempt(made(kind, 1, SIZES[kind][0][2]), method, 0.3)  # what it imports is no work
            begun = time.process_time()
            found[method] = attempt(problem, method, asked.seconds)
            spent[method] = time.process_time() - begun
        fronts = [front for front, _ in found.values() if front is not None and front.points]
        best = known(name)
        union = merge(fronts if best is None else [best, *fronts])
        rows = {}
        for method, (front, refused) in found.items():
            rows[method] = told = {"refused": refused, "cpu_s": round(spent[method], 1)}
            if front is not None:
                reached = share(front, union) if front.points else 0.0
                told |= {"points": len(front), "share": reached, "open": front.gap()}
            print(name, method, told, flush=True)
        if not asked.write:
            continue
        if best is None or share(best, union) < 1 - 1e-9 or better_bounds(union, best):
            written(union, name, size)
        if asked.table:
            cells[name] = {"seconds": asked.seconds, "methods": rows}
            CELLS.write_text(json.dumps(cells, indent=1) + "\n", encoding="utf-8")
        KNOWN.write_text(json.dumps(digests, indent=1) + "\n", encoding="utf-8")


def better_bounds(union: Front, best: Front) -> bool:
    """Return whether bounds of two fronts together leave less open than those of one."""
    ours, before = union.gap(), best.gap()
    return ours is not None and (before is None or ours < before - 1e-6)


def rows_of(kind: str, size: str, cells: dict[str, Any]) -> Iterator[tuple[object, ...]]:
    """Yield size, method, mean share, mean of what is open, points and CPU seconds."""
    here = [cell["methods"] for name, cell in cells.items() if name.startswith(f"{kind}-{size}-")]
    for method in here[0] if here else ():
        ran = [rows[method] for rows in here]
        answers = [one for one in ran if not one["refused"]]
        if not answers:
            yield size, f"`{method}`", "refuses", "", "", ""
            continue
        gaps = [one["open"] for one in answers if one["open"] is not None]
        left = percent(sum(gaps) / len(gaps)) if len(gaps) == len(answers) else ""
        reached, points, spent = (
            sum(one[key] for one in answers) / len(answers) for key in ("share", "points", "cpu_s")
        )
        yield size, f"`{method}`", f"{reached:.2%}", left, f"{points:.0f}", f"{spent:.1f}"


def write_page() -> None:
    """Write what is known of each instance, and what each method reaches."""
    rows: list[tuple[object, ...]] = []
    for name, _, _, seed, given in names():
        best = known(name)
        if best is not None:
            gap = best.gap()
            told = "no bound" if gap is None else "complete" if best.complete else percent(gap)
            sizes = ", ".join(f"{k} {v}" for k, v in given.items())
            methods = sorted({point.method for point in best})
            rows.append((f"`{name}`", sizes, seed, len(best), told, ", ".join(methods)))
    cells = json.loads(CELLS.read_text(encoding="utf-8")) if CELLS.exists() else {}
    lines = [
        "# The library of instances",
        "",
        f"{facts('placeopt', 'numpy', 'numba', 'highspy')}",
        "",
        *(line for line in (__doc__ or "").splitlines()[7:]),
        "",
        f"Files keep {POINTS['small']} points of small instances, {POINTS['medium']} of medium, "
        f"{POINTS['large']} of large. *At most missing*",
        "is the share of the attainable hypervolume that the points can lack. A few CPU seconds",
        "of each method found them: nearly all can be beaten.",
        "",
        f"{len(rows)} of {len(list(names()))} instances have a front so far.",
        "",
        *table(("instance", "sizes", "seed", "points", "at most missing", "found by"), rows),
        "",
        "## Every method on it",
        "",
        "*Share* is the hypervolume beside that of all fronts of the instance together, the best",
        "known one among them. Means over the instances of a size that were measured, where the",
        "method answers. `auto` proves within its seconds; *at most missing* stands where a method",
        "proves something. CPU seconds contain what a method compiles and what judging takes.",
    ]
    for kind, sizes in SIZES.items():
        heading = ("size", "method", "share", "at most missing", "points", "CPU s")
        measured = [row for size, _, _ in sizes for row in rows_of(kind, size, cells)]
        given = sorted({c["seconds"] for n, c in cells.items() if n.startswith(kind)})
        limits = " and ".join(f"{seconds:g}" for seconds in given)
        lines += ["", f"### {kind}, {limits} CPU seconds", "", *table(heading, measured)]
    stamps.write(Path(__file__).with_suffix(".md"), "\n".join(lines), __file__, {})


def main() -> None:
    """Run methods, or write the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("what", nargs="?", choices=["run"])
    parser.add_argument("--methods", nargs="+", default=["auto"])
    parser.add_argument("--seconds", type=float, default=10.0, help="CPU seconds of one run")
    parser.add_argument("--only", nargs="+", default=[], help="instances with these in their names")
    parser.add_argument("--write", action="store_true", help="keep fronts that improve")
    parser.add_argument("--table", action="store_true", help="all methods; kept for the page")
    parser.add_argument("--seeds", type=int, default=3, help="instances of each size")
    asked = parser.parse_args()
    FOLDER.mkdir(exist_ok=True)
    if asked.what:
        run(asked)
    else:
        write_page()


if __name__ == "__main__":
    main()
