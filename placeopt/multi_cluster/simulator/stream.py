"""Many episodes of the multi-cluster problem at once, as arrays, without observations.

The rules are compiled; they are in ``models/multi_cluster/README.md``.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from placeopt.core.errors import UsageError
from placeopt.core.fronts.values import Plan
from placeopt.core.interfaces import Batch
from placeopt.core.outside import checked_actions
from placeopt.core.parameters import checked
from placeopt.core.problem import keywords
from placeopt.multi_cluster.instance import MultiCluster
from placeopt.multi_cluster.options import (
    Accept,
    FirstSpread,
    MeanDuration,
    NumClusters,
    NumReplicas,
    NumRequests,
    NumSpreads,
    Rate,
)
from placeopt.multi_cluster.paper_data import (
    BACKGROUND,
    DEPLOYMENTS,
    INCREASE,
    RATES,
    TYPES,
    Semantics,
)
from placeopt.multi_cluster.simulator import (
    arrivals,
    outcomes,
    playback,
    published_rules,
    transition,
)
from placeopt.multi_cluster.simulator.state import (
    ACCEPTED,
    COST,
    CPU,
    EXTRA,
    FFD,
    GINI,
    LAST_GINI,
    LATENCY,
    REFUSAL,
    SPREADS,
    ActionOutcomes,
    EnvironmentState,
    EpisodeData,
    allocate,
)

#: Parts of the reward, and the further one that can be asked for.
PARTS, ACCEPTANCE = ("latency", "cost", "inequality"), "acceptance"
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
    semantics : {"fixed", "published"}
    rate : float, optional
        Arrivals per unit of time; by default 20 with the fixed rules and 100 with the published.
    duration : float
        Mean duration of a request.
    replicas : pair of int
        Least and greatest number of replicas of a request.
    steps : int
        Requests of an episode.
    spreads : int
        How many of FFD, FFI and BF1B1, in this order, are among the actions.
    first_spread : {"ffd", "printed", "divide"}
        What stands in the place of FFD: FFD by the rules; as the paper prints it, repeated until
        nothing is left (the fixed rules do that anyway); Karmada's division, see `divide`.
    accept : {"free", "first", "whole"}
        When a refusal is legal: always; only where no other action places the request; or, beyond
        that, a published spread that leaves replicas out only where no action places all.
    acceptance : bool
        Whether ``acceptance`` is a fourth part of the reward: the share of the request's replicas
        that are placed.
    masked : bool
        Whether masks tell which actions are legal. If not, they allow all, and learners find out.

    Attributes
    ----------
    traces, state, outcomes : EpisodeData, EnvironmentState, ActionOutcomes
        The arrays behind the environments, for policies that read them; not to be written.
    masks : ndarray
        Which actions are legal, bool of shape (N, A).
    parts : ndarray
        The reward parts that every action would earn now, float of shape (N, A, K).
    """

    rewards: tuple[str, ...] = PARTS
    problem: MultiCluster | None = None

    def __init__(
        self,
        num_envs: int = 1,
        *,
        clusters: NumClusters = 4,
        semantics: Semantics = "fixed",
        rate: Rate = None,
        duration: MeanDuration = 1.0,
        replicas: tuple[NumReplicas, NumReplicas] = (1, 7),
        steps: NumRequests = 100,
        spreads: NumSpreads = 3,
        first_spread: FirstSpread = "ffd",
        accept: Accept = "free",
        acceptance: bool = False,
        masked: bool = True,
    ):
        value = keywords(EpisodeBatch.__init__, locals())
        options = checked(EpisodeBatch.__init__, "multi-cluster episodes", value)
        if num_envs < 1:
            raise UsageError(f"num_envs is {num_envs}; legal: at least 1")
        if options["replicas"][0] > options["replicas"][1]:
            raise UsageError(f"replicas is {replicas}; legal: the least number, then the greatest")
        self.num_envs, self.steps = num_envs, options["steps"]
        self.clusters, self.semantics = options["clusters"], options["semantics"]
        self.rate = options["rate"] or RATES[self.semantics]
        self.duration, self.replicas = options["duration"], options["replicas"]
        self.first_spread = options["first_spread"]
        self.accept, self.acceptance = options["accept"], options["acceptance"]
        self.masked = options["masked"]
        if self.accept != "free" and not self.masked:
            raise UsageError(
                f"accept is {self.accept} and masked is false; legal: accept=free, as only masks "
                "can rule refusals out"
            )
        self.rewards = (*PARTS, ACCEPTANCE) if self.acceptance else PARTS
        self.num_actions = self.clusters + options["spreads"] + 1
        self.published = self.semantics == "published"
        self._drawn_replicas = self.replicas
        costs = [kind.cost for kind in TYPES]
        traces, self.state, self.outcomes = allocate(num_envs, self.clusters, self.steps)
        self.traces = traces._replace(
            unit=np.array([UNIT, UNIT, 1.0]), scale=np.array([min(costs), max(costs)])
        )
        self._bind()

    @classmethod
    def of(cls, problem: MultiCluster, num_envs: int = 1, **choices: Any) -> Self:
        """Return running environments that all play the trace of an instance, whatever their seeds.

        `choices` are `spreads`, `first_spread`, `accept`, `acceptance` and `masked`. `redraw` draws
        by the trace's own rate, mean duration, deployments and replicas.
        """
        arrays, steps = problem.arrays, len(problem.requests)
        unit, last = arrays.unit[2], float(arrays.arrival[-1])
        max_replicas = int(arrays.replicas.max())
        stream = cls(
            num_envs,
            clusters=len(problem.clusters),
            semantics=problem.semantics,
            rate=steps / max(last * unit, 1e-9),
            duration=max(float((arrays.departure - arrays.arrival).mean()) * unit, 1e-9),
            steps=steps,
            replicas=(1, max(max_replicas, 7)),
            **choices,
        )
        stream.problem = problem
        stream._drawn_replicas = int(arrays.replicas.min()), max_replicas
        stream.traces = stream.traces._replace(unit=arrays.unit, scale=arrays.scale)
        stream.reset()
        return stream

    def _bind(self) -> None:
        """Bring what follows from the arrays up to date."""
        self._everyone = np.arange(self.num_envs)
        #: Of an action, its number among the C + 4 of the kernels.
        self._actions = np.append(np.arange(self.num_actions - 1), self.clusters + REFUSAL)
        self._show()

    def _show(self) -> None:
        """Bring `masks` and `parts` up to date with the outcomes."""
        self.masks, self.parts = self.outcomes.masks, self.outcomes.parts
        if self.acceptance:
            self.parts = np.concatenate((self.parts, self.placed_shares()[:, :, None]), axis=2)
        if self.num_actions < self.clusters + EXTRA:
            self.masks = self.masks[:, self._actions]
            self.parts = self.parts[:, self._actions]
        if not self.masked:
            self.masks = np.ones_like(self.masks)

    def placed_shares(self) -> np.ndarray:
        """Return the share of the replicas at hand that every action would place, (N, C + 4)."""
        wanted = self.traces.replicas[self._everyone, np.minimum(self.state.now, self.steps - 1)]
        shares = self.outcomes.accepts.astype(float)
        shares[:, -1] = 0.0
        spread = slice(self.clusters, self.clusters + REFUSAL)
        shares[:, spread] *= self.outcomes.split.sum(axis=2) / np.maximum(wanted, 1)[:, None]
        return shares

    @property
    def _rules(self) -> Any:
        """The module with `begin_all` and `step_all`."""
        return published_rules if self.published else transition

    # -- the contract ------------------------------------------------------------------------------

    def reset(self, seeds: np.ndarray | None = None, which: np.ndarray | None = None) -> None:
        """Begin new episodes; see `placeopt.core.interfaces.Batch.reset`."""
        chosen = self._everyone if which is None else np.flatnonzero(which)
        if seeds is not None:
            self.state.rng[chosen] = np.asarray(seeds, dtype=np.uint64)[chosen]
        self._write_traces(chosen)
        self._rules.begin_all(self.traces, self.state, chosen)
        self._refresh(chosen)

    def step(self, actions: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        """Take one action in every environment; see `placeopt.core.interfaces.Batch.step`.

        Environments whose episode is over stand still and earn 0.
        """
        rewards = np.zeros((self.num_envs, len(PARTS)))
        chosen = self._actions[checked_actions(actions, self.num_envs, self.num_actions)]
        if self.acceptance:
            placed = self.placed_shares()[self._everyone, chosen] * ~self.ended
        self._rules.step_all(self.traces, self.state, self.outcomes, chosen, rewards)
        self._refresh(self._everyone)
        return (np.column_stack((rewards, placed)) if self.acceptance else rewards), self.ended

    def play(self, wanted: np.ndarray) -> None:
        """Play vectors of actions (N, T) of whole numbers from the first request to the last.

        Where an action would not place its request, that one is taken which does and has the
        highest sum of reward parts; where none does, the request is refused.
        """
        if not self.published and self.first_spread != "divide":
            playback.play_all(self.traces, self.state, self.outcomes, wanted, self._everyone)
            return
        refusal, accepts = self.num_actions - 1, self.outcomes.accepts
        for genes in wanted.T:
            reward = np.where(accepts, self.parts.sum(axis=2), -np.inf)
            reward[:, -1] = -1e9  # the refusal, where nothing places the request
            legal = accepts[self._everyone, genes] | (genes == refusal)
            self.step(np.where(legal, genes, reward.argmax(axis=1)))

    def info(self) -> dict[str, np.ndarray]:
        """Return facts of the running episodes.

        Returns
        -------
        dict of ndarray
            ``steps``; ``acceptance``; the means over accepted requests ``latency_ms``, ``cost``,
            ``inequality`` and ``cpu_usage`` in percent; ``gini`` after the last accepted request;
            ``spreads``, the share of accepted requests that were spread. Means are NaN where no
            request is accepted. ``whole``, the share of requests whose replicas are all placed,
            and ``replicas``, the share of their replicas that are: below ``acceptance`` where
            published spreads leave replicas out.
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
        placed = self.state.placed.sum(axis=2)
        wanted = self.traces.replicas * (np.arange(self.steps) < now[:, None])
        return {
            "steps": now.copy(),
            "acceptance": sums[:, ACCEPTED] / np.maximum(now, 1),
            "whole": ((placed == wanted) & (wanted > 0)).sum(axis=1) / np.maximum(now, 1),
            "replicas": placed.sum(axis=1) / np.maximum(wanted.sum(axis=1), 1),
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

        Each is the replicas by the number of the cluster: what `MultiCluster.plan` reads. A
        published spread names every cluster, since it may place all replicas on one, or none; a
        decision for one cluster names it.
        """
        results: list[dict[int, int]] = []
        for action, placed in zip(
            self.state.action[env].tolist(), self.state.placed[env].tolist(), strict=True
        ):
            spread = self.published and action >= self.clusters
            results.append({c: n for c, n in enumerate(placed) if n > 0 or spread})
        return results

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
        divide_all = (published_rules if self.published else outcomes).divide_all
        actions = np.zeros(self.num_envs, dtype=np.int64)
        divide_all(self.traces, self.state, self.outcomes, actions)
        return np.where(actions == self.clusters + REFUSAL, self.num_actions - 1, actions)

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

    def redraw(self, seeds: np.ndarray) -> None:
        """Draw anew every request after the one at hand, in place.

        A planner that does not know the future does this in its forks.
        """
        self.state.rng[:] = np.asarray(seeds, dtype=np.uint64)
        arrivals.draw_futures(self.traces, self.state, *self._flow())

    def _flow(self) -> tuple[Any, ...]:
        """Return the deployments, flow and replicas of `arrivals.draw_all`."""
        unit = self.traces.unit
        if self.problem is None:
            deployments = np.array(
                [
                    (_whole(d.cpu_cores), _whole(d.memory_gib), d.latency_threshold_ms)
                    for d in DEPLOYMENTS
                ]
            )
            max_increase = INCREASE
        else:
            value = self.problem.arrays
            result = np.column_stack((value.demand, value.threshold))
            deployments, max_increase = np.unique(result, axis=0), float(value.increase.max())
        flow = np.array([self.rate * unit[2], self.duration / unit[2], max_increase])
        return deployments, flow, self._drawn_replicas

    def _write_traces(self, chosen: np.ndarray) -> None:
        """Draw the traces of the environments of `chosen`, or copy that of the instance."""
        if self.problem is None:
            types = np.array([(_whole(t.cpu_cores), _whole(t.memory_gib), t.cost) for t in TYPES])
            background, flow = _whole(BACKGROUND), self._flow()
            arrivals.draw_all(self.traces, self.state, chosen, types, background, *flow)
            return
        arrays = self.problem.arrays._asdict()
        for record in (self.traces._asdict(), self.state._asdict()):
            for name in (record.keys() & arrays.keys()) - {"unit", "scale"}:
                record[name][chosen] = arrays[name]

    def _refresh(self, chosen: np.ndarray) -> None:
        """Bring what every action leads to, and the masks, up to date."""
        refresh_all = (published_rules if self.published else outcomes).refresh_all
        refresh_all(self.traces, self.state, self.outcomes, chosen)
        self._replace_first_spread()
        if self.accept != "free" or self.num_actions < self.clusters + EXTRA:
            self._restrict(chosen)
        self._show()

    def _replace_first_spread(self) -> None:
        """Put what `first_spread` says in the place of FFD."""
        if self.first_spread == "divide":
            replace = (published_rules if self.published else outcomes).divide_all
        elif self.first_spread == "printed" and self.published:
            replace = published_rules.repeat_all
        else:
            return
        accepts, first = self.outcomes.accepts, self.clusters + FFD
        replace(self.traces, self.state, self.outcomes, np.zeros(self.num_envs, dtype=np.int64))
        accepts[self.ended, first] = False
        if not self.published:
            self.outcomes.masks[:, first] = accepts[:, first]

    def _restrict(self, chosen: np.ndarray) -> None:
        """Take out of the masks, in place, the spreads left out and what `accept` rules out."""
        kept = np.isin(np.arange(self.clusters + EXTRA), self._actions)
        masks = self.outcomes.masks[chosen] & kept
        if self.accept != "free":
            placed = self.placed_shares()[chosen]
            masks = _narrowed(masks, placed > 0.0)
            if self.accept == "whole":
                masks = _narrowed(masks, placed == 1.0)
        self.outcomes.masks[chosen] = masks


def _narrowed(masks: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Return the masks (N, A), of those wanted alone in rows that have any."""
    wanted = wanted & masks
    return np.where(wanted.any(axis=1, keepdims=True), wanted, masks)
