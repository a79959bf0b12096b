"""Many episodes of the multi-cluster problem at once, as arrays, without observations.

The rules are compiled; they are in ``models/multi_cluster/README.md``.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from placeopt.core.errors import UsageError
from placeopt.core.fronts.values import Plan
from placeopt.core.interfaces import Batch
from placeopt.core.numbers import checked_actions
from placeopt.core.parameters import checked
from placeopt.core.problem import keywords
from placeopt.multi_cluster.instance import MultiCluster
from placeopt.multi_cluster.options import (
    MeanDuration,
    NumClusters,
    NumReplicas,
    NumRequests,
    Rate,
)
from placeopt.multi_cluster.paper_data import BACKGROUND, DEPLOYMENTS, INCREASE, RATE, TYPES
from placeopt.multi_cluster.simulator import arrivals, outcomes, playback, transition
from placeopt.multi_cluster.simulator.state import (
    ACCEPTED,
    COST,
    CPU,
    EXTRA,
    GINI,
    LAST_GINI,
    LATENCY,
    SPREADS,
    ActionOutcomes,
    EnvironmentState,
    EpisodeData,
    allocate,
)

#: Parts of the reward.
PARTS = ("latency", "cost", "inequality")
#: Drawn amounts are multiples of this many cores or GiB.
UNIT = 1e-9


def _whole(amount: float) -> int:
    return round(amount / UNIT)


class EpisodeBatch(Batch):
    """N episodes of C clusters: a `placeopt.core.interfaces.Batch` without observations.

    Actions 0 to C - 1 place all replicas on one cluster; then the spreads FFD, FFI and BF1B1; then
    the refusal. An action that does not place the request counts as a refusal.

    Parameters
    ----------
    num_envs : int
    clusters : int
    rate : float
        Arrivals per unit of time.
    duration : float
        Mean duration of a request.
    replicas : pair of int
        Least and greatest number of replicas of a request.
    steps : int
        Requests of an episode.

    Attributes
    ----------
    traces, state, outcomes : EpisodeData, EnvironmentState, ActionOutcomes
        The arrays behind the environments, for policies that read them; not to be written.
    masks : ndarray
        Which actions are legal, bool of shape (N, A).
    parts : ndarray
        The reward parts that every action would earn now, float of shape (N, A, 3).
    """

    rewards: tuple[str, ...] = PARTS
    problem: MultiCluster | None = None

    def __init__(
        self,
        num_envs: int = 1,
        *,
        clusters: NumClusters = 4,
        rate: Rate = RATE,
        duration: MeanDuration = 1.0,
        replicas: tuple[NumReplicas, NumReplicas] = (1, 7),
        steps: NumRequests = 100,
    ):
        value = keywords(EpisodeBatch.__init__, locals())
        options = checked(EpisodeBatch.__init__, "multi-cluster episodes", value)
        if num_envs < 1:
            raise UsageError(f"num_envs is {num_envs}; legal: at least 1")
        if options["replicas"][0] > options["replicas"][1]:
            raise UsageError(f"replicas is {replicas}; legal: the least number, then the greatest")
        self.num_envs, self.steps = num_envs, options["steps"]
        self.clusters, self.replicas = options["clusters"], options["replicas"]
        self.rate, self.duration = options["rate"], options["duration"]
        self.num_actions = self.clusters + EXTRA
        costs = [kind.cost for kind in TYPES]
        traces, self.state, self.outcomes = allocate(num_envs, self.clusters, self.steps)
        self.traces = traces._replace(
            unit=np.array([UNIT, UNIT, 1.0]), scale=np.array([min(costs), max(costs)])
        )
        self._bind()

    @classmethod
    def of(cls, problem: MultiCluster, num_envs: int = 1) -> Self:
        """Return running environments that all play the trace of an instance, whatever their seeds.

        A policy sees numbers of replicas as shares of 7, or of the greatest of the trace.
        """
        arrays = problem.arrays
        stream = cls(
            num_envs,
            clusters=len(problem.clusters),
            steps=len(problem.requests),
            replicas=(1, max(int(arrays.replicas.max()), 7)),
        )
        stream.problem = problem
        stream.traces = stream.traces._replace(unit=arrays.unit, scale=arrays.scale)
        stream.reset()
        return stream

    def _bind(self) -> None:
        """Bring what follows from the arrays up to date."""
        self._everyone = np.arange(self.num_envs)
        self.masks, self.parts = self.outcomes.masks, self.outcomes.parts

    # -- the contract ------------------------------------------------------------------------------

    def reset(self, seeds: np.ndarray | None = None, which: np.ndarray | None = None) -> None:
        """Begin new episodes; see `placeopt.core.interfaces.Batch.reset`."""
        chosen = self._everyone if which is None else np.flatnonzero(which)
        if seeds is not None:
            self.state.rng[chosen] = np.asarray(seeds, dtype=np.uint64)[chosen]
        self._write_traces(chosen)
        self._begin(chosen)
        self._refresh(chosen)

    def _begin(self, chosen: np.ndarray) -> None:
        """Stand before the first request of the environments of `chosen`."""
        transition.begin_all(self.traces, self.state, chosen)

    def step(self, actions: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        """Take one action in every environment; see `placeopt.core.interfaces.Batch.step`.

        Environments whose episode is over stand still and earn 0.
        """
        rewards = np.zeros((self.num_envs, len(PARTS)))
        chosen = checked_actions(actions, self.num_envs, self.num_actions)
        transition.step_all(self.traces, self.state, self.outcomes, chosen, rewards)
        self._refresh(self._everyone)
        return rewards, self.ended

    def play(self, wanted: np.ndarray) -> None:
        """Play vectors of actions (N, T) of whole numbers from the first request to the last.

        Where an action would not place its request, that one is taken which does and has the
        highest sum of reward parts; where none does, the request is refused.
        """
        playback.play_all(self.traces, self.state, self.outcomes, wanted, self._everyone)

    def info(self) -> dict[str, np.ndarray]:
        """Return facts of the running episodes.

        Returns
        -------
        dict of ndarray
            ``steps``; ``acceptance``; the means over accepted requests ``latency_ms``, ``cost``,
            ``inequality`` and ``cpu_usage`` in percent; ``gini`` after the last accepted request;
            ``spreads``, the share of accepted requests that were spread. Means are NaN where no
            request is accepted.
        """
        sums, now = self.state.sums, self.state.now
        accepted = np.where(sums[:, ACCEPTED] > 0, sums[:, ACCEPTED], np.nan)
        means = {
            "latency_ms": LATENCY,
            "cost": COST,
            "inequality": GINI,
            "cpu_usage": CPU,
            "spreads": SPREADS,
        }
        return {
            "steps": now.copy(),
            "acceptance": sums[:, ACCEPTED] / np.maximum(now, 1),
            "gini": sums[:, LAST_GINI].copy(),
            **{name: sums[:, column] / accepted for name, column in means.items()},
        }

    # -- beyond the contract -----------------------------------------------------------------------

    @property
    def ended(self) -> np.ndarray:
        """Which episodes are over, bool of shape (N,)."""
        return self.state.now >= self.steps

    def values(self, worst: Sequence[float], refused: int = 0) -> np.ndarray:
        """Return the objectives' values over the requests so far, shape (N, 4); 0 before the first.

        `worst` are the values where no request is accepted; `refused` more requests are counted.
        """
        sums, decided = self.state.sums, self.state.now + refused
        count = sums[:, ACCEPTED, None]
        means = sums[:, LATENCY : LATENCY + 3] / np.maximum(count, 1)
        means = np.where(count > 0, means, np.outer(decided > 0, worst[:3]))
        return np.column_stack((means, (decided - count[:, 0]) / self.steps))

    def placements(self, env: int) -> list[dict[int, int]]:
        """Return the decisions of an environment, requests to come refused.

        Each is the replicas by the number of the cluster: what `MultiCluster.plan` reads.
        """
        return [
            {c: n for c, n in enumerate(placed) if n > 0}
            for placed in self.state.placed[env].tolist()
        ]

    def plan(self, env: int) -> Plan:
        """Return the plan so far; requests that are still to come are refused.

        Raises
        ------
        UsageError
            The episodes are not those of an instance.
        """
        if self.problem is None:
            raise UsageError("generated episodes have no plan; give an instance")
        return self.problem.plan(self.placements(env))

    def divide(self) -> np.ndarray:
        """Put Karmada's division of the requests at hand in the place of FFD, until the next step.

        Karmada divides by weights that are the replicas a cluster could still take
        (``dynamicWeight: AvailableReplicas``).

        Returns
        -------
        ndarray, shape (N,)
            The action that divides: FFD's, or that of the cluster that gets all replicas; the
            refusal where the clusters together have too little room.
        """
        actions = np.zeros(self.num_envs, dtype=np.int64)
        outcomes.divide_all(self.traces, self.state, self.outcomes, actions)
        return actions

    def fork(self, index: Sequence[int] | np.ndarray) -> Self:
        """Return copies of the environments of `index`, which go on independently.

        An environment may be copied more than once.
        """
        twin = copy.copy(self)
        twin._take(np.asarray(index, dtype=np.int64))
        return twin

    def silent(self, index: Sequence[int] | np.ndarray) -> EpisodeBatch:
        """Return copies as `fork` does, without observations."""
        twin = EpisodeBatch.__new__(EpisodeBatch)
        twin.__dict__.update(self.__dict__)
        twin._take(np.asarray(index, dtype=np.int64))
        return twin

    def _take(self, index: np.ndarray) -> None:
        """Replace the arrays by copies of the environments of `index`."""
        self.num_envs = len(index)
        unit, scale, *value = self.traces
        self.traces = EpisodeData(unit, scale, *(array[index] for array in value))
        self.state = EnvironmentState(*(array[index] for array in self.state))
        self.outcomes = ActionOutcomes(*(array[index] for array in self.outcomes))
        self._bind()

    def _write_traces(self, chosen: np.ndarray) -> None:
        """Draw the traces of the environments of `chosen`, or copy that of the instance."""
        if self.problem is None:
            types = np.array([(_whole(t.cpu_cores), _whole(t.memory_gib), t.cost) for t in TYPES])
            deployments = np.array(
                [
                    (_whole(d.cpu_cores), _whole(d.memory_gib), d.latency_threshold_ms)
                    for d in DEPLOYMENTS
                ]
            )
            flow = np.array([self.rate, self.duration, INCREASE])
            drawn = types, _whole(BACKGROUND), deployments, flow, self.replicas
            arrivals.draw_all(self.traces, self.state, chosen, *drawn)
            return
        arrays = self.problem.arrays._asdict()
        for record in (self.traces._asdict(), self.state._asdict()):
            for name in (record.keys() & arrays.keys()) - {"unit", "scale"}:
                record[name][chosen] = arrays[name]

    def _refresh(self, chosen: np.ndarray) -> None:
        """Bring what every action leads to, and the masks, up to date."""
        outcomes.refresh_all(self.traces, self.state, self.outcomes, chosen)
