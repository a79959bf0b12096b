"""Choose a fleet for a shop from manifests and a price table.

Which machines to lease, where, and how many of them as spot?

    python examples/fleet.py [MANIFESTS.yaml] [REPORT.html]

Without a file: the Sock Shop where PLACEOPT_DATA has it, else the small shop of examples/data.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import placeopt
from placeopt import report
from placeopt.kubernetes import ImportOptions, MissingRequests, MovingRules, import_files

HERE = Path(__file__).resolve().parent / "data"
SOCKS = Path(os.environ.get("PLACEOPT_DATA", HERE)) / "kubernetes" / "sock-shop.yaml"
manifests = (
    Path(sys.argv[1]) if len(sys.argv) > 1 else SOCKS if SOCKS.exists() else HERE / "shop.yaml"
)

rules = MovingRules(
    policy=MissingRequests.parse(["limits", "default=100m,256Mi"])
)  # what containers without requests are taken to need
options = ImportOptions(name=manifests.stem, rules=rules, origin="west", horizon=24)
imported = import_files(
    [manifests], "temporal", options, prices=[HERE / "prices.csv"], latency=HERE / "latency.csv"
)
problem = imported.problem
print(f"{manifests.name}: {imported.notes.counts}")

front = placeopt.solve(problem, "ensemble", evaluations=6_000, seed=1)
print(
    f"{len(front)} fleets that no other beats; "
    f"a day costs {front.ideal[1]:.2f} to {front.nadir[1]:.2f} USD"
)
choices = {
    "balanced": front.pick(),
    "never interrupted, then cheapest": front.pick(lexicographic=["interruption", "cost_usd"]),
    "cheapest": front.pick(lexicographic=["cost_usd", "interruption"]),
}
for how, point in choices.items():
    values = ", ".join(
        f"{o.name} {v:.4g}" for o, v in zip(front.objectives, point.values, strict=True)
    )
    told = problem.describe(point.plan)
    print(f"{how}: {values}\n  {told['fleet']}; {told['replicas on spot']} of the replicas on spot")

if len(sys.argv) > 2:
    report.write(front, sys.argv[2], problem=problem)
    print(f"wrote {sys.argv[2]}")
