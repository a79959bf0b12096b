"""Many episodes of one problem at once, compiled: what the vector environments and the training of policies run on.

An environment's random numbers come from a state of its own, so that an episode depends on its seed alone: not on how many
environments run beside it, nor on what they do.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np


class Batch(Protocol):
    """N environments of one problem that step together.

    The arrays `observations` and `masks` are refreshed in place by `reset` and `step`; copy them to keep them.

    Attributes
    ----------
    num_envs : int
        N.
    num_actions : int
        A; actions are 0 to ``num_actions - 1``.
    num_features : int
        F, columns of an observation.
    rewards : tuple of str
        Names of the K parts of a reward; all are to be maximised. The scalar reward is the product of the parts with weights
        that sum to 1, so that a penalty is given as itself in every part.
    observations : ndarray
        What is known of every action, float32 of shape (N, A, F), scaled to about [-1, 1].
    masks : ndarray
        Which actions are legal, bool of shape (N, A).
    """

    num_envs: int
    num_actions: int
    num_features: int
    rewards: tuple[str, ...]
    observations: np.ndarray
    masks: np.ndarray

    def reset(self, seeds: np.ndarray | None = None, which: np.ndarray | None = None) -> None:
        """Begin new episodes.

        Parameters
        ----------
        seeds : ndarray, optional
            uint64 of shape (N,); environments go on from their own random states where none are given.
        which : ndarray, optional
            Environments that begin anew, bool of shape (N,); all by default.
        """

    def step(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Take one action in every environment.

        Parameters
        ----------
        actions : ndarray
            int64 of shape (N,).

        Returns
        -------
        rewards : ndarray
            float64 of shape (N, K).
        ended : ndarray
            Whether the episode is over, bool of shape (N,); such an environment has to be reset before its next step.
        """
        raise NotImplementedError

    def info(self) -> dict[str, np.ndarray]:
        """Return facts of the running episodes, such as the share of requests accepted so far; arrays of length N."""
        raise NotImplementedError
