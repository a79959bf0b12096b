"""Nothing is done: nodes come and go as they did."""

from placeopt.backtest.policies.base import Policy


class Nothing(Policy):
    """The cluster as it was recorded; the scheduler alone places pods."""

    recorded = True
