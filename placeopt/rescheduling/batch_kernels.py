"""Compiled episodes of rescheduling: a move of one replica or idle, in many environments at once.

Throughout, `rules` is an `EpisodeRules`, `state` an `EpisodeState`, `scratch` an `EpisodeScratch`,
`env` the number of an environment; `instance` is its application as a `ReschedulingArrays` with
the replicas of the episode, `deployment` its `RunningDeployment`.
"""

from __future__ import annotations

from placeopt.core.kernels.compile import kernel
from placeopt.core.kernels.random import below, uniform
from placeopt.rescheduling.arrays import ReschedulingArrays
from placeopt.rescheduling.latency import (
    RunningDeployment,
    critical_path,
    fits,
    fold,
    latency,
    refresh,
    relocate,
)

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
