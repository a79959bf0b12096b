"""What is paid for already: nodes whose price is due whether or not they are used.

Reserved instances, savings plans and committed use discounts as CSV: ``machine_type`` and either
``nodes``, a number, or ``share``, a share of the nodes that the cluster has now, and if wanted
``region``. ``*`` and ``?`` in a machine type stand for any characters. A commitment holds for any
node on demand of its machine types, so which nodes it is counted for is a choice: those first that
are to stay in use, then those with most on them. A node that is to be drained comes last.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from fnmatch import fnmatchcase
from typing import Annotated

from pydantic import model_validator

from placeopt.core.files.paths import AnyPath
from placeopt.kubernetes.capacity import NodeCapacity
from placeopt.kubernetes.labels import ON_DEMAND, lease_of
from placeopt.kubernetes.notes import note
from placeopt.kubernetes.objects import KubernetesNode
from placeopt.kubernetes.tables import CellError, TableRow, Word, number, rows


class Commitment(TableRow):
    """A commitment for machine types: a number of nodes, or a share of those that are there."""

    machine_type: str
    region: Word | None = None
    nodes: Annotated[Decimal, number("100000")] | None = None
    share: Annotated[Decimal, number("1")] | None = None

    @model_validator(mode="after")
    def _one_of_two(self) -> Commitment:
        if (self.nodes is None) == (self.share is None):
            raise CellError("neither nodes nor share, or both", "fill in one of the two")
        return self

    def covers(self, node: KubernetesNode, region: str | None) -> bool:
        """Return whether the commitment holds for a node; `region` is of nodes that name none."""
        return (
            fnmatchcase(node.instance_type or "", self.machine_type)
            and self.region in (None, node.region or region)
            and lease_of(node.meta.labels) == ON_DEMAND
        )

    def amount(self, there: int) -> Decimal:
        """Return how many nodes are paid for, of `there` that the cluster has."""
        return self.nodes if self.nodes is not None else (self.share or Decimal(0)) * there


def read_commitments(path: AnyPath) -> list[Commitment]:
    """Return the commitments of a CSV file.

    Raises
    ------
    DocumentError
        Names the file, the line and what is legal.
    """
    seen = set[tuple[str, str | None]]()

    def use(row: Commitment) -> None:
        if (row.machine_type, row.region) in seen:
            raise row.fault(f"{row.machine_type[:60]} stands twice", "keep one of the two")
        seen.add((row.machine_type, row.region))

    return rows(path, Commitment, use)


def paid_shares(
    commitments: Sequence[Commitment],
    here: NodeCapacity,
    prices: Mapping[str, float],
    region: str | None,
) -> dict[str, float]:
    """Return the share of each node that is paid for already, 0 to 1; nodes with none are absent.

    Parameters
    ----------
    commitments : sequence of Commitment
    here : NodeCapacity
        The nodes and the replicas on them.
    prices : mapping of str to float
        Prices of nodes: of several machine types the dearest count first.
    region : str, optional
        Of nodes that name none.
    """
    stays = {u.node for u in here.units if u.stays and u.node}
    load: dict[str | None, float] = {}
    for unit in here.units:
        room = here.room.get(unit.node or "")
        if room is not None:
            load[unit.node] = load.get(unit.node, 0.0) + unit.size.cpu / max(1, room.cpu)
    paid: dict[str, Decimal] = {}
    for commitment in commitments:
        own = [n for n in here.nodes.values() if commitment.covers(n, region)]
        left = commitment.amount(sum(not n.candidate for n in own))
        own.sort(
            key=lambda n: (
                n.candidate,
                n.name in here.drain,
                n.name not in stays,
                -prices[n.name],
                -load.get(n.name, 0.0),
            )
        )
        counted = []
        for node in own:
            share = min(left, 1 - paid.get(node.name, Decimal(0)))
            if share > 0:
                paid[node.name] = paid.get(node.name, Decimal(0)) + share
                left -= share
                counted.append(node.name)
        _tell(commitment, counted, left)
    return {name: float(share) for name, share in paid.items()}


def _tell(commitment: Commitment, counted: Sequence[str], left: Decimal) -> None:
    kind = commitment.machine_type
    for name in counted:
        text = f"paid for already ({kind}, --commitments): freeing such a node saves nothing"
        note("assumption", text, name)
    if left > 0:
        text = f"commitments for more {kind} than there are: they are paid for and not used"
        note("assumption", text, f"{left.normalize():f} nodes")
