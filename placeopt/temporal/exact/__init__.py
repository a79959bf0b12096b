"""Exact fronts and proven bounds of temporal instances.

The mathematics are on the page ``models/temporal/bin_plans.md``.
"""

from placeopt.temporal.exact.bin_plans import bin_plans
from placeopt.temporal.exact.bounds import bound, bounds

__all__ = ["bin_plans", "bound", "bounds"]
