"""Where compiled kernels are kept, and what a wheel brings of them.

numba keeps a kernel's binary beside its source and asks the source file alone whether the binary is
still good. Here a stamp decides, which covers all that the kernel depends on
(`placeopt.core.kernels.compiler`). A wheel may bring binaries for any CPU of its platform, in a
folder that is only read. They serve where the stamp and the versions of numba and Python are those
of the build; elsewhere a kernel is compiled anew.

Whoever works on placeopt may name a folder outside the checkout (`KEPT`): what one checkout
compiled serves all.
"""

from __future__ import annotations

import hashlib
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
#: With this one, a folder that checkouts share takes the place of the one beside each source.
KEPT = "PLACEOPT_KERNELS"
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
    fits : callable
        Whether the stamp is of what runs: else nothing is kept under it.
    """

    def __init__(self, function: Callable[..., Any], stamp: str, fits: Callable[[], bool]):
        self._fits = fits
        module = function.__module__.split(".")
        line, python = function.__code__.co_firstlineno, sys.implementation.cache_tag
        name = f"{module[-1]}.{function.__qualname__}-{line}.{python}"
        self._numba = _numba_part(function)
        beside = None if self._numba is None else self._numba.locator.get_cache_path()
        own = None if beside is None else IndexDataCacheFile(beside, name, stamp)
        brought = shared = None
        if module[0] == "placeopt":
            brought, shared = _brought(module, name, stamp), _shared(module, name, stamp)
        #: Where what is compiled is written to: a wheel, and the folder that serves the next wheel;
        #: else one folder.
        folders = [brought, shared] if FOR_ANY_CPU in os.environ else [shared or own]
        self._written: list[Any] = [file for file in folders if file is not None]
        #: Where a binary is looked for, in this order.
        self._read = [*self._written, *([brought] if brought is not None else [])]
        #: The folder that what is compiled is written to; empty if it is not kept.
        self.cache_path = self._written[0]._cache_path if self._written else ""

    @property
    def kept(self) -> bool:
        """Whether later runs find what is compiled."""
        return bool(self._written)

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
                    if FOR_ANY_CPU in os.environ:
                        self._write(key, result, [f for f in self._written if f is not file])
                    return CompileResult._rebuild(context, *result)
        return None

    def save_overload(self, signature: Any, compiled: Any) -> None:
        """Keep a binary; where the disk is full, only this process has it."""
        if self._written and self._fits() and self._numba.check_cachable(compiled):
            key = _key(signature, compiled.codegen.magic_tuple())
            self._write(key, self._numba.reduce(compiled), self._written)

    def _write(self, key: Any, result: Any, files: list[Any]) -> None:
        for file in files:
            with suppress(OSError):
                os.makedirs(file._cache_path, exist_ok=True)
                try:
                    file._load_index()
                except _UNREADABLE:
                    file.flush()
                file.save(key, result)

    def flush(self) -> None:
        """Forget what is kept."""
        for file in self._written:
            file.flush()

    def _keys(self, signature: Any, context: Any) -> list[tuple[Any, Any]]:
        """Return each file with the keys under which it may have the binary."""
        triple, *here = context.codegen().magic_tuple()
        cpus = dict.fromkeys((tuple(here), ANY_CPU))
        return [(file, _key(signature, (triple, *cpu))) for file in self._read for cpu in cpus]


def _brought(module: list[str], name: str, stamp: str) -> Any:
    """Return the file of a wheel; None where it has none, or none that checks bounds."""
    folder = SHIPPED.joinpath(*module[1:-1])
    if FOR_ANY_CPU not in os.environ and (vars(config)["BOUNDSCHECK"] or not folder.is_dir()):
        return None
    return IndexDataCacheFile(str(folder), name, stamp)


def _shared(module: list[str], name: str, stamp: str) -> Any:
    """Return the file in the folder of all checkouts; the stamp in its name tells them apart."""
    if not (folder := os.environ.get(KEPT)):
        return None
    checked = "checked" if vars(config)["BOUNDSCHECK"] else "compiled"
    told = hashlib.sha256(stamp.encode()).hexdigest()[:16]
    return IndexDataCacheFile(str(Path(folder, checked, *module[1:-1])), f"{name}-{told}", stamp)


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
