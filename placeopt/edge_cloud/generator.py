"""Random edge-cloud instances.

The paper's tables of node characteristics and delays are not in its public text. The numbers here
are chosen from its prose: near-edge nodes of 1-8 cores, far-edge of 40-80, clouds of 400-600; costs
of 1-10 units, the dearest at the edge; networking about half of the cost in the cloud and about a
twentieth at the edge. There are two profiles of them. ``stated`` draws from the widest ranges that
the prose leaves, and data come from a near-edge node. ``paper`` is fitted to the four numbers that
the paper prints of its Figs 3 and 5 (papers/results/edge_cloud_figures.md): its ranges are
narrower, and data come from access points that cannot compute, as the paper says of some.
"""

from __future__ import annotations

import numpy as np

from placeopt.core.errors import UsageError, require_known
from placeopt.core.files.documents import Document

Ranges = tuple[tuple[int, int], tuple[int, int], tuple[float, float], tuple[float, float]]
#: layer -> inclusive ranges: whole cores, whole GiB, operating cost, network cost.
LAYERS: dict[str, Ranges] = {
    "near-edge": ((1, 8), (1, 8), (7.0, 10.0), (0.2, 0.6)),
    "far-edge": ((40, 80), (50, 100), (4.0, 6.0), (0.6, 1.0)),
    "cloud": ((400, 600), (600, 800), (1.0, 2.0), (1.2, 1.8)),
}
#: The same of the profile ``paper``; how many ms an access point is off its near-edge node.
FITTED: dict[str, Ranges] = {
    "near-edge": ((1, 8), (1, 8), (6.4, 8.4), (0.25, 0.5)),
    "far-edge": LAYERS["far-edge"],
    "cloud": ((400, 600), (600, 800), (1.5, 2.0), (1.4, 1.9)),
}
ACCESS_MS = 9.0
PROFILES = {"stated": LAYERS, "paper": FITTED}
#: Ranges of the delay in ms between two nodes, by their layers.
DELAYS_MS = {
    ("near-edge", "near-edge"): (1.0, 6.0),
    ("near-edge", "far-edge"): (6.0, 12.0),
    ("far-edge", "far-edge"): (5.0, 10.0),
    ("near-edge", "cloud"): (30.0, 50.0),
    ("far-edge", "cloud"): (25.0, 40.0),
    ("cloud", "cloud"): (15.0, 25.0),
}
#: Cores of a microservice at load 1; its GiB are the same draw again.
DEMANDS = (0.25, 0.5, 1.0, 2.0)
#: Microservices of an application, inclusive.
SERVICES = (2, 5)
#: Data of a microservice.
DATA = (0.5, 1.5)
#: Half of the flows tolerate a delay of the first range in ms, half of the second.
LIMITS_MS = ((4.0, 15.0), (15.0, 60.0))
#: The paper's two topologies, as arguments of `generate`.
TOPOLOGIES = {
    "basic": {"near": 20, "far": 5, "cloud": 2},
    "extended": {"near": 150, "far": 30, "cloud": 7},
}
#: Demand of all applications together, in applications at load 1, at which greedy finds the best
#: known plan; at twice of it greedy and rollout are as far from that as the paper's Table 4 says
#: (papers/results/edge_cloud_gaps.md).
PAPER_DEMAND = 3.0


def generate(
    seed: int = 0,
    *,
    applications: int = 100,
    near: int = 20,
    far: int = 5,
    cloud: int = 2,
    load: float = 0.4,
    demand: float = 0.0,
    profile: str = "stated",
) -> Document:
    """Return the document of a random instance.

    Applications are trees of microservices whose data come from a near-edge node, or with the
    profile ``paper`` from an access point beside one.

    Parameters
    ----------
    seed : int
    applications : int
        Number of applications.
    near, far, cloud : int
        Nodes of each layer; the defaults are the paper's basic topology, see `TOPOLOGIES`.
    load : float
        Factor of every demand. In the sizes of the paper all edge layers are contended at 1, and
        the near edge is at 0.4.
    demand : float
        Above 0 the load is ``demand / applications``: more applications then ask for as much in
        all. `PAPER_DEMAND` times 2 is the regime in which the paper's Table 4 comes out.
    profile : str
        One of `PROFILES`: costs, and where data come from.
    """
    require_known("profile", profile, PROFILES)
    counts = (("applications", applications, 1), ("near", near, 1), ("far", far, 0))
    for label, value, lowest in (*counts, ("cloud", cloud, 0)):
        if not lowest <= value <= 10**5:
            raise UsageError(f"{label} is {value}; legal: {lowest} to {10**5}")
    if not 0 <= demand <= 10**6:
        raise UsageError(f"demand is {demand}; legal: 0 to {10**6}")
    load = demand / applications if demand else load
    if not 0 < load <= 100:
        raise UsageError(f"load is {load}; legal: above 0, at most 100")
    rng = np.random.default_rng(seed)
    nodes = [
        _node(rng, layer, k + 1, PROFILES[profile][layer])
        for layer, count in zip(LAYERS, (near, far, cloud), strict=True)
        for k in range(count)
    ]
    document: Document = {
        "problem": "edge-cloud",
        "name": f"generated-{near}-{far}-{cloud}-{applications}-load{load:g}-seed{seed}",
        "nodes": nodes,
        "delay_ms": _delays(rng, nodes),
        "applications": [_application(rng, k + 1, near, load) for k in range(applications)],
    }
    if profile == "paper":
        document["name"] += "-paper"
        _add_access_points(document)
    return document


