"""Rolling updates: what is proven how fast, in CPU seconds.

    python benchmarks/rolling_update.py [--instances 20] [--seeds 3]

A stopped run goes on where it was. The proofs with time-indexed models take minutes.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np
from harness import Benchmark, section, table, timed

import placeopt
from placeopt.core.budget import Budget
from placeopt.core.fronts.front import Front
from placeopt.core.task import Task
from placeopt.exact import solvers
from placeopt.exact.compiled_model import CompiledModel
from placeopt.rolling_update import model as models
from placeopt.rolling_update.decomposition import decomposition
from placeopt.rolling_update.problem import RollingUpdate

#: Seconds that a time-indexed model may take, and in which fronts are to be proven whole.
PATIENCE, AIM_SECONDS = 30.0, 60
#: Instances of each number of clusters that nothing was tuned on, from this seed on.
HELD_OUT, FIRST_HELD_OUT = 10, 1000
#: Applications, nodes and number of large instances.
LARGE = ((100, 120, 10), (1000, 1200, 3), (10_000, 12_000, 1))
#: Applications, microservices of each, nodes, and the most seeds of this size.
FRONTS = (
    (10, 40, 20, 99),
    (10, 400, 40, 99),
    (100, 5, 120, 99),
    (1000, 5, 1200, 99),
    (10_000, 5, 12_000, 1),
)


def cheapest(problem: RollingUpdate, **parameters: Any) -> tuple[Front, float]:
    """Return the front of the cost alone, and CPU seconds."""
    problem.arrays  # noqa: B018 (built before the clock starts)
    task = Task(problem, problem.select(["node_cost"]), Budget(), 1)
    return timed(lambda: decomposition(task, **parameters))


def least_cost(clusters: int, count: int) -> list[object]:
    """Return a row: how often the least cost of the paper's instances is proven, and how fast."""
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
    return [clusters, count, proven, at_bound, direct, f"{stops:.0f}", *times]


def large(applications: int, nodes: int, seed: int) -> list[object]:
    """Return the row of a large instance: its cost and its bound."""
    problem = RollingUpdate.generate(seed, applications=applications, nodes=nodes, clusters=4)
    front, took = cheapest(problem)
    values, bound = problem.evaluate(front.points[0].plan).values, front.bounds[0][0]
    moved = len({m for m, _ in problem.steps(front.points[0].plan)})
    cost = f"{values[0]:.0f}", f"{bound:.0f}", f"{values[0] / bound - 1:.2%}"
    moves = f"{values[2]:.0f}", moved, f"{values[1] - moved:.0f}"
    return [f"{applications} x 5 on {nodes}", seed, *cost, *moves, f"{took:.2f}"]


def whole_front(clusters: int, seed: int) -> tuple[Front, float]:
    """Return the front of all objectives, and CPU seconds."""
    problem = RollingUpdate.generate(seed, clusters=clusters)
    return timed(lambda: decomposition(Task(problem, problem.objectives, Budget(), 1)))


def front_row(clusters: int, seed: int) -> list[object]:
    """Return the row of a whole front."""
    front, took = whole_front(clusters, seed)
    points = " ".join("(" + ", ".join(f"{v:.0f}" for v in p.values) + ")" for p in front.points)
    proven = sum(p.status == "optimal" for p in front.points)
    calls = front.runs[0].solver_calls, front.runs[0].parameters["cuts"]
    return [clusters, seed, points, f"{proven} of {len(front)}", *calls, f"{took:.2f}"]


def held_out() -> str:
    """Return in words how many fronts of held-out instances are proven whole, and how fast."""
    seconds, whole = [], 0
    for clusters in (2, 4):
        for seed in range(FIRST_HELD_OUT, FIRST_HELD_OUT + HELD_OUT):
            front, took = whole_front(clusters, seed)
            proven = front.runs[0].completed and all(p.status == "optimal" for p in front.points)
            seconds.append(took)
            whole += proven and took <= AIM_SECONDS
    return (
        f"Held out, {HELD_OUT} instances each with 2 and 4 clusters from seed {FIRST_HELD_OUT} on: "
        f"{whole} of {len(seconds)} fronts proven whole in at most {AIM_SECONDS} s; "
        f"mean {np.mean(seconds):.1f} s, largest {np.max(seconds):.1f} s."
    )


