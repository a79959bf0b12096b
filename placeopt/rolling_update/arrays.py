"""A rolling-update instance as arrays: for the referee, the models and the kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from placeopt.core.fronts.dominance import minimal
from placeopt.rolling_update.document import (
    NodeLimit,
    UpdateApplication,
    UpdateMicroservice,
    UpdateNode,
    UpdateRule,
    UpdateSurvival,
)
from placeopt.rolling_update.fleet_arrays import FleetArrays
from placeopt.rolling_update.limits.tables import NodeLimits
from placeopt.rolling_update.rules.tables import RuleTables, domains_of, residents_of, tables
from placeopt.rolling_update.survival.tables import Survival


class UpdateArrays(FleetArrays):
    """A fleet with the rules that its copies keep, what a loss leaves, and limits of nodes.

    Parameters
    ----------
    nodes, applications, cluster_latency_ms, strict
        As in `FleetArrays`.
    rules, node_sets, survival, limits
        As in the document.

    Attributes
    ----------
    rules : RuleTables
        The rules that must be kept, with the allowed nodes.
    free : bool array (M,)
        No rule that must be kept is about it, nor a set of allowed nodes.
    packed_rules, packed_wishes : int array
        These, and the soft ones, as kernels take them.
    survival : Survival
        What the loss of a node is to leave.
    limits : NodeLimits
        How much of some nodes may be used together.
    """

    def __init__(
        self,
        nodes: Sequence[UpdateNode],
        applications: Sequence[UpdateApplication],
        cluster_latency_ms: Mapping[str, Mapping[str, float]],
        strict: bool,
        rules: Sequence[UpdateRule] = (),
        node_sets: Mapping[str, Sequence[str]] | None = None,
        survival: UpdateSurvival | None = None,
        limits: Sequence[NodeLimit] = (),
    ):
        super().__init__(nodes, applications, cluster_latency_ms, strict)
        microservices = [m for a in applications for m in a.microservices]
        self._set_rules(nodes, microservices, rules, node_sets or {})
        standing = (self.price == 0) & ~self.drain
        groups = [() if m.removed else m.groups for m in microservices]
        self.survival = Survival(survival, groups, self.capacity[: len(nodes)], standing)
        used = np.bincount(self.home, minlength=len(self.price)) > 0
        self.limits = NodeLimits(limits, {n.name: k for k, n in enumerate(nodes)}, used)

    def _set_rules(
        self,
        nodes: Sequence[UpdateNode],
        microservices: Sequence[UpdateMicroservice],
        rules: Sequence[UpdateRule],
        node_sets: Mapping[str, Sequence[str]],
    ) -> None:
        number = {name: n for n, name in enumerate(self.node_names)}
        sets = {name: np.zeros(len(number), dtype=bool) for name in node_sets}
        for name, members in node_sets.items():
            sets[name][[number[n] for n in members]] = True
        domains = domains_of(nodes, self.cluster, rules)
        residents = residents_of(nodes, len(number))

        def made(soft: bool) -> RuleTables:
            return tables(
                [rule for rule in rules if rule.soft == soft],
                groups=[m.groups for m in microservices],
                allowed=[None if soft else m.allowed for m in microservices],
                node_sets=sets,
                domains=domains,
                residents=residents,
                home=self.home,
                num_nodes=len(number),
                removed=self.removed,
                priced=self.price > 0,
            )

        self.rules, wishes = made(False), made(True)
        wishes.forgiven[:] = False
        self.free: np.ndarray = (self.rules.node_set < 0) & ~self.rules.are_ruled()
        self.packed_rules, self.packed_wishes = self.rules.packed(), wishes.packed()

    def may_host(self, m: int | np.ndarray) -> np.ndarray:
        """Return on which nodes a new copy of microservice m has room by itself, bool (N,).

        Nodes that take nothing and those that it is not allowed on are none of them. Of several
        microservices, int array (k,), all rows, bool (k, N). What is removed goes nowhere.
        """
        size, own = self.new[m], self.rules.node_set[m]
        every = np.ones((1, len(self.shut)), dtype=bool)
        fits: np.ndarray = ~self.shut & np.concatenate((self.rules.allowed, every))[own]
        for r in range(size.shape[-1]):
            fits &= size[..., r, None] <= self.capacity[:, r]
        if self.removed.any():
            nowhere = np.arange(len(self.shut)) == self.waiting
            fits = np.where(self.removed[m][..., None], nowhere, fits)
        return fits

    def have_room(self) -> np.ndarray:
        """Return which microservices have some node as in `may_host`, bool (M,)."""
        result = np.zeros(len(self.home), dtype=bool)
        for s in np.unique(self.rules.node_set).tolist():
            legal = ~self.shut if s < 0 else ~self.shut & self.rules.allowed[s]
            largest = -minimal(-self.capacity[legal])
            own = np.flatnonzero(self.rules.node_set == s)
            result[own] = np.any(np.all(self.new[own, None] <= largest, axis=2), axis=1)
        return result
