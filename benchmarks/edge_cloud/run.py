"""The edge-cloud tables: models, the paper's Table 4, targets at scale, Figs 3 to 7.

Times are CPU seconds of one process.

    python benchmarks/edge_cloud/run.py [--instances 10] [--only PART]

Writes results.md and fig3_to_5.png beside this file. Ten instances take about 20 minutes of CPU.
"""

from __future__ import annotations

import argparse
import itertools
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

from placeopt.core.budget import Budget
from placeopt.core.task import Task

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

import stamps  # noqa: E402
from edge_cloud import measures as m  # noqa: E402
from machine import facts, table  # noqa: E402

from placeopt.edge_cloud.instance import EdgeCloud  # noqa: E402

_BUILD = """
import sys, time, gc
from placeopt.models import edge_cloud as model
from placeopt.edge_cloud.instance import EdgeCloud
import pyomo.environ as pyo
applications, forms = int(sys.argv[1]), dict(flows=sys.argv[2], latency=sys.argv[3])
model.build(EdgeCloud.generate(1, applications=2), **forms)
problem = EdgeCloud.generate(1, applications=applications)
problem.arrays; problem.infeasibility(); gc.collect()
memory = lambda: int(open("/proc/self/statm").read().split()[1]) * 4096 / 1e6
before, begun = memory(), time.process_time()
built = model.build(problem, **forms)
seconds, used = time.process_time() - begun, memory() - before
peak = int(open("/proc/self/status").read().split("VmHWM:")[1].split()[0]) * 1024 / 1e6
rows = sum(1 for _ in built.component_data_objects(pyo.Constraint))
print(rows, f"{seconds:.2f}", f"{used:.0f}", f"{peak:.0f}")
"""

_LARGE = """
import sys
sys.path.insert(0, sys.argv[1])
from edge_cloud import measures as m
from placeopt.edge_cloud.instance import EdgeCloud
m.warm_up()
for load in (0.4, 0.8):
    sizes = {"applications": 10_000, "near": 800, "far": 160, "cloud": 40, "load": load}
    document = EdgeCloud.generate(1, **sizes).to_document()
    problem, seconds = m.timed(lambda: EdgeCloud.from_document(document))
    checked = m.timed(problem.infeasibility)[1] + seconds
    found, greedy = m.sequential(problem, "small-first", "greedy")
    (searched, proven), used = m.timed(lambda: m.lns(problem, 60.0))
    memory = int(open("/proc/self/status").read().split("VmHWM:")[1].split()[0]) * 1024 / 1e9
    gaps = m.percent(found, proven), m.percent(searched, proven)
    row = [load, f"{checked:.1f} s", f"{greedy:.2f} s", gaps[0], f"{used:.0f} s", gaps[1]]
    print(*row, f"{memory:.2f} GB", sep=";")
"""


def model_table(instances: int) -> list[str]:
    """Rows, CPU seconds and resident memory of building the model, each in a process of its own."""
    rows = []
    for applications, flows, latency in itertools.product(
        (50, 300), ("compact", "printed"), ("levels", "printed")
    ):
        command = [sys.executable, "-c", _BUILD, str(applications), flows, latency]
        said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        rows.append([applications, f"{flows}, {latency}", *said.split()])
    head = (
        "applications",
        "flows, latency",
        "rows",
        "CPU s",
        "MB of the model",
        "MB of the process at its peak",
    )
    return ["## Building the model, basic topology", "", *table(head, rows), ""]


def table4(instances: int) -> list[str]:
    """Mean gap of every method to the bound on the basic topology, at both loads."""
    lines = [
        f"## The paper's Table 4: basic topology, w = {m.WEIGHT}, gap to the Lagrangian bound, "
        f"mean of {instances} seeds",
        "",
    ]
    methods: dict[str, Callable[..., float]] = {
        "greedy, given order": lambda p: m.sequential(p, "given", "greedy")[0],
        "greedy, small first": lambda p: m.sequential(p, "small-first", "greedy")[0],
        "rollout, given, beta .9, gamma .8, all": lambda p: m.sequential(
            p, "given", "rollout", 0.9, 0.8, 10**6
        )[0],
        "rollout, given, H=0": lambda p: m.sequential(p, "given", "rollout")[0],
        "lns, 1 s": lambda p: m.lns(p, 1.0)[0],
    }
    for load in (0.4, 1.0):
        rows = []
        for applications in (50, 100, 200, 300):
            problems = [
                m.instance(seed, "basic", applications, load) for seed in range(1, instances + 1)
            ]
            bounds = [m.bound(p) for p in problems]
            gaps = []
            for method in methods.values():
                found, seconds = m.timed(
                    lambda method=method, problems=problems: [method(p) for p in problems]
                )
                pairs = [
                    (f - b) / f for f, b in zip(found, bounds, strict=True) if f < float("inf")
                ]
                mean = f"{np.mean(pairs):.1%}" if pairs else "no plan"
                missing = f" ({len(pairs)} of {instances})" if 0 < len(pairs) < instances else ""
                gaps.append(f"{mean}{missing}, {seconds / instances:.3f} s")
            rows.append([applications, *gaps])
        lines += [f"Load {load:g}", "", *table(("applications", *methods), rows), ""]
    return lines


