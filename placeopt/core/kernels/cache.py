"""Where compiled kernels are kept, and what a wheel brings of them.

numba keeps a kernel's binary beside its source and asks the source file alone whether the binary is
still good. Here a stamp decides, which covers all that the kernel depends on
(`placeopt.core.kernels.compile`). A wheel may bring binaries for any CPU of its platform, in a
folder that is only read. They serve where the stamp and the versions of numba and Python are those
of the build; elsewhere a kernel is compiled anew.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from placeopt.core.kernels.numba_parts import (
    CompileResult,
    CompileResultCacheImpl,
    IndexDataCacheFile,
    config,
    rtsys,
    types,
)

#: What a wheel brings.
SHIPPED = Path(__file__).resolve().parents[2] / "_compiled"
#: The CPU that it is compiled for, and its features, as numba names them.
ANY_CPU = ("generic", "")
#: With this variable of the environment, what is compiled is written there, for `ANY_CPU`.
FOR_ANY_CPU = "PLACEOPT_FOR_ANY_CPU"
#: What reading a file may raise that is damaged, or names a class that was renamed since.
_UNREADABLE = Exception
_TUPLES: Any = types.BaseTuple


class KernelCache:
    """The binaries of one kernel, by the types of its arguments: what numba calls a cache.

    Parameters
    ----------
    function : callable
        What is compiled.
    stamp : str
        Of all that the binary depends on.
    """

    def __init__(self, function: Callable[..., Any], stamp: str):
        module = function.__module__.split(".")
        line, python = function.__code__.co_firstlineno, sys.implementation.cache_tag
        name = f"{module[-1]}.{function.__qualname__}-{line}.{python}"
        ours = SHIPPED.joinpath(*module[1:-1]) if module[0] == "placeopt" else None
        self._numba = _numba_part(function)
        folder = None if self._numba is None else Path(self._numba.locator.get_cache_path())
        if ours is not None and FOR_ANY_CPU in os.environ:
            folder, ours = ours, None
        #: The folder that what is compiled is written to; empty if it is not kept.
        self.cache_path = "" if folder is None else str(folder)
        self._own = None if folder is None else IndexDataCacheFile(str(folder), name, stamp)
        self._shipped = None
        checked = vars(config)["BOUNDSCHECK"]  # compiled kernels check no bounds
        if ours is not None and ours.is_dir() and not checked:
            self._shipped = IndexDataCacheFile(str(ours), name, stamp)

    @property
    def kept(self) -> bool:
        """Whether later runs find what is compiled."""
        return self._own is not None

    def has(self, signature: Any, context: Any) -> bool:
        """Return whether there is a binary."""
        for file, key in self._keys(signature, context):
            with suppress(_UNREADABLE):
                if key in file._load_index():
                    return True
        return False

    def load_overload(self, signature: Any, context: Any) -> Any:
        """Return a binary, linked into this process; None if there is none."""
        # Not what numba does first, `context.refresh()`: it imports all that numba can compile, for
        # a third of a second. Compiling asks for it by itself.
        rtsys.initialize(context)
        for file, key in self._keys(signature, context):
            with suppress(_UNREADABLE):
                result = file.load(key)
                if result is not None:
                    return CompileResult._rebuild(context, *result)
        return None

    def save_overload(self, signature: Any, compiled: Any) -> None:
        """Keep a binary; where the disk is full, only this process has it."""
        if self._own is None or not self._numba.check_cachable(compiled):
            return
        with suppress(OSError):
            os.makedirs(self.cache_path, exist_ok=True)
            try:
                self._own._load_index()
            except _UNREADABLE:
                self._own.flush()
            key = _key(signature, compiled.codegen.magic_tuple())
            self._own.save(key, self._numba.reduce(compiled))

    def flush(self) -> None:
        """Forget what is kept."""
        if self._own is not None:
            self._own.flush()

    def _keys(self, signature: Any, context: Any) -> list[tuple[Any, Any]]:
        """Return each file with the key under which it would have the binary."""
        triple, *here = context.codegen().magic_tuple()
        files = ((self._own, here), (self._shipped, ANY_CPU))
        return [(file, _key(signature, (triple, *cpu))) for file, cpu in files if file is not None]


def _numba_part(function: Callable[..., Any]) -> Any:
    """Return what numba knows of a function's cache; None where it finds no folder to write to."""
    try:
        return CompileResultCacheImpl(function)
    except RuntimeError:
        return None


def _key(signature: Any, machine: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return what tells binaries of one kernel apart."""
    arguments = signature if isinstance(signature, tuple) else signature.args
    return tuple(arguments), machine, tuple(_fields_of(kind) for kind in arguments)


def _fields_of(kind: Any) -> tuple[Any, ...]:
    """Return the names of the fields of named tuples, which are no part of numba's types."""
    if not isinstance(kind, _TUPLES):
        return ()
    named = isinstance(kind, types.BaseNamedTuple)
    return (kind.fields if named else (), *(_fields_of(inner) for inner in kind))
