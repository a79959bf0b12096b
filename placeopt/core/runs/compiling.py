"""Compiling: who is told of it, and the clock of work, which stands still meanwhile.

The first run of an installation compiles its kernels. That takes seconds, twice as many on a busy
machine, and is no work of the run: time limits are read from a `Clock` that leaves these seconds
out. A worker tells the process that waits for it what it compiles, so that the clock of that
process stands still as well.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

#: Seconds after its last message at which a worker that was compiling is taken for dead.
SILENT_SECONDS = 60.0
#: Names this process among workers.
PROCESS = secrets.token_hex(8)


class Expected(NamedTuple):
    """What a first run compiles where nothing is compiled yet; zeros if that is not known."""

    kernels: int = 0
    seconds: float = 0.0


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
        Compiled by this process and its workers since the watcher began.
    seconds : float
        That the process waited for them.
    kept : bool
        Whether later runs find the compiled kernels.
    expected : Expected
        What the whole run compiles at most.
    """

    package: str
    kernel: str
    kernels: int
    seconds: float
    kept: bool
    expected: Expected

    def __str__(self) -> str:
        """Say it in a few words."""
        most = f" of up to {self.expected.kernels}" if self.expected.kernels else ""
        about = f" of about {self.expected.seconds:.0f}" if self.expected.kernels else ""
        return (
            f"compiling {self.package}, once: {self.kernel.lstrip('_')} "
            f"| {self.kernels}{most} kernels | {self.seconds:.0f}{about} s"
        )


class Message(NamedTuple):
    """What a worker process has compiled since the run began; `kernel` is the one at work."""

    process: str
    package: str
    kernel: str
    kernels: int
    seconds: float
    kept: bool


class _Heard(NamedTuple):
    """The last message of a worker, when it came, and since when the worker compiles."""

    message: Message
    at: float
    since: float | None


class Elsewhere:
    """What the workers of one run compile. The one that compiles longest holds the run up."""

    def __init__(self, clock: Clock):
        self._clock = clock
        self._heard: dict[str, _Heard] = {}

    def hear(self, message: Message) -> None:
        """Take a message of a worker; what this process compiles itself is known already."""
        before = self._heard.get(message.process)
        if message.process == PROCESS or (before and before.message == message):
            return
        now = self._clock.now()
        since = before.since if before and before.since is not None else now
        self._heard[message.process] = _Heard(message, now, since if message.kernel else None)
        self._clock.tell(message.package, message.kernel, message.kept)

    def forget_running(self) -> None:
        """Take all workers for idle: they are gone."""
        for name, one in self._heard.copy().items():
            message = one.message._replace(kernel="", seconds=self._seconds_of(one))
            self._heard[name] = one._replace(message=message, since=None)

    @property
    def kernels(self) -> int:
        """Compiled by all workers."""
        return sum(one.message.kernels for one in self._heard.copy().values())

    @property
    def seconds(self) -> float:
        """Seconds of the worker that compiled longest."""
        return max(map(self._seconds_of, self._heard.copy().values()), default=0.0)

    def _seconds_of(self, one: _Heard) -> float:
        if one.since is None:
            return one.message.seconds
        until = min(self._clock.now(), one.at + SILENT_SECONDS)
        return one.message.seconds + until - one.since


