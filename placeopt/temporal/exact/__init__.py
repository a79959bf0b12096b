"""Exact fronts and proven bounds of temporal instances.

The mathematics are on the page ``models/temporal/bin_plans.md``.
"""

from placeopt.temporal.exact.bounds import bound, bounds
from placeopt.temporal.exact.exact_front import bin_plans

__all__ = ["bin_plans", "bound", "bounds"]
