"""What the trace of a run costs: CPU seconds beside those of the run, samples, and bytes.

    python benchmarks/traces/run.py [--repeats N]

writes ``benchmarks/traces/results.md``. The CPU seconds of samples, and of the trace at the end,
are taken by a clock around both.
"""

from __future__ import annotations

import argparse
import gc
import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import placeopt
from placeopt.core.front import Run
from placeopt.core.trace import Recorder

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))

import stamps  # noqa: E402
from machine import facts, table  # noqa: E402

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


@contextmanager
def clocked() -> Iterator[list[float]]:
    """Yield a list of one number: the CPU seconds that traces took since."""
    spent, see, trace = [0.0], Recorder.see, Recorder.trace

    def timed(function: Callable[..., Any]) -> Callable[..., Any]:
        def inner(*arguments: Any) -> Any:
            began = time.thread_time()
            try:
                return function(*arguments)
            finally:
                spent[0] += time.thread_time() - began

        return inner

    Recorder.see, Recorder.trace = timed(see), timed(trace)  # type: ignore[method-assign]
    try:
        yield spent
    finally:
        Recorder.see, Recorder.trace = see, trace  # type: ignore[method-assign]


def run_once(instance: str, method: str, evaluations: int) -> tuple[float, float, Run]:
    """Return the CPU seconds of a run without its trace, those of the trace, and its facts."""
    gc.collect()
    problem = placeopt.load(ROOT / "instances" / f"{instance}.json")
    with clocked() as spent:
        began = time.process_time()
        front = placeopt.solve(problem, method, evaluations=evaluations, seed=1)
        whole = time.process_time() - began
    return whole - spent[0], spent[0], front.runs[0]


def measured(instance: str, method: str, evaluations: int, repeats: int) -> list[str]:
    """Return a row of the table."""
    run_once(instance, method, evaluations)  # compiles
    found = sorted(
        (run_once(instance, method, evaluations) for _ in range(repeats)),
        key=lambda one: one[1] / one[0],
    )
    plain, spent, run = found[repeats // 2]
    assert run.trace is not None
    size = len(json.dumps(asdict(run.trace)))
    return [
        f"`{instance}`",
        f"`{method}`",
        f"{run.evaluations:,}",
        f"{plain:.2f}",
        f"{spent:.3f}",
        f"{spent / plain:.1%}",
        "yes" if spent <= LIMIT * plain else "no",
        str(len(run.trace.seconds)),
        f"{size / 1000:.1f}",
    ]


def main(arguments: list[str]) -> None:
    """Measure, and write the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--repeats", type=int, default=3, metavar="N")
    repeats = parser.parse_args(arguments).repeats
    heads = ["instance", "method", "evaluations", "CPU s without", "CPU s of the trace", "cost"]
    heads += [f"at most {LIMIT:.0%}", "samples", "kB in the file"]
    rows = []
    said = facts("placeopt", "numpy", "moocore")
    for run in RUNS:
        rows.append(measured(*run, repeats))
        print(*rows[-1], file=sys.stderr, flush=True)
    text = f"""# What a trace costs

`python benchmarks/traces/run.py` wrote this page. A clock around the taking of samples, and around
the trace at the end, counts CPU seconds; of {repeats} runs the one of median cost is shown.
Plans that a sample has judged are not judged again for the front: of `repack` and `rollout` a part
of the cost would come later. {said}

"""
    page = text + "\n".join(table(heads, rows))
    stamps.write(Path(__file__).with_name("results.md"), page, __file__, {"repeats": repeats})


if __name__ == "__main__":
    main(sys.argv[1:])