class Clock:
    """The seconds of work of a process: those in which nothing is compiled for it.

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
        self._elsewhere: tuple[Elsewhere, ...] = ()
        self._done_elsewhere, self._kernels_elsewhere, self._kernels = 0.0, 0, 0
        self._latest = float("-inf")
        self._watchers: list[tuple[Callable[[Compiling], None], int, float]] = []
        self._tellers: list[tuple[str, Callable[[Message], None]]] = []
        self._bases: dict[str, tuple[int, float]] = {}
        self._expected: list[Callable[[], Expected]] = []
        #: Whether later runs find all that was compiled.
        self.kept = True

    @property
    def seconds(self) -> float:
        """Seconds of work since some moment; they never fall."""
        since, own = self._own
        now = self.now() if since is None else since
        self._latest = max(self._latest, now - own - self._seconds_elsewhere())
        return self._latest

    @property
    def kernels(self) -> int:
        """Kernels compiled since the process began, by itself and by its workers."""
        here = self._kernels + self._kernels_elsewhere
        return here + sum(each.kernels for each in self._elsewhere)

    @property
    def cpu_seconds(self) -> float:
        """CPU seconds of work of all threads of this process."""
        stopped = self._own[0] is not None
        return (self._before[2] if stopped else time.process_time()) - self._compiling_cpu

    @property
    def compiled(self) -> float:
        """Seconds that were left out since the process began."""
        since, own = self._own
        running = 0.0 if since is None else self.now() - since
        return own + running + self._seconds_elsewhere()

    def _seconds_elsewhere(self) -> float:
        if not self._elsewhere:
            return self._done_elsewhere
        return self._done_elsewhere + sum(each.seconds for each in self._elsewhere)

    # -- compiling in this process ---------------------------------------------------------------

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Let the block be no work if kernels are compiled in it."""
        with self._lock:
            self._depth += 1
            if self._depth == 1:
                self._before = self._kernels, time.thread_time(), time.process_time()
                self._own = self.now(), self._own[1]
        try:
            yield
        finally:
            with self._lock:
                self._depth -= 1
                ended = self._depth == 0 and self._go()
            if ended:
                self.tell(self._package, "", self.kept)

    def _go(self) -> bool:
        """Let the clock go on; return whether something was compiled."""
        (since, left_out), (kernels, cpu, _) = self._own, self._before
        assert since is not None
        compiled = self._kernels > kernels
        if compiled:
            left_out += self.now() - since
            self._compiling_cpu += max(0.0, time.thread_time() - cpu)
        self._own = None, left_out
        return compiled

    def count(self, package: str, kernel: str, kept: bool) -> None:
        """Count a kernel that is being compiled while the clock is stopped, and say so."""
        self._kernels += 1
        self._package = package
        self.tell(package, kernel, kept)

    # -- compiling for this process by its workers -----------------------------------------------

    @contextmanager
    def elsewhere(self) -> Iterator[Elsewhere]:
        """Leave out what the workers of a run compile; yield what hears their messages."""
        others = Elsewhere(self)
        with self._lock:
            self._elsewhere = (*self._elsewhere, others)
        try:
            yield others
        finally:
            others.forget_running()
            with self._lock:
                self._elsewhere = tuple(each for each in self._elsewhere if each is not others)
                self._done_elsewhere += others.seconds
                self._kernels_elsewhere += others.kernels

    @contextmanager
    def telling(self, run: str, send: Callable[[Message], None]) -> Iterator[None]:
        """Send messages of what this process compiles from the first task of a run on."""
        self._bases.setdefault(run, (self.kernels, self.compiled))
        teller = run, send
        self._tellers.append(teller)
        try:
            yield
        finally:
            self._tellers.remove(teller)

    # -- who is told -----------------------------------------------------------------------------

    @property
    def is_watched(self) -> bool:
        """Whether somebody is told what is compiled."""
        return bool(self._watchers)

    @contextmanager
    def watched(self, watcher: Callable[[Compiling], None]) -> Iterator[None]:
        """Tell `watcher`, and nobody else meanwhile, what is being compiled."""
        entry = watcher, self.kernels, self.compiled
        self._watchers.append(entry)
        try:
            yield
        finally:
            self._watchers.remove(entry)

    @contextmanager
    def expecting(self, expected: Callable[[], Expected]) -> Iterator[None]:
        """Tell watchers what a run in the block compiles at most, if no larger one contains it."""
        self._expected.append(expected)
        try:
            yield
        finally:
            self._expected.remove(expected)

    def tell(self, package: str, kernel: str, kept: bool) -> None:
        """Tell the last watcher, and those for whom this process is a worker."""
        self.kept = self.kept and kept
        if self._watchers:
            watcher, kernels, seconds = self._watchers[-1]
            expected = self._expected[0]() if self._expected else Expected()
            counts = self.kernels - kernels, self.compiled - seconds
            watcher(Compiling(package, kernel, *counts, kept, expected))
        for run, send in tuple(self._tellers):
            kernels, seconds = self._bases[run]
            done = max(0.0, self._own[1] + self._seconds_elsewhere() - seconds)
            send(Message(PROCESS, package, kernel, self.kernels - kernels, done, kept))


#: The clock of this process.
CLOCK = Clock()
