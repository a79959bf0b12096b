"""Enumerate every best compromise of a model of one's own: which depots to open, three goals.

python examples/own_model.py
"""

from __future__ import annotations

import pyomo.environ as pyo

import placeopt

RENT = {"north": 30, "harbour": 42, "centre": 55}  # EUR a day
KILOMETRES = {  # from every depot to every shop
    "north": {"bakery": 4, "market": 12, "school": 9, "hotel": 15},
    "harbour": {"bakery": 11, "market": 5, "school": 14, "hotel": 6},
    "centre": {"bakery": 6, "market": 4, "school": 5, "hotel": 7},
}
SHOPS = list(KILOMETRES["north"])

model = pyo.ConcreteModel(name="depots")
model.open = pyo.Var(list(RENT), domain=pyo.Binary)
model.serve = pyo.Var(list(RENT), SHOPS, domain=pyo.Binary)
model.served_once = pyo.Constraint(
    SHOPS, rule=lambda m, shop: sum(m.serve[depot, shop] for depot in RENT) == 1
)
model.only_from_open = pyo.Constraint(
    list(RENT), SHOPS, rule=lambda m, depot, shop: m.serve[depot, shop] <= m.open[depot]
)
# A largest value is a variable that is at least every term.
model.farthest = pyo.Var(domain=pyo.NonNegativeReals, bounds=(0, 100))
model.covers = pyo.Constraint(
    list(RENT), SHOPS, rule=lambda m, d, s: m.farthest >= KILOMETRES[d][s] * m.serve[d, s]
)

# One Objective for each goal, in its own sense. Pyomo's own solvers want but one of them active.
model.rent = pyo.Objective(expr=sum(RENT[d] * model.open[d] for d in RENT))
model.longest_trip = pyo.Objective(expr=model.farthest)
near = [(d, s) for d in RENT for s in SHOPS if KILOMETRES[d][s] <= 5]
model.on_foot = pyo.Objective(expr=sum(model.serve[d, s] for d, s in near), sense=pyo.maximize)

front = placeopt.enumerate(model, steps={"longest_trip": 1}, seconds=60)

facts = front.runs[0]
status, reason = facts.parameters["status"], facts.parameters["reason"]
print(f"{status}: {reason} ({facts.solver_calls} solver calls)")
for point in front.points:
    opened = [depot for depot in RENT if f"open[{depot}]" in point.plan]
    rent, trip, on_foot = point.values
    print(f"{rent:4.0f} EUR, {trip:3.0f} km at most, {on_foot:.0f} on foot: {', '.join(opened)}")
assert all(point.status == "optimal" for point in front.points)
