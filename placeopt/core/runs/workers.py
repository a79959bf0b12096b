"""Independent tasks on workers: this process, processes of this machine, or a Dask cluster.

A task is a function of a `Budget` and of plain arguments. Its result depends on these alone, so
that the results are the same for any number of workers. A worker that dies has its task run again.
Cancelling, and the end of the time, reach workers as a signal that they look for: a file that is
gone for the processes of this machine, an event for those of a cluster. No clocks are compared.
Finished tasks that have a key are kept in a run directory, if there is one, and taken from it.

Processes and cluster are one engine: both are executors of `concurrent.futures`.
"""

from __future__ import annotations

import os
import secrets
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from placeopt.core.budget import Budget, Progress
from placeopt.core.errors import MissingExtraError, PlaceoptError, UsageError, shown
from placeopt.core.fronts.values import versions
from placeopt.core.runs.run_directory import Checkpoint, RunDirectory
from placeopt.core.spec import ADDED, ProblemSpec

#: How often workers may die in a row before a task ends.
MAX_TRIES = 4
#: How the files of this process begin, one for each run.
_RUNS = f"placeopt-run-{secrets.token_hex(8)}-"
#: Seconds between two looks at whether the time is over.
_LOOK = 0.05
#: Seconds after which a process that has nothing to do ends.
_IDLE_SECONDS = 300
#: Seconds to wait for a scheduler's first answer.
_CONNECT_SECONDS = 10
_GONE = "the Dask scheduler is gone; the same command with --run-dir takes up what was finished"


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
    key : dict, optional
        All that the result depends on, as JSON. A run directory keeps results under it.
    added : dict
        Problems that the worker has to know, by kind.
    """

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    evaluations: int | None = None
    seconds: float | None = None
    key: dict[str, Any] | None = None
    added: dict[str, ProblemSpec] = field(default_factory=ADDED.copy)


class Done(NamedTuple):
    """The result of a task, and whether it is whole: nobody asked the task to stop before."""

    result: Any
    whole: bool


_Ending = Generator[tuple[int, Done], None, None]


def perform(call: Call, stop: Callable[[], bool]) -> Done:
    """Perform a task; `stop` says whether somebody outside cancels it."""
    ADDED.update(call.added)
    budget = Budget(call.evaluations, call.seconds, stop=stop)
    if budget.cancelled:
        return Done(None, False)
    return Done(call.function(budget, *call.arguments), not budget.cancelled)


@dataclass(frozen=True)
class Workers:
    """Where tasks run, and where their results are kept.

    Attributes
    ----------
    jobs : int
        Processes of this machine; 1 is this process.
    scheduler : str, distributed.Client or None
        A Dask cluster instead: its address, ``tcp://host:8786``, or a client of it.
    kept : RunDirectory or None
        Finished tasks.
    """

    jobs: int = 1
    scheduler: Any = None
    kept: RunDirectory | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.jobs, int) or self.jobs < 1:
            raise UsageError(f"jobs is {shown(self.jobs)}; give a whole number of at least 1")
        address = isinstance(self.scheduler, str) and "://" in self.scheduler
        if self.scheduler is not None and not address and not hasattr(self.scheduler, "submit"):
            raise UsageError(
                f"scheduler is {shown(self.scheduler)}; give the address of a Dask scheduler, "
                "such as tcp://10.0.0.5:8786, or a distributed.Client"
            )

    def run(
        self,
        calls: Sequence[Call],
        budget: Budget,
        on_result: Callable[[int, Any], None] = lambda k, result: None,
        on_begin: Callable[[dict[int, Any]], None] = lambda kept: None,
    ) -> list[Any]:
        """Run tasks until they end or `budget` does; return their results in order.

        Parameters
        ----------
        calls : sequence of Call
            Those whose results are kept already are not run again.
        budget : Budget
            Tasks are asked to stop when it is cancelled or out of time; what is not begun by then
            has the result None. Their evaluations are not counted on it.
        on_result : callable
            Called here with the number and the result of each task as it ends.
        on_begin : callable
            Called here with the results that are kept already, by number.
        """
        results: list[Any] = [self._known(call) for call in calls]
        left = {k: call for k, call in enumerate(calls) if results[k] is None}
        on_begin({k: result for k, result in enumerate(results) if result is not None})
        with closing(self._performed(left, budget)) as performed:
            for k, done in performed:
                results[k] = done.result
                key = calls[k].key
                if done.whole and key is not None and self.kept is not None:
                    self.kept.write(key, done.result)
                on_result(k, done.result)
        return results

    def width(self, tasks: int) -> int:
        """Return how many of so many tasks run at the same time."""
        if self.scheduler is None:
            return min(self.jobs, tasks)
        with _connected(self.scheduler) as client:
            return min(max(1, sum(client.nthreads().values())), tasks)

    def seconds_each(self, tasks: int, budget: Budget) -> float | None:
        """Return the seconds of each of so many equal tasks; None without a time limit."""
        if budget.seconds_limit is None:
            return None
        return budget.seconds_left / -(-tasks // self.width(tasks))

    def checkpoint(self, key: dict[str, Any]) -> Checkpoint | None:
        """Return where a task keeps what it has found so far; None where workers cannot reach it.

        It is forgotten when the task's result is kept.
        """
        return self.kept.checkpoint(key) if self.kept and self.scheduler is None else None

    def _known(self, call: Call) -> Any:
        return self.kept.read(call.key) if self.kept and call.key is not None else None

    def _performed(self, calls: dict[int, Call], budget: Budget) -> _Ending:
        jobs = min(self.jobs, len(calls))
        if self.scheduler is not None and calls:
            yield from _elsewhere(partial(_cluster, self.scheduler), calls, budget)
        elif jobs > 1:
            yield from _elsewhere(partial(_processes, jobs), calls, budget)
        else:
            yield from _here(calls, budget)


# -- this process ----------------------------------------------------------------------------------


def _here(calls: Mapping[int, Call], budget: Budget) -> Iterator[tuple[int, Done]]:
    for done, (k, call) in enumerate(calls.items()):
        if done and budget.out_of_time:
            return
        seconds = call.seconds
        if seconds is not None:
            seconds = max(1e-6, min(seconds, budget.seconds_left))
        own = Budget(
            call.evaluations,
            seconds,
            _told_of_all(budget, done, len(calls)),
            stop=lambda: budget.out_of_time,
            clock=budget.clock,
        )
        own.watch = budget.watch
        yield k, Done(call.function(own, *call.arguments), not own.cancelled)


def _told_of_all(budget: Budget, done: int, total: int) -> Callable[[Progress], None] | None:
    """Return what tells the progress of one task as that of all."""
    tell = budget.on_progress
    if tell is None:
        return None
    return lambda state: tell(
        replace(state, seconds=budget.seconds, share=(done + state.share) / total)
    )


# -- other processes -------------------------------------------------------------------------------


class _Pool(NamedTuple):
    """Processes that perform tasks.

    Attributes
    ----------
    submit : callable
        ``submit(k, call)``: hand over a task.
    stop : callable
        Asks the tasks that run to stop, and those that begin later.
    waiting : callable
        ``waiting(tasks)``: those for which no worker may be free soon; after `stop`.
    """

    submit: Callable[[int, Call], Future[Done]]
    stop: Callable[[], object]
    waiting: Callable[[Sequence[int]], Sequence[int]]


def _elsewhere(
    pools: Callable[[], AbstractContextManager[_Pool]], calls: dict[int, Call], budget: Budget
) -> Iterator[tuple[int, Done]]:
    """Yield the number and the result of each task as it ends."""
    left, tries = dict(calls), 0
    while left:
        with pools() as pool:
            try:
                for k, future in _ended(pool, left, budget):
                    done = Done(None, False) if future.cancelled() else _result(future)
                    del left[k]
                    tries = 0
                    yield k, done
            except BrokenExecutor:  # a worker died; what it had is run again
                tries += 1
                if tries == MAX_TRIES:
                    raise PlaceoptError(
                        f"workers died {MAX_TRIES} times in a row; is there enough memory?"
                    ) from None


def _ended(
    pool: _Pool, calls: Mapping[int, Call], budget: Budget
) -> Iterator[tuple[int, Future[Done]]]:
    """Yield each task that ended; those that were not begun in time are cancelled."""
    numbers = {pool.submit(k, call): k for k, call in calls.items()}
    stopped = False
    while numbers:
        done, _ = wait(numbers, timeout=_LOOK, return_when=FIRST_COMPLETED)
        if budget.out_of_time:
            if not stopped:
                pool.stop()
                stopped = True
            elif not done:
                waiting = pool.waiting(list(numbers.values()))
                for future in [future for future, k in numbers.items() if k in waiting]:
                    future.cancel()
        elif any(future.cancelled() for future in done):
            raise PlaceoptError(_GONE)
        for future in done:
            yield numbers.pop(future), future


def _result(future: Future[Done]) -> Done:
    """Return the result of a task.

    Raises
    ------
    PlaceoptError
        What the task raised, or why a cluster cannot perform it.
    """
    try:
        return future.result()
    except (ImportError, RuntimeError) as error:
        if isinstance(error, ImportError) or "deserialization" in str(error):
            raise UsageError(
                f"a worker cannot load the task: {error}; install the same placeopt on the "
                "machines of the scheduler and of all workers"
            ) from None
        raise
    except Exception as error:
        if type(error).__name__ != "KilledWorker":
            raise
        raise PlaceoptError(
            "one task ended several workers of the cluster; have they enough memory?"
        ) from None


# -- processes of this machine ---------------------------------------------------------------------


@contextmanager
def _processes(jobs: int) -> Iterator[_Pool]:
    """Start processes, or take those that are there; where the block fails, they end."""
    from joblib.externals.loky import get_reusable_executor

    executor = get_reusable_executor(
        jobs, timeout=_IDLE_SECONDS, initializer=_follow, initargs=(os.getpid(), _RUNS)
    )
    handle, path = tempfile.mkstemp(prefix=_RUNS)
    os.close(handle)
    try:
        yield _Pool(
            lambda _, call: executor.submit(_in_process, call, path),
            partial(_remove, path),
            lambda tasks: (),  # every task ends soon then
        )
    except BaseException:
        executor.shutdown(wait=False, kill_workers=True)
        raise
    finally:
        _remove(path)


def _remove(path: str) -> None:
    with suppress(OSError):
        os.unlink(path)


def _in_process(call: Call, path: str) -> Done:
    """Perform a task in a process of its own."""
    return perform(call, lambda: not os.path.exists(path))


def _follow(parent: int, runs: str) -> None:
    """Prepare a worker process: it ends soon after its parent, and leaves Ctrl-C to it."""
    threading.Thread(target=_end_with, args=(parent, runs), daemon=True).start()
    if threading.current_thread() is threading.main_thread():
        # A terminal sends Ctrl-C to all processes; the one that asked for this task decides.
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def _end_with(parent: int, runs: str) -> None:
    """End this process soon after its parent has ended, however that came about.

    A parent that was killed has left its file behind.
    """
    while os.getppid() == parent:
        time.sleep(0.2)
    for path in Path(tempfile.gettempdir()).glob(f"{runs}*"):
        _remove(str(path))
    os._exit(1)


# -- a Dask cluster --------------------------------------------------------------------------------


@contextmanager
def _connected(scheduler: Any) -> Iterator[Any]:
    """Yield a client of a cluster.

    Raises
    ------
    MissingExtraError
        Dask is not installed.
    UsageError
        Nobody answers at the address.
    """
    try:
        from distributed import Client
    except ModuleNotFoundError:
        raise MissingExtraError("a Dask cluster", "dask") from None
    if not isinstance(scheduler, str):
        yield scheduler
        return
    try:
        client = Client(scheduler, timeout=_CONNECT_SECONDS)
    except (OSError, ValueError) as error:
        raise UsageError(
            f"no Dask scheduler answers at {scheduler}: {error}; start one with `dask scheduler`"
        ) from None
    with client:
        yield client


@contextmanager
def _cluster(scheduler: Any) -> Iterator[_Pool]:
    """Connect to a cluster; what is still at work when the block ends stops, as nobody waits."""
    with _connected(scheduler) as client:
        from distributed import Event

        token, version = secrets.token_hex(8), versions()["placeopt"]
        event, executor = Event(f"placeopt-stop-{token}", client=client), client.get_executor()

        def key(k: int) -> str:
            return f"placeopt-{token}-{k}"

        def submit(k: int, call: Call) -> Future[Done]:
            future: Future[Done] = executor.submit(
                _on_worker, call, event.name, version, key=key(k)
            )
            return future

        def waiting(tasks: Sequence[int]) -> list[int]:
            at_work = {key for keys in client.processing().values() for key in keys}
            return [k for k in tasks if key(k) not in at_work]

        try:
            yield _Pool(submit, event.set, waiting)
        except OSError as error:
            raise PlaceoptError(f"{_GONE} ({error})") from None
        finally:
            with suppress(Exception):  # the cluster may be gone
                executor.shutdown(wait=False)
                event.clear()


def _on_worker(call: Call, event: str, version: str) -> Done:
    """Perform a task on a worker of a cluster."""
    own = versions()["placeopt"]
    if own != version:
        raise UsageError(
            f"a worker of the cluster has placeopt {own}, this is {version}; install the same"
        )
    from distributed import Event, get_client, get_worker

    worker = get_worker()
    key, known = worker.get_current_task(), worker.state.tasks
    stop = Event(event, client=get_client())

    def stopped() -> bool:
        task = known.get(key)
        abandoned = task is None or task.state == "cancelled"  # nobody waits for the result
        return abandoned or bool(stop.is_set())

    return perform(call, stopped)
