"""The schemes that the re-orchestration paper compares: its two-phase heuristic and two ways in which Kubernetes would do it.

M. Zambianco, S. Cretti, D. Siracusa, "Cost Minimization in Multi-cloud Systems with Runtime Microservice Re-orchestration",
Algorithms 1 and 2 and section V-A. All of them may break latency limits; the referee says so.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from placeopt.core.errors import UsageError, did_you_mean
from placeopt.rolling_update.instance import RollingUpdate
from placeopt.rolling_update.reach import moves

READINGS = ("text", "argmin")
ORDERS = ("paper", "random")
#: Weights of the three scores: NodeResourcesFit (most allocated) and NodeAffinity (cheap nodes) as kube-scheduler weighs them by
#: default; PodAffinity (the cluster of the peers) above both together, as the paper gives it "high affinity values".
FIT, PRICE, PEERS = 1.0, 2.0, 4.0


def two_phase(
    problem: RollingUpdate, rng: np.random.Generator, reading: str = "text", order: str = "paper"
) -> dict[str, Any]:
    """Return the plan of the paper's two-phase heuristic.

    Parameters
    ----------
    reading : {'text', 'argmin'}
        Of line 10 of Algorithm 1: the cluster with the lowest occupation, as the text has it, or literally the one with the
        smallest share of free resources.
    order : {'paper', 'random'}
        Algorithm 2, or a random order of what fits.

    Raises
    ------
    UsageError
        No such reading or order.
    """
    for value, legal, what in ((reading, READINGS, "reading"), (order, ORDERS, "order")):
        if value not in legal:
            raise UsageError(f"unknown {what} {value!r}; {did_you_mean(value, legal)}")
    return problem.plan(
        _ordered(problem, _allocate(problem, reading), rng if order == "random" else None)
    )


class _Nodes:
    """Free resources, and which nodes a microservice may go to."""

    def __init__(self, problem: RollingUpdate, load: np.ndarray):
        self.arrays = a = problem.arrays
        self.free = a.capacity - load
        self.scale = np.maximum(a.capacity, 1)

    def fitting(self, m: int) -> np.ndarray:
        """Return the nodes with room for the new copy of microservice m."""
        a = self.arrays
        if a.pinned[m]:
            here = a.home[m : m + 1]
            return here[(self.free[here] >= a.new[m]).all(axis=1)]
        return np.flatnonzero((self.free >= a.new[m]).all(axis=1) & ~a.drain)

    def share(self) -> np.ndarray:
        """Return the scarcer resource's free share of each node."""
        return (self.free / self.scale).min(axis=1)

    def take(self, n: int, size: np.ndarray) -> None:
        self.free[n] -= size


def _allocate(problem: RollingUpdate, reading: str) -> np.ndarray:
    """Algorithm 1: a target on nodes that hold only what is not rescheduled. What fits nowhere keeps its node."""
    a = problem.arrays
    nodes, target = _Nodes(problem, a.fixed_load), a.home.copy()
    tight = np.zeros(len(target), dtype=bool)
    for k in a.tight_flows:
        tight[list(a.flows[k][:2])] = True
    todo = np.flatnonzero(a.movable)
    applications = [a.names[m][0] for m in todo]
    left: list[int] = []
    for name in dict.fromkeys(applications):
        mine = [int(m) for m, other in zip(todo, applications, strict=True) if other == name]
        left += [m for m in mine if not tight[m]]
        free, size = (
            np.array([x[a.cluster == c].sum(axis=0) for c in range(len(a.clusters))])
            for x in (nodes.free, nodes.scale)
        )
        score = (free / size).min(axis=1)
        cluster = int(score.argmax() if reading == "text" else score.argmin())
        for m in (m for m in mine if tight[m]):
            inside = nodes.fitting(m)
            left += [] if _settle(nodes, m, inside[a.cluster[inside] == cluster], target) else [m]
    for m in sorted(left, key=lambda m: (-(a.new[m] / a.capacity.max(axis=0).clip(1)).max(), m)):
        if not _settle(nodes, m, nodes.fitting(m), target):
            nodes.take(a.home[m], a.new[m])
    return target


