"""Many multi-cluster episodes at once, with what a policy sees of every action."""

from __future__ import annotations

from typing import Any

import numpy as np

from placeopt.core.errors import require_known
from placeopt.multi_cluster.observations import FEATURES, write_observations
from placeopt.multi_cluster.paper_observation import PAPER_FEATURES, paper_rows
from placeopt.multi_cluster.simulator.state import EXTRA
from placeopt.multi_cluster.simulator.stream import EpisodeBatch

#: Columns with the one-step reward parts of an action, and with its reward if it places nothing.
SCORE = (5, 6, 7, 8)
#: What a row of an observation may be.
OBSERVATIONS = ("actions", "paper")


class MultiClusterBatch(EpisodeBatch):
    """N environments of C clusters with observations; a `placeopt.core.interfaces.Batch`.

    Actions, parameters and attributes are those of `EpisodeBatch`. The columns of an observation
    are listed in `placeopt.multi_cluster.observations`; with `acceptance` one more follows, the
    share of the replicas that the action would place, less column 8.

    Parameters
    ----------
    observation : {"actions", "paper"}
        What a row says of its action: all that it leads to, rewards too; or the ten columns of the
        HephaestusForge paper.

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

    def __init__(self, num_envs: int = 1, *, observation: str = "actions", **options: Any):
        require_known("observation", observation, OBSERVATIONS)
        self.observation = observation
        super().__init__(num_envs, **options)

    def _bind(self) -> None:
        super()._bind()
        self._rows = np.zeros((self.num_envs, self.clusters + EXTRA, FEATURES), dtype=np.float32)
        if self.observation == "paper":
            self.num_features, self.score = PAPER_FEATURES, ()
        elif self.acceptance:
            self.num_features, self.score = FEATURES + 1, (*SCORE[:3], FEATURES, SCORE[3])
        self._observe()

    def _observe(self) -> None:
        """Bring `observations` up to date with the rows of the C + 4 actions, or the state."""
        if self.observation == "paper":
            sizes = self.num_actions, self.replicas[1], self.rate
            self.observations = paper_rows(self.traces, self.state, *sizes)
            return
        self.observations = self._rows
        if self.num_actions < self.clusters + EXTRA:
            self.observations = self._rows[:, self._actions]
        if self.acceptance:
            # The last column of `score` counts in every part; refusing earns no acceptance.
            placed = self.parts[:, :, -1:] - self.observations[:, :, SCORE[3] : SCORE[3] + 1]
            column = (placed * self.masks[:, :, None]).astype(np.float32)
            self.observations = np.concatenate((self.observations, column), axis=2)

    def _take(self, index: np.ndarray) -> None:
        rows = self._rows[index]
        super()._take(index)
        self._rows = rows
        self._observe()

    def _refresh(self, chosen: np.ndarray) -> None:
        super()._refresh(chosen)
        if self.observation == "actions":
            write_observations(
                self.traces, self.state, self.outcomes, chosen, self.replicas[1], self._rows
            )
        self._observe()
