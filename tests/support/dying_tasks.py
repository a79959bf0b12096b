"""Tasks that kill the worker that performs them."""

from __future__ import annotations

import os
import signal

from placeopt.core.budget import Budget


def die_once(budget: Budget, mark: str, number: int) -> int:
    """Kill the worker the first time; leave a mark, so that the second time it works."""
    try:
        open(mark, "x").close()
    except FileExistsError:
        return number**2
    os.kill(os.getpid(), signal.SIGKILL)
    return -1
