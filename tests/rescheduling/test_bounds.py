"""Bounds of rescheduling: below every deployment that so many moves reach, and near to it."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from effort import tries
from rescheduling_states import state_search

import placeopt
from placeopt.core.budget import Budget
from placeopt.registry import certifier
from placeopt.rescheduling import bounds
from placeopt.rescheduling.bounds import least_latencies, relaxation, sharpened
from placeopt.rescheduling.bounds.tree import LatencyQuestion, Workspace
from placeopt.rescheduling.generator import APPLICATIONS
from placeopt.rescheduling.problem import Rescheduling

certify = certifier("rescheduling")
SMALL = {"cloud_a": 1, "edge_a": 1, "edge_b": 2}


def instance(seed: int, replicas: int = 1) -> Rescheduling:
    """Chains, aggregators and random graphs; every second one has little room."""
    document = Rescheduling.generate(
        seed,
        application=[*APPLICATIONS, "random"][seed % 4],
        replicas=replicas,
        services=4,
        jitter=0.3 * (seed % 3 == 0),
        **SMALL,
    ).to_document()
    if seed % 2:
        document["nodes"][0]["cpu_cores"] = 2.5
        hosted = [s for s in document["services"] if document["nodes"][0]["name"] in s["replicas"]]
        document["nodes"][0]["cpu_cores"] += sum(s["cpu_cores"] * replicas for s in hosted)
    if seed % 5 == 0:  # a diamond: the last service has two callers
        first, second, third, last = (s["name"] for s in document["services"])
        calls = {first: [[second], [third]], second: [[last]], third: [[last]], last: []}
        for service in document["services"]:
            service["calls"] = calls[service["name"]]
    return Rescheduling.from_document(document)


def dense(seed: int) -> Rescheduling:
    """A graph in which most services have several callers, and some are not reached."""
    rng = np.random.default_rng(seed)
    document = Rescheduling.generate(
        seed, application="random", replicas=1, services=5, jitter=0.8, **SMALL
    ).to_document()
    names = [service["name"] for service in document["services"]]
    for k, service in enumerate(document["services"]):
        later, groups = names[k + 1 :], int(rng.integers(0, 3))
        sizes = [min(len(later), int(rng.integers(1, 3))) for _ in range(groups)]
        service["calls"] = [rng.permutation(later)[:size].tolist() for size in sizes if size]
    return Rescheduling.from_document(document)


@cache
def best(seed: int, replicas: int = 1) -> list[tuple[float, float]]:
    """Return the exact front of an instance."""
    return state_search(instance(seed, replicas))


def require_below(seed: int, replicas: int = 1) -> float:
    """Every point of the exact front lies on or above its bound; return the mean shortfall."""
    problem, short = instance(seed, replicas), []
    latency = least_latencies(problem)
    for exact, moves in best(seed, replicas):
        least = latency[min(int(moves), len(latency) - 1)]
        assert least <= exact
        short.append(1 - least / exact)
    assert (np.diff(latency) <= 0).all() and latency[0] == problem.initial_latency
    return float(np.mean(short))


@pytest.mark.parametrize("cells", [relaxation._MAX_CELLS, 3000, 1])
def test_no_state_is_below(cells: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Against all deployments, with a class for each node, with a few, with one."""
    monkeypatch.setattr(relaxation, "_MAX_CELLS", cells)
    short = [require_below(seed) for seed in range(tries(4, 20))]
    short += [require_below(seed, 2) for seed in (0, 5, 7)[: tries(1, 3)]]
    limit = {relaxation._MAX_CELLS: 0.01, 3000: 0.05, 1: 0.9}[cells]
    assert np.mean(short) < limit


@pytest.mark.parametrize("seed", range(tries(12, 40)))
def test_prices_bound_every_plan(seed: int) -> None:
    """Against all deployments: shared callees, parallel groups, full nodes, classes of nodes."""
    problem = dense(seed) if seed % 3 == 1 else instance(seed, 1 + (seed % 4 == 3))
    states = {int(moves): exact for exact, moves in state_search(problem)}
    relaxed = bounds._relaxation(problem)
    first = np.zeros(relaxed.most + 2)
    targets = {min(m, relaxed.most + 1): exact for m, exact in states.items() if m}
    least = sharpened(relaxed, first, targets, Budget(evaluations=1))
    for m, exact in states.items():
        assert (least[m:] <= exact * (1 + 1e-12)).all()
    assert not targets or (least[1 : max(targets) + 1] > 0).all()


def test_parts_stay_below_every_plan() -> None:
    """More is looked for than is true: no part that holds the best plan may be left out."""
    parts = 0
    for seed in range(tries(8, 24)):
        problem = dense(seed) if seed % 2 else instance(seed, 1 + (seed % 4 == 2))
        space = Workspace(bounds._relaxation(problem))
        for exact, moves in state_search(problem)[1:]:
            question = LatencyQuestion(space, int(moves), exact, 1.1 * exact, None)
            while not question.ended and question.parts < 60:
                question.go_on()
            assert question.bound <= exact * (1 + 1e-12)
            assert question.bound > 0.99 * exact
            parts += question.parts
    assert parts > 40


def test_few_moves_are_looked_at_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plans of more moves share the last bound."""
    monkeypatch.setattr(bounds, "_MAX_MOVES", 2)
    for seed in range(tries(4, 12)):
        assert len(least_latencies(instance(seed))) == 4
        require_below(seed)


@pytest.mark.parametrize("names", [None, ["latency_ms"], ["moves"], ["moves", "latency_ms"]])
def test_every_choice_of_goals_has_a_gap(names: list[str] | None) -> None:
    problem = instance(3, 2)
    front = placeopt.solve(problem, objectives=names, certify=True)
    gap = front.gap()
    assert gap is not None and 0 <= gap < 0.05
    assert all(point.status in ("optimal", "bounded") for point in front)


def test_testbeds_are_nearly_closed() -> None:
    """On the testbed and on 18 machines, where every class has six nodes."""
    larger = {"replicas": 6, "cloud_a": 6, "edge_a": 6, "edge_b": 6}
    for seed, sizes, most in ((961, {}, 0.005), (962, larger, 0.01)):
        problem = Rescheduling.generate(seed, **sizes)
        front = certify(problem, placeopt.solve(problem), Budget(seconds=1))
        gap = front.gap()
        assert gap is not None and gap < most


def test_hundreds_of_services_are_bounded() -> None:
    """Their tables stay small: fewer classes, fewer moves one by one."""
    problem = Rescheduling.generate(1, application="random", services=300, cloud_a=150)
    latency = least_latencies(problem)
    assert 3 < len(latency) and 0 < latency[-1] < problem.initial_latency
