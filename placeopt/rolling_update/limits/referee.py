"""The referee of limits of nodes: whether a plan uses too much of some nodes together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from placeopt.rolling_update.document import NodeLimit


class LimitReferee:
    """Judges which nodes a plan uses.

    Parameters
    ----------
    limits : sequence of NodeLimit
    names : sequence of str
        Names of the nodes of the document, by number.
    now : iterable of int
        Nodes that host something now.
    """

    def __init__(self, limits: Sequence[NodeLimit], names: Sequence[str], now: Iterable[int]):
        self.limits, self.names, self.now = limits, list(names), set(now)

    def broken(self, end: Iterable[int], visited: Iterable[int]) -> Iterator[tuple[str, float]]:
        """Yield (sentence, relative excess) of each limit that is broken.

        Parameters
        ----------
        end : iterable of int
            Nodes that host something at the end.
        visited : iterable of int
            Nodes on which a copy starts, at any time.
        """
        count = len(self.names)
        at_end = {n for n in end if 0 <= n < count}
        ever = at_end | {n for n in visited if 0 <= n < count}
        for limit in self.limits:
            own = self._members(limit, ever)
            if limit.most is not None and own - self.now:  # else what is there may stay
                total = sum(limit.amounts[self.names[n]] for n in own)
                if total > limit.most:
                    text = f"limit {limit.name!r}: {total:,} is used, at most {limit.most:,} may be"
                    yield text, (total - limit.most) / max(1, limit.most)
            own = self._members(limit, at_end)
            if limit.share is not None and own - self.now:
                few = max(1, int(len(at_end) * limit.share + 1e-9))
                if len(own) > few:
                    text = f"limit {limit.name!r}: {len(own)} of {len(at_end)} nodes in use"
                    yield f"{text}, at most {few} may be", (len(own) - few) / few

    def _members(self, limit: NodeLimit, nodes: Iterable[int]) -> set[int]:
        return {n for n in nodes if limit.amounts.get(self.names[n], 0) > 0}
