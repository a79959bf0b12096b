"""Bounds of multi-cluster: every plan that there is lies above one of them."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from effort import tries
from hypothesis import given
from hypothesis import strategies as st
from multi_cluster_instances import attainable, instance
from scipy.optimize import linprog

import placeopt
from placeopt.core.budget import Budget
from placeopt.multi_cluster import bounds
from placeopt.multi_cluster.bounds import lower_bounds, prices
from placeopt.multi_cluster.bounds.sharing import Requests, Sharing
from placeopt.multi_cluster.problem import MultiCluster
from placeopt.multi_cluster.search.placement import PlacementEncoder
from placeopt.registry import certifier

certify = certifier("multi-cluster")


@cache
def attainable_of(seed: int) -> np.ndarray:
    return attainable(instance(seed))


def require_below(vectors: np.ndarray, values: np.ndarray) -> None:
    below = (vectors[None] <= values[:, None]).all(axis=2).any(axis=1)
    assert below.all(), values[~below][0]


@pytest.mark.parametrize("seconds", [1e-9, tries(1, 3)])
def test_no_plan_is_below(seconds: float) -> None:
    """Against all plans of four requests, by closed forms and by linear programs."""
    used = 0
    for seed in range(tries(2, 4)):
        problem = instance(seed)
        *_, (vectors, solves) = lower_bounds(problem, Budget(seconds=seconds))
        require_below(vectors, attainable_of(seed))
        used += solves
    assert (used > 0) == (seconds > 0.5)


def test_every_cut_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each by itself: a sum over accepted requests that is below what every plan has."""
    seen: list[bounds._Cuts] = []
    vectors = bounds._Cuts.vectors
    monkeypatch.setattr(bounds._Cuts, "vectors", lambda c, t: (seen.append(c), vectors(c, t))[1])
    for seed in range(tries(2, 3)):
        problem = instance(seed)
        list(lower_bounds(problem, Budget(seconds=tries(1, 3))))
        values, cuts = attainable_of(seed), seen[-1]
        accepted = np.rint((1 - values[:, 3]) * len(problem.requests)).astype(int)
        assert accepted.max() <= cuts.accepted.max()
        some = values[accepted > 0]
        sums = cuts.weights @ (some[:, :3] * accepted[accepted > 0][:, None]).T
        assert (cuts.values[:, accepted[accepted > 0] - 1] <= sums + 1e-12).all()


def test_programs_prove_more_than_closed_forms() -> None:
    problem = MultiCluster.generate(5, requests=30)
    front = placeopt.solve(problem, "moead", evaluations=3000)
    quick, slow = (certify(problem, front, Budget(seconds=s)).gap() for s in (1e-9, tries(1, 4)))
    assert quick is not None and slow is not None and 0 < slow < quick < 1


@pytest.mark.parametrize(("requests", "method"), [(1, "moead"), (30, "moead"), (1000, "binpack")])
def test_fronts_lie_above(requests: int, method: str) -> None:
    """Plans of a search, for streams too long for all plans, and for the linear program."""
    for seed in range(tries(1, 2)):
        problem = MultiCluster.generate(seed, requests=requests, rate=5.0)
        front = placeopt.solve(problem, method, evaluations=500)
        *_, (vectors, solves) = lower_bounds(problem, Budget(seconds=1))
        assert solves == 0 or requests < 1000
        require_below(vectors, front.values)


def test_goals_of_every_kind_have_a_gap() -> None:
    """Any selection of goals."""
    problem = instance(2)
    for names in (["cost"], ["rejected", "latency_ms"], ["inequality", "cost", "latency_ms"]):
        front = placeopt.solve(problem, objectives=names, seconds=tries(1, 10), certify=True)
        gap = front.gap()
        assert gap is not None and 0 <= gap < 1


def test_time_is_for_the_goals_asked_for() -> None:
    """Without latency no sum has it; cost and inequality stay proven, of every plan."""
    problem = instance(0)
    *_, (vectors, _) = lower_bounds(problem, Budget(seconds=1), [1, 2])
    values = attainable_of(0)
    require_below(vectors[:, 1:], values[:, 1:])
    assert vectors[:, 0].min() == 0.0 < vectors[:, 1].min()


def test_where_nothing_can_be_accepted() -> None:
    document = instance(2).to_document()
    for cluster in document["clusters"]:
        cluster["allocated_cpu_cores"] = cluster["cpu_cores"]
    problem = MultiCluster.from_document(document)
    front = certify(problem, placeopt.solve(problem, "greedy"), Budget(seconds=1))
    assert front.complete and front.gap() == 0.0


