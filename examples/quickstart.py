"""Load an instance, solve it, choose one plan, read it, keep the front.

python examples/quickstart.py [FRONT.json]
"""

from __future__ import annotations

import sys

import placeopt

problem = placeopt.load("aws-10")
front = placeopt.solve(problem, method="nsga3", evaluations=10_000, seed=1)

print(f"{len(front)} plans that no other beats; from best to worst:")
for objective, best, worst in zip(front.objectives, front.ideal, front.nadir, strict=True):
    print(f"  {objective.name:14} {best:9.4g} to {worst:9.4g} {objective.unit}")

point = front.pick(budget={"cost_usd": 30})  # the knee of the plans that cost at most 30 USD
print(
    "chosen: "
    + ", ".join(f"{o.name} {v:.4g}" for o, v in zip(front.objectives, point.values, strict=True))
)
for label, text in problem.describe(point.plan).items():
    print(f"  {label}: {text}")

verdict = placeopt.evaluate(problem, point.plan)  # the referee, once more
assert verdict.feasible and verdict.values == point.values

if len(sys.argv) > 1:
    front.write(sys.argv[1])
    print(f"wrote {sys.argv[1]}; draw it with: placeopt plot {sys.argv[1]}")
