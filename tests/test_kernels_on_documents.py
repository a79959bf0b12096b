"""Every kernel that a document reaches, on documents at the edge of what is legal.

`make bounds` runs them with each index checked: the smallest instances, one of everything; more
zones than nodes; replicas that come and go; nothing requested; no room; rules of all kinds at once.
"""

from __future__ import annotations

import json
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from edge_cloud_instances import tiny as tiny_edge_cloud
from effort import tries
from hard_instances import CHEAPER_WITH_A_STOP, FIVE_POINTS, ONE_STOP, TOO_LARGE
from little_clusters import written
from multi_cluster_instances import instance as tiny_stream
from temporal_instances import mutilated
from temporal_instances import tiny as tiny_temporal
from typer.testing import CliRunner
from wild_clusters import wild_cluster

import placeopt
from placeopt import registry
from placeopt.cli import app
from placeopt.core.errors import PlaceoptError
from placeopt.core.problem import Problem
from placeopt.core.spec import load
from placeopt.registry import from_document
from placeopt.rl.policy_file import bundled, read

#: Methods whose work is done by other libraries, by other methods, or by a trained policy.
OTHERS = (
    "policy",
    "ensemble",
    "epsilon-constraint",
    "jmetal-nsga2",
    "jmetal-nsga3",
    "jmetal-smpso",
)
EVALUATIONS = 120
#: Of each document; proofs take as long as they may.
QUICK = {"evaluations": EVALUATIONS, "seconds": tries(1, 20)}


def drawn(kind: str, seed: int, **sizes: int) -> Problem:
    return from_document(load(registry.specs()[kind].generator)(seed, **sizes))


def zones(count: int, kind: str) -> dict[str, Any]:
    """A rolling update whose last node is in the last of many zones, with a rule about zones."""
    nodes = [
        {
            "name": f"n{k}",
            "cluster": "c",
            "cpu_millicores": 4000,
            "memory_mib": 4096,
            "price": 1 + k,
            "candidate": k == 0,
            "domains": {"zone": f"z{count - k}", "rack": f"r{k % 2}"},
        }
        for k in range(3)
    ]
    pods = [
        {
            "name": f"p{k}",
            "node": None if k == 0 else f"n{k % 2 + 1}",
            "cpu_millicores": 100 * k,
            "memory_mib": 64 * k,
            "groups": ["all"] if k else ["all", "first"],
            "removed": k == 3,
        }
        for k in range(4)
    ]
    rule = {"kind": kind, "group": "all", "toward": "all", "per": "zone"}
    return {
        "problem": "rolling-update",
        "name": f"zones-{kind}",
        "nodes": nodes,
        "rules": [rule | ({"max_skew": 1} if kind == "spread" else {})],
        "applications": [{"name": "a", "microservices": pods}],
    }


@cache
def cluster(seed: int, nodes: int) -> Problem:
    """Return a cluster with all rules that kube-scheduler knows."""
    folder = Path(tempfile.mkdtemp())
    dump, out = written(folder / "dump.json", wild_cluster(seed, nodes)), folder / "cluster.json"
    line = [
        "import",
        "kubernetes",
        dump,
        "--to",
        "rolling-update",
        "--missing-prices",
        "default=0.1",
        "-o",
        out,
        "--quiet",
    ]
    result = CliRunner().invoke(app, list(map(str, line)))
    assert result.exit_code == 0, result.exception
    return registry.read(out)


@cache
def documents(kind: str) -> list[Problem]:
    if kind == "temporal":
        return [
            drawn(kind, 1, requests=1, places=1, horizon=1, max_replicas=1),
            drawn(kind, 2, requests=4, max_replicas=3),
            *(tiny_temporal(seed) for seed in range(2)),
            *(mutilated(seed) for seed in range(3)),
        ]
    if kind == "edge-cloud":
        ones = {"applications": 1, "near": 1, "far": 1, "cloud": 1}
        more = [tiny_edge_cloud(seed) for seed in range(2)]
        return [drawn(kind, 1, **ones), *more, from_document(TOO_LARGE)]
    if kind == "rolling-update":
        return [
            drawn(kind, 1, applications=1, microservices=1, clusters=1),
            drawn(kind, 2, applications=2, microservices=3, added=1, removed=1),
            *map(from_document, (FIVE_POINTS, ONE_STOP, CHEAPER_WITH_A_STOP)),
            *(from_document(zones(9, rule)) for rule in ("apart", "together", "spread")),
            cluster(1, 5),
            cluster(2, 5),
        ]
    if kind == "rescheduling":
        return [
            drawn(kind, 1, services=2, replicas=1, cloud_a=1, edge_a=1, edge_b=1),
            drawn(kind, 2, services=4, replicas=3),
        ]
    return [
        drawn(kind, 1, clusters=2, requests=1),
        drawn(kind, 3, clusters=3, requests=8),
        *(tiny_stream(seed) for seed in range(2)),
    ]


KINDS = ("temporal", "edge-cloud", "rolling-update", "rescheduling", "multi-cluster")


@pytest.mark.bounds
@pytest.mark.parametrize(
    ("kind", "method"),
    [
        (kind, method.name)
        for kind in KINDS
        for method in registry.methods().values()
        if kind in method.problems and method.installed and method.name not in OTHERS
    ],
)
def test_a_method_on_documents_at_the_edge(kind: str, method: str) -> None:
    """Every answer is one: points that the referee knows, or reasons why there are none."""
    for problem in documents(kind):
        try:
            front = placeopt.solve(problem, method, **QUICK, seed=1, certify=method == "auto")
        except PlaceoptError as error:
            assert str(error)
            continue
        assert front.points or front.reasons
        json.loads(front.to_json())


@pytest.mark.bounds
@pytest.mark.parametrize("policy", sorted(bundled()))
def test_a_trained_policy_on_documents_at_the_edge(policy: str) -> None:
    """Its episodes are played in kernels of their own."""
    kind = read(policy).problem
    for problem in documents(kind):
        try:
            front = placeopt.solve(
                problem, "policy", evaluations=EVALUATIONS, seed=1, policy=policy
            )
        except PlaceoptError as error:
            assert str(error)
            continue
        assert front.points or front.reasons
