"""Plans in parts, best first: the least latency that so many moves allow, from below.

A part leaves each service some of its rows. Prices bound it, and leave out the rows through which
the bound is high enough already. Then the part is cut in two by how many replicas of a service may
stand in some classes of nodes: where the prices want a mixture of both. Several cuts are tried for
a few steps; the one stays that raises both sides. The least bound of the parts that are left holds
for all plans.
"""

from __future__ import annotations

import heapq
from typing import NamedTuple

import numpy as np

from placeopt.rescheduling import ascent
from placeopt.rescheduling.priced_tree import Multipliers, bound, build, empty_tables, even
from placeopt.rescheduling.relaxation import NodeClasses

#: Steps of the first part between two looks at its rows, how often, and steps of other parts.
_FIRST_STEPS, _FIRST_LOOKS, _STEPS = 10, 12, 20
#: A look that gains less than this part of the latency is the last one.
_STALLED = 1e-5
#: Cuts that are tried, the steps for each, and the least gain that counts, of the latency.
_TRIED, _TRY_STEPS, _GAIN = 8, 4, 1e-4
#: What the number of replicas in one class counts beside that in classes near to each other.
_ONE_CLASS = 0.01
#: Parts that are kept.
_MOST_PARTS = 5000


class PlansPart(NamedTuple):
    """Some of the plans; parts compare by their bounds."""

    bound: float
    number: int
    left: np.ndarray  # bool (rows,)
    multipliers: Multipliers
    mean: np.ndarray  # (rows,)
    pace: tuple[float, float]


class _Cut(NamedTuple):
    """A service in two: rows whose feature is above a limit, and the others."""

    service: int
    feature: int
    limit: int


class Workspace:
    """What the questions of one instance share; `evaluations` counts the bounds."""

    def __init__(self, relaxed: NodeClasses):
        self.most = relaxed.most
        self.tree = build(relaxed)
        self.now, self.kept = even(self.tree), even(self.tree)
        self.tables = empty_tables(self.tree, relaxed.most)
        self.features, self.factors = _features(relaxed.delay, self.tree.counts)

    @property
    def evaluations(self) -> int:
        """The number of bounds that were computed."""
        return int(self.tables.pace[2])

    def set(self, part: PlansPart) -> bool:
        """Take over a part; return whether all services have rows."""
        for multipliers in (self.now, self.kept):
            for mine, other in zip(multipliers, part.multipliers, strict=True):
                mine[:] = other
        self.tables.mean[:] = part.mean
        self.tables.pace[:2] = part.pace
        self.tables.rows[:] = np.arange(len(part.left))
        self.tables.size[:] = np.diff(self.tree.first)
        return bool(ascent.leave(self.tree, self.tables, part.left))


