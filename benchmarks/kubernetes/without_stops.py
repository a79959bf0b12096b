"""The cheapest plan that stops no pod, beside Karpenter's consolidation, which evicts.

    python benchmarks/kubernetes/without_stops.py

The clusters and the machines to buy are those of fleets.py. The plan is the one that
`placeopt consolidate` makes: every new copy runs before the old one ends.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(1, str(Path(__file__).resolve().parents[1]))
from fleets import FLEETS, imported
from harness import Benchmark, shown, table, timed

from placeopt.rolling_update.end_state import cheapest_end
from placeopt.rolling_update.repack import cheapest_plan
from placeopt.rolling_update.schemes import karpenter_plan

COLUMNS = (
    "fleet | now | Karpenter | evictions | nothing stopped | bound | above it | copies | "
    "of them on the way only | CPU s"
)


def row(size: tuple[int, int, int]) -> tuple[list[object], bool]:
    """Return the row of a fleet, and whether the plan costs at most what Karpenter's end does."""
    with tempfile.TemporaryDirectory() as name:
        problem: Any = imported(Path(name), *size)
    plan, cpu = timed(lambda: cheapest_plan(problem))
    mine, theirs = problem.evaluate(plan), problem.evaluate(karpenter_plan(problem))
    assert mine.feasible, mine.violations
    assert not mine.values[2]
    moved = len({(step["application"], step["microservice"]) for step in plan["steps"]})
    bound = cheapest_end(problem, stops=False).lowest / problem.arrays.price_scale
    told: list[object] = [f"{size[0]} nodes, {len(problem.arrays.home)} pods"]
    told += [f"{problem.initial_cost:.3f}", f"{theirs.values[0]:.3f}", f"{theirs.values[2]:.0f}"]
    told += [f"{mine.values[0]:.3f}", f"{bound:.3f}", f"{mine.values[0] / bound - 1:.1%}"]
    told += [f"{mine.values[1]:.0f}", f"{mine.values[1] - moved:.0f}", f"{cpu:.0f}"]
    fine = not theirs.feasible or mine.values[0] <= theirs.values[0] + 1e-9
    return shown(told), bool(fine)


def main() -> None:
    """Solve the fleets, the smallest first, and write the page."""
    run = Benchmark(__file__, __doc__, "numba", "scipy")
    found = [run.cell(f"fleet {size}", lambda size=size: row(size)) for size in FLEETS]
    met = sum(fine for _, fine in found)
    run.write(
        "Without stopping a pod",
        "Fleets of [fleets.md](fleets.md) with machines to buy; one instance for both. USD/h. "
        "`karpenter` follows the published rules (`placeopt/rolling_update/schemes.py`): it "
        "evicts, so that a pod ends before its new copy runs. The other plan is that of `placeopt "
        "consolidate`: no pod ends before its new copy runs, and the referee finds nothing broken.",
        table(COLUMNS, [row for row, _ in found]),
        f"The aim, at most Karpenter's cost without a stop: met by {met} of {len(found)}. Pods "
        "that rules let in last start on another node first, while most nodes are still there: "
        "*on the way only*. The bound is proven for plans that stop nothing; of orders it knows "
        "how far groups that are spread over nodes can shrink.",
    )


if __name__ == "__main__":
    main()
