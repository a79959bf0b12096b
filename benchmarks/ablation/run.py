"""What a refinement is worth: gap or hypervolume with it and without, on instances not tuned on.

    python benchmarks/ablation/run.py [--only NAME,NAME] [--seconds 10,60]

One process, one core; limits are CPU seconds of the process, so that a busy machine does not count.
Cells that are done are kept in cells.json beside this file, by refinement, instance and seconds.
Writes results.md beside this file.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
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
from placeopt.core.fronts import certificate  # noqa: E402
from placeopt.core.fronts.front import Front, merge  # noqa: E402
from placeopt.core.problem import Problem  # noqa: E402

#: What the columns of gains count.
GAP, SINGLE, FIRST = "gap, points", "gap of weight .01, points", "CPU s of a first run"
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
    measure : str or None
        What is measured instead: CPU seconds of a first run, or the gap of a single weight.
    """

    name: str
    files: str
    lines: int
    kind: str
    sizes: tuple[dict[str, Any], ...]
    off: Callable[[], Any] | None
    method: str | None = None
    measure: str | None = None

    @property
    def told(self) -> str:
        """What is measured, as the table says it."""
        return self.measure or (f"hypervolume of {self.method}, %" if self.method else GAP)


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


def _no_ejection() -> Any:
    from placeopt.rescheduling.local_search.blocks import BlockSearch

    return mock.patch.object(BlockSearch, "_eject", lambda self, least: True)


def _no_beam() -> Any:
    from placeopt.rescheduling.local_search import beam

    none = lambda instance, *asked: np.empty((0, *instance.home.shape), dtype=np.int64)  # noqa: E731
    return mock.patch.object(beam, "deployments", none)


def _no_closing() -> Any:
    from placeopt.edge_cloud import heuristics

    return mock.patch.object(heuristics, "is_applicable", lambda relaxation, budget: False)


def _no_callees() -> Any:
    """Let numba make machine code of every kernel, as it does by itself."""
    from placeopt.core.kernels import compiler as kernels

    own: Any = kernels._Kernel
    numba: Any = own.__mro__[1]

    def template(self: Any, kinds: Any, names: Any) -> Any:
        from numba.core import types

        _, kinds = self._compiler.fold_argument_types(
            tuple(map(types.unliteral, kinds)),
            {name: types.unliteral(kind) for name, kind in names.items()},
        )
        return numba.get_call_template(self, kinds, {})

    return mock.patch.multiple(
        own, get_call_template=template, get_overload=lambda s, sig: numba.get_overload(s, sig)
    )


REQUESTS = tuple({"requests": n} for n in (20, 40, 60, 80, 100))
MANY = tuple({"requests": n} for n in (1000, 1000, 2000, 2000, 3000))
APPLICATIONS = tuple({"applications": n} for n in (200, 300, 500, 1000, 1000))
FEW = tuple({"applications": n} for n in (20, 30, 50, 70, 100))
#: Shipped instances, for first runs.
SHIPPED = ("toy", "corner-5", "repack-10x5", "stream-4x100", "chain-12")
#: Crowded nodes: where there is room for all, every search ends at the optimum.
SERVICES = tuple(
    {"application": "random", "services": n, "replicas": 3, "cloud_a": m, "edge_a": m, "edge_b": m}
    for n, m in ((10, 2), (20, 4), (40, 6), (60, 6), (70, 7))
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
        None,
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
    Refinement(
        "charges of patterns and lists of placements",
        "edge_cloud/bounds, in certificates",
        36,
        "edge-cloud",
        FEW,
        None,
    ),
    Refinement(
        "closing: HiGHS chooses among placements that are left",
        "edge_cloud/local_search/closing, and those above",
        1228,
        "edge-cloud",
        FEW,
        _no_closing,
        measure=SINGLE,
    ),
    Refinement(
        "kernels without machine code of their own",
        "core/kernels/callee",
        76,
        "all",
        (),
        _no_callees,
        measure=FIRST,
    ),
    Refinement(
        "stand-ins for modules that libraries import and do not use",
        "core/deferred",
        55,
        "all",
        (),
        None,
        measure=FIRST,
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
    certify = registry.certifier(problem.spec.kind)
    result = []
    for on in (True, False):
        with switched(refinement, on), mock.patch.object(certificate, "_own", lambda own: own):
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


def singles(refinement: Refinement, problem: Problem, seconds: float) -> list[float]:
    """Return the gap in per cent that a search for one weight leaves, with and without."""
    result = []
    for on in (True, False):
        with switched(refinement, on):
            front = placeopt.solve(problem, "lns", weight=0.01, budget=CpuBudget(seconds=seconds))
        gaps = [point.gap for point in front.points if point.gap is not None]
        result.append(100 * min(gaps, default=1.0))
    return result


def first_runs(refinement: Refinement, cells: dict[str, Any]) -> None:
    """Measure CPU seconds of a first run of each shipped instance, without and with."""
    for name in SHIPPED:
        key = f"{refinement.name} | {name} | 10 s"
        if key not in cells:
            cells[key] = [_first_run(refinement, name, on) for on in (True, False)]
            CELLS.write_text(json.dumps(cells, indent=1) + "\n", encoding="utf-8")
            print(key, cells[key], flush=True)


def _first_run(refinement: Refinement, instance: str, on: bool) -> float:
    child = f"""
import sys; sys.path.insert(0, {str(HERE)!r})
import run
one = next(r for r in run.REFINEMENTS if r.name == {refinement.name!r})
with run.switched(one, {on}):
    import placeopt
    placeopt.solve(placeopt.load({instance!r}), evaluations=500)
"""
    with tempfile.TemporaryDirectory() as cache:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        environment = os.environ | {"NUMBA_CACHE_DIR": cache, "PLACEOPT_KERNELS": ""}
        subprocess.run([sys.executable, "-c", child], check=True, env=environment)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measured(refinement: Refinement, seconds: float, cells: dict[str, Any]) -> None:
    """Measure all instances that `cells` lacks; keep each at once."""
    if refinement.measure == FIRST:
        first_runs(refinement, cells)
        return
    warm = False
    for name, problem in instances(refinement):
        key = f"{refinement.name} | {name} | {seconds:g} s"
        if key in cells:
            continue
        measure = singles if refinement.measure == SINGLE else gaps
        measure = measure if refinement.method is None else volumes
        if not warm:  # kernels are compiled before the clock runs
            measure(refinement, problem, 1.0)
            warm = True
        cells[key] = measure(refinement, problem, seconds)
        CELLS.write_text(json.dumps(cells, indent=1) + "\n", encoding="utf-8")
        print(key, cells[key], flush=True)


def rows(cells: dict[str, Any], limits: list[float]) -> Iterator[list[str]]:
    """Yield a row for each refinement: what it is worth at each limit, mean and best case."""
    for one in REFINEMENTS:
        state = "removed" if one.off is None else ""
        row = [one.name, one.files, str(one.lines), one.told, state]
        for seconds in limits:
            pairs = [v for k, v in cells.items() if _is_of(k, one, seconds)]
            sign = -1 if one.method is None else 1
            gains = [sign * (on - off) for on, off in pairs]
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
        "than 0.3 at both limits is removed, and one that buys less than a second of a first run.",
        "",
        *table(columns, rows(cells, limits)),
        "",
        f"Measured {said} Limits are CPU seconds.",
    ]
    stamps.write(HERE / "results.md", "\n".join(text), __file__, vars(asked))


if __name__ == "__main__":
    main()
