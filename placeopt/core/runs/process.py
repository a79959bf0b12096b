"""This process: its collector of garbage, and the threads of its linear algebra."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collector_at_rest() -> Iterator[None]:
    """Keep the garbage collector at rest.

    Thousands of plans, and what a compiler makes, are millions of small live objects. Walking them
    again and again would take a fifth of a run.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@contextmanager
def one_thread_of_blas() -> Iterator[None]:
    """Let linear algebra use one thread, here and in all threads of this process.

    Matrices here have a few hundred rows. Where other processes are at work, threads that share
    such a one wait for each other: a proof with a limit of 10 s took 36 s.
    """
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1, user_api="blas"):
        yield
