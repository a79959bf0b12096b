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
from placeopt.core.kernels.common import below, uniform
from placeopt.core.kernels.compile import kernel
from placeopt.core.numbers import checked_actions
from placeopt.rescheduling.arrays import ReschedulingArrays
from placeopt.rescheduling.encoder import (
    LatencyScratch,
    RunningDeployment,
    critical_path,
    fits,
    fold,
    latencies,
    latency,
    latency_scratch,
    refresh,
    relocate,
)
from placeopt.rescheduling.problem import Rescheduling

# -- kernels ---------------------------------------------------------------------------------------

#: Rewards are observed in this many ms.
_SPAN_MS = 100.0
#: Random starts that are tried: with what others use of the nodes, and without.
_TRIES, _TRIES_WITH_OTHERS = 10, 5


@kernel
def _instance(rules, state, env):
    """Return the application of an environment, without the padding."""
    padded, application = rules.applications, state.application[env]
    services, reached, calls = rules.sizes[application]
    return ReschedulingArrays(
        demand=padded.demand[application, :services],
        capacity=padded.capacity[application],
        home=padded.home[application, :services],
        replicas=state.replicas[env, :services],
        execution=padded.execution[application, :services],
        user=padded.user[application],
        delay=padded.delay[application],
        own=padded.own[application, :services],
        order=padded.order[application, :reached],
        group_first=padded.group_first[application, : services + 1],
        call_first=padded.call_first[application],
        caller=padded.caller[application, :calls],
        callee=padded.callee[application, :calls],
        touch_first=padded.touch_first[application, : services + 1],
        touch=padded.touch[application, : 2 * calls],
    )


@kernel
def _deployment(state, env):
    """Return the deployment of an environment; it shares the state's memory."""
    return RunningDeployment(state.counts[env], state.free[env], state.own[env], state.network[env])


# -- what moves bring ------------------------------------------------------------------------------


@kernel
def _measure_calls(instance, deployment, scratch):
    """Write the mean latency of every call from and to every node, and the sums by service."""
    counts = deployment.counts
    scratch.to_partners[:] = 0.0
    scratch.partners[:] = 0
    for call in range(instance.callee.size):
        caller, callee = instance.caller[call], instance.callee[call]
        scratch.partners[caller] += 1
        scratch.partners[callee] += 1
        scratch.from_node[call] = 0.0
        scratch.to_node[call] = 0.0
        for other in range(instance.user.size):
            callers = counts[caller, other] / instance.replicas[caller]
            callees = counts[callee, other] / instance.replicas[callee]
            for node in range(instance.user.size if callers + callees > 0.0 else 0):
                scratch.from_node[call, node] += callees * instance.delay[node, other]
                scratch.to_node[call, node] += callers * instance.delay[other, node]
        for node in range(instance.user.size):
            scratch.to_partners[caller, node] += scratch.from_node[call, node]
            scratch.to_partners[callee, node] += scratch.to_node[call, node]


@kernel
def _measure_moves(instance, deployment, scratch, now):
    """Write which nodes have room for each service, and how every legal move changes the latency.

    `now` is the latency; processing times are overwritten. `_measure_calls` comes before.
    """
    counts, own, network = deployment.counts, deployment.own, deployment.network
    demand, free, nodes = instance.demand, deployment.free, instance.user.size
    order, group_first, call_first = instance.order, instance.group_first, instance.call_first
    callee, touch, processing = instance.callee, instance.touch, scratch.latency.processing
    room, kept = scratch.room, scratch.latency.kept_network
    for service in range(instance.replicas.size):
        kept_own, replicas = own[service], instance.replicas[service]
        first, last = instance.touch_first[service], instance.touch_first[service + 1]
        for node in range(nodes):
            room[service, node] = fits(demand, free, service, node)
        for source in range(nodes):
            for target in range(nodes if counts[service, source] else 0):
                if target == source or not room[service, target]:
                    continue
                step = instance.own[service, target] - instance.own[service, source]
                own[service] = kept_own + step / replicas
                for k in range(first, last):
                    call = touch[k]
                    ms = scratch.to_node if callee[call] == service else scratch.from_node
                    kept[call] = network[call]
                    network[call] += (ms[call, target] - ms[call, source]) / replicas
                after = fold(order, group_first, call_first, callee, own, network, processing)
                scratch.change[service, source, target] = after - now
                for k in range(first, last):
                    network[touch[k]] = kept[touch[k]]
        own[service] = kept_own


