"""Multi-cluster episodes to learn from: generated ones, single or many at once, and those of an instance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from placeopt.core.errors import UsageError
from placeopt.core.interfaces import CompiledEpisodes
from placeopt.core.problem import keyword_defaults
from placeopt.multi_cluster import batch as multi_cluster_batch
from placeopt.multi_cluster.instance import MultiCluster
from placeopt.multi_cluster.paper_data import STRATEGIES

#: Columns with the parts of an action's one-step reward, and with the reward of an action that does not place the request.
SCORE = (5, 6, 7, 8)
#: The reward strategies of the paper, by name.
PREFERENCES = STRATEGIES


class Episodes(multi_cluster_batch.MultiCluster):
    """Says where the one-step rewards stand, and what the plan of an instance's episode is."""

    score = SCORE
    problem: MultiCluster | None = None

    def plan(self, env: int) -> dict[str, Any]:
        """Return the plan so far; requests that are still to come are refused.

        Raises
        ------
        UsageError
            The episodes are not those of an instance.
        """
        if self.problem is None:
            raise UsageError("generated episodes have no plan; give an instance")
        placed = self.placements(env)
        return self.problem.plan([*placed, *({} for _ in range(self.steps - len(placed)))])


def batch(
    problem: MultiCluster | None = None,
    num_envs: int = 1,
    seed: int = 0,
    *,
    clusters: int = 4,
    semantics: str = "fixed",
    rate: float | None = None,
    duration: float = 1.0,
    replicas: Sequence[int] = (1, 7),
    steps: int = 100,
) -> Episodes:
    """Return generated episodes, or those of an instance, which are all alike.

    Options are those of `placeopt.multi_cluster.simulator.stream.Stream`, for generated episodes. Seeds are those of ``reset``; `seed` is
    not used.

    Raises
    ------
    UsageError
        An option that is not legal, or any together with an instance.
    """
    options: dict[str, Any] = {
        "clusters": clusters,
        "semantics": semantics,
        "rate": rate,
        "duration": duration,
        "replicas": replicas,
        "steps": steps,
    }
    if problem is None:
        return Episodes(num_envs, **options | {"replicas": tuple(replicas)})
    for name, default in keyword_defaults(batch).items():
        if options[name] != default:
            raise UsageError(
                f"{name} is an option of generated episodes; an instance says itself what they are"
            )
    found = Episodes.of(problem, num_envs)
    found.problem = problem
    return found


EPISODES = CompiledEpisodes(batch=batch, preferences=PREFERENCES)
