"""The batch of episodes that serves a problem: its own compiled one where ``placeopt.rl.<row>`` has it, else a loop over its face.

A row's module has ``batch(problem, num_envs, seed, **options)``, where the problem is an instance, or None for generated episodes.
"""

from __future__ import annotations

import inspect
from types import ModuleType
from typing import Any

from placeopt.core.errors import UsageError, did_you_mean
from placeopt.core.interfaces import Batch
from placeopt.core.problem import Problem
from placeopt.registry import problem_class, spec_of
from placeopt.rl.sequential_batch import SequentialBatch


def row_module(kind: str) -> ModuleType | None:
    """Return the module of a problem's own batch, None where it has none.

    Raises
    ------
    UsageError
        There is no such problem.
    """
    spec = spec_of(kind)
    return spec.load("episodes") if spec.has("episodes") else None


def make(target: Problem | str, num_envs: int = 1, seed: int = 0, **options: Any) -> Batch:
    """Return a batch of episodes.

    Parameters
    ----------
    target : Problem or str
        An instance, or the name of a problem for generated episodes.
    num_envs, seed : int
    **options
        Of the batch; for generated instances without a batch of their own these are sizes as of ``placeopt generate``.

    Raises
    ------
    UsageError
        An option that the batch does not have.
    """
    kind = target if isinstance(target, str) else target.problem
    module = row_module(kind)
    if module is not None:
        legal = [
            name
            for name in inspect.signature(module.batch).parameters
            if name not in ("problem", "num_envs", "seed")
        ]
        _check(options, legal, kind)
        batch: Batch = module.batch(
            None if isinstance(target, str) else target, num_envs, seed, **options
        )
        return batch
    if isinstance(target, Problem):
        return SequentialBatch(target, num_envs, **options)
    _check(options, list(problem_class(kind).sizes()), kind)
    return SequentialBatch(kind, num_envs, seed=seed, sizes=options)


def _check(options: dict[str, Any], legal: list[str], kind: str) -> None:
    for name in options:
        if name not in legal:
            raise UsageError(
                f"unknown option {name!r} of {kind} episodes; {did_you_mean(name, legal)}"
            )
