"""How many volumes of a driver nodes attach, as resources of a rolling update.

A volume that several pods of a node use is attached once. What stays is counted so, and taken off
the limit of its node; what may move takes one for each of its volumes, which is never too little.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from placeopt.kubernetes.gathered import Gathered
from placeopt.kubernetes.units import Unit
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
    """

    left: dict[str, dict[str, int]] = field(default_factory=dict)
    asked: dict[int, dict[str, int]] = field(default_factory=dict)


def attach_room(g: Gathered) -> AttachRoom:
    """Return the volumes that nodes may attach; pins what shares volumes on nodes that are full."""
    limits = limits_of(g.cluster, list(g.site.nodes.values()))
    moving = {u.node for u in g.site.units if u.attached and not u.stays}
    if not moving:
        return AttachRoom()
    for name in moving:
        if name is not None:
            _pin_sharers(g, name, limits[name])
    found, staying = AttachRoom(), _staying(g)
    drivers = sorted({a.driver for u in g.site.units if not u.stays for a in u.attached})
    for name, known in limits.items():
        taken = Counter(a.driver for a in staying.get(name, ()))
        found.left[name] = {
            RESOURCE + driver: max(0, known[driver] - taken[driver]) if driver in known else _MANY
            for driver in drivers
        }
    for k, unit in enumerate(g.site.units):
        if unit.attached and not unit.stays:
            found.asked[k] = {RESOURCE + d: n for d, n in _drivers_of(unit).items()}
            text = "volumes that their node attaches, at most as many as its CSINode allows"
            g.notes.add("kept", text, unit.label)
    return found


def _drivers_of(unit: Unit) -> Counter[str]:
    return Counter(a.driver for a in unit.attached)


def _staying(g: Gathered) -> dict[str, set[Attached]]:
    """Return what nodes attach for what stays, or for nobody."""
    found: dict[str, set[Attached]] = {}
    moving: dict[str, set[Attached]] = {}
    for unit in g.site.units:
        if unit.node is not None:
            side = found if unit.stays else moving
            side.setdefault(unit.node, set()).update(unit.attached)
    for unit, name in g.site.residents:
        found.setdefault(name, set()).update(unit.attached)
    for name, one in attachments(g.cluster):
        if one not in moving.get(name, ()):
            found.setdefault(name, set()).add(one)
    return found


def _pin_sharers(g: Gathered, name: str, limits: dict[str, int]) -> None:
    """Pin what may move off a node that is full only as shared volumes are counted once each."""
    here = [u for u in g.site.units if u.node == name and not u.stays and u.attached]
    for driver, most in limits.items():
        mine = [u for u in here if any(a.driver == driver for a in u.attached)]
        count = sum(_drivers_of(u)[driver] for u in mine)
        apart = {a for u in mine for a in u.attached if a.driver == driver}
        held = {a for a in _staying(g).get(name, ()) if a.driver == driver}
        if count + len(held) > most >= len(apart | held):
            why = "pods that share volumes on a node that attaches no more"
            for unit in mine:
                unit.stays = unit.stays or why
                g.notes.add("pinned", why, unit.label)
