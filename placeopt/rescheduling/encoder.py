"""Rescheduling as integer vectors: the node of every replica.

The order of the moves is found, not encoded.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from placeopt.core.fronts.values import Objective, Plan
from placeopt.core.interfaces import Encoder
from placeopt.core.kernels.common import copy_row
from placeopt.core.kernels.compile import allocating_kernel, kernel
from placeopt.rescheduling.arrays import ReschedulingArrays
from placeopt.rescheduling.problem import Rescheduling

# -- latency ---------------------------------------------------------------------------------------


class RunningDeployment(NamedTuple):
    """Where replicas run, what nodes have free, and the mean times that follow, in ms."""

    counts: np.ndarray  # int64 (S, N) replicas
    free: np.ndarray  # int64 (N, 2)
    own: np.ndarray  # (S,) mean execution, for the gateway with the latency to the users
    network: np.ndarray  # (calls,) mean latency of a call


class LatencyScratch(NamedTuple):
    """What the kernels write on the way to the latency of one deployment."""

    processing: np.ndarray  # (S,) ms of a service with all that it calls
    service_weight: np.ndarray  # (S,) how often a service is on the critical path
    call_weight: np.ndarray  # (calls,) how often a call is on the critical path
    kept_network: np.ndarray  # (calls,)


def empty_deployment(instance: ReschedulingArrays) -> RunningDeployment:
    """Return a deployment without replicas."""
    return RunningDeployment(
        counts=np.zeros_like(instance.home),
        free=instance.capacity.copy(),
        own=np.zeros(len(instance.replicas)),
        network=np.zeros(len(instance.callee)),
    )


def latency_scratch(num_services: int, num_calls: int) -> LatencyScratch:
    """Return scratch for instances of at most these sizes."""
    return LatencyScratch(
        processing=np.zeros(num_services),
        service_weight=np.zeros(num_services),
        call_weight=np.zeros(num_calls),
        kept_network=np.zeros(num_calls),
    )


def latencies(instance: ReschedulingArrays, deployments: np.ndarray) -> np.ndarray:
    """Return the end-to-end latency in ms of deployments of shape (n, S, N); shape (n,)."""
    result = np.empty(len(deployments))
    scratch = latency_scratch(len(instance.replicas), len(instance.callee))
    _latencies(instance, deployments, empty_deployment(instance), scratch, result)
    return result


@kernel
def _latencies(instance, deployments, deployment, scratch, found):
    """Write the latency of each of `deployments` (n, S, N) into `found` (n,)."""
    for k in range(deployments.shape[0]):
        for service in range(instance.replicas.size):
            copy_row(deployments[k, service], deployment.counts[service])
            deployment.own[service] = mean_own(instance, deployment.counts, service)
        for call in range(instance.callee.size):
            deployment.network[call] = mean_network(instance, deployment.counts, call)
        found[k] = latency(instance, deployment, scratch)


@kernel
def fits(demand, free, service, node):
    """Return whether a node has room for a replica of a service; arrays are (S, 2) and (N, 2)."""
    return free[node, 0] >= demand[service, 0] and free[node, 1] >= demand[service, 1]


@kernel
def relocate(instance, deployment, service, source, target):
    """Move a replica in `counts` and `free`; `refresh` is left to the caller."""
    deployment.counts[service, source] -= 1
    deployment.counts[service, target] += 1
    for resource in range(2):
        deployment.free[source, resource] += instance.demand[service, resource]
        deployment.free[target, resource] -= instance.demand[service, resource]


@kernel
def mean_own(instance, counts, service):
    """Return the mean execution of a service, for the gateway with the latency to the users."""
    total = 0.0
    for node in range(counts.shape[1]):
        if counts[service, node]:
            total += counts[service, node] * instance.own[service, node]
    return total / instance.replicas[service]


@kernel
def mean_network(instance, counts, call):
    """Return the mean latency of a call over the pairs of replicas."""
    caller, callee = instance.caller[call], instance.callee[call]
    total = 0.0
    for here in range(counts.shape[1]):
        if counts[caller, here]:
            for there in range(counts.shape[1]):
                pairs = counts[caller, here] * counts[callee, there]
                total += pairs * instance.delay[here, there]
    return total / (instance.replicas[caller] * instance.replicas[callee])


@kernel
def refresh(instance, deployment, service):
    """Bring `own` and `network` up to date with the counts of a service."""
    deployment.own[service] = mean_own(instance, deployment.counts, service)
    for k in range(instance.touch_first[service], instance.touch_first[service + 1]):
        call = instance.touch[k]
        deployment.network[call] = mean_network(instance, deployment.counts, call)


@kernel
def _slowest_group(group_first, call_first, callee, network, processing, service):
    """Return the slowest group of a service, -1 if it calls nothing, and how long it takes.

    The arguments are arrays because to pass on a whole record takes longer than to sum a group.
    """
    slowest, longest = -1, 0.0
    for group in range(group_first[service], group_first[service + 1]):
        total = 0.0
        for call in range(call_first[group], call_first[group + 1]):
            total += network[call] + processing[callee[call]]
        if slowest < 0 or total > longest:
            slowest, longest = group, total
    return slowest, longest


@kernel
def fold(order, group_first, call_first, callee, own, network, processing):
    """Return the latency from `own` and `network`, (5) to (9); writes `processing` (S,)."""
    for service in order:
        longest = 0.0
        for group in range(group_first[service], group_first[service + 1]):
            total = 0.0
            for call in range(call_first[group], call_first[group + 1]):
                total += network[call] + processing[callee[call]]
            longest = max(longest, total)
        processing[service] = own[service] + longest
    return processing[order[-1]]


@kernel
def latency(instance, deployment, scratch):
    """Return the latency of a deployment; writes ``scratch.processing``."""
    return fold(
        instance.order,
        instance.group_first,
        instance.call_first,
        instance.callee,
        deployment.own,
        deployment.network,
        scratch.processing,
    )


@kernel
def critical_path(instance, deployment, scratch):
    """Write how often every service and call is on the critical path; `latency` comes before."""
    scratch.service_weight[:] = 0.0
    scratch.call_weight[:] = 0.0
    scratch.service_weight[instance.order[-1]] = 1.0
    for k in range(instance.order.size - 1, -1, -1):
        service = instance.order[k]
        weight = scratch.service_weight[service]
        if weight == 0.0:
            continue
        group = _slowest_group(
            instance.group_first,
            instance.call_first,
            instance.callee,
            deployment.network,
            scratch.processing,
            service,
        )[0]
        if group >= 0:
            for call in range(instance.call_first[group], instance.call_first[group + 1]):
                scratch.service_weight[instance.callee[call]] += weight
                scratch.call_weight[call] = weight


@kernel
def latency_after(instance, deployment, scratch, service, source, target):
    """Return the latency if a replica went from `source` to `target`; writes ``processing``.

    The deployment has not changed afterwards.
    """
    own, network, counts, delay = (
        deployment.own,
        deployment.network,
        deployment.counts,
        instance.delay,
    )
    first, last = instance.touch_first[service], instance.touch_first[service + 1]
    kept_own, callee = own[service], instance.callee
    step = instance.own[service, target] - instance.own[service, source]
    own[service] += step / instance.replicas[service]
    for k in range(first, last):
        call = instance.touch[k]
        scratch.kept_network[call] = network[call]
        caller, change = instance.caller[call], 0.0
        for node in range(counts.shape[1]):
            if caller == service:
                change += counts[callee[call], node] * (delay[target, node] - delay[source, node])
            else:
                change += counts[caller, node] * (delay[node, target] - delay[node, source])
        network[call] += change / (instance.replicas[caller] * instance.replicas[callee[call]])
    after = latency(instance, deployment, scratch)
    own[service] = kept_own
    for k in range(first, last):
        network[instance.touch[k]] = scratch.kept_network[instance.touch[k]]
    return after


# -- the order of moves ----------------------------------------------------------------------------

Moves = list[tuple[int, int, int]]
_Counts = tuple[tuple[int, ...], ...]

#: Replicas that step aside to a third node in one order of moves, at most.
MAX_HOPS = 4


@allocating_kernel
def arrange(instance, target, moves):
    """Write moves from home to a deployment `target` (S, N), each with room when it is made.

    Moves are made by service and node as soon as they have room. Where none has, a replica that
    must leave steps aside to another node, `MAX_HOPS` times at most, and never if the target is
    overloaded itself. Moves that still find no room are written last, as far as `moves` has a place
    for them.

    Parameters
    ----------
    moves : int32 (k, 3)
        Takes (service, from, to).

    Returns
    -------
    count : int
        The number of moves written.
    left : int
        The number of moves that find no room, or no place in `moves`.
    """
    home, demand = instance.home, instance.demand
    free, free_at_end = instance.capacity.copy(), instance.capacity.copy()
    replicas = instance.replicas.sum()
    sources, targets = np.empty(replicas, np.int64), np.empty(replicas, np.int64)
    services = np.empty(replicas, np.int64)  # of the replicas that must arrive
    next_source = np.zeros(instance.replicas.size, np.int64)  # where `sources` of a service begin
    size = 0
    for service in range(home.shape[0]):
        next_source[service], last = size, size
        for node in range(home.shape[1]):
            for resource in range(2):
                free[node, resource] -= home[service, node] * demand[service, resource]
                free_at_end[node, resource] -= target[service, node] * demand[service, resource]
            for _ in range(home[service, node] - target[service, node]):
                sources[last] = node
                last += 1
            for _ in range(target[service, node] - home[service, node]):
                targets[size], services[size] = node, service
                size += 1
    done, left, count = np.zeros(size, np.bool_), size, 0
    hops = MAX_HOPS if free_at_end.min() >= 0 else 0
    while left and count + left <= moves.shape[0]:
        before = left
        for k in range(size):
            service = services[k]
            if not done[k] and fits(instance.demand, free, service, targets[k]):
                source = sources[next_source[service]]
                _make(instance, free, moves[count], service, source, targets[k])
                next_source[service] += 1
                done[k] = True
                count += 1
                left -= 1
        if left == before:
            if hops == 0 or count + left == moves.shape[0]:
                break
            service, source, node = _aside(instance, free, sources, next_source, services, done)
            if service < 0:
                break
            _make(instance, free, moves[count], service, source, node)
            sources[next_source[service]] = node
            hops -= 1
            count += 1
    written = count
    for k in range(size):
        if not done[k] and written < moves.shape[0]:
            service = services[k]
            source = sources[next_source[service]]
            _make(instance, free, moves[written], service, source, targets[k])
            next_source[service] += 1
            written += 1
    return written, left


@kernel
def _make(instance, free, move, service, source, target):
    """Write a move (3,), and what nodes have free after it (N, 2)."""
    move[0], move[1], move[2] = service, source, target
    for resource in range(2):
        free[source, resource] += instance.demand[service, resource]
        free[target, resource] -= instance.demand[service, resource]


@kernel
def _aside(instance, free, sources, next_source, services, done):
    """Return a move of a replica that must leave to a third node with room; service -1 for none."""
    for k in range(done.size):
        service = services[k]
        if not done[k]:
            source = sources[next_source[service]]
            for node in range(free.shape[0]):
                if node != source and fits(instance.demand, free, service, node):
                    return service, source, node
    return -1, -1, -1


def arranged(instance: ReschedulingArrays, target: np.ndarray, max_moves: int) -> Moves | None:
    """Return the moves of `arrange` to a deployment; None where it finds no order.

    Parameters
    ----------
    target : ndarray of int64, shape (S, N)
    max_moves : int
        Longer orders count as none.
    """
    moves = np.empty((max_moves, 3), dtype=np.int32)
    count, left = arrange(instance, target, moves)
    return None if left else [(int(i), int(u), int(v)) for i, u, v in moves[:count]]


def misplaced(counts: np.ndarray, target: np.ndarray) -> int:
    """Return how many replicas must move from one deployment to another, at least."""
    return int(np.maximum(target - counts, 0).sum())


def shortest(
    instance: ReschedulingArrays,
    target: np.ndarray,
    max_states: int = 20_000,
    stop: Callable[[], bool] = lambda: False,
) -> tuple[Moves | None, bool]:
    """Search the deployments on the way by A*; misplaced replicas are the lower bound.

    Parameters
    ----------
    target : ndarray of int, shape (S, N)
    max_states : int
        Deployments that are visited before the search gives up.
    stop : callable
        Asked before each of them whether to give up.

    Returns
    -------
    moves : list of (service, from, to) or None
        None where no order was found.
    proven : bool
        Whether there is none, or none that is shorter.
    """
    goal, home = _frozen(target), _frozen(instance.home)
    came: dict[_Counts, tuple[_Counts, tuple[int, int, int]] | None] = {home: None}
    cost = {home: 0}
    queue = [(misplaced(instance.home, target), 0, home)]
    while queue:
        _, negative, state = heapq.heappop(queue)
        if state == goal:
            return _trace(came, state), True
        if -negative > cost[state]:
            continue
        if len(came) > max_states or stop():
            return None, False
        for move, after in _neighbours(instance, state):
            if cost[state] + 1 < cost.get(after, 1 << 60):
                cost[after] = cost[state] + 1
                came[after] = (state, move)
                bound = cost[after] + misplaced(np.array(after), target)
                heapq.heappush(queue, (bound, -cost[after], after))
    return None, True


def _frozen(counts: np.ndarray) -> _Counts:
    return tuple(map(tuple, counts.tolist()))


def _neighbours(
    instance: ReschedulingArrays, state: _Counts
) -> list[tuple[tuple[int, int, int], _Counts]]:
    """Return every move that has room, with the deployment after it."""
    free = instance.capacity - np.tensordot(np.array(state), instance.demand, axes=(0, 0))
    results = []
    for service, counts in enumerate(state):
        room = np.flatnonzero((free >= instance.demand[service]).all(axis=1)).tolist()
        for source, count in enumerate(counts):
            for target in room if count else ():
                if target != source:
                    after = list(counts)
                    after[source] -= 1
                    after[target] += 1
                    changed = (*state[:service], tuple(after), *state[service + 1 :])
                    results.append(((service, source, target), changed))
    return results


def _trace(
    came: dict[_Counts, tuple[_Counts, tuple[int, int, int]] | None], state: _Counts
) -> Moves:
    """Return the moves that lead from home to a deployment."""
    moves = []
    while (step := came[state]) is not None:
        state, move = step
        moves.append(move)
    return moves[::-1]


# -- the encoder -----------------------------------------------------------------------------------


@kernel
def _count_moves(instance, targets, moves, found):
    """Write the number of moves to each of `targets` (n, S, N), and how many find no room.

    Into `found` (n, 2); `moves` (k, 3) is overwritten.
    """
    for k in range(len(targets)):
        found[k, 0], found[k, 1] = arrange(instance, targets[k], moves)


class ReschedulingEncoder(Encoder):
    """A gene per replica: an index into the nodes that are large enough for it."""

    problem: Rescheduling

    def __init__(self, problem: Rescheduling, objectives: Sequence[Objective]):
        super().__init__(problem, objectives)
        self._instance = instance = problem.arrays
        self._service = np.repeat(np.arange(len(instance.replicas)), instance.replicas)
        large = [
            np.flatnonzero((instance.capacity >= size).all(axis=1)) for size in instance.demand
        ]
        self.upper = np.array([len(large[i]) - 1 for i in self._service], dtype=np.int64)
        self.lower = np.zeros_like(self.upper)
        self.num_genes, self.num_constraints = len(self.upper), 1
        self._large = large
        self._nodes = np.zeros_like(instance.home)  # by service and gene
        for i, nodes in enumerate(large):
            self._nodes[i, : len(nodes)] = nodes
        self._moves = np.zeros((self.num_genes + MAX_HOPS, 3), dtype=np.int32)
        self.home = self.encode_counts(instance.home)

    def counts(self, X: np.ndarray) -> np.ndarray:
        """Return the replicas per service and node, shape (n, S, N)."""
        X = self.checked(X)
        result = np.zeros((len(X), *self._nodes.shape), dtype=np.int64)
        nodes = self._nodes[self._service, X]
        np.add.at(result, (np.arange(len(X))[:, None], self._service, nodes), 1)
        return result

    def evaluate(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return F (n, objectives) and G (n, 1): moves that find no room."""
        targets = self.counts(X)
        result = np.zeros((len(targets), 2), dtype=np.int64)
        _count_moves(self._instance, targets, self._moves, result)
        every = np.stack((latencies(self._instance, targets), result[:, 0]), axis=1)
        return every[:, self._columns], result[:, 1:].astype(float)

    def decode(self, genes: np.ndarray) -> dict[str, Any]:
        """Return the plan of one vector; moves that find no room come last."""
        target = self.counts(self.checked_one(genes)[None])[0]
        count, _ = arrange(self._instance, target, self._moves)
        return self.problem.plan(self._moves[:count].tolist())

    def encode(self, plan: Plan) -> np.ndarray:
        """Return the vector of the deployment that a plan ends in."""
        return self.encode_counts(self.problem.final_counts(plan))

    def encode_counts(self, counts: np.ndarray) -> np.ndarray:
        """Return the vector of a deployment (S, N) within capacity, shape (num_genes,)."""
        nodes = np.arange(counts.shape[1])
        genes = [
            np.searchsorted(large, np.repeat(nodes, row))
            for large, row in zip(self._large, counts, strict=True)
        ]
        return np.concatenate(genes).astype(np.int64)

    def start(self) -> np.ndarray:
        """Return the running deployment."""
        return self.home.copy()

    def sample(self, rng: np.random.Generator, count: int) -> np.ndarray:
        """Return vectors, half of them uniform, half near the running deployment."""
        X = super().sample(rng, count)
        count = len(X)
        stay = (rng.random((count, 1)) < 0.5) & (rng.random(X.shape) < rng.random((count, 1)))
        return np.where(stay, self.home, X)

    def vary(
        self, rng: np.random.Generator, mothers: np.ndarray, fathers: np.ndarray
    ) -> np.ndarray:
        """Return children that have whole services of either parent, and mutations."""
        mothers, fathers = self.checked_pairs(mothers, fathers)
        from_mother = rng.random((len(mothers), len(self._nodes))) < 0.5
        return self.mutate(rng, np.where(from_mother[:, self._service], mothers, fathers))

    def mutate(self, rng: np.random.Generator, X: np.ndarray) -> np.ndarray:
        """Return copies of X in which about one and a half replicas go elsewhere or home."""
        X = self.checked(X)
        to_home = rng.random(X.shape) < 0.3
        drawn = np.where(to_home, self.home, super().sample(rng, len(X)))
        return np.where(rng.random(X.shape) < 1.5 / self.num_genes, drawn, X)
