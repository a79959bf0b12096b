"""How a policy is trained: every number that matters, with defaults that work."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field

from placeopt.core.parameters import checked
from placeopt.rl.episodes import DRAWN
from placeopt.rl.policy import Width


def _split(value: Any) -> Any:
    """Return the widths of ``"32,32"``, of 32 alone, or of a sequence."""
    if isinstance(value, str):
        return value.split(",")
    return value if isinstance(value, (list, tuple)) else [value]


Share = Annotated[float, Field(ge=0, le=1)]
Steps = Annotated[int, Field(ge=1, le=10**9)]


@dataclass(frozen=True, kw_only=True)
class TrainingSettings:
    """What a training run is made of; `placeopt.core.parameters.checked` knows what is legal.

    Attributes
    ----------
    weights : tuple of float, "drawn" or None
        Of the parts of the reward; equal ones for None. Drawn for every episode they make a policy
        for all preferences.
    seed, steps : int
        Steps of all environments together.
    num_envs : int
    hidden : tuple of int
        Widths of the layers.
    activation : {"tanh", "relu"}
    factor : float
        Initial factor of an action's one-step score: 0 ignores it, 10 begins nearly myopic.
    learning_rate : float
        The initial one; it falls linearly to `final_learning_rate` times as much.
    gamma : float
        Discount of later rewards.
    reward_scale : float
        The learner sees rewards times this.
    batch_size : int
    max_grad_norm : float
    n_steps, epochs, gae_lambda, clip_range, entropy, value_weight
        Steps of each environment between two updates, passes over them, and so on.
    """

    weights: tuple[float, ...] | Literal["drawn"] | None = None
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 1
    steps: Steps = 500_000
    num_envs: Annotated[int, Field(ge=1, le=10_000)] = 64
    hidden: Annotated[
        tuple[Width, ...],
        BeforeValidator(_split),
        Field(min_length=1, max_length=8, description="Widths such as 32,32."),
    ] = (32, 32)
    activation: Literal["tanh", "relu"] = "tanh"
    factor: Annotated[float, Field(ge=0, le=1e6)] = 10.0
    learning_rate: Annotated[float, Field(gt=0, le=1e3)] = 1e-3
    final_learning_rate: Share = 0.05
    gamma: Share = 0.95
    reward_scale: Annotated[float, Field(gt=0, le=1e9)] = 1.0
    batch_size: Annotated[int, Field(ge=2, le=10**6)] = 1600
    max_grad_norm: Annotated[float, Field(gt=0, le=1e9)] = 0.5
    n_steps: Annotated[int, Field(ge=2, le=10**6)] = 100
    epochs: Annotated[int, Field(ge=1, le=1000)] = 4
    gae_lambda: Share = 0.9
    clip_range: Annotated[float, Field(gt=0, le=1)] = 0.2
    entropy: Annotated[float, Field(ge=0, le=1e3)] = 0.0
    value_weight: Annotated[float, Field(ge=0, le=1e3)] = 0.5

    @property
    def conditioned(self) -> bool:
        """Whether the policy serves every preference."""
        return self.weights == DRAWN

    @property
    def round_steps(self) -> int:
        """Steps of a round: after it come news, a checkpoint and new random states."""
        step = self.num_envs * self.update_steps
        return step * max(1, round(20_000 / step))

    @property
    def update_steps(self) -> int:
        """Steps of each environment between two updates."""
        return self.n_steps

    def learner(self) -> Any:
        """Return what makes and keeps the model; None for the PPO of `placeopt.rl.training`."""
        return None

    def to_document(self) -> dict[str, Any]:
        """Return them as JSON values."""
        return {
            key: list(value) if isinstance(value, tuple) else value
            for key, value in asdict(self).items()
        }

    def with_options(self, options: Mapping[str, Any]) -> Self:
        """Return the same with some changed; texts such as ``"32,32"`` become numbers.

        Raises
        ------
        UsageError
            An unknown setting, or a value that is not legal.
        """
        return replace(self, **checked(type(self), "training", options))
