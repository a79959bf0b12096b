"""Multi-cluster instances, plans and the referee: every rule worked by hand.

The simulator gives the same values.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from placeopt.core.errors import DocumentError, UsageError
from placeopt.multi_cluster.episodes.stream import EpisodeBatch
from placeopt.multi_cluster.generator import DEPLOYMENTS, STRATEGIES, TYPES
from placeopt.multi_cluster.problem import MultiCluster

A, B, C = "a", "b", "c"


def document(requests: list[dict[str, Any]]) -> dict[str, Any]:
    """Three clusters of 1, 2 and 4 cores and GiB; latencies 100 to 600 ms."""
    sizes = {A: (1.0, 1.0, 1.0), B: (2.0, 2.0, 4.0), C: (4.0, 4.0, 16.0)}
    return {
        "problem": "multi-cluster",
        "name": "small",
        "clusters": [
            {"name": n, "cpu_cores": cpu, "memory_gib": gib, "cost": cost}
            for n, (cpu, gib, cost) in sizes.items()
        ],
        "latency_ms": {A: {B: 100, C: 200}, B: {A: 300, C: 400}, C: {A: 500, B: 600}},
        "requests": [
            {"deployment": "x", "cpu_cores": 0.25, "memory_gib": 0.25, "latency_increase": 0.1, **r}
            for r in requests
        ],
    }


def small(*requests: tuple[int, float, float]) -> MultiCluster:
    """Requests as (replicas, arrival, duration)."""
    return MultiCluster.from_document(
        document([{"replicas": n, "arrival": a, "duration": d} for n, a, d in requests])
    )


def judge(problem: MultiCluster, *decisions: dict[str, int]) -> tuple[tuple[float, ...], set[str]]:
    verdict = problem.evaluate({"decisions": list(decisions)})
    return verdict.values, {v.kind for v in verdict.violations}


# -- fixed semantics -------------------------------------------------------------------------------


def test_one_placement() -> None:
    """Cluster a: base (100 + 200) / 2 = 150 ms, times 1.1 with the request on it.

    Cost 1; all 2 replicas on 1 of 3: G = 2/3.
    """
    values, broken = judge(small((2, 0, 1)), {A: 2})
    assert values == pytest.approx((165.0, 1.0, 2 / 3, 0.0)) and not broken


def test_a_spread_charges_each_cluster_its_share() -> None:
    """3 replicas, 1 on a and 2 on b: a 150 (1 + .1/3), b 350 (1 + .2/3), mean over replicas.

    Cost (1 + 2 x 4) / 3; G of (1, 2, 0) = 4/9.
    """
    values, broken = judge(small((3, 0, 1)), {A: 1, B: 2})
    latency = (150 * (1 + 0.1 / 3) + 2 * 350 * (1 + 0.2 / 3)) / 3
    assert values == pytest.approx((latency, 3.0, 4 / 9, 0.0)) and not broken


def test_latency_grows_with_what_runs_and_falls_back_when_it_leaves() -> None:
    """Second on top of the first: 150 x 1.1 x 1.1.

    The third comes when both are gone: 150 x 1.1. Nothing drifts.
    """
    problem = small((1, 0, 1), (1, 0.5, 1), (1, 2, 1))
    outcomes, _ = problem.referee.replay([{0: 1}, {0: 1}, {0: 1}])
    assert [o.latency_ms for o in outcomes] == pytest.approx([165.0, 181.5, 165.0])
    assert [o.load for o in outcomes] == [(1, 0, 0), (2, 0, 0), (1, 0, 0)]


def test_latency_ends_at_1000() -> None:
    """Cluster c: base 550; 7 requests of 10 per cent: 550 x 1.1^7 = 1071."""
    problem = small(*((1, k / 100, 5) for k in range(7)))
    outcomes, _ = problem.referee.replay([{2: 1}] * 7)
    assert (
        outcomes[5].latency_ms == pytest.approx(550 * 1.1**6) and outcomes[6].latency_ms == 1000.0
    )


def test_a_departure_at_the_time_of_an_arrival_goes_first() -> None:
    """4 replicas fill a; the next 4 arrive as they leave. .1 + .2 is .3, whatever doubles say."""
    problem = small((4, 0.1, 0.2), (4, 0.3, 1))
    assert judge(problem, {A: 4}, {A: 4})[1] == set()
    assert judge(small((4, 0.1, 0.2), (4, 0.29, 1)), {A: 4}, {A: 4})[1] == {
        "cpu-capacity",
        "memory-capacity",
    }


def test_capacity_may_be_filled_and_not_more() -> None:
    """4 x .25 cores are the 1 core of a; with background they are too many."""
    assert judge(small((4, 0, 1)), {A: 4})[1] == set()
    full = document([{"replicas": 4, "arrival": 0, "duration": 1}])
    full["clusters"][0]["allocated_memory_gib"] = 0.001
    assert judge(MultiCluster.from_document(full), {A: 4})[1] == {"memory-capacity"}


def test_a_request_is_placed_whole_or_not_at_all() -> None:
    """Too few and too many replicas break the plan; {} and zeros refuse."""
    problem = small((3, 0, 1), (3, 0, 1))
    assert judge(problem, {A: 2}, {})[1] == {"replicas"} and judge(problem, {B: 4}, {})[1] == {
        "replicas"
    }
    values, broken = judge(problem, {A: 0}, {A: 3})
    assert values[3] == 0.5 and not broken


def test_gini_counts_what_runs_now() -> None:
    """(2, 0, 0) then (2, 2, 0): 2/3 and 1/3; the mean is 1/2."""
    assert judge(small((2, 0, 1), (2, 0.5, 1)), {A: 2}, {B: 2})[0][2] == pytest.approx(0.5)
    assert judge(small((2, 0, 1), (2, 1.5, 1)), {A: 2}, {B: 2})[0][2] == pytest.approx(2 / 3)


def test_refusing_everything_is_the_worst_and_legal() -> None:
    """1000 ms, the dearest cluster, the worst Gini coefficient of three clusters."""
    values, broken = judge(small((3, 0, 1), (3, 0, 1)), {}, {})
    assert values == (1000.0, 16.0, pytest.approx(2 / 3), 1.0) and not broken


# -- the simulator against the referee -------------------------------------------------------------


@given(
    seed=st.integers(0, 10**6),
    clusters=st.integers(2, 6),
    rate=st.sampled_from((2.0, 20.0, 200.0)),
    most=st.integers(1, 24),
    wild=st.booleans(),
)
def test_simulator_equals_referee(
    seed: int, clusters: int, rate: float, most: int, wild: bool
) -> None:
    """Any actions, legal ones or `wild`: the same values, and nothing is broken."""
    problem = MultiCluster.generate(
        seed, clusters=clusters, requests=40, rate=rate, most_replicas=most
    )
    stream, rng = EpisodeBatch.of(problem, 4), np.random.default_rng(seed)
    stream.reset()
    ended = np.zeros(4, dtype=bool)
    while not ended.all():
        liking = rng.random(stream.masks.shape)
        _, ended = stream.step(
            (liking if wild else np.where(stream.masks, liking, -1)).argmax(axis=1)
        )
    facts = stream.info()
    for k in range(4):
        verdict = problem.evaluate(problem.plan(stream.placements(k)))
        assert verdict.feasible
        if facts["acceptance"][k] > 0:
            found = [facts[name][k] for name in ("latency_ms", "cost", "inequality")]
            assert [*found, 1 - facts["acceptance"][k]] == pytest.approx(
                verdict.values, rel=1e-12, abs=1e-12
            )


# -- documents -------------------------------------------------------------------------------------


def test_generated_instances_have_the_papers_distributions() -> None:
    """Types of Table 4, Cloud2Edge deployments, 1 to 7 replicas, arrivals at the rate.

    The document comes back.
    """
    problem = MultiCluster.generate(3, clusters=40, requests=2000)
    assert {(c.type, c.cpu_cores, c.memory_gib, c.cost) for c in problem.clusters} == set(TYPES)
    assert {
        (r.deployment, r.cpu_cores, r.memory_gib, r.latency_threshold_ms) for r in problem.requests
    } == set(DEPLOYMENTS)
    assert {r.replicas for r in problem.requests} == set(range(1, 8))
    assert problem.requests[-1].arrival == pytest.approx(100, rel=0.1)
    assert np.mean([r.duration for r in problem.requests]) == pytest.approx(1, rel=0.1)
    assert MultiCluster.from_document(problem.to_document()).to_document() == problem.to_document()
    assert all(sum(weights) == pytest.approx(1) for weights in STRATEGIES.values())


def test_sizes_are_checked() -> None:
    """With what is legal."""
    with pytest.raises(
        UsageError, match=r"clusters of multi-cluster instances is 1 .*legal: at least 2"
    ):
        MultiCluster.generate(clusters=1)
    with pytest.raises(UsageError, match="fewest_replicas is 8; legal: at most most_replicas"):
        MultiCluster.generate(fewest_replicas=8)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            lambda d: d["latency_ms"].pop(A) and d["latency_ms"][B].pop(A),
            "no latency between 'a' and 'b'",
        ),
        (lambda d: d["clusters"][1].update(name=A), r"clusters\[1\].*stands twice"),
        (
            lambda d: d["requests"][1].update(arrival=0.0),
            r"requests\[1\].arrival: arrives at 0, before",
        ),
        (
            lambda d: d["clusters"][0].update(allocated_cpu_cores=1.5),
            r"clusters\[0\].allocated_cpu_cores.*more than its capacity",
        ),
        (lambda d: d.update(semantics="published"), "semantics"),
        (lambda d: d["requests"][0].update(replicas=0), r"requests\[0\].replicas"),
    ],
)
def test_bad_instances_are_named(change: Any, said: str) -> None:
    """Where, what, and what is legal."""
    given = document(
        [
            {"replicas": 2, "arrival": 1.0, "duration": 1},
            {"replicas": 2, "arrival": 2.0, "duration": 1},
        ]
    )
    change(given)
    with pytest.raises(DocumentError, match=said):
        MultiCluster.from_document(given)


def test_bad_plans_are_named() -> None:
    """Too short, unknown clusters, negative replicas."""
    problem = small((2, 0, 1), (2, 1, 1))
    for plan, said in (
        ({"decisions": [{}]}, "1 decisions and 2 requests"),
        ({"decisions": [{}, {"d": 1}]}, r"decisions\[1\]: unknown cluster 'd'"),
        ({"decisions": [{}, {A: -1}]}, r"decisions\[1\]"),
        ({}, "decisions"),
        (None, "dictionary"),
    ):
        with pytest.raises(DocumentError, match=said):
            problem.evaluate(plan)


def test_warnings_name_what_can_only_be_refused() -> None:
    """29 replicas of .25 cores, and room for 28."""
    assert small((28, 0, 1)).warnings() == ()
    assert small((29, 0, 1)).warnings() == (
        "requests[0] asks for 29 replicas; the empty clusters hold 28: it can only be refused",
    )