@kernel
def _measure_blocks(rules, application, instance, deployment, scratch, now):
    """Write the rewards per move if all of a service, or of the critical path, came to a node.

    The replicas that are far away share the reward: more than half the largest delay. Whether there
    is room does not count. `critical_path` comes before; processing times are overwritten.
    """
    scratch.path_reward[:] = 0.0
    for service in range(instance.replicas.size):
        on_path = scratch.latency.service_weight[service] > 0.0
        for node in range(instance.user.size):
            far = 0
            for other in range(instance.user.size):
                if 2 * instance.delay[other, node] > rules.max_times[application, 2]:
                    far += deployment.counts[service, other]
            scratch.path_reward[node] += far if on_path else 0
            scratch.service_reward[service, node] = 0.0
            if far:
                saved = now - _latency_gathered(instance, deployment, scratch, service, node)
                scratch.service_reward[service, node] = _reward_per_move(rules, saved, far)
    for node in range(instance.user.size):
        if scratch.path_reward[node] > 0.0:
            saved = now - rules.together[application, node]
            scratch.path_reward[node] = _reward_per_move(rules, saved, scratch.path_reward[node])


@kernel
def _reward_per_move(rules, saved, num_moves):
    """Return the observed reward per move of moves that save so many ms together."""
    return (saved / num_moves - rules.penalty) / _SPAN_MS


@kernel
def _latency_gathered(instance, deployment, scratch, service, node):
    """Return the latency if all replicas of a service ran on a node; overwrites processing."""
    own, network, kept = deployment.own, deployment.network, scratch.latency.kept_network
    kept_own = own[service]
    own[service] = instance.own[service, node]
    first, last = instance.touch_first[service], instance.touch_first[service + 1]
    for call in instance.touch[first:last]:
        kept[call] = network[call]
        called = instance.callee[call] == service
        network[call] = scratch.to_node[call, node] if called else scratch.from_node[call, node]
    result = latency(instance, deployment, scratch.latency)
    for call in instance.touch[first:last]:
        network[call] = kept[call]
    own[service] = kept_own
    return result


# -- observations ----------------------------------------------------------------------------------


@kernel
def _clipped(value):
    """Return the value within [-1, 1]."""
    return min(1.0, max(-1.0, value))


@kernel
def _observe_replica(rules, instance, deployment, scratch, application, slot, source, rows, masks):
    """Write `FEATURES` of the moves of a replica from `source`, (actions, features), and masks."""
    service, nodes = slot // rules.slots, instance.user.size
    counts, replicas = deployment.counts[service], instance.replicas[service]
    execution, user, share = instance.execution[service], instance.user, scratch.share
    demand, max_demand = instance.demand[service], rules.max_demand[application]
    max_execution, max_user, max_delay = rules.max_times[application]
    to_partners, room = scratch.to_partners[service], scratch.room[service]
    far = max(1, scratch.partners[service]) * max_delay
    gateway = 1.0 if service == instance.order[-1] else 0.0
    weight = min(1.0, scratch.latency.service_weight[service])
    change, service_reward = scratch.change[service, source], scratch.service_reward[service]
    path_reward, penalty = scratch.path_reward, rules.penalty
    for target in range(nodes):
        if target == source or not room[target]:
            continue
        action = slot * nodes + target
        masks[action] = True
        row = rows[action]
        row[0], row[1] = share[target, 0], share[target, 1]
        row[2], row[3] = share[source, 0], share[source, 1]
        row[4], row[5] = demand[0] / max_demand[0], demand[1] / max_demand[1]
        row[6], row[7] = execution[source] / max_execution, execution[target] / max_execution
        row[8], row[9] = user[source] / max_user, user[target] / max_user
        row[10] = gateway
        row[11], row[12] = to_partners[source] / far, to_partners[target] / far
        row[13], row[14] = counts[source] / replicas, counts[target] / replicas
        row[15] = weight
        row[16] = _clipped((-change[target] - penalty) / _SPAN_MS)
        row[17], row[18] = _clipped(service_reward[target]), _clipped(path_reward[target])


@kernel
def _observe(rules, state, scratch, env, observations, masks):
    """Write the observation (actions, features) and the mask (actions,) of an environment."""
    instance, deployment = _instance(rules, state, env), _deployment(state, env)
    application = state.application[env]
    now = latency(instance, deployment, scratch.latency)
    critical_path(instance, deployment, scratch.latency)
    _measure_calls(instance, deployment, scratch)
    _measure_moves(instance, deployment, scratch, now)
    _measure_blocks(rules, application, instance, deployment, scratch, now)
    for node in range(instance.user.size):
        for resource in range(2):
            capacity = instance.capacity[node, resource]
            free = deployment.free[node, resource]
            scratch.share[node, resource] = free / capacity if capacity else 0.0
    observations[:] = 0.0
    masks[:] = False
    for slot in range(state.node_of.shape[1]):
        source = state.node_of[env, slot]
        if source >= 0:
            _observe_replica(
                rules, instance, deployment, scratch, application, slot, source, observations, masks
            )
    masks[-1] = True
    observations[-1, 0] = min(1.0, now / (10 * _SPAN_MS))
    observations[-1, 1] = 1.0 - state.num_moves[env] / rules.max_moves
    observations[-1, 19] = 1.0


# -- starts ----------------------------------------------------------------------------------------


