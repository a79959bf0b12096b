"""The two-phase heuristic of the re-orchestration paper: allocation, then order.

M. Zambianco, S. Cretti, D. Siracusa, "Cost Minimization in Multi-cloud Systems with Runtime
Microservice Re-orchestration", Algorithms 1 and 2. It may break latency limits; the referee reports
it.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from placeopt.core.fronts.front import Front
from placeopt.core.spec import Method
from placeopt.core.task import Task
from placeopt.rolling_update.arrays import UpdateArrays
from placeopt.rolling_update.problem import RollingUpdate
from placeopt.rolling_update.schemes import FreeNodes, front_of_one

#: Readings of line 10 of Algorithm 1: the cluster with the lowest occupation, as the text has it,
#: or literally the one with the smallest share of free resources.
Reading = Literal["text", "argmin"]
#: Orders of the moves: Algorithm 2; at random among what fits; or one random order for all, in
#: which what does not fit at its turn is stopped.
MoveOrder = Literal["paper", "random", "random-strict"]
#: Microservices with tight flows that the chosen cluster has no room for join the rest; as printed,
#: Algorithm 1 forgets them (line 20), and they run on as they are.
Unplaced = Literal["join", "leave"]
METHOD = Method(
    "two-phase",
    "placeopt_papers.two_phase:two_phase",
    "the allocation and ordering of the re-orchestration paper",
    problems=("rolling-update",),
    role="published",
)


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
    nodes, target = FreeNodes(a, a.fixed_load), a.stays_on.copy()
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


def _settle(nodes: FreeNodes, m: int, choice: np.ndarray, target: np.ndarray) -> bool:
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
