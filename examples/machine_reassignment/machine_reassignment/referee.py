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
    rules = _conflicts(a, machine) + _spread(a, machine) + _dependencies(a, machine)
    costs = _load(a, used), _balance(a, used), _moves(a, machine)
    return costs, (*_over_capacity(a, held), *rules)


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
    m, r = np.nonzero(held > a.capacity)
    most, used = a.capacity[m, r], held[m, r]
    told = "machine {} has {} of resource {}, and {} are used"
    return _told("capacity", (used - most) / np.maximum(1, most), told, m, most, r, used)


def _conflicts(a: Arrays, machine: np.ndarray) -> list[Violation]:
    width = len(a.location)
    pairs, count = np.unique(a.service * width + machine, return_counts=True)
    (s, m), more = np.divmod(pairs[count > 1], width), count[count > 1]
    return _told("conflict", more - 1, "machine {} has {} processes of service {}", m, more, s)


def _spread(a: Arrays, machine: np.ndarray) -> list[Violation]:
    width = int(a.location.max()) + 1
    pairs = np.unique(a.service * width + a.location[machine])
    count = np.bincount(pairs // width, minlength=len(a.spread))
    s = np.flatnonzero(count < a.spread)
    told = "service {} is in {} locations, and has to be in {}"
    return _told("spread", a.spread[s] - count[s], told, s, count[s], a.spread[s])


def _dependencies(a: Arrays, machine: np.ndarray) -> list[Violation]:
    there = np.zeros((len(a.spread), int(a.neighbourhood.max()) + 1), dtype=bool)
    there[a.service, a.neighbourhood[machine]] = True
    needing = np.repeat(np.arange(len(a.spread)), np.diff(a.needs_at))
    k, n = np.nonzero(there[needing] & ~there[a.needs])
    told = "service {} is in neighbourhood {}, and service {}, on which it depends, is not"
    return _told("dependency", np.ones(len(k)), told, needing[k], n, a.needs[k])


def _told(kind: str, amounts: np.ndarray, said: str, *facts: np.ndarray) -> list[Violation]:
    """Return violations, each by its amount and facts; one stands for those beyond `_MOST`."""
    rows = zip(amounts[:_MOST].tolist(), *(fact[:_MOST].tolist() for fact in facts), strict=True)
    told = [Violation(kind, float(amount), said.format(*row)) for amount, *row in rows]
    more = len(amounts) - _MOST
    rest = [Violation(kind, float(more), f"{more} more of the same kind")] if more > 0 else []
    return told + rest
