"""The cheapest end against every end there is, judged by the slow oracle of tests/differential."""

from __future__ import annotations

import itertools
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from effort import tries

sys.path.insert(0, str(Path(__file__).parents[1] / "differential"))
from drawn import ruled
from rolling_updates import GONE, Deployment, State

from placeopt import registry
from placeopt.rolling_update import end_state
from placeopt.rolling_update.bounds import lower_bound
from placeopt.rolling_update.cheapest import cheapest_plan
from placeopt.rolling_update.end_state import cheapest_end

Document = dict[str, Any]


def cheapest(document: Document) -> tuple[float, float] | None:
    """Return the least price of a legal end, and the fewest starts at it: every end is tried."""
    deployment, found = Deployment(document), list[tuple[float, float]]()
    choices = []
    for application, m in deployment.services:
        fixed = not application.get("reschedulable", True) or m.get("pinned")
        places = [m["node"]] if fixed else list(deployment.nodes)
        choices.append([GONE] if m.get("removed") else places)
    for ends in itertools.product(*choices):
        at = tuple(
            (n, n != GONE and (n != m["node"] or deployment.must_start(k, n)))
            for k, ((_, m), n) in enumerate(zip(deployment.services, ends, strict=True))
        )
        state = State(at)
        shut = {n for n, row in deployment.nodes.items() if row.get("drain") or row.get("closed")}
        if not any(new and n in shut for n, new in at) and deployment.ends_well(state):
            found.append(deployment.values(state, sum(new for _, new in at), 0)[:2])
    return min(found, default=None)


def cluster(rng: np.random.Generator) -> Document:
    """Four or five nodes of two machine types in two zones, five pods of two or three workloads."""
    nodes = [
        {
            "name": f"n{k}",
            "cluster": "a",
            "cpu_millicores": 4 + 2 * (k % 2),
            "memory_mib": 16,
            "price": 1.0 + 0.5 * (k % 2),
            "domains": {"zone": "z1" if k < 2 else "z2"},
            "resources": {"pods": int(rng.integers(2, 5))} if rng.random() < 0.3 else {"pods": 9},
        }
        for k in range(int(rng.integers(3, 5)))
    ]
    services = []
    for w, count in enumerate(((3, 2), (2, 2, 1), (4, 1))[int(rng.integers(3))]):
        size = {"cpu_millicores": int(rng.integers(1, 4)), "memory_mib": int(rng.integers(1, 5))}
        for k in range(count):
            home = {"node": f"n{rng.integers(len(nodes))}", "pinned": bool(rng.random() < 0.1)}
            row = {"name": f"w{w}-{k}", "groups": [f"w{w}"], "resources": {"pods": 1}}
            services.append(row | size | home)
    rules: list[Document] = []
    for _ in range(int(rng.integers(1, 4))):
        rule: Document = {"kind": str(rng.choice(["apart", "together", "spread", "spread"]))}
        rule |= {"group": f"w{rng.integers(2)}", "per": str(rng.choice(["node", "zone"]))}
        if rng.random() < 0.3:
            rule["toward"] = f"w{rng.integers(2)}"
        if rule["kind"] == "spread" and rule["per"] == "node":
            rule["shrinks"] = bool(rng.random() < 0.8)
        rules.append(rule)
    return {
        "problem": "rolling-update",
        "name": "cluster",
        "semantics": "stay",
        "nodes": nodes,
        "applications": [{"name": "a", "microservices": services}],
        "rules": rules,
    }


@pytest.fixture(params=["each node", "kinds"])
def _program(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every node by itself, or nodes that are alike as one."""
    if request.param == "kinds":
        monkeypatch.setattr(end_state, "_EACH_NODE", 0)


@pytest.mark.parametrize("seed", range(tries(60, 1000)))
@pytest.mark.usefixtures("_program")
def test_no_end_is_cheaper_than_what_is_proven(seed: int) -> None:
    """Clusters of few kinds of nodes."""
    document = cluster(np.random.default_rng(seed))
    problem, truth = registry.from_document(document), cheapest(document)
    found, scale = cheapest_end(problem), problem.arrays.price_scale
    if truth is None:
        assert found.node is None
        return
    assert lower_bound(problem) <= found.lowest <= round(truth[0] * scale)
    if found.exact:
        assert found.node is not None
        starts = problem.arrays.starts_of(found.node).sum()
        assert (found.lowest / scale, starts) == truth


@pytest.mark.parametrize("seed", range(tries(40, 1000)))
@pytest.mark.usefixtures("_program")
def test_no_plan_is_cheaper_than_what_is_proven(seed: int) -> None:
    """All rules together, replicas that come and go: against every plan, with stops and without."""
    document = ruled(np.random.default_rng([seed, 5]), seed % 3)
    problem = registry.from_document(document)
    values = Deployment(document).attainable()
    found = cheapest_end(problem)
    for cost, *_ in values:
        assert found.lowest <= round(cost * problem.arrays.price_scale)


def test_nearly_all_small_clusters_are_exact() -> None:
    exact = with_end = 0
    for seed in range(tries(40, 400)):
        document = cluster(np.random.default_rng([seed, 1]))
        truth, problem = cheapest(document), registry.from_document(document)
        found = cheapest_end(problem)
        with_end += truth is not None
        exact += truth is not None and found.exact
    assert exact >= 0.95 * with_end > 0


def test_the_cheapest_plan_goes_to_the_cheapest_end() -> None:
    """Where it is reached in the direct order, no search is needed."""
    reached = known = 0
    for seed in range(tries(15, 200)):
        document = cluster(np.random.default_rng([seed, 2]))
        truth, problem = cheapest(document), registry.from_document(document)
        if truth is None:
            continue
        judged = problem.evaluate(cheapest_plan(problem))
        assert not judged.feasible or judged.values[0] >= truth[0]
        known += 1
        reached += judged.feasible and judged.values[2] == 0 and judged.values[0] == truth[0]
    assert reached >= 0.8 * known
