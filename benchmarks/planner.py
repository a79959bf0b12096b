"""What the program of the cheapest end leaves for the other searches, part by part.

    python benchmarks/planner.py [--wild 20] [--measured 60] [--seeds 3]

The same plans and fronts are made with all parts, and each time without one of them. A stopped run
goes on where it was.
"""

from __future__ import annotations

import contextlib
import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import cpu_clock  # noqa: F401  (limits and times are CPU seconds)
import numpy as np
from harness import ROOT, Benchmark, section, shares, table, timed

sys.path.insert(1, str(ROOT / "benchmarks" / "kubernetes"))
from fleets import FLEETS, imported, many_machines
from made_clusters import prices as wild_prices
from make_cluster import cluster, prices
from wild_clusters import wild_cluster

import placeopt
from placeopt.kubernetes.importing import import_files
from placeopt.kubernetes.moving import MovingRules
from placeopt.kubernetes.options import ImportOptions
from placeopt.rolling_update import bounds, end_state, repack
from placeopt.rolling_update.end_state import lowest_price
from placeopt.rolling_update.packing.consolidation import Consolidation
from placeopt.rolling_update.problem import RollingUpdate

#: Part -> what takes its place where it is left out.
PARTS: dict[str, tuple[Any, str, Callable[..., Any]]] = {
    "emptying by exchanges": (Consolidation, "_close_by_exchanges", lambda *_: False),
    "one node opened, others closed": (Consolidation, "_exchange", lambda *_: False),
    "descents": (repack, "_descents", lambda *_: iter(())),
    "searches from the best plan": (repack._Search, "go_on", lambda *_: None),
    "returning": (Consolidation, "targets_of_few_starts", lambda *_: iter(())),
    "ends of few starts": (repack, "_to_the_corners", lambda *_: iter(())),
    "the quick bound": (bounds, "_counted", lambda *_: 0),
    "the program": (repack, "cheapest_end", lambda p, *_, **__: end_state.EndState(0, None)),
}
#: Parts that plans of least cost, and fronts, know.
FOR_PLANS = tuple(
    part for part in PARTS if part not in ("returning", "ends of few starts", "the program")
)
FOR_FRONTS = tuple(
    part for part in PARTS if part not in ("descents", "searches from the best plan")
)
#: CPU seconds within which a wild cluster is to be proven.
_MOST_SECONDS = 20
#: Applications, microservices of each and nodes of fronts.
FRONTS = ((10, 5, 16), (10, 40, 20), (100, 5, 120))


@contextlib.contextmanager
def without(part: str) -> Iterator[None]:
    """Leave a part out; all is there for the empty one."""
    with mock.patch.object(*PARTS[part]) if part else contextlib.nullcontext():
        yield


def wild(seed: int) -> RollingUpdate:
    """Return a cluster of 20 to 60 nodes with all that schedulers know."""
    return imported_from(wild_cluster(seed, 20 + 2 * (seed % 21)), wild_prices(), "prices.csv")


def made(nodes: int, pods: int, seed: int) -> RollingUpdate:
    """Return a cluster by `make_cluster.py` with rules."""
    return imported_from(
        cluster(nodes, pods, seed, rules=True)["items"], json.dumps(prices()), "prices.json"
    )


def imported_from(objects: list[Any], table_of_prices: str, file: str) -> RollingUpdate:
    """Return the instance of some objects."""
    with tempfile.TemporaryDirectory() as name:
        path, priced = Path(name) / "cluster.json", Path(name) / file
        path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
        priced.write_text(table_of_prices)
        options = ImportOptions(
            name="c", rules=MovingRules(), leave_out=True, missing_prices="default=1"
        )
        problem: Any = import_files([path], "rolling-update", options, prices=[priced]).problem
    return problem


def fleet(*size: int, **told: Any) -> RollingUpdate:
    """Return a fleet with machines to buy."""
    with tempfile.TemporaryDirectory() as name:
        problem: Any = imported(Path(name), *size, **told)
    return problem


def plan_of(problem: RollingUpdate, part: str) -> list[float]:
    """Return the cost, starts, broken rules and CPU seconds of the cheapest plan."""
    problem.arrays  # noqa: B018 (built before the clock starts)
    with without(part):
        plan, cpu = timed(lambda: repack.cheapest_plan(problem))
    verdict = problem.evaluate(plan)
    scale = problem.arrays.price_scale
    lowest = lowest_price(problem, round(verdict.values[0] * scale), stops=False) / scale
    return [*verdict.values[:2], len(verdict.violations) + verdict.values[2], lowest, cpu]


def front_of(size: tuple[int, int, int], seed: int) -> dict[str, list[float]]:
    """Return the share of the hypervolume, the gap and the CPU seconds with and without parts."""
    fronts, cpu = {}, {}
    for part in ("", *FOR_FRONTS):
        problem = RollingUpdate.generate(
            seed, applications=size[0], microservices=size[1], nodes=size[2]
        )
        problem.arrays  # noqa: B018
        with without(part):
            solved = partial(placeopt.solve, problem, "repack", seed=1)
            fronts[part], cpu[part] = timed(solved)
    share = shares(fronts)
    return {
        part: [share[part], front.gap() or 0.0, min(p.values[0] for p in front.points), cpu[part]]
        for part, front in fronts.items()
    }


