"""The REACH paper's decision process, many episodes at once: move one replica to a node, again and again, or stay idle, which ends.

Contract: `placeopt.core.interfaces.Batch`. An action is ``slot * nodes + node``; the last action is idle. Every service has the same
number of slots for replicas. A move is legal if the new copy fits beside all that runs. The reward is what the latency drops, in ms,
less `penalty` per move (11); an illegal action costs 100 and ends the episode, as in the paper's Figure 4.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from placeopt.core.errors import UsageError
from placeopt.core.interfaces import Batch
from placeopt.rescheduling import batch_kernels as kernels
from placeopt.rescheduling.batch_state import Rules, State
from placeopt.rescheduling.instance import Rescheduling

#: Columns of an observation. The paper's three components, what nodes have left, what replicas ask for, where they run, as seen from
#: a move of a replica from one node to another; with what the latency model makes of them. The row of idle has other contents in the
#: first two columns: the latency in seconds, and the share of the steps that is left. "If the
#: service went": all its replicas to that node, as if there were room, the reward shared among those that are far away from it; "if all
#: went": the same of all services on the critical path.
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
        Fewest and most replicas of a service, drawn anew for each service of an episode; those of the instance by default.
    start : {"random", "given"}
        Whether episodes begin with replicas on random nodes with room, or as the instance has them.
    background : float
        Others use up to this share of cpu and memory of a node, drawn for each; 0 to 1. Only with random starts.
    penalty : float
        What a move costs, in ms: 2 in the paper.
    invalid : float
        Reward of an illegal action.
    steps : int, optional
        Moves of an episode at most; as many as there are slots, and four more, by default.

    Attributes
    ----------
    state : `placeopt.rescheduling.batch_state.State`

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
        services = max(len(p.services) for p in self.problems)
        self.num_envs, self.nodes, self.slots = (
            num_envs,
            len(self.problems[0].nodes),
            services * slots,
        )
        self.num_actions, self.num_features = self.slots * self.nodes + 1, len(FEATURES)
        self.rules = _rules(
            self.problems,
            fewest=replicas[0] if replicas else 0,
            slots=slots,
            background=float(background),
            given=start == "given",
            steps=self.slots + 4 if steps is None else steps,
            penalty=float(penalty),
            invalid=float(invalid),
        )
        self.state = _state(self.rules, num_envs)
        self.observations = np.zeros(
            (num_envs, self.num_actions, self.num_features), dtype=np.float32
        )
        self.masks = np.zeros((num_envs, self.num_actions), dtype=bool)

    def reset(self, seeds: np.ndarray | None = None, which: np.ndarray | None = None) -> None:
        """Begin new episodes; see `placeopt.core.interfaces.Batch.reset`."""
        which = (
            np.ones(self.num_envs, dtype=bool) if which is None else np.asarray(which, dtype=bool)
        )
        if seeds is not None:
            self.state.random[which] = np.asarray(seeds, dtype=np.uint64)[which]
        kernels.reset(self.rules, self.state, which, self.observations, self.masks)

    def step(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Take one action in every environment; see `placeopt.core.interfaces.Batch.step`."""
        rewards, ended = np.zeros((self.num_envs, 1)), np.zeros(self.num_envs, dtype=bool)
        kernels.step(
            self.rules,
            self.state,
            np.asarray(actions, dtype=np.int64),
            self.observations,
            self.masks,
            rewards,
            ended,
        )
        return rewards, ended

    def info(self) -> dict[str, np.ndarray]:
        """Return latency at the start and now in ms, moves made, the share of the latency saved, and the number of the application."""
        s = self.state
        first, now = s.latency[:, 0].copy(), s.latency[:, 1].copy()
        saved = 1 - now / np.maximum(first, 1e-9)
        return {
            "start_ms": first,
            "latency_ms": now,
            "moves": s.taken.copy(),
            "saved": saved,
            "application": s.app.copy(),
        }

    def moves(self, env: int) -> list[tuple[int, int, int]]:
        """Return the moves of an episode so far as (service, from, to) by number: what `Rescheduling.plan` reads.

        Every beginning of the list is a plan, too.
        """
        made = self.state.made[env, : self.state.taken[env]]
        return [(int(i), int(u), int(v)) for i, u, v in made]

    def plan(self, env: int) -> dict[str, Any]:
        """Return the plan of an episode so far; it is one of the instance if episodes begin as given."""
        return self.problems[int(self.state.app[env])].plan(self.moves(env))

    @staticmethod
    def prefixes(plan: dict[str, Any]) -> list[dict[str, Any]]:
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
        raise UsageError(f"replicas is {replicas!r}; give the fewest and the most, at least 1")
    if not 0 <= background <= 1:
        raise UsageError(f"background is {background}; give a share from 0 to 1")


