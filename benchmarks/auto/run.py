"""What `auto` leaves on the table, and whether time limits are kept.

Every method answers instances that nothing was tuned on, for as long as `auto` does; the union of
all their fronts, auto's too, is what could have been reached.

All seconds are CPU seconds, those of the limits too: what else runs on the machine makes no
difference.

python benchmarks/auto/run.py [--seeds 5] [--limits 2 10 60]      # writes benchmarks/auto.md
"""

from __future__ import annotations

import time

time.perf_counter = time.process_time  # before anything asks the clock

import argparse  # noqa: E402
import sys  # noqa: E402
from contextlib import suppress  # noqa: E402
from dataclasses import dataclass  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any  # noqa: E402

import numpy as np  # noqa: E402

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

import stamps  # noqa: E402
from machine import facts, table  # noqa: E402

import placeopt  # noqa: E402
from placeopt import registry  # noqa: E402
from placeopt.core.errors import UnsupportedError  # noqa: E402
from placeopt.core.front import Front, merge  # noqa: E402

#: Problem and arguments of its generator: a small and a large instance of each.
SIZES: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("temporal", "10 requests", {"requests": 10}),
    ("temporal", "200 requests", {"requests": 200}),
    ("edge-cloud", "50 applications", {"applications": 50}),
    ("edge-cloud", "300 applications", {"applications": 300}),
    ("rolling-update", "the default", {}),
    ("rolling-update", "400 x 40", {"microservices": 400, "nodes": 40}),
    ("multi-cluster", "20 requests", {"requests": 20}),
    ("multi-cluster", "100 requests", {}),
    ("rescheduling", "the default", {}),
    ("rescheduling", "18 machines", {"replicas": 6, "cloud_a": 6, "edge_a": 6, "edge_b": 6}),
)
#: First seed of the generator; none was used while methods were tuned.
FIRST_SEED = 951
#: Methods that are made of others or answer with a fixed rule, and what needs a trained policy.
LEFT_OUT = {"auto", "ensemble", "policy"}
AIM_UNION, AIM_BEST = 0.99, 0.002


@dataclass
class Cell:
    """One instance and limit: shares of the union's hypervolume, and auto's seconds."""

    shares: dict[str, float]
    seconds: dict[str, float]

    @property
    def best(self) -> str:
        """The best of the single methods."""
        return max((m for m in self.shares if m != "auto"), key=lambda m: self.shares[m])


def methods_of(kind: str) -> list[str]:
    """Return auto and every method of a problem that needs nothing else."""
    own = [name for name, entry in registry.methods().items() if kind in entry.of]
    return ["auto", *(name for name in own if name not in LEFT_OUT)]


def measure(kind: str, sizes: dict[str, Any], limit: float, seeds: int) -> list[Cell]:
    """Let every method answer for `limit` seconds on instances of one size."""
    methods = methods_of(kind)
    drawn = [{"problem": kind, "seed": FIRST_SEED + k, **sizes} for k in range(seeds)]
    swept = placeopt.sweep(
        {"instances": drawn, "methods": methods, "seeds": [1], "seconds": [limit]}
    )
    every = list(zip(swept.rows, swept.fronts, strict=True))
    count = len(methods)
    return [_cell(every[k * count : (k + 1) * count]) for k in range(seeds)]


def _cell(answers: list[tuple[dict[str, Any], Front | None]]) -> Cell:
    """Return what the methods reached on one instance; some refuse instances that are too large."""
    fronts = {row["method"]: front for row, front in answers if front is not None and front.points}
    union = merge(fronts.values())
    reference = np.max([front.reference() for front in fronts.values()], axis=0)
    whole = union.hypervolume(reference, plain=True)
    shares = {
        m: float(front.hypervolume(reference, plain=True) / whole) for m, front in fronts.items()
    }
    seconds = {row["method"]: row["seconds"] for row, front in answers if front is not None}
    return Cell(shares, seconds)


def rows_of(limits: list[float], seeds: int) -> list[tuple[str, ...]]:
    """Return the rows of the table."""
    rows = []
    for kind, name, sizes in SIZES:
        problem_class = registry.problem_class(kind)
        for method in methods_of(kind):  # compiled before the clock runs
            with suppress(UnsupportedError):
                placeopt.solve(problem_class.generate(1, **sizes), method, seconds=0.3)
        for limit in limits:
            cells = measure(kind, sizes, limit, seeds)
            share = min(cell.shares.get("auto", 0.0) for cell in cells)
            behind = max(cell.shares[cell.best] - cell.shares.get("auto", 0.0) for cell in cells)
            best = ", ".join(sorted({f"`{cell.best}`" for cell in cells}))
            slowest = max(cells, key=lambda cell: max(cell.seconds.values())).seconds
            last = max(slowest, key=lambda m: slowest[m])
            verdict = "met" if share >= AIM_UNION and behind <= AIM_BEST else "missed"
            rows.append(
                (
                    kind,
                    name,
                    f"{limit:g}",
                    f"{share:.2%}",
                    f"{behind:+.2%}",
                    best,
                    verdict,
                    f"{max(cell.seconds['auto'] for cell in cells):.2f}",
                    f"{slowest[last]:.2f} (`{last}`)",
                )
            )
            print(*rows[-1], sep=" | ", flush=True)
    return rows


def main() -> None:
    """Measure and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--limits", type=float, nargs="+", default=[2, 10, 60])
    given = parser.parse_args()
    said = facts("numpy", "numba", "pymoo", "highspy", "moocore")
    rows = rows_of(given.limits, given.seeds)
    met = sum(row[6] == "met" for row in rows)
    limits = ", ".join(f"{limit:g}" for limit in given.limits)
    text = [
        "# `auto` against every method",
        "",
        said,
        "",
        f"`python benchmarks/auto/run.py --seeds {given.seeds} --limits "
        f"{' '.join(f'{limit:g}' for limit in given.limits)}` wrote this page.",
        "",
        f"Instances: generator seeds from {FIRST_SEED} on, {given.seeds} of each size. Limits: "
        f"{limits} CPU s, by a clock that counts those. Every method runs as long as `auto`. The "
        "union of all fronts counts as 100 % of the hypervolume, with a reference point at 1.1 x "
        "the worst of all fronts.",
        "",
        f"Aims: `auto` has at least {AIM_UNION:.0%} of the union, and no method alone is ahead of "
        f"it by more than {AIM_BEST:.1%}. **Met in {met} of {len(rows)} rows.** Shares are those "
        "of the worst seed.",
        "",
        *table(
            (
                "problem",
                "size",
                "limit (s)",
                "auto, of the union",
                "best single method minus auto",
                "best single method",
                "aims",
                "auto took (s)",
                "slowest of all took (s)",
            ),
            rows,
        ),
        "",
    ]
    stamps.write(HERE.parent / "auto.md", "\n".join(text), __file__, vars(given))


if __name__ == "__main__":
    main()
