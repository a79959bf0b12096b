"""The best known fronts beside the temporal instances: the exact method where it ends, searches merged with what is there.

    python benchmarks/best_known.py [--evaluations 500000]       # rewrites instances/temporal/*.front.json
"""

from __future__ import annotations

import argparse
from pathlib import Path

import placeopt
from placeopt.front import Front, merge

FOLDER = Path(__file__).parents[1] / "instances" / "temporal"
#: Points that a file keeps.
POINTS = 200


def main() -> None:
    """Improve the front of every instance in the folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--evaluations", type=int, default=500_000)
    budget = parser.parse_args().evaluations
    for path in sorted(FOLDER.glob("*.json")):
        if path.name.endswith(".front.json"):
            continue
        problem = placeopt.load(path)
        target = path.with_suffix(".front.json")
        fronts = [Front.read(target)] if target.exists() else []
        if len(problem.requests) <= 5:
            fronts.append(placeopt.solve(problem, "epsilon-constraint", seconds=600))
        else:
            fronts.append(placeopt.solve(problem, "moead", evaluations=budget, seed=1))
            fronts.append(placeopt.solve(problem, "ensemble", evaluations=budget // 2, seed=2, jobs=2))
        best = merge(fronts)
        best.subset(POINTS).write(target)
        print(f"{path.name}: {len(best)} points, {min(len(best), POINTS)} written", flush=True)


if __name__ == "__main__":
    main()
