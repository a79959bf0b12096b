"""What kernels gain by not counting references to arrays.

Each search runs for some CPU seconds in a process of its own, in turns with kernels that count, as
numba compiles by default, and with kernels that do not. The rest of the code is the same. The same
evaluations give the same points: what differs is how many there are in the time.

python benchmarks/kernels/run.py [--seconds 3] [--turns 3]

writes results.md.
"""

from __future__ import annotations

import time

time.perf_counter = time.process_time  # before anything asks the clock

import argparse  # noqa: E402
import json  # noqa: E402
import os  # noqa: E402
import subprocess  # noqa: E402
import sys  # noqa: E402
import tempfile  # noqa: E402
from pathlib import Path  # noqa: E402
from statistics import median  # noqa: E402
from typing import Any  # noqa: E402

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

import stamps  # noqa: E402
from machine import facts, table  # noqa: E402

#: Problem, size, arguments of its generator, and method.
CASES: tuple[tuple[str, str, dict[str, Any], str], ...] = (
    ("edge-cloud", "300 applications", {"applications": 300}, "moead"),
    ("edge-cloud", "300 applications", {"applications": 300}, "lns"),
    ("multi-cluster", "100 requests", {}, "placement-search"),
    ("multi-cluster", "100 requests", {}, "moead"),
    ("rescheduling", "the default", {}, "moead"),
    ("rolling-update", "the default", {}, "moead"),
    ("rolling-update", "400 x 40", {"microservices": 400, "nodes": 40}, "moead"),
    ("temporal", "50 requests", {"requests": 50}, "moead"),
    ("temporal", "200 requests", {"requests": 200}, "moead"),
)
COLUMNS = ("problem", "size", "method", "counting, evaluations/s", "not counting", "times as many")
SEED = 931


def searched(counts: bool, seconds: float) -> list[float]:
    """Return the evaluations per CPU second of each case."""
    from placeopt.core.kernels import compile as how

    how._OPTIONS["_nrt"] = counts  # before any kernel is defined
    import placeopt
    from placeopt import registry

    rates = []
    for kind, _, sizes, method in CASES:
        problem = registry.problem_class(kind).generate(SEED, **sizes)
        placeopt.solve(problem, method, seconds=0.3)  # compiles
        began = time.process_time()
        front = placeopt.solve(problem, method, seconds=seconds, seed=1)
        rates.append(front.runs[0].evaluations / (time.process_time() - began))
    return rates


def turn(counts: bool, seconds: float, cache: str) -> list[float]:
    """Return what `searched` returns in a process of its own."""
    command = [sys.executable, __file__, "--seconds", str(seconds), "--as", str(int(counts))]
    environment = os.environ | {"NUMBA_CACHE_DIR": f"{cache}/{int(counts)}"}
    said = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    return [float(rate) for rate in json.loads(said.stdout)]


def main() -> None:
    """Measure and write the page, or, with ``--as``, print the rates of one turn."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--as", dest="counts", type=int, choices=(0, 1), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.counts is not None:
        print(json.dumps(searched(bool(given.counts), given.seconds)))
        return
    said = facts("numpy", "numba")
    with tempfile.TemporaryDirectory() as cache:
        turns = [
            [turn(counts, given.seconds, cache) for counts in (True, False)]
            for _ in range(given.turns)
        ]
    rows = []
    for number, (kind, name, _, method) in enumerate(CASES):
        before, after = (median(t[side][number] for t in turns) for side in (0, 1))
        rows.append(
            (kind, name, f"`{method}`", f"{before:,.0f}", f"{after:,.0f}", f"{after / before:.1f}")
        )
    settings = {"seconds": given.seconds, "turns": given.turns}
    text = "\n".join(
        [
            "# Kernels that do not count references",
            "",
            said,
            "",
            f"`python benchmarks/kernels/run.py --seconds {given.seconds:g} --turns {given.turns}` "
            "wrote this page.",
            "",
            "numba counts who uses an array, wherever a name stands for one. Kernels of named "
            "tuples of arrays do little else where their own work is short. Kernels marked "
            "`@kernel` do not count; those marked `@allocating_kernel` make arrays and do "
            "(`placeopt/core/kernels/compile.py`).",
            "",
            f"Evaluations per CPU second of a search of {given.seconds:g} CPU s on the generator's "
            f"seed {SEED}, judging and writing the front included; medians of {given.turns} turns.",
            "",
            *table(COLUMNS, rows),
            "",
        ]
    )
    stamps.write(HERE / "results.md", text, __file__, settings)


if __name__ == "__main__":
    main()
