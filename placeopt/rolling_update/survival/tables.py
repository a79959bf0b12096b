"""What the loss of any one node leaves, for many deployments at once.

`placeopt.rolling_update.document.UpdateSurvival` says what is asked; the referee of it is
`placeopt.rolling_update.survival.referee`, which this is tested against.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from placeopt.rolling_update.document import UpdateRule, UpdateSurvival


class Survival:
    """What is asked, as arrays, of N nodes and G groups that need copies.

    Parameters
    ----------
    survival : UpdateSurvival or None
        None asks for nothing.
    groups : sequence of sequence of str, length M
        The groups of every microservice.
    capacity : int array (N, R)
        Of the nodes of the document.
    standing : bool array (N or more,)
        Nodes that are there whether or not they host something.

    Attributes
    ----------
    names : tuple of str, length G
    spare : int array (G,)
        Copies of a group that may be missing.
    member, group : int array (E,)
        The microservices of the groups, and the group of each.
    room : bool
        Whether what any one node hosts must find a place on the others in use.
    """

    def __init__(
        self,
        survival: UpdateSurvival | None,
        groups: Sequence[Sequence[str]],
        capacity: np.ndarray,
        standing: np.ndarray,
    ):
        wanted = survival or UpdateSurvival()
        self.names, self.room = tuple(wanted.needs), wanted.room
        self.capacity, self.standing = capacity, standing[: len(capacity)]
        number = {name: g for g, name in enumerate(self.names)}
        pairs = [(m, number[x]) for m, own in enumerate(groups) for x in own if x in number]
        self.member, self.group = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
        sizes = np.bincount(self.group, minlength=len(number))
        self.spare: np.ndarray = sizes - np.array(list(wanted.needs.values()), dtype=np.int64)

    @property
    def asked(self) -> bool:
        """Whether copies are needed, so that what is lost at worst is an objective."""
        return len(self.names) > 0

    def lost(self, targets: np.ndarray) -> np.ndarray:
        """Return the copies that are needed and lost with the worst node, shape (K,).

        Parameters
        ----------
        targets : int array (K, M)
            The node of every microservice in K deployments; what is on none of the nodes of the
            document is not counted.
        """
        return self._per_node(targets).max(axis=1)  # type: ignore[no-any-return]

    def _per_node(self, targets: np.ndarray) -> np.ndarray:
        """Return what is lost with each node, shape (K, N)."""
        nodes, count = len(self.capacity), len(targets)
        at = targets[:, self.member]
        there = (at >= 0) & (at < nodes)
        row = np.arange(count)[:, None] * len(self.spare) + self.group
        keys, copies = np.unique(row[there] * nodes + at[there], return_counts=True)
        rows, n = np.divmod(keys, nodes)
        which, g = np.divmod(rows, max(1, len(self.spare)))
        lost = np.maximum(0, copies - self.spare[g])
        result: np.ndarray = np.bincount(which * nodes + n, lost, count * nodes)
        return result.reshape(count, nodes)

    def added(self, where: np.ndarray, m: int, *, first: bool) -> np.ndarray:
        """Return by how much the objective grows if microservice m goes to each node, (N,).

        Parameters
        ----------
        where : int array (M,)
            The node of every microservice, -1 for those that are not decided, m among them.
        m : int
        first : bool
            Whether what is there already is added, too.
        """
        now = self._per_node(where[None])[0]
        after = now.copy()
        for g in self.group[self.member == m]:
            at = where[self.member[self.group == g]]
            there = np.bincount(at[(at >= 0) & (at < len(now))], minlength=len(now))
            after += there >= self.spare[g]
        return np.maximum(after, now.max()) - (0.0 if first else now.max())

    def largest_first(self, size: np.ndarray) -> np.ndarray:
        """Return microservices of some sizes, (M, R), the largest share of a node first, (M,)."""
        share = (size / np.maximum(1, self.capacity.max(axis=0))).max(axis=1)
        return np.argsort(-share, kind="stable")

    def lacking(self, used: np.ndarray, need: np.ndarray) -> np.ndarray:
        """Return by what share of what is needed the room of others falls short, shape (K,).

        Room together is necessary, and quickly asked; `losses.num_unplaceable` asks copy by copy.

        Parameters
        ----------
        used : bool array (K, N or more)
            The nodes that host something, in K deployments.
        need : int array (R,)
            What all that runs asks for together.
        """
        there = used[:, : len(self.capacity)] | self.standing
        largest = (there[:, :, None] * self.capacity).max(axis=1)
        short = need - (there @ self.capacity - largest)
        total: np.ndarray = (np.maximum(0, short) / np.maximum(1, need)).sum(axis=1)
        return total

    def rules(self, home: np.ndarray, stuck: np.ndarray) -> list[UpdateRule]:
        """Return rules that lose no copy, of the groups that can do so.

        What rests has to obey them, too, unless what cannot move breaks them.

        Parameters
        ----------
        home : int array (M,)
        stuck : bool array (M,)
        """
        results = []
        for g in np.flatnonzero(self.spare > 0).tolist():
            own, most = self.member[self.group == g], int(self.spare[g])
            held = int(np.bincount(home[own[stuck[own]]], minlength=1).max())
            rule = {"kind": "apart", "group": self.names[g], "max_copies": most}
            results.append(UpdateRule.model_validate(rule | {"mend": held <= most}))
        return results
