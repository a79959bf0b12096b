"""One independent task, and how a worker performs it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from placeopt.core.budget import Budget
from placeopt.core.spec import Additions, added, take_over


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
    additions : Additions
        Problems that the worker has to know.
    """

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    evaluations: int | None = None
    seconds: float | None = None
    key: dict[str, Any] | None = None
    additions: Additions = field(default_factory=added)


class Done(NamedTuple):
    """The result of a task, and whether it is whole: nobody asked the task to stop before."""

    result: Any
    whole: bool


def perform(call: Call, stop: Callable[[], bool]) -> Done:
    """Perform a task; `stop` says whether somebody outside cancels it."""
    take_over(call.additions)
    budget = Budget(call.evaluations, call.seconds, stop=stop)
    if budget.cancelled:
        return Done(None, False)
    return Done(call.function(budget, *call.arguments), not budget.cancelled)