def _stack(parts: Sequence[np.ndarray]) -> np.ndarray:
    """Stack arrays of different sizes, padded with 0."""
    shape = tuple(max(part.shape[d] for part in parts) for d in range(parts[0].ndim))
    found = np.zeros((len(parts), *shape), dtype=parts[0].dtype)
    for k, part in enumerate(parts):
        where: Any = (k, *(slice(0, n) for n in part.shape))
        found[where] = part
    return found


def _rules(problems: Sequence[Rescheduling], **options: Any) -> Rules:
    tables = [p.arrays for p in problems]
    owners = [
        np.repeat(
            np.repeat(np.arange(len(t.replicas)), np.diff(t.group_first)), np.diff(t.member_first)
        ).astype(np.int64)
        for t in tables
    ]
    sizes = [np.lexsort((-t.demand[:, 1], -t.demand[:, 0])).astype(np.int64) for t in tables]
    names = (
        "demand",
        "capacity",
        "home",
        "execution",
        "user",
        "delay",
        "order",
        "group_first",
        "member_first",
        "member",
    )
    padded: dict[str, Any] = {name: _stack([getattr(t, name) for t in tables]) for name in names}
    return Rules(
        **padded,
        services=np.array([len(t.replicas) for t in tables], dtype=np.int64),
        reached=np.array([len(t.order) for t in tables], dtype=np.int64),
        owner=_stack(owners),
        calls=np.array([len(owner) for owner in owners], dtype=np.int64),
        size=_stack(sizes),
        most=np.array(
            [[max(float(x.max()), 1e-9) for x in (t.execution, t.user, t.delay)] for t in tables]
        ),
        largest=np.array([np.maximum(t.demand.max(axis=0), 1) for t in tables], dtype=np.int64),
        together=np.stack([_together(p) for p in problems]),
        **options,
    )


def _together(problem: Rescheduling) -> np.ndarray:
    """Return the latency of every node if all ran there, shape (N,)."""
    t, graph = problem.arrays, problem.graph
    took: dict[int, np.ndarray] = {}
    for i in graph.order:
        groups = [
            sum((np.diag(t.delay) + took[j] for j in group), np.zeros(len(t.user)))
            for group in graph.groups[i]
        ]
        took[i] = t.execution[i] + (np.max(groups, axis=0) if groups else 0.0)
    latency: np.ndarray = t.user + took[graph.gateway]
    return latency


def _state(rules: Rules, num_envs: int) -> State:
    _, services, nodes = rules.execution.shape
    calls, zeros, whole = max(1, rules.member.shape[1]), np.zeros, partial(np.zeros, dtype=np.int64)
    return State(
        random=np.arange(num_envs, dtype=np.uint64),
        app=whole(num_envs),
        place=whole((num_envs, services * rules.slots)),
        counts=whole((num_envs, services, nodes)),
        replicas=np.ones((num_envs, services), dtype=np.int64),
        free=whole((num_envs, nodes, 2)),
        latency=zeros((num_envs, 2)),
        taken=whole(num_envs),
        made=whole((num_envs, rules.steps, 3)),
        ended=np.ones(num_envs, dtype=bool),
        te=zeros((num_envs, services)),
        ds=zeros((num_envs, calls)),
        took=zeros(services),
        weight=zeros(services),
        crit=zeros(calls),
        saved=zeros(calls),
        ahead=zeros((calls, nodes)),
        back=zeros((calls, nodes)),
        reach=zeros((services, nodes)),
        partners=whole(services),
        room=zeros((services, nodes), dtype=bool),
        share=zeros((nodes, 2)),
        whole=zeros((services, nodes)),
        every=zeros(nodes),
        change=zeros((services, nodes, nodes)),
    )


def build(
    problem: Rescheduling | Sequence[Rescheduling], num_envs: int = 1, **options: Any
) -> ReschedulingBatch:
    """Return a batch of episodes."""
    return ReschedulingBatch(problem, num_envs, **options)
