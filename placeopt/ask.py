"""Questions about a Pyomo model with several goals that need not its whole front.

>>> from placeopt import ask
>>> front = ask.lexicographic(model, ["cost", "delay"])          # doctest: +SKIP

Each takes the keywords of `How`, and returns a `placeopt.Front` or `Plans`. Points are in the
senses of the goals; ``runs[0].parameters`` of a front has ``status``, one of
`placeopt.exact.memory.STATUSES`, and ``reason``.
"""

from __future__ import annotations

from placeopt.exact.asking.desk import How
from placeopt.exact.asking.plans import Plans, plans
from placeopt.exact.asking.points import lexicographic, reference_point, supported

__all__ = ["How", "Plans", "lexicographic", "plans", "reference_point", "supported"]