def plans(run: Benchmark, name: str, problems: dict[str, Callable[[], Any]]) -> list[list[object]]:
    """Return a row for each part: over all clusters of a kind."""
    found: dict[str, list[list[float]]] = {part: [] for part in ("", *FOR_PLANS)}
    for one, make in problems.items():
        for part, own in found.items():
            key = f"{name} {one} {part}"
            own.append(run.cell(key, lambda make=make, part=part: plan_of(make(), part)))
    rows, whole = [], np.array(found[""])
    for part, own in found.items():
        values = np.array(own)
        dearer = int((values[:, 0] > whole[:, 0] + 1e-9).sum())
        cheaper = int((values[:, 0] < whole[:, 0] - 1e-9).sum())
        proven = int((values[:, 0] <= values[:, 3] + 1e-9).sum())
        row = [name, part or "nothing", len(values), f"{values[:, 0].sum():.3f}", cheaper, dearer]
        rows.append([*row, proven, f"{values[:, 1].sum():.0f}", f"{values[:, 4].sum():.1f}"])
    return rows


def measured(seed: int) -> list[float]:
    """Return nodes, pods, cost, bound, starts, faults and CPU seconds of a plan."""
    problem = wild(seed)
    problem.arrays  # noqa: B018
    (plan, lowest), cpu = timed(lambda: _with_bound(problem))
    verdict = problem.evaluate(plan)
    faults = len(verdict.violations) + verdict.values[2]
    size = [int((~problem.arrays.candidate).sum()), len(problem.arrays.home)]
    return [*size, verdict.values[0], lowest, verdict.values[1], faults, cpu]


def _with_bound(problem: RollingUpdate) -> tuple[Any, float]:
    """Return the cheapest plan that stops nothing, and what no such plan costs less than."""
    plan = repack.cheapest_plan(problem)
    scale = problem.arrays.price_scale
    cost = round(problem.evaluate(plan).values[0] * scale)
    return plan, lowest_price(problem, cost, stops=False) / scale


def wild_rows(run: Benchmark) -> list[list[object]]:
    """Return a row for each wild cluster."""
    rows = []
    for seed in range(run.measured):
        cell = run.cell(f"wild {seed}", lambda seed=seed: measured(seed))
        nodes, pods, cost, lowest, starts, faults, cpu = cell
        proven = cost <= lowest + 1e-9 and not faults and cpu <= _MOST_SECONDS
        row = [seed, nodes, pods, f"{cost:.2f}", "yes" if proven else "no"]
        row += [f"{cost / lowest - 1:.2%}", f"{starts:.0f}", f"{faults:.0f}"]
        rows.append([*row, f"{cpu:.1f}"])
    return rows


def fronts(run: Benchmark) -> list[list[object]]:
    """Return a row for each size and part."""
    rows = []
    for size in FRONTS:
        cells = [
            run.cell(f"front {size} {s}", lambda s=s, size=size: front_of(size, s))
            for s in range(run.seeds)
        ]
        for part in ("", *FOR_FRONTS):
            share, gap, cost, cpu = np.mean([cell[part] for cell in cells], axis=0)
            name = f"{size[0]} x {size[1]} on {size[2]}"
            row = [name, part or "nothing", f"{share:.4f}", f"{gap:.2%}", f"{cost:.2f}"]
            rows.append([*row, f"{cpu:.1f}"])
    return rows


def main() -> None:
    """Measure all and write the page."""
    run = Benchmark(__file__, __doc__, "numba", "scipy", wild=20, measured=60, seeds=3)
    repack.cheapest_plan(wild(0))  # compiles
    placeopt.solve(RollingUpdate.generate(0), "repack")
    rows = plans(run, "fleets", {f"{f[0]}": lambda f=f: fleet(*f) for f in FLEETS})
    size, machines = FLEETS[1], many_machines()
    rows += plans(run, "130 types to buy", {"40": lambda: fleet(*size, machines=machines)})
    rows += plans(run, "120 nodes", {"1": lambda: made(120, 1000, 1)})
    rows += plans(run, "wild", {str(s): lambda s=s: wild(s) for s in range(run.wild)})
    many: Any = RollingUpdate.generate(0, applications=1000, nodes=1200, clusters=4)
    rows += plans(run, "1000 x 5 on 1200", {"0": lambda: many})
    wilds = wild_rows(run)
    run.write(
        "What the planner leaves for other searches",
        "The program of the cheapest end ([end_state](../models/rolling_update/README.md)) and the "
        "searches beside it. Each row leaves one part out. CPU seconds, kernels warm. Descents "
        "are made where no end of the program is reached.",
        section(
            "Plans of least cost that stop nothing",
            table(
                "clusters | without | number | USD/h in all | cheaper than with it | dearer | "
                "proven | starts | CPU s",
                rows,
            ),
        ),
        section(
            "Wild clusters",
            f"Of {run.measured} clusters of 20 to 60 nodes {sum(row[4] == 'yes' for row in wilds)} "
            f"have a plan that is proven within {_MOST_SECONDS} CPU s. Of the others the planner "
            "knows no plan that is as cheap as its bound. A fault is a rule that is broken, or a "
            "stop.",
            table(
                "seed | nodes | pods | USD/h | proven | at most dearer | starts | faults | CPU s",
                wilds,
            ),
        ),
        section(
            "Fronts of cost, starts and stops by `repack`",
            table(
                "instance | without | share of the joint hypervolume | gap | least cost | CPU s",
                fronts(run),
            ),
        ),
    )


if __name__ == "__main__":
    main()
