"""Re-orchestration: what the ordering phase is worth, against both readings of a random order.

The paper compares Algorithm 2 with a random ordering phase, `where the rescheduling order is indeed
randomly generated`. *Strict*: one permutation of all moves; what does not fit at its turn is
stopped, and started again as soon as it fits. *Among what fits*: a random choice among the moves
that fit now, which needs the same look at the room as Algorithm 2. Instances, allocation phase and
sizes are those of Figs. 2 to 4; disruptions are microservices that are stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, get_args

import numpy as np
from machine import table
from papers.rolling_update import SETTINGS, Setting
from placeopt_papers.two_phase import MoveOrder, two_phase_plan

from placeopt.rolling_update.problem import RollingUpdate

FULL = {"instances": 50, "large": 10}
QUICK = {"instances": 3, "large": 1}
ORDERS: dict[MoveOrder, str] = {
    "paper": "Algorithm 2",
    "random-strict": "random, strict",
    "random": "random among what fits",
}
assert set(ORDERS) == set(get_args(MoveOrder))


def disruptions(setting: Setting, moving: int, count: int) -> dict[str, list[float]]:
    """Return what each order stops, by instance."""
    found: dict[str, list[float]] = {name: [] for name in ORDERS.values()}
    for seed in range(count):
        problem = RollingUpdate.generate(seed, reschedulable=moving, **setting.sizes)
        for order, name in ORDERS.items():
            plan = two_phase_plan(problem, np.random.default_rng(seed), "text", order)
            found[name].append(problem.evaluate(plan).values[2])
    return found


def measure(cells: Callable[..., Any], instances: int, large: int) -> dict[str, Any]:
    """Measure all settings: figure -> microservices that may move -> order -> by instance."""
    figures: dict[str, Any] = {}
    for setting in SETTINGS:
        count = instances if setting.sizes["applications"] <= 10 else large
        figures[setting.name] = {
            str(5 * some): cells(
                f"{setting.name} {some} {count}",
                lambda s=setting, m=some, c=count: disruptions(s, m, c),
            )
            for some in setting.reschedulable
        }
    return {"figures": figures}


def means(result: Any) -> dict[str, dict[str, float]]:
    """Return by setting, such as ``fig2, 50``, the mean disruptions of every order."""
    return {
        f"{figure}, {size}": {name: float(np.mean(values)) for name, values in orders.items()}
        for figure, sizes in result["figures"].items()
        for size, orders in sizes.items()
    }


def fewer(result: Any, other: str) -> int:
    """Return in how many settings Algorithm 2 stops fewer than another order."""
    return sum(row["Algorithm 2"] < row[other] for row in means(result).values())


def page(result: Any) -> Iterator[str]:
    """Yield the page."""
    yield "# Re-orchestration: the ordering phase"
    yield ""
    yield (__doc__ or "").split("\n\n", 1)[1].replace("\n", " ").strip()
    yield ""
    settings = means(result)
    strict, loose = (fewer(result, ORDERS[order]) for order in ("random-strict", "random"))
    yield (
        f"Mean disruptions. Algorithm 2 stops fewer than the strict random order in {strict} of "
        f"{len(settings)} settings, than the one among what fits in {loose}."
    )
    yield ""
    rows = [
        (setting, *(f"{value:.2f}" for value in row.values())) for setting, row in settings.items()
    ]
    yield from table(("figure, microservices that may move", *ORDERS.values()), rows)
