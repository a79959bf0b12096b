"""The collector of garbage, which finds little where nothing forms cycles, and costs."""

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
