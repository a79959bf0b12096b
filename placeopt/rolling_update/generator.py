"""Random rolling-update instances after the paper's Table I and section V-A.

Table I contradicts the text, which promises an occupancy of 80 % of 16 nodes: 50 microservices of
1.5 to 3.5 vCPU may need less or more. The draw is rescaled so that the total is the occupancy asked
for.
"""

from __future__ import annotations

import math

import numpy as np

from placeopt.core.errors import UsageError
from placeopt.core.files.documents import Document

NODE_MILLICORES, NODE_MIB = 8000, 65536
LATENCY_MS = 50

#: Flows of one application: (from, to, limit in ms).
Links = list[tuple[int, int, float]]


def generate(
    seed: int = 0,
    *,
    applications: int = 10,
    microservices: int = 5,
    clusters: int = 2,
    nodes: int | None = None,
    reschedulable: int | None = None,
    downscaled: float = 0.2,
    occupancy: float = 0.8,
    attachments: int = 1,
    added: int = 0,
    removed: int = 0,
    semantics: str = "stay",
) -> Document:
    """Draw an instance document.

    CPU is uniform in [1.5, 3.5] vCPU, then rescaled to the occupancy; memory is uniform in
    [0.2, 0.5] GB. The flows of an application are a Barabasi-Albert graph, with limits uniform in
    [20, 100] ms; clusters are 50 ms apart. Cluster 0 is private: a quarter of the nodes for two to
    four clusters, price 0. The other nodes cost 1 each. The start keeps every limit and loads the
    nodes evenly.

    Parameters
    ----------
    seed : int
    applications, microservices : int
        How many applications, of how many microservices each.
    clusters : int
        The private one included.
    nodes : int, optional
        In all; 16 for 50 microservices, in proportion for others, by default.
    reschedulable : int, optional
        Applications that may be rescheduled, those scaled down first; all by default.
    downscaled : float
        Share of all applications whose CPU is halved.
    occupancy : float
        Total CPU demand over total capacity at the start.
    attachments : int
        Edges of each new microservice in the Barabasi-Albert graph; 1 gives trees.
    added : int
        Replicas that are added on the way: further ones of random microservices that may be
        rescheduled, of their size and with their flows.
    removed : int
        Replicas that are removed on the way: random microservices that may be rescheduled run as
        two replicas of half their size on their node, of which one has no place at the end.
    semantics : {'stay', 'strict'}
    """
    nodes = max(clusters, round(applications * microservices * 0.32)) if nodes is None else nodes
    reschedulable = applications if reschedulable is None else reschedulable
    limits = (
        ("applications", applications, 1, 10**5),
        ("microservices", microservices, 1, 1000),
        ("clusters", clusters, 1, 64),
        ("nodes", nodes, clusters, 10**6),
        ("reschedulable", reschedulable, 0, applications),
        ("occupancy", occupancy, 0.01, 0.99),
        ("downscaled", downscaled, 0, 1),
        ("attachments", attachments, 1, 1000),
        ("added", added, 0, 10**5),
        ("removed", removed, 0, reschedulable * microservices),
    )
    for label, value, low, high in limits:
        if not low <= value <= high:
            raise UsageError(f"{label} is {value}; legal: {low} to {high}")
    for attempt in range(100):
        rng = np.random.default_rng([seed, attempt])
        demand = rng.uniform(1.5, 3.5, size=(applications, microservices))
        cpu = np.rint(demand * (occupancy * nodes * NODE_MILLICORES / demand.sum())).astype(int)
        memory = rng.integers(205, 513, size=cpu.shape)
        flows = [_flows(rng, microservices, attachments) for _ in range(applications)]
        cluster = _cluster_of(clusters, nodes)
        home = _start(cpu, memory, flows, cluster)
        if home is not None:
            break
    else:
        raise UsageError(
            f"no start at {occupancy:.0%} occupancy keeps all latency limits on {nodes} nodes; "
            "lower the occupancy or give more nodes"
        )
    order = rng.permutation(applications)
    shrinking = set(order[: round(downscaled * applications)].tolist())
    free = set(order[: max(reschedulable, len(shrinking))].tolist())
    document: Document = {
        "problem": "rolling-update",
        "name": f"generated-{applications}x{microservices}-{clusters}-clusters-{nodes}-nodes-"
        f"seed{seed}",
        "semantics": semantics,
        "nodes": [
            {
                "name": f"n{k + 1}",
                "cluster": f"c{c}",
                "cpu_millicores": NODE_MILLICORES,
                "memory_mib": NODE_MIB,
                "price": float(c > 0),
            }
            for k, c in enumerate(cluster)
        ],
        "cluster_latency_ms": {
            f"c{a}": {f"c{b}": LATENCY_MS for b in range(a + 1, clusters)}
            for a in range(clusters - 1)
        },
        "applications": [
            _application(a, a in free, a in shrinking, home[a], cpu[a], memory[a], flows[a])
            for a in range(applications)
        ],
    }
    if added or removed:
        _scale(document, np.random.default_rng([seed, attempt, 1]), added, removed)
    return document


