"""Processes move between machines, so that none is overloaded and few things change.

The rules are those of the ROADEF/EURO challenge 2012 by Google, "Machine reassignment", problem
definition, sections 1.1 to 1.3. All quantities are whole numbers.
"""

from __future__ import annotations

from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from machine_reassignment import SPEC
from machine_reassignment.arrays import Arrays, build
from machine_reassignment.referee import judge
from placeopt.plugins import (
    DocumentError,
    Evaluation,
    Objective,
    Plan,
    Problem,
    ProblemSpec,
    Record,
)

#: A whole number that the challenge's files may have.
Whole = Annotated[int, Field(strict=True, ge=0, le=10**12)]
#: Number of a machine, service, resource, location or neighbourhood; the first is 0.
Index = Annotated[int, Field(strict=True, ge=0, lt=10**6)]
#: Largest sum that numbers of 64 bits are trusted with.
_LARGEST = 2**62


class Resource(Record):
    """Something that machines have and processes need."""

    transient: bool = False
    """Whether a process that moves needs it on both machines while it moves. Absent: no."""
    load_cost: Whole
    """Cost of each unit used above a safety capacity."""


class Machine(Record):
    """A machine; its number is its place in the list."""

    neighbourhood: Index
    """Number of its neighbourhood: services that depend on each other share one."""
    location: Index
    """Number of its location: services are spread over locations."""
    capacity: tuple[Whole, ...]
    """Of each resource, in units of the resource."""
    safety_capacity: tuple[Whole, ...]
    """Of each resource: what may be used at no cost."""
    move_costs: tuple[Whole, ...]
    """Cost of a move from here to each machine."""


class Service(Record):
    """A set of processes, each on a machine of its own."""

    spread: Index = 0
    """Locations that its processes have to be in, at least."""
    depends_on: tuple[Index, ...] = ()
    """Numbers of services: each has a process in every neighbourhood where this one has."""


class Process(Record):
    """A process; its number is its place in the list."""

    service: Index
    """Number of its service."""
    requirements: tuple[Whole, ...]
    """What it needs of each resource, in units of the resource."""
    move_cost: Whole
    """Cost of moving it."""
    machine: Index
    """Number of the machine that it runs on now."""


class Balance(Record):
    """What is free of one resource on a machine is to be matched by another one."""

    resource: Index
    """Number of the first resource."""
    other: Index
    """Number of the second resource."""
    target: Whole
    """Units of the second that should be free for each free unit of the first."""
    cost: Whole
    """Cost of each unit that is lacking."""


class MoveWeights(Record):
    """What the three costs of moves count."""

    process: Whole = 1
    """Weight of the sum of the processes' costs."""
    service: Whole = 1
    """Weight of the largest number of processes of one service that move."""
    machine: Whole = 1
    """Weight of the sum of the costs between machines."""


class Reassignment(Record):
    """A plan: where every process runs in the end."""

    machines: tuple[Index, ...]
    """Number of the machine of each process, in the order of the instance."""


