"""``rollout``: one decision at a time, each judged by what it costs and by what a base policy would make of the rest.

Multi-agent rollout (D. Bertsekas, "Multiagent Rollout Algorithms and Reinforcement Learning", 2020), as P. Soumplis et al., SN
Computer Science, 2024, equation (8), apply it to edge-cloud placement: of the actions u of a decision the one with the least
g(u) + gamma J(u), where g is its own cost and J that of the base policy from there on. It works over any sequential face; faces
that bring a compiled ``play_rollout`` and ``play_greedy`` are quicker by orders of magnitude.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from placeopt.core.budget import Budget
from placeopt.core.errors import UsageError, did_you_mean
from placeopt.core.front import Front
from placeopt.core.interfaces import DecisionSequence, build_sequence
from placeopt.core.problem import Problem
from placeopt.core.task import Candidate, Task
from placeopt.core.weights import simplex

#: What a base policy is: the action that it takes in a state that has a legal one.
Policy = Callable[[DecisionSequence, Any, np.ndarray], int]
#: Decisions that a compiled face takes between two looks at the clock.
_CHUNK = 64


def greedy(face: DecisionSequence, state: Any, weights: np.ndarray) -> int:
    """Take the legal action of least weighted cost; of equals the first."""
    return int(_weighted(face.costs(state), weights).argmin())


def first(face: DecisionSequence, state: Any, weights: np.ndarray) -> int:
    """Take the first legal action."""
    return int(face.mask(state).argmax())


#: Base policies by name.
POLICIES: dict[str, Policy] = {"greedy": greedy, "first": first}


def _weighted(costs: np.ndarray, weights: np.ndarray) -> np.ndarray:
    legal = np.isfinite(costs).all(axis=1)
    total = np.full(len(costs), math.inf)
    total[legal] = costs[legal] @ weights
    return total


def follow(
    face: DecisionSequence,
    state: Any,
    weights: np.ndarray,
    policy: Policy = greedy,
    *,
    stages: float = math.inf,
    most: float = math.inf,
) -> float:
    """Follow a policy, in place, until `stages` more groups of decisions than the present one are complete.

    Returns
    -------
    float
        The weighted cost; inf at a dead end, or as soon as it reaches `most`.
    """
    if policy is greedy and stages == most == math.inf and face.compiled:
        face.play_greedy(state, weights, face.decisions)
        return 0.0
    total, end = 0.0, face.stage(state) + stages + 1
    while face.remaining(state) and face.stage(state) < end:
        if total >= most or not face.mask(state).any():
            return math.inf
        total += float(face.step(state, policy(face, state, weights)) @ weights)
    return total


def choose(
    face: DecisionSequence,
    state: Any,
    weights: np.ndarray,
    beta: float = 1.0,
    gamma: float = 1.0,
    horizon: float = math.inf,
    policy: Policy = greedy,
) -> int:
    """Return the action that rollout takes in a state that has a legal one; arguments as of `run`.

    The action of the base policy is tried first and keeps ties. With ``gamma=1``, ``beta=1``, an infinite horizon and a policy that
    is a function of the state, the plan that results is never worse than the policy's own.
    """
    own = _weighted(face.costs(state), weights)
    order = np.argsort(own, kind="stable")[
        : max(1, math.ceil(beta * np.isfinite(own).sum()))
    ].tolist()
    base = policy(face, state, weights)
    best, chosen = math.inf, base
    stage = face.stage(state)
    for action in (base, *(a for a in order if a != base)):
        least = face.costs_never_fall and own[action] >= best
        if least and action != base:
            break
        after = face.copy(state)
        face.step(after, action)
        most = (
            (best - own[action]) / gamma
            if face.costs_never_fall and gamma > 0 and best < math.inf
            else math.inf
        )
        future = 0.0
        if gamma > 0:
            future = _future(
                face, after, weights, policy, horizon - (face.stage(after) - stage), most
            )
        value = own[action] + gamma * future
        if value < best:
            best, chosen = value, action
    return chosen


def _future(
    face: DecisionSequence,
    state: Any,
    weights: np.ndarray,
    policy: Policy,
    stages: float,
    most: float,
) -> float:
    """Return what the policy would spend on the present stage and the next ones; 0 where the horizon is over."""
    if stages < 0:
        return 0.0
    return follow(
        face,
        state,
        weights,
        policy,
        stages=stages if math.isfinite(stages) else face.decisions,
        most=most,
    )


def play(
    face: DecisionSequence,
    weights: np.ndarray,
    budget: Budget,
    *,
    beta: float = 1.0,
    gamma: float = 1.0,
    horizon: float = math.inf,
    policy: Policy = greedy,
) -> Any:
    """Return the last state of one episode of rollout; what the budget leaves undecided the base policy decides."""
    state = face.reset()
    compiled = face.compiled and policy is greedy
    while face.remaining(state) and not budget.out_of_time:
        if compiled:
            stages = int(min(horizon, face.decisions))
            if face.play_rollout(state, weights, beta, gamma, stages, _CHUNK) == 0:
                break
        elif face.mask(state).any():
            face.step(state, choose(face, state, weights, beta, gamma, horizon, policy))
        else:
            break
    follow(face, state, weights, policy)
    return state


def scales(face: DecisionSequence, policy: Policy = greedy) -> np.ndarray:
    """Return how far apart the values of greedy plans are, by objective, shape (objectives,): what makes weights comparable."""
    values = []
    for weights in np.eye(len(face.objectives)) + 1e-6:
        state = face.reset()
        follow(face, state, weights, policy)
        values.append(
            [
                face.problem.evaluate(face.plan(state)).values[c]
                for c in face.problem.columns(face.objectives)
            ]
        )
    spread = np.ptp(np.array(values), axis=0)
    largest = np.abs(values).max(axis=0)
    return np.where(spread > 1e-9 * largest, spread, np.where(largest > 0, largest, 1.0))


def run(
    task: Task[Problem],
    *,
    beta: float = 1.0,
    gamma: float = 1.0,
    horizon: float = 0,
    base: str | Policy = "greedy",
    order: str | None = None,
    weights: str | Sequence[float] | None = None,
    parts: int = 16,
) -> Front:
    """Return the front of rollout plans, and of the base policy's own, over a spread of weights.

    Nothing is random. A plan counts as one evaluation, however many were simulated on the way.

    Parameters
    ----------
    beta : float
        Share of the legal actions that are tried, those of least cost first; compiled faces may take the share of more than these.
    gamma : float
        Factor of the simulated future; 0 is greedy.
    horizon : float
        Groups of decisions (requests, applications) that are simulated beyond the present one; inf for all.
    base : {"greedy", "first"} or callable
        The base policy.
    order : str, optional
        The order of decisions, for faces that have several.
    weights : sequence of float or str such as ``"0.01,0.99"``, optional
        One weight per objective as it is: a single plan, instead of a spread.
    parts : int
        Fineness of the spread.
    """
    policy = _policy(base)
    _check(beta, gamma, horizon, parts)
    face = build_sequence(
        task.problem, task.objectives, **({} if order is None else {"order": order})
    )
    spread = (
        _spread(face, policy, parts)
        if weights is None
        else _read_weights(weights, len(task.objectives))[None, :]
    )
    candidates = _candidates(
        face,
        spread,
        task.budget,
        {"beta": beta, "gamma": gamma, "horizon": horizon, "policy": policy},
    )
    reach = horizon if math.isfinite(horizon) else "all"
    parameters = {
        "beta": beta,
        "gamma": gamma,
        "horizon": reach,
        "base": getattr(policy, "__name__", "custom"),
    }
    return task.front(candidates, method="rollout", parameters=parameters)


def _candidates(
    face: DecisionSequence, spread: np.ndarray, budget: Budget, arguments: dict[str, Any]
) -> list[Candidate]:
    """Return the plan of rollout and the base policy's own for each row of weights that the budget reaches, at least one."""
    candidates: list[Candidate] = []
    for row in spread:
        if candidates and budget.exhausted:
            break
        states = [play(face, row, budget, **arguments), face.reset()]
        follow(face, states[1], row, arguments["policy"])
        candidates += [Candidate(face.plan(state)) for state in states]
        budget.spend(2)
        budget.report(points=len(candidates), note=f"weights {', '.join(f'{w:.3g}' for w in row)}")
    return candidates


