"""Whatever a document holds, a method looks at the clock; and what counts nothing has a clock."""

from __future__ import annotations

import importlib
import time
from typing import Any

import numpy as np
import pytest
from hands import Hand

import placeopt
from placeopt import registry
from placeopt.core import interfaces
from placeopt.core.budget import Budget
from placeopt.core.fronts.front import Front
from placeopt.core.runs.compiling import Clock
from placeopt.core.spec import DEFAULT_SECONDS
from placeopt.core.task import Task
from placeopt.portfolio import run_method
from placeopt.rescheduling import search as heuristics
from placeopt.rescheduling.encoder import shortest
from placeopt.rescheduling.problem import Rescheduling
from placeopt.rescheduling.search import blocks as pruning
from placeopt.rescheduling.search.blocks import PlanPruning
from placeopt.rolling_update.problem import RollingUpdate
from placeopt.temporal import search as levelling
from placeopt.temporal.pools import pool_of, served
from placeopt.temporal.problem import Temporal
from placeopt.temporal.search import sharded


def of_short_slots(parts: int, **sizes: int) -> Temporal:
    """Return an instance whose slots are cut into so many."""
    document = Temporal.generate(1, **sizes).to_document()
    document["horizon_slots"] *= parts
    document["slot_hours"] = document.get("slot_hours", 1.0) / parts
    for request in document["requests"]:
        request["duration_slots"] *= parts
    problem = registry.from_document(document)
    assert isinstance(problem, Temporal)
    return problem


# -- slots -----------------------------------------------------------------------------------------


def directly(genes: np.ndarray, instance: Any) -> np.ndarray:
    """Level the starts of one vector slot by slot, as the rule says."""
    result, load = genes.copy(), np.zeros((len(instance.offer), instance.horizon))
    for i in np.argsort(-instance.duration, kind="stable"):
        shares = np.zeros(len(load))
        pools = [
            pool_of.py_func(instance, result, r)
            for r in range(instance.first[i], instance.first[i + 1])
        ]
        if not served.py_func(instance, i) or any(
            instance.price[p, 1] >= instance.price[p, 0] * instance.horizon for p in pools
        ):
            continue
        for p in pools:
            shares[p] += (instance.demand[i] / np.maximum(instance.capacity[p], 1)).max()
        length = instance.duration[i]
        scores = []
        for start in range(instance.horizon - length + 1):
            window = load[:, start : start + length]
            scores.append(float(shares @ (window.max(axis=1) + 1e-3 * window.mean(axis=1))))
        best = next(k for k, score in enumerate(scores) if score <= min(scores) + 1e-9)
        result[i] = best
        load[:, best : best + length] += shares[:, None]
    return result


@pytest.mark.parametrize("seed", range(3))
def test_few_slots_are_levelled_one_by_one(seed: int) -> None:
    problem = Temporal.generate(seed, requests=12)
    encoder = interfaces.build_encoder(problem)
    X = encoder.sample(np.random.default_rng(seed), 4)
    assert problem.horizon_slots <= levelling.MAX_CELLS
    for before, after in zip(X, levelling.levelled(X, encoder.arrays), strict=True):
        assert (after == directly(before, encoder.arrays)).all()


@pytest.mark.parametrize("parts", [5, 7, 60])
def test_short_slots_are_levelled_in_cells(parts: int) -> None:
    """All starts are legal, and the load is about as level as with long slots."""
    problem = of_short_slots(parts, requests=20)
    encoder = interfaces.build_encoder(problem)
    X = levelling.levelled(encoder.sample(np.random.default_rng(1), 20), encoder.arrays)
    assert (X >= encoder.lower).all() and (X <= encoder.upper).all()


def test_the_work_of_levelling_does_not_grow_with_the_slots() -> None:
    """By ratio: 240 times the slots took 3,600 times the time and more."""
    taken = []
    for parts in (4, 960):
        encoder = interfaces.build_encoder(of_short_slots(parts, requests=30))
        X = encoder.sample(np.random.default_rng(1), 30)
        levelling.levelled(X, encoder.arrays)
        began = time.process_time()
        for _ in range(5):
            levelling.levelled(X, encoder.arrays)
        taken.append(time.process_time() - began)
    assert taken[1] < 30 * taken[0]


# -- vectors for weights ---------------------------------------------------------------------------


