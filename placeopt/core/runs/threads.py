"""Threads of linear algebra."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def one_thread_of_blas() -> Iterator[None]:
    """Let linear algebra use one thread, here and in all threads of this process.

    Matrices here have a few hundred rows. Where other processes are at work, threads that share
    such a one wait for each other: a proof with a limit of 10 s took 36 s.
    """
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1, user_api="blas"):
        yield
