"""How many replicas workloads shall have: which of them are added or removed on the way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from placeopt.core.errors import UsageError, did_you_mean
from placeopt.kubernetes.admission import Admission
from placeopt.kubernetes.edges import Key
from placeopt.kubernetes.notes import note
from placeopt.kubernetes.units import MAX_REPLICAS, Unit, grouped

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
    found = {}
    for text in texts:
        label, _, number = text.partition("=")
        space, _, name = label.rpartition("/")
        if not (name and number.isascii() and number.isdigit() and int(number) <= MAX_REPLICAS):
            raise UsageError(
                f"--replicas {text!r}; legal: NAME=NUMBER or NAMESPACE/NAME=NUMBER "
                f"with a number from 0 to {MAX_REPLICAS:,}, such as shop/cart=5"
            )
        found[space or "default", name] = int(number)
    return found


def scale(found: list[Unit], wanted: Mapping[Key, int], admission: Admission) -> list[Unit]:
    """Return replicas with those that are to be added; those that are to be removed say so.

    Removed are those of the node that hosts most of the workload, one after another.

    Raises
    ------
    UsageError
        A workload is not among the running Deployments, or not all of its pods are ready: its
        ReplicaSet would end such a one first; or a quota has no room for them.
    """
    running = {
        owner[::2]: mine
        for owner, mine in grouped(found, lambda unit: unit.owner).items()
        if owner[1] == _SCALED and any(unit.pod for unit in mine)
    }
    added: list[Unit] = []
    removed: set[int] = set()
    for key, count in wanted.items():
        label = "/".join(key)
        if key not in running:
            near = did_you_mean(label, ["/".join(k) for k in running][:50])
            raise UsageError(f"--replicas {label}: no {_SCALED} of that name runs; {near}")
        mine = running[key]
        if not all(unit.node and unit.ready for unit in mine):
            raise UsageError(f"--replicas {label}: not all of its pods are ready; wait for them")
        more = _more(mine, count - len(mine))
        for unit in more:
            if why := admission.why_no_copy(unit.namespace, unit.spec):
                raise UsageError(f"--replicas {label}: {why}")
            admission.take(unit.namespace, unit.spec)
        added += more
        removed |= {id(unit) for unit in _last(mine, len(mine) - count)}
        note("assumption", "workloads that shall have as many replicas as --replicas", label)
    kept = (replace(u, removed=True, stays="") if id(u) in removed else u for u in found)
    return [*kept, *added]


def _more(mine: Sequence[Unit], count: int) -> list[Unit]:
    """Return new replicas of a workload."""
    like, names = mine[0], {unit.name for unit in mine}
    free = (name for k in range(1, count + len(mine) + 1) if (name := _name(like, k)) not in names)
    return [
        replace(like, name=next(free), pod=None, node=None, uid=None, stays="", ready=True)
        for _ in range(max(0, count))
    ]


def _name(like: Unit, k: int) -> str:
    return f"{like.workload}-added-{k}"


def _last(mine: Sequence[Unit], count: int) -> list[Unit]:
    """Return the replicas of a workload that are to be removed; nothing holds them then."""
    left, found = list(mine), list[Unit]()
    for _ in range(count):
        crowd = Counter(unit.node for unit in left)
        found.append(max(left, key=lambda unit: (crowd[unit.node], unit.name)))
        left = [unit for unit in left if unit is not found[-1]]
    return found