def test_vectors_for_weights_end_with_the_time() -> None:
    """Without a limit, and with time enough, there are all of them; out of time the first ones."""
    problem = placeopt.load("aws-10")
    encoder = interfaces.build_encoder(problem)
    weights = sharded.weight_lattice(3, seeds=True)[::5]
    every = interfaces.vectors_at(encoder, weights)
    assert (interfaces.vectors_at(encoder, weights, Budget()) == every).all()
    enough = Budget(seconds=10, clock=Clock(Hand()))
    assert (interfaces.vectors_at(encoder, weights, enough) == every).all()
    over = Budget(seconds=1, clock=Clock(Hand(tick=2)))
    few = interfaces.vectors_at(encoder, weights, over)
    assert 0 < len(few) <= 4 * interfaces.WEIGHTS_TOGETHER
    known = set(map(tuple, every.tolist()))
    assert all(tuple(row) in known for row in few.tolist())


def test_vectors_to_start_from_are_evaluated_until_the_time_is_over() -> None:
    problem = placeopt.load("aws-10")
    encoder = interfaces.build_encoder(problem)
    rng = np.random.default_rng(1)
    starts = encoder.sample(rng, 1000)
    weights = sharded.weight_lattice(3)
    over = Budget(seconds=1, clock=Clock(Hand(tick=2)))
    sharded.search(encoder, weights, starts, rng, over)
    assert over.evaluations == sharded.BLOCK
    whole = Budget(evaluations=1000)
    sharded.search(encoder, weights, starts, rng, whole)
    assert whole.evaluations == 1000


# -- methods that count no evaluations -------------------------------------------------------------

PROOFS = {
    "temporal": ("bin-plans", Temporal.generate(1, requests=2, max_replicas=1)),
    "rolling-update": ("decomposition", RollingUpdate.generate(1, applications=2)),
    "rescheduling": ("epsilon-constraint", Rescheduling.generate(1, replicas=1)),
}


def budget_of(monkeypatch: pytest.MonkeyPatch, kind: str) -> list[Budget]:
    """Return a list that the budgets of a problem's proof are put into; nothing is proven."""
    method, _ = PROOFS[kind]
    seen: list[Budget] = []

    def proof(task: Task[Any]) -> Front:
        seen.append(task.budget)
        return task.front([], method=method)

    module, _, name = registry.method(method).of[kind].entry.partition(":")
    monkeypatch.setattr(importlib.import_module(module), name, proof)
    return seen


