"""HiGHS by arrays."""

from __future__ import annotations

from typing import Any


def new_highs() -> Any:
    """Return a solver without a program.

    highspy keeps the class for itself. The public `highspy.Highs` is that class with a layer for
    models in Python, which is not used here; it serves where highspy has none other.
    """
    import highspy

    try:
        return highspy._Highs()  # type: ignore[attr-defined]
    except AttributeError:
        return highspy.Highs()
