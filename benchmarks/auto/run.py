"""What `auto` leaves on the table, and whether time limits are kept.

Every method answers instances that nothing was tuned on, for as long as `auto` does; the union of
all their fronts, auto's too, is what could have been reached.

All seconds are CPU seconds, those of the limits too: what else runs on the machine makes no
difference.

python benchmarks/auto/run.py [--seeds 5] [--limits 2 10 60]

writes benchmarks/auto.md. With ``--cells FILE`` measured cells are kept there, and taken from
there: the page can be measured in several sittings, by ``--kinds`` one problem at a time. With
``--measured`` the page has the rows that are in the file, and no others.
"""

from __future__ import annotations

import time

time.perf_counter = time.process_time  # before anything asks the clock

import argparse  # noqa: E402
import json  # noqa: E402
import sys  # noqa: E402
from contextlib import suppress  # noqa: E402
from dataclasses import asdict, dataclass  # noqa: E402
from functools import cache  # noqa: E402
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
from placeopt.warm_up import warm_up  # noqa: E402

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
COLUMNS = (
    "problem",
    "size",
    "limit (s)",
    "seeds",
    "auto, of the union",
    "best single method minus auto",
    "best single method",
    "aims",
    "auto, of two autos",
    "auto took (s)",
    "slowest of all took (s)",
)


@dataclass
class Cell:
    """One instance and limit.

    Attributes
    ----------
    shares : dict
        Of the union's hypervolume, by method.
    seconds : dict
        Of each method.
    again : float
        Share of the union of two runs of auto, with different seeds, that the first has.
    """

    shares: dict[str, float]
    seconds: dict[str, float]
    again: float

    @property
    def best(self) -> str:
        """The best of the single methods."""
        return max((m for m in self.shares if m != "auto"), key=lambda m: self.shares[m])


def methods_of(kind: str) -> list[str]:
    """Return auto and every method of a problem that needs nothing else."""
    own = [name for name, entry in registry.methods().items() if kind in entry.of]
    return ["auto", *(name for name in own if name not in LEFT_OUT)]


def measure(kind: str, sizes: dict[str, Any], limit: float, seed: int) -> Cell:
    """Let every method answer for `limit` seconds on one instance."""
    drawn = {"problem": kind, "seed": seed, **sizes}

    def run(methods: list[str], seed: int) -> dict[str, tuple[float, Front]]:
        """Return seconds and front of each method; some refuse instances that are too large."""
        plan = {"instances": [drawn], "methods": methods, "seeds": [seed], "seconds": [limit]}
        swept = placeopt.sweep(plan)
        every = zip(swept.rows, swept.fronts, strict=True)
        return {r["method"]: (r["seconds"], front) for r, front in every if front and front.points}

    found = run(methods_of(kind), 1)
    fronts = {method: front for method, (_, front) in found.items()}
    shares = shares_of(fronts)
    again = run(["auto"], 2)["auto"][1]
    seconds = {method: taken for method, (taken, _) in found.items()}
    return Cell(shares, seconds, shares_of({"auto": fronts["auto"], "again": again})["auto"])


def shares_of(fronts: dict[str, Front]) -> dict[str, float]:
    """Return the share of the hypervolume of all fronts together that each has."""
    reference = np.max([front.reference() for front in fronts.values()], axis=0)
    whole = merge(fronts.values()).hypervolume(reference, plain=True)
    return {m: float(f.hypervolume(reference, plain=True) / whole) for m, f in fronts.items()}


def kept_cell(
    kind: str, sizes: dict[str, Any], limit: float, seed: int, file: Path | None, measured: bool
) -> Cell | None:
    """Measure a cell and keep it, or take what is kept.

    Of what is not kept nothing is measured where only what is `measured` is asked for.
    """
    key = f"{kind} {json.dumps(sizes)} {limit:g} {seed}"
    known = json.loads(file.read_text()) if file is not None and file.exists() else {}
    if key not in known and measured:
        return None
    if key not in known:
        compile_all(kind, json.dumps(sizes))
        known[key] = asdict(measure(kind, sizes, limit, seed))
        if file is not None:
            file.write_text(json.dumps(known))
    return Cell(**known[key])


