"""Independent tasks on workers: this process, processes of this machine, or a Dask cluster.

A task is a function of a `Budget` and of plain arguments. Its result depends on these alone, so
that the results are the same for any number of workers. A worker that dies has its task run again.
Cancelling, and the end of the time, reach workers as a signal that they look for: a file for the
processes of this machine, a `distributed.Event` for those of a cluster. No clocks are compared.
"""

from __future__ import annotations

import os
import secrets
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Protocol

from placeopt.core.budget import Budget
from placeopt.core.errors import MissingExtraError, PlaceoptError, UsageError

#: How often a task is tried whose worker died.
MAX_TRIES = 4


@dataclass(frozen=True)
class Call:
    """One task: ``function(budget, *arguments)``.

    Attributes
    ----------
    function : callable
        Of a module's top level, so that another process finds it.
    arguments : tuple
    evaluations, seconds : optional
        The limit of the task's budget; its seconds count from when it begins.
    """

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    evaluations: int | None = None
    seconds: float | None = None


@dataclass(frozen=True)
class Workers:
    """Where tasks run.

    Attributes
    ----------
    jobs : int
        Processes of this machine; 1 is this process.
    scheduler : str, distributed.Client or None
        A Dask cluster instead: its address, ``tcp://host:8786``, or a client of it.
    """

    jobs: int = 1
    scheduler: Any = None

    def __post_init__(self) -> None:
        if not isinstance(self.jobs, int) or self.jobs < 1:
            raise UsageError(f"jobs is {self.jobs!r}; give a whole number of at least 1")
        address = isinstance(self.scheduler, str) and "://" in self.scheduler
        if self.scheduler is not None and not address and not hasattr(self.scheduler, "submit"):
            raise UsageError(
                f"scheduler is {self.scheduler!r}; give the address of a Dask scheduler, "
                "such as tcp://10.0.0.5:8786, or a distributed.Client"
            )

    def run(
        self,
        calls: Sequence[Call],
        budget: Budget,
        on_result: Callable[[int, Any], None] = lambda k, result: None,
    ) -> list[Any]:
        """Run tasks until they end or `budget` does; return their results in order.

        Parameters
        ----------
        calls : sequence of Call
        budget : Budget
            Tasks are asked to stop when it is cancelled or out of time; what is not begun by then
            has the result None. Their evaluations are not counted on it.
        on_result : callable
            Called here with the number and the result of each task as it ends.
        """
        if self.scheduler is not None:
            found = _on_cluster(self.scheduler, calls, budget)
        elif min(self.jobs, len(calls)) > 1:
            found = _on_processes(min(self.jobs, len(calls)), calls, budget)
        else:
            found = _here(calls, budget)
        results: list[Any] = [None] * len(calls)
        for k, result in found:
            results[k] = result
            on_result(k, result)
        return results


class _Signal(Protocol):
    """How workers learn that they shall stop."""

    def is_set(self) -> bool: ...


@dataclass(frozen=True)
class _File:
    """A file that appears: for processes of one machine."""

    path: str

    def is_set(self) -> bool:
        return os.path.exists(self.path)

    def set(self) -> None:
        with suppress(FileExistsError):
            open(self.path, "x").close()


@dataclass(frozen=True)
class _Event:
    """An event of a Dask cluster, asked for by its name."""

    name: str

    def is_set(self) -> bool:
        from distributed import Event, get_client

        return bool(Event(self.name, client=get_client()).is_set())


def _here(calls: Sequence[Call], budget: Budget) -> Iterator[tuple[int, Any]]:
    for k, call in enumerate(calls):
        if k and budget.out_of_time:
            return
        own = Budget(
            call.evaluations,
            _least(call.seconds, budget.seconds_left),
            budget.on_progress,
            stop=lambda: budget.cancelled,
        )
        yield k, call.function(own, *call.arguments)


def _least(seconds: float | None, left: float) -> float | None:
    """Return the lesser of two limits in seconds, where there is one; above 0."""
    limits = [limit for limit in (seconds, left) if limit is not None and limit < float("inf")]
    return max(min(limits), 1e-6) if limits else None


def _task(call: Call, signal_: _Signal, parent: int | None) -> Any:
    """Run a task in a process of its own."""
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
        if threading.current_thread() is threading.main_thread():
            # A terminal sends Ctrl-C to all processes; the one that asked for this task decides.
            signal.signal(signal.SIGINT, signal.SIG_IGN)
    budget = Budget(call.evaluations, call.seconds, stop=signal_.is_set)
    return None if budget.cancelled else call.function(budget, *call.arguments)


def _end_with(parent: int) -> None:
    """End this process soon after its parent has ended, however that came about."""
    while os.getppid() == parent:
        time.sleep(0.2)
    os._exit(1)


def _on_processes(jobs: int, calls: Sequence[Call], budget: Budget) -> Iterator[tuple[int, Any]]:
    import joblib
    from joblib.externals.loky.process_executor import BrokenProcessPool

    name = f"placeopt-cancelled-{os.getpid()}-{secrets.token_hex(8)}"
    flag = _File(os.path.join(tempfile.gettempdir(), name))
    left = dict(enumerate(calls))
    with _watched(budget, flag.set):
        try:
            for _ in range(MAX_TRIES):
                engine = joblib.Parallel(n_jobs=jobs, return_as="generator_unordered")
                try:
                    tasks = (
                        joblib.delayed(_numbered)(k, call, flag, os.getpid())
                        for k, call in list(left.items())
                    )
                    for k, result in engine(tasks):
                        del left[k]
                        yield k, result
                except BrokenProcessPool:  # a worker died; what it had is run again
                    continue
                return
            raise PlaceoptError(f"workers died {MAX_TRIES} times in a row; is there enough memory?")
        finally:
            with suppress(FileNotFoundError):
                os.unlink(flag.path)


def _numbered(k: int, call: Call, signal_: _Signal, parent: int | None) -> tuple[int, Any]:
    return k, _task(call, signal_, parent)


def _on_cluster(scheduler: Any, calls: Sequence[Call], budget: Budget) -> Iterator[tuple[int, Any]]:
    try:
        from distributed import Client, Event, as_completed
    except ModuleNotFoundError:
        raise MissingExtraError("a Dask cluster", "dask") from None
    client = Client(scheduler, timeout=10) if isinstance(scheduler, str) else scheduler
    event = Event(f"placeopt-cancelled-{secrets.token_hex(8)}", client=client)
    try:
        futures = client.map(
            _numbered,
            range(len(calls)),
            list(calls),
            signal_=_Event(event.name),
            parent=None,
            pure=False,
            retries=MAX_TRIES - 1,
        )
        with _watched(budget, event.set):
            for future in as_completed(futures):
                yield future.result()
    finally:
        if client is not scheduler:
            client.close()


@contextmanager
def _watched(budget: Budget, stop: Callable[[], None]) -> Iterator[None]:
    """Call `stop` once the budget is cancelled or out of time, while the block runs."""
    done = threading.Event()

    def watch() -> None:
        while not done.wait(0.05):
            if budget.out_of_time:
                stop()
                return

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()
