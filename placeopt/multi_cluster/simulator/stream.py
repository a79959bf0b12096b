"""Many episodes of the multi-cluster problem at once, as arrays; the rules are compiled, see ``models/multi_cluster/README.md``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from placeopt.core.errors import UsageError, did_you_mean
from placeopt.core.interfaces import Batch
from placeopt.multi_cluster.instance import Arrays, MultiCluster
from placeopt.multi_cluster.paper_data import (
    BACKGROUND,
    DEPLOYMENTS,
    INCREASE,
    RATES,
    SEMANTICS,
    TYPES,
)
from placeopt.multi_cluster.simulator import arrivals as draw
from placeopt.multi_cluster.simulator import outcomes as looks
from placeopt.multi_cluster.simulator import transition as moves
from placeopt.multi_cluster.simulator.state import (
    ACCEPTED,
    COST,
    CPU,
    EXTRA,
    GINI,
    LAST_GINI,
    LATENCY,
    SPREADS,
    SUMS,
    World,
)

#: Drawn amounts are multiples of this many cores or GiB.
UNIT = 1e-9


class Stream(Batch):
    """N episodes of C clusters: a `placeopt.core.interfaces.Batch` without observations.

    Actions 0 to C - 1 place all replicas on one cluster; then the spreads FFD, FFI and BF1B1; then the refusal. An action that does
    not place the request counts as a refusal.

    Parameters
    ----------
    num_envs : int
    clusters : int
    semantics : {"fixed", "published"}
    rate : float, optional
        Arrivals per unit of time; 20 in the fixed semantics and 100 in the published by default.
    duration : float
        Mean duration of a request.
    replicas : pair of int
        Fewest and most replicas of a request.
    steps : int
        Requests of an episode.

    Attributes
    ----------
    masks : ndarray
        Which actions are legal, bool of shape (N, A).
    outcome : ndarray
        Latency in ms, cost and Gini coefficient after every action that places the request, float of shape (N, A, 3).
    parts : ndarray
        The reward parts that every action would earn now, float of shape (N, A, 3).
    """

    rewards: tuple[str, ...] = ("latency", "cost", "inequality")

    def __init__(
        self,
        num_envs: int = 1,
        *,
        clusters: int = 4,
        semantics: str = "fixed",
        rate: float | None = None,
        duration: float = 1.0,
        replicas: tuple[int, int] = (1, 7),
        steps: int = 100,
    ):
        if semantics not in SEMANTICS:
            raise UsageError(
                f"semantics is {semantics!r}; {did_you_mean(str(semantics), SEMANTICS)}"
            )
        rate = RATES[semantics] if rate is None else rate
        fewest, most = replicas
        for name, value, legal, words in (
            ("num_envs", num_envs, num_envs >= 1, "a whole number of at least 1"),
            ("clusters", clusters, clusters >= 2, "a whole number of at least 2"),
            ("rate", rate, 0 < rate < np.inf, "a number above 0"),
            ("duration", duration, 0 < duration < np.inf, "a number above 0"),
            (
                "replicas",
                replicas,
                1 <= fewest <= most <= 10**6,
                "the fewest, at least 1, and the most",
            ),
            ("steps", steps, steps >= 1, "a whole number of at least 1"),
        ):
            if not legal:
                raise UsageError(f"{name} is {value!r}; legal: {words}")
        self.num_envs, self.clusters, self.semantics, self.steps = (
            int(num_envs),
            int(clusters),
            semantics,
            int(steps),
        )
        self.rate, self.duration, self.replicas = (
            float(rate),
            float(duration),
            (int(fewest), int(most)),
        )
        self.num_actions = self.clusters + EXTRA
        self.published = semantics == "published"
        scale = np.array([min(t.cost for t in TYPES), max(t.cost for t in TYPES)], dtype=float)
        self._world = empty_world(
            self.num_envs, self.clusters, self.steps, np.array([UNIT, UNIT, 1.0]), scale
        )
        self._trace: Arrays | None = None
        self._asked = self.replicas
        self._finish()

    @classmethod
    def of(cls, problem: MultiCluster, num_envs: int = 1) -> Self:
        """Return environments that all live through the trace of an instance; seeds make no difference to them.

        `redraw` draws from the trace's own rate, mean duration, deployments and numbers of replicas.
        """
        t, steps = problem.arrays, len(problem.requests)
        fewest, most = int(t.replicas.min()), int(t.replicas.max())
        rate = steps / max(float(t.arrival[-1]) * t.unit[2], 1e-9)
        duration = max(float((t.departure - t.arrival).mean()) * t.unit[2], 1e-9)
        stream = cls(
            num_envs,
            clusters=len(problem.clusters),
            semantics=problem.semantics,
            rate=rate,
            duration=duration,
            steps=steps,
            replicas=(1, max(most, 7)),
        )
        stream._trace, stream._asked = t, (fewest, most)
        stream._world = stream._world._replace(unit=t.unit, scale=t.scale)
        return stream

    def _finish(self) -> None:
        n = self.num_envs
        self.outcome, self.parts = self._world.outcome, self._world.parts
        self.masks = np.zeros((n, self.num_actions), dtype=np.bool_)
        self._rewards = np.zeros((n, 3))
        self._everyone = np.arange(n)

    # -- the contract ----------------------------------------------------------------------------------------------

    def reset(self, seeds: np.ndarray | None = None, which: np.ndarray | None = None) -> None:
        """Begin new episodes; see `placeopt.core.interfaces.Batch.reset`."""
        chosen = self._everyone if which is None else np.flatnonzero(which)
        if seeds is not None:
            self._world.rng[chosen] = np.asarray(seeds, dtype=np.uint64)[chosen]
        self._draw(chosen)
        moves.begin_all(self._world, chosen, self.published)
        self._look(chosen)

    def step(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Take one action in every environment; see `placeopt.core.interfaces.Batch.step`.

        Environments whose episode is over stand still and earn 0.
        """
        actions = np.asarray(actions, dtype=np.int64)
        if (
            actions.shape != (self.num_envs,)
            or actions.min() < 0
            or actions.max() >= self.num_actions
        ):
            raise UsageError(
                f"actions: give {self.num_envs} whole numbers of 0 to {self.num_actions - 1}"
            )
        moves.step_all(self._world, actions, self._rewards, self.published)
        self._look(self._everyone)
        return self._rewards.copy(), self._world.now >= self.steps

    def info(self) -> dict[str, np.ndarray]:
        """Return facts of the running episodes; means are over accepted requests, NaN where there are none.

        Returns
        -------
        dict of ndarray
            ``steps``; ``acceptance``; ``latency_ms``, ``cost``, ``inequality``, ``cpu_usage`` in percent: means; ``gini`` after the
            last accepted request; ``spreads``: the share of accepted requests that were spread.
        """
        sums, now = self._world.sums, self._world.now
        accepted = np.where(sums[:, ACCEPTED] > 0, sums[:, ACCEPTED], np.nan)
        return {
            "steps": now.copy(),
            "acceptance": sums[:, ACCEPTED] / np.maximum(now, 1),
            "latency_ms": sums[:, LATENCY] / accepted,
            "cost": sums[:, COST] / accepted,
            "inequality": sums[:, GINI] / accepted,
            "gini": sums[:, LAST_GINI].copy(),
            "cpu_usage": sums[:, CPU] / accepted,
            "spreads": sums[:, SPREADS] / accepted,
        }

    # -- beyond the contract ---------------------------------------------------------------------------------------

    @property
    def world(self) -> World:
        """The arrays behind the environments, for policies that look at clusters; not to be written."""
        return self._world

    @property
    def decisions(self) -> np.ndarray:
        """Replicas per cluster of every request so far, int64 of shape (N, steps, C)."""
        return self._world.placed

    def placements(self, env: int) -> list[dict[int, int]]:
        """Return the decisions of an environment so far as replicas by the number of the cluster: what `MultiCluster.plan` reads.

        A published spread names every cluster, since it may place all replicas on one, or none; a decision for one cluster names it.
        """
        found: list[dict[int, int]] = []
        for t in range(int(self._world.now[env])):
            action, row = int(self._world.action[env, t]), self._world.placed[env, t].tolist()
            spread = self.published and action >= self.clusters
            found.append(
                {c: n for c, n in enumerate(row) if n > 0 or spread} if action >= 0 else {}
            )
        return found

    def fork(self, index: Sequence[int] | np.ndarray) -> Self:
        """Return copies of the environments of `index`, which go on independently; repeats are fine."""
        index = np.asarray(index, dtype=np.int64)
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        self._copy_to(twin, index)
        return twin

    def silent(self, index: Sequence[int] | np.ndarray) -> Stream:
        """Return copies as `fork` does, without observations."""
        index = np.asarray(index, dtype=np.int64)
        twin = Stream.__new__(Stream)
        twin.__dict__.update(
            {name: value for name, value in self.__dict__.items() if name != "observations"}
        )
        Stream._copy_to(self, twin, index)
        return twin

    def _copy_to(self, twin: Stream, index: np.ndarray) -> None:
        shared = ("unit", "scale")
        twin._world = World(
            **{k: v if k in shared else v[index] for k, v in self._world._asdict().items()}
        )
        twin.num_envs = len(index)
        twin._finish()
        twin.masks[:] = self.masks[index]

    def redraw(self, seeds: np.ndarray) -> None:
        """Draw anew every request after the one at hand: what a planner that does not know the future has to do in a fork."""
        self._world.rng[:] = np.asarray(seeds, dtype=np.uint64)
        draw.draw_futures(self._world, *self._flow())

    def _flow(self) -> tuple[Any, ...]:
        """Return what requests are drawn from: deployments, rate, mean duration and largest increase, in units of the arrays; replicas."""
        unit = self._world.unit
        if self._trace is None:
            kinds = np.array(
                [
                    (
                        round(d.cpu_cores / unit[0]),
                        round(d.memory_gib / unit[1]),
                        d.latency_threshold_ms,
                    )
                    for d in DEPLOYMENTS
                ]
            )
            most = INCREASE
        else:
            t = self._trace
            kinds, most = (
                np.unique(np.column_stack((t.demand, t.threshold)), axis=0),
                float(t.increase.max()),
            )
        return kinds, np.array([self.rate * unit[2], self.duration / unit[2], most]), *self._asked

    def _draw(self, chosen: np.ndarray) -> None:
        if self._trace is not None:
            for name in Arrays._fields[2:]:
                getattr(self._world, name)[chosen] = getattr(self._trace, name)
            return
        types = np.array(
            [(round(t.cpu_cores / UNIT), round(t.memory_gib / UNIT), t.cost) for t in TYPES],
            dtype=np.int64,
        )
        fill = 95 if self.published else 100
        draw.draw_all(self._world, chosen, types, round(BACKGROUND / UNIT), fill, *self._flow())

    def _look(self, chosen: np.ndarray) -> None:
        """Bring what every action leads to, and the masks, up to date."""
        looks.look_all(self._world, chosen, self.published, self.masks)


