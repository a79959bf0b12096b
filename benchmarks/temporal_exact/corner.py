"""Which is wrong at 50 requests, the front or the bound: an answer for one corner of the front.

    python benchmarks/temporal_exact/corner.py          # writes corner.md beside this file

Where latency and interruption are least, every request runs in the nearest place that has offers,
without spot machines. So the places are instances of their own, small enough to search harder and,
in part, to solve exactly. All seconds are CPU seconds.
"""

from __future__ import annotations

import time

time.perf_counter = time.process_time  # before anything asks the clock

import sys  # noqa: E402
from pathlib import Path  # noqa: E402

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

import stamps  # noqa: E402
from machine import facts, table  # noqa: E402

import placeopt  # noqa: E402
from placeopt.temporal.instance import Temporal  # noqa: E402

#: Seconds of the search and of the bound in each place, and of the exact method.
SEARCH, EXACT = 5.0, 30.0
#: Requests up to which the exact method is tried.
FEW_REQUESTS = 6
GOALS = ["cost_usd", "latency_ms"]


def places(problem: Temporal) -> list[Temporal]:
    """Return an instance for each place: its offers without spot, the requests nearest to it."""
    document = problem.to_document()
    names = {offer["location"] for offer in document["offers"]}
    nearest: dict[str, list[dict]] = {}
    for request in document["requests"]:
        delay = document["latency_ms"][request["origin"]]
        place = min(names & set(delay), key=lambda name, d=delay: d[name])
        nearest.setdefault(place, []).append(request)
    parts = []
    for place, requests in sorted(nearest.items()):
        offers = [
            {key: value for key, value in offer.items() if not key.startswith("spot")}
            for offer in document["offers"]
            if offer["location"] == place
        ]
        part = document | {"name": place, "offers": offers, "requests": requests}
        parts.append(Temporal.from_document(part))
    return parts


def measure(problem: Temporal) -> tuple[float, float, float, float]:
    """Return the bound, that of the exact method, its cost, and the cost that the search found."""
    searched = placeopt.solve(problem, "moead", seconds=SEARCH, seed=1, objectives=GOALS)
    bounded = placeopt.solve(problem, "bound", seconds=SEARCH, objectives=GOALS)
    low = min(bound[0] for bound in bounded.bounds)
    found = float(searched.ideal[0])
    if len(problem.requests) > FEW_REQUESTS:
        return low, low, found, found
    exact = placeopt.solve(problem, "bin-plans", seconds=EXACT, objectives=GOALS)
    proven = max(low, min(bound[0] for bound in exact.bounds))
    return low, proven, min(found, float(exact.ideal[0])), found


def main() -> None:
    """Measure all places and write the page."""
    said = facts("numpy", "numba", "highspy")
    problem = placeopt.load(HERE.parents[1] / "instances" / "temporal" / "aws-50.json")
    parts = places(problem)
    measured = [measure(part) for part in parts]
    rows = [
        (part.name, len(part.requests), *(f"{value:.2f}" for value in values))
        for part, values in zip(parts, measured, strict=True)
    ]
    low, proven, best, found = (sum(column) for column in zip(*measured, strict=True))
    rows.append(("all", len(problem.requests), *(f"{v:.2f}" for v in (low, proven, best, found))))
    text = [
        "# Front or bound: which is wrong at 50 requests",
        "",
        said,
        "",
        "aws-50, least latency and no interruption: every request in its nearest place, without "
        f"spot machines. USD. `moead` and `bound` have {SEARCH:g} s in each place; `bin-plans` "
        f"{EXACT:g} s where there are at most {FEW_REQUESTS} requests.",
        "",
        *table(
            ("place", "requests", "bound", "proven in the end", "best plan", "of it by `moead`"),
            rows,
        ),
        "",
        f"Of {found - low:.2f} USD between search and bound, {proven - low:.2f} are the bound's "
        f"for certain, {found - best:.2f} the search's, and {best - proven:.2f} stay open. So both "
        "are wrong.",
        "",
    ]
    stamps.write(HERE / "corner.md", "\n".join(text), __file__, {})


if __name__ == "__main__":
    main()