def time_indexed(some: int, seed: int) -> list[object]:
    """Return a row: the time-indexed model by two solvers beside the decomposition."""
    problem = RollingUpdate.generate(seed, reschedulable=some)
    front, took = cheapest(problem, max_hops=0)
    best = front.points[0]
    objectives = problem.select(["node_cost"])
    compiled, built = timed(lambda: CompiledModel(models.build(problem), objectives))
    row = [5 * some, seed, f"{best.values[0]:.0f}", best.status, f"{took:.3f}", f"{built:.2f}"]
    for solver in ("highs", "scip"):
        began = time.process_time()
        outcome = solvers.solve(
            compiled.within(0, [np.inf]), solver, seconds=PATIENCE, absolute_gap=0.9
        )
        found = "none" if outcome.x is None else f"{outcome.objective:.0f}"
        row += [f"{found} ({outcome.status})", f"{time.process_time() - began:.1f}"]
    return row


def large_front(applications: int, microservices: int, nodes: int, seed: int) -> list[object]:
    """Return the row of a large front: what bounds without a solver prove of it."""
    problem = RollingUpdate.generate(
        seed, applications=applications, microservices=microservices, nodes=nodes
    )
    problem.arrays  # noqa: B018 (built before the clock starts)
    front, took = timed(lambda: placeopt.solve(problem, seed=1, max_coefficients=0))
    ideal = replace(front, bounds=(tuple(np.min(front.bounds, axis=0).tolist()),))
    gaps = (f"{one.gap() or 0.0:.1%}" for one in (front, ideal))
    optimal = sum(point.status == "optimal" for point in front.points)
    name = f"{applications} x {microservices} on {nodes}"
    evaluations = front.runs[0].evaluations
    return [name, seed, len(front), optimal, *gaps, evaluations, f"{took:.1f}"]


def main() -> None:
    """Measure all and write the page."""
    run = Benchmark(
        *(__file__, __doc__, "numba", "highspy", "pyscipopt", "pyomo", "numpy"),
        instances=20,
        seeds=3,
    )
    cheapest(RollingUpdate.generate(0))  # compiles
    placeopt.solve(RollingUpdate.generate(0, applications=1000, nodes=1200), restarts=1)

    def rows(work: Any, instances: list[tuple[int, ...]]) -> list[Any]:
        return [run.cell(f"{work.__name__} {one}", lambda one=one: work(*one)) for one in instances]

    few = range(max(3, run.instances // 2))
    fronts = rows(front_row, [(c, s) for c in (2, 4) for s in few])
    seconds = [float(row[-1]) for row in fronts]
    cheap = rows(least_cost, [(c, 3 * run.instances) for c in (2, 4)])
    many = rows(large, [(a, n, s) for a, n, count in LARGE for s in range(count)])
    models_by = rows(time_indexed, [(some, seed) for some in (2, 4) for seed in range(2)])
    sizes = [(*size, s) for *size, most in FRONTS for s in range(min(run.seeds, most))]
    run.write(
        "Rolling updates: what is proven how fast",
        "CPU seconds of one process, kernels warm, the instance built before the clock starts. "
        "Every plan is judged by the referee.",
        section(
            "Least cost of 10 x 5 microservices on 16 nodes, all reschedulable",
            table(
                "clusters | instances | proven optimal | cost at the bound | direct orders | "
                "stops in all | mean s | max s",
                cheap,
            ),
        ),
        section(
            "Large instances, all reschedulable, R = 4",
            table("instance | seed | cost | bound | above | stops | moved | hops | s", many),
        ),
        section(
            "The whole front of cost, starts and stops, 10 x 5 on 16 nodes",
            table(
                "clusters | seed | (cost, starts, stops) | proven | solver calls | cuts | s", fronts
            ),
            f"Mean {np.mean(seconds):.2f} s, largest {np.max(seconds):.2f} s.",
            run.cell("held out", held_out),
        ),
        section(
            f"The time-indexed model beside the decomposition (direct orders; {PATIENCE:.0f} s at "
            "most), R = 2",
            table(
                "reschedulable | seed | decomposition | status | s | model built in s | HiGHS | s "
                "| SCIP | s",
                models_by,
            ),
        ),
        section(
            "Large fronts, without a solver",
            "`auto` without a time limit, and without the packing model: bounds are those of "
            "`bounds.bound_vectors`. The gap is the share of the hypervolume within the bounds "
            "that no plan reaches. *By the ideal alone*: of the same front, where only the least "
            "of each objective is known.",
            table(
                "instance | seed | points | proven optimal | gap | gap by the ideal alone | plans "
                "judged | CPU s",
                rows(large_front, sizes),
            ),
        ),
    )


if __name__ == "__main__":
    main()
