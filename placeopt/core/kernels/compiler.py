"""All that placeopt has of numba: how a kernel is compiled, and where its binary is kept.

An edit is never served stale. A kernel may call kernels of other files, use their constants, and
take their named tuples. So the binary of each kernel is kept under a stamp of its own file and of
the files with kernels that its module imports, transitively, of the constants in its module, and of
how it is compiled. It is not kept where these files are no longer what runs.

A kernel works on arrays that it is given. numba counts who uses an array, to free it in the end,
wherever a name stands for one; in kernels of named tuples that takes more time than their work. So
kernels here do not count, and cannot make arrays. Those that do are marked `allocating_kernel`.

numba gives every function machine code and a wrapper for calls from Python. A kernel that only
kernels call needs neither: it is linked into its callers (`Callee`). Leaving both out takes a third
off the time that a first solve compiles. Nor is such a kernel optimised on its own: all that a
kernel calls is optimised with it. Once for each level of calls would take longer, and loops that
were unrolled early make kernels too long to be compiled into their callers, which then hand over
named tuples number by number.

numba keeps a kernel's binary beside its source and asks the source file alone whether the binary is
still good. Here the stamp decides. A wheel may bring binaries for any CPU of its platform, in a
folder that is only read. They serve where the stamp and the versions of numba and Python are those
of the build; elsewhere a kernel is compiled anew. Whoever works on placeopt may name a folder
outside the checkout (`KEPT`): what one checkout compiled serves all.

Only this file imports from ``numba.core``, whose parts numba does not promise to keep. The bound on
numba's version in ``pyproject.toml`` is raised when the tests pass with a newer one
(`tests/core/test_private_parts.py`).

Raises
------
UnsupportedError
    This numba lacks a part.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache, cached_property, partial
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import numba
import numpy as np

from placeopt.core.errors import UnsupportedError
from placeopt.core.runs.compiling import CLOCK
from placeopt.core.runs.process import collector_at_rest

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

#: Classes of numba, which tells only some of their types.
_Dispatcher: Any = CPUDispatcher
_Compiler: Any = _FunctionCompiler
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


class _Kernel(_Dispatcher):  # type: ignore[misc]
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
    return hashlib.sha256(_source(__file__)).hexdigest()


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


# -- kernels that kernels call ---------------------------------------------------------------------


class Callee(_Dispatcher):  # type: ignore[misc]
    """A kernel for callers that are kernels; it cannot be called from Python."""

    _compiler: Any

    def __init__(self, function: Any, options: dict[str, Any], kept: bool) -> None:
        super().__init__(function, targetoptions=options)
        #: Whether later runs find the binary of its callers.
        self.kept = kept
        own = self._compiler
        self._compiler = _LinkedCompiler(
            own.py_func, own.targetdescr, own.targetoptions, own.locals, own.pipeline_class
        )

    def add_overload(self, cres: Any) -> None:
        """Register what was compiled under a key of its own, where numba has its address."""
        result = cres._replace(entry_point=_Key())
        self.targetctx.insert_user_function(result.entry_point, result.fndesc, [result.library])
        self.overloads[tuple(result.signature.args)] = result


class _Key:
    """Stands for the address of a function that has none."""


class _LinkedCompiler(_Compiler):  # type: ignore[misc]
    """Compiles to LLVM's language only."""

    def _compile_core(self, args: Any, return_type: Any) -> Any:
        flags: Any = compiler.Flags()
        self.targetdescr.options.parse_as_flags(flags, self.targetoptions)
        flags.no_compile = flags.no_cpython_wrapper = True
        context = self.targetdescr.target_context
        compiled = compiler.compile_extra(
            self.targetdescr.typing_context,
            context,
            self.py_func,
            args=args,
            return_type=return_type,
            flags=flags,
            locals=self.locals,
            library=_unemitted(context.codegen().create_library(self.py_func.__qualname__)),
            pipeline_class=self.pipeline_class,
        )
        if compiled.typing_error is not None:
            raise compiled.typing_error
        return compiled


def _unemitted(library: Any) -> Any:
    """Return the library, changed: what is in it is linked, not optimised or made into code."""

    def finish() -> None:
        library._finalize_dynamic_globals()
        library._finalized = True

    library._finalize_final_module = finish
    library._optimize_final_module = lambda: None
    return library


# -- where binaries are kept -----------------------------------------------------------------------

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
