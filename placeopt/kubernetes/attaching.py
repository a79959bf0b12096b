"""How many volumes of a driver nodes attach, as resources of a rolling update.

A volume that several pods of a node use is attached once. What stays is counted so, and taken off
the limit of its node; what may move takes one for each of its volumes, which is never too little.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container
from dataclasses import dataclass, field

from placeopt.kubernetes.cluster import ReadCluster
from placeopt.kubernetes.notes import note
from placeopt.kubernetes.replicas import Replica
from placeopt.kubernetes.volumes import RESOURCE, Attached, attachments, limits_of

#: What nodes without a limit attach.
_MANY = 10**9


@dataclass
class AttachRoom:
    """Volumes by resource name: what each node may attach further, and what replicas ask for.

    Attributes
    ----------
    left : dict of str to dict
        By node; no node where no replica that may move asks for any.
    asked : dict of int to dict
        By the place of a replica among the units of the site.
    held : dict of int to str
        Why replicas have to stay, by their id.
    """

    left: dict[str, dict[str, int]] = field(default_factory=dict)
    asked: dict[int, dict[str, int]] = field(default_factory=dict)
    held: dict[int, str] = field(default_factory=dict)


def attach_room(cluster: ReadCluster) -> AttachRoom:
    """Return the volumes that nodes may attach, and what has to stay for that.

    What shares volumes on a node that is full stays: counted one by one, they were too many.
    """
    here = cluster.site.units
    if not any(unit.attached and not unit.stays for unit in here):
        return AttachRoom()
    limits = limits_of(cluster.objects, list(cluster.site.nodes.values()))
    held: dict[int, str] = {}
    for name in sorted({u.node for u in here if u.node and u.attached and not u.stays}):
        for unit in _sharers(cluster, name, limits[name]):
            held[id(unit)] = "pods that share volumes on a node that attaches no more"
            note("pinned", held[id(unit)], unit.label)
    staying = _staying(cluster, held)
    free = [(k, u) for k, u in enumerate(here) if not u.stays and id(u) not in held]
    drivers = sorted({a.driver for _, unit in free for a in unit.attached})
    result = AttachRoom(held=held)
    for name, known in limits.items():
        taken = Counter(a.driver for a in staying.get(name, ()))
        result.left[name] = {
            RESOURCE + driver: max(0, known[driver] - taken[driver]) if driver in known else _MANY
            for driver in drivers
        }
    for k, unit in free:
        if unit.attached:
            result.asked[k] = {RESOURCE + d: n for d, n in _drivers_of(unit).items()}
            text = "volumes that their node attaches, at most as many as its CSINode allows"
            note("kept", text, unit.label)
    return result


def _drivers_of(unit: Replica) -> Counter[str]:
    return Counter(a.driver for a in unit.attached)


def _staying(cluster: ReadCluster, held: Container[int] = ()) -> dict[str, set[Attached]]:
    """Return what nodes attach for what stays, or for nobody."""
    results: dict[str, set[Attached]] = {}
    moving: dict[str, set[Attached]] = {}
    for unit in cluster.site.units:
        if unit.node is not None:
            side = results if unit.stays or id(unit) in held else moving
            side.setdefault(unit.node, set()).update(unit.attached)
    for unit, name in cluster.site.residents:
        results.setdefault(name, set()).update(unit.attached)
    for name, one in attachments(cluster.objects):
        if one not in moving.get(name, ()):
            results.setdefault(name, set()).add(one)
    return results


def _sharers(cluster: ReadCluster, name: str, limits: dict[str, int]) -> list[Replica]:
    """Return what may move off a node that is not too full if shared volumes count once each."""
    here = [u for u in cluster.site.units if u.node == name and not u.stays and u.attached]
    results = []
    for driver, most in limits.items():
        own = [u for u in here if any(a.driver == driver for a in u.attached)]
        count = sum(_drivers_of(u)[driver] for u in own)
        apart = {a for u in own for a in u.attached if a.driver == driver}
        others = {a for a in _staying(cluster).get(name, ()) if a.driver == driver}
        if count + len(others) > most >= len(apart | others):
            results += own
    return results
