"""The rules and costs of the challenge, straight from its text, in whole numbers."""

from __future__ import annotations

import numpy as np

from machine_reassignment.arrays import Arrays
from placeopt.plugins import Violation

#: Broken rules of a kind that are told, at most; the rest is counted in their number.
_MOST = 20


def judge(a: Arrays, machine: np.ndarray) -> tuple[tuple[int, int, int], tuple[Violation, ...]]:
    """Return the costs of load, balance and moves of an assignment, and what it breaks.

    Parameters
    ----------
    machine : ndarray of int64, shape (P,)
        The machine of every process.
    """
    used = np.zeros_like(a.capacity)
    np.add.at(used, machine, a.requirement)
    moved = machine != a.home
    held = used.copy()  # with what moves, on the machine that it leaves
    np.add.at(held, a.home[moved], a.requirement[moved] * a.transient)
    broken = _over_capacity(a, held) + _conflicts(a, machine) + _spread(a, machine)
    return (_load(a, used), _balance(a, used), _moves(a, machine)), (
        *broken,
        *_dependencies(a, machine),
    )


def _load(a: Arrays, used: np.ndarray) -> int:
    return int((np.maximum(0, used - a.safety) * a.load_cost).sum())


def _balance(a: Arrays, used: np.ndarray) -> int:
    free = a.capacity - used
    return sum(
        cost * int(np.maximum(0, target * free[:, one] - free[:, other]).sum())
        for one, other, target, cost in a.balance.tolist()
    )


def _moves(a: Arrays, machine: np.ndarray) -> int:
    moved = machine != a.home
    by_service = np.bincount(a.service[moved], minlength=1).max()
    between = a.between[a.home[moved], machine[moved]].sum()
    return int(a.move_cost[moved].sum() + between + by_service * a.service_weight[0])


def _over_capacity(a: Arrays, held: np.ndarray) -> list[Violation]:
    broken = np.argwhere(held > a.capacity)
    told = [
        Violation(
            "capacity",
            float((held[m, r] - a.capacity[m, r]) / max(1, a.capacity[m, r])),
            f"machine {m} has {a.capacity[m, r]} of resource {r}, and {held[m, r]} are used",
        )
        for m, r in broken[:_MOST].tolist()
    ]
    return told + _rest("capacity", len(broken))


def _conflicts(a: Arrays, machine: np.ndarray) -> list[Violation]:
    width = len(a.location)
    pairs, count = np.unique(a.service * width + machine, return_counts=True)
    broken = np.flatnonzero(count > 1)
    told = [
        Violation(
            "conflict",
            float(count[k] - 1),
            f"machine {pairs[k] % width} has {count[k]} processes of service {pairs[k] // width}",
        )
        for k in broken[:_MOST].tolist()
    ]
    return told + _rest("conflict", len(broken))


def _spread(a: Arrays, machine: np.ndarray) -> list[Violation]:
    width = int(a.location.max()) + 1
    pairs = np.unique(a.service * width + a.location[machine])
    count = np.bincount(pairs // width, minlength=len(a.spread))
    broken = np.flatnonzero(count < a.spread)
    told = [
        Violation(
            "spread",
            float(a.spread[s] - count[s]),
            f"service {s} is in {count[s]} locations, and has to be in {a.spread[s]}",
        )
        for s in broken[:_MOST].tolist()
    ]
    return told + _rest("spread", len(broken))


def _dependencies(a: Arrays, machine: np.ndarray) -> list[Violation]:
    there = np.zeros((len(a.spread), int(a.neighbourhood.max()) + 1), dtype=bool)
    there[a.service, a.neighbourhood[machine]] = True
    needing = np.repeat(np.arange(len(a.spread)), np.diff(a.needs_at))
    lacking = np.argwhere(there[needing] & ~there[a.needs])
    broken = [(needing[k], a.needs[k], n) for k, n in lacking.tolist()]
    told = [
        Violation(
            "dependency",
            1.0,
            f"service {s} is in neighbourhood {n}, and service {t}, on which it depends, is not",
        )
        for s, t, n in broken[:_MOST]
    ]
    return told + _rest("dependency", len(broken))


def _rest(kind: str, broken: int) -> list[Violation]:
    """Return one violation for those that are not told."""
    more = broken - _MOST
    return [Violation(kind, float(more), f"{more} more of the same kind")] if more > 0 else []
