"""Imports of libraries that import more than a run needs.

pymoo imports scipy.spatial and jMetalPy Dask for functions that no run of placeopt calls: half a
second of a time limit. While `deferred` holds, such a module is a stand-in; a function taken from
it imports the module when it is called.

>>> with deferred("wave"):
...     from wave import open as open_wave
>>> open_wave.__name__
'open'
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from placeopt.core.errors import MissingExtraError


class _StandIn(ModuleType):
    """A module whose members are functions that import the module."""

    def __init__(self, name: str):
        super().__init__(name)
        self.__path__ = []  # it may be a package

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("__"):
            raise AttributeError(name)
        module = self.__name__

        def later(*args: Any, **kwargs: Any) -> Any:
            return getattr(import_module(module), name)(*args, **kwargs)

        later.__name__ = name
        return later


def optional(module: str, what: str, extra: str) -> Any:
    """Return a module that an extra installs.

    Raises
    ------
    MissingExtraError
        It is not installed: ``what`` needs ``placeopt[extra]``.
    """
    if find_spec(module) is None:
        raise MissingExtraError(what, extra)
    return import_module(module)


@contextmanager
def deferred(*names: str) -> Iterator[None]:
    """Let imports in this block find stand-ins for modules that were not imported yet.

    Parameters
    ----------
    *names : str
        Modules. One that is not installed stays so, and of a module below one of them stand-ins
        take the place too.
    """
    missing = [n for n in names if n not in sys.modules and find_spec(n.partition(".")[0])]
    sys.modules.update({name: _StandIn(name) for name in missing})
    try:
        yield
    finally:
        for name in missing:
            del sys.modules[name]