def _settle(nodes: _Nodes, m: int, choice: np.ndarray, target: np.ndarray) -> bool:
    """Put microservice m on the node of least price times free share, of equals (free nodes) the fullest."""
    if len(choice) == 0:
        return False
    a, share = nodes.arrays, nodes.share()[choice]
    n = int(choice[np.lexsort((share, a.price[choice] * share))[0]])
    nodes.take(n, a.new[m])
    target[m] = n
    return True


def _ordered(
    problem: RollingUpdate, target: np.ndarray, rng: np.random.Generator | None
) -> list[tuple[int, int]]:
    """Algorithm 2: of what fits the move that takes the least share of the room; if none does, stop the largest.

    What was stopped is started when all else is done, or has room. With `rng`, what fits is taken at random.
    """
    a = problem.arrays
    todo, stopped = moves(problem, target).tolist(), set[int]()
    free = a.capacity - a.initial_load
    steps: list[tuple[int, int]] = []
    while todo:
        waiting = np.array(todo)
        room = free[target[waiting]]
        fits = (room >= a.new[waiting]).all(axis=1)
        if fits.any():
            score = (
                (a.new[waiting] / np.maximum(room, 1)).max(axis=1)
                if rng is None
                else rng.random(len(waiting))
            )
            m = int(waiting[np.where(fits, score, np.inf).argmin()])
            free[target[m]] -= a.new[m]
            todo.remove(m)
            steps.append((m, int(target[m])))
        else:
            running = [m for m in todo if m not in stopped]
            if not running:
                return steps + [(m, int(target[m])) for m in todo]
            m = max(running, key=lambda m: ((a.old[m] / a.capacity.max(axis=0).clip(1)).max(), -m))
            steps.append((m, -1))
        if m not in stopped:
            free[a.home[m]] += a.old[m]
        stopped.add(m)
    return steps


def rolling_update(problem: RollingUpdate) -> dict[str, Any]:
    """Return the plan of a Kubernetes rolling update: every microservice in turn, new copy first, where the scheduler puts it.

    A copy that fits nowhere waits until something else has moved; one that waits for ever leaves its microservice as it is.
    """
    a = problem.arrays
    nodes, where = _Nodes(problem, a.initial_load), a.home.copy()
    steps: list[tuple[int, int]] = []

    def move(m: int) -> bool:
        n = _scheduled(problem, nodes, where, m)
        if n < 0:
            return False
        nodes.take(n, a.new[m])
        nodes.take(a.home[m], -a.old[m])
        where[m] = n
        steps.append((m, n))
        return True

    _until_nothing_moves(np.flatnonzero(a.movable).tolist(), move)
    return problem.plan(steps)


def recreate(problem: RollingUpdate) -> dict[str, Any]:
    """Return the plan that stops every reschedulable microservice, then lets the scheduler place the new copies."""
    a = problem.arrays
    todo = np.flatnonzero(a.movable).tolist()
    nodes, where = _Nodes(problem, a.fixed_load), np.where(a.movable, -1, a.home)
    steps = [(m, -1) for m in todo]

    def start(m: int) -> bool:
        n = _scheduled(problem, nodes, where, m)
        if n < 0:
            return False
        nodes.take(n, a.new[m])
        where[m] = n
        steps.append((m, n))
        return True

    _until_nothing_moves(todo, start)
    return problem.plan(steps)


def _until_nothing_moves(todo: list[int], move: Callable[[int], bool]) -> None:
    while todo:
        waiting = [m for m in todo if not move(m)]
        if len(waiting) == len(todo):
            return
        todo = waiting


def _scheduled(problem: RollingUpdate, nodes: _Nodes, where: np.ndarray, m: int) -> int:
    """Return the node of best score with room, -1 for none. Every score is scaled to [0, 1], as kube-scheduler does."""
    a = problem.arrays
    choice = nodes.fitting(m)
    if len(choice) == 0:
        return -1
    allocated = 1 - ((nodes.free[choice] - a.new[m]) / nodes.scale[choice]).mean(axis=1)
    cheap = 1 - a.price[choice] / max(1, a.price.max())
    peers = np.bincount(
        a.cluster[[where[p] for p in a.tight_peers[m] if where[p] >= 0]], minlength=len(a.clusters)
    )
    near = (peers / max(1, peers.max()))[a.cluster[choice]]
    return int(choice[(FIT * allocated + PRICE * cheap + PEERS * near).argmax()])
