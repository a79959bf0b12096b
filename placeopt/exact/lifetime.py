"""Solver runs that outlive the interpreter.

A solver may take seconds to notice that it is to stop, and its thread cannot be ended from outside.
Where the interpreter ends first, such a thread must neither call back into Python nor come back to
it: CPython before 3.14 then ends the thread by unwinding its stack, which C++ code that may not
throw answers with ``std::terminate``, the end of the process by SIGABRT. Nor may the C library
destroy the static objects of the solver while it works with them.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import threading
import time
from contextlib import suppress

from placeopt.exact.engines import Engine

#: How long the end of the interpreter waits for runs that were told to stop.
_LAST_SECONDS = 0.2

#: Runs that may not have ended, by the event that says so.
_RUNS: dict[threading.Event, Engine] = {}
_leaving = threading.Event()


def watch(engine: Engine, done: threading.Event) -> None:
    """Remember a run that is about to begin; `done` is set where it ends.

    While the interpreter ends, a thread in the background begins none any more: it ends here.
    """
    for ended in [other for other in list(_RUNS) if other.is_set()]:
        _RUNS.pop(ended, None)
    _RUNS[done] = engine
    if _leaving.is_set() and threading.current_thread() is not threading.main_thread():
        raise SystemExit


def _leave() -> None:
    """Stop what runs; where that takes too long, let the process end beside it."""
    _leaving.set()
    left = {done: engine for done, engine in list(_RUNS.items()) if not done.is_set()}
    for engine in left.values():
        engine.stop()
        engine.disable_callbacks()
    deadline = time.perf_counter() + _LAST_SECONDS
    if not all(done.wait(max(0.0, deadline - time.perf_counter())) for done in left):
        with suppress(OSError, AttributeError):  # other C libraries do not unwind such threads
            _end_beside()


def _end_beside() -> None:
    """Let threads sleep that would end the process; end it before static objects are destroyed.

    The exit code remains: the C library hands it to ``_exit``.
    """
    libc, runtime = ctypes.CDLL(None), ctypes.CDLL("libstdc++.so.6")
    pointer = ctypes.c_void_p
    runtime._ZSt13set_terminatePFvvE.argtypes = [pointer]  # std::set_terminate
    runtime._ZSt13set_terminatePFvvE(ctypes.cast(libc.pause, pointer))
    libc.fflush(None)
    libc.on_exit.argtypes = [pointer, pointer]
    libc.on_exit(ctypes.cast(libc._exit, pointer), None)


atexit.register(_leave)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_RUNS.clear)  # threads do not follow into a child
