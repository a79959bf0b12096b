"""Independent tasks on workers: this process, processes of this machine, or a Dask cluster.

A task is a function of a `Budget` and of plain arguments. Its result depends on these alone, so
that the results are the same for any number of workers. A worker that dies has its task run again.
Cancelling, and the end of the time, reach workers as a signal that they look for: a file for the
processes of this machine, an event for those of a cluster. Workers tell what they compile in the
same way, by files and by events of the cluster; that is no work, so the time of the run stands
still meanwhile. No clocks are compared. Finished tasks that have a key are kept in a run directory,
if there is one, and taken from it.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from placeopt.core.budget import Budget, Progress
from placeopt.core.errors import PlaceoptError, UsageError, shown
from placeopt.core.runs.calls import Call, Done, perform
from placeopt.core.runs.cluster import Cluster, connected
from placeopt.core.runs.compiling import CLOCK, PROCESS, Elsewhere, Message
from placeopt.core.runs.run_directory import Checkpoint, RunDirectory

#: How often workers may die in a row before a task ends.
MAX_TRIES = 4


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
        left = [k for k, result in enumerate(results) if result is None]
        on_begin({k: result for k, result in enumerate(results) if result is not None})
        for position, done in self._performed([calls[k] for k in left], budget):
            k = left[position]
            results[k] = done.result
            key = calls[k].key
            if done.whole and key is not None and self.kept is not None:
                self.kept.write(key, done.result)
            on_result(k, done.result)
        return results

    def width(self, tasks: int, budget: Budget) -> int:
        """Return how many of so many tasks run at the same time."""
        with self.cluster(budget) as cluster:
            return min(self.jobs if cluster is None else cluster.width, tasks)

    def seconds_each(self, tasks: int, budget: Budget) -> float | None:
        """Return the seconds of each of so many equal tasks; None without a time limit."""
        if budget.seconds_limit is None:
            return None
        return budget.seconds_left / -(-tasks // self.width(tasks, budget))

    @contextmanager
    def cluster(self, budget: Budget) -> Iterator[Cluster | None]:
        """Connect to the cluster, if there is one: for callers who ask from threads."""
        if self.scheduler is None:
            yield None
            return
        with connected(self.scheduler, budget) as cluster:
            yield cluster

    def checkpoint(self, key: dict[str, Any]) -> Checkpoint | None:
        """Return where a task keeps what it has found so far; None where workers cannot reach it.

        It is forgotten when the task's result is kept.
        """
        return self.kept.checkpoint(key) if self.kept and self.scheduler is None else None

    def _known(self, call: Call) -> Any:
        return self.kept.read(call.key) if self.kept and call.key is not None else None

    def _performed(self, calls: Sequence[Call], budget: Budget) -> Iterator[tuple[int, Done]]:
        if not calls:
            return
        if self.scheduler is not None:
            with connected(self.scheduler, budget) as cluster:
                yield from cluster.run(calls, budget)
        elif min(self.jobs, len(calls)) > 1:
            yield from _on_processes(min(self.jobs, len(calls)), calls, budget)
        else:
            yield from _here(calls, budget)


@dataclass(frozen=True)
class _Folder:
    """Files by which the processes of one machine tell each other to stop, and what they compile.

    They are written aside and renamed; a folder that is gone takes no messages.
    """

    path: str

    def stopped(self) -> bool:
        return os.path.exists(os.path.join(self.path, "stop"))

    def stop(self) -> None:
        with suppress(OSError):
            open(os.path.join(self.path, "stop"), "x").close()

    def send(self, message: Message) -> None:
        file = os.path.join(self.path, PROCESS)
        with suppress(OSError):
            Path(f"{file}.new").write_text(json.dumps(message), encoding="utf-8")
            os.replace(f"{file}.new", file)

    def receive(self, others: Elsewhere) -> None:
        for file in Path(self.path).glob("*[0-9a-f]"):
            with suppress(OSError):
                others.hear(Message(*json.loads(file.read_text(encoding="utf-8"))))


def _here(calls: Sequence[Call], budget: Budget) -> Iterator[tuple[int, Done]]:
    for k, call in enumerate(calls):
        if k and budget.out_of_time:
            return
        seconds = call.seconds
        if seconds is not None:
            seconds = max(1e-6, min(seconds, budget.seconds_left))
        own = Budget(
            call.evaluations,
            seconds,
            _told_of_all(budget, k, len(calls)),
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


def _on_processes(jobs: int, calls: Sequence[Call], budget: Budget) -> Iterator[tuple[int, Done]]:
    import joblib
    from joblib.externals.loky.process_executor import BrokenProcessPool

    left = dict(enumerate(calls))
    tries = 0
    with (
        tempfile.TemporaryDirectory(prefix="placeopt-run-", ignore_cleanup_errors=True) as path,
        budget.clock.elsewhere() as others,
        budget.watched((folder := _Folder(path)).stop, partial(folder.receive, others)),
    ):
        while tries < MAX_TRIES:
            engine = joblib.Parallel(
                n_jobs=jobs,
                return_as="generator_unordered",
                initializer=_follow,
                initargs=(os.getpid(),),
            )
            try:
                tasks = (
                    joblib.delayed(_in_process)(k, call, folder) for k, call in list(left.items())
                )
                for k, done in engine(tasks):
                    del left[k]
                    tries = 0
                    yield k, done
            except BrokenProcessPool:  # a worker died; what it had is run again
                others.forget_running()
                tries += 1
                continue
            folder.receive(others)
            return
        raise PlaceoptError(f"workers died {MAX_TRIES} times in a row; is there enough memory?")


def _in_process(number: int, call: Call, folder: _Folder) -> tuple[int, Done]:
    """Perform a task in a process of its own."""
    _folders[:] = [folder.path]
    with CLOCK.telling(folder.path, folder.send):
        return number, perform(call, folder.stopped)


#: Where this worker process has told what it compiles.
_folders: list[str] = []


def _follow(parent: int) -> None:
    """Prepare a worker process: it ends soon after its parent, and leaves Ctrl-C to it."""
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    if threading.current_thread() is threading.main_thread():
        # A terminal sends Ctrl-C to all processes; the one that asked for this task decides.
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def _end_with(parent: int) -> None:
    """End this process soon after its parent has ended, however that came about.

    A parent that was killed has left its folder behind.
    """
    while os.getppid() == parent:
        time.sleep(0.2)
    for path in _folders:
        shutil.rmtree(path, ignore_errors=True)
    os._exit(1)
