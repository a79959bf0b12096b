"""DQN with masks: the second agent of HephaestusForge and REACH, trained by `placeopt.rl.training`.

train(batch, hephaestus.KIND, DS_DQN.settings, environment=DS_DQN.options)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
from placeopt_papers.hephaestus import PAPER
from pydantic import Field
from stable_baselines3 import DQN
from stable_baselines3.dqn.policies import DQNPolicy, QNetwork

from placeopt.core.interfaces import Preset
from placeopt.rescheduling.episodes import TABLE_V
from placeopt.rl.deepsets import DeepSetsPolicy, Network
from placeopt.rl.policy import Shape
from placeopt.rl.settings import Share, Steps, TrainingSettings
from placeopt.rl.training import Ppo

#: Bytes that the replay buffer may take.
REPLAY_BYTES = 400 * 2**20
#: What a replay buffer consists of.
REPLAY = ("observations", "next_observations", "actions", "rewards", "dones", "timeouts")


@dataclass(frozen=True, kw_only=True)
class DqnSettings(TrainingSettings):
    """Settings of DQN: its values must be right, where PPO needs differences only.

    Attributes
    ----------
    buffer_size, learning_starts, train_every, gradient_steps, target_every, tau
        Transitions kept; steps before learning; steps of each environment between updates;
        gradient steps of an update; steps between updates of the target, and their weight.
    explore_share, explore_least
        In this share of the run exploration falls from 1 to `explore_least`.
    """

    num_envs: Annotated[int, Field(ge=1, le=10_000)] = 16
    activation: Literal["tanh", "relu"] = "relu"
    factor: Annotated[float, Field(ge=0, le=1e6)] = 1.0
    batch_size: Annotated[int, Field(ge=2, le=10**6)] = 256
    max_grad_norm: Annotated[float, Field(gt=0, le=1e9)] = 10.0
    buffer_size: Annotated[int, Field(ge=1, le=10**8)] = 100_000
    learning_starts: Annotated[int, Field(ge=0, le=10**9)] = 5_000
    train_every: Annotated[int, Field(ge=1, le=10**6)] = 4
    gradient_steps: Annotated[int, Field(ge=1, le=10**6)] = 2
    target_every: Steps = 5_000
    tau: Share = 1.0
    explore_share: Share = 0.3
    explore_least: Share = 0.05

    @property
    def update_steps(self) -> int:
        """Steps of each environment between two updates."""
        return self.train_every

    def learner(self) -> Dqn:
        """Return what makes and keeps the model."""
        return Dqn()


class DeepSetsQ(QNetwork):
    """Values of actions; an illegal one is below all, in the greedy choice and in the target."""

    def __init__(self, *, shape: Shape, factor: float, **options: Any):
        super().__init__(**options)
        self.q_net = Network(shape, 1, factor)  # type: ignore[assignment]


class DeepSetsQPolicy(DeepSetsPolicy, DQNPolicy):
    """An equivariant value network for `MaskedDQN`."""

    factor = 1.0

    def make_q_net(self) -> DeepSetsQ:
        """Return a new network."""
        arguments = self._update_features_extractor(self.net_args, features_extractor=None)
        return DeepSetsQ(shape=self.shape, factor=self.factor, **arguments).to(self.device)

    @property
    def actor(self) -> Network:
        """The network that a policy file holds."""
        return self.q_net.q_net  # type: ignore[return-value]


class MaskedDQN(DQN):
    """DQN that explores legal actions only, each environment by its own coin.

    stable-baselines3 tosses one coin for all environments and samples from the whole action space.
    """

    def _sample_action(
        self, learning_starts: int, action_noise: Any = None, n_envs: int = 1
    ) -> tuple[np.ndarray, np.ndarray]:
        seen = self._last_obs
        assert isinstance(seen, np.ndarray)
        legal = seen[..., -1] > 0.5
        random = np.where(legal, self._coins.random(legal.shape), -1.0).argmax(axis=1)
        rate = 1.0 if self.num_timesteps < learning_starts else self.exploration_rate
        explore = self._coins.random(len(legal)) < rate
        actions = (
            random
            if explore.all()
            else np.where(explore, random, self.policy.predict(seen, deterministic=True)[0])
        )
        return actions, actions


class Dqn(Ppo):
    """How `MaskedDQN` is made, and its replay buffer in a checkpoint."""

    name = "DQN of stable-baselines3, masked"

    def build(
        self,
        s: Any,
        columns: int,
        shared: dict[str, Any],
        share: Callable[[], float],
    ) -> MaskedDQN:
        """Return a new model for observations of so many numbers; `share` is of the run."""
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
            s.explore_least, 1 - (1 - s.explore_least) * share() / max(s.explore_share, 1e-9)
        )
        return model

    def begin_round(self, model: Any, seed: int) -> None:
        """Begin a new series of coins."""
        model._coins = np.random.default_rng(seed)
        model.exploration_rate = model.exploration_schedule(1.0)

    def arrays(self, model: Any) -> dict[str, np.ndarray]:
        """Return what a checkpoint holds beside networks and optimiser."""
        buffer: Any = model.replay_buffer
        filled = len(buffer.rewards) if buffer.full else buffer.pos
        results = {f"replay.{key}": getattr(buffer, key)[:filled] for key in REPLAY}
        return results | {"replay.pos": np.array(buffer.pos), "calls": np.array(model._n_calls)}

    def load(self, model: Any, arrays: Mapping[str, np.ndarray]) -> None:
        """Set a model to what `arrays` returned."""
        buffer: Any = model.replay_buffer
        filled = len(arrays["replay.rewards"])
        for key in REPLAY:
            getattr(buffer, key)[:filled] = arrays[f"replay.{key}"]
        buffer.pos, buffer.full = int(arrays["replay.pos"]), filled == buffer.buffer_size
        model._n_calls = int(arrays["calls"])


#: HephaestusForge: by the paper DQN does not know which actions are legal. It learns after every 8
#: steps here, after every 10 there.
DS_DQN = Preset(
    settings=DqnSettings(
        **vars(PAPER.settings)
        | {
            "gamma": 0.99,
            "batch_size": 128,
            "buffer_size": 10_000,
            "learning_starts": 10_000,
            "train_every": 1,
            "gradient_steps": 1,
            "target_every": 500,
            "explore_share": 0.5,
            "max_grad_norm": 10.0,
        }
    ),
    options={**PAPER.options, "masked": False},
)
#: REACH, Table V; 3 million steps of its figures.
RSDQL = Preset(
    settings=DqnSettings(
        **vars(TABLE_V)
        | {
            "hidden": (64, 64, 64),
            "activation": "relu",
            "explore_share": 0.1,
            "max_grad_norm": 10.0,
            "num_envs": 16,
            "weights": (1.0,),
            "steps": 3_000_000,
        }
    )
)