def _scale(document: Document, rng: np.random.Generator, added: int, removed: int) -> None:
    """Add replicas that are to be added and removed; changes `document`."""
    document["name"] += f"-{added}-added-{removed}-removed"
    pairs = [
        (application, service)
        for application in document["applications"]
        if application["reschedulable"]
        for service in application["microservices"]
    ]
    if added and not pairs:
        raise UsageError(f"added is {added}; legal: 0 where nothing may be rescheduled")
    chosen = rng.permutation(len(pairs))[:removed].tolist()
    for application, service in (pairs[k] for k in chosen):
        halves = {key: service[key] // 2 for key in service if key.endswith(("millicores", "mib"))}
        other = service | halves | {"removed": True}
        other.pop("new_cpu_millicores", None)
        service |= {key: service[key] - half for key, half in halves.items()}
        _replicate(application, service, other)
    for application, service in (pairs[k] for k in rng.integers(max(1, len(pairs)), size=added)):
        _replicate(application, service, service | {"node": None})


def _replicate(application: Document, service: Document, other: Document) -> None:
    """Add another replica of a microservice, with its flows, to an application; changes it."""
    name = service.setdefault("replica_of", service["name"])
    count = sum(m.get("replica_of") == name for m in application["microservices"])
    other |= {"name": f"{name}-{count + 1}", "replica_of": name}
    flows = [flow for flow in application["flows"] if service["name"] in (flow["from"], flow["to"])]
    application["microservices"].append(other)
    application["flows"] += [
        {
            key: other["name"] if end == service["name"] else end
            for key, end in flow.items()
            if key != "max_latency_ms"
        }
        | {"max_latency_ms": flow["max_latency_ms"]}
        for flow in flows
    ]


def _cluster_of(clusters: int, nodes: int) -> list[int]:
    """Return the cluster of every node; the private one takes a quarter, less beyond four."""
    private = nodes if clusters == 1 else max(1, round(nodes / max(4, clusters)))
    rest = np.array_split(np.arange(nodes - private), max(1, clusters - 1))
    return [0] * private + [k + 1 for k, part in enumerate(rest) for _ in part]


def _flows(rng: np.random.Generator, count: int, attachments: int) -> Links:
    """Return (from, to, limit in ms) of one application's Barabasi-Albert graph."""
    import networkx

    if count < 2:
        return []
    graph = networkx.barabasi_albert_graph(
        count, min(attachments, count - 1), seed=int(rng.integers(2**31))
    )
    return [(a, b, round(float(rng.uniform(20, 100)), 1)) for a, b in graph.edges()]


def _start(
    cpu: np.ndarray, memory: np.ndarray, flows: list[Links], cluster: list[int]
) -> np.ndarray | None:
    """Return the first node of every microservice, shape (applications, microservices).

    Groups that must share a cluster go, largest first, where most is free. In the cluster each
    microservice, largest first, goes to the least loaded node. None where that overloads a node.
    """
    import networkx

    free = np.stack(
        [np.full(len(cluster), NODE_MILLICORES), np.full(len(cluster), NODE_MIB)], axis=1
    )
    room = np.bincount(cluster, minlength=max(cluster) + 1) * float(NODE_MILLICORES)
    capacity, where = room.copy(), np.array(cluster)
    groups: list[tuple[int, list[int]]] = []
    for a, links in enumerate(flows):
        graph = networkx.Graph((x, y) for x, y, limit in links if limit < LATENCY_MS)
        graph.add_nodes_from(range(cpu.shape[1]))
        groups += [(a, sorted(part)) for part in networkx.connected_components(graph)]
    home = np.empty(cpu.shape, dtype=int)
    placed: list[tuple[int, int, int]] = []
    for a, part in sorted(groups, key=lambda g: (-cpu[g[0], g[1]].sum(), g)):
        best = int((room / capacity).argmax())
        room[best] -= cpu[a, part].sum()
        placed += [(a, m, best) for m in part]
    for a, m, c in sorted(placed, key=lambda item: (-cpu[item[0], item[1]], item)):
        own = np.flatnonzero(where == c)
        n = int(own[free[own, 0].argmax()])
        free[n] -= (cpu[a, m], memory[a, m])
        if (free[n] < 0).any():
            return None
        home[a, m] = n
    return home


def _application(
    a: int,
    free: bool,
    shrinking: bool,
    home: np.ndarray,
    cpu: np.ndarray,
    memory: np.ndarray,
    flows: Links,
) -> Document:
    services: list[Document] = []
    for m in range(len(cpu)):
        service: Document = {
            "name": f"m{m + 1}",
            "node": f"n{home[m] + 1}",
            "cpu_millicores": int(cpu[m]),
            "memory_mib": int(memory[m]),
        }
        services.append(
            service | ({"new_cpu_millicores": math.ceil(cpu[m] / 2)} if shrinking else {})
        )
    links = [
        {"from": f"m{x + 1}", "to": f"m{y + 1}", "max_latency_ms": limit} for x, y, limit in flows
    ]
    return {"name": f"a{a + 1}", "reschedulable": free, "microservices": services, "flows": links}
