"""What happens when a node is lost, in words: which groups are short, which copies find no room."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from placeopt.rolling_update import rules
from placeopt.rolling_update.arrays import UpdateArrays


def homeless(a: UpdateArrays, final: np.ndarray, n: int) -> list[int]:
    """Return the microservices of a lost node that find no place on the others in use.

    They start one by one, the largest first, where most is left of the scarcer resource and rules
    let them, as a scheduler might do it: a packing may exist where this finds none.

    Parameters
    ----------
    a : UpdateArrays
    final : int array (M,)
        The node of every microservice, at its new size.
    n : int
        The lost node.
    """
    lost = np.flatnonzero(final == n)
    others = np.unique(final[final >= 0])
    others = others[(others != n) & ~a.drain[others]]
    free, where = a.capacity.copy(), np.where(final == n, -1, final)
    np.subtract.at(free, where[where >= 0], a.new[where >= 0])
    count, scale = rules.counted(a.packed_rules, where), np.maximum(1, a.capacity[others])
    size = (a.new[lost] / np.maximum(1, a.capacity.max(axis=0))).max(axis=1)
    left = []
    for m in lost[np.argsort(-size, kind="stable")].tolist():
        after = free[others] - a.new[m]
        fits = ((after >= 0) | (a.new[m] == 0)).all(axis=1)
        best = others[fits][np.argsort(-(after[fits] / scale[fits]).min(axis=1), kind="stable")]
        to = next((k for k in best.tolist() if rules.may_start(a.packed_rules, count, m, k)), None)
        if to is None:
            left.append(m)
        else:
            free[to] -= a.new[m]
            rules.tally(a.packed_rules, count, m, to, 1)
    return left


def survival_in_words(
    a: UpdateArrays, final: np.ndarray, short: Mapping[int, Sequence[tuple[str, int, int]]]
) -> str:
    """Return whether a deployment survives the loss of any one node, and if not, of which.

    Parameters
    ----------
    a : UpdateArrays
    final : int array (M,)
    short : mapping
        Node -> groups that its loss leaves too few copies: (name, left, needed).
    """
    told = []
    for n in np.unique(final[(final >= 0) & (final != a.waiting)]).tolist():
        why = [f"{group} keeps {left} of {need}" for group, left, need in short.get(n, ())]
        if without := homeless(a, final, n):
            more = f" and {len(without) - 1} more" if len(without) > 1 else ""
            verb = "find" if len(without) > 1 else "finds"
            why.append(f"{'/'.join(a.names[without[0]])}{more} {verb} no room")
        if why:
            shown = "; ".join(why[:3]) + (f"; and {len(why) - 3} more" if len(why) > 3 else "")
            told.append(f"without {a.node_names[n]}: {shown}")
    return "no: " + ", ".join(told) if told else "yes"
