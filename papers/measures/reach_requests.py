"""REACH: requests one by one, Figs. 9 to 11 and the shares below 250 ms, Chain.

A closed loop, as the paper's traffic generator: a client sends a request when its last one is
answered. A request visits a replica of every service, drawn evenly, with the execution times and
latencies of the profile `reach` (fitted on the mean of the failure case alone). Failure, one
client: an Edge-A and a Cloud-A are lost at 60 s, their pods start again at once where the scheduler
puts them; then REACH and RSDQL move a pod a second. Surge: one client, from 90 s six; at 105 s, a
period of the autoscaler, three replicas of a service become five. Twice: with pods that serve all
requests at once (`at once`), and with pods that serve one after another (`in turn`); the paper does
not say which. All numbers are of the time after the event.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from machine import table
from papers.measures.reach_fit import DQN, FAILURE, SCHEDULERS, SURGE, instance

from placeopt.core.budget import Budget
from placeopt.core.task import Task
from placeopt.rescheduling.instance import Rescheduling
from placeopt.rl import play, policy_file

FULL = {"seeds": 5}
QUICK = {"seeds": 1}
SERVING = ("at once", "in turn")
SERVICES = ("frontend", "ml", "backend", "db")
BELOW_MS, END_S, BUCKET_S = 250.0, 300.0, 5.0
#: Case -> seconds of the event, of the new placement, clients before and after.
CASES = {"failure": (60.0, 60.0, 1, 1), "surge": (90.0, 105.0, 1, 6)}
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
#: Where each service's replicas run, by node name.
Placement = list[list[str]]


def placement(problem: Rescheduling) -> Placement:
    """Return the nodes of the replicas of the chain's services, in its order."""
    known = {s["name"]: s["replicas"] for s in problem.to_document()["services"]}
    return [list(known[name]) for name in SERVICES]


def timeline(case: str, scheduler: str) -> tuple[list[tuple[float, Placement]], float]:
    """Return from when on replicas run where, and the latency that the model has at the end.

    REACH and RSDQL start from the default scheduler's placement.
    """
    start = SCHEDULERS.get(scheduler, "kubernetes")
    before = Rescheduling.generate(0, application="chain", profile="reach", replicas=3, start=start)
    after = instance("reach", "chain", case, start)
    changed = CASES[case][1]
    found = [(0.0, placement(before)), (changed, placement(after))]
    if scheduler in SCHEDULERS:
        return found, after.initial_latency
    policy = policy_file.read("rescheduling-testbed" if scheduler == "REACH" else str(DQN))
    front = play.run(Task(after, budget=Budget(evaluations=10**9)), policy=policy)
    best = front.points[int(front.values[:, 0].argmin())]
    now = found[-1][1]
    for k, move in enumerate(best.plan["moves"]):
        now = [list(nodes) for nodes in now]
        nodes = now[SERVICES.index(move["service"])]
        nodes[nodes.index(move["from"])] = move["to"]
        found.append((changed + 1.0 + k, now))
    return found, float(best.values[0])


class Network:
    """Times of the testbed in seconds, by node name."""

    def __init__(self, problem: Rescheduling):
        arrays, names = problem.arrays, list(problem.node_numbers)
        order = [problem.service_numbers[name] for name in SERVICES]
        self.work = [dict(zip(names, arrays.execution[s] / 1000, strict=True)) for s in order]
        self.user = dict(zip(names, arrays.user / 1000, strict=True))
        self.hop = {
            (a, b): arrays.delay[i, j] / 1000
            for i, a in enumerate(names)
            for j, b in enumerate(names)
        }