def empty_world(n: int, clusters: int, steps: int, unit: np.ndarray, scale: np.ndarray) -> World:
    """Return the arrays of `n` environments, unfilled."""
    whole, real, actions = np.int64, np.float64, clusters + EXTRA

    def zeros(*shape: int, dtype: Any = real) -> np.ndarray:
        return np.zeros((n, *shape), dtype=dtype)

    return World(
        unit=unit,
        scale=scale,
        **{name: zeros(clusters, 2, dtype=whole) for name in ("capacity", "limit", "used", "free")},
        **{name: zeros(clusters) for name in ("price", "base", "raw", "latency")},
        matrix=zeros(clusters, clusters),
        demand=zeros(steps, 2, dtype=whole),
        replicas=zeros(steps, dtype=whole),
        **{name: zeros(steps) for name in ("arrival", "departure", "threshold", "increase")},
        now=zeros(dtype=whole),
        active=zeros(dtype=whole),
        running=zeros(steps, dtype=whole),
        placed=zeros(steps, clusters, dtype=whole),
        action=zeros(steps, dtype=whole),
        load=zeros(clusters, dtype=whole),
        split=zeros(3, clusters, dtype=whole),
        accepts=zeros(actions, dtype=np.bool_),
        outcome=zeros(actions, 3),
        parts=zeros(actions, 3),
        refusal=zeros(),
        sums=zeros(SUMS),
        rng=zeros(dtype=np.uint64),
    )
