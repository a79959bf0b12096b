"""Rescheduling episodes to learn from.

Starts are those of the REACH paper's testbed and applications, or of an instance.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from placeopt.core.errors import UsageError, require_known
from placeopt.core.interfaces import CompiledEpisodes, Preset
from placeopt.core.problem import Problem
from placeopt.rescheduling.episodes.batch import ReschedulingBatch
from placeopt.rescheduling.generator import APPLICATIONS
from placeopt.rescheduling.problem import Rescheduling
from placeopt.rl.settings import TrainingSettings

#: Hyper-parameters of the paper's Table V; what it does not print is as stable-baselines3 has it.
#: Rewards are in 100 ms.
TABLE_V = TrainingSettings(
    learning_rate=3e-4,
    final_learning_rate=1.0,
    gamma=0.99,
    batch_size=64,
    factor=0.0,
    reward_scale=0.01,
    hidden=(64, 64),
    n_steps=32,
    epochs=4,
    gae_lambda=0.95,
)
#: Settings that train within a minute: larger batches, fewer passes, an initial factor of the
#: one-step reward. Rewards are not discounted: moves that pay only together are worth their sum.
QUICK = replace(
    TABLE_V,
    steps=40_000,
    hidden=(16, 16),
    batch_size=1600,
    n_steps=50,
    epochs=3,
    learning_rate=4e-3,
    final_learning_rate=0.1,
    factor=5.0,
    gamma=1.0,
)


def batch(
    problem: Problem | None = None,
    num_envs: int = 1,
    seed: int = 0,
    *,
    application: str = "all",
    replicas: Any = (1, 5),
    cloud_a: int = 2,
    edge_a: int = 2,
    edge_b: int = 2,
    background: float = 0.2,
    penalty: float = 2.0,
    steps: int | None = None,
    start: str = "given",
) -> ReschedulingBatch:
    """Return episodes on generated starts, or on an instance.

    Their seeds are those of `reset`; `seed` is not used.

    Parameters
    ----------
    problem : Rescheduling, optional
        Episodes begin with its replicas where they run, or, with `start` "random", anywhere; of the
        other options only `penalty` and `steps` count.
    application : str
        One of the paper's three, or ``all``: drawn for every episode.
    replicas : (int, int)
        Least and largest number of a service, drawn for every service and episode.
    cloud_a, edge_a, edge_b : int
        Machines of each kind.
    background, penalty, steps
        As of `placeopt.rescheduling.episodes.batch.ReschedulingBatch`.
    """
    if problem is not None:
        if not isinstance(problem, Rescheduling):
            raise UsageError(f"these episodes are of rescheduling, not of {problem.problem}")
        result = ReschedulingBatch(problem, num_envs, start=start, penalty=penalty, steps=steps)
        result.problem = problem if start == "given" else None
        return result
    require_known("application", application, ("all", *APPLICATIONS))
    low, high = _read_pair(replicas)
    chosen = [name for name in APPLICATIONS if application in ("all", name)]
    sizes = {"cloud_a": cloud_a, "edge_a": edge_a, "edge_b": edge_b}
    problems = [
        Rescheduling.generate(0, application=name, replicas=high, **sizes) for name in chosen
    ]
    return ReschedulingBatch(
        problems,
        num_envs,
        replicas=(low, high),
        background=background,
        penalty=penalty,
        steps=steps,
    )


def _read_pair(given: Any) -> tuple[int, int]:
    try:
        low, high = (int(part) for part in (given.split(",") if isinstance(given, str) else given))
    except (TypeError, ValueError):
        raise UsageError(
            f"replicas is {given!r}; give the least and the largest number, such as 1,5"
        ) from None
    return low, high


#: The agent of the REACH paper; 3 million steps of its figures.
PRESETS = {"reach-ppo": Preset(settings=replace(TABLE_V, weights=(1.0,), steps=3_000_000))}
EPISODES = CompiledEpisodes(batch=batch, settings=QUICK, presets=PRESETS)
