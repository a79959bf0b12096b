"""What the trace of a run costs: CPU seconds beside those of the run, samples, and bytes.

python benchmarks/traces.py [--repeats 3]
"""

from __future__ import annotations

import gc
import json
import time
from collections.abc import Callable
from dataclasses import asdict
from typing import Any
from unittest.mock import patch

from harness import ROOT, Benchmark, shown, table, timed

import placeopt
from placeopt.core.fronts.trace import Recorder
from placeopt.core.fronts.values import Run

#: The most that a trace may cost, as a share of the run.
LIMIT = 0.02
#: Instance, method, evaluations.
RUNS = (
    ("temporal/aws-50", "moead", 50_000),
    ("temporal/aws-50", "nsga3", 50_000),
    ("temporal/aws-50", "mspso", 50_000),
    ("edge-cloud/corner-5", "lns", 20_000),
    ("edge-cloud/corner-5", "moead", 50_000),
    ("rolling-update/repack-10x5", "repack", 2_000),
    ("rolling-update/repack-10x5", "moead", 50_000),
    ("rescheduling/chain-12", "block-search", 50_000),
    ("rescheduling/chain-12", "moead", 50_000),
    ("multi-cluster/stream-4x100", "moead", 2_000),
    ("multi-cluster/stream-4x100", "rollout", 200),
)


def clocked(function: Callable[..., Any], spent: list[float]) -> Callable[..., Any]:
    """Return a function that adds its CPU seconds to a list."""

    def inner(*arguments: Any) -> Any:
        began = time.thread_time()
        try:
            return function(*arguments)
        finally:
            spent.append(time.thread_time() - began)

    return inner


def once(instance: str, method: str, evaluations: int) -> tuple[float, float, Run]:
    """Return the CPU seconds of a run without its trace, those of the trace, and its facts."""
    gc.collect()
    problem = placeopt.load(ROOT / "instances" / f"{instance}.json")
    spent = list[float]()
    with (
        patch.object(Recorder, "see", clocked(Recorder.see, spent)),
        patch.object(Recorder, "trace", clocked(Recorder.trace, spent)),
    ):
        front, whole = timed(
            lambda: placeopt.solve(problem, method, evaluations=evaluations, seed=1)
        )
    return whole - sum(spent), sum(spent), front.runs[0]


def row(instance: str, method: str, evaluations: int, repeats: int) -> list[object]:
    """Return the row of the run of median cost."""
    once(instance, method, evaluations)  # compiles
    runs = [once(instance, method, evaluations) for _ in range(repeats)]
    plain, spent, run = sorted(runs, key=lambda one: one[1] / one[0])[repeats // 2]
    assert run.trace is not None
    size = len(json.dumps(asdict(run.trace)))
    head = f"`{instance}`", f"`{method}`", f"{run.evaluations:,}"
    cost = f"{plain:.2f}", f"{spent:.3f}", f"{spent / plain:.1%}"
    held = "yes" if spent <= LIMIT * plain else "no"
    return shown([*head, *cost, held, len(run.trace.seconds), f"{size / 1000:.1f}"])


def main() -> None:
    """Measure, and write the page."""
    run = Benchmark(__file__, __doc__, "numpy", "moocore", repeats=3)
    rows = [row(*one, run.repeats) for one in RUNS]
    run.write(
        "What a trace costs",
        "A clock around the taking of samples, and around the trace at the end, counts CPU "
        f"seconds; of {run.repeats} runs the one of median cost is shown. Plans that a sample has "
        "judged are not judged again for the front: of `repack` and `rollout` a part of the cost "
        "would come later.",
        table(
            "instance | method | evaluations | CPU s without | CPU s of the trace | cost | "
            f"at most {LIMIT:.0%} | samples | kB in the file",
            rows,
        ),
    )


if __name__ == "__main__":
    main()
