"""Which PodDisruptionBudgets the steps of a plan break.

A script ends pods by their ReplicaSet, so that no budget stops it: whoever runs it has to be told.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import NamedTuple


class KnownBudget(NamedTuple):
    """A budget: its name, and how many of its pods may be missing besides those that are now."""

    label: str
    allowed: int


class Interruption(NamedTuple):
    """What a step does to a pod: it goes down, comes up again, or both.

    `who` stands for the pod and all its copies; `what` is how messages name it.
    """

    number: int
    who: Hashable
    what: str
    down: bool
    up: bool


def broken_budgets(made: Iterable[tuple[Interruption, Iterable[KnownBudget]]]) -> list[str]:
    """Return a sentence for each step that leaves a budget too few pods.

    Parameters
    ----------
    made : iterable of (Interruption, budgets)
        In the order of the steps, each with the budgets of its pod.
    """
    missing: dict[str, set[Hashable]] = {}
    results = []
    for step, budgets in made:
        for budget in budgets:
            down = missing.setdefault(budget.label, set())
            if step.down and step.who not in down:
                down.add(step.who)
                if len(down) > budget.allowed:
                    results.append(
                        f"step {step.number} stops {step.what}: PodDisruptionBudget "
                        f"{budget.label} allows {budget.allowed} of its pods to be missing, "
                        f"and {len(down)} {'is' if len(down) == 1 else 'are'}"
                    )
            if step.up:
                down.discard(step.who)
    return results
