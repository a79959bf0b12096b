"""What limits of nodes allow, for many deployments at once.

`placeopt.rolling_update.document.NodeLimit` says what is asked; the referee of it is
`placeopt.rolling_update.limits.referee`, which this is tested against.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from placeopt.rolling_update.document import NodeLimit

#: Stands for no limit of an amount.
NO_LIMIT = np.iinfo(np.int64).max // 4


class NodeLimits:
    """L limits of N nodes as arrays.

    Parameters
    ----------
    limits : sequence of NodeLimit
    number : mapping of str to int
        Node -> its number.
    now : bool array (N,)
        Nodes that host something now.

    Attributes
    ----------
    amount : int array (L, N)
    most : int array (L,)
        The largest sum of amounts; very large where there is none.
    share : float array (L,)
        The largest share of the nodes in use; 1 where there is none.
    bought : bool array (N,)
        Nodes that host nothing now and count towards some largest sum.
    """

    def __init__(self, limits: Sequence[NodeLimit], number: Mapping[str, int], now: np.ndarray):
        self.now = now
        self.amount = np.zeros((len(limits), len(now)), dtype=np.int64)
        for k, limit in enumerate(limits):
            self.amount[k, [number[name] for name in limit.amounts]] = list(limit.amounts.values())
        self.most = np.array([NO_LIMIT if x.most is None else x.most for x in limits], np.int64)
        self.share = np.array([1.0 if x.share is None else x.share for x in limits])
        self.bought: np.ndarray = (self.amount[self.most < NO_LIMIT] > 0).any(axis=0) & ~now

    @property
    def any(self) -> bool:
        """Whether there are limits."""
        return len(self.most) > 0

    def excess(self, used: np.ndarray, real: int) -> np.ndarray:
        """Return by how much deployments break the limits, as shares, shape (K,); 0 is legal.

        Parameters
        ----------
        used : bool array (K, N)
            The nodes that host something at the end.
        real : int
            The nodes of the document come first, so many.
        """
        member = (self.amount > 0).astype(np.int64)
        total, count = used @ self.amount.T, used @ member.T
        adds = (used & ~self.now) @ member.T > 0
        in_use = used[:, :real].sum(axis=1)
        few = np.maximum(1, np.floor(in_use[:, None] * self.share + 1e-9))
        over = np.maximum(0, total - self.most) / np.maximum(1, self.most)
        over += np.where(self.share < 1, np.maximum(0, count - few) / few, 0)
        result: np.ndarray = np.where(adds, over, 0).sum(axis=1)
        return result

    def within(self, used: np.ndarray, real: int) -> bool:
        """Return whether a deployment, the nodes in use as bool (N,), keeps all limits."""
        return not self.any or bool(self.excess(used[None], real)[0] == 0)

    def open_to(self, used: np.ndarray) -> np.ndarray:
        """Return the nodes that may be used beside others, bool (N,), as far as sums tell.

        Those that are used already may be. Another one may if no sum gets too large, or if no node
        of that sum is newly used.

        Parameters
        ----------
        used : bool array (N,)
        """
        if not self.any:
            return np.ones_like(used)
        total = self.amount @ used
        adds = ((self.amount > 0) & used & ~self.now).any(axis=1)
        over = (total[:, None] + self.amount > self.most[:, None]) & (self.amount > 0)
        result: np.ndarray = used | ~(over & (adds[:, None] | ~self.now)).any(axis=0)
        return result

    def opened(self, used: np.ndarray, order: np.ndarray) -> np.ndarray:
        """Return the nodes `used`, bool (N,), and as many more as sums allow all together.

        Parameters
        ----------
        used : bool array (N,)
        order : int array
            The nodes to add, the first before the others.
        """
        result = used.copy()
        for n in order.tolist():
            result[n] = self.open_to(result)[n]
        return result
