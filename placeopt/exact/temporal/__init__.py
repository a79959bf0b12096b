"""Exact fronts and proven bounds of temporal instances: bin plans, certificates, the configuration program.

The mathematics are on the page ``models/temporal/bin_plans.md``.
"""

from placeopt.exact.temporal.bounds import bound, certify
from placeopt.exact.temporal.plans import bin_plans

__all__ = ["bin_plans", "bound", "certify"]