@cache
def compile_all(kind: str, sizes: str) -> None:
    """Compile, then run every method for a moment; `sizes` are a JSON object."""
    warm_up([kind])
    problem = registry.problem_class(kind).generate(1, **json.loads(sizes))
    for method in methods_of(kind):
        with suppress(UnsupportedError):
            placeopt.solve(problem, method, seconds=0.3)


def row_of(kind: str, name: str, limit: float, cells: list[Cell]) -> tuple[str, ...]:
    """Return a row of the table."""
    share = min(cell.shares.get("auto", 0.0) for cell in cells)
    behind = max(cell.shares[cell.best] - cell.shares.get("auto", 0.0) for cell in cells)
    best = ", ".join(sorted({f"`{cell.best}`" for cell in cells}))
    slowest = max(cells, key=lambda cell: max(cell.seconds.values())).seconds
    last = max(slowest, key=lambda m: slowest[m])
    return (
        kind,
        name,
        f"{limit:g}",
        str(len(cells)),
        f"{share:.2%}",
        f"{behind:+.2%}",
        best,
        "met" if share >= AIM_UNION and behind <= AIM_BEST else "missed",
        f"{min(cell.again for cell in cells):.2%}",
        f"{max(cell.seconds['auto'] for cell in cells):.2f}",
        f"{slowest[last]:.2f} (`{last}`)",
    )


def rows_of(given: argparse.Namespace) -> tuple[list[tuple[str, ...]], list[str]]:
    """Return the rows of the table, and the names of those that were not measured."""
    rows, absent = [], []
    for kind, name, sizes in SIZES:
        for limit in given.limits if kind in given.kinds else ():
            seeds = range(FIRST_SEED, FIRST_SEED + given.seeds)
            found = [kept_cell(kind, sizes, limit, s, given.cells, given.measured) for s in seeds]
            cells = [cell for cell in found if cell is not None]
            if not cells:
                absent.append(f"{kind}, {name}, {limit:g} s")
                continue
            rows.append(row_of(kind, name, limit, cells))
            print(*rows[-1], sep=" | ", flush=True)
    return rows, absent


def page(rows: list[tuple[str, ...]], absent: list[str], said: str, given: dict[str, Any]) -> str:
    """Return the page."""
    met = sum(row[7] == "met" for row in rows)
    limits = [f"{limit:g}" for limit in given["limits"]]
    command = f"run.py --seeds {given['seeds']} --limits {' '.join(limits)}"
    return "\n".join(
        [
            "# `auto` against every method",
            "",
            said,
            "",
            f"`python benchmarks/auto/{command}` wrote this page.",
            "",
            f"Instances: generator seeds from {FIRST_SEED} on, as many of each size as the table "
            f"says. Limits: {', '.join(limits)} CPU s, by a clock that counts those. Every method "
            "runs as long as `auto`. The union of all fronts counts as 100 % of the hypervolume, "
            "with a reference point at 1.1 x the worst of all fronts.",
            "",
            f"Aims: `auto` has at least {AIM_UNION:.0%} of the union, and no method alone is ahead "
            f"of it by more than {AIM_BEST:.1%}. **Met in {met} of {len(rows)} rows.** Shares are "
            "those of the worst seed.",
            "",
            "A union gains by chance alone where searches are random. *Auto, of two autos* says "
            "how much: the share that `auto` has of the union of its front and that of a run with "
            "another seed.",
            "",
            *([f"Not measured: {'; '.join(absent)}.", ""] if absent else []),
            *table(COLUMNS, rows),
            "",
        ]
    )


def main() -> None:
    """Measure and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--limits", type=float, nargs="+", default=[2, 10, 60])
    parser.add_argument("--kinds", nargs="+", default=list(dict.fromkeys(k for k, *_ in SIZES)))
    parser.add_argument("--cells", type=Path, metavar="FILE")
    parser.add_argument("--measured", action="store_true", help="only rows that FILE has")
    given = parser.parse_args()
    said = facts("numpy", "numba", "pymoo", "highspy", "moocore")
    rows, absent = rows_of(given)
    if given.cells:
        said += "\n\nMeasured in several sittings; the load above is that at the end."
    settings = {k: v for k, v in vars(given).items() if k not in ("cells", "measured")}
    text = page(rows, absent, said, settings)
    stamps.write(HERE.parent / "auto.md", text, __file__, settings)


if __name__ == "__main__":
    main()