def exact(instances: int) -> list[str]:
    """Tell the part of a gap that is the bound's from the search's: HiGHS starts from its plan."""
    rows = []
    for applications, load in itertools.product((50, 100), (0.4, 1.0)):
        for seed in range(1, min(instances, 2) + 1):
            problem = m.instance(seed, "basic", applications, load)
            lagrange, (found, plan) = m.bound(problem), m.best_plan(problem, 5.0)
            least, proven, status = m.by_model(problem, plan, 60.0)
            row = [
                applications,
                f"{load:g}",
                seed,
                f"{lagrange:.2f}",
                f"{proven:.2f}",
                f"{least:.2f} ({status})",
                f"{found:.2f}",
            ]
            rows.append(
                [
                    *row,
                    m.percent(found, least),
                    m.percent(least, max(proven, lagrange)),
                    m.percent(least, lagrange),
                ]
            )
    head = (
        "applications",
        "load",
        "seed",
        "Lagrangian bound",
        "HiGHS bound",
        "HiGHS best",
        "lns, 5 s",
    )
    head = (*head, "lns above HiGHS", "left open", "seen by prices")
    words = (
        "HiGHS has 60 s on the level model and starts from the plan of lns. What prices see is the "
        "gap of HiGHS's best plan to their bound; where HiGHS proves its plan optimal this is the "
        "duality gap, and no search can close it."
    )
    return [
        "## Whose gap it is: basic topology, small instances",
        "",
        words,
        "",
        *table(head, rows),
        "",
    ]


def scale(instances: int) -> list[str]:
    """Times and gaps at 1,000 applications on the extended topology."""
    lines = [f"## Extended topology, 1,000 applications, w = {m.WEIGHT}", ""]
    lines += [
        "Gaps of lns are to the bound proven within the same CPU seconds, the others to that of "
        "400 price steps.",
        "",
    ]
    rows = []
    settings = (
        ("given", "greedy", 0),
        ("small-first", "greedy", 0),
        ("small-first", "rollout", 0),
        ("small-first", "rollout", 20),
    )
    for seed in range(1, instances + 1):
        for load in (0.4, 1.0):
            problem = m.instance(seed, "extended", 1000, load)
            proven, seconds = m.timed(lambda problem=problem: m.bound(problem))
            row = [f"{load:g}", seed, f"{proven:.1f}, {seconds:.1f} s"]
            for order, kind, horizon in settings:
                found, seconds = m.sequential(problem, order, kind, horizon=horizon)
                row.append(f"{m.percent(found, proven)}, {seconds * 1000:.0f} ms")
            for limit in (1.0, 10.0):
                row.append(m.percent(*m.lns(problem, limit)))
            rows.append(row)
            print(*row, sep=" | ", flush=True)
    rows.sort(key=lambda row: row[0])
    head = (
        "load",
        "seed",
        "bound",
        "greedy, given",
        "greedy, small first",
        "rollout H=0",
        "rollout H=20",
        "lns, 1 s",
        "lns, 10 s",
    )
    return [*lines, *table(head, rows), ""]