def requests(case: str, changes: list[tuple[float, Placement]], serving: str, seed: int) -> Any:
    """Return when requests were answered, s, and their latencies, ms."""
    network = Network(instance("reach", "chain", "12 pods", "kubernetes"))
    rng = np.random.default_rng(seed)
    event, _, first, then = CASES[case]
    sends = [0.0] * first + [event] * (then - first)
    # (time, request's number, its start, stage, node that it comes from)
    ahead = [(t, k, t, 0, "") for k, t in enumerate(sends)]
    heapq.heapify(ahead)
    free: dict[tuple[int, int], float] = {}
    count, answered, took = len(ahead), [], []
    while ahead:
        now, number, began, stage, origin = heapq.heappop(ahead)
        if stage == len(SERVICES):
            answered.append(now)
            took.append(1000 * (now - began))
            if now < END_S:
                heapq.heappush(ahead, (now, count, now, 0, ""))
                count += 1
            continue
        where = next(nodes for since, nodes in reversed(changes) if since <= now)[stage]
        replica = int(rng.integers(len(where)))
        node = where[replica]
        there = now + (network.hop[origin, node] if origin else network.user[node])
        begin = max(there, free.get((stage, replica), 0.0)) if serving == "in turn" else there
        end = begin + network.work[stage][node]
        free[stage, replica] = end
        heapq.heappush(ahead, (end, number, began, stage + 1, node))
    return np.array(answered), np.array(took)


def played(case: str, scheduler: str, serving: str, seeds: int) -> dict[str, Any]:
    """Return mean, share below 250 ms, requests per second and series; means over seeds."""
    changes, expected = timeline(case, scheduler)
    event, edges = CASES[case][0], np.arange(0.0, END_S + 1e-9, BUCKET_S)
    rows, series = [], []
    for seed in range(seeds):
        answered, took = requests(case, changes, serving, seed)
        later = (answered >= event) & (answered <= END_S)
        slow = took[later]
        rows.append((slow.mean(), 100 * (slow < BELOW_MS).mean(), later.sum() / (END_S - event)))
        which = np.digitize(answered, edges) - 1
        of = [took[which == k] for k in range(len(edges) - 1)]
        series.append([(one.mean(), len(one) / BUCKET_S) if len(one) else (0, 0) for one in of])
    mean, below, rate = np.mean(rows, axis=0)
    curves = np.mean(series, axis=0)
    return {
        "mean": mean,
        "below": below,
        "rps": rate,
        "model": expected,
        "latency": curves[:, 0].round(1).tolist(),
        "rate": curves[:, 1].round(2).tolist(),
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
            cells.append(f"{result[case]['at once'][name]['model']:.1f}")
            rows.append(cells)
        what = "mean ms / % below 250 ms" + (" / requests a second" if case == "surge" else "")
        yield f"{what[0].upper()}{what[1:]}; `model`: the mean latency of the last placement."
        if case == "surge":
            yield "The paper prints about 21 requests a second and 55 to 59 % for the last three."
        yield ""
        yield from table(("scheduler", "paper", *SERVING, "model, ms"), rows)
    yield from ("", "![latency over time, requests per second](reach_requests.png)")


def draw(result: Any, folder: Path) -> None:
    """Draw Figs. 9, 10 (latency over time) and 11 (requests per second)."""
    from matplotlib.figure import Figure

    drawing = Figure(figsize=(13, 6), layout="constrained")
    axes = drawing.subplots(2, 3, sharex=True)
    for row, serving in zip(axes, SERVING, strict=True):
        shown = (("failure", "latency"), ("surge", "latency"), ("surge", "rate"))
        for axis, (case, key) in zip(row, shown, strict=True):
            for name, found in result[case][serving].items():
                across = BUCKET_S * (np.arange(len(found[key])) + 0.5)
                axis.plot(across, found[key], label=name)
            axis.axvline(CASES[case][0], color="black", linewidth=0.7, linestyle=":")
            what = "mean ms" if key == "latency" else "requests a second"
            axis.set(title=f"{case}, {serving}", xlabel="s", ylabel=what)
    known = axes[0][0].get_legend_handles_labels()
    drawing.legend(*known, loc="outside lower center", ncols=5)
    drawing.savefig(folder / "reach_requests.png", dpi=90)
