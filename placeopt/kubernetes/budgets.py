"""PodDisruptionBudgets: which replicas they are about, and how many of them may be missing."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import NamedTuple

from placeopt.kubernetes.faults import tolerated
from placeopt.kubernetes.manifests import ClusterObjects
from placeopt.kubernetes.notes import note
from placeopt.kubernetes.objects import PodDisruptionBudget, selects
from placeopt.kubernetes.origin import OriginBudget, OriginItem
from placeopt.kubernetes.replicas import Replica, grouped


def hold_by_budgets(
    cluster: ClusterObjects, found: Sequence[Replica], why: list[list[str]], *, holds: bool
) -> None:
    """Hold the pods of budgets that allow no disruption, if these are what `holds` them.

    The other budgets hold in every plan without disruptions. So do all where nothing is evicted.
    `why` gets the reason, by the place among the replicas.
    """
    spaces = grouped(found, lambda unit: unit.namespace)
    place = {id(unit): k for k, unit in enumerate(found)}
    for budget in cluster.budgets:
        own = None
        with tolerated():
            own = _selected(spaces, budget)
        if own is None:
            continue
        if not own:
            note("ignored", "PodDisruptionBudgets that select no pod", budget.meta.label)
        elif holds and _allowed(budget, len(own)) <= 0:
            for unit in own:
                text = "pods whose PodDisruptionBudget allows no disruption"
                why[place[id(unit)]].append(text)
        else:
            text = (
                "PodDisruptionBudgets: points with 0 disruptions keep them, "
                "as every new copy runs before the old one ends"
            )
            note("kept", text, budget.meta.label)


def _selected(
    spaces: Mapping[str, Sequence[Replica]], budget: PodDisruptionBudget
) -> list[Replica]:
    """Return the replicas that a budget is about, of those of each namespace."""
    own = spaces.get(budget.meta.namespace, ())
    return [unit for unit in own if selects(budget.selector, unit.labels)]


def origin_budgets(
    cluster: ClusterObjects, units: Sequence[Replica], items: Mapping[str, OriginItem]
) -> tuple[OriginBudget, ...]:
    """Return the budgets as the origin of an instance has them, with the pods of its items."""
    keys = {(item.namespace, item.pod): key for key, item in items.items() if item.pod}
    spaces, result = grouped(units, lambda unit: unit.namespace), []
    for budget in cluster.budgets:
        own = _selected(spaces, budget)
        known = (keys.get((unit.namespace, unit.pod or "")) for unit in own)
        about = tuple(key for key in known if key is not None)
        if about:
            space, name = budget.meta.namespace, budget.meta.name
            allowed = allowed_now(budget, own)
            result.append(OriginBudget(namespace=space, name=name, allowed=allowed, items=about))
    return tuple(result)


def budgets_by_pod(
    cluster: ClusterObjects, units: Sequence[Replica]
) -> dict[tuple[str, str | None], list[KnownBudget]]:
    """Return the budgets of each pod, by its namespace and name."""
    spaces = grouped(units, lambda unit: unit.namespace)
    results: dict[tuple[str, str | None], list[KnownBudget]] = {}
    for budget in cluster.budgets:
        own = _selected(spaces, budget)
        known = KnownBudget(budget.meta.label, allowed_now(budget, own))
        for unit in own:
            results.setdefault((unit.namespace, unit.pod), []).append(known)
    return results


def budgets_of(
    cluster: ClusterObjects, units: Sequence[Replica]
) -> dict[tuple[str, str, str], int]:
    """Return the replicas that PodDisruptionBudgets keep, of workloads that have one alone."""
    spaces, result = grouped(units, lambda unit: unit.namespace), dict[tuple[str, str, str], int]()
    for budget in cluster.budgets:
        own = _selected(spaces, budget)
        if len({u.owner for u in own}) == 1:
            kept = len(own) - _allowed(budget, len(own))
            result[own[0].owner] = max(kept, result.get(own[0].owner, 0))
    return result


def allowed_now(budget: PodDisruptionBudget, mine: Sequence[Replica]) -> int:
    """Return how many pods of a budget may be missing besides those that are missing now.

    The least of what its controller says and what its numbers say, at least 0.
    """
    there = [unit for unit in mine if not unit.ending]
    missing = sum(unit.node is None or not unit.ready for unit in there)
    told = budget.meta.view["status"]["disruptionsAllowed"]
    result = _allowed(budget, len(there)) - missing
    return max(0, min(result, told.whole(result if result > 0 else 0)))


def _allowed(budget: PodDisruptionBudget, count: int) -> int:
    """Return how many of `count` pods may be missing."""
    minimum, maximum = budget.min_available, budget.max_unavailable
    if maximum is not None:
        return share_of(maximum, count)
    return count - share_of(minimum, count) if minimum is not None else count


def share_of(value: object, count: int, *, up: bool = True) -> int:
    """Return a number of pods, a percentage rounded up or down; 0 for what cannot be read."""
    if isinstance(value, int) and not isinstance(value, bool):
        return max(0, min(value, 10**6))
    text = str(value)[:20]
    if text.endswith("%") and text[:-1].isascii() and text[:-1].isdigit():
        share = int(text[:-1]) * count
        return -(-share // 100) if up else share // 100
    return int(text) if text.isascii() and text.isdigit() else 0


# -- what the steps of a plan break ----------------------------------------------------------------


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
