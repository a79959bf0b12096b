"""Several trainings that differ by their seed: tasks for workers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from placeopt.core.budget import Budget
from placeopt.core.files.arrays import Arrays
from placeopt.core.problem import Problem
from placeopt.core.runs.run_directory import Checkpoint
from placeopt.core.runs.versions import versions
from placeopt.core.runs.workers import Call, Workers
from placeopt.rl.batches import make_batch
from placeopt.rl.play import INSTANCE
from placeopt.rl.policy import TrainedPolicy
from placeopt.rl.policy_file import header_of, policy_of
from placeopt.rl.settings import TrainingSettings


@dataclass(frozen=True)
class Training:
    """What is trained, as plain values that another process understands.

    Attributes
    ----------
    problem : type
        The class of the problem.
    document : dict or None
        The instance to train on; None for generated episodes.
    options : dict
        Of the episodes, as of `placeopt.rl.batches.make_batch`.
    settings : TrainingSettings
    """

    problem: type[Problem]
    document: dict[str, Any] | None
    options: dict[str, Any]
    settings: TrainingSettings

    @classmethod
    def on(
        cls, target: Problem | type[Problem], options: dict[str, Any], settings: TrainingSettings
    ) -> Training:
        """Return the training on an instance, or on generated episodes of a class."""
        document = target.to_document() if isinstance(target, Problem) else None
        kind = type(target) if isinstance(target, Problem) else target
        return cls(kind, document, options, settings)

    def run(self, **more: Any) -> TrainedPolicy:
        """Train; see `placeopt.rl.training.train` for what else can be given."""
        from placeopt.rl.training import train

        kind = self.problem
        target = kind if self.document is None else kind.from_document(self.document)
        named = {INSTANCE: target.name} if isinstance(target, Problem) else {}
        settings = self.settings
        batch = make_batch(target, settings.num_envs, settings.seed, **self.options)
        environment = self.options | named
        return train(batch, target.spec.kind, settings, environment=environment, **more)

    def key(self, seconds: float | None) -> dict[str, Any]:
        """Return all that the policy depends on, as JSON."""
        return {
            "training": f"{self.problem.__module__}:{self.problem.__qualname__}",
            "document": self.document,
            "options": self.options,
            "settings": self.settings.to_document(),
            "seconds": seconds,
            "version": versions()["placeopt"],
        }


def train_seeds(
    training: Training, seeds: Sequence[int], workers: Workers, budget: Budget
) -> list[TrainedPolicy | None]:
    """Train a policy for each seed.

    With a run directory a finished policy is kept, and on this machine the state of each training
    after every round too.

    Parameters
    ----------
    budget : Budget
        Its seconds are shared; a training that is cancelled ends with what it has.

    Returns
    -------
    list of TrainedPolicy or None
        In the order of `seeds`; None where there was no time.
    """
    calls, seconds = [], workers.seconds_each(len(seeds), budget)
    for seed in seeds:
        one = replace(training, settings=replace(training.settings, seed=seed))
        key = one.key(budget.seconds_limit)
        calls.append(Call(_train, (one, workers.checkpoint(key)), None, seconds, key))
    results: list[Arrays | None] = workers.run(calls, budget)
    return [
        None if result is None else policy_of(result, "a worker's policy") for result in results
    ]


def _train(budget: Budget, training: Training, checkpoint: Checkpoint | None) -> Arrays:
    """Train one policy: what a worker is asked."""
    keep = None if checkpoint is None else checkpoint.of("training").file
    policy = training.run(
        time_limit=budget.seconds_limit,
        keep=keep,
        resume=keep if keep is not None and keep.exists() else None,
        on_round=lambda news: budget.cancelled,
    )
    return Arrays(header_of(policy), policy.arrays)
