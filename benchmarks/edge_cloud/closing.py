"""How far gaps of small edge-cloud instances are closed: patterns of nodes, lists, HiGHS.

Times are CPU seconds of one process, though HiGHS, which knows no other clock, stops by the wall.

    python benchmarks/edge_cloud/closing.py [--instances 3] [--seconds 20]

Writes closing.md beside this file, in four minutes of CPU for each 20 s of three instances.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

import stamps  # noqa: E402
from edge_cloud import measures as m  # noqa: E402
from machine import facts, table  # noqa: E402

from placeopt.core.budget import Budget  # noqa: E402
from placeopt.edge_cloud.instance import EdgeCloud  # noqa: E402
from placeopt.edge_cloud.local_search.builder import PlanBuilder  # noqa: E402
from placeopt.edge_cloud.local_search.closing import close, strengthened  # noqa: E402
from placeopt.edge_cloud.local_search.prices import Relaxation  # noqa: E402

#: Part of the seconds that the large neighbourhood search has before the gap is closed.
_SEARCH = 0.3

WORDS = """\
w = 0.01. Prices prove the first bound, with charges for being at home. Charges of patterns, which
are sets of microservices that a small node takes together, prove the second, in the seconds beside
it. HiGHS then chooses among the placements that these leave, or the best of them; how many, the
column of placements says. The large neighbourhood search goes on from its plan where time is left.
The plans are that of this search after {search:g} s, and the best in the end. The gaps are that of
the first plan to the first bound and that of the best plan to the last bound."""

HEAD = (
    "applications",
    "load",
    "seed",
    "bound by prices",
    "by patterns",
    "CPU s",
    "in the end",
    "plan of the search",
    "best plan",
    "placements",
    "CPU s in all",
    "gap before",
    "gap",
)


def row(problem: EdgeCloud, seconds: float) -> list[str]:
    """Close the gap of an instance within so many seconds; return what the table says of it."""
    budget, relaxation = m.CpuBudget(seconds=seconds), Relaxation(problem)
    prices = relaxation.ascend(m.WEIGHT, budget.share(0.2), 300)
    builder = PlanBuilder(relaxation, np.random.default_rng(1))
    plans = [builder.build(prices, (1.0,)), *builder.dive(prices, budget)]
    begin = builder.best(m.WEIGHT, plans)
    hosts = builder.improve(prices, begin, budget.share(_SEARCH))
    value = builder.value(m.WEIGHT, hosts)
    closed = close(relaxation, prices, hosts, value, budget)
    proven = replace(prices, bound=closed.bound)
    if closed.value > closed.bound * (1 + 1e-6):
        closed.hosts = builder.improve(proven, closed.hosts, budget)
    spent, judged = budget.seconds, m.value(problem, problem.plan(closed.hosts))
    patterns, used = m.timed(
        lambda: strengthened(relaxation, prices, value, Budget(evaluations=10**6))
    )
    return [
        f"{prices.bound:.2f}",
        f"{patterns.bound:.2f}",
        f"{used:.1f}",
        f"{closed.bound:.2f}",
        f"{value:.2f}",
        f"{judged:.2f}",
        f"{closed.placements}",
        f"{spent:.0f}",
        m.percent(value, prices.bound),
        m.percent(judged, closed.bound),
    ]


def main() -> None:
    """Measure and write the page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--instances", type=int, default=3, help="seeds of each size and load")
    parser.add_argument("--seconds", type=float, default=20.0, help="for each instance")
    arguments = parser.parse_args()
    m.warm_up()
    row(m.instance(0, "basic", 20, 0.4), 5.0)  # compiles
    rows = []
    for applications, load in itertools.product((50, 100), (0.4, 1.0)):
        for seed in range(1, arguments.instances + 1):
            problem = m.instance(seed, "basic", applications, load)
            found = [f"{applications}", f"{load:g}", f"{seed}", *row(problem, arguments.seconds)]
            rows.append(found)
            print(*found, sep=" | ", flush=True)
    words = WORDS.format(search=_SEARCH * arguments.seconds)
    lines = ["# Edge-cloud: gaps of small instances closed", "", facts("highspy", "numba", "numpy")]
    lines += ["", words, "", f"{arguments.seconds:g} s for each instance, basic topology.", ""]
    text = "\n".join([*lines, *table(HEAD, rows)])
    stamps.write(HERE / "closing.md", text, __file__, vars(arguments))


if __name__ == "__main__":
    main()
