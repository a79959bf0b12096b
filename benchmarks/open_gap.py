"""Why a gap stays open between temporal fronts and their bounds: which of the two is wrong.

    python benchmarks/open_gap.py [--seconds 20 60 300]

About 15 minutes. All seconds are CPU seconds. Where the exact front is known, the gap falls into
three parts: what the search has not found, what every bound by linear inequalities misses, as
fronts are not convex, and what is left. On a large instance a front in place of the exact one shows
as much, if it is good.
"""

from __future__ import annotations

from collections.abc import Sequence

import cpu_clock  # noqa: F401
import numpy as np
from harness import ROOT, Benchmark, section, shown, table
from small_temporal import of_size

import placeopt
from placeopt.core.fronts.front import Front
from placeopt.temporal.exact.bounds import least_values
from placeopt.temporal.exact.numbers import numbers
from placeopt.temporal.exact.staircase import staircase
from placeopt.temporal.instance import Temporal

#: Requests, replicas and seed of instances whose exact front is proven within two minutes.
SMALL = (*((8, 12, seed) for seed in range(1, 6)), (10, 15, 1), (10, 15, 4))
EXACT_SECONDS, SEARCH_SECONDS, BOUND_SECONDS = 120.0, 5.0, 10.0
#: Lines of each bound set, so many that they do not count; what is far, in ranges of the front.
LINES, FAR = 200, 1e4
SPLIT = "gap | not found by the search | lost by convexity | what is left"


def volume(front: Front, vectors: np.ndarray, reference: Sequence[float]) -> float:
    """Return the hypervolume of vectors of values in a front's objectives."""
    points = tuple(placeopt.Point(tuple(vector), {}) for vector in vectors.tolist())
    return Front(front.instance, front.objectives, points).hypervolume(reference)


def hull(problem: Temporal, front: Front) -> np.ndarray:
    """Return the bound set of a front's convex hull: the best that linear inequalities can say."""
    from scipy.spatial import ConvexHull

    data = numbers(problem, front.objectives)
    whole = data.all_whole(point.plan for point in front.points)
    least, spread = whole.min(axis=0), np.maximum(np.ptp(whole, axis=0), 1)
    points = (whole - least) / spread
    # What is worse than a point belongs to the hull as well: far points stand for all of it.
    far = np.concatenate([points[points.argmin(axis=0)] + FAR * axis for axis in np.eye(3)])
    facets = ConvexHull(np.concatenate((points, far))).equations
    facets = facets[(facets[:, :3] <= 0).all(axis=1) & (facets[:, 1] < -1e-9)]
    rates = facets[:, [0, 2]] / facets[:, 1:2] * (spread[1] / spread[[0, 2]])
    constants = (whole @ np.column_stack((rates[:, 0], np.ones(len(rates)), rates[:, 1])).T).min(0)
    low = least_values(data)
    high = np.maximum(whole.max(axis=0), low)
    cuts = np.column_stack((constants, rates))
    return data.values(np.maximum(staircase(cuts, low[[0, 2]], high[[0, 2]], LINES), low))


def split(problem: Temporal, known: Front, found: Front, bounds: np.ndarray) -> list[str]:
    """Return the gap of a front and its three parts, as shares of the bound's hypervolume."""
    reference = known.reference()
    at = [
        found.hypervolume(reference),
        known.hypervolume(reference),
        volume(known, hull(problem, known), reference),
        volume(known, bounds, reference),
    ]
    steps = [at[3] - at[0], at[1] - at[0], at[2] - at[1], at[3] - at[2]]
    return [f"{step / at[3]:.2%}" for step in steps]


def bound_of(problem: Temporal) -> np.ndarray:
    """Return the bound set of `bound`."""
    return np.array(placeopt.solve(problem, "bound", seconds=BOUND_SECONDS, lines=LINES).bounds)


def small(requests: int, replicas: int, seed: int) -> list[object]:
    """Return the row of an instance whose exact front is known."""
    problem = of_size(requests, replicas, seed)
    exact = placeopt.solve(problem, "bin-plans", seconds=EXACT_SECONDS)
    proven = sum(point.status == "optimal" for point in exact.points) / len(exact)
    found = placeopt.solve(problem, "moead", seconds=SEARCH_SECONDS, seed=1)
    parts = split(problem, exact, found, bound_of(problem))
    return shown([requests, replicas, seed, len(exact), f"{proven:.0%}", *parts])


def large(seconds: Sequence[float]) -> list[list[object]]:
    """Return a row for every search on aws-50; the union of all stands for the exact front."""
    folder = ROOT / "instances" / "temporal"
    problem = placeopt.load(folder / "aws-50.json")
    found = [placeopt.solve(problem, "moead", seconds=limit, seed=1) for limit in seconds]
    known = placeopt.merge([*found, Front.read(folder / "aws-50.front.json")])
    bounds = bound_of(problem)
    return [
        [f"{limit:g}", len(front), *split(problem, known, front, bounds)]
        for limit, front in zip(seconds, found, strict=True)
    ]


def main() -> None:
    """Measure and write the page."""
    run = Benchmark(
        __file__, __doc__, "numpy", "numba", "highspy", "moocore", seconds=[20.0, 60.0, 300.0]
    )
    placeopt.solve(of_size(4, 6, 0), "bin-plans")  # compile
    head = f"requests | replicas | seed | points | proven optimal | {SPLIT}"
    run.write(
        "Why the gap of temporal fronts stays open",
        "Shares of the hypervolume of the bound set; reference 1.1 times the nadir of the best "
        f"front. `bound` has {BOUND_SECONDS:g} CPU s and {LINES} lines. *Lost by convexity* is the "
        "distance from the best front to its own convex hull: `bound` joins linear inequalities, "
        "and no inequality that all plans satisfy cuts into that hull. *What is left* is what "
        "better inequalities could still close.",
        section(
            f"Instances whose exact front is known, {SEARCH_SECONDS:g} s of `moead`",
            table(head, [small(*one) for one in SMALL]),
        ),
        section(
            "aws-50, by CPU s of `moead`",
            "The best front is the union of all searches here and the committed one. It is not "
            "proven: a better one would move a part of *lost by convexity* and *what is left* to "
            "*not found*.",
            table(f"seconds | points | {SPLIT}", large(run.seconds)),
        ),
    )


if __name__ == "__main__":
    main()
