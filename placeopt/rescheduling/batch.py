"""Episodes after the REACH paper's decision process, many at once.

A step moves one replica to a node, or is idle, which ends the episode. An action is
``slot * nodes + node``, the last one idle; every service has the same number of slots for replicas.
A move is legal if the new copy fits beside all that runs. The reward is what the latency drops, in
ms, less `penalty` per move (11). An illegal action costs 100 and ends the episode, as in the
paper's Figure 4.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from placeopt.core.errors import UsageError
from placeopt.core.fronts.values import Plan
from placeopt.core.interfaces import Batch
from placeopt.core.numbers import checked_actions
from placeopt.rescheduling import batch_kernels as kernels
from placeopt.rescheduling.arrays import ReschedulingArrays
from placeopt.rescheduling.instance import Rescheduling
from placeopt.rescheduling.latency import LatencyScratch, latencies, latency_scratch

#: Columns of an observation: of a move of a replica from one node, "here", to another, "there".
#: They hold what nodes have free, what the replica asks for, where replicas run, and what the
#: latency model makes of the move. The action idle has the latency in seconds in column 0, and the
#: share of the steps that is left in column 1.
#: "If the service went": all its replicas to that node, as if there were room, the reward shared
#: among those that are far away from it; "if all went": the same of all services on the critical
#: path.
FEATURES = (
    "free cpu there",
    "free memory there",
    "free cpu here",
    "free memory here",
    "cpu",
    "memory",
    "execution here",
    "execution there",
    "user latency here",
    "user latency there",
    "gateway",
    "latency to partners here",
    "latency to partners there",
    "share of replicas here",
    "share of replicas there",
    "on the critical path",
    "reward / 100 ms",
    "reward per move if the service went",
    "reward per move if all went",
    "idle",
)


class ReschedulingBatch(Batch):
    """Episodes on one continuum; each draws one of the given applications.

    Parameters
    ----------
    problems : Rescheduling or sequence of them
        Applications; all on the same number of nodes.
    num_envs : int
    replicas : (int, int), optional
        Least and largest number of replicas of a service, drawn anew for each service of an
        episode; those of the instance by default.
    start : {"random", "given"}
        Whether episodes begin with replicas on random nodes with room, or as the instance has them.
    background : float
        Others use up to this share of cpu and memory of a node, drawn for each; 0 to 1. Only with
        random starts.
    penalty : float
        What a move costs, in ms: 2 in the paper.
    invalid : float
        Reward of an illegal action.
    steps : int, optional
        Moves of an episode at most; as many as there are slots, and four more, by default.

    Attributes
    ----------
    nodes, slots : int
        Actions but idle are ``slots * nodes``.
    state : `placeopt.rescheduling.batch.EpisodeState`

    Examples
    --------
    >>> batch = ReschedulingBatch(Rescheduling.generate(1, replicas=5), num_envs=2)
    >>> batch.reset(np.array([1, 2], dtype=np.uint64))
    >>> batch.num_actions, bool(batch.masks[:, -1].all())
    (121, True)
    """

    rewards: tuple[str, ...] = ("drop_ms",)
    #: The column with the reward of an action.
    score: tuple[int, ...] = (FEATURES.index("reward / 100 ms"),)

    def __init__(
        self,
        problems: Rescheduling | Sequence[Rescheduling],
        num_envs: int = 1,
        *,
        replicas: tuple[int, int] | None = None,
        start: str = "random",
        background: float = 0.0,
        penalty: float = 2.0,
        invalid: float = -100.0,
        steps: int | None = None,
    ):
        self.problems = (problems,) if isinstance(problems, Rescheduling) else tuple(problems)
        _check(self.problems, num_envs, replicas, start, background, steps)
        slots = max(int(p.arrays.replicas.max()) for p in self.problems)
        slots = max(slots, replicas[1]) if replicas else slots
        self.num_envs, self.nodes = num_envs, len(self.problems[0].nodes)
        self.slots = max(len(p.services) for p in self.problems) * slots
        self.num_actions, self.num_features = self.slots * self.nodes + 1, len(FEATURES)
        self.rules = _rules(
            self.problems,
            min_replicas=replicas[0] if replicas else 0,
            slots=slots,
            background=float(background),
            given=start == "given",
            max_moves=self.slots + 4 if steps is None else steps,
            penalty=float(penalty),
            invalid=float(invalid),
        )
        self.state, self._scratch = _state(self.rules, num_envs), _scratch(self.rules)
        self._allocate()

    def reset(self, seeds: np.ndarray | None = None, which: np.ndarray | None = None) -> None:
        """Begin new episodes; see `placeopt.core.interfaces.Batch.reset`."""
        which = (
            np.ones(self.num_envs, dtype=bool) if which is None else np.asarray(which, dtype=bool)
        )
        if seeds is not None:
            self.state.random[which] = np.asarray(seeds, dtype=np.uint64)[which]
        kernels.reset(self.rules, self.state, self._scratch, which, self.observations, self.masks)

    def step(self, actions: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        """Take one action in every environment; see `placeopt.core.interfaces.Batch.step`."""
        rewards, ended = np.zeros((self.num_envs, 1)), np.zeros(self.num_envs, dtype=bool)
        kernels.step(
            self.rules,
            self.state,
            self._scratch,
            checked_actions(actions, self.num_envs, self.num_actions),
            self.observations,
            self.masks,
            rewards,
            ended,
        )
        return rewards, ended

    def info(self) -> dict[str, np.ndarray]:
        """Return facts of the running episodes, arrays of shape (num_envs,).

        Latency at the start and now in ms, the share of it that is saved, the number of moves, and
        the number of the application.
        """
        start, now = self.state.latency.T.copy()
        return {
            "start_ms": start,
            "latency_ms": now,
            "moves": self.state.num_moves.copy(),
            "saved": 1 - now / np.maximum(start, 1e-9),
            "application": self.state.application.copy(),
        }

    def moves(self, env: int) -> list[tuple[int, int, int]]:
        """Return the moves of an episode so far as (service, from, to) by number.

        `Rescheduling.plan` reads them; every beginning of the list is a plan, too.
        """
        made = self.state.moves[env, : self.state.num_moves[env]]
        return [(int(i), int(u), int(v)) for i, u, v in made]

    def plan(self, env: int) -> Plan:
        """Return the plan of an episode so far.

        It is one of the instance if episodes begin as given.
        """
        return self.problems[int(self.state.application[env])].plan(self.moves(env))

    @staticmethod
    def prefixes(plan: Plan) -> list[Plan]:
        """Return the plans that a plan begins with, no move and all of them included."""
        return [{"moves": plan["moves"][:k]} for k in range(len(plan["moves"]) + 1)]


def _check(
    problems: Sequence[Rescheduling],
    num_envs: int,
    replicas: tuple[int, int] | None,
    start: str,
    background: float,
    steps: int | None,
) -> None:
    if not problems or len({len(p.nodes) for p in problems}) > 1:
        raise UsageError("give at least one instance, and all of them on the same number of nodes")
    if num_envs < 1 or (steps is not None and steps < 1):
        raise UsageError(f"num_envs is {num_envs} and steps {steps}; give at least 1 of both")
    if start not in ("random", "given"):
        raise UsageError(f"start is {start!r}; legal: random, given")
    if replicas is not None and not (len(replicas) == 2 and 1 <= replicas[0] <= replicas[1]):
        raise UsageError(
            f"replicas is {replicas!r}; give the least and the largest number, at least 1"
        )
    if not 0 <= background <= 1:
        raise UsageError(f"background is {background}; give a share from 0 to 1")


def _stack(parts: Sequence[np.ndarray]) -> np.ndarray:
    """Return arrays of different sizes as one, padded with 0."""
    result = np.zeros((len(parts), *np.max([part.shape for part in parts], axis=0)), parts[0].dtype)
    for padded, part in zip(result, parts, strict=True):
        padded[tuple(map(slice, part.shape))] = part
    return result


def _rules(problems: Sequence[Rescheduling], **options: Any) -> EpisodeRules:
    """Return the rules; `options` are their last seven fields."""
    instances = [problem.arrays for problem in problems]
    times = [(a.execution.max(), a.user.max(), a.delay.max()) for a in instances]
    sizes = [(len(a.replicas), len(a.order), len(a.callee)) for a in instances]
    return EpisodeRules(
        applications=ReschedulingArrays(*map(_stack, zip(*instances, strict=True))),
        sizes=np.array(sizes, dtype=np.int64),
        by_size=_stack([np.lexsort((-a.demand[:, 1], -a.demand[:, 0])) for a in instances]),
        max_times=np.maximum(times, 1e-9),
        max_demand=np.array([np.maximum(a.demand.max(axis=0), 1) for a in instances]),
        together=np.stack([_latencies_together(a) for a in instances]),
        **options,
    )


def _latencies_together(instance: ReschedulingArrays) -> np.ndarray:
    """Return the latency in ms if all replicas ran on one node, for every node, shape (N,)."""
    nodes = np.eye(len(instance.user), dtype=np.int64)
    return latencies(instance, nodes[:, None, :] * instance.replicas[:, None])


def _state(rules: EpisodeRules, num_envs: int) -> EpisodeState:
    _, services, nodes = rules.applications.home.shape
    calls = rules.applications.callee.shape[1]
    return EpisodeState(
        random=np.arange(num_envs, dtype=np.uint64),
        application=np.zeros(num_envs, dtype=np.int64),
        node_of=np.zeros((num_envs, services * rules.slots), dtype=np.int64),
        replicas=np.ones((num_envs, services), dtype=np.int64),
        counts=np.zeros((num_envs, services, nodes), dtype=np.int64),
        free=np.zeros((num_envs, nodes, 2), dtype=np.int64),
        own=np.zeros((num_envs, services)),
        network=np.zeros((num_envs, calls)),
        latency=np.zeros((num_envs, 2)),
        num_moves=np.zeros(num_envs, dtype=np.int64),
        moves=np.zeros((num_envs, rules.max_moves, 3), dtype=np.int64),
        ended=np.ones(num_envs, dtype=bool),
    )


def _scratch(rules: EpisodeRules) -> EpisodeScratch:
    _, services, nodes = rules.applications.home.shape
    calls = rules.applications.callee.shape[1]
    return EpisodeScratch(
        latency=latency_scratch(services, calls),
        from_node=np.zeros((calls, nodes)),
        to_node=np.zeros((calls, nodes)),
        to_partners=np.zeros((services, nodes)),
        partners=np.zeros(services, dtype=np.int64),
        room=np.zeros((services, nodes), dtype=bool),
        change=np.zeros((services, nodes, nodes)),
        service_reward=np.zeros((services, nodes)),
        path_reward=np.zeros(nodes),
        share=np.zeros((nodes, 2)),
    )


class EpisodeRules(NamedTuple):
    """What no step changes."""

    applications: ReschedulingArrays  # every array with an axis (K,) before it, padded with 0
    sizes: np.ndarray  # int64 (K, 3) services, those that the gateway reaches, calls
    by_size: np.ndarray  # int64 (K, S) services, the largest first
    max_times: np.ndarray  # (K, 3) largest execution, latency to users, and delay
    max_demand: np.ndarray  # int64 (K, 2)
    together: np.ndarray  # (K, N) latency if every replica ran on one node
    min_replicas: int  # of a service; 0: as the application has it
    slots: int  # R
    background: float  # share of a node that others use, at most
    given: bool  # episodes begin at home
    max_moves: int  # of an episode
    penalty: float  # ms that a move costs
    invalid: float  # reward of an illegal action


class EpisodeState(NamedTuple):
    """Where the environments are."""

    random: np.ndarray  # uint64 (M,)
    application: np.ndarray  # int64 (M,)
    node_of: np.ndarray  # int64 (M, S * R) the node of a replica, -1 where there is none
    replicas: np.ndarray  # int64 (M, S)
    counts: np.ndarray  # int64 (M, S, N), this and the next three as in `RunningDeployment`
    free: np.ndarray  # int64 (M, N, 2)
    own: np.ndarray  # (M, S)
    network: np.ndarray  # (M, C)
    latency: np.ndarray  # (M, 2) ms at the start, now
    num_moves: np.ndarray  # int64 (M,)
    moves: np.ndarray  # int64 (M, max_moves, 3) service, from, to
    ended: np.ndarray  # bool (M,)


class EpisodeScratch(NamedTuple):
    """What describes one environment while its observation is written."""

    latency: LatencyScratch
    from_node: np.ndarray  # (C, N) mean latency of a call from a node
    to_node: np.ndarray  # (C, N) mean latency of a call to a node
    to_partners: np.ndarray  # (S, N) the sum of both over the calls of a service
    partners: np.ndarray  # int64 (S,) number of these calls
    room: np.ndarray  # bool (S, N) whether a node has room for a service
    change: np.ndarray  # (S, N, N) ms by which a move from node to node changes the latency
    service_reward: np.ndarray  # (S, N) reward per move if all of a service went to a node
    path_reward: np.ndarray  # (N,) the same for all services on the critical path
    share: np.ndarray  # (N, 2) of a node that is free
