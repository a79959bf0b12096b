"""Kernels that pack microservices on fewer nodes: close a node, then shift and swap until all fits.

Latency limits are never broken on the way. A microservice with tight flows changes its cluster only
where all its peers allow it, or together with the whole group that its tight flows connect. No
shift and no swap breaks a rule that held before.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placeopt.core.kernels.common import below, factor, most_worse, uniform
from placeopt.core.kernels.compile import allocating_kernel, kernel
from placeopt.rolling_update.packing.loads import (
    excess,
    fits,
    overflow,
    overflow_swapped,
    overflow_with,
    overflow_without,
    overloaded,
    share,
    share_with,
)
from placeopt.rolling_update.rules import (
    holds,
    leave,
    may_move,
    may_swap,
    meets_itself,
    num_broken_by,
    tally,
)

#: Odds that a step of `repair` moves a whole group, and that a microservice with tight flows looks
#: for a node in its own cluster. Set by hand.
_GROUP_ODDS, _NEAR_ODDS = 0.02, 0.7
#: Random overflow that breaks ties between partners of a swap.
_TIE_NOISE = 1e-4
#: Score of a node that a microservice would overload; the overflow is added.
_OVERLOADED = 10.0
#: Rounds in which broken rules are mended, and wishes pleased.
_ROUNDS = 3


class PackingInstance(NamedTuple):
    """Q microservices that may move, N nodes, R clusters, and some resources."""

    size: np.ndarray  # (Q, resources) at the end
    weight: np.ndarray  # (Q,) shares of an average node, those of all resources together
    number: np.ndarray  # (Q,) as the rules number them
    free: np.ndarray  # (Q,) no rule is about it but a set of allowed nodes
    node_set: np.ndarray  # (Q,) set of nodes that it may start on, -1 for all
    allowed: np.ndarray  # (node sets, N) whether a node is in a set
    rules: np.ndarray  # packed, as in `placeopt.rolling_update.rules`
    base_counts: np.ndarray  # counts of the rules for what cannot move
    leaves: np.ndarray  # (N,) is no domain of some rule any more once it is closed
    paid: np.ndarray  # (N,) costs nothing more when it hosts something
    home: np.ndarray  # (Q,) node now
    old: np.ndarray  # (Q, resources) size of the running copy
    now: np.ndarray  # (N, resources) load before the first move
    home_first: np.ndarray  # (N + 1,) where each node begins in home_members
    home_members: np.ndarray  # (Q,) microservices sorted by home
    rests: np.ndarray  # (Q,) costs no start where it stays at home
    base: np.ndarray  # (N, resources) load of what cannot move, at the end
    capacity: np.ndarray  # (N, resources)
    cluster: np.ndarray  # (N,)
    peer_first: np.ndarray  # (Q + 1,) where each microservice begins in peer
    peer: np.ndarray  # (ends of flows,) microservice, or -1 - cluster of one that cannot move
    legal: np.ndarray  # (ends of flows, R, R) by own cluster, cluster of the peer
    group: np.ndarray  # (Q,) of microservices that tight flows connect
    group_first: np.ndarray  # (Q + 1,) where each group begins in group_members
    group_members: np.ndarray  # (Q,) microservices sorted by group


class PackingState(NamedTuple):
    """A deployment; lists of the microservices of a node are linked."""

    node: np.ndarray  # (Q,)
    load: np.ndarray  # (N, resources)
    counts: np.ndarray  # of the rules
    open: np.ndarray  # (N,) whether a node may take microservices
    open_nodes: np.ndarray  # (N,) the open nodes, sorted by cluster
    open_first: np.ndarray  # (R + 1,) where each cluster begins in open_nodes
    head: np.ndarray  # (N,) first microservice of a node, -1 none
    after: np.ndarray  # (Q,) next microservice of the same node, -1 none
    before: np.ndarray  # (Q,) the one before, -1 none
    overloaded: np.ndarray  # (N,) the overloaded nodes
    overloaded_at: np.ndarray  # (N,) place of a node in overloaded, -1 none
    num_overloaded: np.ndarray  # (1,)
    random: np.ndarray  # (1,) uint64


@kernel
def _total_overflow(instance, state):
    total = 0.0
    for k in range(state.num_overloaded[0]):
        total += overflow(instance.capacity, state.load, state.overloaded[k])
    return total


@kernel
def _list_overloaded(instance, state, n):
    """Add node n to the list of overloaded nodes or remove it, as its load says."""
    over = overloaded(instance.capacity, state.load, n)
    at = state.overloaded_at[n]
    if over and at < 0:
        state.overloaded_at[n] = state.num_overloaded[0]
        state.overloaded[state.num_overloaded[0]] = n
        state.num_overloaded[0] += 1
    elif not over and at >= 0:
        state.num_overloaded[0] -= 1
        last = state.overloaded[state.num_overloaded[0]]
        state.overloaded[at] = last
        state.overloaded_at[last] = at
        state.overloaded_at[n] = -1


@kernel
def _link(instance, state, i, n):
    """Add microservice i to the load and to the list of node n."""
    state.after[i], state.before[i] = state.head[n], -1
    if state.head[n] >= 0:
        state.before[state.head[n]] = i
    state.head[n] = i
    state.node[i] = n
    for r in range(instance.size.shape[1]):
        state.load[n, r] += instance.size[i, r]
    if not instance.free[i]:
        tally(instance.rules, state.counts, instance.number[i], n, 1)


@kernel
def put(instance, state, i, n):
    """Move microservice i to node n; changes `state`."""
    m = state.node[i]
    if state.before[i] >= 0:
        state.after[state.before[i]] = state.after[i]
    else:
        state.head[m] = state.after[i]
    if state.after[i] >= 0:
        state.before[state.after[i]] = state.before[i]
    for r in range(instance.size.shape[1]):
        state.load[m, r] -= instance.size[i, r]
    if not instance.free[i]:
        tally(instance.rules, state.counts, instance.number[i], m, -1)
    _link(instance, state, i, n)
    _list_overloaded(instance, state, m)
    _list_overloaded(instance, state, n)


@kernel
def rests_on(instance, i, n):
    """Return whether microservice i costs no start on node n."""
    return instance.rests[i] and instance.home[i] == n


# Who is handed an instance and a state pays for each of their arrays. What is true most often is
# therefore asked first, of the few arrays that it is about.


@kernel
def opens(node_set, allowed, i, n):
    """Return whether node n is one of those that microservice i may start on."""
    return node_set[i] < 0 or allowed[node_set[i], n]


@kernel
def is_unbound(free, peer_first, i):
    """Return whether neither tight flows nor rules bind microservice i, allowed nodes apart."""
    return free[i] and peer_first[i] == peer_first[i + 1]


@kernel
def is_open_to(instance, state, i, n):
    """Return whether flows and rules allow microservice i on node n, from where it is."""
    if not opens(instance.node_set, instance.allowed, i, n) and not rests_on(instance, i, n):
        return False
    if not _is_legal(instance, state, i, instance.cluster[n]):
        return False
    return instance.free[i] or _obeys_on(instance, state, i, n)


@kernel
def _obeys_on(instance, state, i, n):
    """Return whether the rules allow microservice i on node n, from where it is."""
    m, rests = instance.number[i], rests_on(instance, i, n)
    if not rests and meets_itself(instance.rules, m, instance.home[i], n):
        return False
    return may_move(instance.rules, state.counts, m, state.node[i], n, rests)


@kernel
def _is_legal(instance, state, i, cluster):
    """Return whether the peers of microservice i, where they are, allow it in `cluster`."""
    for e in range(instance.peer_first[i], instance.peer_first[i + 1]):
        peer = instance.peer[e]
        other = -1 - peer if peer < 0 else instance.cluster[state.node[peer]]
        if not instance.legal[e, cluster, other]:
            return False
    return True


@allocating_kernel
def start(instance, node, is_open, seed):
    """Return the state in which microservice i is on ``node[i]``, (Q,); `is_open` is (N,)."""
    num, nodes = len(node), len(instance.capacity)
    state = PackingState(
        node=node.copy(),
        load=instance.base.copy(),
        counts=instance.base_counts.copy(),
        open=is_open.copy(),
        open_nodes=np.empty(nodes, np.int64),
        open_first=np.zeros(instance.legal.shape[1] + 1, np.int64),
        head=np.full(nodes, -1),
        after=np.full(num, -1),
        before=np.full(num, -1),
        overloaded=np.empty(nodes, np.int64),
        overloaded_at=np.full(nodes, -1),
        num_overloaded=np.zeros(1, np.int64),
        random=np.full(1, np.uint64(seed), np.uint64),
    )
    for i in range(num):
        _link(instance, state, i, node[i])
    for n in range(nodes):
        _list_overloaded(instance, state, n)
        if instance.leaves[n] and not is_open[n]:
            leave(instance.rules, state.counts, n, 1)
    list_open(instance, state)
    return state


@kernel
def set_open(instance, state, n, is_open):
    """Open or close node n; changes `state`."""
    if instance.leaves[n] and state.open[n] != is_open:
        leave(instance.rules, state.counts, n, -1 if is_open else 1)
    state.open[n] = is_open
    list_open(instance, state)


@kernel
def list_open(instance, state):
    """Write the list of open nodes of `state` anew, from ``state.open``."""
    count = 0
    for c in range(len(state.open_first) - 1):
        state.open_first[c] = count
        for n in range(len(state.open)):
            if state.open[n] and instance.cluster[n] == c:
                state.open_nodes[count] = n
                count += 1
    state.open_first[-1] = count


@kernel
def member(state, n):
    """Return a random microservice of node n, -1 where it has none."""
    count, i = 0, state.head[n]
    while i >= 0:
        count += 1
        i = state.after[i]
    if count == 0:
        return i
    i = state.head[n]
    for _ in range(below(state.random, count)):
        i = state.after[i]
    return i


@kernel
def _tightest_fit(instance, state, i, low, high):
    """Return the node of ``open_nodes[low:high]`` that microservice i fits and fills most.

    The second value is the share that stays free there, inf where it fits no legal node.
    """
    capacity, load = instance.capacity, state.load
    best, best_n = np.inf, state.open_nodes[low]
    size, node_set, allowed = instance.size, instance.node_set, instance.allowed
    unbound = is_unbound(instance.free, instance.peer_first, i)
    for k in range(low, high):
        n = state.open_nodes[k]
        if fits(capacity, load, size, i, n) and n != state.node[i]:
            score = 1.0 - share_with(capacity, load, size, n, i)
            if score < best and (
                (unbound and opens(node_set, allowed, i, n)) or is_open_to(instance, state, i, n)
            ):
                best, best_n = score, n
    return best_n, best


@kernel
def _best_fit(instance, state, i, low, high):
    """Return the node of ``open_nodes[low:high]`` that microservice i fills best, and its score.

    Where it fits none, the one that it overloads least. The score is inf where none is legal.
    """
    best_n, best = _tightest_fit(instance, state, i, low, high)
    if best < np.inf:
        return best_n, best
    capacity, load = instance.capacity, state.load
    size, node_set, allowed = instance.size, instance.node_set, instance.allowed
    unbound = is_unbound(instance.free, instance.peer_first, i)
    for k in range(low, high):
        n = state.open_nodes[k]
        over = overflow_with(capacity, load, size, n, i) - overflow(capacity, load, n)
        if (
            _OVERLOADED + over < best
            and n != state.node[i]
            and ((unbound and opens(node_set, allowed, i, n)) or is_open_to(instance, state, i, n))
        ):
            best, best_n = _OVERLOADED + over, n
    return best_n, best


@kernel
def evacuate(instance, state, n):
    """Empty node n, which is no longer open: the largest first, each where it fits best.

    Changes `state`; returns False where a microservice is legal nowhere else.
    """
    while state.head[n] >= 0:
        largest, highest, i = state.head[n], -1.0, state.head[n]
        while i >= 0:
            here = share(instance.capacity, n, instance.size[i])
            if here > highest:
                largest, highest = i, here
            i = state.after[i]
        to, score = _best_fit(instance, state, largest, 0, state.open_first[-1])
        if score < np.inf:
            put(instance, state, largest, to)
        elif not _move_group_anywhere(instance, state, largest):
            return False
    return True


@kernel
def _stands(instance, state, i):
    """Return whether the rules of microservice i hold where it is."""
    m, n = instance.number[i], state.node[i]
    if not opens(instance.node_set, instance.allowed, i, n) and not rests_on(instance, i, n):
        return False
    return instance.free[i] or holds(instance.rules, state.counts, m, n, rests_on(instance, i, n))


@allocating_kernel
def _move_group(instance, state, i, c, limit):
    """Move the group of microservice i to cluster c if overflow grows by less than `limit`.

    Changes `state`; returns whether it did.
    """
    low, high = state.open_first[c], state.open_first[c + 1]
    g = instance.group[i]
    members = instance.group_members[instance.group_first[g] : instance.group_first[g + 1]]
    if low == high:
        return False
    before, was = _total_overflow(instance, state), np.empty(len(members), np.int64)
    for k in range(len(members)):  # anywhere first: they are legal only beside each other
        was[k] = state.node[members[k]]
        put(instance, state, members[k], state.open_nodes[low + below(state.random, high - low)])
    legal = True
    for k in range(len(members)):
        legal = legal and _is_legal(instance, state, members[k], c)
    if legal:
        for k in range(len(members)):
            to, score = _best_fit(instance, state, members[k], low, high)
            anywhere = not _stands(instance, state, members[k])
            if anywhere or score < _OVERLOADED or state.overloaded_at[state.node[members[k]]] >= 0:
                put(instance, state, members[k], to)
        for k in range(len(members)):
            legal = legal and _stands(instance, state, members[k])
    if legal and _total_overflow(instance, state) - before < limit:
        return True
    for k in range(len(members)):
        put(instance, state, members[k], was[k])
    return False


@kernel
def _move_group_anywhere(instance, state, i):
    """Move the group of microservice i to the first legal cluster; return whether there is one."""
    moved = False
    for c in range(len(state.open_first) - 1):
        moved = moved or _move_group(instance, state, i, c, np.inf)
    return moved


@kernel
def is_swap_legal(instance, state, i, j):
    """Return whether flows and rules allow microservices i and j to swap places."""
    o, n = state.node[i], state.node[j]
    node_set, allowed = instance.node_set, instance.allowed
    if not opens(node_set, allowed, i, n) and not rests_on(instance, i, n):
        return False
    if not opens(node_set, allowed, j, o) and not rests_on(instance, j, o):
        return False
    a, b = instance.cluster[o], instance.cluster[n]
    if a != b and not (
        instance.group[i] != instance.group[j]
        and _is_legal(instance, state, i, b)
        and _is_legal(instance, state, j, a)
    ):
        return False
    return (instance.free[i] and instance.free[j]) or _is_swap_obedient(instance, state, i, j)


@kernel
def _is_swap_obedient(instance, state, i, j):
    """Return whether the rules allow microservices i and j to swap places."""
    o, n = state.node[i], state.node[j]
    m, p, rules = instance.number[i], instance.number[j], instance.rules
    there, here = rests_on(instance, i, n), rests_on(instance, j, o)
    if not there and meets_itself(rules, m, instance.home[i], n):
        return False
    if not here and meets_itself(rules, p, instance.home[j], o):
        return False
    return may_swap(rules, state.counts, m, o, there, p, n, here)


@kernel
def _is_easy_swap(free, node_set, allowed, j, o):
    """Return whether only the set of allowed nodes binds microservice j, and o is in it."""
    return free[j] and opens(node_set, allowed, j, o)


@kernel
def swap_overflow(capacity, load, size, i, j, o, n):
    """Return the overflow of nodes o and n after i of node o and j of node n swap places."""
    here = overflow_swapped(capacity, load, size, o, j, i)
    return here + overflow_swapped(capacity, load, size, n, i, j)


@kernel
def _shift_or_swap(instance, state, i, n, limit):
    """Shift microservice i to node n, or swap it with the best partner there.

    The change is made if overflow grows by at most `limit`.
    """
    capacity, load, size, o = instance.capacity, state.load, instance.size, state.node[i]
    here = overflow(capacity, load, o) + overflow(capacity, load, n)
    best, best_j = np.inf, np.int64(-2)
    over = overflow_without(capacity, load, size, o, i)
    over += overflow_with(capacity, load, size, n, i)
    free, node_set, allowed = instance.free, instance.node_set, instance.allowed
    easy = free[i] and opens(node_set, allowed, i, n)
    unbound = easy and is_unbound(free, instance.peer_first, i)
    if over - here <= limit and (unbound or is_open_to(instance, state, i, n)):
        best, best_j = over, np.int64(-1)
    easy = easy and instance.cluster[o] == instance.cluster[n]
    j = state.head[n]
    while j >= 0:
        over = swap_overflow(capacity, load, size, i, j, o, n)
        over += _TIE_NOISE * uniform(state.random)
        if (
            over < best
            and over - here <= limit
            and (
                (easy and _is_easy_swap(free, node_set, allowed, j, o))
                or is_swap_legal(instance, state, i, j)
            )
        ):
            best, best_j = over, j
        j = state.after[j]
    if best_j == -2:
        return
    put(instance, state, i, n)
    if best_j >= 0:
        put(instance, state, best_j, o)


@kernel
def repair(instance, state, rounds, hottest, coldest):
    """Shift and swap out of overloaded nodes, by simulated annealing; changes `state`.

    Parameters
    ----------
    instance : PackingInstance
    state : PackingState
    rounds : int
    hottest, coldest : float
        First and last temperature, in shares of a node's capacity.

    Returns
    -------
    bool
        Whether nothing overflows.
    """
    nodes = state.open_first[-1]
    if nodes == 0:
        return state.num_overloaded[0] == 0
    temperature, cooling = hottest, factor(hottest, coldest, rounds)
    for _ in range(rounds):
        if state.num_overloaded[0] == 0:
            return True
        o = state.overloaded[below(state.random, state.num_overloaded[0])]
        i = member(state, o)
        if i < 0:
            return False  # what cannot move is too much for the node
        limit = most_worse(temperature, state.random)
        if uniform(state.random) < _GROUP_ODDS:
            c = below(state.random, len(state.open_first) - 1)
            if instance.cluster[o] != c:
                _move_group(instance, state, i, c, limit)
        else:
            low, high, c = np.int64(0), nodes, instance.cluster[o]
            if (
                instance.peer_first[i] < instance.peer_first[i + 1]
                and uniform(state.random) < _NEAR_ODDS
                and state.open_first[c] < state.open_first[c + 1]
            ):
                low, high = state.open_first[c], state.open_first[c + 1]
            n = state.open_nodes[low + below(state.random, high - low)]
            if n != o:
                _shift_or_swap(instance, state, i, n, limit)
        temperature *= cooling
    return state.num_overloaded[0] == 0


@kernel
def mend(instance, state):
    """Bring groups whose tight flows are broken at the start together; changes `state`.

    Returns whether all flows are legal now.
    """
    mended = True
    for i in range(len(state.node)):
        if not _is_legal(instance, state, i, instance.cluster[state.node[i]]):
            mended = _move_group_anywhere(instance, state, i) and mended
    return mended


@kernel
def repair_rules(instance, state):
    """Move what breaks a rule where it is; changes `state`.

    Returns whether all rules hold now.
    """
    broken = 0
    for _ in range(_ROUNDS):
        broken = 0
        for i in range(len(state.node)):
            if not _stands(instance, state, i):
                to, score = _best_fit(instance, state, i, 0, state.open_first[-1])
                if score < np.inf:
                    put(instance, state, i, to)
                broken += 1
        if broken == 0:
            return True
    return False


@allocating_kernel
def satisfy_soft_rules(instance, state, wishes, base):
    """Keep soft rules where it costs neither nodes nor starts; changes `state`.

    What starts anew anyway goes to the node in use where it breaks fewest of them.

    Parameters
    ----------
    instance : PackingInstance
    state : PackingState
    wishes : int array
        The soft rules, packed.
    base : int array
        Their counts for what cannot move.
    """
    count, number = base.copy(), instance.number
    for i in range(len(state.node)):
        tally(wishes, count, number[i], state.node[i], 1)
    for _ in range(_ROUNDS):
        changed = False
        for i in range(len(state.node)):
            o = state.node[i]
            if rests_on(instance, i, o):
                continue
            best, best_n = num_broken_by(wishes, count, number[i], o), o
            for k in range(state.open_first[-1] if best > 0 else 0):
                n = state.open_nodes[k]
                used = instance.paid[n] or state.head[n] >= 0
                if n != o and used and fits(instance.capacity, state.load, instance.size, i, n):
                    tally(wishes, count, number[i], o, -1)
                    tally(wishes, count, number[i], n, 1)
                    broken = num_broken_by(wishes, count, number[i], n)
                    tally(wishes, count, number[i], n, -1)
                    tally(wishes, count, number[i], o, 1)
                    if broken < best and is_open_to(instance, state, i, n):
                        best, best_n = broken, n
            if best_n != o:
                tally(wishes, count, number[i], o, -1)
                tally(wishes, count, number[i], best_n, 1)
                put(instance, state, i, best_n)
                changed = True
        if not changed:
            return


@kernel
def move_back_home(instance, state):
    """Bring microservices that could rest back home, by shifts and swaps; changes `state`.

    They overload nothing and move nothing else away from where it rests.
    """
    capacity, load, size = instance.capacity, state.load, instance.size
    again = True
    while again:
        again = False
        for i in range(len(state.node)):
            h, o = instance.home[i], state.node[i]
            if not instance.rests[i] or o == h or not state.open[h]:
                continue
            if fits(capacity, load, size, i, h) and is_open_to(instance, state, i, h):
                put(instance, state, i, h)
                again = True
                continue
            j = state.head[h]
            while j >= 0:
                free = not instance.rests[j] or instance.home[j] != h
                over = swap_overflow(capacity, load, size, i, j, o, h)
                if free and over == 0 and is_swap_legal(instance, state, i, j):
                    put(instance, state, i, h)
                    put(instance, state, j, o)
                    again = True
                    break
                j = state.after[j]


@kernel
def _crowding(instance, state, i):
    """Return the overflow of the home of microservice i while it restarts there.

    Both copies run then; everything that leaves the node has left, and what restarts there too has
    the smaller of its sizes.
    """
    h = instance.home[i]
    cpu = instance.now[h, 0] + instance.size[i, 0]
    memory = instance.now[h, 1] + instance.size[i, 1]
    for k in range(instance.home_first[h], instance.home_first[h + 1]):
        j = instance.home_members[k]
        if j != i:
            stays = state.node[j] == h
            old, new = instance.old[j], instance.size[j]
            cpu -= old[0] - (min(old[0], new[0]) if stays else 0)
            memory -= old[1] - (min(old[1], new[1]) if stays else 0)
    total = excess(instance.capacity, h, 0, cpu) + excess(instance.capacity, h, 1, memory)
    for r in range(2, instance.size.shape[1]):
        amount = instance.now[h, r] + instance.size[i, r]
        for k in range(instance.home_first[h], instance.home_first[h + 1]):
            j = instance.home_members[k]
            if j != i:
                old, new = instance.old[j, r], instance.size[j, r]
                amount -= old - (min(old, new) if state.node[j] == h else 0)
        total += excess(instance.capacity, h, r, amount)
    return total


@kernel
def evict_unrestartable(instance, state):
    """Move away what cannot restart in place; changes `state`.

    These are microservices whose new copy does not fit beside the old one, as too little leaves
    their node. They go where they overload the load of now least.
    """
    capacity, size = instance.capacity, instance.size
    for i in range(len(state.node)):
        h = instance.home[i]
        if instance.rests[i] or state.node[i] != h:
            continue
        meets = not instance.free[i] and meets_itself(instance.rules, instance.number[i], h, h)
        if not meets and _crowding(instance, state, i) == 0:
            continue
        best, best_n = np.inf, h
        for k in range(state.open_first[-1]):
            n = state.open_nodes[k]
            if n != h and fits(capacity, state.load, size, i, n):
                score = overflow_with(capacity, instance.now, size, n, i)
                if score < best and is_open_to(instance, state, i, n):
                    best, best_n = score, n
        put(instance, state, i, best_n)
