"""Rescheduling instances: the REACH paper's testbed, random continua, node failures and surges.

The paper prints the machines (Table III), the speeds and the latencies of its testbed, but neither
execution times nor pod sizes. Those below are ours: times on Cloud-A in the proportions of Table
IV's work (digits of pi times iterations), sizes such that 20 pods fill half of the testbed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from placeopt.core.errors import InfeasibleInstanceError, UsageError, require_known
from placeopt.rescheduling.instance import Rescheduling

#: kind -> (cores, GiB, execution time over that of Cloud-A, whether it is at the edge): Table III
#: and its text.
KINDS: dict[str, tuple[float, float, float, bool]] = {
    "cloud-a": (8.0, 16.0, 1.0, False),
    "edge-a": (4.0, 8.0, 1.5, True),
    "edge-b": (2.0, 4.0, 2.0, True),
}
#: service -> (cores, GiB, ms on Cloud-A): ours.
SERVICES: dict[str, tuple[float, float, float]] = {
    "frontend": (0.5, 0.5, 12.0),
    "ml": (1.0, 1.0, 80.0),
    "backend": (1.0, 1.0, 25.0),
    "db": (0.5, 0.5, 5.0),
}
#: application -> who calls whom: the patterns that the paper names.
APPLICATIONS: dict[str, dict[str, list[list[str]]]] = {
    "chain": {"frontend": [["ml"]], "ml": [["backend"]], "backend": [["db"]]},
    "aggregator-sequential": {"frontend": [["ml", "backend", "db"]]},
    "aggregator-parallel": {"frontend": [["ml"], ["backend", "db"]]},
}
#: ms between cloud and edge, between two machines of one of them, and between users and the edge.
FAR_MS, NEAR_MS = 50.0, 0.5


def generate(
    seed: int = 0,
    *,
    application: str = "chain",
    replicas: int = 3,
    services: int = 8,
    cloud_a: int = 2,
    edge_a: int = 2,
    edge_b: int = 2,
    jitter: float = 0.0,
) -> dict[str, Any]:
    """Return the document of an application placed at random on a continuum.

    The defaults are the paper's testbed.

    Parameters
    ----------
    application : str
        One of `APPLICATIONS`, or ``random``: a random call graph.
    replicas : int
        Of every service.
    services : int
        Services of a random application.
    cloud_a, edge_a, edge_b : int
        Machines of each kind.
    jitter : float
        Spread of latencies and execution times, as a share; 0 to 0.9.

    Raises
    ------
    UsageError
        An unknown application, or more replicas than the machines hold.
    """
    _check(application, replicas, services, (cloud_a, edge_a, edge_b), jitter)
    rng = np.random.default_rng(seed)
    nodes, latency = continuum(
        rng, {"cloud-a": cloud_a, "edge-a": edge_a, "edge-b": edge_b}, jitter
    )
    if application == "random":
        sizes, calls = _random_graph(rng, services)
    else:
        sizes, calls = SERVICES, APPLICATIONS[application]
    listed = []
    for name, (cores, gib, ms) in sizes.items():
        times = {kind: round(ms * KINDS[kind][2] * _spread(rng, jitter), 1) for kind in KINDS}
        listed.append(
            {
                "name": name,
                "cpu_cores": cores,
                "memory_gib": gib,
                "execution_ms": times,
                "replicas": [],
                "calls": calls.get(name, []),
            }
        )
    place(rng, nodes, listed, replicas)
    name = f"{application}-{len(listed) * replicas}-pods-seed{seed}"
    return {
        "problem": "rescheduling",
        "name": name,
        "nodes": nodes,
        "latency_ms": latency,
        "services": listed,
        "gateway": listed[0]["name"],
    }


def _check(
    application: str, replicas: int, services: int, machines: Sequence[int], jitter: float
) -> None:
    require_known("application", application, (*APPLICATIONS, "random"))
    if replicas < 1 or services < 1:
        raise UsageError(f"replicas is {replicas} and services {services}; give at least 1 of both")
    if min(machines) < 0 or sum(machines) < 1:
        raise UsageError(
            f"cloud_a, edge_a, edge_b are {', '.join(map(str, machines))}; "
            "give counts of at least 0, and at least one machine"
        )
    if not 0 <= jitter <= 0.9:
        raise UsageError(f"jitter is {jitter}; give a share from 0 to 0.9")


def _spread(rng: np.random.Generator, jitter: float) -> float:
    return float(rng.uniform(1 - jitter, 1 + jitter)) if jitter else 1.0


def continuum(
    rng: np.random.Generator, machines: dict[str, int], jitter: float = 0.0
) -> tuple[list[dict[str, Any]], dict[str, dict[str, float]]]:
    """Return the nodes and the latencies between them."""
    nodes: list[dict[str, Any]] = []
    for kind, count in machines.items():
        cores, gib, _, edge = KINDS[kind]
        for k in range(1, count + 1):
            user = round((NEAR_MS if edge else FAR_MS) * _spread(rng, jitter), 1)
            nodes.append(
                {
                    "name": f"{kind}-{k}",
                    "kind": kind,
                    "cpu_cores": cores,
                    "memory_gib": gib,
                    "user_latency_ms": user,
                }
            )
    latency: dict[str, dict[str, float]] = {}
    for a, one in enumerate(nodes):
        for other in nodes[a + 1 :]:
            same = KINDS[one["kind"]][3] == KINDS[other["kind"]][3]
            latency.setdefault(one["name"], {})[other["name"]] = round(
                (NEAR_MS if same else FAR_MS) * _spread(rng, jitter), 1
            )
    return nodes, latency


def _random_graph(
    rng: np.random.Generator, count: int
) -> tuple[dict[str, tuple[float, float, float]], dict[str, list[list[str]]]]:
    """Return sizes and calls of a random graph, by the name of the service.

    Every service but the first has one caller, a tenth of them a second one.
    """
    names = [f"s{k}" for k in range(count)]
    sizes = {
        name: (
            float(rng.choice([0.25, 0.5])),
            float(rng.choice([0.25, 0.5, 1.0])),
            float(rng.integers(2, 60)),
        )
        for name in names
    }
    calls: dict[str, list[list[str]]] = {}
    for k in range(1, count):
        for _ in range(1 + int(rng.random() < 0.1)):
            groups = calls.setdefault(names[int(rng.integers(max(0, k - 6), k))], [])
            if groups and rng.random() < 0.5:
                groups[int(rng.integers(len(groups)))].append(names[k])
            else:
                groups.append([names[k]])
    return sizes, calls


def place(
    rng: np.random.Generator,
    nodes: Sequence[dict[str, Any]],
    services: Sequence[dict[str, Any]],
    replicas: int,
) -> None:
    """Put replicas of every service on random nodes with room, large services first."""
    free = np.array([(n["cpu_cores"], n["memory_gib"]) for n in nodes])
    order = sorted(
        range(len(services)),
        key=lambda k: (-services[k]["cpu_cores"], -services[k]["memory_gib"], k),
    )
    for service in (services[k] for k in order):
        size = np.array((service["cpu_cores"], service["memory_gib"]))
        for _ in range(replicas):
            fits = np.flatnonzero((free >= size - 1e-9).all(axis=1))
            if not len(fits):
                raise UsageError(
                    "the machines are too few for these replicas; "
                    "give more cloud_a, edge_a or edge_b, or fewer replicas"
                )
            n = int(rng.choice(fits))
            free[n] -= size
            service["replicas"].append(nodes[n]["name"])


# -- events ----------------------------------------------------------------------------------------


def fail(problem: Rescheduling, nodes: Iterable[str]) -> Rescheduling:
    """Return the instance after nodes have failed and Kubernetes has restarted their replicas.

    A replica that is lost goes to the node with room whose cpu and memory are least in use, as the
    default scheduler has it.

    Raises
    ------
    UsageError
        There is no such node.
    InfeasibleInstanceError
        The rest has no room.
    """
    document, gone = problem.to_document(), set(nodes)
    for name in sorted(gone):
        require_known("node", name, problem.node_numbers)
    document["nodes"] = [n for n in document["nodes"] if n["name"] not in gone]
    lost = [(s, name) for s in document["services"] for name in s["replicas"] if name in gone]
    for service in document["services"]:
        service["replicas"] = [name for name in service["replicas"] if name not in gone]
    _restart(document, [s for s, _ in lost])
    document["name"] = f"{problem.name}-failure"
    return Rescheduling.from_document(document)


def surge(
    problem: Rescheduling, replicas: int, services: Iterable[str] | None = None
) -> Rescheduling:
    """Return the instance after autoscaling to `replicas` of each of `services`, by default of all.

    They start where Kubernetes would start them.

    Raises
    ------
    UsageError
        There is no such service.
    InfeasibleInstanceError
        There is no room.
    """
    document = problem.to_document()
    chosen = set(problem.service_numbers if services is None else services)
    for name in sorted(chosen):
        require_known("service", name, problem.service_numbers)
    grown = [
        s
        for s in document["services"]
        if s["name"] in chosen
        for _ in range(replicas - len(s["replicas"]))
    ]
    for service in document["services"]:
        service["replicas"] = list(service["replicas"])
    _restart(document, grown)
    document["name"] = f"{problem.name}-surge"
    return Rescheduling.from_document(document)


def _restart(document: dict[str, Any], pods: Iterable[dict[str, Any]]) -> None:
    """Start replicas one by one on the node that is least in use."""
    capacity = np.array([(n["cpu_cores"], n["memory_gib"]) for n in document["nodes"]])
    capacity = capacity.reshape(-1, 2)
    numbers = {n["name"]: k for k, n in enumerate(document["nodes"])}
    used = np.zeros_like(capacity)
    for service in document["services"]:
        for name in service["replicas"]:
            used[numbers[name]] += (service["cpu_cores"], service["memory_gib"])
    for service in pods:
        after = used + np.array((service["cpu_cores"], service["memory_gib"]))
        room = (after <= capacity + 1e-9).all(axis=1)
        if not room.any():
            raise InfeasibleInstanceError(
                [f"no node has room for another replica of {service['name']!r}"]
            )
        shares = np.where(room, (after / np.maximum(capacity, 1e-9)).sum(axis=1), np.inf)
        n = int(shares.argmin())
        used[n] = after[n]
        service["replicas"].append(document["nodes"][n]["name"])
