"""Latencies between places in ms: from a CSV table, or the costs of a NetworkTopology."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from placeopt.core.errors import DocumentError
from placeopt.core.files.paths import AnyPath
from placeopt.kubernetes.notes import note
from placeopt.kubernetes.objects import KubernetesNode
from placeopt.kubernetes.reading import LABEL, NAME, View
from placeopt.kubernetes.tables import TableRow, read_rows

_ZONE, _REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"


@dataclass
class Latencies:
    """Milliseconds from place to place; a place is a node, a zone or a region."""

    table: dict[str, dict[str, float]] = field(default_factory=dict)

    def between_places(self, one: str, other: str) -> float | None:
        """Return the latency between two places, either way, None where none is given."""
        forth, back = self.table.get(one, {}).get(other), self.table.get(other, {}).get(one)
        return forth if back is None else back if forth is None else max(forth, back)

    def between(self, one: KubernetesNode, other: KubernetesNode) -> float | None:
        """Return the latency between two nodes in ms, None where none is given.

        It is known by their names, else by their zones, else by their regions; 0 inside a zone.
        """
        if one.name == other.name:
            return 0.0
        for a, b in ((one.name, other.name), (one.zone, other.zone), (one.region, other.region)):
            if a is None or b is None:
                continue
            known = self.between_places(a, b)
            if known is not None:
                return known
            if a == b and a == one.zone:
                return 0.0
        return None


def latencies(path: AnyPath | None, topologies: Iterable[View]) -> Latencies:
    """Read a table of latencies; costs of NetworkTopology objects fill in what it does not have.

    Raises
    ------
    DocumentError
        Names the file, the line and what is wrong.
    """
    result = Latencies()
    for view in topologies:
        _read_topology(view, result)
    if path is not None:
        _read_table(path, result)
    for one, row in result.table.items():
        if any(result.table.get(other, {}).get(one, ms) != ms for other, ms in row.items()):
            note("assumption", "latencies that differ by direction: the larger counts", one)
    return result


def _read_table(path: AnyPath, found: Latencies) -> None:
    lines = 0

    def use(row: TableRow) -> None:
        nonlocal lines
        lines += 1
        first, *places = row.cells
        origin = row.cells[first]
        for name in (origin, *places) if lines == 1 else (origin,):
            if not name or not (NAME.fullmatch(name) or LABEL.fullmatch(name)):
                raise row.fault(f"{name[:60]!a} is no place", "name nodes, zones or regions")
        for place in places:
            ms = row.number(place)
            if ms is not None:
                found.table.setdefault(origin, {})[place] = float(ms)

    read_rows(path, (), None, use)
    if not lines:
        raise DocumentError(
            "no rows below the header",
            file=str(path),
            path="line 1",
            remedy="row = origin, column = destination, cells in ms",
        )


def _read_topology(view: View, found: Latencies) -> None:
    for weights in view["spec"]["weights"].items():
        if weights["name"].text("UserDefined") != "UserDefined":
            note(
                "ignored",
                "NetworkTopology: weights other than UserDefined",
                weights["name"].text()[:60],
            )
            continue
        lists = list(weights["costList"].items()) or list(weights["topologyList"].items())
        for costs in lists:
            if costs["topologyKey"].text() not in (_ZONE, _REGION):
                note(
                    "ignored",
                    "NetworkTopology: costs by other keys than zone and region",
                    costs["topologyKey"].text()[:100],
                )
                continue
            for origin in (costs["originCosts"] or costs["originList"]).items():
                _read_costs(origin, found)
    note("assumption", "the networkCost of a NetworkTopology is taken as ms")


def _read_costs(origin: View, found: Latencies) -> None:
    here = _place(origin, "origin")
    for cost in (origin["costs"] or origin["costList"]).items():
        there = _place(cost, "destination")
        found.table.setdefault(here, {})[there] = cost["networkCost"].number(0.0)


def _place(view: View, key: str) -> str:
    place = view[key].text()
    if not place or not LABEL.fullmatch(place):
        raise view.fault(
            f"{place[:60]!a} is no zone or region", f"give {key}: the value of a label"
        )
    return place
