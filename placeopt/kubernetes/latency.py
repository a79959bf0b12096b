"""Latencies between places in ms, from a CSV table."""

from __future__ import annotations

from dataclasses import dataclass, field

from placeopt.core.errors import DocumentError
from placeopt.core.files.paths import AnyPath
from placeopt.kubernetes.faults import Faults
from placeopt.kubernetes.notes import note
from placeopt.kubernetes.objects import KubernetesNode
from placeopt.kubernetes.reading import LABEL, NAME
from placeopt.kubernetes.tables import decimal, lines
from placeopt.kubernetes.yaml_reading import fault


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


def latencies(path: AnyPath | None) -> Latencies:
    """Read a table of latencies.

    Raises
    ------
    DocumentError
        Names the file, the line and what is wrong.
    """
    result = Latencies()
    if path is not None:
        _read_table(path, result)
    for one, row in result.table.items():
        if any(result.table.get(other, {}).get(one, ms) != ms for other, ms in row.items()):
            note("assumption", "latencies that differ by direction: the larger counts", one)
    return result


def _read_table(path: AnyPath, found: Latencies) -> None:
    listed, faults = list(lines(path)), Faults()
    for k, (file, line, cells) in enumerate(listed):
        with faults.gather():
            (_, origin), *row = cells().items()
            for name in (origin, *(place for place, _ in row)) if k == 0 else (origin,):
                if not name or not (NAME.fullmatch(name) or LABEL.fullmatch(name)):
                    what = f"{name[:60]!a} is no place"
                    raise fault(file, line, what, "name nodes, zones or regions")
            for place, text in row:
                ms = decimal(text) if text else None
                if text and (ms is None or not 0 <= ms <= 10**9):
                    remedy = "legal: a number, 0 to 1e9"
                    raise fault(file, line, f"{place} is {text[:60]!a}", remedy)
                if ms is not None:
                    found.table.setdefault(origin, {})[place] = float(ms)
    faults.check()
    if not listed:
        raise DocumentError(
            "no rows below the header",
            file=str(path),
            path="line 1",
            remedy="row = origin, column = destination, cells in ms",
        )
