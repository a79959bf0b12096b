"""Many episodes of the multi-cluster problem at once, as arrays.

The rules are compiled; they are in ``models/multi_cluster/README.md``.

The observation of an episode: a row of 31 columns for every action.

0 to 4
    Whether the action is a cluster, FFD, FFI, BF1B1, or the refusal.
5 to 7
    The reward parts that it would earn.
8
    Its reward where it does not place the request.
9, 10
    Free shares of cpu and memory of the clusters that it would use; here and to column 17 means
    over the replicas.
11, 12
    The same afterwards.
13, 14
    Capacities.
15
    Latency.
16, 17
    Share of the load, and load over the mean load.
18
    Share of the clusters that it would use.
19
    Of the request, the same for every action: replicas.
20, 21
    Demand of cpu and memory.
22, 23, 24
    Latency threshold, duration, increase of the latency.
25
    Of the episode: share still to come.
26, 27
    Free shares of cpu and memory.
28, 29, 30
    Gini coefficient, rate of arrivals so far, reward of refusing.
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
from placeopt.core.kernels.common import copy_row
from placeopt.core.kernels.compile import allocating_kernel, kernel
from placeopt.core.numbers import checked_actions
from placeopt.core.parameters import checked
from placeopt.core.problem import keywords
from placeopt.multi_cluster.episodes import outcomes, transition
from placeopt.multi_cluster.episodes import transition as arrivals
from placeopt.multi_cluster.episodes import transition as playback
from placeopt.multi_cluster.episodes.state import (
    ACCEPTED,
    COST,
    CPU,
    EXTRA,
    GINI,
    LAST_GINI,
    LATENCY,
    MAX_MS,
    REFUSAL,
    SPREADS,
    ActionOutcomes,
    EnvironmentState,
    EpisodeData,
    allocate,
)
from placeopt.multi_cluster.generator import (
    BACKGROUND,
    DEPLOYMENTS,
    INCREASE,
    RATE,
    TYPES,
    MeanDuration,
    NumClusters,
    NumReplicas,
    NumRequests,
    Rate,
)
from placeopt.multi_cluster.problem import MultiCluster

# -- observations ----------------------------------------------------------------------------------

#: Columns of a row; from `SHARED` on they are the same for every action.
FEATURES, SHARED = 31, 19


@kernel
def _clip(x):
    return min(max(x, -1.0), 1.0)


@kernel
def _describe_clusters(capacity, used, latency, load, unit, table):
    """Write a line for every cluster into `table` (C, 9).

    Columns 9, 10 and 13 to 17 of a row, then the share of a unit of cpu and of memory.
    """
    clusters, total = len(load), 0
    for c in range(clusters):
        total += load[c]
    for c in range(clusters):
        for r in range(2):
            table[c, r] = (capacity[c, r] - used[c, r]) / capacity[c, r]
            table[c, 7 + r] = 1.0 / capacity[c, r]
        table[c, 2] = _clip(capacity[c, 0] * unit[0] / 8.0)
        table[c, 3] = _clip(capacity[c, 1] * unit[1] / 32.0)
        table[c, 4] = latency[c] / MAX_MS
        table[c, 5] = load[c] / total if total > 0 else 0.0
        table[c, 6] = 0.25 * clusters * table[c, 5]


@kernel
def _add_cluster(row, cluster, weight, replicas, demand, clusters):
    """Add a cluster's line of the table, times its share of the replicas, to a row (31,)."""
    for r in range(2):
        row[9 + r] += weight * cluster[r]
        row[11 + r] += weight * (cluster[r] - replicas * demand[r] * cluster[7 + r])
    for k in range(2, 7):
        row[11 + k] += weight * cluster[k]
    row[18] += 1.0 / clusters


@kernel
def _describe_request(traces, state, outcomes, i, max_replicas, row):
    """Write the columns from `SHARED` on into `row` (31,)."""
    t = state.now[i]
    wanted, capacity, used = traces.replicas[i, t], traces.capacity[i], state.used[i]
    arrival, time_unit = traces.arrival[i, t], traces.unit[2]
    row[19] = wanted / max_replicas
    row[20] = wanted * traces.demand[i, t, 0] * traces.unit[0] / 4.0
    row[21] = wanted * traces.demand[i, t, 1] * traces.unit[1] / 8.0
    row[22] = traces.threshold[i, t] / MAX_MS
    duration = (traces.departure[i, t] - arrival) * time_unit
    row[23] = duration / (1.0 + duration)
    row[24] = traces.increase[i, t] * 5.0
    row[25] = 1.0 - t / traces.replicas.shape[1]
    for r in range(2):
        free, total = 0, 0
        for c in range(len(capacity)):
            free += capacity[c, r] - used[c, r]
            total += capacity[c, r]
        row[26 + r] = free / total
    row[28] = state.sums[i, LAST_GINI]
    rate = (t + 1.0) / max(arrival * time_unit, 1e-9)
    row[29] = rate / (rate + 20.0)
    row[30] = outcomes.refusal[i]
    for k in range(SHARED, FEATURES):
        row[k] = _clip(row[k])


@kernel
def _describe_action(action, accepts, parts, refusal, split, asked, demand, table, row):
    """Write the columns before `SHARED` of one action into `row` (31,)."""
    clusters = len(table)
    row[:SHARED] = 0.0
    row[max(action - clusters + 1, 0)] = 1.0
    if not accepts[action]:
        row[8] = refusal
        return
    copy_row(parts[action], row[5:8])
    if action < clusters:
        _add_cluster(row, table[action], 1.0, asked, demand, clusters)
    else:
        for c in range(clusters):
            here = split[action - clusters, c]
            if here > 0:
                _add_cluster(row, table[c], here / asked, here, demand, clusters)


@allocating_kernel
def write_observations(traces, state, outcomes, which, max_replicas, observations):
    """Refresh `observations` (N, A, 31) of the environments of `which`, in place.

    Rows of illegal actions are 0; so are all rows after the end of an episode.
    """
    clusters = state.load.shape[1]
    row, table = np.zeros(FEATURES), np.zeros((clusters, 9))
    for i in which:
        t, seen = state.now[i], observations[i]
        if t == traces.replicas.shape[1]:
            seen[:] = 0.0
            continue
        _describe_request(traces, state, outcomes, i, max_replicas, row)
        _describe_clusters(
            traces.capacity[i], state.used[i], state.latency[i], state.load[i], traces.unit, table
        )
        accepts, parts, refusal = outcomes.accepts[i], outcomes.parts[i], outcomes.refusal[i]
        split, wanted, demand = outcomes.split[i], traces.replicas[i, t], traces.demand[i, t]
        for a in range(clusters + REFUSAL + 1):
            if outcomes.masks[i, a]:
                _describe_action(a, accepts, parts, refusal, split, wanted, demand, table, row)
                for k in range(FEATURES):
                    seen[a, k] = _clip(row[k])
            else:
                seen[a, :] = 0.0


# -- episodes --------------------------------------------------------------------------------------

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


# -- episodes with observations --------------------------------------------------------------------


class MultiClusterBatch(EpisodeBatch):
    """N environments of C clusters with observations; a `placeopt.core.interfaces.Batch`.

    Actions, parameters and attributes are those of `EpisodeBatch`. The columns of an observation
    are listed in `placeopt.multi_cluster.episodes.stream`.

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
