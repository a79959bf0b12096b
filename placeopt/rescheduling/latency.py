"""Latency of deployments in compiled code, for encoder, sequence, episodes and search alike.

Equations (2) to (9) of the REACH paper in ms. The referee computes the same in whole numbers with
code of its own. S services, N nodes; `instance` is a `ReschedulingArrays` throughout.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placeopt.core.kernels.compile import kernel
from placeopt.core.kernels.rows import copy_row
from placeopt.rescheduling.arrays import ReschedulingArrays


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
    kept_processing: np.ndarray  # (S,)
    kept_network: np.ndarray  # (calls,)
    changed: np.ndarray  # bool (S,) all False between two kernels


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
        kept_processing=np.zeros(num_services),
        kept_network=np.zeros(num_calls),
        changed=np.zeros(num_services, dtype=bool),
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
    """Return the latency if a replica went from `source` to `target`; `latency` comes before.

    Nothing has changed afterwards.
    """
    own, network, processing = deployment.own, deployment.network, scratch.processing
    kept_own, changed, counts, delay = (
        own[service],
        scratch.changed,
        deployment.counts,
        instance.delay,
    )
    group_first, call_first, callee = instance.group_first, instance.call_first, instance.callee
    step = instance.own[service, target] - instance.own[service, source]
    own[service] += step / instance.replicas[service]
    for k in range(instance.touch_first[service], instance.touch_first[service + 1]):
        call = instance.touch[k]
        scratch.kept_network[call] = network[call]
        caller, change = instance.caller[call], 0.0
        for node in range(counts.shape[1]):
            if caller == service:
                change += counts[callee[call], node] * (delay[target, node] - delay[source, node])
            else:
                change += counts[caller, node] * (delay[node, target] - delay[node, source])
        network[call] += change / (instance.replicas[caller] * instance.replicas[callee[call]])
        changed[caller] = True
    changed[service] = True
    copy_row(processing, scratch.kept_processing)
    for other in instance.order:  # callees first: what changed is passed on to the callers
        if changed[other]:
            changed[other] = False
            processing[other] = (
                own[other]
                + _slowest_group(group_first, call_first, callee, network, processing, other)[1]
            )
            if processing[other] != scratch.kept_processing[other]:
                for k in range(instance.touch_first[other], instance.touch_first[other + 1]):
                    caller = instance.caller[instance.touch[k]]
                    changed[caller] = caller != other
    after = processing[instance.order[-1]]
    copy_row(scratch.kept_processing, processing)
    own[service] = kept_own
    for k in range(instance.touch_first[service], instance.touch_first[service + 1]):
        network[instance.touch[k]] = scratch.kept_network[instance.touch[k]]
    changed[:] = False
    return after
