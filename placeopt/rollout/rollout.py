"""``rollout``: each action is judged by its own cost and by a simulation of what comes after it.

Multi-agent rollout (D. Bertsekas, "Multiagent Rollout Algorithms and Reinforcement Learning", 2020)
as P. Soumplis et al. apply it to edge-cloud placement (SN Computer Science, 2024, equation 8): of
the actions u of a decision it takes the one of lowest g(u) + gamma J(u). g is the action's own
cost, J the cost of a base policy from there on. It serves every decision sequence; sequences with
a compiled ``play_rollout`` and ``play_greedy`` are quicker by orders of magnitude.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import AfterValidator, Field

from placeopt.core.budget import Budget
from placeopt.core.episodes import BasePolicy, first, follow, greedy, scales, weighted
from placeopt.core.fronts.front import Front
from placeopt.core.fronts.trace import RunSnapshot
from placeopt.core.fronts.values import Plan
from placeopt.core.goals import read_weights, simplex
from placeopt.core.interfaces import DecisionSequence, build_sequence
from placeopt.core.problem import Problem
from placeopt.core.task import Candidate, Task

#: Base policies by name.
BASE_POLICIES: dict[str, BasePolicy] = {"greedy": greedy, "first": first}
#: Decisions that a compiled sequence takes between two looks at the clock.
_CHUNK = 64


def choose(
    sequence: DecisionSequence,
    state: Any,
    weights: np.ndarray,
    beta: float = 1.0,
    gamma: float = 1.0,
    horizon: float = math.inf,
    policy: BasePolicy = greedy,
) -> int:
    """Return the action that rollout takes in a state that has a legal one; arguments as of `run`.

    The action of the base policy is tried first and keeps ties. With ``gamma=1``, ``beta=1``, an
    infinite horizon and a policy that is a function of the state, the resulting plan is never worse
    than the policy's own.
    """
    own = weighted(sequence.costs(state), weights)
    tried = max(1, math.ceil(beta * np.isfinite(own).sum()))
    order = np.argsort(own, kind="stable")[:tried].tolist()
    base = policy(sequence, state, weights)
    best, chosen = math.inf, base
    stage = sequence.stage(state)
    for action in (base, *(a for a in order if a != base)):
        if sequence.costs_never_fall and own[action] >= best and action != base:
            break
        after = sequence.copy(state)
        sequence.step(after, action)
        limit = math.inf
        if sequence.costs_never_fall and gamma > 0 and best < math.inf:
            limit = (best - own[action]) / gamma
        future = 0.0
        stages = horizon - (sequence.stage(after) - stage)
        if gamma > 0 and stages >= 0:  # the cost over this stage and the next ones
            finite = stages if math.isfinite(stages) else sequence.decisions
            future = follow(sequence, after, weights, policy, stages=finite, limit=limit)
        value = own[action] + gamma * future
        if value < best:
            best, chosen = value, action
    return chosen


def play(
    sequence: DecisionSequence,
    weights: np.ndarray,
    budget: Budget,
    *,
    beta: float = 1.0,
    gamma: float = 1.0,
    horizon: float = math.inf,
    policy: BasePolicy = greedy,
    finish_seconds: float = 0.0,
) -> Any:
    """Return the last state of one episode of rollout.

    The base policy takes the remaining decisions when the time is over, or is needed for that: it
    takes `finish_seconds` for a whole episode.
    """
    state = sequence.reset()
    compiled = sequence.compiled and policy is greedy
    a_decision = finish_seconds / max(1, sequence.decisions)
    while (left := sequence.remaining(state)) and not budget.out_of_time:
        if budget.seconds_left < left * a_decision:
            break
        if compiled:
            stages = int(min(horizon, sequence.decisions))
            if sequence.play_rollout(state, weights, beta, gamma, stages, _CHUNK) == 0:
                break
        elif sequence.mask(state).any():
            action = choose(sequence, state, weights, beta, gamma, horizon, policy)
            sequence.step(state, action)
        else:
            break
    follow(sequence, state, weights, policy, budget=budget)
    return state


def _whole_or_infinite(value: float) -> float:
    if not (value == math.inf or value.is_integer()):
        raise ValueError("not a whole number or inf")
    return value


def run(
    task: Task[Problem],
    *,
    beta: Annotated[
        float, Field(gt=0, le=1, description="Share of the legal actions tried, cheapest first.")
    ] = 1.0,
    gamma: Annotated[
        float, Field(ge=0, le=1, description="Factor of the simulated future; 0 is greedy.")
    ] = 1.0,
    horizon: Annotated[
        float,
        Field(ge=0, description="Groups of decisions simulated beyond this one; inf for all."),
        AfterValidator(_whole_or_infinite),
    ] = 0,
    base: Annotated[Literal["greedy", "first"], Field(description="The base policy.")] = "greedy",
    order: Annotated[
        str | None, Field(description="Order of the decisions, where the problem has several.")
    ] = None,
    weights: Annotated[
        str | Sequence[float] | None,
        Field(description="One weight per objective, such as 1,2: one plan instead of a spread."),
    ] = None,
    parts: Annotated[int, Field(ge=1, le=200, description="Fineness of the spread.")] = 16,
) -> Front:
    """Return the front of rollout plans, and of the base policy's own, over a spread of weights.

    Nothing is random. A plan counts as one evaluation, however many were simulated on the way.
    Compiled sequences may take the share `beta` of more than the legal actions.
    """
    policy, tuning = BASE_POLICIES[base], {"beta": beta, "gamma": gamma, "horizon": horizon}
    options = {} if order is None else {"order": order}
    sequence = build_sequence(task.problem, task.objectives, **options)
    made: list[Plan] = []
    began, finish_seconds = task.budget.seconds, 0.0
    if weights is None:
        scale, plans = scales(sequence, policy, task.budget)
        rows = _spread(len(task.objectives), parts) / scale
        finish_seconds = (task.budget.seconds - began) / len(plans)
        if task.budget.out_of_time:  # the plans that the scale is made of must do
            made = plans
    else:
        rows = read_weights(weights, len(task.objectives))[None, :]
    if not made:
        how = tuning | {"policy": policy, "finish_seconds": finish_seconds}
        made = _plans(sequence, rows, task, how)
    parameters = tuning | {"horizon": horizon if math.isfinite(horizon) else "all", "base": base}
    return task.front(map(Candidate, made), method="rollout", parameters=parameters)


def _plans(
    sequence: DecisionSequence, rows: np.ndarray, task: Task[Problem], arguments: dict[str, Any]
) -> list[Plan]:
    """Return two plans for each row of weights that the budget reaches: rollout's and the base's.

    The first row is always played.
    """
    made: list[Plan] = []
    budget = task.budget
    for row in rows:
        if made and budget.exhausted:
            break
        plans = _of_row(sequence, row, budget, arguments)
        made += plans
        budget.spend(len(plans))
        note = f"weights {', '.join(f'{w:.3g}' for w in row)}"
        budget.report(note, RunSnapshot.of_plans(made))
    return made


def _of_row(
    sequence: DecisionSequence, row: np.ndarray, budget: Budget, arguments: dict[str, Any]
) -> list[Plan]:
    """Return the plan of rollout and, unless the time is over, that of the base policy.

    Where every state is a plan it is the one after the first decision: the seed that rollout began
    with. Rollout without a horizon is greedy there, so that the base policy would end the same.
    """
    plans = [sequence.plan(play(sequence, row, budget, **arguments))]
    if budget.seconds_left > arguments["finish_seconds"]:
        state = sequence.reset()
        stages = 0 if sequence.whole else math.inf
        follow(sequence, state, row, arguments["policy"], stages=stages, budget=budget)
        plans.append(sequence.plan(state))
    return plans


def _spread(objectives: int, parts: int) -> np.ndarray:
    """Return weights, shape (k, objectives).

    The order is farthest first, so that the first rows alone are a spread over the simplex.
    """
    rows = simplex(parts, objectives)
    chosen = [int(((rows - 1 / rows.shape[1]) ** 2).sum(axis=1).argmin())]
    distance = np.full(len(rows), math.inf)
    while len(chosen) < len(rows):
        distance = np.minimum(distance, ((rows - rows[chosen[-1]]) ** 2).sum(axis=1))
        chosen.append(int(distance.argmax()))
    return np.asarray(rows[chosen] + 1e-6)
