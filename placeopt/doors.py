"""Which doors there are: ours by name, others' through entry points.

A distribution adds one by the entry point group ``placeopt.doors``, which names a `Door`. Nothing
else of placeopt imports what is behind a door.
"""

from __future__ import annotations

from functools import cache

from placeopt.core.door import Door
from placeopt.core.spec import load, records

#: Our packages that are doors.
PACKAGES = ("kubernetes", "backtest")


@cache
def doors() -> tuple[Door, ...]:
    """Return the doors: ours first, then those of other distributions; of one name the first."""
    results = [load(f"placeopt.{name}:DOOR") for name in PACKAGES]
    results += records("placeopt.doors", Door)
    named: dict[str, Door] = {}
    for door in results:
        named.setdefault(door.name, door)
    return tuple(named.values())
