"""Move a shop onto fewer nodes, step by step and without downtime: manifests in, ordered steps out.

    python examples/consolidate.py [MANIFESTS.yaml] [STEPS.json]

Without a file: the Online Boutique where PLACEOPT_DATA has it, else the small shop of
examples/data. The replicas start where the default scheduler would put them. Give a dump of your
cluster instead (`placeopt consolidate --help` has the line for kubectl), and the plan becomes a
script by `placeopt export kubernetes`.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import placeopt
from placeopt.kubernetes import ImportOptions, MovingRules, export, import_files, steps
from placeopt.plugins import write_text

HERE = Path(__file__).resolve().parent / "data"
BOUTIQUE = Path(os.environ.get("PLACEOPT_DATA", HERE)) / "kubernetes" / "online-boutique.yaml"
manifests = (
    Path(sys.argv[1])
    if len(sys.argv) > 1
    else BOUTIQUE
    if BOUTIQUE.exists()
    else HERE / "shop.yaml"
)

options = ImportOptions(
    name=manifests.stem, rules=MovingRules(move_empty_dir=True)
)  # caches on emptyDir may start empty
imported = import_files([manifests], "rolling-update", options, nodes=HERE / "nodes.csv")
problem = imported.problem
print(f"{manifests.name}: {imported.notes.counts}")

front = placeopt.solve(problem, "repack", seed=1)
now = problem.describe({"steps": []})["node cost"].split(" -> ")[0]
print(f"nodes in use cost {now} USD per hour; plans that no other beats:")
for point in front.points:
    values = zip(front.objectives, point.values, strict=True)
    print("  " + ", ".join(f"{o.name} {v:g}" for o, v in values) + f" ({point.status})")

cheapest = front.pick(lexicographic=["node_cost", "disruptions", "starts"])
made = steps(problem, cheapest.plan)
print(f"the cheapest, in {len(made)} steps:")
for step in made:
    print(f"  {step.number}. {step.label}" + (f" ({step.warning})" if step.warning else ""))

text = export.export(problem, cheapest.plan, form="json")  # replayed, these steps have these values
if len(sys.argv) > 2:
    write_text(sys.argv[2], text + "\n")
    print(f"wrote {sys.argv[2]}")
