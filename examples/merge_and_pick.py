"""Run several methods, merge their fronts, see what each contributed, and choose in three ways.

python examples/merge_and_pick.py
"""

from __future__ import annotations

from collections import Counter

import placeopt

METHODS = ("nsga2", "moead", "mspso")

problem = placeopt.load("aws-10")
fronts = [placeopt.solve(problem, method, evaluations=5_000, seed=1) for method in METHODS]
merged = placeopt.merge(fronts)

reference = merged.reference()
whole = merged.hypervolume(reference)
for method, front in zip(METHODS, fronts, strict=True):
    print(
        f"{method:8} {len(front):4} points, "
        f"{front.hypervolume(reference) / whole:.2%} of the hypervolume of all"
    )
print(f"{'merged':8} {len(merged):4} points")
print(
    "points kept from each: "
    + ", ".join(
        f"{method} {n}" for method, n in Counter(p.method for p in merged.points).most_common()
    )
)

choices = {
    "knee": merged.pick(),
    "knee within 20 ms": merged.pick(budget={"latency_ms": 20}),
    "no interruptions, then cheapest": merged.pick(lexicographic=["interruption", "cost_usd"]),
}
for how, point in choices.items():
    values = ", ".join(
        f"{o.name} {v:.4g}" for o, v in zip(merged.objectives, point.values, strict=True)
    )
    print(f"{how}: {values} (by {point.method})")
