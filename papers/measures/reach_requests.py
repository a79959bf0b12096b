"""REACH: requests one by one, Figs. 9 to 11 and the shares below 250 ms, Chain.

A closed loop, as the paper's traffic generator: a client sends a request when its last one is
answered. `placeopt traffic` plays it, with the execution times and latencies of the profile `reach`
(fitted on the mean of the failure case alone). Failure, one client: an Edge-A and a Cloud-A are
lost at 60 s, their pods start again at once where the scheduler puts them. Surge: one client, from
90 s six; an autoscaler with a target of 50 % decides every 15 s, five replicas of a service at
most. After each event REACH and RSDQL move a pod a second. Thrice: pods serve all requests at
once, one in turn, or all share their time; the paper does not say which. All numbers are of the
time after the event.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from machine import table
from papers.measures.reach_fit import DQN, FAILURE, LOST, SCHEDULERS, SURGE
from placeopt_papers.traffic.figures import figures, series
from placeopt_papers.traffic.play import Mover, play
from placeopt_papers.traffic.scenario import Scenario

from placeopt.core.budget import Budget
from placeopt.core.task import Task
from placeopt.rescheduling.problem import Rescheduling
from placeopt.rl import play as policies
from placeopt.rl import policy_file

FULL = {"seeds": 5}
QUICK = {"seeds": 1}
SERVING = {"at once": "at-once", "in turn": "in-turn", "shared": "shared"}
#: What the two cases are, beside the serving and the scheduler.
_LIMITS: dict[str, Any] = {"seconds": 300.0, "slo_ms": 250.0, "bucket_s": 5.0}
CASES: dict[str, dict[str, Any]] = {
    "failure": {
        **_LIMITS,
        "measured_from_s": 60.0,
        "load": [{"clients": 1}],
        "failures": [{"at_s": 60.0, "nodes": LOST}],
    },
    "surge": {
        **_LIMITS,
        "measured_from_s": 90.0,
        "load": [{"clients": 1}, {"from_s": 90.0, "clients": 6}],
        "autoscaler": {"target": 0.5, "period_s": 15.0, "most": 5},
    },
}
#: Sections VII-D and VII-E: share of requests below 250 ms, %; requests per second.
PAPER_BELOW = {
    "failure": {
        "REACH": 86.9,
        "RSDQL": 76.9,
        "Cloud-First": 35.5,
        "Latency-Greedy": 46.2,
        "Default": 46.7,
    },
    "surge": {
        "REACH": 90.0,
        "RSDQL": 89.0,
        "Cloud-First": 57.0,
        "Latency-Greedy": 57.0,
        "Default": 57.0,
    },
}
PAPER_RPS = {
    "REACH": 26.62,
    "RSDQL": 25.45,
    "Cloud-First": 21.0,
    "Latency-Greedy": 21.0,
    "Default": 21.0,
}
PAPER_MEAN = {"failure": FAILURE, "surge": SURGE}


def mover(scheduler: str) -> Mover | None:
    """Return what moves pods after an event: a policy's fastest plan, or nothing."""
    if scheduler in SCHEDULERS:
        return None
    policy = policy_file.read("rescheduling-testbed" if scheduler == "REACH" else str(DQN))

    def move(problem: Rescheduling) -> list[tuple[str, str, str]]:
        front = policies.run(Task(problem, budget=Budget(evaluations=10**9)), policy=policy)
        best = front.points[int(front.values[:, 0].argmin())]
        return [(m["service"], m["from"], m["to"]) for m in best.plan["moves"]]

    return move


def played(case: str, scheduler: str, serving: str, seeds: int) -> dict[str, Any]:
    """Return mean, share below 250 ms, requests per second and series; means over seeds.

    REACH and RSDQL start from the default scheduler's placement.
    """
    start = SCHEDULERS.get(scheduler, "kubernetes")
    problem = Rescheduling.generate(
        0, application="chain", profile="reach", replicas=3, start=start
    )
    story = Scenario(**CASES[case], serving=SERVING[serving], scheduler=start)
    runs = [play(problem, story, seed, mover(scheduler)) for seed in range(1, seeds + 1)]
    rows = [figures(run, story) for run in runs]
    curves = [series(run, story) for run in runs]
    return {
        "mean": float(np.mean([row["mean_ms"] for row in rows])),
        "below": 100 - float(np.mean([row["misses"] for row in rows])),
        "rps": float(np.mean([row["per_second"] for row in rows])),
        "moves": float(np.mean([row["moves"] for row in rows])),
        "started": float(np.mean([row["started"] for row in rows])),
        "model": float(np.mean([run.end.initial_latency for run in runs])),
        "latency": np.mean([c["latency_ms"] for c in curves], axis=0).round(1).tolist(),
        "rate": np.mean([c["per_second"] for c in curves], axis=0).round(2).tolist(),
    }


