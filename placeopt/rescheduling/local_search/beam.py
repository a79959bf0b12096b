"""Beam search over the services of a call graph, callers first.

The replicas of a service stay, or all go to one of two zones. Every deployment is built from empty
nodes, so that services that are not placed yet take no room from their callers. A call to a service
that is not placed yet counts with the zone where it takes least, whether there is room or not.

`instance` is a `ReschedulingArrays`, `beam` a `Beam`, throughout.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placeopt.core.kernels.compile import allocating_kernel, kernel
from placeopt.rescheduling.arrays import ReschedulingArrays
from placeopt.rescheduling.latency import (
    LatencyScratch,
    RunningDeployment,
    latency,
    latency_scratch,
    mean_network,
    mean_own,
)

#: ms that every move counts in the comparison of deployments: of equals the one with fewer moves.
_MOVE_MS = 1e-4
#: What may become of a service: it stays, or goes to zone 1 or to zone 0. Of equals, the first.
_OPTIONS = (2, 1, 0)
_STAY = 2


class Beam(NamedTuple):
    """W deployments under construction, and room for as many more."""

    counts: np.ndarray  # int64 (2 W, S, N)
    free: np.ndarray  # int64 (2 W, N, 2)
    own: np.ndarray  # (2 W, S) as in `RunningDeployment`
    network: np.ndarray  # (2 W, calls) the same, with the processing of what is not placed yet
    moves: np.ndarray  # (2 W,) number of moves
    options: np.ndarray  # int64 (3 W, N) what may become of the next service
    values: np.ndarray  # (3 W,) ms of the options
    zone_of: np.ndarray  # int64 (N,) 0 or 1
    to_zone: np.ndarray  # (2, N) mean latency from a node to a zone
    below: np.ndarray  # (S, 2) estimated processing of a service, by its zone
    scratch: LatencyScratch


def _empty_beam(instance: ReschedulingArrays, zone_of: np.ndarray, width: int) -> Beam:
    """Return a beam whose first deployment is empty.

    Estimates are those of a service at the mean of a zone's nodes, weighted by their cpu.
    """
    services, nodes = instance.home.shape
    share = np.array([(zone_of == zone) * (instance.capacity[:, 0] + 1e-9) for zone in range(2)])
    share /= np.maximum(share.sum(axis=1, keepdims=True), 1e-9)
    to_zone = share @ instance.delay.T
    between = share @ to_zone.T  # from zone to zone
    below = np.zeros((services, 2))
    for i in instance.order:
        groups = [np.zeros(2)]
        for g in range(instance.group_first[i], instance.group_first[i + 1]):
            callees = instance.callee[instance.call_first[g] : instance.call_first[g + 1]]
            groups.append(sum(((between + below[j]).min(axis=1) for j in callees), np.zeros(2)))
        below[i] = share @ instance.own[i] + np.max(groups, axis=0)
    below[:, share.sum(axis=1) == 0] = np.inf  # a zone without nodes
    calls = len(instance.callee)
    return Beam(
        counts=np.zeros((2 * width, services, nodes), dtype=np.int64),
        free=np.repeat(instance.capacity[None], 2 * width, axis=0),
        own=np.zeros((2 * width, services)),
        network=np.zeros((2 * width, calls)),
        moves=np.zeros(2 * width),
        options=np.zeros((3 * width, nodes), dtype=np.int64),
        values=np.zeros(3 * width),
        zone_of=zone_of,
        to_zone=to_zone,
        below=below,
        scratch=latency_scratch(services, calls),
    )


@kernel
def _fill(instance, beam, k, service, zone, option):
    """Write places for a service's replicas in deployment k into `option` (N,).

    They stay at home if `zone` is `_STAY`. Otherwise, and where home has no room, each goes to its
    fastest node, in the zone while that has room. Return whether all replicas have a place.
    """
    home, left = instance.home[service], instance.replicas[service]
    demand, free = instance.demand[service], beam.free[k]
    option[:] = 0
    for node in range(option.size if zone == _STAY else 0):
        for _ in range(home[node]):
            if _one_more_fits(demand, free, node, option):
                option[node] += 1
                left -= 1
    while left:
        best, least = -1, np.inf
        for node in range(option.size):
            if _one_more_fits(demand, free, node, option):
                value = instance.own[service, node]
                value += 0.0 if zone == _STAY or beam.zone_of[node] == zone else 1e9
                value -= 1e-6 if option[node] < home[node] else 0.0
                if value < least:
                    best, least = node, value
        if best < 0:
            return False
        option[best] += 1
        left -= 1
    return True


@kernel
def _one_more_fits(demand, free, node, option):
    """Return whether a node has room for a replica besides those of `option`."""
    count = option[node] + 1
    return free[node, 0] >= demand[0] * count and free[node, 1] >= demand[1] * count


@allocating_kernel
def _place(instance, beam, k, service, option):
    """Write counts and mean times of a service in deployment k once it runs as in `option` (N,).

    Its callers are placed. Calls that it makes are estimated by zone.
    """
    counts, network = beam.counts[k], beam.network[k]
    counts[service] = option
    beam.own[k, service] = mean_own(instance, counts, service)
    to_zones = np.zeros(2)
    for node in range(option.size):
        for zone in range(2):
            to_zones[zone] += option[node] * beam.to_zone[zone, node] / instance.replicas[service]
    for t in range(instance.touch_first[service], instance.touch_first[service + 1]):
        call = instance.touch[t]
        if instance.callee[call] == service:
            network[call] = mean_network(instance, counts, call)
        else:
            below = beam.below[instance.callee[call]]
            network[call] = min(to_zones[0] + below[0], to_zones[1] + below[1])


@kernel
def _take(instance, beam, k, service, option):
    """Run a service in deployment k as in `option` (N,)."""
    _place(instance, beam, k, service, option)
    for node in range(option.size):
        beam.moves[k] += max(0, option[node] - instance.home[service, node])
        for resource in range(2):
            beam.free[k, node, resource] -= option[node] * instance.demand[service, resource]


@allocating_kernel
def _copy(beam, source, target):
    """Write deployment `source` over deployment `target`."""
    for part in (beam.counts, beam.free):
        part[target] = part[source]
    for part in (beam.own, beam.network):
        part[target] = part[source]
    beam.moves[target] = beam.moves[source]


@allocating_kernel
def _search(instance, beam):
    """Build deployments; return how many, in the first places of ``beam.counts``, best first."""
    width, alive = beam.moves.size // 2, 1
    reached = np.zeros(instance.replicas.size, np.bool_)
    for service in instance.order:
        reached[service] = True
    for service in range(instance.replicas.size):
        if not reached[service]:  # no request needs it: it stays
            _take(instance, beam, 0, service, instance.home[service])
    for k in range(instance.order.size - 1, -1, -1):
        service = instance.order[k]
        for d in range(alive):
            _expand(instance, beam, d, service)
        beam.values[3 * alive :] = np.inf
        best, kept = np.argsort(beam.values, kind="mergesort"), 0
        while kept < width and beam.values[best[kept]] < np.inf:
            _copy(beam, best[kept] // 3, width + kept)
            _take(instance, beam, width + kept, service, beam.options[best[kept]])
            kept += 1
        for d in range(kept):
            _copy(beam, width + d, d)
        alive = kept
    return alive


@allocating_kernel
def _expand(instance, beam, k, service):
    """Write what may become of a service in deployment k, and the latency then."""
    kept_own, kept_network = beam.own[k, service], beam.network[k].copy()
    deployment = RunningDeployment(beam.counts[k], beam.free[k], beam.own[k], beam.network[k])
    for o in range(3):
        place = 3 * k + o
        option = beam.options[place]
        beam.values[place] = np.inf
        if not _fill(instance, beam, k, service, _OPTIONS[o], option):
            continue
        twice = False
        for other in range(3 * k, place):
            known = beam.values[other] < np.inf
            twice = twice or (known and (beam.options[other] == option).all())
        if twice:
            continue
        _place(instance, beam, k, service, option)
        moves = beam.moves[k] + np.maximum(0, option - instance.home[service]).sum()
        beam.values[place] = latency(instance, deployment, beam.scratch) + _MOVE_MS * moves
        beam.counts[k, service] = 0
        beam.own[k, service] = kept_own
        beam.network[k] = kept_network


def deployments(instance: ReschedulingArrays, zone_of: np.ndarray, width: int) -> np.ndarray:
    """Return up to `width` deployments, shape (deployments, S, N), the fastest first.

    Parameters
    ----------
    zone_of : ndarray of int64, shape (N,)
        The zone of every node, 0 or 1.
    """
    beam = _empty_beam(instance, zone_of, width)
    return beam.counts[: _search(instance, beam)].copy()
