"""What a plan of a rolling update means in money: by namespace, on spot nodes, and on the way.

A node's price is shared by the pods on it: half by their cpu, half by their memory, what is idle
with them. So the namespaces together pay what the nodes in use cost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from placeopt.kubernetes.labels import SPOT, lease_of
from placeopt.kubernetes.origin import NodeOrigin
from placeopt.rolling_update.fleet_change import HOURS_OF_A_MONTH

#: Minutes that a step is taken to last: a pod starts, is ready, and the old one ends.
STEP_MINUTES = 2.0
#: The row that takes off what commitments pay.
COVERED = "paid for already (commitments)"


@dataclass(frozen=True)
class SpotUse:
    """Nodes in use, now or at the end, and those of them that are spot.

    Attributes
    ----------
    nodes, spot : int
    interruptions : float or None
        How many spot nodes are taken away in a month, as expected; None where no rate is known.
    unknown : int
        Spot nodes without a rate.
    """

    nodes: int
    spot: int
    interruptions: float | None
    unknown: int

    @property
    def share(self) -> float:
        """The share of spot nodes."""
        return self.spot / self.nodes if self.nodes else 0.0


@dataclass(frozen=True)
class Transition:
    """What runs twice while the plan is carried out.

    Attributes
    ----------
    nodes : int
        Nodes that are newly used, beside those that are freed only at the end.
    price : float
        Their price an hour.
    hours : float
        How long the steps take, one after another, at `STEP_MINUTES` each.
    """

    nodes: int
    price: float
    hours: float

    @property
    def cost(self) -> float:
        """What is paid twice."""
        return self.price * self.hours


def spot_use(used: Sequence[str], nodes: Mapping[str, NodeOrigin]) -> SpotUse:
    """Return how many of the nodes in use are spot."""
    spot = [nodes[n] for n in used if n in nodes and lease_of(nodes[n].labels) == SPOT]
    rates = [node.interruptions for node in spot if node.interruptions is not None]
    expected = float(sum(rates)) if rates or not spot else None
    return SpotUse(len(used), len(spot), expected, len(spot) - len(rates))


@dataclass(frozen=True)
class NamespaceCost:
    """What a namespace costs in a month, now and at the end."""

    name: str
    now: float
    after: float

    @property
    def change(self) -> float:
        """How much more it costs at the end; below 0 it costs less."""
        return self.after - self.now


@dataclass(frozen=True)
class Deployed:
    """Where the pods of a rolling update are at one time.

    Attributes
    ----------
    where : array of int, shape (M,)
        Node of each pod, -1 for none.
    size : array, shape (M, >= 2)
        What each pod asks for: cpu and memory first.
    """

    where: np.ndarray
    size: np.ndarray

    def costs(self, prices: np.ndarray, owner: Sequence[str]) -> dict[str, float]:
        """Return owner -> its part of the prices of the nodes in use, shape (N,).

        `owner` says for each pod who pays.
        """
        there = self.where >= 0
        at, parts = self.where[there], np.zeros(int(there.sum()))
        count = np.bincount(at, minlength=len(prices))[at]
        for amount in self.size[there, :2].astype(float).T:
            total = np.bincount(at, amount, minlength=len(prices))[at]
            parts += np.where(total > 0, amount / np.maximum(total, 1e-9), 1 / count) / 2
        results: dict[str, float] = {}
        for m, n, part in zip(np.flatnonzero(there).tolist(), at, parts, strict=True):
            results[owner[m]] = results.get(owner[m], 0.0) + float(part * prices[n])
        return results


def namespace_costs(
    now: Deployed, after: Deployed, owner: Sequence[str], prices: np.ndarray, paid: np.ndarray
) -> list[NamespaceCost]:
    """Return the costs by namespace, the dearest first; the last row is what commitments pay.

    Parameters
    ----------
    now, after : Deployed
    owner : sequence of str
        Namespace of each pod.
    prices, paid : arrays, shape (N,)
        Price of each whole node an hour, and the share of it that a commitment covers.
    """
    sides = [one.costs(prices, owner) for one in (now, after)]
    covered = []
    for one in (now, after):
        used = np.unique(one.where[one.where >= 0])
        covered.append(-float((prices * paid)[used].sum()))
    rows = [
        NamespaceCost(name, *(side.get(name, 0.0) * HOURS_OF_A_MONTH for side in sides))
        for name in dict.fromkeys([*sides[0], *sides[1]])
    ]
    rows.sort(key=lambda row: (-max(row.now, row.after), row.name))
    if any(covered):
        rows.append(NamespaceCost(COVERED, *(part * HOURS_OF_A_MONTH for part in covered)))
    return rows
