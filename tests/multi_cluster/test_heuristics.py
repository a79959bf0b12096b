"""Multi-cluster policies: baselines by hand, look-ahead, rollout, and methods over traces."""

from __future__ import annotations

import numpy as np
import pytest

from placeopt.core.budget import Budget
from placeopt.core.errors import UsageError
from placeopt.core.interfaces import build_encoder, seeds
from placeopt.core.task import Task
from placeopt.multi_cluster import heuristics as methods
from placeopt.multi_cluster import policies
from placeopt.multi_cluster.instance import MultiCluster
from placeopt.multi_cluster.paper_data import STRATEGIES
from placeopt.multi_cluster.simulator.stream import EpisodeBatch

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


@pytest.mark.parametrize("semantics", ["fixed", "published"])
def test_myopic_beats_the_baselines(semantics: str) -> None:
    """In both semantics, for each goal and their mixture."""
    for strategy in ("latency", "cost", "inequality", "balanced"):
        mine = reward("myopic", strategy, 60, semantics=semantics)
        for name in policies.BASELINES:
            assert (mine - reward(name, strategy, 60, semantics=semantics)).mean() > 0, (
                strategy,
                name,
            )


def test_rollout_sees_what_comes() -> None:
    """Published, Latency plus Inequality: where one-step look-ahead loses most.

    The same seed gives the same.
    """
    mine, ahead = (
        reward(name, "lat-ineq", 4, semantics="published") for name in ("myopic", "rollout")
    )
    assert (ahead - mine).mean() > 5
    assert (ahead == reward("rollout", "lat-ineq", 4, semantics="published")).all()


# -- methods over traces ---------------------------------------------------------------------------


@pytest.mark.parametrize("semantics", ["fixed", "published"])
def test_methods_return_feasible_plans(semantics: str) -> None:
    """The referee confirms them; the same seed gives the same; greedy has plans for every taste."""
    problem = MultiCluster.generate(2, semantics=semantics, requests=40)
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
