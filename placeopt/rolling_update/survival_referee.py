"""The referee of survival: what is left of a deployment when any one node is lost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from placeopt.rolling_update.arrays import UpdateArrays
from placeopt.rolling_update.document import UpdateSurvival

#: Of each group that a node hosts too many copies of: its name, the copies left, those needed.
Short = dict[int, list[tuple[str, int, int]]]


class SurvivalReferee:
    """Judges where copies are at the end.

    Parameters
    ----------
    arrays : UpdateArrays
    groups : sequence of sequence of str, length M
    survival : UpdateSurvival
    """

    def __init__(
        self, arrays: UpdateArrays, groups: Sequence[Sequence[str]], survival: UpdateSurvival
    ):
        self.arrays, self.survival = arrays, survival
        self.members: dict[str, list[int]] = {group: [] for group in survival.needs}
        for m, mine in enumerate(groups):
            for group in mine:
                if group in self.members:
                    self.members[group].append(m)

    def short(self, where: Sequence[int]) -> Short:
        """Return the nodes whose loss leaves a group too few copies, and of which groups.

        `where` has the node of every microservice, -1 for none.
        """
        found: Short = {}
        for group, members in self.members.items():
            need = self.survival.needs[group]
            for n, count in Counter(where[m] for m in members).items():
                if 0 <= n != self.arrays.waiting and len(members) - count < need:
                    found.setdefault(n, []).append((group, len(members) - count, need))
        return found

    def values(self, where: Sequence[int]) -> tuple[float, ...]:
        """Return the copies that are needed and lost with the worst node; nothing if not asked."""
        if not self.survival.needs:
            return ()
        lost = (sum(need - left for _, left, need in x) for x in self.short(where).values())
        return (float(max(lost, default=0)),)

    def crowded(self, where: Sequence[int], need: Sequence[int]) -> list[tuple[str, float]]:
        """Return (sentence, relative excess) of each resource that some loss leaves too little of.

        Parameters
        ----------
        where : sequence of int, length M
        need : sequence of int, length R
            What all that runs asks for together.
        """
        if not self.survival.room:
            return []
        used = set(where) - {-1, self.arrays.waiting}
        used |= {n for n, stands in enumerate(self.arrays.survival.standing) if stands}
        return self._crowded(sorted(used), need, "the others in use have")

    def why_not(self, need: Sequence[int]) -> list[str]:
        """Return why no deployment can have room without any one of its nodes."""
        if not self.survival.room:
            return []
        every = [n for n, drains in enumerate(self.arrays.drain) if not drains]
        return [text for text, _ in self._crowded(every, need, "all others have")]

    def _crowded(
        self, nodes: Sequence[int], need: Sequence[int], have: str
    ) -> list[tuple[str, float]]:
        found, a = [], self.arrays
        for r, (resource, asked) in enumerate(zip(a.resources, need, strict=True)):
            rooms = {n: int(a.capacity[n, r]) for n in nodes}
            worst = max(rooms, key=lambda n: rooms[n], default=-1)
            left = sum(rooms.values()) - rooms.get(worst, 0)
            if asked > left:
                name = repr(a.node_names[worst]) if worst >= 0 else "any"
                text = f"without node {name} {have} {left} {resource}; what runs needs {asked}"
                found.append((text, min(1.0, asked / max(1, left) - 1)))
        return found
