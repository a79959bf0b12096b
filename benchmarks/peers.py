"""placeopt beside the CP-SAT models of benchmarks/peers, which an expert would write, and pymoo.

Needs OR-Tools, which is no dependency: ``pip install ortools``. Every cell is kept, so that a run
that was stopped goes on. ``--measure`` names what is measured; with nothing behind it the page has
what is there. The first sums have the first weights on the first seed, the second ones on the
second: a run that is stopped has some of all problems, sizes and seeds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from itertools import product
from typing import Any

import cpu_clock  # noqa: F401
import numpy as np
from harness import Benchmark, section, table

import placeopt
from placeopt import registry
from placeopt.core.fronts.dominance import epsilon, scaled
from placeopt.core.fronts.values import names_of
from placeopt.core.interfaces import build_encoder
from placeopt.warm_up import warm_up

#: Generator arguments of three sizes; the goals of the sums, all by default.
SIZES: dict[str, tuple[dict[str, Any], ...]] = {
    "temporal": (
        {"requests": 10, "max_replicas": 2},
        {"requests": 20, "max_replicas": 2},
        {"requests": 20},
    ),
    "edge-cloud": ({"applications": 50}, {"applications": 100}, {"applications": 300}),
    "rolling-update": ({}, {"applications": 30}, {"applications": 100}),
    "rescheduling": (
        {"application": "random", "services": 10},
        {"application": "random", "services": 20},
        {"application": "random", "services": 50, "cloud_a": 6, "edge_a": 6, "edge_b": 6},
    ),
    "multi-cluster": tuple({"requests": size, "rate": 10.0} for size in (20, 60, 200)),
}
GOALS = {"rolling-update": ("node_cost", "starts"), "multi-cluster": ("cost", "inequality")}
#: Weights of goals that are scaled to the ranges of the front.
WEIGHTS = {
    2: ((0.5, 0.5), (0.9, 0.1), (0.1, 0.9), (0.7, 0.3), (0.3, 0.7)),
    3: ((1 / 3,) * 3, (0.1, 0.8, 0.1), (0.8, 0.1, 0.1), (0.1, 0.1, 0.8), (0.4, 0.4, 0.2)),
}
#: Least share by which sums count as different.
EQUAL = 1e-6
#: CPU seconds of `auto` for the front that goals are scaled to.
RANGES = 5.0
#: What a run may measure.
PARTS = ("ranges", "CP-SAT", "placeopt", "fronts", "pymoo")
#: Largest shares of requests that may be refused.
CAPS: dict[str, tuple[float | None, ...]] = {"multi-cluster": (0.0, 0.05)}
#: Why placeopt may be behind.
WHY = (
    "placeopt divides its time among all weights and the rest of the front; CP-SAT has as much for "
    "this one sum."
)
#: CPU seconds of whole fronts, placeopt's and CP-SAT's; of placeopt's front and pymoo's.
WHOLE, PLAIN = (10.0, 60.0), (1.0, 30.0)
#: Which of the sizes these are measured at.
MIDDLE = 1


class _NotMeasuredError(Exception):
    """A cell is not there, and this run is not to measure it."""


def cell(run: Benchmark, part: str, key: str, work: Callable[[], Any]) -> Any:
    """Return a kept cell, or measure it where this run measures such a part."""

    def missing() -> Any:
        raise _NotMeasuredError(key)

    return run.cell(f"{part}: {key}", work if part in run.measure else missing)


def instance(kind: str, size: int, seed: int) -> Any:
    """Return a generated instance."""
    return registry.problem_class(kind).generate(seed, **SIZES[kind][size])


def asked(kind: str, cap: float | None) -> dict[str, Any]:
    """Return goals and limits of a question: of multi-cluster a cap on what is refused."""
    goals = [*GOALS.get(kind, ()), *(() if cap is None else ("rejected",))]
    return {"objectives": goals or None} | ({} if cap is None else {"limits": {"rejected": cap}})


def ranges(kind: str, size: int, seed: int, cap: float | None) -> dict[str, Any]:
    """Return the goals of sums, and the ranges of a front to which they are scaled."""
    result = placeopt.solve(
        instance(kind, size, seed), seconds=RANGES, seed=seed, **asked(kind, cap)
    )
    count = len(GOALS.get(kind, result.objectives))
    goals = names_of(result.objectives)[:count]
    if not result.points:
        return {"goals": goals, "widths": [1.0] * count}
    widths = np.maximum(np.ptp(result.values[:, :count], axis=0), 1e-9)
    return {"goals": goals, "widths": widths.tolist()}


def ours(
    kind: str, size: int, seed: int, cap: float | None, seconds: float, widths: list[float]
) -> list[float]:
    """Return the least sum of the front of ``auto`` for each weight; nothing without a plan."""
    result = placeopt.solve(
        instance(kind, size, seed), seconds=seconds, seed=seed, **asked(kind, cap)
    )
    if not result.points:
        return []
    values = result.values[:, : len(widths)]
    return [float((values @ (np.array(w) / widths)).min()) for w in WEIGHTS[len(widths)]]


def peer(
    kind: str, size: int, seed: int, cap: float | None, limits: list[float], weights: list[float]
) -> list[float | None]:
    """Return the weighted sum of CP-SAT's plan after each limit, None where it has none."""
    problem = instance(kind, size, seed)
    goals = GOALS.get(kind) or names_of(problem.objectives)
    columns = problem.columns(problem.select(goals))
    best, values = import_module("peers." + kind.replace("-", "_")).best, []
    for plan in best(problem, np.array(weights), cap, limits, seed):
        verdict = None if plan is None else problem.evaluate(plan)
        legal = verdict is not None and verdict.feasible
        values.append(float(np.dot(weights, np.array(verdict.values)[columns])) if legal else None)
    return values


