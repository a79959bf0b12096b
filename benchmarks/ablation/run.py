"""What a refinement is worth: gap or hypervolume with it and without, on instances not tuned on.

    python benchmarks/ablation/run.py [--only NAME,NAME] [--seconds 10,60]

One process, one core; limits are CPU seconds of the process, so that a busy machine does not count.
Cells that are done are kept in cells.json beside this file, by refinement, instance and seconds.
Writes results.md beside this file.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import stamps  # noqa: E402
from machine import facts, table  # noqa: E402

import placeopt  # noqa: E402
from placeopt import registry  # noqa: E402
from placeopt.core.budget import Budget  # noqa: E402
from placeopt.core.fronts.front import Front, merge  # noqa: E402
from placeopt.core.problem import Problem  # noqa: E402

#: Held-out seeds.
SEEDS = (901, 902, 903, 904, 905)
CELLS = HERE / "cells.json"


class CpuBudget(Budget):
    """A budget whose clock is the CPU time of this process."""

    @property
    def seconds(self) -> float:
        """CPU seconds since the run began."""
        self.__dict__.setdefault("_cpu", time.process_time())
        return time.process_time() - self.__dict__["_cpu"]


@dataclass(frozen=True)
class Refinement:
    """A part of the code that can be switched off.

    Attributes
    ----------
    name, files : str
        What it is called in the table, and where it stands.
    lines : int
    kind : str
        The problem.
    sizes : tuple of dict
        Sizes of the instances, one for each of `SEEDS`.
    off : callable or None
        Returns what switches it off: a mock patch. None stands for what has been removed since it
        was measured.
    method : str or None
        Measured is the hypervolume of this method; without one, the gap of a certificate.
    """

    name: str
    files: str
    lines: int
    kind: str
    sizes: tuple[dict[str, int], ...]
    off: Callable[[], Any] | None
    method: str | None = None


def _no_levelling() -> Any:
    from placeopt.temporal import price_seeds

    return mock.patch.object(price_seeds, "levelled", lambda X, instance: X)


def _no_price_seeds() -> Any:
    from placeopt.temporal import price_seeds
    from placeopt.temporal.heuristics import greedy_vectors

    def greedy(encoder: Any, weights: np.ndarray) -> np.ndarray:
        every = np.zeros((len(weights), 3))
        every[:, encoder.problem.columns(encoder.objectives)] = weights
        return greedy_vectors(encoder, np.maximum(every, 1e-9 * every.max()))

    return mock.patch.object(price_seeds, "vectors_at", greedy)


def _no_timed_greedy() -> Any:
    from placeopt.temporal import heuristics

    return mock.patch.object(heuristics, "_few_enough_for_starts", lambda encoder: False)


def _no_ejection() -> Any:
    from placeopt.rescheduling.local_search.blocks import BlockSearch

    return mock.patch.object(BlockSearch, "_eject", lambda self, least: True)


def _no_beam() -> Any:
    from placeopt.rescheduling.local_search import beam

    none = lambda instance, *asked: np.empty((0, *instance.home.shape), dtype=np.int64)  # noqa: E731
    return mock.patch.object(beam, "deployments", none)


REQUESTS = tuple({"requests": n} for n in (20, 40, 60, 80, 100))
MANY = tuple({"requests": n} for n in (1000, 1000, 2000, 2000, 3000))
APPLICATIONS = tuple({"applications": n} for n in (200, 300, 500, 1000, 1000))
SERVICES = tuple(
    {"services": n, "cloud_a": m, "edge_a": m, "edge_b": m}
    for n, m in ((10, 2), (20, 2), (20, 4), (50, 6), (80, 8))
)
REFINEMENTS = (
    Refinement(
        "bounds by whole machines",
        "temporal/exact/machine_sets, machine_program, machine_cuts, latency_tree",
        963,
        "temporal",
        REQUESTS,
        None,
    ),
    Refinement(
        "charges of patterns for many applications",
        "edge_cloud/local_search/sparse_charging, catalogue",
        538,
        "edge-cloud",
        APPLICATIONS,
        None,
    ),
    Refinement(
        "level loads of pools", "temporal/levelling", 86, "temporal", MANY, _no_levelling, "sharded"
    ),
    Refinement(
        "seeds from prices",
        "temporal/price_seeds, levelling",
        140,
        "temporal",
        MANY,
        _no_price_seeds,
        "sharded",
    ),
    Refinement(
        "greedy with starts",
        "temporal/timed_greedy",
        185,
        "temporal",
        REQUESTS,
        _no_timed_greedy,
        "auto",
    ),
    Refinement(
        "ejections",
        "rescheduling/local_search/eject",
        85,
        "rescheduling",
        SERVICES,
        _no_ejection,
        "auto",
    ),
    Refinement(
        "beam along the call graph",
        "rescheduling/local_search/beam",
        224,
        "rescheduling",
        SERVICES,
        _no_beam,
        "auto",
    ),
)


def instances(refinement: Refinement) -> Iterator[tuple[str, Problem]]:
    """Yield the held-out instances of a refinement with their names."""
    for seed, sizes in zip(SEEDS, refinement.sizes, strict=True):
        name = ", ".join(f"{value} {key}" for key, value in sizes.items())
        yield (
            f"{name}, seed {seed}",
            registry.problem_class(refinement.kind).generate(seed, **sizes),
        )


@contextmanager
def switched(refinement: Refinement, on: bool) -> Iterator[None]:
    """Run the block with the refinement, or without."""
    if on or refinement.off is None:
        yield
    else:
        with refinement.off():
            yield


def gaps(refinement: Refinement, problem: Problem, seconds: float) -> list[float]:
    """Return the certified gap in per cent, with and without; of one front."""
    front = placeopt.solve(problem, budget=CpuBudget(seconds=10.0))
    from placeopt.temporal.exact import bounds

    certify = registry.certifier(problem.spec.kind)
    result = []
    for on in (True, False):
        with switched(refinement, on), mock.patch.object(bounds, "_own_budget", lambda own: own):
            gap = certify(problem, front, CpuBudget(seconds=seconds)).gap()
        result.append(100 * (1.0 if gap is None else gap))
    return result


def volumes(refinement: Refinement, problem: Problem, seconds: float) -> list[float]:
    """Return the hypervolume in per cent of the union's, with and without; mean of three seeds."""
    fronts: list[list[Front]] = [[], []]
    for seed in (1, 2, 3) if seconds <= 10 else (1,):
        for k, on in enumerate((True, False)):
            with switched(refinement, on):
                front = placeopt.solve(
                    problem, refinement.method, budget=CpuBudget(seconds=seconds), seed=seed
                )
            fronts[k].append(front)
    union = merge([front for some in fronts for front in some])
    reference = union.reference()
    whole = union.hypervolume(reference)
    return [
        100 * float(np.mean([f.hypervolume(reference) for f in some])) / whole for some in fronts
    ]


