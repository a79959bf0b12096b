"""The referee against the published costs, and against the challenge's text written as loops."""

from __future__ import annotations

import csv
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from effort import tries
from hypothesis import given
from hypothesis import strategies as st
from machine_reassignment import files
from machine_reassignment.instance import MachineReassignment

DATA = Path(os.environ.get("PLACEOPT_DATA", "")) / "roadef2012"
needs_data = pytest.mark.skipif(
    not (DATA / "known.csv").is_file(), reason="PLACEOPT_DATA has no roadef2012"
)


def published() -> list[tuple[str, int | None]]:
    """Return instances and the published costs of their first assignments."""
    if not (DATA / "known.csv").is_file():
        return []
    rows = csv.DictReader((DATA / "known.csv").open())
    costs = [(row["instance"], row["cost_of_first_assignment"]) for row in rows]
    return [(name, int(cost) if cost else None) for name, cost in costs]


@needs_data
@pytest.mark.parametrize(("name", "cost"), published()[:: tries(3, 1)])
def test_the_first_assignment_costs_what_is_published(name: str, cost: int | None) -> None:
    problem = files.read(DATA / f"model_{name}.txt", DATA / f"assignment_{name}.txt")
    judged = problem.evaluate({"machines": problem.arrays.home.tolist()})
    assert judged.feasible
    assert cost is None or sum(judged.values) == cost


def slow(problem: MachineReassignment, machines: list[int]) -> tuple[list[int], set[str]]:
    """Return costs and broken rules, one process and one machine after another."""
    m, p, broken = problem.machines, problem.processes, set()
    home = [process.machine for process in p]
    on: list[list[int]] = [[k for k, at in enumerate(machines) if at == j] for j in range(len(m))]
    load = balance = 0
    for j, machine in enumerate(m):
        used = [sum(p[k].requirements[r] for k in on[j]) for r in range(len(problem.resources))]
        for r, resource in enumerate(problem.resources):
            left = [k for k in range(len(p)) if home[k] == j != machines[k]]
            more = sum(p[k].requirements[r] for k in left) if resource.transient else 0
            if used[r] + more > machine.capacity[r]:
                broken.add("capacity")
            load += resource.load_cost * max(0, used[r] - machine.safety_capacity[r])
        free = [c - u for c, u in zip(machine.capacity, used, strict=True)]
        for b in problem.balances:
            balance += b.cost * max(0, b.target * free[b.resource] - free[b.other])
    moves, by_service = 0, [0]
    for s, service in enumerate(problem.services):
        members = [k for k in range(len(p)) if p[k].service == s]
        where = [machines[k] for k in members]
        if len(set(where)) < len(where):
            broken.add("conflict")
        if len({m[j].location for j in where}) < service.spread:
            broken.add("spread")
        for t in service.depends_on:
            near = {m[machines[k]].neighbourhood for k in range(len(p)) if p[k].service == t}
            if any(m[j].neighbourhood not in near for j in where):
                broken.add("dependency")
        by_service.append(sum(machines[k] != home[k] for k in members))
    w = problem.move_weights
    for k, process in enumerate(p):
        if machines[k] != home[k]:
            moves += w.process * process.move_cost
            moves += w.machine * m[home[k]].move_costs[machines[k]]
    return [load, balance, moves + w.service * max(by_service)], broken


@given(st.integers(0, 10_000), st.integers(0, 12), st.integers(1, 5), st.integers(1, 3))
def test_the_referee_equals_the_text_as_loops(
    seed: int, moved: int, resources: int, places: int
) -> None:
    sizes: dict[str, Any] = {"machines": 6, "processes": 18, "services": 7}
    problem = MachineReassignment.generate(
        seed, resources=resources, locations=places, neighbourhoods=places, **sizes
    )
    rng = np.random.default_rng(seed)
    machines = problem.arrays.home.copy()
    machines[rng.permutation(18)[:moved]] = rng.integers(6, size=min(moved, 18))
    judged = problem.evaluate({"machines": machines.tolist()})
    costs, broken = slow(problem, machines.tolist())
    assert list(judged.values) == costs
    assert {violation.kind for violation in judged.violations} == broken