def name(kind: str, size: int) -> str:
    """Return a size in words."""
    return ", ".join(f"{v} {k}" for k, v in SIZES[kind][size].items()) or "10 applications"


@dataclass
class Sum:
    """A weighted sum after a limit: of which instance, and what both have; None without a plan."""

    head: tuple[Any, ...]
    seed: int
    weights: str
    placeopt: float | None
    cp_sat: float | None

    @property
    def above(self) -> float | None:
        """How far placeopt is above CP-SAT, as a part; None where one of them has no plan."""
        one, other = self.placeopt, self.cp_sat
        return None if one is None or other is None else one / other - 1

    @property
    def holds(self) -> bool:
        """Whether placeopt is at or below CP-SAT."""
        return self.cp_sat is None or (self.above is not None and self.above <= EQUAL)

    @property
    def exists(self) -> bool:
        """Whether one of them has a plan."""
        return self.placeopt is not None or self.cp_sat is not None


def compared(
    run: Benchmark,
    kind: str,
    size: int,
    cap: float | None,
    seed: int,
    at: int,
) -> Iterator[Sum]:
    """Yield a sum after each limit; CP-SAT has one run for all limits, or for the first ones."""
    limits = list(run.limits)
    key, whose = f"{kind} {size} cap {cap} seed {seed}", (kind, size, seed, cap)
    scale = cell(run, "ranges", key, lambda: ranges(*whose))
    widths, goals = scale["widths"], scale["goals"]
    chosen = WEIGHTS[len(goals)][at]
    weights = (np.array(chosen) / widths).tolist()
    theirs = cell(run, "CP-SAT", f"{key} weights {at}", lambda: peer(*whose, limits, weights))
    said = ", ".join(f"{w:.2g} {goal}" for w, goal in zip(chosen, goals, strict=True))
    refused = "" if cap is None else f"{cap:.0%}"
    for seconds, other in zip(limits, theirs, strict=False):
        with suppress(_NotMeasuredError):
            sums = cell(
                run, "placeopt", f"{key} in {seconds:g} s", partial(ours, *whose, seconds, widths)
            )
            mine = sums[at] if sums else None
            yield Sum((kind, name(kind, size), refused, f"{seconds:g}"), seed, said, mine, other)


def points(kind: str, seed: int, seconds: float, limited: bool) -> dict[str, Any]:
    """Return the front of ``auto`` at the middle size; `limited`: nothing may be refused."""
    cap = 0.0 if kind == "multi-cluster" else None
    told = asked(kind, cap) if limited else {"objectives": asked(kind, cap)["objectives"]}
    result = placeopt.solve(instance(kind, MIDDLE, seed), seconds=seconds, seed=seed, **told)
    count = len(GOALS.get(kind, result.objectives)) if limited else len(result.objectives)
    return {
        "goals": names_of(result.objectives)[:count],
        "values": result.values[:, :count].tolist(),
    }


