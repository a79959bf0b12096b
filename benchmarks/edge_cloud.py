"""Edge-cloud: models, heuristics and bounds at 50 to 10,000 applications; small gaps closed.

    python benchmarks/edge_cloud.py [--instances 10] [--small 3] [--seconds 20]

Times are CPU seconds of one process, though HiGHS, which knows no other clock, stops by the wall.
Ten instances take about 20 minutes; a stopped run goes on where it was.
"""

from __future__ import annotations

import gc
import itertools
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from harness import Benchmark, apart, section, table, timed

from placeopt import models
from placeopt.core.budget import Budget
from placeopt.core.task import Task
from placeopt.edge_cloud import search as heuristics
from placeopt.edge_cloud.generator import TOPOLOGIES
from placeopt.edge_cloud.problem import EdgeCloud
from placeopt.edge_cloud.search.closing import close
from placeopt.edge_cloud.search.lns import PlanBuilder
from placeopt.edge_cloud.search.prices import Relaxation
from placeopt.edge_cloud.sequence import EdgeCloudSequence

#: Weight of the cost: latency first.
WEIGHT = 0.01
#: Part of the seconds that the large neighbourhood search has before a small gap is closed.
SEARCH = 0.3
#: Price steps and evaluations of the table that is the same on any machine.
EFFORTS = ((100, 15_000), (300, 200_000))
#: Orders of applications, what decides, and how many applications are looked ahead at.
SIMPLE = (
    ("given", "greedy", 0),
    ("small-first", "greedy", 0),
    ("small-first", "rollout", 0),
    ("small-first", "rollout", 20),
)


class CpuBudget(Budget):
    """A budget of CPU seconds: a busy machine does not change what a method finds."""

    def __init__(self, **limits: Any):
        super().__init__(**limits)
        self._cpu = time.process_time()

    @property
    def seconds(self) -> float:
        return time.process_time() - self._cpu


def instance(seed: int, topology: str, applications: int, load: float) -> EdgeCloud:
    """Return an instance with its arrays made."""
    problem = EdgeCloud.generate(seed, applications=applications, load=load, **TOPOLOGIES[topology])
    assert problem.arrays is not None
    return problem


def value(problem: EdgeCloud, plan: dict[str, Any]) -> float:
    """Return the referee's weighted sum of a feasible plan, inf of another."""
    verdict = problem.evaluate(plan)
    return float(np.dot(verdict.values, (WEIGHT, 1 - WEIGHT))) if verdict.feasible else np.inf


def sequential(problem: EdgeCloud, order: str, kind: str, horizon: int) -> tuple[float, float]:
    """Return value and CPU seconds of a greedy or rollout plan."""
    sequence = EdgeCloudSequence(problem, problem.objectives, order)
    weights, state, last = np.array([WEIGHT, 1 - WEIGHT]), sequence.reset(), sequence.decisions
    if kind == "greedy":
        _, seconds = timed(lambda: sequence.play_greedy(state, weights, last))
    else:
        _, seconds = timed(lambda: sequence.play_rollout(state, weights, 1.0, 1.0, horizon, last))
    return value(problem, sequence.plan(state)), seconds


def lns(problem: EdgeCloud, budget: Budget, steps: int | None = None) -> tuple[float, float]:
    """Return the value and the bound of the search; by so many price steps where they are given."""
    task = Task(problem, budget=budget)
    if steps is None:
        front = heuristics.lns(task, weight=WEIGHT)
    else:
        told: dict[str, Any] = {"method": "lns", "parameters": {}, "search": (6, 0.8)}
        front = heuristics.by_weights(task, [WEIGHT], steps=(steps, steps), **told)
    least = float((front.values @ [WEIGHT, 1 - WEIGHT]).min())
    return least, max(front.runs[0].parameters["weighted_bounds"])


def percent(found: float, proven: float) -> str:
    """Return the share of a value that might still be saved."""
    return "no plan" if found == float("inf") else f"{(found - proven) / found:.2%}"


def warm_up() -> None:
    """Compile everything once."""
    problem = instance(0, "basic", 4, 0.4)
    lns(problem, CpuBudget(seconds=1.0))
    for kind in ("greedy", "rollout"):
        sequential(problem, "given", kind, 1)


def _memory(name: str = "VmRSS") -> float:
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return int(status.split(f"{name}:")[1].split()[0]) * 1024 / 1e6


def building(applications: int) -> list[object]:
    """Return the row of a model: rows, CPU seconds and resident memory."""
    import pyomo.environ as pyo

    models.edge_cloud.build(EdgeCloud.generate(1, applications=2))
    problem = EdgeCloud.generate(1, applications=applications)
    assert problem.arrays is not None
    problem.infeasibility()
    gc.collect()
    before = _memory()
    built, seconds = timed(lambda: models.edge_cloud.build(problem))
    used = f"{_memory() - before:.0f}", f"{_memory('VmHWM'):.0f}"
    rows = sum(1 for _ in built.component_data_objects(pyo.Constraint))
    return [applications, rows, f"{seconds:.2f}", *used]


def effort(load: float, seed: int) -> list[object]:
    """Return the row of gaps after so much work, whatever the machine."""
    problem = instance(seed, "extended", 1000, load)
    row = [f"{load:g}", seed]
    for steps, evaluations in EFFORTS:
        found, proven = lns(problem, Budget(evaluations=evaluations), steps)
        row += [f"{proven:.1f}", percent(found, proven)]
    return row