def _policy(base: str | Policy) -> Policy:
    if callable(base):
        return base
    if base not in POLICIES:
        raise UsageError(f"unknown base policy {base!r}; {did_you_mean(str(base), POLICIES)}")
    return POLICIES[base]


def _check(beta: float, gamma: float, horizon: float, parts: int) -> None:
    for name, value, legal, words in (
        ("beta", beta, 0 < beta <= 1, "above 0, at most 1"),
        ("gamma", gamma, 0 <= gamma <= 1, "0 to 1"),
        ("horizon", horizon, horizon >= 0, "0, 1, 2, ... or inf"),
        ("parts", parts, isinstance(parts, int) and parts >= 1, "a whole number of at least 1"),
    ):
        if not legal:
            raise UsageError(f"{name} is {value}; legal: {words}")


def _spread(face: DecisionSequence, policy: Policy, parts: int) -> np.ndarray:
    """Return scaled weights; every prefix of them is spread over the simplex."""
    rows = simplex(parts, len(face.objectives))
    chosen = [int(((rows - 1 / rows.shape[1]) ** 2).sum(axis=1).argmin())]
    distance = np.full(len(rows), math.inf)
    while len(chosen) < len(rows):
        distance = np.minimum(distance, ((rows - rows[chosen[-1]]) ** 2).sum(axis=1))
        chosen.append(int(distance.argmax()))
    return (rows[chosen] + 1e-6) / scales(face, policy)


def _read_weights(weights: str | Sequence[float], count: int) -> np.ndarray:
    try:
        row = np.array(weights.split(",") if isinstance(weights, str) else weights, dtype=float)
    except (TypeError, ValueError):
        row = np.empty(0)
    if row.shape != (count,) or not (np.isfinite(row).all() and (row >= 0).all() and row.any()):
        raise UsageError(
            f"weights is {weights!r}; give {count} numbers of at least 0, not all 0, such as "
            + ",".join(["1"] * count)
        )
    return row
