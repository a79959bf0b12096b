"""Trained policies play: generated episodes, and instances as the method ``policy``. No torch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import Field, InstanceOf

from placeopt.core.errors import UnsupportedError, UsageError
from placeopt.core.fronts.front import Front
from placeopt.core.fronts.trace import RunSnapshot
from placeopt.core.fronts.values import Plan
from placeopt.core.goals import simplex
from placeopt.core.interfaces import Batch
from placeopt.core.problem import Problem
from placeopt.core.task import Candidate, Task
from placeopt.rl import policy_file
from placeopt.rl.batches import make_batch
from placeopt.rl.policy import TrainedPolicy

#: Key of `TrainedPolicy.environment` that names the instance, where the policy was trained on one.
INSTANCE = "instance"
#: Episodes that a compiled batch plays at once.
TOGETHER = 64


def episodes_for(
    policy: TrainedPolicy,
    target: Problem | type[Problem],
    num_envs: int = 1,
    seed: int = 0,
    **options: Any,
) -> Batch:
    """Return episodes of an instance, or generated ones such as the policy was trained on.

    Parameters
    ----------
    policy : TrainedPolicy
    target : Problem or subclass of it
        An instance; or the policy's problem, for generated episodes.
    num_envs, seed : int
    **options
        As of `placeopt.rl.batches.make_batch`. They override those of the policy's training, which
        hold for generated episodes.

    Raises
    ------
    UsageError
        The policy was trained on one instance, and none is given.
    UnsupportedError
        The policy does not fit these episodes: other features, or other rewards.
    """
    if not isinstance(target, Problem):
        if INSTANCE in policy.environment:
            raise UsageError(
                f"the policy was trained on the instance {policy.environment[INSTANCE]!r}; "
                "give the instance to play on"
            )
        options = policy.environment | options
    batch = make_batch(target, num_envs, seed, **options)
    if batch.num_features != policy.shape.features or tuple(batch.rewards) != policy.rewards:
        raise UnsupportedError(
            f"the policy reads {policy.shape.features} features and the rewards "
            f"{', '.join(policy.rewards)}; these episodes have {batch.num_features} and "
            + ", ".join(batch.rewards)
        )
    return batch


def play_plans(
    batch: Batch, policy: TrainedPolicy, rows: np.ndarray, rng: np.random.Generator | None = None
) -> list[Plan]:
    """Return the plan of one episode for every environment.

    Parameters
    ----------
    batch : Batch
        Of an instance; new episodes have begun.
    policy : TrainedPolicy
    rows : ndarray
        Weights of the environments, shape (N, K).
    rng : Generator, optional
        Draws actions with the policy's probabilities; without it the most probable are taken.
    """
    results: list[Any] = [None] * batch.num_envs
    running = np.ones(batch.num_envs, dtype=bool)
    while running.any():
        actions = np.zeros(batch.num_envs, dtype=np.int64)
        seen, weights, masks = batch.observations[running], rows[running], batch.masks[running]
        logits = np.where(masks, policy.logits(seen, weights, masks), -np.inf)
        if rng is not None:
            logits = logits + rng.gumbel(size=logits.shape)
        actions[running] = logits.argmax(axis=1)
        _, ended = batch.step(actions)
        for i in np.flatnonzero(ended & running).tolist():
            results[i] = batch.plan(i)
        running &= ~ended
        if running.any() and ended.any():
            batch.reset(None, np.asarray(ended))
    return results


def run(
    task: Task[Problem],
    *,
    policy: Annotated[
        str | Path | InstanceOf[TrainedPolicy],
        Field(description="A file of placeopt train, or a name of placeopt policies."),
    ] = "",
    weights: Annotated[
        str | Sequence[float] | None,
        Field(description="A weight for each part of the reward, such as 1,2: one plan."),
    ] = None,
    parts: Annotated[
        int, Field(ge=1, le=200, description="Fineness of the spread of weights.")
    ] = 8,
    samples: Annotated[
        int, Field(ge=0, le=100_000, description="Episodes with drawn actions, for each weights.")
    ] = 0,
    episodes: Annotated[
        str, Field(description="Options of the episodes, such as penalty=1,steps=20.")
    ] = "",
) -> Front:
    """Return the front of the plans that a trained policy makes of the instance.

    A plan counts as one evaluation. Without `weights` the policy plays with those that it was
    trained for; a policy for all preferences plays with a spread over the simplex. `samples` are
    played beside the episode of the most probable actions.
    """
    if not policy:
        known = ", ".join(policy_file.bundled()) or "none yet"
        raise UsageError(
            "the method policy needs a policy: --policy FILE, or one that comes with placeopt "
            f"({known})"
        )
    chosen = (
        policy_file.read(policy, task.problem.spec.kind)
        if isinstance(policy, (str, Path))
        else policy
    )
    if weights is None and chosen.weights is None:
        rows = simplex(parts, len(chosen.rewards))
    else:
        rows = chosen.preferences(weights)[None, :]
    options = _options(episodes)
    candidates = list(_candidates(task, chosen, rows, samples, options))
    name = "given" if isinstance(policy, TrainedPolicy) else str(policy)
    facts = {"policy": name, "parts": parts, "samples": samples, "episodes": episodes}
    return task.front(candidates, method="policy", parameters=facts, libraries=("numpy",))


def _options(text: str) -> dict[str, Any]:
    """Return the options of ``penalty=1,steps=20``; texts, which the batch converts."""
    results: dict[str, Any] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        key, equals, value = part.partition("=")
        if not key or not equals:
            raise UsageError(f"episodes is {text!r}; write it as key=value,key=value")
        results[key] = value
    return results


def _candidates(
    task: Task[Problem],
    policy: TrainedPolicy,
    rows: np.ndarray,
    samples: int,
    options: dict[str, Any],
) -> Iterator[Candidate]:
    """Yield at least one plan: first those of the most probable actions, then drawn ones."""
    budget, rng = task.budget, np.random.default_rng(task.seed)
    together = TOGETHER if task.problem.spec.has("episodes") else 1  # a plain loop gains nothing
    made: list[Plan] = []
    told = 0
    for drawn in range(samples + 1):
        for first in range(0, len(rows), together):
            if made and budget.exhausted:
                return
            some = rows[first : first + max(1, budget.allow(together))]
            made += _played(task, policy, some, rng if drawn else None, options)
            yield from map(Candidate, made[told:])
            told = len(made)
            budget.spend(len(some))
            budget.report(f"{told} plans", RunSnapshot.of_plans(made))


def _played(
    task: Task[Problem],
    policy: TrainedPolicy,
    rows: np.ndarray,
    rng: np.random.Generator | None,
    options: dict[str, Any],
) -> list[Plan]:
    """Return the plans of one episode for each row of weights."""
    batch = episodes_for(policy, task.problem, len(rows), task.seed, **options)
    batch.reset(np.full(len(rows), task.seed, dtype=np.uint64))
    return [more for plan in play_plans(batch, policy, rows, rng) for more in batch.prefixes(plan)]
