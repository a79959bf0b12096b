"""How seconds of an evaluation grow with the instance, for the encoders of all five problems.

    python benchmarks/growth.py

About three minutes. Each cell is a process of its own, and takes CPU seconds.
"""

from __future__ import annotations

import math
import resource
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
from harness import Benchmark, apart, section, shown, table, timed

from placeopt.core.interfaces import Encoder, build_encoder
from placeopt.registry import problem_class

#: Sizes of each problem: what grows, and how the rest of the instance grows with it.
SIZES: dict[str, tuple[str, tuple[int, ...]]] = {
    "edge-cloud": ("applications", (100, 1000, 3000, 10_000)),
    "temporal": ("requests", (100, 1000, 10_000)),
    "rolling-update": ("applications", (10, 100, 1000)),
    "rescheduling": ("services", (20, 100, 300)),
    "multi-cluster": ("requests", (100, 1000, 10_000)),
}
#: CPU seconds of each cell, and of a batch of vectors within it at the least.
SECONDS, BATCH = 4.0, 0.02
WORDS = """*numbers* are those in the instance's document. An exponent is that of the CPU seconds
between a row and the one above it: of the numbers, and of the genes, of which there is one for each
decision. Vectors are those of `sample`; a cell is the fastest of many batches. The nodes of
edge-cloud instances grow with the applications, as in the paper's two topologies, and every pair of
nodes has a delay: the numbers then grow with the square of the applications. Machines of
rescheduling grow with the services, nodes of rolling updates with the applications; offers of
temporal instances and clusters stay."""


def sizes(problem: str, number: int) -> dict[str, Any]:
    """Return the arguments of the generator of a problem."""
    found: dict[str, Any] = {SIZES[problem][0]: number}
    if problem == "edge-cloud":
        nodes = {"near": 0.15 * number, "far": 0.03 * number, "cloud": 0.007 * number}
        found |= {layer: max(1, round(count)) for layer, count in nodes.items()}
    if problem == "rescheduling":
        found |= {"application": "random"}
        found |= dict.fromkeys(("cloud_a", "edge_a", "edge_b"), number // 10)
    return found


def numbers(part: Any) -> int:
    """Return how many numbers there are in a document."""
    if isinstance(part, dict):
        return sum(map(numbers, part.values()))
    if isinstance(part, list | tuple):
        return sum(map(numbers, part))
    return isinstance(part, int | float)


def measured(problem: str, number: int) -> dict[str, Any]:
    """Return CPU seconds of an evaluation of one instance, its size, and the memory it takes."""
    instance = problem_class(problem).generate(1, **sizes(problem, number))
    size = numbers(instance.to_document())
    before = _peak_mb()
    encoder, built = timed(lambda: build_encoder(instance))
    X = encoder.sample(np.random.default_rng(1), 2)
    encoder.evaluate(X)
    count = 2
    while _seconds(encoder, X) < BATCH and count < 1000:
        count *= 2
        X = encoder.sample(np.random.default_rng(1), count)
    times = [_seconds(encoder, X)]
    while sum(times) < SECONDS:
        times.append(_seconds(encoder, X))
    found = {"seconds": min(times) / count, "numbers": size, "genes": encoder.num_genes}
    return found | {"built": built, "before": before, "peak": _peak_mb()}


def _seconds(encoder: Encoder, X: np.ndarray) -> float:
    return timed(lambda: encoder.evaluate(X))[1]


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def exponent(less: dict[str, Any], more: dict[str, Any], of: str) -> str:
    """Return the exponent of the seconds in one of the sizes, between two rows."""
    return f"{math.log(more['seconds'] / less['seconds']) / math.log(more[of] / less[of]):.2f}"


def rows(problem: str, cells: list[dict[str, Any]]) -> Iterator[list[object]]:
    """Yield the rows of a problem."""
    growth = [
        ("", ""),
        *((exponent(*p, "numbers"), exponent(*p, "genes")) for p in pairwise(cells)),
    ]
    for number, r, exponents in zip(SIZES[problem][1], cells, growth, strict=True):
        size = (f"{n:,}" for n in (number, r["numbers"], r["genes"]))
        each = f"{1e6 * r['seconds']:.3g}", f"{1e9 * r['seconds'] / r['genes']:.0f}"
        memory = (f"{r[when]:.0f}" for when in ("before", "peak"))
        yield shown([problem, *size, *each, *exponents, f"{r['built']:.2f}", *memory])


def main() -> None:
    """Measure and write the page."""
    run = Benchmark(__file__, __doc__, "numpy", "numba")
    lines, ends = [], []
    for problem, (what, counts) in SIZES.items():
        cells = [
            run.cell(f"{problem} {n}", lambda p=problem, n=n: apart(__file__, "measured", p, n))
            for n in counts
        ]
        lines += rows(problem, cells)
        whole = [exponent(cells[0], cells[-1], of) for of in ("numbers", "genes")]
        ends.append([problem, what, f"{counts[0]:,} to {counts[-1]:,}", *whole])
    run.write(
        "Growth of evaluations",
        table("problem | what grows | from, to | exponent of numbers | of genes", ends),
        section(
            "Sizes",
            table(
                "problem | size | numbers | genes | µs an evaluation | ns a gene | exponent of "
                "numbers | of genes | CPU s to build | MB before | peak MB",
                lines,
            ),
            WORDS,
        ),
    )


if __name__ == "__main__":
    main()
