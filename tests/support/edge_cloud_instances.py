"""Random edge-cloud instances: contended ones, some without a plan."""

from __future__ import annotations

import numpy as np

from placeopt import models
from placeopt.edge_cloud.problem import EdgeCloud
from placeopt.exact import solvers
from placeopt.exact.compiled_model import CompiledModel


def random_instance(
    seed: int, applications: int = 9, near: int = 5, missing: float = 0.0
) -> EdgeCloud:
    """Return an instance of fewer than so many applications and near nodes, at one of three loads.

    `missing` is the share of delays that are left out.
    """
    rng = np.random.default_rng(seed)
    most = {"applications": (1, applications), "near": (1, near), "far": (0, 3), "cloud": (0, 2)}
    sizes = {key: int(rng.integers(low, high)) for key, (low, high) in most.items()}
    document = EdgeCloud.generate(
        seed, load=float(rng.choice([0.4, 1.0, 2.0])), **sizes
    ).to_document()
    for row in document["delay_ms"].values() if missing else ():
        for name in [name for name in row if rng.random() < missing]:
            del row[name]
    return EdgeCloud.from_document(document)


def optimum(problem: EdgeCloud, weight: float) -> float:
    """Return the least weighted sum by HiGHS on the level model."""
    compiled = CompiledModel(models.edge_cloud.build(problem), problem.objectives)
    steps = compiled.units.tolist()
    c = weight * steps[0] * compiled.costs[0] + (1 - weight) * steps[1] * compiled.costs[1]
    found = solvers.solve(solvers.Program(**{**vars(compiled.program), "c": c}), seconds=60)
    assert found.status == "optimal"
    return found.objective


def tiny(seed: int) -> EdgeCloud:
    """Return an instance with a plan; applications contend for small nodes."""
    load = (0.5, 1.0, 1.5)[seed % 3]
    return EdgeCloud.generate(seed, applications=6, near=3, far=2, cloud=1, load=load)
