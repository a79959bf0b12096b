"""What `auto` gains by the exact method on a small problem of one's own that has a model.

python benchmarks/auto/own_problems.py               # writes benchmarks/auto/own_problems.md

Problems are as in ``tests/support/lamps.py``, with two or three goals of whole or of real values;
an instance with n lamps has 2^n vectors.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyomo.environ as pyo

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parents[1] / "tests" / "support")]

import lamps  # noqa: E402
import stamps  # noqa: E402
from machine import facts, table  # noqa: E402

import placeopt  # noqa: E402
from placeopt import registry  # noqa: E402
from placeopt.core.front import Evaluation, Objective  # noqa: E402

NAMES = ("cost", "dark", "work")


def values_of(problem: lamps.Lamps) -> tuple[np.ndarray, np.ndarray]:
    """Return what a lamp that is on adds to each goal, shape (goals, lamps), and the constants."""
    goals, real = (2 + int(problem.name[0] == "3")), problem.name[1] == "r"
    rng = np.random.default_rng(len(problem.light))
    drawn = rng.random((goals, len(problem.light)))
    added = drawn if real else np.ceil(30 * drawn)
    added[1] *= -1
    return added, np.array([0.0, -added[1].sum(), 0.0][:goals])


class Drawn(lamps.Lamps):
    """Lamps with drawn goals; the name says how many and of what values."""

    @property
    def objectives(self) -> tuple[Objective, ...]:
        return tuple(Objective(name, "") for name in NAMES[: len(values_of(self)[0])])

    def evaluate(self, plan: Any) -> Evaluation:
        added, constants = values_of(self)
        return Evaluation(tuple((added[:, plan["on"]].sum(axis=1) + constants).tolist()), ())


def build(problem: Drawn) -> pyo.ConcreteModel:
    """Return the model of an instance."""
    model, (added, constants) = pyo.ConcreteModel(), values_of(problem)
    model.on = pyo.Var(range(len(problem.light)), domain=pyo.Binary)
    for name, row, constant in zip(NAMES, added.tolist(), constants.tolist(), strict=False):
        terms = sum(value * model.on[k] for k, value in enumerate(row))
        setattr(model, name, pyo.Expression(expr=terms + constant))
    return model


def timed(problem: Drawn, method: str, **options: Any) -> tuple[placeopt.Front, float]:
    """Return a front and the CPU seconds that it took."""
    began = time.process_time()
    front = placeopt.solve(problem, method, **options)
    return front, time.process_time() - began


def row(goals: int, values: str, size: int) -> tuple[str, ...]:
    """Return a line of the table."""
    document = lamps.generate(1, lamps=size) | {"name": f"{goals}{values}"}
    problem = Drawn.from_document(document)
    exact, exact_seconds = timed(problem, "epsilon-constraint", seconds=120)
    search, search_seconds = timed(problem, "moead", evaluations=50_000)
    both, seconds = timed(problem, "auto")
    union = placeopt.merge([exact, search, both])
    corner = (union.values.max(axis=0) + 1).tolist()
    volume = union.hypervolume(corner)
    cells = [f"{front.hypervolume(corner) / volume:.4f}" for front in (exact, search, both)]
    status = str(exact.runs[0].parameters["status"])
    return (
        f"{goals} {'whole' if values == 'w' else 'real'}",
        str(size),
        *(f"{len(exact)}, {status}", cells[0], f"{exact_seconds:.1f}"),
        *(str(len(search)), cells[1], f"{search_seconds:.1f}"),
        *(" + ".join(name for name, _ in registry.auto(problem)), cells[2], f"{seconds:.1f}"),
    )


def main() -> None:
    """Measure and write own_problems.md."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[8, 12, 16, 20, 24, 28, 32])
    given = parser.parse_args()
    machine = facts("highspy", "numpy")
    face = SimpleNamespace(build=build, extract=lamps.extract)
    placeopt.register(lamps.spec(instance=Drawn, sequence=None, model=face))
    timed(Drawn.generate(1), "auto")  # compiles
    rows = []
    for goals, values in ((2, "w"), (2, "r"), (3, "w"), (3, "r")):
        for size in given.sizes:
            rows.append(row(goals, values, size))
            print(*rows[-1], sep=" | ", flush=True)
    exact, search = ("exact: points", "share", "CPU s"), ("moead: points", "share", "CPU s")
    text = [
        "# A small problem of one's own: what the exact method adds to `auto`",
        "",
        "Lamps that are on or off, whose goals are sums; an instance with n lamps has 2^n vectors.",
        "*Share* is that of the hypervolume of all three fronts together. MOEA/D has 50,000",
        "evaluations, the default; the exact method at most 120 s.",
        "",
        f"`python benchmarks/auto/own_problems.py`. {machine}",
        "",
        *table(("goals", "lamps", *exact, *search, "`auto` runs", "share", "CPU s"), rows),
        "",
    ]
    stamps.write(HERE / "own_problems.md", "\n".join(text), __file__, vars(given))


if __name__ == "__main__":
    main()
