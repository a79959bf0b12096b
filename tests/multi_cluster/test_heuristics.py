"""Multi-cluster policies: baselines by hand, look-ahead, division, methods over traces."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from placeopt.core.budget import Budget
from placeopt.core.errors import UsageError
from placeopt.core.interfaces import build_encoder, seeds
from placeopt.core.task import Task
from placeopt.multi_cluster import search as methods
from placeopt.multi_cluster.episodes import policies
from placeopt.multi_cluster.episodes.outcomes import replicas_that_fit, take_by_weight
from placeopt.multi_cluster.episodes.stream import EpisodeBatch
from placeopt.multi_cluster.generator import STRATEGIES
from placeopt.multi_cluster.problem import MultiCluster

NOBODY = np.random.default_rng(0)


def stream(
    clusters: list[tuple[float, float, float, float]],
    replicas: int = 2,
    threshold: float = 400.0,
    **request: float,
) -> EpisodeBatch:
    """One request on clusters given as (cores, GiB, cores allocated, latency to all others)."""
    names = [f"c{k}" for k in range(len(clusters))]
    document = {
        "problem": "multi-cluster",
        "name": "x",
        "clusters": [
            {
                "name": n,
                "cpu_cores": cpu,
                "memory_gib": gib,
                "cost": 1.0,
                "allocated_cpu_cores": taken,
            }
            for n, (cpu, gib, taken, _) in zip(names, clusters, strict=True)
        ],
        "latency_ms": {
            n: dict.fromkeys(names, ms) for n, (*_, ms) in zip(names, clusters, strict=True)
        },
        "requests": [
            {
                "deployment": "x",
                "replicas": replicas,
                "cpu_cores": 0.2,
                "memory_gib": 0.5,
                "arrival": 0.0,
                "duration": 1.0,
                "latency_threshold_ms": threshold,
                **request,
            }
        ],
    }
    made = EpisodeBatch.of(MultiCluster.from_document(document))
    made.reset()
    return made


CLUSTERS = [(2.0, 4.0, 0.5, 500.0), (4.0, 16.0, 0.8, 300.0), (1.0, 8.0, 0.3, 350.0)]


@pytest.mark.parametrize(
    ("name", "chosen"),
    [
        ("cpu-greedy", 1),  # shares .25, .2, .3
        ("binpack", 2),
        (
            "karmada-greedy",
            1,
        ),  # means of (1.5 / .2, 4 / .5) = 7.75, (16, 32) = 24, (3.5, 16) = 9.75
    ],
)
def test_baselines_by_hand(name: str, chosen: int) -> None:
    """The first of equals; only clusters that hold all replicas; the refusal where none does."""
    assert policies.BASELINES[name](stream(CLUSTERS), NOBODY).tolist() == [chosen]
    assert policies.BASELINES[name](stream([CLUSTERS[0]] * 3), NOBODY).tolist() == [0]
    assert policies.BASELINES[name](stream(CLUSTERS, replicas=10), NOBODY).tolist() == [1], (
        "10 x .2 cores: the second alone"
    )
    assert policies.BASELINES[name](stream(CLUSTERS, replicas=40), NOBODY).tolist() == [6]


def test_latency_greedy_by_hand() -> None:
    """Any feasible cluster within the threshold, at random; else the refusal."""
    found = {
        int(policies.latency_greedy(stream(CLUSTERS), np.random.default_rng(k))[0])
        for k in range(30)
    }
    assert found == {1, 2}
    assert policies.latency_greedy(stream(CLUSTERS, threshold=300.0), NOBODY).tolist() == [1]
    assert policies.latency_greedy(stream(CLUSTERS, threshold=299.0), NOBODY).tolist() == [6]
    assert policies.latency_greedy(
        stream(CLUSTERS, replicas=10, threshold=350.0), NOBODY
    ).tolist() == [1]


def test_myopic_takes_the_highest_reward() -> None:
    """The nearest for latency; the spread for equality; the refusal below a least reward."""
    made = stream(CLUSTERS)
    assert policies.myopic(made, NOBODY, np.array([1.0, 0, 0])).tolist() == [1]
    assert policies.myopic(made, NOBODY, np.array([0, 0, 1.0]))[0] in (3, 4, 5)
    assert policies.myopic(made, NOBODY, np.array([1.0, 0, 0]), min_reward=0.9).tolist() == [6]


def reward(name: str, strategy: str, episodes: int, **options: object) -> np.ndarray:
    batch = EpisodeBatch(episodes, **options)
    batch.reset(np.arange(episodes, dtype=np.uint64))
    weights = np.array(STRATEGIES[strategy])
    return policies.play(batch, policies.of(name, weights), np.random.default_rng(0)) @ weights


def test_myopic_beats_the_baselines() -> None:
    """For each goal and their mixture."""
    for strategy in ("latency", "cost", "inequality", "balanced"):
        mine = reward("myopic", strategy, 60)
        for name in policies.BASELINES:
            assert (mine - reward(name, strategy, 60)).mean() > 0, (
                strategy,
                name,
            )


# -- division --------------------------------------------------------------------------------------


@given(weights=st.lists(st.integers(0, 12), min_size=2, max_size=6), asked=st.integers(1, 30))
def test_division_is_in_proportion_and_fits(weights, asked):
    """All or nothing; nobody gets more than its weight, or less than its share rounded down."""
    split = np.full(len(weights), -1)
    answer = take_by_weight(np.array(weights), asked, split)
    if sum(weights) < asked:
        assert answer == len(weights) + 3
        return
    assert split.sum() == asked
    for weight, given_ in zip(weights, split.tolist(), strict=True):
        exact = weight * asked / sum(weights)
        assert np.floor(exact) <= given_ <= min(weight, np.floor(exact) + 1)
    alone = [c for c, given_ in enumerate(split.tolist()) if given_ == asked]
    assert answer == (alone[0] if alone else len(weights))


def test_division_by_hand():
    """Largest weights get what rounding leaves; room is the scarcer of cpu and memory."""
    split = np.zeros(3, dtype=np.int64)
    assert take_by_weight(np.array([5, 3, 2]), 4, split) == 3 and split.tolist() == [3, 1, 0]
    assert replicas_that_fit(np.array([10, 9]), np.array([2, 3])) == 3
    assert replicas_that_fit(np.array([10, -1]), np.array([2, 3])) == 0


def test_karmada_divided_plans_are_what_the_referee_says() -> None:
    """Objectives of the episodes and of the referee agree; spreads are used."""
    problem = MultiCluster.generate(seed=4, requests=25)
    point = methods.karmada_divided(Task(problem)).points[0]
    assert sum(len(decision) > 1 for decision in point.plan["decisions"]) > 5
    made = EpisodeBatch.of(problem)
    policies.play(made, policies.karmada_divided, NOBODY)
    assert point.values == pytest.approx(made.values([1000.0, 16.0, 0.75, 1.0])[0])


# -- methods over traces ---------------------------------------------------------------------------


def test_methods_return_feasible_plans() -> None:
    """The referee confirms them; the same seed gives the same; greedy has plans for every taste."""
    problem = MultiCluster.generate(2, requests=40)
    for method in (
        methods.cpu_greedy,
        methods.binpack,
        methods.latency_greedy,
        methods.karmada_greedy,
        methods.karmada_divided,
        methods.myopic,
        methods.greedy,
    ):
        front = method(Task(problem))
        assert front.points
        assert front.values.tolist() == method(Task(problem)).values.tolist()
        assert all(problem.evaluate(p.plan).feasible for p in front.points)
    assert len(front) > 10
    assert front.runs[0].evaluations == 6 * (8 + 66)
    few = methods.greedy(Task(problem, problem.objectives[:2], Budget(evaluations=5)))
    assert few.runs[0].evaluations == 5


def test_myopic_takes_weights() -> None:
    """By strategy, as numbers or text; others are refused."""
    problem = MultiCluster.generate(2, requests=20)
    same = [
        methods.myopic(Task(problem), weights=w).values.tolist()
        for w in ("lat-ineq", "0.5,0,0.5", (1, 0, 1))
    ]
    assert same[0] == same[1] == same[2] and len(same[0]) == 1
    for wrong in ("latncy", "1,2", (0, 0, 0), (1, -1, 1)):
        with pytest.raises(UsageError, match="weights is"):
            methods.myopic(Task(problem), weights=wrong)


def test_seeds_are_greedy_plans() -> None:
    """As vectors that decode to them."""
    problem = MultiCluster.generate(2, requests=30)
    encoder = build_encoder(problem)
    X = seeds(encoder, NOBODY)
    F, _ = encoder.evaluate(X)
    greedy = methods.greedy(Task(problem)).values
    assert ((F[:, None, :] - greedy[None]) ** 2).sum(axis=2).min(axis=0).max() < 1e-12
