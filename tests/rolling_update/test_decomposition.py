"""Decomposition: against the time-indexed model, and against all plans of tiny instances."""

from __future__ import annotations

import heapq
from typing import Any

import numpy as np
import pytest
from effort import tries

from placeopt.core.budget import Budget
from placeopt.core.fronts.dominance import minimal
from placeopt.core.fronts.front import Front
from placeopt.core.task import Task
from placeopt.exact import epsilon_constraint
from placeopt.registry import certifier
from placeopt.rolling_update.bounds import bound_vectors
from placeopt.rolling_update.decomposition import decomposition
from placeopt.rolling_update.problem import RollingUpdate
from placeopt.rolling_update.repack import repack

certify = certifier("rolling-update")


def tiny(seed: int, most: int = 5) -> RollingUpdate:
    """Return a few microservices, which grow or shrink, on 3 or 4 nodes of several prices."""
    rng = np.random.default_rng(seed)
    nodes = [
        {
            "name": f"n{k}",
            "cluster": f"c{rng.integers(2)}",
            "cpu_millicores": int(rng.choice([8, 10])),
            "memory_mib": int(rng.choice([9, 100])),
        }
        | {"price": float(rng.choice([0.0, 1.0, 1.0, 1.5])), "drain": bool(rng.random() < 0.05)}
        for k in range(int(rng.integers(3, 5)))
    ]
    count = int(rng.integers(3, most + 1))
    services = []
    for k in range(count):
        m: dict[str, Any] = {"name": f"m{k}", "node": f"n{rng.integers(len(nodes))}"}
        m |= {"cpu_millicores": int(rng.integers(1, 6)), "memory_mib": int(rng.integers(1, 6))}
        if rng.random() < 0.5:
            m |= {"new_cpu_millicores": int(rng.integers(1, 6)), "pinned": bool(rng.random() < 0.1)}
        services.append(m)
    half = count // 2
    applications = [
        {"name": "a", "microservices": services[:half], "flows": [], "reschedulable": True},
        {
            "name": "b",
            "microservices": services[half:],
            "flows": [
                {
                    "from": f"m{half}",
                    "to": f"m{half + 1}",
                    "max_latency_ms": float(rng.choice([10, 90])),
                }
            ],
        },
    ]
    if rng.random() < 0.2:
        applications[0] |= {
            "reschedulable": False,
            "microservices": [
                {k: v for k, v in m.items() if k[:3] != "new"} for m in services[:half]
            ],
        }
    document = {
        "problem": "rolling-update",
        "name": "tiny",
        "nodes": nodes,
        "applications": applications,
    }
    return RollingUpdate.from_document(
        document
        | {"cluster_latency_ms": {"c0": {"c1": 50.0}}, "semantics": ("stay", "strict")[seed % 2]}
    )


class Exhaustive:
    """All plans: every copy may start anywhere it fits, or be stopped, at any moment.

    Each state is labelled with the lowest starts and stops that lead to it.
    """

    def __init__(self, problem: RollingUpdate, most_starts: int):
        self.problem, self.a, self.most = problem, problem.arrays, most_starts
        self.home = tuple(self.a.home.tolist())
        self.labels: dict[Any, list[tuple[int, int]]] = {
            (self.home, (False,) * len(self.home)): [(0, 0)]
        }

    def front(self) -> list[list[float]]:
        """Return the non-dominated (cost, starts, stops)."""
        found = []
        heap: list[Any] = [(0, 0, next(iter(self.labels)))]
        while heap:
            starts, stops, state = heapq.heappop(heap)
            if (starts, stops) not in self.labels[state]:
                continue
            cost = self._cost(*state)
            if cost is not None:
                found.append((cost, float(starts), float(stops)))
            for more_starts, more_stops, after in self._next(*state):
                label = (starts + more_starts, stops + more_stops)
                known = self.labels.setdefault(after, [])
                if (
                    label[0] <= self.most
                    and label[1] <= 2
                    and not any(x <= label[0] and y <= label[1] for x, y in known)
                ):
                    self.labels[after] = [
                        (x, y) for x, y in known if x < label[0] or y < label[1]
                    ] + [label]
                    heapq.heappush(heap, (*label, after))
        return minimal(sorted(found)).tolist() if found else []

    def _load(self, where: Any, renewed: Any) -> np.ndarray:
        load = np.zeros_like(self.a.capacity)
        for m, n in enumerate(where):
            if n >= 0:
                load[n] += (self.a.new if renewed[m] else self.a.old)[m]
        return load

    def _next(self, where: Any, renewed: Any) -> Any:
        room = self.a.capacity - self._load(where, renewed)
        for m in np.flatnonzero(self.a.movable).tolist():
            if where[m] >= 0:
                yield 0, 1, ((*where[:m], -1, *where[m + 1 :]), renewed)
            for n in [self.home[m]] if self.a.pinned[m] else range(len(room)):
                if not self.a.drain[n] and (self.a.new[m] <= room[n]).all():
                    yield (
                        1,
                        0,
                        ((*where[:m], n, *where[m + 1 :]), (*renewed[:m], True, *renewed[m + 1 :])),
                    )

    def _cost(self, where: Any, renewed: Any) -> float | None:
        a = self.a
        if (
            min(where) < 0
            or (self._load(where, renewed) > a.capacity).any()
            or a.drain[list(where)].any()
        ):
            return None
        if (a.mandatory & ~np.array(renewed)).any():
            return None
        for m, p, limit in a.flows:
            if a.latency[a.cluster[where[m]], a.cluster[where[p]]] > limit:
                return None
        return float(a.price[list(set(where))].sum() / a.price_scale)