def front_of_sums(kind: str, seed: int, front: dict[str, Any]) -> list[list[float]]:
    """Return the values of the plans of CP-SAT for weights that get finer."""
    problem, widths = instance(kind, MIDDLE, seed), np.ptp(np.array(front["values"]), axis=0)
    best = import_module("peers." + kind.replace("-", "_")).best
    columns = problem.columns(problem.select(front["goals"]))
    cap = 0.0 if kind == "multi-cluster" else None
    sweep = import_module("peers.fronts").sweep
    values: list[list[float]] = sweep(
        best, problem, columns, np.maximum(widths, 1e-9), cap, WHOLE[1]
    )
    return values


def pymoo(kind: str, seed: int, goals: list[str]) -> Any:
    """Return CPU seconds of NSGA-II, and the values of its archive then."""
    problem = instance(kind, MIDDLE, seed)
    encoder = build_encoder(problem, problem.select(goals))
    return import_module("peers.plain").nsga2(encoder, len(goals), PLAIN[1], seed)


def volumes(*sets: Any) -> list[float]:
    """Return the hypervolumes of sets in the box of all of them, a tenth larger, as parts of it."""
    import moocore

    whole = np.vstack([np.array(v).reshape(-1, len(sets[0][0])) for v in sets])
    return [
        float(moocore.hypervolume(scaled(np.array(v), whole)[0], ref=1.1)) if len(v) else 0.0
        for v in sets
    ]


def whole_row(run: Benchmark, kind: str, seed: int) -> list[Any]:
    """Return a row of whole fronts."""
    key = f"whole front of {kind} seed {seed}"
    have = cell(run, "fronts", key, lambda: points(kind, seed, WHOLE[0], True))
    theirs = cell(run, "fronts", f"{key} by CP-SAT", lambda: front_of_sums(kind, seed, have))
    mine, other = volumes(have["values"], theirs)
    behind = (
        0.0
        if not theirs
        else max(0.0, epsilon(*scaled(np.array(have["values"]), np.array(theirs))))
    )
    counts = len(have["values"]), len(np.unique(np.array(theirs), axis=0))
    holds = "yes" if mine >= other * (1 - EQUAL) else "**no**"
    return [kind, *counts, f"{mine:.4f}", f"{other:.4f}", f"{behind:.2%}", holds]


def plain_row(run: Benchmark, kind: str, seed: int) -> list[Any]:
    """Return a row of pymoo: when it has what placeopt has."""
    key = f"plain front of {kind} seed {seed}"
    have = cell(run, "pymoo", key, lambda: points(kind, seed, PLAIN[0], False))
    theirs = cell(run, "pymoo", f"{key} by pymoo", lambda: pymoo(kind, seed, have["goals"]))
    mine, *rest = volumes(have["values"], *(values for _, values in theirs))
    reached = [seconds for (seconds, _), volume in zip(theirs, rest, strict=True) if volume >= mine]
    ratio = f"{reached[0] / PLAIN[0]:.3g}" if reached else f"above {PLAIN[1] / PLAIN[0]:g}"
    return [kind, ", ".join(have["goals"]), f"{mine:.4f}", f"{rest[-1]:.4f}", ratio]


def measured(rows: Iterable[Callable[[], list[Any]]]) -> list[list[Any]]:
    """Return the rows that are there, or that this run measures."""
    result = []
    for make in rows:
        try:
            result.append(make())
        except _NotMeasuredError:
            continue
    return result


def all_sums(run: Benchmark) -> list[Sum]:
    """Return the sums that are there, or that this run measures."""
    result: list[Sum] = []
    pairs = product(range(run.weights), range(run.seeds))
    for at, later in sorted(pairs, key=lambda pair: ((pair[1] - pair[0]) % run.seeds, pair[0])):
        for size, kind in product(range(run.sizes), run.kinds):
            for cap in CAPS.get(kind, (None,)):
                with suppress(_NotMeasuredError):
                    result.extend(compared(run, kind, size, cap, run.first + later, at))
    return result


