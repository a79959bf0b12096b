"""Mean reward and other facts of a policy, or of any other way to choose, over many episodes."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from placeopt.core.interfaces import Batch
from placeopt.rl.episodes import WeightedEpisodes, Weights

#: Chooses actions (N,) from observations (N, A, F), weights (N, K) and masks (N, A).
Chooser = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]


def greedy(score: tuple[int, ...]) -> Chooser:
    """Return a chooser of the highest weighted one-step reward, which columns `score` hold."""

    def choose(observations: np.ndarray, weights: np.ndarray, masks: np.ndarray) -> np.ndarray:
        parts = weights.shape[-1]
        value = (observations[..., list(score[:parts])] * weights[:, None]).sum(axis=-1)
        value += observations[..., list(score[parts:])].sum(axis=-1)
        return np.where(masks, value, -np.inf).argmax(axis=1)

    return choose


def evaluate(
    batch: Batch, choose: Chooser, episodes: int, weights: Weights = None, seed: int = 0
) -> dict[str, np.ndarray]:
    """Return the facts of complete episodes, arrays of length `episodes`.

    Their ``reward`` is the undiscounted weighted sum. Episode k has seed ``seed + k``, however many
    environments the batch has.

    Parameters
    ----------
    batch : Batch
    choose : callable
        Such as `TrainedPolicy.act`.
    episodes, seed : int
    weights
        As of `placeopt.rl.episodes.Preferences`.
    """
    runs = WeightedEpisodes(batch, weights, ())
    parts: list[dict[str, np.ndarray]] = []
    for first in range(0, episodes, batch.num_envs):
        runs.reset(np.arange(batch.num_envs, dtype=np.uint64) + np.uint64(seed + first))
        results: dict[str, np.ndarray] = {}
        running = np.ones(batch.num_envs, dtype=bool)
        while running.any():
            actions = np.zeros(batch.num_envs, dtype=np.int64)
            actions[running] = choose(
                batch.observations[running], runs.preferences.rows[running], batch.masks[running]
            )
            _, _, ended = runs.step(actions)
            just_ended = ended & running
            if just_ended.any():
                for key, value in runs.facts().items():
                    kept = results.setdefault(key, np.zeros(batch.num_envs, dtype=value.dtype))
                    kept[just_ended] = value[just_ended]
                running &= ~ended
                if running.any():
                    runs.reset(None, ended)
        parts.append(results)
    facts = {key: np.concatenate([part[key] for part in parts])[:episodes] for key in parts[0]}
    return {"reward": facts.pop("episode_return")} | facts


def summary(facts: dict[str, np.ndarray]) -> dict[str, tuple[float, float]]:
    """Return the mean of every fact and half the width of its 95 % interval.

    Episodes in which a fact is not defined are left out.
    """
    results: dict[str, tuple[float, float]] = {}
    for key, values in facts.items():
        known = np.asarray(values, dtype=float)
        known = known[np.isfinite(known)]
        mean = float(known.mean()) if len(known) else math.nan
        deviation = float(known.std(ddof=1)) if len(known) > 1 else math.nan
        results[key] = mean, 1.96 * deviation / max(1, len(known)) ** 0.5
    return results


def table(facts: dict[str, np.ndarray]) -> dict[str, float]:
    """Return the means alone."""
    return {key: mean for key, (mean, _) in summary(facts).items()}
