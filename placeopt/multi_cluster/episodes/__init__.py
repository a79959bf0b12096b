"""Multi-cluster episodes to learn from: generated ones, or those of an instance."""

from __future__ import annotations

from collections.abc import Sequence

from placeopt.core.errors import UsageError
from placeopt.core.interfaces import CompiledEpisodes
from placeopt.core.problem import keyword_defaults, keywords
from placeopt.multi_cluster.episodes.stream import MultiClusterBatch
from placeopt.multi_cluster.generator import RATE, STRATEGIES
from placeopt.multi_cluster.problem import MultiCluster

#: Columns with the one-step reward parts of an action, and with its reward if it places nothing.
SCORE = MultiClusterBatch.score
#: The reward strategies of the paper, by name.
PREFERENCES = STRATEGIES


def batch(
    problem: MultiCluster | None = None,
    num_envs: int = 1,
    seed: int = 0,
    *,
    clusters: int = 4,
    rate: float = RATE,
    duration: float = 1.0,
    replicas: Sequence[int] = (1, 7),
    steps: int = 100,
) -> MultiClusterBatch:
    """Return generated episodes, or those of an instance, which are all alike.

    Options are those of `placeopt.multi_cluster.episodes.stream.MultiClusterBatch`; an instance
    takes none, as they say what is generated. Seeds are those of ``reset``; `seed` is not used.

    Raises
    ------
    UsageError
        An option that is not legal, or any together with an instance.
    """
    options = keywords(batch, locals())
    if problem is None:
        return MultiClusterBatch(num_envs, **options)
    for name, default in keyword_defaults(batch).items():
        if options[name] != default:
            raise UsageError(
                f"{name} is an option of generated episodes; an instance says itself what they are"
            )
    return MultiClusterBatch.of(problem, num_envs)


EPISODES = CompiledEpisodes(batch=batch, preferences=PREFERENCES)
