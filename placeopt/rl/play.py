"""Trained policies at work: on the episodes that they were made for, and on instances, as the method ``policy``. No torch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from placeopt.core.budget import Budget
from placeopt.core.errors import UnsupportedError, UsageError
from placeopt.core.front import Front
from placeopt.core.interfaces import Batch
from placeopt.core.problem import Problem
from placeopt.core.task import Candidate, Task
from placeopt.core.weights import simplex
from placeopt.rl import batches, policy_file
from placeopt.rl.policy import Policy

#: Key of `Policy.environment` that names the instance of the episodes, where they were of one.
INSTANCE = "instance"
#: Episodes that are played at once.
TOGETHER = 64


def episodes_for(
    policy: Policy, target: Problem | None = None, num_envs: int = 1, seed: int = 0, **options: Any
) -> Batch:
    """Return episodes such as the policy was trained on, or of an instance; options override those of its training.

    Raises
    ------
    UsageError
        The policy was trained on one instance, and none is given.
    UnsupportedError
        The policy does not fit these episodes: other features, or other rewards.
    """
    known = {key: value for key, value in policy.environment.items() if key != INSTANCE}
    if target is None and INSTANCE in policy.environment:
        raise UsageError(
            f"the policy was trained on the instance {policy.environment[INSTANCE]!r}; give the instance to play on"
        )
    if target is not None:
        known = {}
    batch = batches.make(
        policy.problem if target is None else target, num_envs, seed, **(known | options)
    )
    if batch.num_features != policy.shape.features or tuple(batch.rewards) != policy.rewards:
        ours = f"{policy.shape.features} features and the rewards {', '.join(policy.rewards)}"
        raise UnsupportedError(
            f"the policy reads {ours}; these episodes have {batch.num_features} and {', '.join(batch.rewards)}"
        )
    return batch


def plans(
    batch: Any, policy: Policy, rows: np.ndarray, rng: np.random.Generator | None = None
) -> list[dict[str, Any]]:
    """Return the plan of one episode for every environment.

    Parameters
    ----------
    batch : Batch
        With a method ``plan(env)``; new episodes have begun.
    rows : ndarray
        Weights of the environments, shape (N, K).
    rng : Generator, optional
        Actions are drawn with the probabilities that the policy gives them; without, the one liked most is taken.
    """
    found: list[Any] = [None] * batch.num_envs
    running = np.ones(batch.num_envs, dtype=bool)
    while running.any():
        actions = np.zeros(batch.num_envs, dtype=np.int64)
        seen, weights, masks = batch.observations[running], rows[running], batch.masks[running]
        logits = np.where(masks, policy.logits(seen, weights, masks), -np.inf)
        actions[running] = (
            logits if rng is None else logits + rng.gumbel(size=logits.shape)
        ).argmax(axis=1)
        _, ended = batch.step(actions)
        for i in np.flatnonzero(ended & running).tolist():
            found[i] = batch.plan(i)
        running &= ~ended
        if running.any() and ended.any():
            batch.reset(None, np.asarray(ended))
    return found


def run(
    task: Task[Problem],
    *,
    policy: str | Policy = "",
    weights: str | Sequence[float] | None = None,
    parts: int = 8,
    samples: int = 0,
) -> Front:
    """Return the front of the plans that a trained policy makes of the instance, one decision after another.

    A plan counts as one evaluation.

    Parameters
    ----------
    policy : path, name or Policy
        A file that ``placeopt train`` wrote, or a policy that comes with placeopt.
    weights : sequence of float or text such as ``"0.5,0.5"``, optional
        One weight for each part of the policy's reward. By default those that it was trained for; of a policy for all
        preferences a spread over the simplex.
    parts : int
        Fineness of that spread.
    samples : int
        Episodes for each row of weights, beside the one of the actions liked most, with actions drawn at random; `seed` decides.
    """
    if not policy:
        known = ", ".join(name for name in policy_file.bundled()) or "none yet"
        raise UsageError(
            f"the method policy needs a policy: --policy FILE, or one that comes with placeopt ({known})"
        )
    if not isinstance(parts, int) or parts < 1 or not isinstance(samples, int) or samples < 0:
        raise UsageError(
            f"parts is {parts!r} and samples {samples!r}; give whole numbers of at least 1 and 0"
        )
    chosen = (
        policy if isinstance(policy, Policy) else policy_file.read(policy, task.problem.problem)
    )
    spread = weights is None and chosen.weights is None
    rows = simplex(parts, len(chosen.rewards)) if spread else chosen.preferences(weights)[None, :]
    candidates = list(_candidates(task.problem, chosen, rows, samples, task.budget, task.seed or 0))
    name = str(policy) if isinstance(policy, str) else "given"
    facts = {"policy": name, "parts": parts, "samples": samples}
    return task.front(candidates, method="policy", parameters=facts, libraries=("numpy",))


def _candidates(
    problem: Problem, policy: Policy, rows: np.ndarray, samples: int, budget: Budget, seed: int
) -> Iterator[Candidate]:
    """Yield the plans, first those of the actions liked most; at least one."""
    rng = np.random.default_rng(seed)
    made, together = (
        0,
        TOGETHER if batches.row_module(problem.problem) else 1,
    )  # a loop over faces gains nothing from many at once
    for drawn in range(samples + 1):
        for first in range(0, len(rows), together):
            if made and budget.exhausted:
                return
            some = rows[first : first + max(1, budget.allow(together))]
            batch = episodes_for(policy, problem, len(some), seed=seed)
            batch.reset(np.full(len(some), seed, dtype=np.uint64))
            prefixes = getattr(
                batch, "prefixes", lambda plan: [plan]
            )  # plans that a plan begins with, where these are plans
            for plan in plans(batch, policy, some, rng if drawn else None):
                made += 1
                yield from map(Candidate, prefixes(plan))
            budget.spend(len(some))
            budget.report(points=made, note=f"{made} plans")
