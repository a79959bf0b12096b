"""Lower bounds: the fleet as one machine, resource by resource, and each process on its own.

Whatever the assignment, all that is needed of a resource is used somewhere. What the fleet needs
above the sum of the safety capacities costs at least its excess, and what is free in the fleet
lacks at least the target. Costs of moves are at least 0.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from machine_reassignment.arrays import Arrays
from machine_reassignment.instance import MachineReassignment
from placeopt import Front
from placeopt.plugins import Bounds, Budget


def bounds(problem: MachineReassignment, front: Front, budget: Budget) -> Iterator[Bounds]:
    """Yield a lower-bound set of one vector; it takes no search."""
    least = np.array(least_costs(problem.arrays), dtype=float)
    yield Bounds(least[None, problem.columns(front.objectives)])


def least_costs(a: Arrays) -> tuple[int, int, int]:
    """Return what load, balance and moves cost at least."""
    need = a.requirement.sum(axis=0)
    excess = np.maximum(0, need - a.safety.sum(axis=0))
    load = int((np.maximum(excess, _alone(a)) * a.load_cost).sum())
    free = a.capacity.sum(axis=0) - need
    balance = sum(
        cost * max(0, int(target * free[one] - free[other]))
        for one, other, target, cost in a.balance.tolist()
    )
    return load, balance, 0


def _alone(a: Arrays) -> np.ndarray:
    """Return what processes need above the largest safety capacity there is, (R,).

    Two processes on one machine are above it by at least the sum of what each of them is.
    """
    return np.maximum(0, a.requirement - a.safety.max(axis=0)).sum(axis=0)
