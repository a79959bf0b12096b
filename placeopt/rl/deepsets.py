"""`placeopt.rl.policy` in PyTorch, as policies of stable-baselines3 and sb3-contrib.

The rows that enter hold the features, the weights of the reward's parts, and last whether the
action is legal: observations with ``append=("weights", "legal")``.

stable-baselines3 views logits as (-1, actions of the training environment). At another number of
actions its own ``predict`` answers nonsense without a warning. Use `TrainedPolicy.act` instead: its
answers have as many actions as the rows that it is shown.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from stable_baselines3 import DQN
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from stable_baselines3.dqn.policies import DQNPolicy, QNetwork
from torch import nn

from placeopt.rl.policy import CONTRAST, Shape

#: Value of an illegal action: below every other, and finite, as a bootstrap multiplies it by 0.
ILLEGAL = -1e8
#: A factor of the score is base x exp(SPEED x parameter), so that it can soon grow tenfold.
SPEED = 10.0


class ActionRows(BaseFeaturesExtractor):
    """The feature extractor that returns the rows of an observation unchanged."""

    def __init__(self, observation_space: spaces.Box):
        super().__init__(observation_space, int(np.prod(observation_space.shape)))

    def forward(self, observations: torch.Tensor) -> torch.Tensor:
        """Return the observations."""
        return observations


class Equivariant(nn.Module):
    """One layer, x L + b - 1 maxpool(x) G, the maximum over legal rows.

    Parameters
    ----------
    inputs, outputs : int
    gain : float
        Of the orthogonal initial L; G begins at a tenth of it.
    """

    def __init__(self, inputs: int, outputs: int, gain: float):
        super().__init__()
        self.own = nn.Parameter(nn.init.orthogonal_(torch.empty(inputs, outputs), gain))
        self.pool = nn.Parameter(nn.init.orthogonal_(torch.empty(inputs, outputs), gain / 10))
        self.bias = nn.Parameter(torch.zeros(outputs))

    def forward(self, x: torch.Tensor, legal: torch.Tensor) -> torch.Tensor:
        """Return (B, A, outputs) of x (B, A, inputs) and legal (B, A, 1)."""
        return x @ self.own + (self.bias - pooled(x, legal) @ self.pool).unsqueeze(-2)


def pooled(x: torch.Tensor, legal: torch.Tensor) -> torch.Tensor:
    """Return the maximum over legal rows, (B, inputs); 0 where no row is legal."""
    highest = torch.where(legal, x, torch.tensor(-torch.inf)).amax(dim=-2)
    return torch.where(legal.any(dim=-2), highest, torch.tensor(0.0))


class Network(nn.Module):
    """Layers and the factor of the score, under the names of the arrays of a `TrainedPolicy`.

    Parameters
    ----------
    shape : Shape
    outputs : int
        Of the last layer. 0 for none: a critic pools the rows of the last hidden layer.
    factor : float
        Initial factor of the score of an action.
    """

    base: torch.Tensor

    def __init__(self, shape: Shape, outputs: int = 1, factor: float = 1.0):
        super().__init__()
        self.shape = shape
        wide = (shape.inputs, *shape.hidden)
        layers = [
            Equivariant(a, b, 2**0.5 if shape.activation == "relu" else 1.0)
            for a, b in pairwise(wide)
        ]
        self.layers = nn.ModuleList(
            [*layers, *([Equivariant(wide[-1], outputs, 0.01)] if outputs else [])]
        )
        self.act = {"tanh": torch.tanh, "relu": torch.relu}[shape.activation]
        self.outputs = outputs
        if outputs:
            self.register_buffer("base", torch.full((shape.parts,), float(factor)))
            self.growth = nn.Parameter(torch.zeros(shape.parts))

    def split(self, rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]:
        """Return the parts of rows (B, A, F + K + 1).

        They are inputs (B, A, I), legality (B, A, 1) and weighted one-step rewards (B, A, K).
        """
        s = self.shape
        legal = rows[..., -1:] > 0.5
        x = rows[..., :-1]
        if not s.score:
            return x, legal, None
        at_once = x[..., s.features :] * (
            x[..., list(s.score[: s.parts])]
            + x[..., list(s.score[s.parts :])].sum(dim=-1, keepdim=True)
        )
        at_once = at_once - pooled(at_once, legal).unsqueeze(-2)
        return torch.cat([x, CONTRAST * at_once], dim=-1), legal, at_once

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        """Return a value for every action, (B, A); without outputs the pooled rows, (B, 2 H)."""
        x, legal, at_once = self.split(rows)
        for layer in self.layers[: len(self.shape.hidden)]:
            x = self.act(layer(x, legal))
        if not self.outputs:
            mean = (x * legal).sum(dim=-2) / legal.sum(dim=-2).clamp(min=1)
            return torch.cat([pooled(x, legal), mean], dim=-1)
        values = self.layers[-1](x, legal).squeeze(-1)
        return values if at_once is None else values + at_once @ self.factor

    @property
    def factor(self) -> torch.Tensor:
        """The factor of each part of the one-step reward, (K,)."""
        return self.base * torch.exp(SPEED * self.growth)


class Heads(nn.Module):
    """Actor and critic, in the place of stable-baselines3's MlpExtractor."""

    def __init__(self, shape: Shape, factor: float):
        super().__init__()
        self.actor = Network(shape, 1, factor)
        self.critic = Network(shape, 0)

    def forward_actor(self, rows: torch.Tensor) -> torch.Tensor:
        """Return the logits."""
        return self.actor(rows)

    def forward_critic(self, rows: torch.Tensor) -> torch.Tensor:
        """Return the critic's pooled rows."""
        return self.critic(rows)

    def forward(self, rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the logits and the critic's pooled rows."""
        return self.actor(rows), self.critic(rows)


class DeepSetsPolicy(BasePolicy):
    """A policy whose networks read the rows of an observation as they are.

    Parameters
    ----------
    *arguments, **options
        As of the policy of stable-baselines3.
    shape : Shape
    factor : float, optional
        Initial factor of an action's one-step score in its logit or value: the larger, the more
        myopic. By default that of the class.
    """

    factor: float

    def __init__(self, *arguments: Any, shape: Shape, factor: float | None = None, **options: Any):
        self.shape, self.factor = shape, self.factor if factor is None else factor
        super().__init__(*arguments, features_extractor_class=ActionRows, **options)


class DeepSetsActorCritic(DeepSetsPolicy, MaskableActorCriticPolicy):
    """An equivariant actor and an invariant critic for MaskablePPO."""

    factor = 10.0

    def _build(self, lr_schedule: Callable[[float], float]) -> None:
        self.mlp_extractor = Heads(self.shape, self.factor)  # type: ignore[assignment]
        self.action_net = nn.Identity()
        self.value_net = nn.Linear(2 * self.shape.hidden[-1], 1)
        self.optimizer = self.optimizer_class(
            self.parameters(), lr=lr_schedule(1), **self.optimizer_kwargs
        )  # type: ignore[call-arg]

    @property
    def actor(self) -> Network:
        """The network that a policy file holds."""
        return self.mlp_extractor.actor  # type: ignore[return-value]


class DeepSetsQ(QNetwork):
    """Values of actions; an illegal one has `ILLEGAL`, in the greedy choice and in the target."""

    def __init__(self, *, shape: Shape, factor: float, **options: Any):
        super().__init__(**options)
        self.q_net = Network(shape, 1, factor)  # type: ignore[assignment]

    def forward(self, obs: torch.Tensor) -> torch.Tensor:  # type: ignore[override]
        """Return (B, A)."""
        return torch.where(obs[..., -1] > 0.5, self.q_net(obs), torch.tensor(ILLEGAL))


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
        keys = self._coins.random(legal.shape)
        random = np.where(legal, keys, -1.0).argmax(axis=1)
        rate = 1.0 if self.num_timesteps < learning_starts else self.exploration_rate
        explore = self._coins.random(len(legal)) < rate
        actions = (
            random
            if explore.all()
            else np.where(explore, random, self.policy.predict(seen, deterministic=True)[0])
        )
        return actions, actions

    def _setup_model(self) -> None:
        super()._setup_model()
        self.toss(self.seed or 0)

    def toss(self, seed: int) -> None:
        """Begin a new series of coins."""
        self._coins = np.random.default_rng(seed)


def numpy_arrays(network: Network) -> dict[str, np.ndarray]:
    """Return the arrays of a network for a `TrainedPolicy`."""
    found = dict(network.named_parameters()) | {"factor": network.factor}
    del found["growth"]
    return {name: value.detach().cpu().numpy().copy() for name, value in found.items()}
