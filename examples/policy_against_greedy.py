"""Your own clusters, a day of requests: a trained policy against Karmada's and greedy choices.

python examples/policy_against_greedy.py [PLACEOPT POLICY NAME OR FILE]
"""

from __future__ import annotations

import sys

import placeopt
from placeopt.plugins import problem_class

MultiCluster = problem_class("multi-cluster")
POLICY = sys.argv[1] if len(sys.argv) > 1 else "multi-cluster-fixed-rate5"

clusters = [
    {"name": "shop-floor", "cpu_cores": 2, "memory_gib": 4, "cost": 1},
    {"name": "depot", "cpu_cores": 4, "memory_gib": 8, "cost": 3},
    {"name": "fog", "cpu_cores": 4, "memory_gib": 16, "cost": 6},
    {"name": "cloud", "cpu_cores": 16, "memory_gib": 64, "cost": 12},
]
latency_ms = {
    "shop-floor": {"depot": 8, "fog": 25, "cloud": 90},
    "depot": {"fog": 20, "cloud": 80},
    "fog": {"cloud": 60},
}
stream = MultiCluster.generate(seed=7, requests=120, rate=5.0).to_document()[
    "requests"
]  # or your own
problem = MultiCluster.from_document(
    {
        "problem": "multi-cluster",
        "name": "mine",
        "clusters": clusters,
        "latency_ms": latency_ms,
        "requests": stream,
    }
)

names = [objective.name for objective in problem.objectives]
print(f"{'':16}", *(f"{name:>12}" for name in names))
for method in ("karmada-greedy", "cpu-greedy", "binpack", "myopic", "policy"):
    parameters = {"policy": POLICY, "weights": "0.4,0.3,0.3"} if method == "policy" else {}
    front = placeopt.solve(problem, method, seed=1, **parameters)
    values = front.pick().values
    print(f"{method:16}", *(f"{value:12.4g}" for value in values))
