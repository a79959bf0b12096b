"""An instance as arrays of whole numbers: what the referee and the kernels read."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from placeopt.plugins import ragged

if TYPE_CHECKING:
    from machine_reassignment.instance import MachineReassignment


class Arrays(NamedTuple):
    """P processes, M machines, R resources, S services, B balances; int64 throughout."""

    transient: np.ndarray  # (R,) 1 where a move needs the resource on both machines
    load_cost: np.ndarray  # (R,)
    neighbourhood: np.ndarray  # (M,)
    location: np.ndarray  # (M,)
    capacity: np.ndarray  # (M, R)
    safety: np.ndarray  # (M, R)
    between: np.ndarray  # (M, M) cost of a move between machines, times its weight
    spread: np.ndarray  # (S,)
    needs: np.ndarray  # services that each service depends on, one list after another
    needs_at: np.ndarray  # (S + 1,) where the list of a service begins
    needed_by: np.ndarray  # services that depend on each service
    needed_by_at: np.ndarray  # (S + 1,)
    service: np.ndarray  # (P,)
    requirement: np.ndarray  # (P, R)
    move_cost: np.ndarray  # (P,) cost of moving a process, times its weight
    home: np.ndarray  # (P,) machine at the start
    balance: np.ndarray  # (B, 4) resource, other resource, target, cost
    service_weight: np.ndarray  # (1,) cost of the largest number of moves of a service


def build(problem: MachineReassignment) -> Arrays:
    """Return an instance as arrays."""

    def whole(rows: object, *shape: int) -> np.ndarray:
        return np.array(rows, dtype=np.int64).reshape(*shape)

    machines, processes, weights = problem.machines, problem.processes, problem.move_weights
    count, width = len(machines), len(problem.resources)
    needs = [sorted(set(s.depends_on) - {k}) for k, s in enumerate(problem.services)]
    needed_by: list[list[int]] = [[] for _ in needs]
    for one, others in enumerate(needs):
        for other in others:
            needed_by[other].append(one)
    (needs_at, every_need), (needed_by_at, every_user) = ragged(needs), ragged(needed_by)
    return Arrays(
        transient=whole([r.transient for r in problem.resources], -1),
        load_cost=whole([r.load_cost for r in problem.resources], -1),
        neighbourhood=whole([m.neighbourhood for m in machines], -1),
        location=whole([m.location for m in machines], -1),
        capacity=whole([m.capacity for m in machines], count, width),
        safety=whole([m.safety_capacity for m in machines], count, width),
        between=whole([m.move_costs for m in machines], count, count) * weights.machine,
        spread=whole([s.spread for s in problem.services], -1),
        needs=every_need,
        needs_at=needs_at,
        needed_by=every_user,
        needed_by_at=needed_by_at,
        service=whole([p.service for p in processes], -1),
        requirement=whole([p.requirements for p in processes], -1, width),
        move_cost=whole([p.move_cost for p in processes], -1) * weights.process,
        home=whole([p.machine for p in processes], -1),
        balance=whole([(b.resource, b.other, b.target, b.cost) for b in problem.balances], -1, 4),
        service_weight=whole([weights.service], 1),
    )
