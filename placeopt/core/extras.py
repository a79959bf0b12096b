"""Libraries that an extra of the package installs."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

from placeopt.core.errors import MissingExtraError


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
