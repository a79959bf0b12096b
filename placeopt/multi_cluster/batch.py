"""Many multi-cluster episodes at once, with what a policy sees of every action."""

from __future__ import annotations

import numpy as np

from placeopt.multi_cluster.observations import FEATURES, write_observations
from placeopt.multi_cluster.simulator.state import EXTRA
from placeopt.multi_cluster.simulator.stream import Stream

#: Columns with the one-step reward parts of an action, and with its reward if it places nothing.
SCORE = (5, 6, 7, 8)


class MultiClusterBatch(Stream):
    """N environments of C clusters with observations; a `placeopt.core.interfaces.Batch`.

    Actions, parameters and attributes are those of `Stream`. The columns of an observation are
    listed in `placeopt.multi_cluster.observations`; with `acceptance` one more follows, the share
    of the replicas that the action would place.

    Examples
    --------
    >>> batch = MultiClusterBatch(2, clusters=4)
    >>> batch.reset(np.array([1, 2], dtype=np.uint64))
    >>> rewards, ended = batch.step(batch.masks.argmax(axis=1))
    >>> rewards.shape, batch.observations.shape
    ((2, 3), (2, 8, 31))
    """

    num_features = FEATURES
    #: The one-step reward parts of an action, and its reward if it places nothing.
    score: tuple[int, ...] = SCORE

    def _bind(self) -> None:
        super()._bind()
        self._rows = np.zeros((self.num_envs, self.clusters + EXTRA, FEATURES), dtype=np.float32)
        if self.acceptance:
            self.num_features, self.score = FEATURES + 1, (*SCORE[:3], FEATURES, SCORE[3])
        self._observe()

    def _observe(self) -> None:
        """Bring `observations` up to date with the rows of the C + 4 actions."""
        self.observations = self._rows
        if self.num_actions < self.clusters + EXTRA:
            self.observations = self._rows[:, self._actions]
        if self.acceptance:
            placed = (self.parts[:, :, -1:] * self.masks[:, :, None]).astype(np.float32)
            self.observations = np.concatenate((self.observations, placed), axis=2)

    def _take(self, index: np.ndarray) -> None:
        rows = self._rows[index]
        super()._take(index)
        self._rows = rows
        self._observe()

    def _refresh(self, chosen: np.ndarray) -> None:
        super()._refresh(chosen)
        write_observations(
            self.traces, self.state, self.outcomes, chosen, self.replicas[1], self._rows
        )
        self._observe()