def _add_access_points(document: Document) -> None:
    """Move every source to a node without cores, `ACCESS_MS` off its near-edge node, in place."""
    delays, beside = document["delay_ms"], {}
    names = [node["name"] for node in document["nodes"]]
    for near in sorted({application["source"] for application in document["applications"]}):
        beside[near] = f"access-{near.removeprefix('near-')}"
        delays[beside[near]] = {
            name: round(ACCESS_MS + _delay(delays, near, name), 2) for name in names
        }
    document["nodes"] += [
        {
            "name": name,
            "layer": "access",
            "cpu_cores": 0.0,
            "memory_gib": 0.0,
            "operating_cost": 0.0,
            "network_cost": 0.0,
        }
        for name in beside.values()
    ]
    for application in document["applications"]:
        application["source"] = beside[application["source"]]


def _delay(delays: dict[str, dict[str, float]], one: str, other: str) -> float:
    """Return the delay between two nodes, of which the earlier one has it."""
    if one == other:
        return 0.0
    return delays[one][other] if other in delays.get(one, {}) else delays[other][one]


def _node(rng: np.random.Generator, layer: str, number: int, ranges: Ranges) -> Document:
    cores, memory, operating, network = ranges
    return {
        "name": f"{layer.removesuffix('-edge')}-{number}",
        "layer": layer,
        "cpu_cores": float(rng.integers(cores[0], cores[1] + 1)),
        "memory_gib": float(rng.integers(memory[0], memory[1] + 1)),
        "operating_cost": round(rng.uniform(*operating), 2),
        "network_cost": round(rng.uniform(*network), 3),
    }


def _delays(rng: np.random.Generator, nodes: list[Document]) -> dict[str, dict[str, float]]:
    """Return a delay for one direction of every pair of nodes."""
    ranges = np.array([[_range(a["layer"], b["layer"]) for b in nodes] for a in nodes])
    drawn = np.round(rng.uniform(ranges[:, :, 0], ranges[:, :, 1]), 2).tolist()
    names = [node["name"] for node in nodes]
    return {
        name: {names[j]: drawn[i][j] for j in range(i + 1, len(nodes))}
        for i, name in enumerate(names[:-1])
    }


def _range(one: str, other: str) -> tuple[float, float]:
    return DELAYS_MS[one, other] if (one, other) in DELAYS_MS else DELAYS_MS[other, one]


def _application(rng: np.random.Generator, number: int, near: int, load: float) -> Document:
    count = int(rng.integers(SERVICES[0], SERVICES[1] + 1))
    sizes = np.round(rng.choice(DEMANDS, (count, 2)) * load, 6).tolist()
    data = np.round(rng.uniform(*DATA, count), 3).tolist()
    flows = []
    for k in range(1, count):
        limit = round(float(rng.uniform(*LIMITS_MS[int(rng.integers(2))])), 1)
        flows.append(
            {"from": f"m{int(rng.integers(k)) + 1}", "to": f"m{k + 1}", "max_delay_ms": limit}
        )
    return {
        "name": f"a{number}",
        "source": f"near-{int(rng.integers(near)) + 1}",
        "microservices": [
            {
                "name": f"m{k + 1}",
                "cpu_cores": sizes[k][0],
                "memory_gib": sizes[k][1],
                "data": data[k],
            }
            for k in range(count)
        ],
        "flows": flows,
    }
