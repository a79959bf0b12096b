"""Compiling: who is told of it, and the clock of work, which stands still meanwhile.

The first run of an installation compiles its kernels. That takes seconds, twice as many on a busy
machine, and is no work of the run: time limits are read from a `Clock` that leaves these seconds
out. Who starts other processes under a time limit lets this one compile first: compiled kernels are
kept on the disk.
"""

from __future__ import annotations

import threading
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
        Compiled since the watcher began.
    seconds : float
        That the process waited for them.
    kept : bool
        Whether later runs find the compiled kernels.
    """

    package: str
    kernel: str
    kernels: int
    seconds: float
    kept: bool

    def __str__(self) -> str:
        """Say it in a few words."""
        return (
            f"compiling {self.package}, once: {self.kernel.lstrip('_')} "
            f"| {self.kernels} kernel{'s' * (self.kernels != 1)} | {self.seconds:.0f} s"
        )


class Clock:
    """The seconds of work of a process: those in which it compiles nothing.

    Parameters
    ----------
    now : callable
        Seconds of a clock that never stands still.

    Examples
    --------
    >>> hand = iter([0.0, 2.0, 9.0, 10.0])
    >>> clock = Clock(lambda: next(hand))
    >>> clock.seconds
    0.0
    >>> with clock.stopped():  # from 2 to 9
    ...     clock.count("temporal", "pack", kept=True)
    >>> clock.seconds, clock.compiled
    (3.0, 7.0)
    """

    def __init__(self, now: Callable[[], float] = time.perf_counter):
        self.now = now
        self._lock, self._depth = threading.Lock(), 0
        # Kernels, and CPU seconds of the thread and of the process, when the clock was stopped.
        self._before, self._compiling_cpu = (0, 0.0, 0.0), 0.0
        self._package = ""
        # Since when this process compiles, and what it compiled before; read without the lock.
        self._own: tuple[float | None, float] = (None, 0.0)
        self._watchers: list[tuple[Callable[[Compiling], None], int, float]] = []
        #: Kernels compiled since the process began.
        self.kernels = 0
        #: Whether later runs find all that was compiled.
        self.kept = True

    @property
    def seconds(self) -> float:
        """Seconds of work since some moment."""
        since, own = self._own
        return (self.now() if since is None else since) - own

    @property
    def cpu_seconds(self) -> float:
        """CPU seconds of work of all threads of this process."""
        stopped = self._own[0] is not None
        return (self._before[2] if stopped else time.process_time()) - self._compiling_cpu

    @property
    def compiled(self) -> float:
        """Seconds that were left out since the process began."""
        since, own = self._own
        return own + (0.0 if since is None else self.now() - since)

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Let the block be no work if kernels are compiled in it."""
        with self._lock:
            self._depth += 1
            if self._depth == 1:
                self._before = self.kernels, time.thread_time(), time.process_time()
                self._own = self.now(), self._own[1]
        try:
            yield
        finally:
            with self._lock:
                self._depth -= 1
                ended = self._depth == 0 and self._go()
            if ended:
                self._tell("")

    def _go(self) -> bool:
        """Let the clock go on; return whether something was compiled."""
        (since, left_out), (kernels, cpu, _) = self._own, self._before
        assert since is not None
        compiled = self.kernels > kernels
        if compiled:
            left_out += self.now() - since
            self._compiling_cpu += max(0.0, time.thread_time() - cpu)
        self._own = None, left_out
        return compiled

    def count(self, package: str, kernel: str, kept: bool) -> None:
        """Count a kernel that is being compiled while the clock is stopped, and say so."""
        self.kernels += 1
        self.kept = self.kept and kept
        self._package = package
        self._tell(kernel)

    @contextmanager
    def watched(self, watcher: Callable[[Compiling], None]) -> Iterator[None]:
        """Tell `watcher`, and nobody else meanwhile, what is being compiled."""
        entry = watcher, self.kernels, self.compiled
        self._watchers.append(entry)
        try:
            yield
        finally:
            self._watchers.remove(entry)

    def _tell(self, kernel: str) -> None:
        if self._watchers:
            watcher, kernels, seconds = self._watchers[-1]
            counts = self.kernels - kernels, self.compiled - seconds
            watcher(Compiling(self._package, kernel, *counts, self.kept))


#: The clock of this process.
CLOCK = Clock()
