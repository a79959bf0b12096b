"""Training: MaskablePPO on any batch of episodes, in rounds.

Every round begins with new episodes, and with random states that depend on the seed and the number
of the round alone. So a run that is resumed from a checkpoint ends with the arrays of a run that
was never interrupted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from sb3_contrib import MaskablePPO
from stable_baselines3.common.utils import set_random_seed

from placeopt.core.errors import UsageError
from placeopt.core.files.paths import AnyPath
from placeopt.core.fronts.values import versions
from placeopt.core.interfaces import Batch
from placeopt.core.runs.compiling import CLOCK
from placeopt.rl import checkpoint
from placeopt.rl.deepsets import DeepSetsActorCritic, numpy_arrays
from placeopt.rl.episodes import DRAWN, normalised
from placeopt.rl.policy import Shape, TrainedPolicy
from placeopt.rl.sb3 import BatchVecEnv
from placeopt.rl.settings import TrainingSettings

#: Bytes that the observations between two updates may take.
ROLLOUT_BYTES = 4 * 2**30


@dataclass(frozen=True)
class RoundReport:
    """Facts of a round.

    Attributes
    ----------
    steps : int
        Made so far.
    share : float
        Of the run that is over, 0 to 1.
    seconds : float
        CPU seconds of this process since training began, without those of compiling, and those
        before its checkpoint.
    facts : dict
        Means over the latest episodes: ``reward``, and what the batch says of an episode.
    """

    steps: int
    share: float
    seconds: float
    facts: dict[str, float]


@dataclass
class _Clock:
    """Steps and time of the run, for the schedules."""

    steps: int
    until: int
    limit: float | None = None
    before: float = 0.0

    def __post_init__(self) -> None:
        self._began, self._cpu = CLOCK.seconds, CLOCK.cpu_seconds

    @property
    def cpu(self) -> float:
        return self.before + CLOCK.cpu_seconds - self._cpu

    @property
    def share(self) -> float:
        spent = 0.0 if self.limit is None else (CLOCK.seconds - self._began) / self.limit
        return min(1.0, max(self.steps / self.until, spent))


def train(
    batch: Batch,
    problem: str,
    settings: TrainingSettings,
    *,
    environment: dict[str, Any] | None = None,
    time_limit: float | None = None,
    keep: AnyPath | None = None,
    resume: AnyPath | None = None,
    on_round: Callable[[RoundReport], bool | None] | None = None,
) -> TrainedPolicy:
    """Return a trained policy.

    Parameters
    ----------
    batch : Batch
        With ``settings.num_envs`` environments.
    problem : str
        Its kind; the policy names it, and the options of the `environment`.
    settings : Settings
    time_limit : float, optional
        Seconds after which training ends with what it has; such a run does not repeat exactly.
    keep : path, optional
        Checkpoint to write after every round.
    resume : path, optional
        Checkpoint to go on from; it must be of the same settings, but for `steps`.
    on_round : callable, optional
        Called with a `RoundReport` after every round; True ends the training.

    Raises
    ------
    UsageError
        The checkpoint is of another run.
    DocumentError
        The checkpoint is damaged.
    """
    torch.set_num_threads(1)
    if batch.num_envs != settings.num_envs:
        raise UsageError(
            f"the batch has {batch.num_envs} environments, the settings say {settings.num_envs}"
        )
    _require_memory(batch, settings)
    env = BatchVecEnv(batch, settings.weights, scale=settings.reward_scale)
    shape = Shape(
        batch.num_features,
        len(batch.rewards),
        settings.hidden,
        settings.activation,
        tuple(batch.score),
    )
    clock, learner = _Clock(0, settings.steps, time_limit), settings.learner() or Ppo()
    model = _model(learner, env, shape, settings, clock)
    facts = {
        "problem": problem,
        "environment": environment or {},
        "settings": settings.to_document(),
    }
    rounds = 0
    if resume is not None:
        rounds, clock.steps, clock.before = checkpoint.restore(model, learner, resume, facts)
        model.num_timesteps = clock.steps
    news = RoundReport(clock.steps, clock.share, clock.cpu, {})
    while clock.share < 1:
        _begin_round(model, learner, env, settings.seed, rounds)
        steps = min(settings.round_steps, settings.steps - clock.steps)
        model.learn(steps, reset_num_timesteps=False, log_interval=None)  # type: ignore[arg-type]
        clock.steps = model.num_timesteps
        rounds += 1
        news = RoundReport(clock.steps, clock.share, clock.cpu, _means(model))
        if keep is not None:
            checkpoint.save(model, learner, keep, facts, rounds, clock.steps, clock.cpu)
        if on_round is not None and on_round(news):
            break
    return _policy(model, learner, batch, shape, settings, facts, news)


def _require_memory(batch: Batch, settings: TrainingSettings) -> None:
    """Refuse a buffer that would not fit."""
    row = 4 * batch.num_actions * (batch.num_features + len(batch.rewards) + 1)
    size = row * settings.update_steps * settings.num_envs
    if size > ROLLOUT_BYTES:
        raise UsageError(
            f"n_steps {settings.n_steps} of {settings.num_envs} environments take "
            f"{size / 2**30:.0f} GiB, more than {ROLLOUT_BYTES / 2**30:.0f}; give fewer of them"
        )


def _begin_round(model: Any, learner: Ppo, env: BatchVecEnv, seed: int, number: int) -> None:
    """Set all random states by seed and round."""
    states = np.random.SeedSequence([seed, number]).generate_state(3)
    set_random_seed(int(states[0]))
    env.seed(int(states[1]))
    learner.begin_round(model, int(states[2]))
    model._last_obs = None


def _means(model: Any) -> dict[str, float]:
    episodes = list(model.ep_info_buffer or ())
    if not episodes:
        return {}
    names = {"r": "reward"} | {key: key for key in episodes[0] if key not in ("r", "l", "t")}
    existing = {
        name: [e[key] for e in episodes if np.isfinite(e[key])] for key, name in names.items()
    }
    return {name: float(np.mean(values)) for name, values in existing.items() if values}


def _policy(
    model: Any,
    learner: Ppo,
    batch: Batch,
    shape: Shape,
    settings: TrainingSettings,
    facts: dict[str, Any],
    news: RoundReport,
) -> TrainedPolicy:
    weights = None
    if not settings.conditioned:
        weights = tuple(normalised(settings.weights, shape.parts).tolist())
    card = {
        "algorithm": f"{learner.name}, DeepSets",
        "settings": facts["settings"],
        "steps": news.steps,
        "cpu_seconds": round(news.seconds, 1),
        "latest_episodes": {key: round(value, 4) for key, value in news.facts.items()},
        "versions": versions(("torch", "stable-baselines3", "sb3-contrib", "numpy")),
    }
    arrays = numpy_arrays(model.policy.actor)
    return TrainedPolicy(
        facts["problem"], tuple(batch.rewards), shape, arrays, facts["environment"], weights, card
    )


# -- models -----------------------------------------------------------------------------------


class Ppo:
    """How the model is made, and what a checkpoint holds beside networks and optimiser."""

    #: What a policy's card says of it.
    name = "MaskablePPO of sb3-contrib"

    def build(
        self, s: Any, columns: int, shared: dict[str, Any], share: Callable[[], float]
    ) -> Any:
        """Return a new model by settings `s` for observations of so many numbers.

        `shared` are the arguments that all models have; `share` returns that of the run.
        """
        return MaskablePPO(
            DeepSetsActorCritic,
            n_steps=s.n_steps,
            batch_size=min(s.batch_size, s.n_steps * s.num_envs),
            n_epochs=s.epochs,
            gae_lambda=s.gae_lambda,
            clip_range=s.clip_range,
            ent_coef=s.entropy,
            vf_coef=s.value_weight,
            **shared,
        )

    def begin_round(self, model: Any, seed: int) -> None:
        """Set what is random in a model beside its networks: nothing."""

    def arrays(self, model: Any) -> dict[str, np.ndarray]:
        """Return nothing: it learns from what it has just seen."""
        return {}

    def load(self, model: Any, arrays: Mapping[str, np.ndarray]) -> None:
        """Set a model to what `arrays` returned."""


def _model(learner: Ppo, env: BatchVecEnv, shape: Shape, s: TrainingSettings, clock: _Clock) -> Any:
    def rate(_remaining: float) -> float:
        return s.learning_rate * (1 - (1 - s.final_learning_rate) * clock.share)

    shared: dict[str, Any] = {
        "env": env,
        "learning_rate": rate,
        "gamma": s.gamma,
        "max_grad_norm": s.max_grad_norm,
        "seed": s.seed,
        "device": "cpu",
        "stats_window_size": max(100, 2 * s.num_envs),
        "policy_kwargs": {"shape": shape, "factor": s.factor},
    }
    columns = int(np.prod(env.observation_space.shape or ()))
    return learner.build(s, columns, shared, lambda: clock.share)


def resolve_weights(
    weights: Any, conditioned: bool, count: int
) -> tuple[float, ...] | Literal["drawn"]:
    """Return the weights of `Settings` from what a command was given.

    Raises
    ------
    UsageError
        Both weights and conditioning.
    """
    if conditioned and weights is not None:
        raise UsageError(
            "give weights, or make the policy conditioned, which draws them for every episode; "
            "not both"
        )
    return DRAWN if conditioned else tuple(normalised(weights, count).tolist())
