"""Colours, markers and labels that both drawing packages share."""

from __future__ import annotations

from itertools import combinations, cycle
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from placeopt.core.fronts.front import Front
    from placeopt.core.fronts.values import Objective

#: The Okabe-Ito palette: told apart by colour-blind readers, and in print.
PALETTE = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9", "#7F7F7F", "#B8A900")
KNEE, BOUND = "#D00000", "#9A9A9A"

#: How machines are paid for.
PRICING = {"on-demand": "#0072B2", "reserved": "#009E73", "spot": "#E69F00"}

#: Ends and middle of the scale of shades, from the best or emptiest: told apart on light and dark.
_SCALE = ((0, 100, 176), (139, 79, 159), (217, 80, 10))

#: Most pairs of objectives that are drawn.
_MAX_PAIRS = 6


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


def bare_name(objective: Objective) -> str:
    """Return the name of an objective without its unit, such as ``latency`` for ``latency_ms``."""
    name = objective.name.replace("_", " ")
    ending = " " + objective.unit.lower()
    return name[: -len(ending)] if name.lower().endswith(ending) else name


def in_page(objective: Objective) -> tuple[float, str]:
    """Return by what a page multiplies a value of an objective, and the unit that it shows.

    Examples
    --------
    >>> from placeopt.core.fronts.values import Objective
    >>> in_page(Objective("latency_ms", "ms")), in_page(Objective("lost", "share"))
    ((1.0, 'ms'), (100.0, '%'))
    """
    if objective.unit == "share":
        return 100.0, "%"
    # Prices are in the user's own currency, which no file names.
    return 1.0, "" if objective.unit in ("price", objective.name) else objective.unit


def least(objective: Objective) -> str:
    """Return what the best value of an objective is: the least, or the greatest."""
    return "greatest" if objective.sign < 0 else "least"


def label(objective: Objective) -> str:
    """Return the axis label of an objective, with its unit once.

    Examples
    --------
    >>> from placeopt.core.fronts.values import Objective
    >>> label(Objective("latency_ms", "ms")), label(Objective("profit", "EUR", sense="max"))
    ('latency (ms)', 'profit (EUR), maximised')
    """
    unit = f" ({objective.unit})" if objective.unit else ""
    return bare_name(objective) + unit + (", maximised" if objective.sign < 0 else "")


def bound_name(front: Front) -> str:
    """Return what proven bounds are called in a legend."""
    senses = {o.sense for o in front.objectives}
    if len(senses) > 1:
        return "bound"
    return "upper bound" if "max" in senses else "lower bound"


def pairs(front: Front) -> list[tuple[int, int]]:
    """Return the pairs of objectives to project on."""
    return list(combinations(range(len(front.objectives)), 2))[:_MAX_PAIRS]


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
