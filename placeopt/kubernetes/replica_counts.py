"""How many replicas workloads shall have: which of them are added or removed on the way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from placeopt.core.errors import UsageError, did_you_mean
from placeopt.kubernetes.admission import Admission
from placeopt.kubernetes.calls import Key
from placeopt.kubernetes.notes import note
from placeopt.kubernetes.replicas import MAX_REPLICAS, Replica, grouped

#: The kind of workload whose replicas steps can add and remove one by one.
_SCALED = "Deployment"


def parse(texts: Iterable[str]) -> dict[Key, int]:
    """Return (namespace, workload) -> replicas of ``--replicas``.

    Raises
    ------
    UsageError
        A text is not ``NAME=NUMBER`` or ``NAMESPACE/NAME=NUMBER``.

    Examples
    --------
    >>> parse(["cart=5", "shop/web=0"])
    {('default', 'cart'): 5, ('shop', 'web'): 0}
    """
    results = {}
    for text in texts:
        label, _, number = text.partition("=")
        space, _, name = label.rpartition("/")
        if not (name and number.isascii() and number.isdigit() and int(number) <= MAX_REPLICAS):
            raise UsageError(
                f"--replicas {text!r}; legal: NAME=NUMBER or NAMESPACE/NAME=NUMBER "
                f"with a number from 0 to {MAX_REPLICAS:,}, such as shop/cart=5"
            )
        results[space or "default", name] = int(number)
    return results


def scale(found: list[Replica], wanted: Mapping[Key, int], admission: Admission) -> list[Replica]:
    """Return replicas with those that are to be added; those that are to be removed say so.

    Removed are those of the node that hosts most of the workload, one after another.

    Raises
    ------
    UsageError
        A workload is not among the running Deployments, or not all of its pods are ready: its
        ReplicaSet would end such a one first; or a quota has no room for them.
    """
    running = {
        owner[::2]: own
        for owner, own in grouped(found, lambda unit: unit.owner).items()
        if owner[1] == _SCALED and any(unit.pod for unit in own)
    }
    added: list[Replica] = []
    removed: set[int] = set()
    for key, count in wanted.items():
        label = "/".join(key)
        if key not in running:
            near = did_you_mean(label, ["/".join(k) for k in running][:50])
            raise UsageError(f"--replicas {label}: no {_SCALED} of that name runs; {near}")
        own = running[key]
        if not all(unit.node and unit.ready for unit in own):
            raise UsageError(f"--replicas {label}: not all of its pods are ready; wait for them")
        more = _more(own, count - len(own))
        for unit in more:
            if why := admission.why_no_copy(unit.namespace, unit.spec):
                raise UsageError(f"--replicas {label}: {why}")
            admission.take(unit.namespace, unit.spec)
        added += more
        removed |= {id(unit) for unit in _last(own, len(own) - count)}
        note("assumption", "workloads that shall have as many replicas as --replicas", label)
    kept = (replace(u, removed=True, pins=()) if id(u) in removed else u for u in found)
    return [*kept, *added]


def _more(mine: Sequence[Replica], count: int) -> list[Replica]:
    """Return new replicas of a workload."""
    like, names = mine[0], {unit.name for unit in mine}
    free = (name for k in range(1, count + len(mine) + 1) if (name := _name(like, k)) not in names)
    return [
        replace(like, name=next(free), pod=None, node=None, uid=None, pins=(), ready=True)
        for _ in range(max(0, count))
    ]


def _name(like: Replica, k: int) -> str:
    return f"{like.workload}-added-{k}"


def _last(mine: Sequence[Replica], count: int) -> list[Replica]:
    """Return the replicas of a workload that are to be removed; nothing holds them then."""
    left, result = list(mine), list[Replica]()
    for _ in range(count):
        crowd = Counter(unit.node for unit in left)
        result.append(max(left, key=lambda unit: (crowd[unit.node], unit.name)))
        left = [unit for unit in left if unit is not result[-1]]
    return result
