"""How a policy is trained: every number that matters, with defaults that work."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Self

from placeopt.core.errors import UsageError, did_you_mean
from placeopt.rl.preferences import DRAWN

ALGORITHMS = ("ppo", "dqn")


@dataclass(frozen=True)
class Settings:
    """What a training run is made of.

    Attributes
    ----------
    algorithm : {"ppo", "dqn"}
        MaskablePPO of sb3-contrib, or DQN of stable-baselines3 that explores and values legal actions only.
    weights : tuple of float, "drawn" or None
        Of the parts of the reward; drawn for every episode they make a policy for all preferences. Equal ones for None.
    seed, steps : int
        Steps of all environments together.
    num_envs : int
    hidden : tuple of int
        Widths of the layers.
    activation : {"tanh", "relu"}
    factor : float
        What the one-step score of an action counts at the beginning; 0 knows nothing of it, 10 begins nearly myopic.
    learning_rate : float
        At the beginning; it falls linearly to `final_learning_rate` times as much.
    gamma : float
        Discount of later rewards.
    reward_scale : float
        The learner sees rewards times this.
    batch_size : int
    max_grad_norm : float
    n_steps, epochs, gae_lambda, clip_range, entropy, value_weight
        Of PPO: steps of each environment between two updates, passes over them, and so on.
    buffer_size, learning_starts, train_every, gradient_steps, target_every, tau, explore_share, explore_least
        Of DQN: transitions kept; steps before learning; steps of each environment between updates; gradient steps of an update; steps
        between updates of the target; the share of the run in which exploration falls from all to `explore_least`.
    """

    algorithm: str = "ppo"
    weights: tuple[float, ...] | str | None = None
    seed: int = 1
    steps: int = 500_000
    num_envs: int = 64
    hidden: tuple[int, ...] = (32, 32)
    activation: str = "tanh"
    factor: float = 10.0
    learning_rate: float = 1e-3
    final_learning_rate: float = 0.05
    gamma: float = 0.95
    reward_scale: float = 1.0
    batch_size: int = 1600
    max_grad_norm: float = 0.5
    n_steps: int = 100
    epochs: int = 4
    gae_lambda: float = 0.9
    clip_range: float = 0.2
    entropy: float = 0.0
    value_weight: float = 0.5
    buffer_size: int = 100_000
    learning_starts: int = 5_000
    train_every: int = 4
    gradient_steps: int = 2
    target_every: int = 5_000
    tau: float = 1.0
    explore_share: float = 0.3
    explore_least: float = 0.05

    def __post_init__(self) -> None:
        if self.algorithm not in ALGORITHMS:
            raise UsageError(
                f"unknown algorithm {self.algorithm!r}; {did_you_mean(self.algorithm, ALGORITHMS)}"
            )
        whole = (
            "steps",
            "num_envs",
            "batch_size",
            "n_steps",
            "epochs",
            "buffer_size",
            "train_every",
            "gradient_steps",
            "target_every",
        )
        for name in whole:
            if not isinstance(getattr(self, name), int) or getattr(self, name) < 1:
                raise UsageError(
                    f"{name} is {getattr(self, name)!r}; give a whole number of at least 1"
                )
        if not 0 <= self.gamma <= 1 or not self.learning_rate > 0:
            raise UsageError(
                f"gamma is {self.gamma} and learning_rate {self.learning_rate}; legal: 0 to 1, and above 0"
            )
        if self.activation not in ("tanh", "relu"):
            raise UsageError(f"unknown activation {self.activation!r}; legal: tanh, relu")

    @property
    def conditioned(self) -> bool:
        """Whether the policy serves every preference."""
        return self.weights == DRAWN

    @property
    def round_steps(self) -> int:
        """Steps after which there is news, a checkpoint, and a new state of all random numbers."""
        step = self.num_envs * (self.n_steps if self.algorithm == "ppo" else self.train_every)
        return step * max(1, round(20_000 / step))

    def to_document(self) -> dict[str, Any]:
        """Return them as JSON values."""
        return {
            key: list(value) if isinstance(value, tuple) else value
            for key, value in asdict(self).items()
        }

    def with_options(self, options: dict[str, Any]) -> Self:
        """Return the same with some changed; texts such as ``"32,32"`` become what the field holds.

        Raises
        ------
        UsageError
            An unknown field, or a value that is not legal.
        """
        known = {f.name: getattr(self, f.name) for f in fields(self)}
        changed = {}
        for key, value in options.items():
            if key not in known:
                raise UsageError(f"unknown setting {key!r}; {did_you_mean(key, known)}")
            changed[key] = _as(type(known[key]), value, key)
        return replace(self, **changed)


#: What is different for DQN: it pays for values that are off, where PPO is content with differences.
DQN = {
    "factor": 1.0,
    "batch_size": 256,
    "activation": "relu",
    "max_grad_norm": 10.0,
    "num_envs": 16,
}


def defaults(algorithm: str) -> Settings:
    """Return the settings of an algorithm."""
    return replace(Settings(algorithm=algorithm), **(DQN if algorithm == "dqn" else {}))  # type: ignore[arg-type]


def _as(kind: type, value: Any, key: str) -> Any:
    try:
        if key == "hidden":
            parts = (
                value.split(",")
                if isinstance(value, str)
                else value
                if isinstance(value, (list, tuple))
                else [value]
            )
            widths = tuple(int(part) for part in parts)
            if not widths or min(widths) < 1:
                raise ValueError
            return widths
        if kind is float:
            return float(value)
        if kind is int and int(value) == value:
            return int(value)
        if kind is str and isinstance(value, str):
            return value
    except (TypeError, ValueError):
        pass
    else:
        if kind not in (int, str, float):
            return value
    raise UsageError(
        f"{key} is {value!r}; give {'whole numbers such as 32,32' if key == 'hidden' else f'a {kind.__name__}'}"
    )