@kernel
def _empty(rules, state, env, background):
    """Remove all replicas; others use up to a share `background` of every node."""
    capacity = rules.applications.capacity[state.application[env]]
    state.counts[env] = 0
    state.node_of[env] = -1
    for node in range(capacity.shape[0]):
        for resource in range(2):
            used = uniform(state.random, env) * background
            state.free[env, node, resource] = capacity[node, resource] - int(
                used * capacity[node, resource]
            )


@kernel
def _put(rules, instance, state, env, service, k, node):
    """Start replica k of a service on a node."""
    state.node_of[env, service * rules.slots + k] = node
    state.counts[env, service, node] += 1
    for resource in range(2):
        state.free[env, node, resource] -= instance.demand[service, resource]


@kernel
def _scatter(rules, instance, state, env):
    """Put replicas on random nodes with room, large services first; return whether all have one."""
    services, nodes, free = instance.replicas.size, instance.user.size, state.free[env]
    for service in range(services):
        instance.replicas[service] = (
            rules.min_replicas + below(state.random, rules.slots - rules.min_replicas + 1, env)
            if rules.min_replicas
            else instance.home[service].sum()
        )
    for service in rules.by_size[state.application[env], :services]:
        for k in range(instance.replicas[service]):
            room = 0
            for node in range(nodes):
                room += fits(instance.demand, free, service, node)
            if room == 0:
                return False
            chosen = below(state.random, room, env)
            for node in range(nodes):
                if fits(instance.demand, free, service, node):
                    if chosen == 0:
                        _put(rules, instance, state, env, service, k, node)
                        break
                    chosen -= 1
    return True


@kernel
def _stay_home(rules, instance, state, env):
    """Put the replicas where the application has them."""
    for service in range(instance.replicas.size):
        k = 0
        for node in range(instance.user.size):
            for _ in range(instance.home[service, node]):
                _put(rules, instance, state, env, service, k, node)
                k += 1
        instance.replicas[service] = k


@kernel
def reset(rules, state, scratch, which, observations, masks):
    """Begin episodes where `which` (M,); write observations (M, A, F) and masks (M, A).

    Where no random start has room, the application's own takes its place.
    """
    for env in range(state.application.size):
        if not which[env]:
            continue
        state.application[env] = below(state.random, rules.sizes.shape[0], env)
        instance, deployment = _instance(rules, state, env), _deployment(state, env)
        result = False
        for attempt in range(0 if rules.given else _TRIES):
            _empty(rules, state, env, rules.background if attempt < _TRIES_WITH_OTHERS else 0.0)
            if _scatter(rules, instance, state, env):
                result = True
                break
        if not result:
            _empty(rules, state, env, 0.0)
            _stay_home(rules, instance, state, env)
        for service in range(instance.replicas.size):
            refresh(instance, deployment, service)
        state.latency[env] = latency(instance, deployment, scratch.latency)
        state.num_moves[env] = 0
        state.ended[env] = False
        _observe(rules, state, scratch, env, observations[env], masks[env])


# -- steps -----------------------------------------------------------------------------------------


@kernel
def step(rules, state, scratch, actions, observations, masks, rewards, ended):
    """Take an action in every environment; write all that follows `actions` (M,).

    Environments that have ended stay as they are, with reward 0.
    """
    nodes, idle = rules.together.shape[1], masks.shape[1] - 1
    for env in range(state.application.size):
        rewards[env, 0] = 0.0
        action = actions[env]
        if not state.ended[env]:
            if action < 0 or action > idle or not masks[env, action]:
                rewards[env, 0] = rules.invalid
                state.ended[env] = True
            elif action == idle:
                state.ended[env] = True
            else:
                rewards[env, 0] = _move(rules, state, scratch, env, action // nodes, action % nodes)
                state.ended[env] = state.num_moves[env] == rules.max_moves
                _observe(rules, state, scratch, env, observations[env], masks[env])
        ended[env] = state.ended[env]


@kernel
def _move(rules, state, scratch, env, slot, target):
    """Move a replica; return the drop of the latency less what a move costs."""
    instance, deployment = _instance(rules, state, env), _deployment(state, env)
    service, source = slot // rules.slots, state.node_of[env, slot]
    relocate(instance, deployment, service, source, target)
    refresh(instance, deployment, service)
    state.node_of[env, slot] = target
    made = state.moves[env, state.num_moves[env]]
    made[0], made[1], made[2] = service, source, target
    state.num_moves[env] += 1
    before = state.latency[env, 1]
    state.latency[env, 1] = latency(instance, deployment, scratch.latency)
    return before - state.latency[env, 1] - rules.penalty


# -- episodes --------------------------------------------------------------------------------------

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
    state : `placeopt.rescheduling.episodes.batch.EpisodeState`

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
        reset(self.rules, self.state, self._scratch, which, self.observations, self.masks)

    def step(self, actions: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        """Take one action in every environment; see `placeopt.core.interfaces.Batch.step`."""
        rewards, ended = np.zeros((self.num_envs, 1)), np.zeros(self.num_envs, dtype=bool)
        step(
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
