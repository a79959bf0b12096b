"""Who is told that kernels are compiled: the first run of an installation takes seconds for it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(frozen=True)
class Compiling:
    """What is being compiled.

    Attributes
    ----------
    package : str
        Part of placeopt that the kernel belongs to, such as ``temporal``.
    kernel : str
        Name of the function; empty when the last one is done and the run goes on.
    kernels : int
        Compiled so far by this process.
    seconds : float
        That it took so far.
    kept : bool
        Whether later runs find the compiled kernels.
    """

    package: str
    kernel: str
    kernels: int
    seconds: float
    kept: bool


_watchers: list[Callable[[Compiling], None]] = []


@contextmanager
def watched(watcher: Callable[[Compiling], None]) -> Iterator[None]:
    """Tell `watcher`, and nobody else meanwhile, what is being compiled."""
    _watchers.append(watcher)
    try:
        yield
    finally:
        _watchers.remove(watcher)


class Clock:
    """Counts kernels and seconds of one process, and tells the last watcher."""

    def __init__(self) -> None:
        self._kernels, self._spent, self._began, self._depth = 0, 0.0, 0.0, 0

    def begin(self, module: str, kernel: str, kept: bool) -> bool:
        """Say that a kernel is being compiled; return whether none was before."""
        if self._depth == 0:
            self._began = time.perf_counter()
        self._depth += 1
        self._kernels += 1
        self._tell(module, kernel, kept)
        return self._depth == 1

    def end(self, module: str, kept: bool) -> bool:
        """Say that a kernel is compiled; return whether it was the last of its callers."""
        self._depth -= 1
        if self._depth:
            return False
        self._spent += time.perf_counter() - self._began
        self._tell(module, "", kept)
        return True

    def _tell(self, module: str, kernel: str, kept: bool) -> None:
        if _watchers:
            package = module.removeprefix("placeopt.").partition(".")[0]
            running = time.perf_counter() - self._began if kernel else 0.0
            _watchers[-1](Compiling(package, kernel, self._kernels, self._spent + running, kept))
