"""Rolling updates as Kubernetes makes them: one after another, or all stopped and started anew.

M. Zambianco, S. Cretti, D. Siracusa, "Cost Minimization in Multi-cloud Systems with Runtime
Microservice Re-orchestration", section V-A. Both may break latency limits; the referee reports it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from placeopt.core.fronts.front import Front
from placeopt.core.task import Candidate, Task
from placeopt.rolling_update.arrays import UpdateArrays
from placeopt.rolling_update.instance import RollingUpdate
from placeopt.rolling_update.rules import kernels as rules

#: Weights of three scores. NodeResourcesFit (most allocated) and NodeAffinity (cheap nodes) have
#: the default weights of kube-scheduler. PodAffinity (the cluster of the peers) is above both
#: together, as the paper gives it "high affinity values".
_FIT, _PRICE, _PEERS = 1.0, 2.0, 4.0


def rolling_update(task: Task[RollingUpdate]) -> Front:
    """Replace every microservice in turn, where a Kubernetes scheduler would put it."""
    return front_of_one(task, "rolling-update", rolling_update_plan(task.problem), {})


def recreate(task: Task[RollingUpdate]) -> Front:
    """Stop every microservice, then start new copies where a Kubernetes scheduler would."""
    return front_of_one(task, "recreate", recreate_plan(task.problem), {})


def front_of_one(
    task: Task[RollingUpdate], method: str, plan: dict[str, Any], parameters: dict[str, Any]
) -> Front:
    """Return the front of a single plan."""
    task.budget.spend(1)
    return task.front([Candidate(plan)], method=method, parameters=parameters, libraries=("numpy",))


class FreeNodes:
    """Free resources, and the nodes that a microservice may go to."""

    def __init__(self, arrays: UpdateArrays, load: np.ndarray):
        self.arrays = arrays
        self.free = arrays.capacity - load  # (N, R)
        self.scale = np.maximum(arrays.capacity, 1)

    def fitting(self, m: int) -> np.ndarray:
        """Return the nodes with room for the new copy of microservice m, of those it may be on."""
        a = self.arrays
        fits = (self.free >= a.new[m]).all(axis=1)
        if a.pinned[m]:
            return a.home[[m]][fits[a.home[[m]]]]
        return np.flatnonzero(fits & a.may_host(m))

    def take(self, n: int, size: np.ndarray) -> None:
        self.free[n] -= size


def rolling_update_plan(problem: RollingUpdate) -> dict[str, Any]:
    """Return the plan of a Kubernetes rolling update.

    Every microservice in turn is replaced, new copy first, where the scheduler puts it. A copy that
    fits nowhere waits until something else has moved; one that waits for ever changes nothing.
    """
    a = problem.arrays
    early = a.removed & ~a.late
    nodes = FreeNodes(a, a.initial_load - a.load_of(early, a.old))
    where = np.where((a.home == a.waiting) | early, -1, a.home)
    return problem.plan(_around_removals(a, _scheduled_steps(nodes, where, a.old)))


def recreate_plan(problem: RollingUpdate) -> dict[str, Any]:
    """Return the plan that stops all reschedulable microservices, then schedules new copies."""
    a = problem.arrays
    nodes = FreeNodes(a, a.fixed_load + a.load_of(a.late, a.old))
    where = np.where(a.fixed | a.late, a.home, -1)
    stops = [(m, -1) for m in np.flatnonzero(a.movable & (a.home != a.waiting)).tolist()]
    starts = _scheduled_steps(nodes, where, np.zeros_like(a.old))
    return problem.plan(_around_removals(a, stops + starts))


def _around_removals(a: UpdateArrays, steps: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return steps after what may be removed at once, and before what waits for them."""
    return [*a.removals(late=False), *steps, *a.removals(late=True)]


def _scheduled_steps(
    nodes: FreeNodes, where: np.ndarray, freed: np.ndarray
) -> list[tuple[int, int]]:
    """Return the starts of all reschedulable microservices, in rounds until nothing fits.

    Parameters
    ----------
    nodes : FreeNodes
        Changed in place.
    where : int array (M,)
        Node of every microservice, -1 for none; changed in place.
    freed : int array (M, 2)
        What each frees on its home when its new copy runs.
    """
    a = nodes.arrays
    steps: list[tuple[int, int]] = []
    todo, count = np.flatnonzero(a.movable).tolist(), rules.counted(a.packed_rules, where)
    while todo:
        waiting = []
        for m in todo:
            n = _scheduled(nodes, where, m, count)
            if n < 0:
                waiting.append(m)
                continue
            nodes.take(n, a.new[m])
            nodes.take(a.home[m], -freed[m])
            if where[m] >= 0:
                rules.tally(a.packed_rules, count, m, where[m], -1)
            rules.tally(a.packed_rules, count, m, n, 1)
            where[m] = n
            steps.append((m, n))
        if len(waiting) == len(todo):
            break
        todo = waiting
    return steps


def _scheduled(nodes: FreeNodes, where: np.ndarray, m: int, count: np.ndarray) -> int:
    """Return the node with room and the best score of those that rules allow, -1 for none.

    Every score is scaled to [0, 1], as kube-scheduler does; `count` are the counts of the rules.
    """
    a = nodes.arrays
    choice = nodes.fitting(m)
    if rules.is_ruled(a.packed_rules, m):
        choice = choice[[bool(rules.may_start(a.packed_rules, count, m, n)) for n in choice]]
    if len(choice) == 0:
        return -1
    allocated = 1 - ((nodes.free[choice] - a.new[m]) / nodes.scale[choice]).mean(axis=1)
    cheap = 1 - a.price[choice] / max(1, a.price.max())
    placed = [where[peer] for peer, _ in a.tight_peers[m] if where[peer] >= 0]
    peers = np.bincount(a.cluster[placed], minlength=len(a.clusters))
    near = (peers / max(1, peers.max()))[a.cluster[choice]]
    return int(choice[(_FIT * allocated + _PRICE * cheap + _PEERS * near).argmax()])
