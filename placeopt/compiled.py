"""One way to compile a kernel.

A kernel calls only kernels of its own file: numba checks the age of that file alone before it serves a cached binary, so an
edited callee elsewhere would be served stale. A test holds every file to this.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile `function` on its first call and cache the binary beside the source, where that can be written."""
    try:
        return numba.njit(function, cache=True, nogil=True, error_model="numpy")
    except RuntimeError:  # numba found no folder it may write to
        return numba.njit(function, nogil=True, error_model="numpy")
