"""Colours, markers and labels that both drawing packages share."""

from __future__ import annotations

from itertools import cycle
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from placeopt.core.fronts.front import Front

#: The Okabe-Ito palette: told apart by colour-blind readers, and in print.
PALETTE = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9", "#7F7F7F", "#B8A900")
KNEE, BOUND = "#D00000", "#9A9A9A"

#: How machines are paid for.
PRICING = {"on-demand": "#0072B2", "reserved": "#009E73", "spot": "#E69F00"}

#: Ends and middle of the scale of shades, from the best or emptiest: told apart on light and dark.
_SCALE = ((0, 100, 176), (139, 79, 159), (217, 80, 10))


def shade(share: float) -> str:
    """Return the colour of a share of the whole, 0 to 1, as ``#rrggbb``.

    Examples
    --------
    >>> shade(0), shade(0.5), shade(7)
    ('#0064b0', '#8b4f9f', '#d9500a')
    """
    along = 2 * min(max(share, 0.0), 1.0)
    first = min(1, int(along))
    ends = zip(_SCALE[first], _SCALE[first + 1], strict=True)
    return "#" + "".join(f"{round(a + (b - a) * (along - first)):02x}" for a, b in ends)


def by_method(front: Front) -> list[tuple[str, str, list[int]]]:
    """Return (method, colour, indices of its points), the most frequent method first."""
    results: dict[str, list[int]] = {}
    for k, point in enumerate(front.points):
        results.setdefault(point.method or "unknown", []).append(k)
    ranked = sorted(results.items(), key=lambda entry: (-len(entry[1]), entry[0]))
    return [
        (name, colour, chosen)
        for (name, chosen), colour in zip(ranked, cycle(PALETTE), strict=False)
    ]
