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
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
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


class LegalRows:
    """The legal rows of a batch, one observation after another: networks compute no others.

    Parameters
    ----------
    observations : Tensor
        Shape (B, A, F + K + 1), the last column whether the action is legal.

    Attributes
    ----------
    x : Tensor
        Features and weights of each legal row, shape (R, F + K).
    """

    def __init__(self, observations: torch.Tensor):
        legal = observations[..., -1] > 0.5
        self._shape, self._counts = legal.shape, legal.sum(dim=1)
        self._none = (self._counts == 0).unsqueeze(1)
        self._owner, self._action = legal.nonzero(as_tuple=True)
        self.x = observations[self._owner, self._action, :-1]

    def highest(self, x: torch.Tensor) -> torch.Tensor:
        """Return the maximum of each observation's rows of x (R, columns), (B, columns), or 0."""
        return self._reduced(x, "max")

    def mean(self, x: torch.Tensor) -> torch.Tensor:
        """Return the mean of each observation's rows of x (R, columns), (B, columns), or 0."""
        return self._reduced(x, "mean")

    def _reduced(self, x: torch.Tensor, how: str) -> torch.Tensor:
        result = torch.segment_reduce(x, how, lengths=self._counts, axis=0)
        return result.masked_fill(self._none, 0.0)

    def given(self, x: torch.Tensor) -> torch.Tensor:
        """Return to each row that of its observation, (R, columns) of x (B, columns)."""
        return x.index_select(0, self._owner)

    def spread(self, values: torch.Tensor) -> torch.Tensor:
        """Return values (R,) at their actions, `ILLEGAL` at others, (B, A)."""
        whole = torch.full(self._shape, ILLEGAL)
        return whole.index_put((self._owner, self._action), values)


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

    def forward(self, x: torch.Tensor, rows: LegalRows) -> torch.Tensor:
        """Return (R, outputs) of the legal rows x (R, inputs)."""
        return x @ self.own + rows.given(self.bias - rows.highest(x) @ self.pool)


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

    def inputs(self, rows: LegalRows) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Return the inputs (R, I) and weighted one-step rewards (R, K) of legal rows."""
        s, x = self.shape, rows.x
        if not s.score:
            return x, None
        at_once = x[:, s.features :] * (
            x[:, list(s.score[: s.parts])]
            + x[:, list(s.score[s.parts :])].sum(dim=-1, keepdim=True)
        )
        at_once = at_once - rows.given(rows.highest(at_once))
        return torch.cat([x, CONTRAST * at_once], dim=-1), at_once

    def forward(self, observations: torch.Tensor) -> torch.Tensor:
        """Return what `of` returns for the legal rows of observations (B, A, F + K + 1)."""
        return self.of(LegalRows(observations))

    def of(self, rows: LegalRows) -> torch.Tensor:
        """Return a value for every action, (B, A); an illegal one has `ILLEGAL`.

        Without outputs return the pooled rows, (B, 2 H).
        """
        x, at_once = self.inputs(rows)
        for layer in self.layers[: len(self.shape.hidden)]:
            x = self.act(layer(x, rows))
        if not self.outputs:
            return torch.cat([rows.highest(x), rows.mean(x)], dim=-1)
        values = self.layers[-1](x, rows).squeeze(-1)
        return rows.spread(values if at_once is None else values + at_once @ self.factor)

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
        legal = LegalRows(rows)
        return self.actor.of(legal), self.critic.of(legal)


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


def numpy_arrays(network: Network) -> dict[str, np.ndarray]:
    """Return the arrays of a network for a `TrainedPolicy`."""
    result = dict(network.named_parameters()) | {"factor": network.factor}
    del result["growth"]
    return {name: value.detach().cpu().numpy().copy() for name, value in result.items()}
