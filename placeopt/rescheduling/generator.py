"""Rescheduling instances: the REACH paper's testbed, random continua, node failures and surges.

The paper prints the machines (Table III), the speeds and the latencies of its testbed, but neither
execution times nor pod sizes. There are two profiles of them. ``stated`` is ours: times on Cloud-A
in the proportions of Table IV's work (digits of pi times iterations), sizes such that 20 pods fill
half of the testbed. ``reach`` is fitted to the five latencies that the paper prints of its failure
case, and to nothing else; benchmarks/papers/measures/reach_fit.py says how, and what it predicts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from placeopt.core.errors import InfeasibleInstanceError, UsageError, require_known
from placeopt.core.files.documents import Document
from placeopt.rescheduling.problem import Rescheduling

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
#: The same, fitted to the paper's failure case; GiB are twice the cores, as on its machines.
FITTED: dict[str, tuple[float, float, float]] = {
    "frontend": (0.25, 0.5, 13.5),
    "ml": (0.5, 1.0, 16.4),
    "backend": (1.5, 3.0, 108.1),
    "db": (1.75, 3.5, 1.6),
}
#: profile -> services: what the paper leaves open.
PROFILES: dict[str, dict[str, tuple[float, float, float]]] = {
    "stated": SERVICES,
    "reach": FITTED,
}
#: How the replicas are placed at first: at random, or by a scheduler on empty nodes.
STARTS = ("random", "kubernetes", "cloud-first", "latency-greedy")
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
    profile: str = "stated",
    start: str = "random",
) -> Document:
    """Return the document of an application placed on a continuum.

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
    profile : str
        One of `PROFILES`: execution times and pod sizes, of an application that is not random.
    start : str
        One of `STARTS`: a scheduler places service after service.

    Raises
    ------
    UsageError
        An unknown application, or more replicas than the machines hold.
    """
    _check(application, replicas, services, (cloud_a, edge_a, edge_b), jitter)
    require_known("profile", profile, PROFILES)
    require_known("start", start, STARTS)
    rng = np.random.default_rng(seed)
    nodes, latency = continuum(
        rng, {"cloud-a": cloud_a, "edge-a": edge_a, "edge-b": edge_b}, jitter
    )
    if application == "random":
        sizes, calls = _random_graph(rng, services)
    else:
        sizes, calls = PROFILES[profile], APPLICATIONS[application]
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
    document = {
        "problem": "rescheduling",
        "name": f"{application}-{len(listed) * replicas}-pods-seed{seed}",
        "nodes": nodes,
        "latency_ms": latency,
        "services": listed,
        "gateway": listed[0]["name"],
    }
    if start == "random":
        place(rng, nodes, listed, replicas)
    else:
        restart(document, [s for s in listed for _ in range(replicas)], start)
    return document


#: Services, replicas of each, and machines, at most.
_MOST = 1000


def _check(
    application: str, replicas: int, services: int, machines: Sequence[int], jitter: float
) -> None:
    require_known("application", application, (*APPLICATIONS, "random"))
    if not (1 <= replicas <= _MOST and 1 <= services <= _MOST):
        raise UsageError(
            f"replicas is {replicas} and services {services}; give 1 to {_MOST} of both"
        )
    if min(machines) < 0 or not 1 <= sum(machines) <= _MOST:
        raise UsageError(
            f"cloud_a, edge_a, edge_b are {', '.join(map(str, machines))}; "
            f"give counts of at least 0, and 1 to {_MOST} machines"
        )
    if not 0 <= jitter <= 0.9:
        raise UsageError(f"jitter is {jitter}; give a share from 0 to 0.9")


def _spread(rng: np.random.Generator, jitter: float) -> float:
    return float(rng.uniform(1 - jitter, 1 + jitter)) if jitter else 1.0


def continuum(
    rng: np.random.Generator, machines: dict[str, int], jitter: float = 0.0
) -> tuple[list[Document], dict[str, dict[str, float]]]:
    """Return the nodes and the latencies between them."""
    nodes: list[Document] = []
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
    nodes: Sequence[Document],
    services: Sequence[Document],
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


def fail(
    problem: Rescheduling, nodes: Iterable[str], scheduler: str = "kubernetes"
) -> Rescheduling:
    """Return the instance after nodes have failed and a scheduler has restarted their replicas.

    Of the nodes with room, ``kubernetes`` takes that whose cpu and memory are least in use, as the
    default scheduler has it; ``cloud-first`` one where the service runs fastest, and
    ``latency-greedy`` one next to the users, of equals the least in use.

    Raises
    ------
    UsageError
        There is no such node, or no such scheduler.
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
    restart(document, [s for s, _ in lost], scheduler)
    document["name"] = f"{problem.name}-failure"
    return Rescheduling.from_document(document)


def surge(
    problem: Rescheduling,
    replicas: int,
    services: Iterable[str] | None = None,
    scheduler: str = "kubernetes",
) -> Rescheduling:
    """Return the instance after autoscaling to `replicas` of each of `services`, by default of all.

    They start where the scheduler would start them; see `fail`.

    Raises
    ------
    UsageError
        There is no such service, or no such scheduler.
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
    restart(document, grown, scheduler)
    document["name"] = f"{problem.name}-surge"
    return Rescheduling.from_document(document)


def restart(document: Document, pods: Iterable[Document], scheduler: str = "kubernetes") -> None:
    """Start replicas one by one where the scheduler puts them."""
    require_known("scheduler", scheduler, STARTS[1:])
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
        share = (after / np.maximum(capacity, 1e-9)).sum(axis=1)
        first = [_preference(scheduler, node, service) for node in document["nodes"]]
        n = int(np.lexsort((share, first, ~room))[0])
        used[n] = after[n]
        service["replicas"].append(document["nodes"][n]["name"])


def _preference(scheduler: str, node: Document, service: Document) -> float:
    """Return what a scheduler looks at before the use of a node; the least is taken."""
    if scheduler == "cloud-first":
        return float(service["execution_ms"][node["kind"]])
    return float(node["user_latency_ms"]) if scheduler == "latency-greedy" else 0.0
