"""How large the packing model would be: without Pyomo, which takes a second to import."""

from __future__ import annotations

import numpy as np

from placeopt.rolling_update.arrays import UpdateArrays
from placeopt.rolling_update.instance import RollingUpdate
from placeopt.rolling_update.rules.tables import TOGETHER


def rules_size(a: UpdateArrays) -> int:
    """Return about how many coefficients the rules add to the packing model."""
    if not len(a.rules.checks):
        return 0
    domains = np.diff(a.rules.first) - 1
    of_check = domains[a.rules.checks[:, 1]]
    spread = np.where(a.rules.checks[:, 0] > TOGETHER, of_check**2 * 3, of_check * 3)
    return int(spread.sum() + len(a.rules.add) * len(a.price) + len(a.rules.checks) * len(a.price))


def static_size(problem: RollingUpdate) -> int:
    """Return about how many coefficients the static model has."""
    a = problem.arrays
    own = int(a.movable.sum()) * (3 + 2 * len(a.resources)) * len(a.price)
    more = rules_size(a) + survival_size(a)
    return own + 2 * len(a.tight_flows) * len(a.price) + more


def survival_size(a: UpdateArrays) -> int:
    """Return about how many coefficients the loss of nodes adds to the packing model."""
    s, nodes = a.survival, len(a.price)
    room = len(a.resources) * nodes**2 if s.room else 0
    return (len(s.member) + 2 * len(s.spare)) * nodes + room
