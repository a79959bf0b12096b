"""A trained policy as plain arrays: a DeepSets network over the rows of an observation, in NumPy.

M. Zaheer et al., "Deep Sets", 2017, as J. Santos et al., "HephaestusForge", FGCS 2025, section 4.5,
use it. A layer maps the rows x, one for each action, to act(x L + b - 1 maxpool(x) G). It treats
all rows alike, whatever their number: a policy trained on four clusters can judge thirty-two. Here
the maximum is taken over the legal rows.

Features may hold the one-step rewards of an action. Then the score of an action, each part of its
reward times the part's weight, less the best score of the legal actions, enters its row. It also
enters the output, times a learned factor for each part. A network of zeros is therefore the myopic
policy, and factors that differ say which part of the reward has a future.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import ConfigDict, Field

from placeopt.core.errors import UsageError
from placeopt.rl.episodes import normalised

#: Scores enter the rows times this, so that small differences are seen.
CONTRAST = 8.0
#: Of a layer.
Width = Annotated[int, Field(ge=1, le=4096)]
#: Activation by name.
ACTIVATIONS: dict[str, Callable[[Any], Any]] = {"tanh": np.tanh, "relu": lambda x: np.maximum(x, 0)}


@dataclass(frozen=True)
class Shape:
    """The form of a network.

    Attributes
    ----------
    features : int
        Columns of the batch's observations, F.
    parts : int
        Parts of the reward, K, whose weights are inputs too.
    hidden : tuple of int
        Widths of the layers.
    activation : {"tanh", "relu"}
    score : tuple of int
        Columns of the features as of `placeopt.core.interfaces.Batch.score`: K with the parts of an
        action's one-step reward, and at most one that counts in full; or none.
    """

    __pydantic_config__ = ConfigDict(extra="forbid")

    features: Annotated[int, Field(strict=True, ge=1, le=10_000)]
    parts: int
    hidden: Annotated[tuple[Width, ...], Field(min_length=1, max_length=8)] = (32, 32)
    activation: Literal["tanh", "relu"] = "tanh"
    score: tuple[int, ...] = ()

    @property
    def inputs(self) -> int:
        """Columns that enter the first layer."""
        return self.features + self.parts * (2 if self.score else 1)

    def arrays(self) -> dict[str, tuple[int, ...]]:
        """Return name and shape of every array of the actor."""
        shapes: dict[str, tuple[int, ...]] = {}
        wide = (self.inputs, *self.hidden, 1)
        for i, (rows, columns) in enumerate(pairwise(wide)):
            shapes |= {
                f"layers.{i}.own": (rows, columns),
                f"layers.{i}.pool": (rows, columns),
                f"layers.{i}.bias": (columns,),
            }
        return shapes | {"factor": (self.parts,)}


@dataclass(frozen=True)
class TrainedPolicy:
    """A network, what it was trained on, and what it serves.

    Attributes
    ----------
    problem : str
        The kind of problem that it serves.
    rewards : tuple of str
        Names of the parts of the reward.
    shape : Shape
    arrays : dict of ndarray
        As of `Shape.arrays`, float32.
    environment : dict
        Options of the episodes that it was trained on, such as ``{"rate": 5}``.
    weights : tuple of float or None
        Those that it was trained for; None where it serves all.
    card : dict
        Facts of the training: data, seeds, rewards, limits.
    """

    problem: str
    rewards: tuple[str, ...]
    shape: Shape
    arrays: dict[str, np.ndarray]
    environment: dict[str, Any] = field(default_factory=dict)
    weights: tuple[float, ...] | None = None
    card: dict[str, Any] = field(default_factory=dict)

    def preferences(self, weights: Any = None) -> np.ndarray:
        """Return the given weights, or those that it was trained for, shape (K,); they sum to 1."""
        return normalised(self.weights if weights is None else weights, len(self.rewards))

    def logits(
        self, observations: np.ndarray, weights: np.ndarray, masks: np.ndarray
    ) -> np.ndarray:
        """Return the logit of each action, float32 of shape (..., A).

        Parameters
        ----------
        observations : ndarray
            Shape (..., A, F).
        weights : ndarray
            Shape (..., K) or (K,).
        masks : ndarray
            Which actions are legal, bool of shape (..., A). Logits of illegal ones mean nothing.
        """
        s = self.shape
        if observations.shape[-1] != s.features:
            raise UsageError(
                f"the policy reads {s.features} features, the environment has "
                f"{observations.shape[-1]}: it was made for another one"
            )
        x = np.asarray(observations, dtype=np.float32)
        preferences = np.broadcast_to(
            np.asarray(weights, dtype=np.float32)[..., None, :], (*x.shape[:-1], s.parts)
        )
        columns, score = [x, preferences], np.zeros(x.shape[:-1], dtype=np.float32)
        if s.score:
            at_once = preferences * (
                x[..., list(s.score[: s.parts])]
                + x[..., list(s.score[s.parts :])].sum(axis=-1, keepdims=True)
            )
            at_once = at_once - pooled(at_once, masks)[..., None, :]
            columns.append(np.float32(CONTRAST) * at_once)
            score = at_once @ self.arrays["factor"]
        x = np.concatenate(columns, axis=-1)
        act = ACTIVATIONS[s.activation]
        for i in range(len(s.hidden) + 1):
            x = self._layer(i, x, masks)
            if i < len(s.hidden):
                x = act(x)
        return x[..., 0] + score

    def _layer(self, i: int, x: np.ndarray, masks: np.ndarray) -> np.ndarray:
        """Return x L + b - 1 maxpool(x) G."""
        own, pool, bias = (self.arrays[f"layers.{i}.{name}"] for name in ("own", "pool", "bias"))
        return x @ own + (bias - pooled(x, masks) @ pool)[..., None, :]

    def act(self, observations: np.ndarray, weights: np.ndarray, masks: np.ndarray) -> np.ndarray:
        """Return the legal action of the highest logit, int64 of shape (...); of equals the first.

        Arguments are as of `logits`.
        """
        return np.where(masks, self.logits(observations, weights, masks), -np.inf).argmax(axis=-1)


def pooled(x: np.ndarray, masks: np.ndarray) -> np.ndarray:
    """Return the maximum over legal rows, shape (..., columns); 0 where no row is legal.

    Parameters
    ----------
    x : ndarray, shape (..., A, columns)
    masks : ndarray
        Which rows are legal, bool of shape (..., A).
    """
    highest = np.where(masks[..., None], x, np.float32(-np.inf)).max(axis=-2)
    return np.where(masks.any(axis=-1, keepdims=True), highest, np.float32(0))
