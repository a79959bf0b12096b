"""The referee of survival: what is left of a deployment when any one node is lost.

Copies of a lost node start again one by one on the others in use, as a scheduler might do it: the
largest first, each where most is left of the resource that gets scarcest there, if room and rules
let it. One that finds no place is homeless. A packing may exist where this finds none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from placeopt.rolling_update.document import UpdateSurvival
from placeopt.rolling_update.fleet_arrays import FleetArrays
from placeopt.rolling_update.rules.referee import Copies, RuleReferee
from placeopt.rolling_update.survival.tables import Survival

#: Of each group that a node hosts too many copies of: its name, the copies left, those needed.
Short = dict[int, list[tuple[str, int, int]]]


class SurvivalReferee:
    """Judges where copies are at the end.

    Parameters
    ----------
    arrays : FleetArrays
    tables : Survival
        The standing nodes, and in which order copies look for a place.
    groups : sequence of sequence of str, length M
    survival : UpdateSurvival
    rules : RuleReferee
        Of the rules that must be kept.
    """

    def __init__(
        self,
        arrays: FleetArrays,
        tables: Survival,
        groups: Sequence[Sequence[str]],
        survival: UpdateSurvival,
        rules: RuleReferee,
    ):
        self.arrays, self.tables, self.survival, self.rules = arrays, tables, survival, rules
        self.members: dict[str, list[int]] = {group: [] for group in survival.needs}
        for m, own in enumerate(groups):
            for group in own:
                if group in self.members:
                    self.members[group].append(m)

    def short(self, where: Sequence[int]) -> Short:
        """Return the nodes whose loss leaves a group too few copies, and of which groups.

        `where` has the node of every microservice, -1 for none.
        """
        results: Short = {}
        for group, members in self.members.items():
            need = self.survival.needs[group]
            for n, count in Counter(where[m] for m in members).items():
                if 0 <= n != self.arrays.waiting and len(members) - count < need:
                    results.setdefault(n, []).append((group, len(members) - count, need))
        return results

    def values(self, where: Sequence[int]) -> tuple[float, ...]:
        """Return the copies that are needed and lost with the worst node; nothing if not asked."""
        if not self.survival.needs:
            return ()
        lost = (sum(need - left for _, left, need in x) for x in self.short(where).values())
        return (float(max(lost, default=0)),)

    def crowded(self, where: Sequence[int]) -> list[tuple[str, float]]:
        """Return (sentence, relative excess) of what some loss leaves without a place.

        Where the others have too little together that is said, else which copies are homeless.

        Parameters
        ----------
        where : sequence of int, length M
            The node of every microservice, at its new size; -1 for none.
        """
        if not self.survival.room:
            return []
        a = self.arrays
        here = [m for m, n in enumerate(where) if 0 <= n != a.waiting]
        need = a.new[here].sum(axis=0).tolist()
        if result := self._crowded(self._in_use(where), need, "the others in use have"):
            return result
        on_node = Counter(where)
        return [
            (f"without node {a.node_names[n]!r} {self._find_no_room(left)}", len(left) / on_node[n])
            for n, left in self.homeless(where).items()
        ]

    def _in_use(self, where: Sequence[int]) -> list[int]:
        standing = {n for n, stands in enumerate(self.tables.standing) if stands}
        return sorted(standing | set(where) - {-1, self.arrays.waiting})

    def homeless(self, where: Sequence[int]) -> dict[int, list[int]]:
        """Return the microservices that find no place when their node is lost, by that node.

        Parameters
        ----------
        where : sequence of int, length M
            The node of every microservice, at its new size; -1 for none.
        """
        a, on_node = self.arrays, dict[int, list[int]]()
        free = a.capacity.copy()
        for m in self.tables.largest_first(a.new).tolist():
            if 0 <= where[m] != a.waiting:
                on_node.setdefault(where[m], []).append(m)
                free[where[m]] -= a.new[m]
        hosts = np.array([n for n in self._in_use(where) if not a.shut[n]], dtype=np.int64)
        copies, result = self.rules.running(where), {}
        for n in sorted(on_node):
            if left := self._lose(n, on_node[n], hosts[hosts != n], free, copies):
                result[n] = left
        return result

    def _lose(
        self, n: int, lost: Sequence[int], hosts: np.ndarray, free: np.ndarray, copies: Copies
    ) -> list[int]:
        """Return what of a lost node is homeless; `free` and `copies` are as before afterwards."""
        new, left, started = self.arrays.new, [], []
        for m in lost:
            self.rules.end(copies, m, n)
        for m in lost:
            to = self._start(m, hosts, free, copies)
            if to is None:
                left.append(m)
            else:
                free[to] -= new[m]
                started.append((m, to))
        for m, to in started:
            free[to] += new[m]
            self.rules.end(copies, m, to)
        for m in lost:
            self.rules.start(copies, m, n)
        return left

    def _start(self, m: int, hosts: np.ndarray, free: np.ndarray, copies: Copies) -> int | None:
        """Count microservice m where it starts again; return the node, None for none."""
        size = self.arrays.new[m]
        after = free[hosts] - size
        share = np.maximum(0, after) / np.maximum(1, self.arrays.capacity[hosts])
        fits = ((after >= 0) | (size == 0)).all(axis=1)
        for n in hosts[fits][np.argsort(-share[fits].min(axis=1), kind="stable")].tolist():
            if not self.rules.start(copies, m, n):
                return int(n)
            self.rules.end(copies, m, n)
        return None

    def _find_no_room(self, left: Sequence[int]) -> str:
        """Return that copies find no room, the first by its name."""
        application, name = self.arrays.names[left[0]]
        more = f" and {len(left) - 1} more find" if len(left) > 1 else " finds"
        return f"{application}/{name}{more} no room"

    def in_words(self, where: Sequence[int]) -> str:
        """Return whether a deployment survives the loss of any one node, and if not, of which."""
        told, short, homeless = [], self.short(where), self.homeless(where)
        for n in sorted(short.keys() | homeless.keys()):
            why = [f"{group} keeps {left} of {need}" for group, left, need in short.get(n, ())]
            if n in homeless:
                why.append(self._find_no_room(homeless[n]))
            shown = "; ".join(why[:3]) + (f"; and {len(why) - 3} more" if len(why) > 3 else "")
            told.append(f"without {self.arrays.node_names[n]}: {shown}")
        return "no: " + ", ".join(told) if told else "yes"

    def why_not(self, need: Sequence[int]) -> list[str]:
        """Return why no deployment can have room without any one of its nodes."""
        if not self.survival.room:
            return []
        every = [n for n, shut in enumerate(self.arrays.shut) if not shut]
        return [text for text, _ in self._crowded(every, need, "all others have")]

    def _crowded(
        self, nodes: Sequence[int], need: Sequence[int], have: str
    ) -> list[tuple[str, float]]:
        result, a = [], self.arrays
        for r, (resource, wanted) in enumerate(zip(a.resources, need, strict=True)):
            rooms = {n: int(a.capacity[n, r]) for n in nodes}
            worst = max(rooms, key=lambda n: rooms[n], default=-1)
            left = sum(rooms.values()) - rooms.get(worst, 0)
            if wanted > left:
                name = repr(a.node_names[worst]) if worst >= 0 else "any"
                text = f"without node {name} {have} {left} {resource}; what runs needs {wanted}"
                result.append((text, min(1.0, wanted / max(1, left) - 1)))
        return result
