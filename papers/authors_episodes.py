"""The very episodes on which the authors of HephaestusForge tested, drawn anew.

Their class seeds a NumPy generator with 42, and no draw depends on what an agent does, so that all
agents of a test met the same clusters and requests. This file draws them in the same order; it has
no code of theirs, which has no licence. How it was checked: with `LOWERED` requests exactly four
requests of episode 1832 (counted from 0) and two of 1838 find no place by any action of the
published rules, and these are the six that DS-PPO (Inequality, LatIneq, CostIneq, Balanced) and
DS-DQN (CostIneq, FavorLat) reject in the published result files.

With the memory requests of the published code, `PRINTED`, 50 requests find no place by C + 2
actions, 37 by C + 4: the result files are of other requests. Which values they had cannot be told;
those of `LOWERED` are among many with the same six.
"""

from __future__ import annotations

import csv
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from placeopt_papers.hephaestus import PublishedEpisodes

from placeopt.multi_cluster.episodes.stream import UNIT
from placeopt.multi_cluster.generator import DEPLOYMENTS, TYPES

#: Deployment -> GiB that differ from those of the published code.
PRINTED: dict[str, float] = {}
LOWERED = {"dispatch-router": 0.5, "ditto-connectivity": 0.5}
SEED, STEPS, HIGHEST_MS = 42, 100, 1000


class Drawn(NamedTuple):
    """Episodes: E of them, C clusters, T requests."""

    matrix: np.ndarray  # (E, C, C) ms
    types: np.ndarray  # (E, C) numbers of `TYPES`
    used: np.ndarray  # (E, C, 2) cores and GiB
    deployments: np.ndarray  # (E, T) numbers of `DEPLOYMENTS`
    replicas: np.ndarray  # (E, T)


@cache
def drawn(episodes: int, clusters: int = 4, replicas: tuple[int, int] = (1, 7)) -> Drawn:
    """Return the first test episodes; `replicas` are the least and greatest number.

    A vector environment resets itself at the end of an episode and the test script resets it
    again: every second set of clusters is thrown away. The first request of an episode was drawn
    before its clusters.
    """
    rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence(SEED)))
    found = Drawn(
        np.zeros((episodes, clusters, clusters)),
        np.zeros((episodes, clusters), np.int64),
        np.zeros((episodes, clusters, 2)),
        np.zeros((episodes, STEPS), np.int64),
        np.zeros((episodes, STEPS), np.int64),
    )
    _draw_clusters(rng, clusters)
    waiting = _draw_request(rng, replicas)
    for e in range(episodes):
        if e:
            _draw_clusters(rng, clusters)
        found.matrix[e], found.types[e], found.used[e] = _draw_clusters(rng, clusters)
        for t in range(STEPS):
            found.deployments[e, t], found.replicas[e, t] = waiting
            waiting = _draw_request(rng, replicas)
    return found


def _draw_clusters(rng: np.random.Generator, clusters: int) -> tuple[Any, Any, Any]:
    matrix = np.zeros((clusters, clusters))
    for a in range(clusters):
        for b in range(clusters):
            if a != b:
                matrix[a, b] = rng.integers(1, HIGHEST_MS)
    types = [int(rng.integers(0, len(TYPES))) for _ in range(clusters)]
    cpu, memory = rng.uniform(0.0, 0.2, clusters), rng.uniform(0.0, 0.2, clusters)
    return matrix, types, np.column_stack((cpu, memory))


def _draw_request(rng: np.random.Generator, replicas: tuple[int, int]) -> tuple[int, int]:
    """Return a deployment and a number of replicas; arrival and duration are drawn and unused."""
    least, greatest = replicas
    rng.exponential()
    rng.exponential()
    kind = int(rng.integers(0, len(DEPLOYMENTS)))
    count = least if least == greatest else int(rng.integers(least, greatest + 1))
    return (kind - 1) % len(DEPLOYMENTS), count


class AuthorsEpisodes(PublishedEpisodes):
    """Batches of the authors' test episodes: `reset` begins those of numbers seeds - `FIRST`."""

    def __init__(
        self,
        num_envs: int,
        episodes: int,
        *,
        memory: dict[str, float],
        clusters: int = 4,
        replicas: tuple[int, int] = (1, 7),
        **choices: Any,
    ):
        super().__init__(num_envs, clusters=clusters, replicas=replicas, **choices)
        self._drawn = drawn(episodes, clusters, replicas)
        self._demand = np.array(
            [(d.cpu_cores, memory.get(d.name, d.memory_gib)) for d in DEPLOYMENTS]
        )
        self._which = np.zeros(num_envs, np.int64)

    def reset(self, seeds: np.ndarray | None = None, which: np.ndarray | None = None) -> None:
        """Begin the episodes of these numbers; without any, those after the running ones."""
        if seeds is None:
            self._which = self._which + self.num_envs
        else:
            self._which = seeds.astype(np.int64)
        super().reset(seeds, which)

    def _write_traces(self, chosen: np.ndarray) -> None:
        number = self._which[chosen] % len(self._drawn.types)
        kind = np.array([(t.cpu_cores, t.memory_gib, t.cost) for t in TYPES])
        types, deployments = self._drawn.types[number], self._drawn.deployments[number]
        threshold = np.array([d.latency_threshold_ms for d in DEPLOYMENTS])
        traces, state = self.traces, self.state
        traces.capacity[chosen] = np.rint(kind[types, :2] / UNIT)
        traces.price[chosen] = kind[types, 2]
        traces.demand[chosen] = np.rint(self._demand[deployments] / UNIT)
        traces.threshold[chosen] = threshold[deployments]
        traces.replicas[chosen] = self._drawn.replicas[number]
        state.matrix[chosen] = self._drawn.matrix[number]
        state.used[chosen] = np.rint(self._drawn.used[number] / UNIT)


def means() -> list[dict[str, str]]:
    """Return the means over the episodes of the authors' result files, one row a file.

    Computed from github.com/jpedro1992/HephaestusForge: figures only, no file is copied.
    """
    with (Path(__file__).parent / "authors_means.csv").open(encoding="utf-8") as file:
        return list(csv.DictReader(file))