def measure(cells: Callable[..., Any], seeds: int) -> dict[str, Any]:
    """Play both cases with the five schedulers."""
    return {
        case: {
            serving: {
                name: cells(
                    f"{case} {serving} {name} {seeds}",
                    lambda c=case, s=serving, n=name: played(c, n, s, seeds),
                )
                for name in FAILURE
            }
            for serving in SERVING
        }
        for case in CASES
    }


# -- what entries and the page read ----------------------------------------------------------------


def column(result: Any, case: str, serving: str, key: str) -> dict[str, float]:
    """Return a number of the five by name."""
    return {name: row[key] for name, row in result[case][serving].items()}


def near(found: dict[str, float], paper: dict[str, float], by: float) -> bool:
    """Return whether all of the five are within `by` of the paper."""
    return all(abs(found[name] - value) <= by for name, value in paper.items())


def page(result: Any) -> Iterator[str]:
    """Yield the page."""
    yield "# REACH: requests one by one, Figs. 9 to 11"
    yield ""
    yield (__doc__ or "").split("\n\n", 1)[1].replace("\n", " ").strip()
    for case in CASES:
        yield from ("", f"## Chain, {case}", "")
        rows = []
        for name, paper in PAPER_MEAN[case].items():
            cells = [name, f"{paper:.1f} / {PAPER_BELOW[case][name]:.1f}"]
            cells[1] += f" / {PAPER_RPS[name]:.1f}" if case == "surge" else ""
            for serving in SERVING:
                row = result[case][serving][name]
                text = f"{row['mean']:.1f} / {row['below']:.1f}"
                cells.append(text + (f" / {row['rps']:.1f}" if case == "surge" else ""))
            alone = result[case]["shared"][name]
            cells += [f"{alone['model']:.1f}", f"{alone['started']:.0f} / {alone['moves']:.0f}"]
            rows.append(cells)
        what = "mean ms / % below 250 ms" + (" / requests a second" if case == "surge" else "")
        yield f"{what[0].upper()}{what[1:]}; `model`: the mean latency of the last placement."
        yield "Pods started, then moved, are those of the shared runs."
        if case == "surge":
            yield "The paper prints about 21 requests a second and 55 to 59 % for the last three."
        yield ""
        columns = ("scheduler", "paper", *SERVING, "model, ms", "started / moved")
        yield from table(columns, rows)
    yield from ("", "![latency over time, requests per second](reach_requests.png)")


def draw(result: Any, folder: Path) -> None:
    """Draw Figs. 9, 10 (latency over time) and 11 (requests per second)."""
    from matplotlib.figure import Figure

    drawing = Figure(figsize=(13, 9), layout="constrained")
    axes = drawing.subplots(3, 3, sharex=True)
    for row, serving in zip(axes, SERVING, strict=True):
        shown = (("failure", "latency"), ("surge", "latency"), ("surge", "rate"))
        for axis, (case, key) in zip(row, shown, strict=True):
            for name, found in result[case][serving].items():
                across = _LIMITS["bucket_s"] * (np.arange(len(found[key])) + 0.5)
                axis.plot(across, found[key], label=name)
            axis.axvline(
                CASES[case]["measured_from_s"], color="black", linewidth=0.7, linestyle=":"
            )
            what = "mean ms" if key == "latency" else "requests a second"
            axis.set(title=f"{case}, {serving}", xlabel="s", ylabel=what)
    known = axes[0][0].get_legend_handles_labels()
    drawing.legend(*known, loc="outside lower center", ncols=5)
    drawing.savefig(folder / "reach_requests.png", dpi=90)
