"""Add a goal to a placeopt model: cost, latency and carbon of applications on edge and cloud.

python examples/carbon.py
"""

from __future__ import annotations

import pyomo.environ as pyo

import placeopt
from placeopt import models

#: Grams of CO2 a core and hour, by the layer that a node belongs to.
GRAMS = {"near-edge": 60, "far-edge": 45, "cloud": 20}

problem = placeopt.load("corner-5")
model = models.edge_cloud.build(problem)
grams = [GRAMS[node.layer] for node in problem.nodes]
cores = [service.cpu_cores for a in problem.applications for service in a.microservices]
model.carbon = pyo.Objective(
    expr=sum(grams[v] * cores[i] * model.place[i, v] for i, v in model.PLACEMENTS)
)

front = placeopt.enumerate(model, seconds=3)

print(f"{len(front)} plans; {front.runs[0].parameters['reason']}")
for point in front.points:
    assert placeopt.evaluate(problem, point.plan).feasible  # plans of the problem, as ever
    cost, latency, carbon = point.values
    print(f"  cost {cost:.2f}, latency {latency:.1f} ms, carbon {carbon:.0f} g/h")
greenest = front.pick(lexicographic=["carbon", "cost"])
print(f"greenest: {problem.describe(greenest.plan)}")
