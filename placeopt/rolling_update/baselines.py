"""The schemes that the re-orchestration paper compares: its two-phase heuristic, and Kubernetes'.

M. Zambianco, S. Cretti, D. Siracusa, "Cost Minimization in Multi-cloud Systems with Runtime
Microservice Re-orchestration", Algorithms 1 and 2 and section V-A. All of them may break latency
limits; the referee reports it.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from placeopt.core.fronts.front import Front
from placeopt.core.task import Candidate, Task
from placeopt.rolling_update.arrays import UpdateArrays
from placeopt.rolling_update.instance import RollingUpdate
from placeopt.rolling_update.rules import kernels as rules

#: Readings of line 10 of Algorithm 1: the cluster with the lowest occupation, as the text has it,
#: or literally the one with the smallest share of free resources.
Reading = Literal["text", "argmin"]
#: Orders of the moves: Algorithm 2; at random among what fits; or one random order for all, in
#: which what does not fit at its turn is stopped.
MoveOrder = Literal["paper", "random", "random-strict"]
#: Microservices with tight flows that the chosen cluster has no room for join the rest; as printed,
#: Algorithm 1 forgets them (line 20), and they run on as they are.
Unplaced = Literal["join", "leave"]
#: Weights of three scores. NodeResourcesFit (most allocated) and NodeAffinity (cheap nodes) have
#: the default weights of kube-scheduler. PodAffinity (the cluster of the peers) is above both
#: together, as the paper gives it "high affinity values".
_FIT, _PRICE, _PEERS = 1.0, 2.0, 4.0


def two_phase(
    task: Task[RollingUpdate],
    *,
    reading: Annotated[
        Reading, Field(description="Clusters by occupation, or literally by line 10.")
    ] = "text",
    order: Annotated[
        MoveOrder,
        Field(
            description="Algorithm 2; at random among what fits; or strictly in one random order, "
            "in which what does not fit at its turn is stopped."
        ),
    ] = "paper",
    unplaced: Annotated[
        Unplaced,
        Field(description="Tight ones without room join the rest, or are left as printed."),
    ] = "join",
) -> Front:
    """Run the paper's two-phase heuristic."""
    rng = np.random.default_rng(task.seed)
    plan = two_phase_plan(task.problem, rng, reading, order, unplaced)
    facts = {"reading": reading, "order": order, "unplaced": unplaced}
    return front_of_one(task, "two-phase", plan, facts)


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


class _FreeNodes:
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


def two_phase_plan(
    problem: RollingUpdate,
    rng: np.random.Generator,
    reading: Reading = "text",
    order: MoveOrder = "paper",
    unplaced: Unplaced = "join",
) -> dict[str, Any]:
    """Return the plan of the paper's two-phase heuristic."""
    target, forgotten = _allocate(problem.arrays, reading, unplaced)
    return problem.plan(_ordered(problem.arrays, target, forgotten, rng, order))


def _allocate(a: UpdateArrays, reading: Reading, unplaced: Unplaced) -> tuple[np.ndarray, set[int]]:
    """Return the target nodes of Algorithm 1, shape (M,), and the microservices that it forgets.

    The nodes hold only what is not rescheduled at first. What fits nowhere keeps its node.
    """
    nodes, target = _FreeNodes(a, a.fixed_load), a.stays_on.copy()
    by_application: dict[str, list[int]] = {}
    for m in np.flatnonzero(a.movable).tolist():
        by_application.setdefault(a.names[m][0], []).append(m)
    left: list[int] = []
    forgotten: list[int] = []
    for members in by_application.values():
        left += [m for m in members if not a.tight_peers[m]]
        free, size = (
            np.array([x[a.cluster == c].sum(axis=0) for c in range(len(a.clusters))])
            for x in (nodes.free, nodes.scale)
        )
        score = (free / size).min(axis=1)
        cluster = int(score.argmax() if reading == "text" else score.argmin())
        for m in (m for m in members if a.tight_peers[m]):
            inside = nodes.fitting(m)
            if not _settle(nodes, m, inside[a.cluster[inside] == cluster], target):
                (left if unplaced == "join" else forgotten).append(m)
    share = (a.new / a.capacity.max(axis=0).clip(1)).max(axis=1)
    for m in sorted(left, key=lambda m: (-share[m], m)):
        if not _settle(nodes, m, nodes.fitting(m), target):
            nodes.take(a.home[m], a.new[m])
    return target, set(forgotten)


def _settle(nodes: _FreeNodes, m: int, choice: np.ndarray, target: np.ndarray) -> bool:
    """Put microservice m on the node of least price times free share; changes `target`.

    Of equals (free nodes) the fullest is taken. Returns False where `choice` is empty.
    """
    if len(choice) == 0:
        return False
    share = (nodes.free / nodes.scale).min(axis=1)[choice]
    n = int(choice[np.lexsort((share, nodes.arrays.price[choice] * share))[0]])
    nodes.take(n, nodes.arrays.new[m])
    target[m] = n
    return True