class LatencyQuestion:
    """A lower bound on the latency of plans of at most `moves` moves, which `go_on` raises.

    Parameters
    ----------
    workspace : Workspace
    moves : int
        More than ``workspace.most`` stands for any number.
    latency : float
        Latency of the best plan, ms.
    enough : float
        The search stops at this bound, ms.
    start : Multipliers or None
        The first multipliers; without them prices are 0 and groups count alike.

    Attributes
    ----------
    parts : int
        The number of parts that were looked at, besides the first.
    """

    def __init__(
        self,
        workspace: Workspace,
        moves: int,
        latency: float,
        enough: float,
        start: Multipliers | None,
    ):
        self.space, self.latency, self.enough = workspace, latency, enough
        self.tree, self.most = workspace.tree, moves
        if moves > workspace.most:
            self.tree = self.tree._replace(moves=np.zeros_like(self.tree.moves))
            self.most = 0
        rows = len(self.tree.moves)
        first = _copied(start or even(self.tree))
        self._first: PlansPart | None = PlansPart(
            -np.inf, 0, np.ones(rows, dtype=bool), first, np.zeros(rows), (1.0, 0.0)
        )
        self.start = first
        self.parts = self._looks = self._number = 0
        self._open: list[PlansPart] = []
        self._settled = enough

    @property
    def bound(self) -> float:
        """The lower bound so far, ms; at most `enough`."""
        least = self._first or (self._open[0] if self._open else None)
        return min(self._settled, least.bound if least else np.inf)

    @property
    def ended(self) -> bool:
        """Whether the bound will not rise any more."""
        no_more = self._first is None and not self._open
        return no_more or self._settled <= self.bound or len(self._open) > _MOST_PARTS

    def go_on(self) -> None:
        """Raise the first part, or cut the part with the least bound."""
        if self._first is None:
            self._cut(heapq.heappop(self._open))
            return
        before, self._looks = self._first.bound, self._looks + 1
        self._first = self._raised(self._first, _FIRST_STEPS)
        if self._first is None:
            return
        self.start = self._first.multipliers
        stalled = self._looks > 3 and self._first.bound - before < _STALLED * self.latency
        if self._looks == _FIRST_LOOKS or stalled:
            heapq.heappush(self._open, self._first)
            self._first = None

    def _raised(self, part: PlansPart, steps: int) -> PlansPart | None:
        """Return a part with a higher bound and fewer rows; None where none is needed."""
        space, tree, tables = self.space, self.tree, self.space.tables
        if not space.set(part) or not ascent.drop_crowding(tree, tables):
            return None
        value = self._ascend(part.bound, steps)
        if value >= self.enough:
            return None
        pace = (float(tables.pace[0]), float(tables.pace[1]))
        ascent.keep(space.kept, space.now)
        bound(tree, space.now, tables, self.most)
        ascent.measure_rows(tree, space.now, tables, self.most)
        if not ascent.leave(tree, tables, tables.through < self.enough):
            return None
        if not ascent.drop_crowding(tree, tables):
            return None
        left = np.zeros(len(part.left), dtype=bool)
        ascent.mark(tree, tables, left)
        self._number += 1
        kept = _copied(space.kept)
        return PlansPart(value, self._number, left, kept, tables.mean * left, pace)

    def _ascend(self, best: float, steps: int) -> float:
        space = self.space
        return float(
            ascent.ascend(
                self.tree,
                space.now,
                space.kept,
                space.tables,
                self.most,
                self.latency,
                self.enough,
                best,
                steps,
            )
        )

    def _cut(self, part: PlansPart) -> None:
        """Put the two sides of the best cut in the place of a part."""
        part = part._replace(pace=(1.0, 0.0))
        cuts = self._cuts(part)
        if not cuts:  # one deployment
            self._settled = min(self._settled, part.bound)
            return
        best = max(cuts, key=lambda cut: self._gain(part, cut)) if len(cuts) > 1 else cuts[0]
        for upper in (False, True):
            if self._halved(part, best, upper):
                left = np.zeros(len(part.left), dtype=bool)
                ascent.mark(self.tree, self.space.tables, left)
                self.parts += 1
                raised = self._raised(part._replace(left=left), _STEPS)
                if raised is not None:
                    heapq.heappush(self._open, raised)

    def _cuts(self, part: PlansPart) -> list[_Cut]:
        """Return cuts of a part, those first whose service and feature are torn most."""
        space = self.space
        space.set(part)
        bound(self.tree, space.now, space.tables, self.most)  # for how often services count
        limits = np.zeros((len(space.features), len(space.tables.size)), dtype=np.int64)
        scores = np.zeros(limits.shape)
        for k, feature in enumerate(space.features):
            ascent.measure_halves(self.tree, space.tables, feature, limits[k], scores[k])
            scores[k] *= space.factors[k]
        order = np.argsort(-scores, axis=None, kind="stable")[:_TRIED]
        places = zip(*np.unravel_index(order, scores.shape), strict=True)
        return [_Cut(int(i), int(k), int(limits[k, i])) for k, i in places if scores[k, i] >= 0]

    def _halved(self, part: PlansPart, cut: _Cut, upper: bool) -> bool:
        """Take over one side of a part; return whether it may have a plan."""
        stays, tree = part.left.copy(), self.tree
        own = slice(tree.first[cut.service], tree.first[cut.service + 1])
        stays[own] &= (self.space.features[cut.feature][own] > cut.limit) == upper
        if not self.space.set(part._replace(left=stays)):
            return False
        return bool(ascent.drop_crowding(tree, self.space.tables))

    def _gain(self, part: PlansPart, cut: _Cut) -> float:
        """Return how much a cut raises both sides, the product of both gains."""
        product = 1.0
        for upper in (False, True):
            value = self.enough
            if self._halved(part, cut, upper):
                value = min(value, self._ascend(part.bound, _TRY_STEPS))
            product *= max(value - part.bound, _GAIN * self.latency)
        return product


def _copied(multipliers: Multipliers) -> Multipliers:
    return Multipliers(*(array.copy() for array in multipliers))


def _features(delay: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return what cuts look at, (features, rows), and what each counts.

    These are the replicas in classes that are near to each other, and in single classes.
    """
    near, groups = (delay + delay.T) / 2 < delay.mean(), []
    for k in range(len(delay)):
        group = {k}
        while (wider := {int(j) for i in group for j in np.flatnonzero(near[i])} | group) != group:
            group = wider
        if sorted(group) not in groups:
            groups.append(sorted(group))
    wide = [group for group in groups if len(group) > 1]
    features = [counts[:, group].sum(axis=1) for group in wide[: max(1, len(groups) - 1)]]
    factors = np.array([1.0] * len(features) + [_ONE_CLASS] * counts.shape[1])
    return np.stack([*features, *counts.T]), factors