def run(problem: RollingUpdate, names: list[str] | None = None, **parameters: Any) -> Front:
    return decomposition(Task(problem, problem.select(names), Budget(), 0), **parameters)


def undisturbed(front: Front, problem: RollingUpdate) -> list[tuple[float, ...]]:
    return [p.values for p in front.points if problem.evaluate(p.plan).values[2] == 0]


@pytest.mark.parametrize("seed", range(8))
def test_direct_orders_have_the_front_of_the_time_indexed_model(seed: int) -> None:
    """Both semantics, both solvers, sizes that grow and shrink; with hops never dearer."""
    problem = tiny(seed, most=5 if seed % 8 == 4 else 4)
    pair = ["node_cost", "starts"]
    solver = ("highs", "scip")[seed // 2 % 2]
    reference = epsilon_constraint.run(Task(problem, problem.select(pair), Budget()), solver=solver)
    direct = undisturbed(run(problem, pair, max_hops=0, solver=solver), problem)
    assert direct == [p.values for p in reference.points if p.method == "epsilon-constraint"]
    hops = undisturbed(run(problem, pair, solver=solver), problem)
    assert all(any(h[0] <= d[0] and h[1] <= d[1] for h in hops) for d in direct)
    cheapest = undisturbed(run(problem, ["node_cost"], max_hops=0, solver=solver), problem)
    assert [v[0] for v in cheapest] == [v[0] for v in direct[:1]]


@pytest.mark.parametrize("seed", range(100, 110))
def test_the_front_and_its_bounds_against_all_plans(seed: int) -> None:
    """Bounds lie below every plan; `optimal` is true; without stops the front is complete."""
    problem = tiny(seed, most=4)
    truth = Exhaustive(problem, len(problem.arrays.home) + 2).front()
    front = run(problem)
    bounds = np.array(front.bounds)
    assert bool(front.points) == bool(truth)
    for values in truth:
        assert (bounds <= np.array(values) + 1e-9).all(axis=1).any()
        floors = bound_vectors(problem, problem.objectives)
        assert (floors <= np.array(values) + 1e-9).all(axis=1).any()
    for point in front.points:
        assert point.status in ("optimal", "bounded")
        assert point.status == "bounded" or list(point.values) in truth
    assert [list(v) for v in undisturbed(front, problem)] == [v for v in truth if v[2] == 0]


@pytest.mark.parametrize("clusters", [2, 4])
def test_the_papers_instances_are_solved_to_a_proof(clusters: int) -> None:
    for seed in range(tries(3, 12)):
        problem = RollingUpdate.generate(seed, clusters=clusters)
        front = run(problem, ["node_cost"])
        assert [p.status for p in front.points] == ["optimal"]
        assert front.bounds == ((8.0,),)
        verdict = problem.evaluate(front.points[0].plan)
        assert verdict.feasible
        assert (verdict.values[0], verdict.values[2]) == (8.0, 0.0)
        steps = problem.steps(front.points[0].plan)
        assert len({m for m, _ in steps}) == len(steps), "a direct order"


def test_the_whole_front_of_a_paper_instance() -> None:
    problem = RollingUpdate.generate(6)
    front = run(problem)
    assert len(front.points) == 5
    assert all(p.status == "optimal" for p in front.points)
    assert {p.values for p in front.points} == set(front.bounds)
    assert front.gap() == 0


def test_a_certificate_of_a_large_front_looks_for_no_plans(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = RollingUpdate.generate(0, microservices=40, nodes=20)
    front = repack(Task(problem, problem.objectives, Budget(), 1), restarts=2)
    monkeypatch.setattr("placeopt.rolling_update.decomposition.MAX_COEFFICIENTS", 0)
    monkeypatch.setattr("placeopt.rolling_update.repack.Consolidation", None)
    certified = certify(problem, front, Budget())
    assert certified.bounds == front.bounds
    assert [p.values for p in certified.points] == [p.values for p in front.points]
    assert sum(p.status == "optimal" for p in certified.points) > 3


def test_a_quick_front_gets_a_certificate() -> None:
    problem = tiny(3)
    quick = repack(Task(problem, problem.objectives, Budget(), 0))
    proven = certify(problem, quick, Budget())
    assert [p.values for p in proven.points] == [p.values for p in quick.points]
    assert proven.bounds == run(problem).bounds
    assert {p.status for p in proven.points} <= {"optimal", "bounded"}
    assert proven.runs[-1].method == "certify"


def test_what_has_no_answer_says_why() -> None:
    document = tiny(0).to_document()
    document["applications"][0]["microservices"][0] |= {"new_cpu_millicores": 500}
    document["applications"][0]["reschedulable"] = True
    front = run(RollingUpdate.from_document(document))
    assert not front.points
    assert front.rejected is not None
    assert any("which no node has" in reason for reason in front.reasons)


def test_time_that_runs_out_leaves_the_quick_plans() -> None:
    problem = RollingUpdate.generate(1)
    front = decomposition(Task(problem, problem.objectives, Budget(seconds=0.05), 0))
    assert front.points or front.rejected is not None
    assert front.bounds


def test_moves_that_do_not_pay_are_left_out() -> None:
    problem = RollingUpdate.generate(1, applications=6)
    every = [p.values for p in run(problem).points]
    kept = [p.values for p in run(problem, min_saving_per_move=0.5, max_moves=10).points]
    some = [v for v in every if v[1] <= 10]
    assert kept == [
        v for v in some if all(w[0] - v[0] >= 0.5 * (v[1] - w[1]) for w in some if w[1] < v[1])
    ]
    assert [p.values for p in run(problem, ["node_cost"], max_moves=8).points] == [
        min(v[:1] for v in every if v[1] <= 8)
    ]
