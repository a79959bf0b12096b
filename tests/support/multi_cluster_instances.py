"""Multi-cluster instances that are small enough for brute force, and all their plans."""

from __future__ import annotations

import itertools

import numpy as np

from placeopt.multi_cluster.problem import MultiCluster


def instance(seed: int, requests: int = 4, **options: object) -> MultiCluster:
    """Three clusters; of every second instance the clusters are nearly full, latencies high."""
    document = MultiCluster.generate(
        seed, clusters=3, requests=requests, most_replicas=3, rate=8.0, **options
    ).to_document()
    for cluster in document["clusters"] if seed % 2 else ():
        cluster["allocated_cpu_cores"] = cluster["cpu_cores"] - 0.45
        for other, latency in document["latency_ms"][cluster["name"]].items():
            document["latency_ms"][cluster["name"]][other] = 900 + latency / 10
    return MultiCluster.from_document(document)


def attainable(problem: MultiCluster) -> np.ndarray:
    """The values of all feasible plans, shape (k, 4)."""
    choices = [
        [
            dict(enumerate(np.diff((-1, *bars, asked + 2)) - 1))
            for bars in itertools.combinations(range(asked + 2), 2)
        ]
        for asked in problem.arrays.replicas.tolist()
    ]
    judged = map(problem.referee.judge, itertools.product(*([{}, *some] for some in choices)))
    return np.array([word.values for word in judged if word.feasible])
