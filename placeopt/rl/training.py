"""Training: MaskablePPO or DQN on any batch of episodes, in rounds.

Every round begins with new episodes, and with random states that depend on the seed and the number
of the round alone. So a run that is resumed from a checkpoint ends with the arrays of a run that
was never interrupted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import torch
from sb3_contrib import MaskablePPO
from stable_baselines3.common.utils import set_random_seed

from placeopt.core.errors import UsageError
from placeopt.core.files.paths import AnyPath
from placeopt.core.interfaces import Batch
from placeopt.core.runs.compiling import CLOCK
from placeopt.core.runs.versions import versions
from placeopt.rl import checkpoint
from placeopt.rl import rounds as rounds_file
from placeopt.rl.deepsets import DeepSetsActorCritic, DeepSetsQPolicy, MaskedDQN, numpy_arrays
from placeopt.rl.policy import Shape, TrainedPolicy
from placeopt.rl.preferences import DRAWN, normalised
from placeopt.rl.sb3 import BatchVecEnv
from placeopt.rl.settings import TrainingSettings

#: Bytes that the replay buffer of DQN may take.
REPLAY_BYTES = 400 * 2**20
#: Bytes that the observations between two updates of PPO may take.
ROLLOUT_BYTES = 4 * 2**30
#: What a policy's card says of its algorithm.
LEARNERS = {"ppo": "MaskablePPO of sb3-contrib", "dqn": "DQN of stable-baselines3, masked"}
Model: TypeAlias = MaskablePPO | MaskedDQN


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
    clock = _Clock(0, settings.steps, time_limit)
    model = _model(env, shape, settings, clock)
    facts = {
        "problem": problem,
        "environment": environment or {},
        "settings": settings.to_document(),
    }
    rounds = 0
    if resume is not None:
        rounds, clock.steps, clock.before = checkpoint.restore(model, resume, facts)
        model.num_timesteps = clock.steps
    news = RoundReport(clock.steps, clock.share, clock.cpu, {})
    course = rounds_file.before(resume)
    while clock.share < 1:
        _begin_round(model, env, settings.seed, rounds)
        steps = min(settings.round_steps, settings.steps - clock.steps)
        model.learn(steps, reset_num_timesteps=False, log_interval=None)  # type: ignore[arg-type]
        clock.steps = model.num_timesteps
        rounds += 1
        news = RoundReport(clock.steps, clock.share, clock.cpu, _means(model))
        if keep is not None:
            checkpoint.save(model, keep, facts, rounds, clock.steps, clock.cpu)
            course = rounds_file.write(keep, problem, settings.seed, course, news)
        if on_round is not None and on_round(news):
            break
    return _policy(model, batch, shape, settings, facts, news)


def _require_memory(batch: Batch, settings: TrainingSettings) -> None:
    """Refuse a PPO buffer that would not fit; DQN's is cut to `REPLAY_BYTES`."""
    row = 4 * batch.num_actions * (batch.num_features + len(batch.rewards) + 1)
    size = row * settings.n_steps * settings.num_envs
    if settings.algorithm == "ppo" and size > ROLLOUT_BYTES:
        raise UsageError(
            f"n_steps {settings.n_steps} of {settings.num_envs} environments take "
            f"{size / 2**30:.0f} GiB, more than {ROLLOUT_BYTES / 2**30:.0f}; give fewer of them"
        )


def _begin_round(model: Model, env: BatchVecEnv, seed: int, number: int) -> None:
    """Set all random states by seed and round."""
    states = np.random.SeedSequence([seed, number]).generate_state(3)
    set_random_seed(int(states[0]))
    env.seed(int(states[1]))
    if isinstance(model, MaskedDQN):
        model.reseed_exploration(int(states[2]))
        model.exploration_rate = model.exploration_schedule(1.0)
    model._last_obs = None


def _means(model: Model) -> dict[str, float]:
    episodes = list(model.ep_info_buffer or ())
    if not episodes:
        return {}
    names = {"r": "reward"} | {key: key for key in episodes[0] if key not in ("r", "l", "t")}
    existing = {
        name: [e[key] for e in episodes if np.isfinite(e[key])] for key, name in names.items()
    }
    return {name: float(np.mean(values)) for name, values in existing.items() if values}


def _policy(
    model: Model,
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
        "algorithm": f"{LEARNERS[settings.algorithm]}, DeepSets",
        "settings": facts["settings"],
        "steps": news.steps,
        "cpu_seconds": round(news.seconds, 1),
        "latest_episodes": {key: round(value, 4) for key, value in news.facts.items()},
        "versions": versions(("torch", "stable-baselines3", "sb3-contrib", "numpy")),
    }
    arrays = numpy_arrays(model.policy.actor)  # type: ignore[union-attr, operator, arg-type]
    return TrainedPolicy(
        facts["problem"], tuple(batch.rewards), shape, arrays, facts["environment"], weights, card
    )


# -- models -----------------------------------------------------------------------------------


def _model(env: BatchVecEnv, shape: Shape, settings: TrainingSettings, clock: _Clock) -> Model:
    def rate(_remaining: float) -> float:
        return settings.learning_rate * (1 - (1 - settings.final_learning_rate) * clock.share)

    s = settings
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
    if s.algorithm == "ppo":
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
    columns = int(np.prod(env.observation_space.shape or ()))
    model = MaskedDQN(
        DeepSetsQPolicy,
        buffer_size=max(s.num_envs, min(s.buffer_size, REPLAY_BYTES // (8 * columns))),
        learning_starts=s.learning_starts,
        batch_size=s.batch_size,
        train_freq=s.train_every,
        gradient_steps=s.gradient_steps,
        target_update_interval=s.target_every,
        tau=s.tau,
        exploration_fraction=s.explore_share,
        exploration_final_eps=s.explore_least,
        **shared,
    )
    model.exploration_schedule = lambda _: max(
        s.explore_least, 1 - (1 - s.explore_least) * clock.share / max(s.explore_share, 1e-9)
    )
    return model


def resolve_weights(weights: Any, conditioned: bool, count: int) -> tuple[float, ...] | str:
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
