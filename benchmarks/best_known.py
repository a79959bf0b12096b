"""The best known fronts beside the temporal and edge-cloud instances: exact where that ends,
searches merged with what is there.

    python benchmarks/best_known.py [--evaluations 500000] [--only edge-cloud]

It rewrites instances/*/*.front.json.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import placeopt
from placeopt.core.fronts.front import Front, merge
from placeopt.core.problem import Problem

FOLDER = Path(__file__).parents[1] / "instances"
#: Points that a file keeps.
POINTS = {"temporal": 200, "edge-cloud": 60}


def temporal(problem: Problem, budget: int) -> list[Front]:
    """Exact to 5 requests, else two searches."""
    if len(problem.requests) <= 5:
        return [placeopt.solve(problem, "epsilon-constraint", seconds=600)]
    found = placeopt.solve(problem, "moead", evaluations=budget, seed=1)
    return [found, placeopt.solve(problem, "ensemble", evaluations=budget // 2, seed=2, jobs=2)]


def edge_cloud(problem: Problem, budget: int) -> list[Front]:
    """The search, with its bounds; to 10 applications a grid of limits from there."""
    found = placeopt.solve(problem, "lns", evaluations=4 * budget, seed=1, parts=33)
    if len(problem.applications) > 10:
        return [found]
    return [found, placeopt.solve(problem, "epsilon-constraint", seconds=240, start=found, grid=40)]


SEARCHES = {"temporal": temporal, "edge-cloud": edge_cloud}


def main() -> None:
    """Improve the front of every instance."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--evaluations", type=int, default=500_000)
    parser.add_argument("--only", choices=list(SEARCHES))
    arguments = parser.parse_args()
    for path in sorted(FOLDER.glob("*/*.json")):
        kind = path.parent.name
        if (
            path.name.endswith(".front.json")
            or kind not in SEARCHES
            or arguments.only not in (None, kind)
        ):
            continue
        problem = placeopt.load(path)
        target = path.with_suffix(".front.json")
        known = [Front.read(target)] if target.exists() else []
        best = merge([*known, *SEARCHES[kind](problem, arguments.evaluations)])
        best.subset(POINTS[kind]).write(target)
        print(
            f"{path.name}: {len(best)} points, {min(len(best), POINTS[kind])} written", flush=True
        )


if __name__ == "__main__":
    main()
