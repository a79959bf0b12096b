"""Quick answers to rescheduling: block search, best improvement, and the paper's schedulers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import numpy as np
from pydantic import Field

from placeopt.core.budget import Budget
from placeopt.core.fronts.front import Front
from placeopt.core.goals import fewest
from placeopt.core.task import Candidate, Task
from placeopt.rescheduling.arrays import ReschedulingArrays
from placeopt.rescheduling.encoder import Moves, ReschedulingEncoder
from placeopt.rescheduling.problem import Rescheduling
from placeopt.rescheduling.search.blocks import BlockSearch, PlanPruning

#: Share of a time limit that the search has where plans are then rid of moves that save too little.
SEARCH_SHARE = 0.5
#: Evaluations of the block search that seeds other searches.
_SEED_EVALUATIONS = 1_000_000


def block_search(
    task: Task[Rescheduling],
    *,
    max_moves: Annotated[
        int | None, Field(ge=0, le=1_000_000, description="Moves of a plan, at most.")
    ] = None,
    min_gain_ms: Annotated[
        float,
        Field(
            ge=0,
            le=1e9,
            allow_inf_nan=False,
            description="ms that every move saves: no moves of a plan can be left out for less.",
        ),
    ] = 0.0,
) -> Front:
    """Move blocks of services between the two halves of the continuum, then single replicas.

    Single moves do not cross the latency between cloud and edge: a service that moves alone pays it
    twice. With up to five services every vector of stay, one half, the other half is tried, and
    with up to ten where there is a time limit; otherwise a beam goes along the call graph. Descents
    begin there, and moves are taken back one by one. The best plan of every number of moves is
    kept, in an order that has room for every move. Nothing is random. An evaluation is a
    deployment.

    That plans keep `min_gain_ms` is proven up to 65,536 combinations of moves and looked for
    beyond; see `placeopt.rescheduling.search.blocks`.
    """
    max_moves = fewest(max_moves, task.problem.goal_limits.get("moves"))
    budget = task.budget
    if min_gain_ms and budget.seconds_limit is not None:
        budget = budget.share(SEARCH_SHARE, budget.evaluations_left)
    search = BlockSearch(task.problem, budget, max_moves)
    completed = search.run(in_time=task.budget.seconds_limit is not None)
    plans = _worthwhile_plans(task.problem, search.plans(), min_gain_ms, task.budget)
    completed = completed and not (min_gain_ms and task.budget.out_of_time)
    return task.front(
        [Candidate(task.problem.plan(moves)) for moves in plans],
        method="block-search",
        completed=completed,
        parameters={"max_moves": max_moves, "min_gain_ms": min_gain_ms},
        libraries=("numba", "numpy"),
    )


def _worthwhile_plans(
    problem: Rescheduling, plans: dict[int, tuple[float, np.ndarray]], gain: float, budget: Budget
) -> list[Moves]:
    """Return plans of which every move saves `gain` ms.

    They save it over every plan with fewer moves, and over what is left if any moves are left out.
    A plan that there is no time to look at is left out.
    """
    if gain == 0:
        return [moves.tolist() for _, moves in plans.values()]
    kept = worthwhile({k: latency for k, (latency, _) in plans.items()}, gain)
    pruning, best = PlanPruning(problem, gain, budget), dict[int, tuple[float, Moves]]()
    for k in sorted(kept):
        moves, _ = pruning.reduce(plans[k][1].tolist())
        if moves is None:
            break
        latency = problem.evaluate(problem.plan(moves)).values[0]
        if latency < best.get(len(moves), (np.inf, []))[0]:
            best[len(moves)] = (latency, moves)
    kept = worthwhile({k: latency for k, (latency, _) in best.items()}, gain)
    return [best[k][1] for k in sorted(kept)]


def worthwhile(latency: dict[int, float], gain: float) -> set[int]:
    """Return the numbers of moves that gain at least `gain` ms a move over every smaller one."""
    return {
        k
        for k, ms in latency.items()
        if all(latency[fewer] - ms >= gain * (k - fewer) - 1e-9 for fewer in latency if fewer < k)
    }


def greedy(task: Task[Rescheduling]) -> Front:
    """Make the move that makes requests fastest, again and again; every plan on the way counts."""
    search = BlockSearch(task.problem, task.budget)
    completed = search.improve()
    plans = [task.problem.plan(moves.tolist()) for _, moves in search.plans().values()]
    return task.front(
        map(Candidate, plans), method="greedy", completed=completed, libraries=("numba", "numpy")
    )


def seeds(
    encoder: ReschedulingEncoder, rng: np.random.Generator, seconds: float | None = None
) -> np.ndarray:
    """Return vectors of the plans that block search finds, shape (k, num_genes)."""
    search = BlockSearch(encoder.problem, Budget(_SEED_EVALUATIONS, seconds))
    search.run()
    results = [encoder.encode_counts(search.end_of(k)) for k in search.plans()]
    return np.array(results, dtype=np.int64)


# -- schedulers: every replica in turn, where the scheduler would put it ---------------------------

#: ``score(instance, service, room after the replica has arrived)``, shape (N,); the least is taken.
Score = Callable[[ReschedulingArrays, int, np.ndarray], np.ndarray]


def _scheduled(task: Task[Rescheduling], method: str, score: Score) -> Front:
    """Return the front of one plan: every replica in turn goes where the score is least."""
    problem, instance = task.problem, task.problem.arrays
    free = instance.capacity - instance.home.T @ instance.demand
    moves = []
    for i, service in enumerate(problem.services):
        demand = instance.demand[i]
        for source in (problem.node_numbers[name] for name in service.replicas):
            room = free - demand
            room[source] += demand
            scores = np.where((room >= 0).all(axis=1), score(instance, i, room), np.inf)
            target = int(scores.argmin())
            if scores[target] < scores[source]:
                moves.append((i, source, target))
                free[source] += demand
                free[target] -= demand
    task.budget.spend(1)
    return task.front([Candidate(problem.plan(moves))], method=method, libraries=("numpy",))


def kubernetes(task: Task[Rescheduling]) -> Front:
    """Place every replica anew on the node whose cpu and memory are least in use.

    That is the spreading of the default scheduler.
    """
    return _scheduled(
        task,
        "kubernetes",
        lambda instance, _, room: -(room / np.maximum(instance.capacity, 1)).sum(axis=1),
    )


def cloud_first(task: Task[Rescheduling]) -> Front:
    """Place every replica anew where it runs fastest: the paper's Cloud-First."""
    return _scheduled(task, "cloud-first", lambda instance, service, _: instance.execution[service])


def latency_greedy(task: Task[Rescheduling]) -> Front:
    """Place every replica anew where users are nearest: the paper's Latency-Greedy."""
    return _scheduled(task, "latency-greedy", lambda instance, *_: instance.user)
