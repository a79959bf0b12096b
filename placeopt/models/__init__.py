"""Every problem as a declarative Pyomo model.

>>> from placeopt import models
>>> model = models.temporal.build(problem)                       # doctest: +SKIP

A model's module has ``build(problem, ...) -> pyomo.ConcreteModel`` and ``extract(model) -> plan``.
Nothing is imported until it is used.
"""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING

from placeopt.registry import specs

if TYPE_CHECKING:
    from placeopt.edge_cloud import model as edge_cloud
    from placeopt.rescheduling import model as rescheduling
    from placeopt.rolling_update import model as rolling_update
    from placeopt.temporal import model as temporal

__all__ = ["edge_cloud", "rescheduling", "rolling_update", "temporal"]


def _attributes() -> dict[str, str]:
    """Return the name here of every problem that there is -> its kind."""
    return {kind.replace("-", "_"): kind for kind in specs()}


def __getattr__(name: str) -> ModuleType:
    kind = _attributes().get(name)
    if kind is None:
        raise AttributeError(f"module 'placeopt.models' has no attribute {name!r}")
    if not specs()[kind].has("model"):
        having = ", ".join(sorted(n for n, k in _attributes().items() if specs()[k].has("model")))
        raise AttributeError(
            f"{kind} has no Pyomo model: models/{name}/README.md says why; models: {having}"
        )
    return specs()[kind].load("model")


def __dir__() -> list[str]:
    return sorted(n for n, kind in _attributes().items() if specs()[kind].has("model"))
