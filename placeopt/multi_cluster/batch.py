"""Many multi-cluster episodes at once, with what a policy sees of every action."""

from __future__ import annotations

import numpy as np

from placeopt.multi_cluster import observations as rows
from placeopt.multi_cluster.simulator.stream import Stream


class MultiCluster(Stream):
    """N environments of C clusters with observations; a `placeopt.core.interfaces.Batch`.

    Actions 0 to C - 1 place all replicas on one cluster; then the spreads FFD, FFI and BF1B1; then the refusal. An action that does
    not place the request counts as a refusal.

    Columns of an observation: 0 to 4, whether the row is of a cluster, of FFD, FFI, BF1B1, or of the refusal; 5 to 7, the reward
    parts that the action would earn; 8, its reward where it does not place the request. Of the clusters it would use, averaged over
    replicas: 9, 10 free shares of cpu and memory, 11, 12 the same afterwards, 13, 14 capacities, 15 latency, 16 share of the load,
    17 load over the mean load; 18 share of the clusters it would use. Of the request, the same in every row: 19 replicas, 20, 21
    demand of cpu and memory, 22 latency threshold, 23 duration, 24 increase of the latency. Of the episode: 25 share still to come,
    26, 27 free shares of cpu and memory, 28 Gini coefficient, 29 rate of arrivals so far, 30 reward of refusing.

    Parameters and attributes are those of `placeopt.multi_cluster.simulator.stream.Stream`.

    Examples
    --------
    >>> batch = MultiCluster(2, clusters=4)
    >>> batch.reset(np.array([1, 2], dtype=np.uint64))
    >>> rewards, ended = batch.step(batch.masks.argmax(axis=1))
    >>> rewards.shape
    (2, 3)
    """

    num_features = rows.FEATURES
    observations: np.ndarray

    def _finish(self) -> None:
        super()._finish()
        self.observations = np.zeros(
            (self.num_envs, self.num_actions, self.num_features), dtype=np.float32
        )

    def _copy_to(self, twin: Stream, index: np.ndarray) -> None:
        super()._copy_to(twin, index)
        twin.observations[:] = self.observations[index]  # type: ignore[attr-defined]

    def _look(self, chosen: np.ndarray) -> None:
        super()._look(chosen)
        rows.show_all(
            self._world, chosen, self.replicas[1], self.published, self.masks, self.observations
        )
