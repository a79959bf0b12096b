"""Base policies, and episodes of a decision sequence that follow one."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from placeopt.core.interfaces import DecisionSequence

#: ``policy(sequence, state, weights)``: the action to take in a state that has a legal one.
BasePolicy = Callable[[DecisionSequence, Any, np.ndarray], int]


def greedy(sequence: DecisionSequence, state: Any, weights: np.ndarray) -> int:
    """Return the legal action of lowest weighted cost; of equals the first."""
    return int(weighted(sequence.costs(state), weights).argmin())


def first(sequence: DecisionSequence, state: Any, weights: np.ndarray) -> int:
    """Return the first legal action."""
    return int(sequence.mask(state).argmax())


def weighted(costs: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the weighted cost of every action, shape (num_actions,); inf where it is illegal.

    Parameters
    ----------
    costs : ndarray
        As of `DecisionSequence.costs`, shape (num_actions, objectives).
    weights : ndarray, shape (objectives,)
    """
    legal = np.isfinite(costs).all(axis=1)
    total = np.full(len(costs), math.inf)
    total[legal] = costs[legal] @ weights
    return total


def follow(
    sequence: DecisionSequence,
    state: Any,
    weights: np.ndarray,
    policy: BasePolicy = greedy,
    *,
    stages: float = math.inf,
    limit: float = math.inf,
) -> float:
    """Follow a policy, in place, until its present stage and `stages` more are complete.

    Returns
    -------
    float
        The weighted cost; inf at a dead end, or as soon as the cost reaches `limit`. 0 for a whole
        compiled episode, whose cost is not summed up.
    """
    if policy is greedy and stages == limit == math.inf and sequence.compiled:
        sequence.play_greedy(state, weights, sequence.decisions)
        return 0.0
    total, end = 0.0, sequence.stage(state) + stages + 1
    while sequence.remaining(state) and sequence.stage(state) < end:
        if total >= limit or not sequence.mask(state).any():
            return math.inf
        total += float(sequence.step(state, policy(sequence, state, weights)) @ weights)
    return total


def scales(sequence: DecisionSequence, policy: BasePolicy = greedy) -> np.ndarray:
    """Return the spread of each objective over plans of a base policy, shape (objectives,).

    Objectives divided by it are comparable, so that weights mean the same for all of them.
    """
    problem, values = sequence.problem, []
    columns = problem.columns(sequence.objectives)
    for weights in np.eye(len(sequence.objectives)) + 1e-6:
        state = sequence.reset()
        follow(sequence, state, weights, policy)
        judged = problem.evaluate(sequence.plan(state)).values
        values.append([judged[c] for c in columns])
    spread = np.ptp(np.array(values), axis=0)
    largest = np.abs(values).max(axis=0)
    return np.where(spread > 1e-9 * largest, spread, np.where(largest > 0, largest, 1.0))
