"""Experiments: instances x methods x seeds x budgets, resumed, measured, told on one page."""

from placeopt.sweeps.run import SweepResult, sweep

__all__ = ["SweepResult", "sweep"]