def _ordered(
    a: UpdateArrays,
    target: np.ndarray,
    forgotten: set[int],
    rng: np.random.Generator,
    order: MoveOrder,
) -> list[tuple[int, int]]:
    """Return the steps of Algorithm 2.

    The move that fits and takes the least share of the room is made; with `random`, any that fits;
    with `random-strict`, the next of a fixed random order. If nothing fits, the largest
    microservice is stopped; with `random-strict`, the next one. What was stopped is started when it
    fits, or when all else is done.
    """
    starts = a.starts_of(target)
    starts[list(forgotten)] = False
    todo = np.flatnonzero(starts)
    goal, home, new, old = target[todo], a.home[todo], a.new[todo], a.old[todo]
    bound_for = [np.flatnonzero(goal == n) for n in range(len(a.price))]
    sizes = [new[members] for members in bound_for]
    free = a.capacity - a.initial_load + a.load_of(a.removed & ~a.late, a.old)
    # The running one of least rank is stopped first: the largest, or the next of the fixed order.
    rank = -(old / a.capacity.max(axis=0).clip(1)).max(axis=1)
    if order == "random-strict":
        rank = rng.permutation(len(todo)).astype(float)
    left, running = np.ones(len(todo), dtype=bool), home != a.waiting
    score = np.empty(len(todo))  # share of the room on the goal, inf where there is none

    def look_at(n: int) -> None:
        members, room = bound_for[n], free[n]
        if len(members):
            shares = (sizes[n] / np.maximum(room, 1)).max(axis=1)
            fits = left[members] & (sizes[n] <= room).all(axis=1)
            score[members] = np.where(fits, shares, np.inf)

    for n in range(len(a.price)):
        look_at(n)
    steps = a.removals(late=False)
    while left.any():
        next_one = int(np.where(running, rank, np.inf).argmin())
        allowed = score
        if order == "random-strict":  # the next one, and what was stopped
            others = running & (np.arange(len(todo)) != next_one)
            allowed = np.where(others, np.inf, score)
        fitting = np.flatnonzero(allowed < np.inf)
        if len(fitting):
            k = _drawn(rng, left, fitting) if order == "random" else int(allowed.argmin())
            free[goal[k]] -= new[k]
            left[k] = False
            look_at(goal[k])
            steps.append((int(todo[k]), int(goal[k])))
        elif running.any():
            k = next_one
            steps.append((int(todo[k]), -1))
        else:
            steps += [(int(todo[k]), int(goal[k])) for k in np.flatnonzero(left)]
            break
        if running[k]:
            running[k] = False
            free[home[k]] += old[k]
            look_at(home[k])
    return steps + a.removals(late=True)


def _drawn(rng: np.random.Generator, left: np.ndarray, fitting: np.ndarray) -> int:
    """Return a random one of `fitting`, by number; a number is drawn for each that is left."""
    drawn = np.full(len(left), np.inf)
    drawn[left] = rng.random(int(left.sum()))
    return int(fitting[drawn[fitting].argmin()])


def rolling_update_plan(problem: RollingUpdate) -> dict[str, Any]:
    """Return the plan of a Kubernetes rolling update.

    Every microservice in turn is replaced, new copy first, where the scheduler puts it. A copy that
    fits nowhere waits until something else has moved; one that waits for ever changes nothing.
    """
    a = problem.arrays
    early = a.removed & ~a.late
    nodes = _FreeNodes(a, a.initial_load - a.load_of(early, a.old))
    where = np.where((a.home == a.waiting) | early, -1, a.home)
    return problem.plan(_around_removals(a, _scheduled_steps(nodes, where, a.old)))


def recreate_plan(problem: RollingUpdate) -> dict[str, Any]:
    """Return the plan that stops all reschedulable microservices, then schedules new copies."""
    a = problem.arrays
    nodes = _FreeNodes(a, a.fixed_load + a.load_of(a.late, a.old))
    where = np.where(a.fixed | a.late, a.home, -1)
    stops = [(m, -1) for m in np.flatnonzero(a.movable & (a.home != a.waiting)).tolist()]
    starts = _scheduled_steps(nodes, where, np.zeros_like(a.old))
    return problem.plan(_around_removals(a, stops + starts))


def _around_removals(a: UpdateArrays, steps: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return steps after what may be removed at once, and before what waits for them."""
    return [*a.removals(late=False), *steps, *a.removals(late=True)]


def _scheduled_steps(
    nodes: _FreeNodes, where: np.ndarray, freed: np.ndarray
) -> list[tuple[int, int]]:
    """Return the starts of all reschedulable microservices, in rounds until nothing fits.

    Parameters
    ----------
    nodes : _FreeNodes
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


def _scheduled(nodes: _FreeNodes, where: np.ndarray, m: int, count: np.ndarray) -> int:
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
