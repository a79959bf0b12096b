"""Base policies, and episodes of a decision sequence that follow one."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from placeopt.core.budget import Budget
from placeopt.core.fronts.values import Plan
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
    budget: Budget | None = None,
) -> float:
    """Follow a policy, in place, until its present stage and `stages` more are complete.

    Where every state has a whole plan, the episode ends, too, when the budget is out of time.

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
        if sequence.whole and budget is not None and budget.out_of_time:
            break
        action = -1 if total >= limit else _action(sequence, state, weights, policy)
        if action < 0:
            return math.inf
        total += float(sequence.step(state, action) @ weights)
    return total


def _action(sequence: DecisionSequence, state: Any, weights: np.ndarray, policy: BasePolicy) -> int:
    """Return the action that a policy takes, -1 at a dead end; greedy needs costs alone."""
    if policy is greedy:
        own = weighted(sequence.costs(state), weights)
        action = int(own.argmin())
        return action if own[action] < math.inf else -1
    return policy(sequence, state, weights) if sequence.mask(state).any() else -1


def scales(
    sequence: DecisionSequence, policy: BasePolicy = greedy, budget: Budget | None = None
) -> tuple[np.ndarray, list[Plan]]:
    """Return the spread of each objective over plans of a base policy, and these plans.

    Objectives divided by their spread are comparable, so that weights mean the same for all of
    them. There is a plan for each objective alone, at least one when the time is over.

    Returns
    -------
    ndarray, shape (objectives,)
    list of Plan
    """
    problem, values, plans = sequence.problem, [], list[Plan]()
    columns = problem.columns(sequence.objectives)
    for weights in np.eye(len(sequence.objectives)) + 1e-6:
        if plans and budget is not None and budget.out_of_time:
            break
        state = sequence.reset()
        follow(sequence, state, weights, policy, budget=budget)
        plans.append(sequence.plan(state))
        judged = problem.evaluate(plans[-1]).values
        values.append([judged[c] for c in columns])
    spread = np.ptp(np.array(values), axis=0)
    largest = np.abs(values).max(axis=0)
    scale = np.where(spread > 1e-9 * largest, spread, np.where(largest > 0, largest, 1.0))
    return scale, plans