def by_instance(run: Benchmark, sums: list[Sum]) -> list[list[Any]]:
    """Return a row for each problem, size, cap and limit: how placeopt stands in all its sums."""
    order = [(k, name(k, s)) for k in run.kinds for s in range(run.sizes)]
    rows = []
    for head in sorted({one.head for one in sums}, key=lambda h: (order.index(h[:2]), *h[2:])):
        of = [one for one in sums if one.head == head]
        above = [one.above for one in of if one.above is not None]
        parts = [f"{p:+.2%}" for p in (min(above), np.median(above), max(above))] if above else []
        held, without = sum(one.holds for one in of), sum(one.cp_sat is None for one in of)
        rows.append([*head, len(of), held, *(parts or ["", "", ""]), without])
    return rows


def behind(sums: list[Sum]) -> list[list[Any]]:
    """Return a row for each sum in which placeopt is behind."""
    return [
        [
            *one.head,
            one.seed,
            one.weights,
            "no plan" if one.placeopt is None else f"{one.placeopt:.5g}",
            f"{one.cp_sat:.5g}",
            "" if one.above is None else f"{one.above:+.3%}",
        ]
        for one in sums
        if not one.holds
    ]


def main() -> None:
    """Measure what is lacking; write the page."""
    run = Benchmark(
        __file__,
        __doc__,
        "numpy",
        "ortools",
        kinds=list(SIZES),
        sizes=3,
        weights=5,
        first=1,
        seeds=3,
        limits=[20.0, 60.0],
        measure=list(PARTS),
    )
    if run.measure:
        warm_up(run.kinds)
    tried = all_sums(run)
    sums = [one for one in tried if one.exists]
    fronts = measured(partial(whole_row, run, kind, run.first) for kind in run.kinds)
    plain = measured(partial(plain_row, run, kind, run.first) for kind in run.kinds)
    met, late = sum(one.holds for one in sums), behind(sums)
    head = "problem | size | refused, at most | limit (s)"
    run.write(
        "Peers: models in OR-Tools CP-SAT, and plain pymoo",
        "The least weighted sum of goals, each scaled to the range of a front of `auto` after "
        f"{RANGES:g} CPU seconds. placeopt has the limit for the whole front, in a run for each "
        "limit; CP-SAT has it for each weight, with eight workers in one process, its plans after "
        "all limits from one run. One seed of each weight has all limits, the others have the "
        "first. Seconds are CPU seconds; to build a model is not counted. Both "
        "are judged by the referee. The order of the moves of a rolling update and of a "
        "rescheduling is not in the models: placeopt orders their plans.",
        f"**placeopt is at or below CP-SAT in {met} of {len(sums)} sums.** "
        f"{len(tried) - len(sums)} more do not count, as neither has a plan that refuses so few.",
        table(
            f"{head} | sums | at or below | above CP-SAT, least | median | most | without a plan "
            "of CP-SAT",
            by_instance(run, sums),
        ),
        section(
            "Where placeopt is behind",
            WHY,
            table(f"{head} | seed | weights | placeopt | CP-SAT | above", late),
        )
        if late
        else "",
        section(
            "Whole fronts",
            f"{WHOLE[0]:g} CPU seconds of placeopt beside {WHOLE[1]:g} of CP-SAT for sums whose "
            "weights get finer, scaled to the range of placeopt's front; to build a model is not "
            "counted. Middle size, one seed; of multi-cluster nothing may be refused. The "
            "hypervolume is of the box of both fronts, a tenth larger. What lacks is the least "
            "part of CP-SAT's range by which all points of placeopt would have to be better to "
            "be at or below each of CP-SAT's.",
            table(
                "problem | points of placeopt | points of CP-SAT | hypervolume of placeopt | "
                "hypervolume of CP-SAT | lacks | ahead",
                fronts,
            ),
        ),
        section(
            "Plain pymoo",
            f"NSGA-II of pymoo for {PLAIN[1]:g} CPU seconds on placeopt's compiled encoder: "
            "simulated binary crossover and polynomial mutation on whole numbers, a random start, "
            "a population of 200, an archive of all. The ratio is its time over that of `auto`, "
            f"which had {PLAIN[0]:g} CPU seconds, to the same hypervolume. Middle size, one seed; "
            "of multi-cluster the share of refused requests is a goal, too.",
            table("problem | goals | placeopt | pymoo at the end | ratio of times", plain),
        ),
    )


if __name__ == "__main__":
    main()