@given(seed=st.integers(0, 10**6), worse=st.sampled_from((0.0, 1.0, 20.0)), leans=st.integers(0, 2))
def test_latencies_of_plans_are_above_the_convex_sum(seed: int, worse: float, leans: int) -> None:
    """Of random plans; requests may raise latencies to several times what they are.

    To whatever parts the sum leans, it stays convex and below.
    """
    document = MultiCluster.generate(seed, clusters=3, requests=12, rate=40.0).to_document()
    for request in document["requests"]:
        request["latency_increase"] *= worse
    problem = MultiCluster.from_document(document)
    shared = Sharing(Requests(problem), np.ones((1, 3))).shared
    encoder, rng = PlacementEncoder(problem, problem.objectives), np.random.default_rng(seed)
    for _ in range(leans):
        shared.lean(rng.dirichlet(np.ones(4), size=12)[:, :3])
    assert (np.linalg.eigvalsh(shared.quadratic) >= 0).all()
    X = encoder.sample(rng, 20)
    for x, values in zip(X, encoder.evaluate(X)[0], strict=True):
        placed = encoder.encode(encoder.decode(x)).reshape(12, 3)
        parts = placed / problem.arrays.replicas[:, None]
        least = (shared.linear * parts).sum() + shared.curved(parts)
        accepted = (placed.sum(axis=1) > 0).sum()
        assert least <= values[0] * accepted * (1 + 1e-9)


@given(seed=st.integers(0, 1), draw=st.integers(0, 10**6), size=st.sampled_from((0.0, 0.01, 1.0)))
def test_any_dual_values_prove_a_bound(seed: int, draw: int, size: float) -> None:
    """Of what is shared, good or bad: k requests of any plan cost as much at least."""
    problem, rng = instance(seed), np.random.default_rng(draw)
    table = Requests(problem)
    weights = rng.dirichlet(np.ones(3)) / table.scale
    sharing = Sharing(table, weights[None])
    state = prices.nothing(sharing.terms, 1)
    for values in state[:-1]:
        values[:] = size * rng.exponential(size=values.shape) * rng.choice((1, -1), values.shape)
    state.parts[:], state.room[:] = abs(state.parts), abs(state.room)
    legal = prices.legal(state.differences, state.unequal, weights[2:])
    state = state._replace(differences=legal[0], unequal=legal[1])
    values = attainable_of(seed)
    accepted = np.rint((1 - values[:, 3]) * len(table.room)).astype(int)
    numbers = np.arange(1, int(table.acceptable.sum()) + 1)
    proven = prices.bounds_of(sharing.terms, state, weights[None])[0][numbers - 1]
    for k in numbers[numbers <= accepted.max()].tolist():
        assert proven[k - 1] <= k * (values[accepted == k][:, :3] @ weights).min() + 1e-12


@given(draw=st.integers(0, 10**6), weight=st.sampled_from((0.0, 0.3, 2.0)))
def test_prices_of_inequality_become_legal(draw: int, weight: float) -> None:
    """Each limits the differences, and together they are within the weight."""
    rng = np.random.default_rng(draw)
    prices_of = rng.normal(size=(1, 5, 6)), rng.normal(size=(1, 5, 2))
    differences, unequal = prices.legal(*prices_of, np.array([weight]))
    assert (abs(differences) <= unequal[:, :, :1]).all() and (unequal >= 0).all()
    assert (unequal.sum(axis=2) <= weight + 1e-12).all()


def test_prices_prove_what_a_linear_program_does() -> None:
    """Of cost alone; more requests accepted than fit on the cheapest cluster."""
    problem = MultiCluster.generate(1, requests=30, rate=60.0)
    table = Requests(problem)
    sharing = Sharing(table, np.array([[0.0, 1.0, 0.0]]))
    T, C = table.room.shape
    arrays, numbers = problem.arrays, np.array([24])
    free = arrays.capacity - arrays.used
    sizes = [arrays.replicas * arrays.demand[:, r] for r in range(2)]
    rooms = [np.kron(sharing.running * sizes[r], np.eye(C)) for r in range(2)]
    optimum = linprog(
        np.tile(arrays.price, T),
        np.vstack([*rooms, np.kron(np.eye(T), np.ones(C)), -np.ones((1, T * C))]),
        np.concatenate([np.tile(free[:, 0], T), np.tile(free[:, 1], T), np.ones(T), -numbers]),
        bounds=np.column_stack((np.zeros(T * C), sharing.share.ravel())),
    ).fun
    for _ in range(5):
        proven = sharing.proven([0], 24, numbers)[0, 0]
    alone = table.alone(np.array([0.0, 1.0, 0.0]))[23]
    assert alone < proven <= optimum * (1 + 1e-9)
    assert proven >= 0.995 * optimum


def test_a_limit_on_refusals_leaves_no_bounds_beyond_it() -> None:
    """All plans that keep it lie above; where none does, that is proven."""
    problem = instance(2)
    limited = problem.within({"rejected": 0.25})
    *_, (vectors, _) = lower_bounds(limited, Budget(seconds=2))
    values = attainable(problem)
    assert (vectors[:, 3] <= 0.25).all()
    require_below(vectors, values[values[:, 3] <= 0.25])