def effort(instances: int) -> list[str]:
    """Gaps of the search after so much work, whatever the machine: price steps and rebuilds."""
    rows, limits = [], ((100, 15_000), (300, 200_000))
    for seed in range(1, instances + 1):
        for load in (0.4, 1.0):
            problem = m.instance(seed, "extended", 1000, load)
            row = [f"{load:g}", seed]
            for steps, evaluations in limits:
                found, proven = m.lns_of(problem, steps, evaluations)
                row += [f"{proven:.1f}", m.percent(found, proven)]
            rows.append(row)
            print(*row, sep=" | ", flush=True)
    rows.sort(key=lambda row: row[0])
    head = ["load", "seed"]
    for steps, evaluations in limits:
        head += [f"bound, {steps} steps", f"gap, {evaluations:,} evaluations"]
    words = (
        "The same on any machine. The first pair of columns is about a second's work of a core, "
        "the second about eight."
    )
    return [
        "## Extended topology, 1,000 applications: gaps by effort",
        "",
        words,
        "",
        *table(head, rows),
        "",
    ]


def large(instances: int) -> list[str]:
    """Ten thousand applications, in a process of its own: the memory is its peak."""
    command = [sys.executable, "-c", _LARGE, str(HERE.parent)]
    rows = [
        line.split(";")
        for line in subprocess.run(
            command, capture_output=True, text=True, check=True
        ).stdout.splitlines()
    ]
    head = ("load", "read and check", "greedy", "gap", "lns", "gap", "memory at the peak")
    words = (
        "800 near-edge, 160 far-edge, 40 cloud nodes; gaps to the bound proven within the 60 s of "
        "lns. At load 1 the demand exceeds the nodes."
    )
    return ["## 10,000 applications on 1,000 nodes", "", words, "", *table(head, rows), ""]


def sweep(problem: EdgeCloud) -> None:
    """Draw Figs 3 to 5: the front, the layers and the parts of the cost against w."""
    from placeopt.edge_cloud.drawing import sweep_figure
    from placeopt.edge_cloud.heuristics import price_guided

    plans = []
    for weight in (0.001, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.999):
        front = price_guided(Task(problem, budget=Budget(evaluations=120)), weight=weight)
        plans.append(
            (weight, min(front.points, key=lambda p, w=weight: np.dot(p.values, (w, 1 - w))).plan)
        )
    sweep_figure(problem, plans, "1,000 applications, extended topology, load 0.4").savefig(
        HERE / "fig3_to_5.png", dpi=150
    )


def figures(instances: int) -> list[str]:
    """Figs 3 to 5 as a drawing, Figs 6 and 7 as tables: extended topology, load 0.4."""
    problem = m.instance(1, "extended", 1000, 0.4)
    sweep(problem)
    lines = ["## Figs 3 to 5", "", "![front, layers and cost parts against w](fig3_to_5.png)", ""]
    lines += ["Plans built under prices, 120 price steps a weight.", ""]
    betas, gammas = (
        [(b, 0.8) for b in (0.05, 0.1, 0.3, 0.6, 0.9)],
        [(0.8, g) for g in (0.0, 0.2, 0.5, 0.8, 1.0)],
    )
    for name, settings in (
        ("Fig 6: beta, gamma .8, H=20", betas),
        ("Fig 7: gamma, beta .8, H=20", gammas),
    ):
        rows = []
        for beta, gamma in settings:
            found, seconds = m.sequential(problem, "given", "rollout", beta, gamma, 20)
            rows.append([beta, gamma, f"{found:.1f}", f"{seconds:.2f}"])
        lines += [
            f"## {name} (given order)",
            "",
            *table(("beta", "gamma", "weighted sum", "CPU s"), rows),
            "",
        ]
    return lines


PARTS = {
    "model": model_table,
    "effort": effort,
    "scale": scale,
    "large": large,
    "table4": table4,
    "figures": figures,
    "exact": exact,
}


def main() -> None:
    """Run the parts asked for and write the page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--instances", type=int, default=10, help="seeds of the tables with random instances"
    )
    parser.add_argument("--only", choices=list(PARTS), help="print one part, write nothing")
    arguments = parser.parse_args()
    lines = [
        "# Edge-cloud: models, heuristics and bounds",
        "",
        facts("numba", "numpy", "pyomo"),
        "",
    ]
    lines += [
        "Times are CPU seconds, as the machine was shared; kernels are compiled beforehand.",
        "",
    ]
    lines += [f"{arguments.instances} seeds in each table with random instances.", ""]
    m.warm_up()
    if arguments.only is not None:
        print("\n".join(PARTS[arguments.only](arguments.instances)))
        return
    for name, part in PARTS.items():
        lines += part(arguments.instances)
        stamps.write(HERE / "results.md", "\n".join(lines), __file__, vars(arguments))
        print(name, "done", flush=True)


if __name__ == "__main__":
    main()
