"""The CNSM 2024 paper's reason for metaheuristics: ten requests take HiGHS hundreds of seconds."""

from __future__ import annotations

import time
from typing import Any

from machine import table

import placeopt
from placeopt.temporal.problem import Temporal

FULL = {"seconds": 100.0, "exact_seconds": 30.0}
QUICK = {"seconds": 30.0, "exact_seconds": 10.0}
GOAL = "cost_usd"


def measure(cells: Any, seconds: float, exact_seconds: float) -> dict[str, Any]:
    problem = instance()
    paper = cells(f"model {seconds}", lambda: run(problem, "epsilon-constraint", seconds, copies=1))
    ours = cells(f"bin-plans {exact_seconds}", lambda: run(problem, "bin-plans", exact_seconds))
    return {
        "limit": seconds,
        "replicas": sum(r.replicas for r in problem.requests),
        "the paper's model by HiGHS": paper,
        "bin-plans": ours,
    }


def instance() -> Temporal:
    """Return ten requests of 1 or 2 replicas, with the paper's offers and 100 slots."""
    document = Temporal.generate(1, requests=10).to_document()
    for k, request in enumerate(document["requests"]):
        request["replicas"] = 1 + k % 2
    return Temporal.from_document(document)


def run(problem: Temporal, method: str, seconds: float, **options: Any) -> dict[str, Any]:
    """Return the least cost, the bound, and seconds."""
    began, cpu = time.perf_counter(), time.process_time()
    front = placeopt.solve(problem, method, objectives=[GOAL], seconds=seconds, **options)
    bound = max((b[0] for b in front.bounds), default=None)
    found = [p.values[0] for p in front.points]
    return {
        "cost": min(found) if found else None,
        "bound": bound,
        "status": front.points[0].status if front.points else "no plan",
        "seconds": time.perf_counter() - began,
        "cpu_seconds": time.process_time() - cpu,
    }


def page(result: dict[str, Any]) -> list[str]:
    lines = [
        "# CNSM 2024: ten requests, exactly",
        "",
        f"Ten requests of 1 or 2 replicas, {result['replicas']} in all, 100 slots, 18 offers; cost "
        f"alone. The paper's model has {result['limit']:g} s by the clock, and one machine of each "
        "offer: with as many as plans could use it has 8 million coefficients, too many to build "
        "in that time. `heuristic`: the solver found nothing better than the start that it got.",
        "",
    ]
    rows = [
        (
            name,
            "none" if r["cost"] is None else f"{r['cost']:.4f}",
            "none" if r["bound"] is None else f"{r['bound']:.4f}",
            r["status"],
            f"{r['seconds']:.1f}",
            f"{r['cpu_seconds']:.1f}",
        )
        for name, r in result.items()
        if isinstance(r, dict)
    ]
    return [*lines, *table(("method", "cost, USD", "bound", "status", "s", "CPU s"), rows)]
