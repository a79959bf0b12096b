"""Tasks on a Dask cluster.

Workers look for an event of the cluster to learn that they shall stop: no clocks are compared, no
files are shared. A worker that dies has its task run again by another. A task whose asker is gone
stops by itself.
"""

from __future__ import annotations

import queue
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from placeopt.core.budget import Budget
from placeopt.core.errors import MissingExtraError, PlaceoptError, UsageError
from placeopt.core.runs.calls import Call, Done, perform
from placeopt.core.runs.compiling import CLOCK, Message
from placeopt.core.runs.versions import versions

#: Seconds to wait for a scheduler's first answer.
_CONNECT_SECONDS = 10
_GONE = "the Dask scheduler is gone; the same command with --run-dir takes up what was finished"


class Cluster:
    """A Dask cluster that performs tasks for one budget.

    Parameters
    ----------
    client : distributed.Client
    event : str
        Name of the event that is set when the tasks shall stop.
    """

    def __init__(self, client: Any, event: str):
        self._client, self._event = client, event

    @property
    def width(self) -> int:
        """Tasks that run at the same time, at least 1."""
        return max(1, sum(self._client.nthreads().values()))

    def run(self, calls: Sequence[Call], budget: Budget) -> Iterator[tuple[int, Done]]:
        """Yield the number and the result of each task as it ends."""
        ended: queue.SimpleQueue[int] = queue.SimpleQueue()
        ours = versions()["placeopt"]
        futures = [
            self._client.submit(_on_worker, call, self._event, ours, pure=False, key=_key())
            for call in calls
        ]
        for k, future in enumerate(futures):
            future.add_done_callback(lambda _, k=k: ended.put(k))
        try:
            for _ in futures:
                k = self._next(ended, futures, budget)
                if futures[k].cancelled() and not budget.out_of_time:
                    raise PlaceoptError(_GONE)
                yield k, Done(None, False) if futures[k].cancelled() else _result(futures[k])
        except OSError as error:
            raise PlaceoptError(f"{_GONE} ({error})") from None
        finally:
            for future in futures:  # what still runs stops, as nobody waits for it
                future.release()

    def ask(self, call: Call, budget: Budget) -> Any:
        """Return the result of one task; None if it was not begun in time."""
        return next(self.run([call], budget))[1].result

    def _next(self, ended: queue.SimpleQueue[int], futures: list[Any], budget: Budget) -> int:
        """Return the number of the next task that ends; those not begun in time are cancelled."""
        while True:
            try:
                return ended.get(timeout=1.0)
            except queue.Empty:
                if not budget.out_of_time:
                    continue
            at_work = {key for keys in self._client.processing().values() for key in keys}
            for future in futures:
                if not future.done() and future.key not in at_work:
                    future.cancel()


@contextmanager
def connected(scheduler: Any, budget: Budget) -> Iterator[Cluster]:
    """Connect to a cluster; its tasks are asked to stop when `budget` is cancelled or out of time.

    Parameters
    ----------
    scheduler : str or distributed.Client

    Raises
    ------
    MissingExtraError
        Dask is not installed.
    UsageError
        Nobody answers at the address.
    """
    try:
        from distributed import Client, Event
    except ModuleNotFoundError:
        raise MissingExtraError("a Dask cluster", "dask") from None
    try:
        asks = isinstance(scheduler, str)
        client = Client(scheduler, timeout=_CONNECT_SECONDS) if asks else scheduler
    except (OSError, ValueError) as error:
        raise UsageError(
            f"no Dask scheduler answers at {scheduler}: {error}; start one with `dask scheduler`"
        ) from None
    event = Event(f"placeopt-stop-{secrets.token_hex(8)}", client=client)
    try:
        with budget.clock.elsewhere() as others, budget.watched(event.set):
            client.subscribe_topic(event.name, lambda told: others.hear(Message(*told[1])))
            yield Cluster(client, event.name)
    finally:
        with suppress(Exception):  # the cluster may be gone
            client.unsubscribe_topic(event.name)
            event.clear()
        if client is not scheduler:
            client.close()


def _key() -> str:
    return f"placeopt-{secrets.token_hex(8)}"


def _on_worker(call: Call, event: str, version: str) -> Done:
    """Perform a task on a worker of a cluster."""
    own = versions()["placeopt"]
    if own != version:
        raise UsageError(
            f"a worker of the cluster has placeopt {own}, this is {version}; install the same"
        )
    from distributed import get_worker

    worker = get_worker()
    with CLOCK.telling(event, lambda message: worker.log_event(event, list(message))):
        return perform(call, _stop_signal(event))


def _stop_signal(event: str) -> Callable[[], bool]:
    """Return a function that says whether the task of this thread shall stop."""
    from distributed import Event, get_client, get_worker

    worker = get_worker()
    key, known = worker.get_current_task(), worker.state.tasks
    stop = Event(event, client=get_client())

    def stopped() -> bool:
        task = known.get(key)
        abandoned = task is None or task.state == "cancelled"  # nobody waits for the result
        return abandoned or bool(stop.is_set())

    return stopped


def _result(future: Any) -> Done:
    """Return the result of a future that ended.

    Raises
    ------
    PlaceoptError
        What the task raised, or why the cluster cannot perform it.
    """
    from distributed import KilledWorker

    try:
        return future.result()
    except KilledWorker:
        raise PlaceoptError(
            "one task ended several workers of the cluster; have they enough memory?"
        ) from None
    except (ImportError, RuntimeError) as error:
        if isinstance(error, ImportError) or "deserialization" in str(error):
            raise UsageError(
                f"the cluster cannot load the task: {error}; install the same placeopt on the "
                "machines of the scheduler and of all workers"
            ) from None
        raise
