"""The charts of a report: data for its script, and words for those who cannot see them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from placeopt.plot.front_data import as_script, front_data

if TYPE_CHECKING:
    from placeopt.core.front import Front


def charts(front: Front, chosen: int) -> str:
    """Return where the charts of a front go, and their data; the point `chosen` has a ring."""
    if len(front) == 1:  # nothing to trade: a chart would be one mark on an axis
        return ""
    knee = front.points.index(front.pick())
    data = front_data(front) | {"knee": knee, "chosen": None if chosen == knee else chosen}
    return (
        '<div class="charts" id="charts"></div><noscript><p class="note">The charts need '
        "JavaScript; the table says the same.</p></noscript>" + as_script("front-data", data)
    )
