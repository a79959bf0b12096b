"""A public set of instances: a referee, the best known fronts, and proven bounds.

    python benchmarks/library.py                                   # the page, from the files
    python benchmarks/library.py run --methods auto moead --seconds 10 [--only temporal small]
    python benchmarks/library.py run --write                       # fronts that improve are kept

An instance is its problem, sizes and seed; its SHA-256 in ``library/instances.json`` says that the
generator made the same one. ``library/NAME.front.json`` is the best front known, with its plans and
with the best bounds proven: whoever has a better plan hands it in as a front, and the referee
judges it. ``placeopt compare mine.json --best-known benchmarks/library/NAME.front.json`` says what
a front lacks. Limits are CPU seconds of the process.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cpu_clock  # noqa: F401  # before placeopt
import stamps
from machine import facts, table

import placeopt
from placeopt import registry
from placeopt.core.fronts.front import Front, merge
from placeopt.core.fronts.words import percent
from placeopt.core.problem import Problem

FOLDER = Path(__file__).parent / "library"
KNOWN = FOLDER / "instances.json"
#: Problem -> its sizes, and how many seeds of each: 40 instances.
SIZES: dict[str, list[tuple[str, int, dict[str, Any]]]] = {
    "temporal": [
        ("small", 3, {"requests": 6, "max_replicas": 2, "horizon": 40}),
        ("medium", 3, {"requests": 50}),
        ("large", 2, {"requests": 1000}),
    ],
    "edge-cloud": [
        ("small", 3, {"applications": 5}),
        ("medium", 3, {"applications": 50}),
        ("large", 2, {"applications": 1000}),
    ],
    "rolling-update": [
        ("small", 3, {"applications": 3, "microservices": 3}),
        ("medium", 3, {"applications": 20, "microservices": 5}),
        ("large", 2, {"applications": 200, "microservices": 5}),
    ],
    "multi-cluster": [
        ("small", 3, {"requests": 8}),
        ("medium", 3, {"requests": 100}),
        ("large", 2, {"requests": 1000}),
    ],
    "rescheduling": [
        ("small", 3, {"services": 5}),
        ("medium", 3, {"services": 12}),
        ("large", 2, {"application": "random", "services": 100}),
    ],
}
#: Points that a file keeps.
POINTS = {"small": 60, "medium": 30, "large": 5}


def names() -> Iterator[tuple[str, str, str, int, dict[str, Any]]]:
    """Yield name, problem, size, seed and sizes of each instance."""
    for kind, sizes in SIZES.items():
        for size, seeds, given in sizes:
            for seed in range(1, seeds + 1):
                yield f"{kind}-{size}-{seed}", kind, size, seed, given


def made(kind: str, seed: int, given: dict[str, Any]) -> Problem:
    """Return an instance."""
    return registry.problem_class(kind).generate(seed, **given)


def known(name: str) -> Front | None:
    """Return the best front known."""
    path = FOLDER / f"{name}.front.json"
    return Front.read(path) if path.exists() else None


def share(front: Front, best: Front) -> float:
    """Return the share of the best known front's hypervolume that a front has."""
    corner = best.reference()
    return front.hypervolume(corner) / best.hypervolume(corner)


def run(asked: argparse.Namespace) -> None:
    """Print method, instance, share, gap and CPU seconds; keep what improves if that is wanted."""
    digests = json.loads(KNOWN.read_text(encoding="utf-8")) if KNOWN.exists() else {}
    for name, kind, size, seed, given in names():
        if not all(word in name for word in asked.only):
            continue
        problem = made(kind, seed, given)
        digest = problem.instance_name.sha256
        if digests.setdefault(name, digest) != digest:
            raise SystemExit(f"{name}: the generator makes another instance than {KNOWN} has")
        for method in asked.methods:
            certify = kind in registry.certified()
            found = placeopt.solve(problem, method, seconds=asked.seconds, certify=certify, seed=1)
            best = known(name)
            union = merge([front for front in (best, found) if front is not None])
            gap, spent = found.gap(), sum(one.seconds for one in found.runs[:1])
            told = f"{name} {method}: {len(found)} points, {spent:.1f} CPU s"
            told += "" if gap is None else f", at most {gap:.2%} missing"
            if best is not None and best.points:
                told += f", {share(found, best):.2%} of the best known"
            better = best is None or share(union, best) > 1 + 1e-9 or better_bounds(union, best)
            print(told + (": improves it" if better else ""), flush=True)
            if better and asked.write:
                union.subset(POINTS[size]).write(FOLDER / f"{name}.front.json")
    if asked.write:
        KNOWN.write_text(json.dumps(digests, indent=1) + "\n", encoding="utf-8")


def better_bounds(union: Front, best: Front) -> bool:
    """Return whether bounds of two fronts together leave less open than those of one."""
    ours, before = union.gap(), best.gap()
    return ours is not None and (before is None or ours < before - 1e-6)


def write_page() -> None:
    """Write what is known of each instance."""
    rows: list[tuple[object, ...]] = []
    for name, _, _, seed, given in names():
        best = known(name)
        if best is not None:
            gap = best.gap()
            told = "no bound" if gap is None else "complete" if best.complete else percent(gap)
            sizes = ", ".join(f"{k} {v}" for k, v in given.items())
            methods = sorted({point.method for point in best})
            rows.append((f"`{name}`", sizes, seed, len(best), told, ", ".join(methods)))
    lines = [
        "# The library of instances",
        "",
        f"{facts('placeopt', 'numpy', 'numba', 'highspy')}",
        "",
        *(line for line in (__doc__ or "").splitlines()[6:]),
        "",
        "Files keep 60 points of small instances, 30 of medium, 5 of large. *At most missing*",
        "is the share of the attainable hypervolume that the points can lack. All were",
        "found with 4 CPU seconds an instance by `auto` with proofs: nearly all can be beaten.",
        "",
        f"{len(rows)} of {len(list(names()))} instances have a front so far.",
        "",
        *table(("instance", "sizes", "seed", "points", "at most missing", "found by"), rows),
    ]
    stamps.write(Path(__file__).with_suffix(".md"), "\n".join(lines), __file__, {})


def main() -> None:
    """Run methods, or write the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("what", nargs="?", choices=["run"])
    parser.add_argument("--methods", nargs="+", default=["auto"])
    parser.add_argument("--seconds", type=float, default=10.0, help="CPU seconds of one run")
    parser.add_argument("--only", nargs="+", default=[], help="instances with these in their names")
    parser.add_argument("--write", action="store_true", help="keep fronts that improve")
    asked = parser.parse_args()
    FOLDER.mkdir(exist_ok=True)
    if asked.what:
        run(asked)
    else:
        write_page()


if __name__ == "__main__":
    main()
