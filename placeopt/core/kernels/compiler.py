"""One way to compile a kernel; an edit is never served stale.

A kernel may call kernels of other files, use their constants, and take their named tuples. So the
binary of each kernel is kept under a stamp of its own file and of the files with kernels that its
module imports, transitively, of the constants in its module, and of how it is compiled
(`placeopt.core.kernels.cache`). It is not kept where these files are no longer what runs.

A kernel works on arrays that it is given. numba counts who uses an array, to free it in the end,
wherever a name stands for one; in kernels of named tuples that takes more time than their work. So
kernels here do not count, and cannot make arrays. Those that do are marked `allocating_kernel`.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Iterator
from functools import cache, cached_property, partial
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import numpy as np

from placeopt.core.kernels.cache import KernelCache
from placeopt.core.kernels.callee import Callee, NumbaDispatcher
from placeopt.core.kernels.numba_parts import (
    ConfigStack,
    Dispatcher,
    config,
    event,
    sigutils,
    types,
)
from placeopt.core.runs.compiling import CLOCK
from placeopt.core.runs.process import collector_at_rest

_TUPLES: Any = types.BaseTuple
#: No kernel is called from C: wrappers for that would be compiled for nothing. "NRT" counts
#: references and gives memory.
_OPTIONS = {
    "nopython": True,
    "nogil": True,
    "error_model": "numpy",
    "no_cfunc_wrapper": True,
    "_nrt": False,
}
_ALLOCATING = {**_OPTIONS, "_nrt": True}


def compiled(
    function: Callable[..., Any], *, allocating: bool = False, inlined: bool = False
) -> Callable[..., Any]:
    """Return what compiles a function on its first call; its decorators stand in `compile`."""
    if config.DISABLE_JIT:  # type: ignore[attr-defined]  # numba sets it by name
        return function
    options = (_ALLOCATING if allocating else _OPTIONS) | ({"forceinline": True} if inlined else {})
    kernel = _Kernel(function, targetoptions=options)
    module = sys.modules[function.__module__]
    own = str(module.__file__), module.__name__
    stamp = f"{_digest(*own)} {_compiler()} {sorted(options.items())}"
    kernel._cache = KernelCache(function, stamp, partial(_runs_its_source, *own))
    kernel.kept = kernel._cache.kept
    return kernel


class _Kernel(NumbaDispatcher):  # type: ignore[misc]
    """A kernel that is compiled once for all the constants that other kernels hand to it."""

    #: Whether later runs find the binary.
    kept = False

    @cached_property
    def _callee(self) -> Callee:
        return Callee(self.py_func, self.targetoptions, kept=self.kept)

    def compile(self, sig: Any) -> Any:
        """Compile for arguments of some types, or load what an earlier run compiled."""
        with CLOCK.stopped(), collector_at_rest():
            result = super().compile(sig)
        for made in self.overloads.values():
            self._returns(made, counted=True)
        return result

    def _returns(self, made: Any, counted: bool) -> None:
        """Refuse to give arrays to a caller that counts when this one does not, or the reverse.

        Their memory would be freed too soon, or never.
        """
        if _has_array(made.signature.return_type) and counted != self.targetoptions["_nrt"]:
            other = "it" if counted else "its caller"
            raise TypeError(f"{self.__name__} returns an array: mark {other} allocating_kernel")

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """Say how another kernel calls this one: by the types of constants, not by their values."""
        _, kinds = self._compiler.fold_argument_types(
            tuple(map(types.unliteral, args)),
            {name: types.unliteral(kind) for name, kind in kws.items()},
        )
        if kinds in self.overloads or self._cache.has(kinds, self.targetctx):  # Python called it
            template, made = super().get_call_template(kinds, {}), self.overloads
        else:
            template, made = self._callee.get_call_template(kinds, {}), self._callee.overloads
        self._returns(made[kinds], counted=ConfigStack().top().nrt)
        return template

    def get_overload(self, sig: Any) -> Any:
        """Return what stands for this kernel in a kernel that calls it."""
        kinds, _ = sigutils.normalize_signature(sig)
        if tuple(kinds) in self.overloads:
            return super().get_overload(sig)
        return self._callee.get_overload(sig)


class _Listener(event.Listener):
    """Counts what is compiled."""

    def on_start(self, event: Any) -> None:
        """A function is being compiled."""
        kernel = event.data["dispatcher"]
        if isinstance(kernel, _Kernel | Callee):
            CLOCK.count(_package(kernel), kernel.py_func.__name__, kernel.kept)

    def on_end(self, event: Any) -> None:
        """It is compiled, or it failed."""


def _package(kernel: Any) -> str:
    """Return the part of placeopt that a kernel belongs to."""
    module: str = kernel.py_func.__module__
    return module.removeprefix("placeopt.").partition(".")[0]


event.register("numba:compile", _Listener())


@cache
def _compiler() -> str:
    """Return the stamp of how kernels that others call become part of them."""
    return hashlib.sha256(
        Path(str(sys.modules[Callee.__module__].__file__)).read_bytes()
    ).hexdigest()


@cache
def _digest(file: str, module_name: str) -> str:
    """Return the stamp of a module: its file, its constants, and the modules with kernels it uses.

    The imports of a module stand above its kernels, so that they are all there when the first
    kernel is defined.
    """
    module = sys.modules[module_name]
    parts = [_source(file)]
    for name, value in sorted(vars(module).items()):
        if not name.startswith("__") and _is_constant(value):
            parts.append(f"{name}={value!r}".encode())
        elif isinstance(value, np.ndarray):
            parts.append(name.encode() + value.tobytes())
    parts += [_digest(path, name).encode() for name, path in sorted(_foreign(module).items())]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


@cache
def _runs_its_source(file: str, module_name: str) -> bool:
    """Return whether the kernels of a module, and those it uses, are those that the stamp is of.

    Python may have read the file before an edit, and the stamp after it; and it runs the bytecode
    of before an edit of the same length in the same second.
    """
    module = sys.modules[module_name]
    codes = set(_codes(SourceFileLoader(module_name, file).source_to_code(_source(file), file)))
    own = [v for v in vars(module).values() if isinstance(v, Dispatcher) and _origin(v) is module]
    return all(kernel.py_func.__code__ in codes for kernel in own) and all(
        _runs_its_source(path, name) for name, path in _foreign(module).items()
    )


@cache
def _source(file: str) -> bytes:
    """Return what a file has when it is first asked for."""
    return Path(file).read_bytes()


def _codes(code: CodeType) -> Iterator[CodeType]:
    """Yield a code object and those inside it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _foreign(module: ModuleType) -> dict[str, str]:
    """Return the other modules with kernels that a module uses, and their files."""
    origins = map(_origin, list(vars(module).values()))
    return {o.__name__: o.__file__ for o in origins if o and o is not module and o.__file__}


def _is_constant(value: Any) -> bool:
    """Return whether a kernel may have compiled in a global of this value."""
    if isinstance(value, tuple):
        return all(map(_is_constant, value))
    return isinstance(value, (bool, int, float, complex, str))


def _origin(value: Any) -> ModuleType | None:
    """Return the module that a kernel is from, or a module that has kernels; else None."""
    if isinstance(value, Dispatcher):
        return sys.modules.get(value.py_func.__module__)
    if isinstance(value, ModuleType) and any(
        isinstance(member, Dispatcher) for member in list(vars(value).values())
    ):
        return value
    return None


def _has_array(kind: Any) -> bool:
    """Return whether a type is one of arrays, or of tuples with some."""
    if isinstance(kind, _TUPLES):
        return any(map(_has_array, kind))
    return isinstance(kind, types.Array)
