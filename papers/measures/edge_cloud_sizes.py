"""Rows and columns of the edge-cloud program: the paper's formula, as printed, compact."""

from __future__ import annotations

from typing import Any

from machine import table
from papers import edge_cloud as ec

FULL = {"applications": 10, "seed": 11}
QUICK = FULL
#: Cores that all applications together ask for, in applications at load 1.
DEMAND = 0.6


def measure(cells: Any, applications: int, seed: int) -> dict[str, Any]:
    """Return rows and columns of both forms of the model, and of the paper's formula."""
    import pyomo.environ as pyo
    from placeopt_papers import edge_printed

    from placeopt import models

    problem = ec.instance(seed, "basic", applications, DEMAND)
    services = [len(a.microservices) for a in problem.applications]
    found: dict[str, Any] = {"formula": formula(len(problem.nodes), services)}
    for name, build in (("as printed", edge_printed.build), ("compact", models.edge_cloud.build)):
        model = build(problem)
        rows = model.component_data_objects(pyo.Constraint, active=True)
        columns = model.component_data_objects(pyo.Var, active=True)
        found[name] = {"rows": sum(1 for _ in rows), "columns": sum(1 for _ in columns)}
    return {"applications": applications, "nodes": len(problem.nodes), "forms": found}


def formula(nodes: int, services: list[int]) -> dict[str, int]:
    """Return rows and columns by the paper's formula; `services` are those of each application."""
    placed, applications = nodes * sum(services), len(services)
    pairs = nodes**2 * sum(k * k for k in services)
    return {
        "rows": sum(services) + applications + pairs + 2 * nodes + placed,
        "columns": placed + 2 * applications,
    }


def page(result: dict[str, Any]) -> list[str]:
    lines = [
        "# Edge-cloud: the size of the program",
        "",
        f"{result['applications']} applications on the basic topology, {result['nodes']} nodes. "
        "The formula has a row of (3) for all pairs of microservices and of nodes; as printed only "
        "microservices that talk have one. Costs are sums, not variables. The compact form, which "
        "the exact methods solve, has fewer rows and more columns.",
        "",
    ]
    rows = [
        (name, f"{size['rows']:,}", f"{size['columns']:,}")
        for name, size in result["forms"].items()
    ]
    return [*lines, *table(("form", "rows", "columns"), rows)]
