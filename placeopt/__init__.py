"""Where should each replica run?

Exact, evolutionary, heuristic and learned answers, judged by one referee.

>>> import placeopt
>>> problem = placeopt.load("toy")                               # doctest: +SKIP
>>> front = placeopt.solve(problem, method="nsga3", seed=1)      # doctest: +SKIP
>>> front.pick()                                                 # doctest: +SKIP
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from placeopt.version import __version__

if TYPE_CHECKING:
    from placeopt import ask as ask
    from placeopt import environments as environments
    from placeopt import models as models
    from placeopt.api import evaluate, load, solve
    from placeopt.core.budget import Budget
    from placeopt.core.errors import PlaceoptError
    from placeopt.core.files.shipped import instances
    from placeopt.core.fronts.front import Front, merge
    from placeopt.core.fronts.values import Point
    from placeopt.evolve.results import front_of
    from placeopt.exact.files import read_model
    from placeopt.exact.model_front import enumerate
    from placeopt.registration import register
    from placeopt.registry import methods
    from placeopt.sweeps.run import sweep

_MODULE_OF = {
    "load": "api",
    "solve": "api",
    "evaluate": "api",
    "enumerate": "exact.model_front",
    "read_model": "exact.files",
    "front_of": "evolve.results",
    "merge": "core.fronts.front",
    "sweep": "sweeps.run",
    "Budget": "core.budget",
    "Front": "core.fronts.front",
    "Point": "core.fronts.values",
    "PlaceoptError": "core.errors",
    "instances": "core.files.shipped",
    "methods": "registry",
    "register": "registration",
}

#: Packages that are attributes of this one without an import.
_PACKAGES = ("ask", "environments", "models")

__all__ = [
    "Budget",
    "Front",
    "PlaceoptError",
    "Point",
    "__version__",
    "enumerate",
    "evaluate",
    "front_of",
    "instances",
    "load",
    "merge",
    "methods",
    "read_model",
    "register",
    "solve",
    "sweep",
]


def __getattr__(name: str) -> Any:
    if name in _PACKAGES:
        return importlib.import_module(f"placeopt.{name}")
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'placeopt' has no attribute {name!r}")
    return getattr(importlib.import_module(f"placeopt.{_MODULE_OF[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*__all__, *_PACKAGES])
