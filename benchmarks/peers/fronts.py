"""Whole fronts of the models: one weighted sum after another, ever finer, until the time is up."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np

#: Parts in which weights are divided, coarse ones first; weights that the time is divided among.
_DIVISIONS, _SOLVES = (1, 2, 3, 4, 6, 8, 12, 16, 24), 12
#: The least weight of a goal, so that no point of a sum is dominated.
_LEAST = 1e-3


def weights(count: int) -> Iterator[np.ndarray]:
    """Yield weights of `count` goals that sum up to 1: the ends, the middle, then between them."""
    seen = set()
    for parts in _DIVISIONS:
        for row in product(range(parts + 1), repeat=count):
            key = tuple(part / parts for part in row)
            if sum(row) == parts and key not in seen:
                seen.add(key)
                yield np.maximum(key, _LEAST) / np.maximum(key, _LEAST).sum()


def sweep(
    best: Callable[..., Any], instance: Any, columns: Any, widths: Any, cap: Any, seconds: float
) -> list[list[float]]:
    """Return the values of the plans of sums of goals that are scaled by `widths`.

    `seconds` are the CPU seconds of the solver. To build a model is not counted, as an expert
    builds it once. Each sum has a twelfth of the time; what is left when sums end before that goes
    to further ones, to as many builds as solves at most.
    """
    values, left, solves = [], seconds, 0
    for row in weights(len(columns)):
        if left < seconds / (4 * _SOLVES) or solves == 20 * _SOLVES:
            break
        limit, began = min(left, seconds / _SOLVES), time.process_time()
        [plan] = best(instance, row / np.array(widths), cap, [limit], 1)
        left, solves = left - min(limit, time.process_time() - began), solves + 1
        verdict = None if plan is None else instance.evaluate(plan)
        if verdict is not None and verdict.feasible:
            values.append([float(verdict.values[c]) for c in columns])
    return values