@pytest.mark.parametrize("kind", PROOFS)
@pytest.mark.parametrize("limits", [{}, {"evaluations": 600}, {"evaluations": 10**9}])
def test_a_proof_without_seconds_has_its_own(
    kind: str, limits: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = budget_of(monkeypatch, kind)
    method, problem = PROOFS[kind]
    run_method(method, Task(problem, budget=Budget(**limits)), {})
    assert [budget.seconds_limit for budget in seen] == [DEFAULT_SECONDS]


@pytest.mark.parametrize("kind", ["temporal", "rescheduling"])
def test_a_proof_within_an_ensemble_has_them_too(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = budget_of(monkeypatch, kind)
    method, problem = PROOFS[kind]
    placeopt.solve(problem, "ensemble", methods=f"greedy,{method}", evaluations=500)
    placeopt.solve(problem, "ensemble", methods=f"greedy,{method}")
    assert [budget.seconds_limit for budget in seen] == [DEFAULT_SECONDS] * 2


@pytest.mark.parametrize("budgets", [{}, {"evaluations": [500]}])
def test_a_proof_within_a_sweep_has_them_too(
    budgets: dict[str, list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = budget_of(monkeypatch, "rescheduling")
    drawn = {"problem": "rescheduling", "seed": 1, "replicas": 1}
    placeopt.sweep({"instances": [drawn], "methods": ["epsilon-constraint"], **budgets})
    assert [budget.seconds_limit for budget in seen] == [DEFAULT_SECONDS]


def test_a_time_limit_of_the_user_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorter or longer; and a search that counts evaluations gets no seconds."""
    seen = budget_of(monkeypatch, "rescheduling")
    problem = PROOFS["rescheduling"][1]
    for seconds in (1.0, 500.0):
        run_method("epsilon-constraint", Task(problem, budget=Budget(seconds=seconds)), {})
    assert [budget.seconds_limit for budget in seen] == [1.0, 500.0]
    front = placeopt.solve(problem, "moead", evaluations=100)
    assert front.runs[0].completed  # of a run with a time limit it is not known


def test_the_share_of_a_whole_without_seconds_ends_by_its_own() -> None:
    hand = Hand()
    whole = Budget(evaluations=100, clock=Clock(hand))
    share = whole.share(evaluations=100, seconds=5)
    share.spend(10)
    assert whole.evaluations == 10 and not share.exhausted
    hand.passes(6)
    assert share.out_of_time and share.exhausted and not whole.exhausted
    assert Budget(seconds=2, clock=Clock(hand)).share(seconds=5).seconds_limit == 2


# -- rescheduling: moves that save too little ------------------------------------------------------


def moved(problem: Rescheduling, count: int) -> list[tuple[int, int, int]]:
    """Return different moves with room, one after another."""
    t, counts, moves = problem.arrays, problem.arrays.home.copy(), []
    for i, u in np.argwhere(t.home).tolist():
        free = t.capacity - counts.T @ t.demand
        targets = np.flatnonzero((free >= t.demand[i]).all(axis=1)).tolist()
        if len(moves) < count and (v := next((v for v in targets if v != u), None)) is not None:
            counts[i, u] -= 1
            counts[i, v] += 1
            moves.append((i, u, v))
    return moves


def test_combinations_of_moves_end_with_the_time() -> None:
    problem = Rescheduling.generate(1, application="random", services=14, replicas=1)
    moves = moved(problem, 13)
    assert 2 ** len(moves) > pruning._CHUNK
    over = Budget(seconds=1, clock=Clock(Hand(tick=2)))
    assert PlanPruning(problem, 0.5, over).reduce(moves)[0] is None
    enough = Budget(seconds=1, clock=Clock(Hand()))
    assert PlanPruning(problem, 0.5, enough).reduce(moves) == PlanPruning(problem, 0.5).reduce(
        moves
    )


def test_steps_end_with_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = Rescheduling.generate(1, application="random", services=14, replicas=1)
    moves = moved(problem, 13)
    monkeypatch.setattr(pruning, "EXHAUSTIVE", 1)
    over = Budget(seconds=1, clock=Clock(Hand(tick=2)))
    assert PlanPruning(problem, 0.5, over).reduce(moves)[0] is None
    assert PlanPruning(problem, 0.5).reduce(moves)[0] is not None


def test_the_search_for_an_order_ends_when_it_is_told() -> None:
    problem = Rescheduling.generate(1, application="random", services=14, replicas=1)
    target = problem.arrays.home.copy()
    for i, u, v in moved(problem, 3):
        target[i, u], target[i, v] = target[i, u] - 1, target[i, v] + 1
    assert shortest(problem.arrays, target, stop=lambda: True) == (None, False)
    assert shortest(problem.arrays, target)[0] is not None


def test_min_gain_leaves_plans_out_and_not_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """The search has half of the time; of the plans that there is time for every move saves."""
    problem = Rescheduling.generate(1, application="random", services=20)
    hand = Hand(tick=0.01)
    given: list[Budget] = []
    search = heuristics.BlockSearch

    def watched(problem: Rescheduling, budget: Budget, *more: Any) -> Any:
        given.append(budget)
        return search(problem, budget, *more)

    monkeypatch.setattr(heuristics, "BlockSearch", watched)
    budget = Budget(seconds=10, clock=Clock(hand))
    front = placeopt.solve(problem, "block-search", budget=budget, min_gain_ms=0.5)
    assert given[0].seconds_limit is not None and given[0].seconds_limit < 6
    assert budget.seconds < 12
    for point in front:
        plan, _ = PlanPruning(problem, 0.5).reduce(
            [tuple(m) for m in _numbers(problem, point.plan["moves"])]
        )
        assert plan is not None and len(plan) == len(point.plan["moves"])


def _numbers(problem: Rescheduling, moves: list[dict[str, Any]]) -> list[tuple[int, int, int]]:
    services = [service.name for service in problem.services]
    nodes = problem.node_numbers
    return [(services.index(m["service"]), nodes[m["from"]], nodes[m["to"]]) for m in moves]


def test_the_script_of_many_slots_is_small_here() -> None:
    """Slots of a minute in place of an hour: a search in parts starts from few vectors in time."""
    problem = of_short_slots(60, requests=50)
    hand = Hand(tick=0.005)
    budget = Budget(seconds=5, clock=Clock(hand))
    front = placeopt.solve(problem, "sharded", budget=budget)
    assert budget.seconds < 10
    assert len(front) >= 10
