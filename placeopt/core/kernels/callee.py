"""Kernels as other kernels call them: linked into their callers, without machine code of their own.

numba gives every function machine code and a wrapper for calls from Python. A kernel that only
kernels call needs neither. Leaving both out takes a third off the time that a first solve
compiles.

Nor is such a kernel optimised on its own: all that a kernel calls is optimised with it. Once for
each level of calls would take longer, and loops that were unrolled early make kernels too long to
be compiled into their callers, which then hand over named tuples number by number.
"""

from __future__ import annotations

from typing import Any

from placeopt.core.kernels.numba_parts import CPUDispatcher, FunctionCompiler, compiler

#: Classes of numba, which tells only some of their types.
NumbaDispatcher: Any = CPUDispatcher
_Compiler: Any = FunctionCompiler


class Callee(NumbaDispatcher):  # type: ignore[misc]
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
