"""What the trace of a run costs: CPU seconds with and without it, samples, and bytes.

    python benchmarks/traces/run.py [--repeats N]

writes ``benchmarks/traces/results.md``. Runs with and without a trace take turns; the least CPU
seconds of both are compared.
"""

from __future__ import annotations

import argparse
import gc
import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import placeopt
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
def no_trace() -> Iterator[None]:
    """Let runs leave no trace."""
    see, trace = Recorder.see, Recorder.trace
    Recorder.see = lambda self, *_: None  # type: ignore[method-assign]
    Recorder.trace = lambda self, *_: None  # type: ignore[method-assign]
    try:
        yield
    finally:
        Recorder.see, Recorder.trace = see, trace  # type: ignore[method-assign]


def timed(instance: str, method: str, evaluations: int) -> tuple[float, bytes, Any]:
    """Return the CPU seconds of a run, what its points are, and its facts.

    Its plans are forgotten: the garbage collector would walk them in the next run.
    """
    gc.collect()
    problem = placeopt.load(ROOT / "instances" / f"{instance}.json")
    began = time.process_time()
    front = placeopt.solve(problem, method, evaluations=evaluations, seed=1)
    return time.process_time() - began, front.values.tobytes(), front.runs[0]


def measured(instance: str, method: str, evaluations: int, repeats: int) -> list[str]:
    """Return a row of the table."""
    timed(instance, method, evaluations)  # compiles
    plain, traced = [], []
    for _ in range(repeats):
        with no_trace():
            seconds, without, _ = timed(instance, method, evaluations)
            plain.append(seconds)
        seconds, points, run = timed(instance, method, evaluations)
        traced.append(seconds)
        assert points == without, "a trace changes nothing"
    trace = run.trace
    cost = min(traced) / min(plain) - 1
    size = len(json.dumps(asdict(trace)))
    verdict = "yes" if cost <= LIMIT else "no"
    return [
        f"`{instance}`",
        f"`{method}`",
        f"{run.evaluations:,}",
        f"{min(plain):.2f}",
        f"{min(traced):.2f}",
        f"{cost:+.1%}",
        verdict,
        str(len(trace.seconds)),
        f"{size / 1000:.1f}",
    ]


def main(arguments: list[str]) -> None:
    """Measure, and write the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--repeats", type=int, default=7, metavar="N")
    repeats = parser.parse_args(arguments).repeats
    heads = ["instance", "method", "evaluations", "CPU s without", "CPU s with", "cost"]
    heads += [f"at most {LIMIT:.0%}", "samples", "kB in the file"]
    rows = []
    said = facts("placeopt", "numpy", "moocore")
    for run in RUNS:
        rows.append(measured(*run, repeats))
        print(*rows[-1], file=sys.stderr, flush=True)
    text = f"""# What a trace costs

`python benchmarks/traces/run.py` wrote this page. Runs with and without a trace took turns,
{repeats} times each; the table has the least CPU seconds of both. The points of both are the
same. A cost below 0 is the noise of the machine. {said}

"""
    page = text + "\n".join(table(heads, rows))
    stamps.write(Path(__file__).with_name("results.md"), page, __file__, {"repeats": repeats})


if __name__ == "__main__":
    main(sys.argv[1:])
