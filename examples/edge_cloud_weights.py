"""Place applications on edge and cloud for several weights of the cost.

The output says what is proven, and which layer the work goes to.

python examples/edge_cloud_weights.py [FIGURE.png]
"""

from __future__ import annotations

import sys

import placeopt
from placeopt.plugins import sweep_figure, use_of_layers

WEIGHTS = (0.01, 0.3, 0.6, 0.8, 0.9, 0.99)

problem = placeopt.load("basic-50")
plans = []
print(
    f"{'w':>5} {'cost':>8} {'latency':>9} {'gap':>6}   "
    + " ".join(f"{layer:>9}" for layer in problem.layers)
    + "   share of cpu in use"
)
for weight in WEIGHTS:
    front = placeopt.solve(problem, "lns", evaluations=2_000, seed=1, weight=weight)
    point = min(front.points, key=lambda p, w=weight: w * p.values[0] + (1 - w) * p.values[1])
    use = use_of_layers(problem, point.plan)
    cost, latency = point.values
    shares = " ".join(f"{use[f'{layer} cpu']:>9.0%}" for layer in problem.layers)
    print(f"{weight:>5} {cost:>8.1f} {latency:>6.0f} ms {point.gap:>6.1%}   {shares}")
    plans.append((weight, point.plan))

if len(sys.argv) > 1:
    sweep_figure(problem, plans, problem.name).savefig(sys.argv[1], dpi=150)
    print(f"wrote {sys.argv[1]}")