class MachineReassignment(Problem):
    """An instance of machine reassignment.

    The assignment that it begins with breaks no rule, so that to move nothing is always a plan.

    Examples
    --------
    >>> problem = MachineReassignment.generate(seed=1)
    >>> [objective.name for objective in problem.objectives]
    ["load_cost", "balance_cost", "move_cost"]
    """

    problem: Literal["machine-reassignment"] = "machine-reassignment"
    """Kind of the problem."""
    spec: ClassVar[ProblemSpec] = SPEC
    resources: tuple[Resource, ...] = Field(min_length=1)
    """What machines have."""
    machines: tuple[Machine, ...] = Field(min_length=1)
    """Where processes run."""
    services: tuple[Service, ...] = Field(min_length=1)
    """What processes belong to."""
    processes: tuple[Process, ...] = Field(min_length=1)
    """What runs."""
    balances: tuple[Balance, ...] = ()
    """Pairs of resources that are to be free together. Absent: none."""
    move_weights: MoveWeights = MoveWeights()
    """Weights of the costs of moves; 1 each where absent."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        _check_lengths(self)
        _check_numbers(self)
        _check_size(self)
        broken = judge(self.arrays, self.arrays.home)[1]
        if broken:
            raise DocumentError(
                f"the assignment that runs now breaks a rule: {broken[0].message}",
                path="processes",
                remedy="let it keep the rules; the challenge's assignments do",
            )
        return self

    @cached_property
    def arrays(self) -> Arrays:
        """The instance as arrays of int64, for the referee and the kernels."""
        return build(self)

    @property
    def objectives(self) -> tuple[Objective, ...]:
        """Load, balance and moves; the challenge minimises their sum."""
        return tuple(
            Objective(name, "cost", 1.0) for name in ("load_cost", "balance_cost", "move_cost")
        )

    def evaluate(self, plan: Plan) -> Evaluation:
        """Judge a plan: costs, and the rules that it breaks."""
        costs, broken = judge(self.arrays, self.assignment(plan))
        return Evaluation(tuple(map(float, costs)), broken)

    def assignment(self, plan: Plan) -> np.ndarray:
        """Return the machine of every process, int64 of shape (P,).

        Raises
        ------
        DocumentError
            It does not name one of the machines for every process.
        """
        with self.reading(plan):
            machines = np.array(plan["machines"])
            if machines.dtype != np.int64 or machines.ndim != 1:
                raise ValueError("machines is no list of whole numbers")
        if len(machines) != len(self.processes):
            raise DocumentError(
                f"{len(machines)} machines for {len(self.processes)} processes",
                path="machines",
                remedy="name the machine of every process",
            )
        wrong = np.flatnonzero((machines < 0) | (machines >= len(self.machines)))
        if len(wrong):
            raise _unknown("machine", f"machines[{wrong[0]}]", machines[wrong[0]], self.machines)
        return machines

    def describe(self, plan: Plan) -> dict[str, str]:
        """Return the cost of the challenge, and how many processes move."""
        values, moved = self.evaluate(plan).values, self.assignment(plan) != self.arrays.home
        return {"cost": f"{sum(values):,.0f}", "processes moved": f"{moved.sum():,}"}


def _check_lengths(problem: MachineReassignment) -> None:
    """Raise unless there is a number for every resource, and for every pair of machines."""
    machines = list(enumerate(problem.machines))
    lists: list[tuple[str, tuple[int, ...], str]] = [
        (f"machines[{k}].{field}", getattr(machine, field), "resource")
        for k, machine in machines
        for field in ("capacity", "safety_capacity")
    ]
    for p, process in enumerate(problem.processes):
        lists.append((f"processes[{p}].requirements", process.requirements, "resource"))
    lists += [
        (f"machines[{k}].move_costs", machine.move_costs, "machine") for k, machine in machines
    ]
    lengths = {"resource": len(problem.resources), "machine": len(machines)}
    for path, numbers, each in lists:
        if len(numbers) != lengths[each]:
            told = f"{len(numbers)} numbers for {lengths[each]} {each}s"
            raise DocumentError(told, path=path, remedy=f"give one for each {each}")


def _check_numbers(problem: MachineReassignment) -> None:
    """Raise unless every number names something that is there."""

    def check(what: str, path: str, number: int, items: tuple[Any, ...]) -> None:
        if number >= len(items):
            raise _unknown(what, path, number, items)

    for s, service in enumerate(problem.services):
        for k, other in enumerate(service.depends_on):
            check("service", f"services[{s}].depends_on[{k}]", other, problem.services)
    for p, process in enumerate(problem.processes):
        check("service", f"processes[{p}].service", process.service, problem.services)
        check("machine", f"processes[{p}].machine", process.machine, problem.machines)
    for b, balance in enumerate(problem.balances):
        check("resource", f"balances[{b}].resource", balance.resource, problem.resources)
        check("resource", f"balances[{b}].other", balance.other, problem.resources)


def _unknown(what: str, path: str, number: Any, items: tuple[Any, ...]) -> DocumentError:
    problem = f"there is no {what} {number}"
    return DocumentError(problem, path=path, remedy=f"give 0 to {len(items) - 1}")


def _check_size(problem: MachineReassignment) -> None:
    """Raise where a cost might not fit into 64 bits."""
    largest = max(max(m.capacity) for m in problem.machines)
    needed = sum(max(p.requirements) for p in problem.processes) + largest * len(problem.machines)
    weights, count = problem.move_weights, len(problem.processes)
    between = max(max(m.move_costs) for m in problem.machines)
    each = max(p.move_cost for p in problem.processes) * weights.process + between * weights.machine
    worst = (
        needed * sum(r.load_cost for r in problem.resources)
        + needed * sum((b.target + 1) * b.cost for b in problem.balances)
        + count * (each + weights.service)
    )
    if worst >= _LARGEST:
        raise DocumentError(
            f"costs may reach {worst:.3g}, more than 64 bits hold", remedy="use larger units"
        )