def scale(load: float, seed: int) -> list[object]:
    """Return the row of times and gaps at 1,000 applications on the extended topology."""
    problem = instance(seed, "extended", 1000, load)
    ascend = Relaxation(problem).ascend
    proven, seconds = timed(lambda: ascend(WEIGHT, Budget(evaluations=10**9), 400).bound)
    row = [f"{load:g}", seed, f"{proven:.1f}, {seconds:.1f} s"]
    for order, kind, horizon in SIMPLE:
        found, seconds = sequential(problem, order, kind, horizon)
        row.append(f"{percent(found, proven)}, {seconds * 1000:.0f} ms")
    return [*row, *(percent(*lns(problem, CpuBudget(seconds=s))) for s in (1.0, 10.0))]


def large(load: float) -> list[object]:
    """Return the row of ten thousand applications."""
    warm_up()
    sizes = {"applications": 10_000, "near": 800, "far": 160, "cloud": 40, "load": load}
    document = EdgeCloud.generate(1, **sizes).to_document()
    problem, seconds = timed(lambda: EdgeCloud.from_document(document))
    checked = timed(problem.infeasibility)[1] + seconds
    found, greedy = sequential(problem, "small-first", "greedy", 0)
    (searched, proven), used = timed(lambda: lns(problem, CpuBudget(seconds=60.0)))
    gaps = percent(found, proven), percent(searched, proven)
    times = f"{checked:.1f} s", f"{greedy:.2f} s", gaps[0], f"{used:.0f} s", gaps[1]
    return [load, *times, f"{_memory('VmHWM') / 1e3:.2f} GB"]


def closing(applications: int, load: float, seed: int, seconds: float) -> list[object]:
    """Close the gap of a small instance within so many seconds; return its row."""
    problem = instance(seed, "basic", applications, load)
    budget, relaxation = CpuBudget(seconds=seconds), Relaxation(problem)
    prices = relaxation.ascend(WEIGHT, budget.share(0.2), 300)
    builder = PlanBuilder(relaxation, np.random.default_rng(1))
    plans = [builder.build(prices, (1.0,)), *builder.dive(prices, budget)]
    hosts = builder.improve(prices, builder.best(WEIGHT, plans), budget.share(SEARCH))
    first = builder.value(WEIGHT, hosts)
    closed = close(relaxation, prices, hosts, first, budget)
    if closed.value > closed.bound * (1 + 1e-6):
        closed.hosts = builder.improve(replace(prices, bound=closed.bound), closed.hosts, budget)
    best = value(problem, problem.plan(closed.hosts))
    numbers = (f"{x:.2f}" for x in (prices.bound, closed.bound, first, best))
    gaps = percent(first, prices.bound), percent(best, closed.bound)
    head = (applications, f"{load:g}", seed)
    return [*head, *numbers, closed.placements, f"{budget.seconds:.0f}", *gaps]


def main() -> None:
    """Run all parts and write the page."""
    run = Benchmark(
        *(__file__, __doc__, "numba", "numpy", "pyomo", "highspy"),
        instances=10,
        small=3,
        seconds=20.0,
    )
    warm_up()

    def rows(work: Any, instances: Any) -> list[Any]:
        return [run.cell(f"{work.__name__} {one}", lambda one=one: work(*one)) for one in instances]

    built = [
        run.cell(f"building {count}", lambda n=count: apart(__file__, "building", n))
        for count in (50, 300)
    ]
    seeds = range(1, run.instances + 1)
    many = list(itertools.product((0.4, 1.0), seeds))
    few = itertools.product((50, 100), (0.4, 1.0), range(1, run.small + 1), (run.seconds,))
    largest = [
        run.cell(f"large {load}", lambda x=load: apart(__file__, "large", x)) for load in (0.4, 0.8)
    ]
    efforts = " | ".join(f"bound, {s} steps | gap, {e:,} evaluations" for s, e in EFFORTS)
    run.write(
        "Edge-cloud: models, heuristics and bounds",
        "Times are CPU seconds; kernels are compiled beforehand. Latency first: the weight of "
        f"the cost is {WEIGHT}.",
        section(
            "Building the model, basic topology",
            table(
                "applications | rows | CPU s | MB of the model | MB of the process at its peak",
                built,
            ),
        ),
        section(
            "Extended topology, 1,000 applications: gaps by effort",
            "The same on any machine. The first pair of columns is about a second's work of a "
            "core, the second about eight.",
            table(f"load | seed | {efforts}", rows(effort, many)),
        ),
        section(
            "Extended topology, 1,000 applications",
            "Gaps of lns are to the bound proven within the same CPU seconds, the others to that "
            "of 400 price steps.",
            table(
                "load | seed | bound | greedy, given | greedy, small first | rollout H=0 | rollout "
                "H=20 | lns, 1 s | lns, 10 s",
                rows(scale, many),
            ),
        ),
        section(
            "10,000 applications on 1,000 nodes",
            "800 near-edge, 160 far-edge, 40 cloud nodes; gaps to the bound proven within the 60 s "
            "of lns. At load 1 the demand exceeds the nodes.",
            table("load | read and check | greedy | gap | lns | gap | memory at the peak", largest),
        ),
        section(
            "Gaps of small instances closed",
            f"{run.seconds:g} s for each instance, basic topology. Prices prove the first bound, "
            "with charges for being at home. Charges of patterns, which are sets of microservices "
            "that a small node takes together, raise it. HiGHS then chooses among the placements "
            "that these leave, or the best of them; how many, the column of placements says. The "
            "large neighbourhood search goes on from its plan where time is left. The plans are "
            f"that of this search after {SEARCH * run.seconds:g} s, and the best in the end. The "
            "gaps are that of the first plan to the first bound and that of the best plan to the "
            "last bound.",
            table(
                "applications | load | seed | bound by prices | in the end | plan of the search | "
                "best plan | placements | CPU s in all | gap before | gap",
                rows(closing, few),
            ),
        ),
    )


if __name__ == "__main__":
    main()
