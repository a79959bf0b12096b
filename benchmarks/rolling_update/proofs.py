"""What is proven how fast: lowest cost, whole fronts, large instances, the time-indexed model."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np
from machine import table

from placeopt.core.budget import Budget
from placeopt.core.front import Front
from placeopt.core.task import Task
from placeopt.exact import solvers
from placeopt.exact.compiled_model import CompiledModel
from placeopt.rolling_update import model as models
from placeopt.rolling_update.decomposition import decomposition
from placeopt.rolling_update.instance import RollingUpdate

TITLE = [
    "# Rolling updates: what is proven how fast",
    "",
    "CPU seconds of one process on a shared machine, kernels warm, the instance built before the "
    "clock starts. Every plan is judged by the referee.",
    "",
]
#: Seconds that a time-indexed model may take.
PATIENCE = 30.0
#: Instances of each number of clusters that nothing was tuned on, from this seed on, and the
#: seconds in which each front is to be proven whole.
HELD_OUT, FIRST_HELD_OUT, AIM_SECONDS = 10, 1000, 60


def cheapest(problem: RollingUpdate, **parameters: object) -> tuple[Front, float]:
    """Return the front of the cost alone, and CPU seconds."""
    problem.arrays  # noqa: B018 (built before the clock starts)
    began = time.process_time()
    task = Task(problem, problem.select(["node_cost"]), Budget(), 1)
    front = decomposition(task, **parameters)  # type: ignore[arg-type]
    return front, time.process_time() - began


def report(instances: int) -> Iterator[str]:
    """Yield the page."""
    cheapest(RollingUpdate.generate(0))  # compiles
    cheapest(RollingUpdate.generate(0, applications=1000, nodes=1200, clusters=4))
    for part in (_least_cost, _large, _fronts, _time_indexed):
        for line in part(instances):
            print(line, flush=True)
            yield line


def _least_cost(instances: int) -> Iterator[str]:
    yield from ("## Least cost of 10 x 5 microservices on 16 nodes, all reschedulable", "")
    rows = []
    for clusters in (2, 4):
        count = 3 * instances
        seconds, proven, at_bound, stops, direct = [], 0, 0, 0.0, 0
        for seed in range(count):
            problem = RollingUpdate.generate(seed, clusters=clusters)
            front, took = cheapest(problem)
            values = problem.evaluate(front.points[0].plan).values
            steps = problem.steps(front.points[0].plan)
            seconds.append(took)
            proven += front.points[0].status == "optimal"
            at_bound += values[0] == front.bounds[0][0]
            stops += values[2]
            direct += len({m for m, _ in steps}) == len(steps)
        times = f"{np.mean(seconds):.4f}", f"{np.max(seconds):.4f}"
        rows.append((clusters, count, proven, at_bound, direct, f"{stops:.0f}", *times))
    yield from table(
        (
            "clusters",
            "instances",
            "proven optimal",
            "cost at the bound",
            "direct orders",
            "stops in all",
            "mean s",
            "max s",
        ),
        rows,
    )
    yield ""


def _large(instances: int) -> Iterator[str]:
    yield from ("## Large instances, all reschedulable, R = 4", "")
    rows = []
    for applications, nodes, count in ((100, 120, 10), (1000, 1200, 3), (10_000, 12_000, 1)):
        for seed in range(count):
            problem = RollingUpdate.generate(
                seed, applications=applications, nodes=nodes, clusters=4
            )
            front, took = cheapest(problem)
            values, bound = problem.evaluate(front.points[0].plan).values, front.bounds[0][0]
            moved = len({m for m, _ in problem.steps(front.points[0].plan)})
            cost = f"{values[0]:.0f}", f"{bound:.0f}", f"{values[0] / bound - 1:.2%}"
            rows.append(
                (
                    f"{applications} x 5 on {nodes}",
                    seed,
                    *cost,
                    f"{values[2]:.0f}",
                    moved,
                    f"{values[1] - moved:.0f}",
                    f"{took:.2f}",
                )
            )
    yield from table(
        ("instance", "seed", "cost", "bound", "above", "stops", "moved", "hops", "s"), rows
    )
    yield ""


def _fronts(instances: int) -> Iterator[str]:
    yield from ("## The whole front of cost, starts and stops, 10 x 5 on 16 nodes", "")
    rows = []
    for clusters in (2, 4):
        for seed in range(max(3, instances // 2)):
            problem = RollingUpdate.generate(seed, clusters=clusters)
            front, took = _whole_front(problem)
            shown = " ".join(
                "(" + ", ".join(f"{v:.0f}" for v in p.values) + ")" for p in front.points
            )
            proven = sum(p.status == "optimal" for p in front.points)
            run = front.runs[0]
            rows.append(
                (
                    clusters,
                    seed,
                    shown,
                    f"{proven} of {len(front)}",
                    run.solver_calls,
                    run.parameters["cuts"],
                    f"{took:.2f}",
                )
            )
    yield from table(
        ("clusters", "seed", "(cost, starts, stops)", "proven", "solver calls", "cuts", "s"), rows
    )
    seconds = [float(row[-1]) for row in rows]
    yield from ("", f"Mean {np.mean(seconds):.2f} s, largest {np.max(seconds):.2f} s.", "")
    yield from (_held_out(), "")


def _whole_front(problem: RollingUpdate) -> tuple[Front, float]:
    """Return the front of all objectives, and CPU seconds."""
    began = time.process_time()
    front = decomposition(Task(problem, problem.objectives, Budget(), 1))
    return front, time.process_time() - began


def _held_out() -> str:
    """Return in words how many fronts of held-out instances are proven whole, and how fast."""
    seconds, whole = [], 0
    for clusters in (2, 4):
        for seed in range(FIRST_HELD_OUT, FIRST_HELD_OUT + HELD_OUT):
            front, took = _whole_front(RollingUpdate.generate(seed, clusters=clusters))
            proven = front.runs[0].completed and all(p.status == "optimal" for p in front.points)
            seconds.append(took)
            whole += proven and took <= AIM_SECONDS
    return (
        f"Held out, {HELD_OUT} instances each with 2 and 4 clusters from seed {FIRST_HELD_OUT} on: "
        f"{whole} of {len(seconds)} fronts proven whole in at most {AIM_SECONDS} s; "
        f"mean {np.mean(seconds):.1f} s, largest {np.max(seconds):.1f} s."
    )


def _time_indexed(instances: int) -> Iterator[str]:
    yield from (
        "## The time-indexed model beside the decomposition "
        f"(direct orders; {PATIENCE:.0f} s at most), R = 2",
        "",
    )
    rows = []
    for some in (2, 4):
        for seed in range(2):
            problem = RollingUpdate.generate(seed, reschedulable=some)
            front, took = cheapest(problem, max_hops=0)
            row: list[object] = [
                5 * some,
                seed,
                f"{front.points[0].values[0]:.0f}",
                front.points[0].status,
                f"{took:.3f}",
            ]
            began = time.process_time()
            compiled = CompiledModel(models.build(problem), problem.select(["node_cost"]))
            row.append(f"{time.process_time() - began:.2f}")
            for solver in ("highs", "scip"):
                began = time.process_time()
                outcome = solvers.solve(
                    compiled.within(0, [np.inf]), solver, seconds=PATIENCE, absolute_gap=0.9
                )
                found = "none" if outcome.x is None else f"{outcome.objective:.0f}"
                row += [f"{found} ({outcome.status})", f"{time.process_time() - began:.1f}"]
            rows.append(row)
    yield from table(
        (
            "reschedulable",
            "seed",
            "decomposition",
            "status",
            "s",
            "model built in s",
            "HiGHS",
            "s",
            "SCIP",
            "s",
        ),
        rows,
    )
