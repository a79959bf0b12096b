"""Many multi-cluster episodes at once, with what a policy sees of every action."""

from __future__ import annotations

import numpy as np

from placeopt.multi_cluster.observations import FEATURES, write_observations
from placeopt.multi_cluster.simulator.stream import EpisodeBatch


class MultiClusterBatch(EpisodeBatch):
    """N environments of C clusters with observations; a `placeopt.core.interfaces.Batch`.

    Actions, parameters and attributes are those of `EpisodeBatch`. The columns of an observation
    are listed in `placeopt.multi_cluster.observations`.

    Examples
    --------
    >>> batch = MultiClusterBatch(2, clusters=4)
    >>> batch.reset(np.array([1, 2], dtype=np.uint64))
    >>> rewards, ended = batch.step(batch.masks.argmax(axis=1))
    >>> rewards.shape, batch.observations.shape
    ((2, 3), (2, 8, 31))
    """

    num_features = FEATURES
    #: Columns with the one-step reward parts of an action, and its reward if it places nothing.
    score: tuple[int, ...] = (5, 6, 7, 8)

    def _bind(self) -> None:
        super()._bind()
        self.observations = np.zeros((self.num_envs, self.num_actions, FEATURES), dtype=np.float32)

    def _take(self, index: np.ndarray) -> None:
        seen = self.observations[index]
        super()._take(index)
        self.observations = seen

    def _refresh(self, chosen: np.ndarray) -> None:
        super()._refresh(chosen)
        write_observations(
            self.traces, self.state, self.outcomes, chosen, self.replicas[1], self.observations
        )
