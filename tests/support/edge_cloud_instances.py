"""Random edge-cloud instances: contended ones, some without a plan."""

from __future__ import annotations

import numpy as np

from placeopt.edge_cloud.instance import EdgeCloud


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
