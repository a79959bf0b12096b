"""The marks of kernels: compiled on their first call, by `placeopt.core.kernels.compiler`.

numba is imported where something is marked, and not at all in commands that let Python run kernels.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

#: Whether Python runs what is marked from now on; `interpret` says so.
_interpreted = False


def interpret() -> None:
    """Let Python run kernels, for commands that call few of them: compiling would take longer.

    In a process where kernels may have been compiled already, they are.
    """
    global _interpreted
    _interpreted = "numba" not in sys.modules


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile `function` on its first call; cache the binary where that can be written.

    It makes no arrays: where it does, numba says ``NRT required but not enabled`` or that it cannot
    resolve ``_allocate``. Assigning an array to a part of another one makes one; see
    `placeopt.core.kernels.common`.
    """
    return _marked(function)


def inlined_kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a `kernel` into each of its callers.

    A named tuple is handed over as all numbers of all its arrays, hundreds of them, which takes
    more time than a short kernel works. Compilers spare that by themselves where there is one call.
    """
    return _marked(function, inlined=True)


def allocating_kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function that makes arrays, or returns one; else as `kernel`."""
    return _marked(function, allocating=True)


def _marked(function: Callable[..., Any], **how: bool) -> Callable[..., Any]:
    if _interpreted:
        return function
    from placeopt.core.kernels.compiler import compiled

    return compiled(function, **how)
