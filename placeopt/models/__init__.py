"""Face 1, algebra: every problem as a declarative Pyomo model.

>>> from placeopt import models
>>> model = models.temporal.build(problem)                       # doctest: +SKIP

A row's module has ``build(problem, ...) -> pyomo.ConcreteModel`` and ``extract(model) -> plan``.
"""

from __future__ import annotations

import importlib
from types import ModuleType

from placeopt.problems import KINDS


def __getattr__(name: str) -> ModuleType:
    if name not in {module for module, _ in KINDS.values()}:
        raise AttributeError(f"module 'placeopt.models' has no attribute {name!r}")
    return importlib.import_module(f"placeopt.models.{name}")
