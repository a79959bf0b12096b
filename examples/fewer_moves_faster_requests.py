"""A node fails: which few replicas to move so that requests are fast again?

The output says what every further move would bring.

python examples/fewer_moves_faster_requests.py
"""

from __future__ import annotations

import placeopt
from placeopt.plugins import fail, problem_class

# The testbed of the REACH paper: two cloud and four edge nodes, a chain of four services with three
# replicas each.
running = problem_class("rescheduling").generate(seed=4, application="chain", replicas=3)
failed = fail(
    running, ["edge-a-1", "cloud-a-1"]
)  # Kubernetes restarts what ran there on the nodes least in use
print(
    f"latency: {running.initial_latency:.1f} ms, "
    f"after two nodes failed {failed.initial_latency:.1f} ms"
)

# One search gives the best plan of every number of moves; each move must save 2 ms, whichever of
# the others are left out.
front = placeopt.solve(failed, method="block-search", min_gain_ms=2.0)
for point in sorted(front.points, key=lambda p: p.values[1]):
    print(f"  {point.values[1]:2.0f} moves: {point.values[0]:6.1f} ms")

# The least moves for half of the saving.
best = min(point.values[0] for point in front.points)
target = (failed.initial_latency + best) / 2
chosen = min(
    (point for point in front.points if point.values[0] <= target),
    key=lambda point: point.values[1],
)
print(f"at most {target:.1f} ms:")
for row in failed.table(chosen.plan):
    print(
        f"  {row['move']}. {row['service']}: {row['from']} -> {row['to']} "
        f"({row['change_ms']:+.1f} ms)"
    )

# The schedulers that know neither the call graph nor what runs already.
for method in ("kubernetes", "cloud-first", "latency-greedy"):
    latency, moves = placeopt.solve(failed, method=method).points[0].values
    print(f"{method}: {latency:.1f} ms by {moves:.0f} moves")

assert best < failed.initial_latency and placeopt.evaluate(failed, chosen.plan).feasible
