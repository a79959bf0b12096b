"""Machine reassignment in tables: costs, machines before and after, moves."""

from __future__ import annotations

import numpy as np

from machine_reassignment.instance import MachineReassignment
from machine_reassignment.referee import judge
from placeopt.plugins import Cell, Mark, Plan, before_after, paragraphs, table

#: What the problem asks, in a sentence.
QUESTION = "Which processes move to which machines, so that none is overloaded and few things move?"
#: What each objective measures.
MEANINGS = {
    "load_cost": "use above the safety capacities, times the cost of the resource",
    "balance_cost": "free resources that lack their match, times the cost of the pair",
    "move_cost": "costs of processes, of services and between machines, weighted",
}
#: Rows of a table, at most.
_MOST = 100


def instance(problem: MachineReassignment) -> list[tuple[str, str]]:
    """Return facts about the instance."""
    a = problem.arrays
    places = len(np.unique(a.location)), len(np.unique(a.neighbourhood))
    where = f"in {places[0]:,} locations and {places[1]:,} neighbourhoods"
    return [
        ("machines", f"{len(problem.machines):,} {where}"),
        ("processes", f"{len(problem.processes):,} of {len(problem.services):,} services"),
        ("resources", f"{len(problem.resources):,}, {a.transient.sum()} of them transient"),
        ("dependencies", f"{len(a.needs):,}"),
        ("cost now", f"{sum(judge(a, a.home)[0]):,}"),
    ]


def plan(problem: MachineReassignment, plan: Plan) -> str:
    """Return the tables of a plan."""
    a, machine = problem.arrays, problem.assignment(plan)
    costs = zip(problem.objectives, judge(a, a.home)[0], judge(a, machine)[0], strict=True)
    rows: list[list[Cell]] = [[o.name, f"{one:,}", f"{two:,}"] for o, one, two in costs]
    moved = np.flatnonzero(machine != a.home)
    moves: list[list[Cell]] = [
        [str(p), str(a.service[p]), str(a.home[p]), str(machine[p])] for p in moved.tolist()
    ]
    return (
        paragraphs([f"{len(moved):,} of {len(machine):,} processes move."])
        + table("Costs", ("goal", "now", "after"), rows)
        + _machines(problem, machine)
        + table("Moves", ("process", "service", "from", "to"), moves, most=_MOST, more="moves")
    )


def _machines(problem: MachineReassignment, machine: np.ndarray) -> str:
    """Return how full the machines are, those first whose fullest resource is."""
    before, after = (shares(problem, where) for where in (problem.arrays.home, machine))
    order = np.argsort(-after, kind="stable").tolist()
    over = [Mark("above safety", "warn") if after[m] > 1 else "" for m in order]
    heads, one, two = [[str(m)] for m in order], before[order, None], after[order, None]
    kind = {"resources": ("fullest resource, of its safety capacity,",), "more": "machines"}
    return before_after("Machines", ("machine",), heads, one, two, over, **kind)


def shares(problem: MachineReassignment, machine: np.ndarray) -> np.ndarray:
    """Return the fullest resource of each machine, as a share of its safety capacity, (M,)."""
    a = problem.arrays
    used = np.zeros_like(a.capacity)
    np.add.at(used, machine, a.requirement)
    return (used / np.maximum(1, a.safety)).max(axis=1)