def measured(refinement: Refinement, seconds: float, cells: dict[str, Any]) -> None:
    """Measure all instances that `cells` lacks; keep each at once."""
    warm = False
    for name, problem in instances(refinement):
        key = f"{refinement.name} | {name} | {seconds:g} s"
        if key in cells:
            continue
        measure = gaps if refinement.method is None else volumes
        if not warm:  # kernels are compiled before the clock runs
            measure(refinement, problem, 1.0)
            warm = True
        cells[key] = measure(refinement, problem, seconds)
        CELLS.write_text(json.dumps(cells, indent=1) + "\n", encoding="utf-8")
        print(key, cells[key], flush=True)


def rows(cells: dict[str, Any], limits: list[float]) -> Iterator[list[str]]:
    """Yield a row for each refinement: what it is worth at each limit, mean and best case."""
    for one in REFINEMENTS:
        what = "gap, points" if one.method is None else f"hypervolume of {one.method}, %"
        row = [one.name, one.files, str(one.lines), what, "removed" if one.off is None else ""]
        for seconds in limits:
            found = [v for k, v in cells.items() if _is_of(k, one, seconds)]
            sign = -1 if one.method is None else 1
            gains = [sign * (on - off) for on, off in found]
            few = "" if len(gains) == len(SEEDS) else f", {len(gains)} instances"
            told = f"{np.mean(gains):.2f} ({max(gains):.2f}){few}" if gains else "not measured"
            row.append(told)
        yield row


def _is_of(key: str, refinement: Refinement, seconds: float) -> bool:
    name, _, limit = key.split(" | ")
    return name == refinement.name and limit == f"{seconds:g} s"


def main() -> None:
    """Measure what is asked for, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="")
    parser.add_argument("--seconds", default="10,60")
    asked = parser.parse_args()
    limits = [float(one) for one in asked.seconds.split(",")]
    cells = json.loads(CELLS.read_text(encoding="utf-8")) if CELLS.exists() else {}
    said = facts("placeopt", "numpy", "highspy")
    for refinement in REFINEMENTS:
        wanted = not asked.only or refinement.name in asked.only.split(",")
        if wanted and refinement.off is not None:
            for seconds in limits:
                measured(refinement, seconds, cells)
    columns = (
        "refinement",
        "files",
        "lines",
        "measured",
        "now",
        *(f"gain at {s:g} s" for s in limits),
    )
    text = [
        "# What refinements are worth",
        "",
        "Mean gain over five held-out instances (best case in brackets): points of certified gap,",
        "or per cent of the hypervolume that all runs reach together. A refinement that buys less",
        "than 0.3 at both limits is removed.",
        "",
        *table(columns, rows(cells, limits)),
        "",
        f"Measured {said} Limits are CPU seconds.",
    ]
    stamps.write(HERE / "results.md", "\n".join(text), __file__, vars(asked))


if __name__ == "__main__":
    main()
