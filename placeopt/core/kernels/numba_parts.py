"""The parts of numba that kernels are built on and that numba does not promise to keep.

Only this file imports from ``numba.core``. The bound on numba's version in ``pyproject.toml`` is
raised when the tests pass with a newer one (`tests/core/test_private_parts.py`).

Raises
------
UnsupportedError
    This numba lacks a part.
"""

from __future__ import annotations

import numba

from placeopt.core.errors import UnsupportedError

try:
    from numba.core import compiler, config, event, sigutils, types
    from numba.core.caching import CompileResultCacheImpl, IndexDataCacheFile
    from numba.core.compiler import CompileResult
    from numba.core.dispatcher import Dispatcher, _FunctionCompiler  # type: ignore[attr-defined]
    from numba.core.registry import CPUDispatcher
    from numba.core.runtime import rtsys
    from numba.core.targetconfig import ConfigStack
except ImportError as error:
    raise UnsupportedError(
        f"numba {numba.__version__} lacks what placeopt builds on: {error}; install a numba that "
        "placeopt was tested with: pip install --upgrade placeopt"
    ) from None

FunctionCompiler = _FunctionCompiler

__all__ = [
    "CPUDispatcher",
    "CompileResult",
    "CompileResultCacheImpl",
    "ConfigStack",
    "Dispatcher",
    "FunctionCompiler",
    "IndexDataCacheFile",
    "compiler",
    "config",
    "event",
    "rtsys",
    "sigutils",
    "types",
]
